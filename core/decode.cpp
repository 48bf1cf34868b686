// Select, attend and decode as the caller sees them: checks, then one backend call, then lengths.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/cache.hpp"

namespace rkv {

// The selection that a call writes (select, decode) or reads (attend).
rkv_status Cache::check_selection(const DecodeCall& call, bool read, DecodeTask& task,
                                  Failure& failure) const {
  const rkv_selection& selection = *call.selection;
  if (selection.space == RKV_SPACE_SLOT) {
    return fail_value(failure, RKV_UNSUPPORTED, "selection.space", selection.space,
                      "SLOT needs INDEXED storage with a block table, which is not served yet");
  }
  if (selection.space != RKV_SPACE_LIVE_ROW && (read || selection.space != RKV_SPACE_POSITION)) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "selection.space", selection.space,
                      read ? "attention reads LIVE_ROW (0) alone"
                           : "it must be LIVE_ROW (0), POSITION (1) or SLOT (2)");
  }
  if (selection.indices == nullptr) {
    return fail_null(failure, "selection.indices", "it must hold [rows, kv_heads, capacity]");
  }
  if (selection.counts == nullptr) {
    return fail_null(failure, "selection.counts", "it must hold [rows, kv_heads]");
  }
  if (selection.capacity < layout_.selection) {
    return fail_value(failure, RKV_BUFFER_TOO_SMALL, "selection.capacity", selection.capacity,
                      "rkv_memory.selection_capacity is %lld",
                      static_cast<long long>(layout_.selection));
  }
  RKV_TRY(check_aligned("selection.indices", selection.indices, sizeof(int32_t), failure));
  RKV_TRY(check_aligned("selection.counts", selection.counts, sizeof(int32_t), failure));
  const int64_t lists = int64_t{call.args.rows} * config_.shape.kv_heads;
  if (selection.capacity > (int64_t{1} << 60) / std::max<int64_t>(lists, 1)) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "selection.capacity", selection.capacity,
                      "%lld lists of it must stay under 2^62 bytes", static_cast<long long>(lists));
  }
  task.indices = selection.indices;
  task.counts = selection.counts;
  task.capacity = selection.capacity;
  return RKV_OK;
}

// A list to attend to: ascending rows that its row may see.
rkv_status Cache::check_indices(const DecodeTask& task, Failure& failure) const {
  const int64_t heads = config_.shape.kv_heads;
  for (int32_t r = 0; r < task.row_count; ++r) {
    const DecodeRow& row = task.rows[r];
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t line = int64_t{row.row} * heads + head;
      const int32_t count = task.counts[line];
      if (count < 0 || count > task.capacity || count > row.live) {
        return fail(failure, RKV_INVALID_ARGUMENT,
                    "selection.counts[%d, %lld] is %d: it must lie in [0, %lld]", row.row,
                    static_cast<long long>(head), count,
                    static_cast<long long>(std::min(task.capacity, row.live)));
      }
      const int32_t* list = task.indices + line * task.capacity;
      for (int32_t i = 0; i < count; ++i) {
        if (list[i] < 0 || list[i] >= row.live || (i > 0 && list[i] <= list[i - 1])) {
          return fail(failure, RKV_INVALID_ARGUMENT,
                      "selection.indices[%d, %lld, %d] is %d: live rows must ascend in [0, %lld)",
                      row.row, static_cast<long long>(head), i, list[i],
                      static_cast<long long>(row.live));
        }
      }
    }
  }
  return RKV_OK;
}

rkv_status Cache::read_outputs(Step step, const DecodeCall& call, DecodeTask& task,
                               Failure& failure) {
  const Shape& shape = config_.shape;
  if (call.selection != nullptr) {
    RKV_TRY(check_selection(call, step == Step::kAttend, task, failure));
  } else if (step == Step::kSelect) {
    return fail_null(failure, "args.selection", "rkv_decode_select writes it");
  }
  if (step == Step::kSelect) return RKV_OK;
  RKV_TRY(read_tensor(call.out,
                      {"args.out", shape.query, "config.query_dtype", call.args.rows, shape.q_heads,
                       shape.head_dim_v, true},
                      task.out, failure));
  RKV_TRY(check_aligned("args.lse", call.args.lse, sizeof(float), failure));
  task.lse = call.args.lse;
  return RKV_OK;
}

// Padding rows: output 0, log-sum-exp -inf, an empty selection.
void Cache::clear_padding(const DecodeCall& call, bool writes_selection,
                          const DecodeTask& task) const {
  const Shape& shape = config_.shape;
  const int64_t bytes = dtype_bytes(shape.query);
  for (int64_t row = 0; row < call.args.rows; ++row) {
    if (call.args.seq[row] != -1) continue;
    for (int64_t head = 0; task.out.data != nullptr && head < shape.q_heads; ++head) {
      std::byte* out = task.out.at(row, head);
      for (int64_t d = 0; d < shape.head_dim_v; ++d) {
        std::memset(out + d * task.out.channel * bytes, 0, static_cast<size_t>(bytes));
      }
    }
    if (writes_selection) {
      const int64_t line = row * shape.kv_heads;
      std::fill_n(task.counts + line, shape.kv_heads, 0);
      std::fill_n(task.indices + line * task.capacity, shape.kv_heads * task.capacity, -1);
    }
    if (task.lse != nullptr) {
      std::fill_n(task.lse + row * shape.q_heads, shape.q_heads,
                  -std::numeric_limits<float>::infinity());
    }
  }
}

