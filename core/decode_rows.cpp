// Which rows a decode call brings: every row is checked before anything changes.
#include "core/cache.hpp"

namespace rkv {

rkv_status Cache::check_row(const RowPlace& place, Access access, Failure& failure) const {
  const auto row = static_cast<long long>(place.row);
  if (place.seq < 0 || place.seq >= config_.max_sequences || !slot(place.seq).open) {
    return fail(failure, RKV_BAD_STATE,
                "args.seq[%lld] is %d: it must be an open sequence in [0, %d], or -1 for padding",
                row, place.seq, config_.max_sequences - 1);
  }
  const Slot& owner = slot(place.seq);
  if (layer(place.seq, place.layer).phase != LayerPhase::kReady) {
    return fail(
        failure, RKV_BAD_STATE, "args.seq[%lld] is %d: layer %d of it has not been prefilled%s",
        row, place.seq, place.layer,
        owner.prompt > 0 ? " to the prompt's end, where args.start + rows = prompt_tokens" : "");
  }
  const auto position = static_cast<long long>(place.position);
  if (place.position < owner.prompt) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "args.positions[%lld] is %lld: the prompt of sequence %d ends at %lld", row,
                position, place.seq, static_cast<long long>(owner.prompt));
  }
  if (access == Access::kExisting) {
    if (place.position < place.length) return RKV_OK;
    return fail(failure, RKV_BAD_STATE,
                "args.positions[%lld] is %lld: layer %d of sequence %d holds positions below %lld",
                row, position, place.layer, place.seq, static_cast<long long>(place.length));
  }
  if (place.position > place.length) {
    return fail(failure, RKV_BAD_STATE,
                "args.positions[%lld] is %lld: it leaves a gap, layer %d of sequence %d goes on at "
                "%lld",
                row, position, place.layer, place.seq, static_cast<long long>(place.length));
  }
  const int64_t end = owner.prompt + owner.request.max_new;
  if (place.position >= end) {
    return fail(failure, RKV_OUT_OF_CAPACITY,
                "args.positions[%lld] is %lld: sequence %d may reach prompt + max_new_tokens = "
                "%lld (exclusive)",
                row, position, place.seq, static_cast<long long>(end));
  }
  return RKV_OK;
}

// Rows of one sequence stand side by side with consecutive positions.
rkv_status Cache::check_adjacent(const rkv_decode_args& args, int64_t row, Failure& failure) {
  const int32_t seq = args.seq[row];
  if (seq < 0 || seq >= config_.max_sequences) return RKV_OK;  // check_row says what it is
  Slot& owner = slot(seq);
  const bool met = owner.last_call == calls_;
  owner.last_call = calls_;
  if (!met) return RKV_OK;
  if (args.seq[row - 1] != seq) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "args.seq[%lld] is %d: rows of one sequence must be adjacent",
                static_cast<long long>(row), seq);
  }
  const int64_t before = args.positions[row - 1];
  if (before == INT64_MAX || args.positions[row] != before + 1) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "args.positions[%lld] is %lld: positions of one sequence must be consecutive, the "
                "row before is at %lld",
                static_cast<long long>(row), static_cast<long long>(args.positions[row]),
                static_cast<long long>(before));
  }
  return RKV_OK;
}

void Cache::add_row(const RowPlace& place, Access access, DecodeTask& task) {
  const Slot& owner = slot(place.seq);
  DecodeRow& row = rows_[static_cast<size_t>(task.row_count)];
  row = DecodeRow{};
  row.row = static_cast<int32_t>(place.row);
  row.append = access == Access::kAppend;
  row.dense = dense(place.seq, place.layer);
  row.live = layer(place.seq, place.layer).kept + (place.position - owner.prompt) + 1;
  row.page_size = owner.plan.page_size;
  row.channels = owner.plan.channels;
  row.top_k = owner.plan.top_k;
  row.store = store(place.seq, place.layer);
  ++task.row_count;
}

rkv_status Cache::read_rows(const DecodeCall& call, Access access, DecodeTask& task,
                            Failure& failure) {
  const rkv_decode_args& args = call.args;
  if (args.seq == nullptr) return fail_null(failure, "args.seq", "it must hold [rows] ids");
  if (args.positions == nullptr) {
    return fail_null(failure, "args.positions", "it must hold [rows] positions");
  }
  RKV_TRY(check_aligned("args.seq", args.seq, sizeof(int32_t), failure));
  RKV_TRY(check_aligned("args.positions", args.positions, sizeof(int64_t), failure));
  RKV_TRY(check_aligned("args.row_status", args.row_status, sizeof(int32_t), failure));
  ++calls_;
  task.rows = rows_.data();
  task.runs = runs_.data();
  rkv_status first = RKV_OK;
  int64_t length = 0;
  for (int64_t i = 0; i < args.rows; ++i) {
    const int32_t seq = args.seq[i];
    if (seq == -1) continue;
    RKV_TRY(check_adjacent(args, i, failure));
    const bool follows = i > 0 && args.seq[i - 1] == seq;
    if (!follows && seq >= 0 && seq < config_.max_sequences) {
      length = this->length(seq, args.layer);
    }
    const RowPlace place{seq, args.layer, i, args.positions[i], length};
    Failure unused;
    const rkv_status status = check_row(place, access, first == RKV_OK ? failure : unused);
    if (status != RKV_OK) {
      if (first == RKV_OK) first = status;
      if (args.row_status != nullptr) args.row_status[i] = status;
      continue;
    }
    if (access == Access::kAppend) length = place.position + 1;
    if (!follows) {
      runs_[static_cast<size_t>(task.run_count++)] = {task.row_count, 0};
    }
    if (first == RKV_OK) ++runs_[static_cast<size_t>(task.run_count - 1)].count;
    if (first == RKV_OK) add_row(place, access, task);
  }
  return first;
}

}  // namespace rkv