// Rows from the call's first position on are replaced (a retried step, rejected drafts).
void Cache::drop_replaced_rows(const rkv_decode_args& args, const DecodeTask& task) {
  for (int32_t run = 0; run < task.run_count; ++run) {
    const DecodeRow& row = task.rows[task.runs[run].first];
    const int32_t seq = args.seq[row.row];
    drop_rows(seq, args.layer, args.positions[row.row] - slot(seq).prompt);
  }
}

void Cache::finish_rows(const rkv_decode_args& args, Access access, const DecodeTask& task) {
  for (int32_t r = 0; r < task.row_count; ++r) {
    const DecodeRow& row = task.rows[r];
    const int32_t seq = args.seq[row.row];
    LayerState& state = layer(seq, args.layer);
    state.nonfinite = state.nonfinite || row.nonfinite != 0;
    if (access == Access::kAppend) state.generated = row.live - state.kept;
  }
}

// Live rows are kept tokens, then generated ones: their positions ascend too.
void Cache::to_positions(const DecodeCall& call, const DecodeTask& task) const {
  const rkv_selection& selection = *call.selection;
  const int64_t heads = config_.shape.kv_heads;
  for (int32_t r = 0; r < task.row_count; ++r) {
    const DecodeRow& row = task.rows[r];
    const int32_t seq = call.args.seq[row.row];
    const int64_t kept = layer(seq, call.args.layer).kept;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t line = int64_t{row.row} * heads + head;
      int32_t* list = selection.indices + line * selection.capacity;
      const int32_t* positions = row.store.positions + head * row.store.kept;
      for (int32_t i = 0; i < selection.counts[line]; ++i) {
        const int64_t live = list[i];
        list[i] =
            live < kept ? positions[live] : static_cast<int32_t>(slot(seq).prompt + live - kept);
      }
    }
  }
}

rkv_status Cache::check_call(const rkv_decode_args& args, Failure& failure) const {
  RKV_TRY(check_layer(args.layer, failure));
  if (args.attend_only != 0 && args.attend_only != 1) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "args.attend_only", args.attend_only,
                      "it must be 0 or 1");
  }
  if (args.rows < 0) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "args.rows", args.rows,
                      "it must be at least 0");
  }
  if (args.rows > config_.max_rows) {
    return fail_value(failure, RKV_OUT_OF_CAPACITY, "args.rows", args.rows, "config.max_rows is %d",
                      config_.max_rows);
  }
  if (args.paging != nullptr) {
    return fail(failure, RKV_UNSUPPORTED,
                "args.paging is set: it goes with INDEXED storage, which is not served yet");
  }
  return RKV_OK;
}

rkv_status Cache::decode(Step step, const DecodeCall& call, Failure& failure) {
  const rkv_decode_args& args = call.args;
  const Shape& shape = config_.shape;
  RKV_TRY(check_call(args, failure));
  if (args.rows == 0) return RKV_OK;
  backend_->expect();  // threads wake up while the arguments are checked
  const Access access =
      step == Step::kAttend || args.attend_only != 0 ? Access::kExisting : Access::kAppend;
  DecodeTask task;
  task.select = config_.select;
  task.attention = config_.attention;
  RKV_TRY(read_tensor(
      call.q,
      {"args.q", shape.query, "config.query_dtype", args.rows, shape.q_heads, shape.head_dim},
      task.q, failure));
  if (access == Access::kAppend) {
    RKV_TRY(read_tensor(
        call.k, {"args.k", shape.kv, "config.kv_dtype", args.rows, shape.kv_heads, shape.head_dim},
        task.k, failure));
    RKV_TRY(read_tensor(
        call.v,
        {"args.v", shape.kv, "config.kv_dtype", args.rows, shape.kv_heads, shape.head_dim_v},
        task.v, failure));
  }
  RKV_TRY(read_outputs(step, call, task, failure));
  RKV_TRY(read_rows(call, access, task, failure));
  if (step == Step::kAttend && task.indices != nullptr) RKV_TRY(check_indices(task, failure));

  if (access == Access::kAppend) drop_replaced_rows(args, task);
  const bool writes_selection = step != Step::kAttend && call.selection != nullptr;
  switch (step) {
    case Step::kSelect: backend_->select(task); break;
    case Step::kAttend: backend_->attend(task); break;
    case Step::kDecode: backend_->decode(task); break;
  }
  clear_padding(call, writes_selection, task);
  finish_rows(args, access, task);
  if (writes_selection && call.selection->space == RKV_SPACE_POSITION) to_positions(call, task);
  return RKV_OK;
}

}  // namespace rkv
