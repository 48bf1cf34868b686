#include "core/cpu/decode.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/cpu/summaries.hpp"

namespace rkv::cpu {
namespace {

// Chunks per thread between two merges of a split call: enough that the fork-joins do not show.
constexpr int64_t kChunksPerThread = 16;

// KV heads of one row run side by side.
void flag_nonfinite(DecodeRow& row) {
  std::atomic_ref<uint32_t>(row.nonfinite).store(1, std::memory_order_relaxed);
}

int32_t* list_line(const DecodeTask& task, const Shape& shape, const DecodeRow& row, int32_t head) {
  if (task.indices == nullptr) return nullptr;
  return task.indices + (int64_t{row.row} * shape.kv_heads + head) * task.capacity;
}

// Completes the caller's list: everything where nothing was selected, then -1 to the capacity.
void finish_list(const DecodeTask& task, const Shape& shape, const DecodeRow& row, int32_t head,
                 bool everything, int64_t count) {
  int32_t* line = list_line(task, shape, row, head);
  if (everything) {
    for (int64_t i = 0; i < count; ++i) line[i] = static_cast<int32_t>(i);
  }
  std::fill(line + count, line + task.capacity, -1);
  task.counts[int64_t{row.row} * shape.kv_heads + head] = static_cast<int32_t>(count);
}

}  // namespace

Decoder::Decoder(const BackendLimits& limits, Pool& pool, std::byte* workspace, size_t target)
    : pool_(&pool), target_(target) {
  Arena arena(workspace);
  carve(arena, limits);
}

void Decoder::carve(Arena& arena, const BackendLimits& limits) {
  shape_ = limits.shape;
  const auto carve_item = [&] {
    Item item;
    item.q = arena.take<float>(query_stride(shape_) * shape_.group);
    item.list = arena.take<int32_t>(limits.selection_capacity);
    item.sum = carve_partial(arena, shape_);
    return item;
  };
  const auto threads = static_cast<size_t>(limits.threads);
  workers_.resize(threads);
  for (Worker& worker : workers_) {
    worker.item = carve_item();
    worker.select = carve_select(arena, shape_, limits.max_pages);
    worker.attend = carve_attend(arena, shape_);
    worker.chunk = carve_partial(arena, shape_);
  }
  if (threads == 1) return;  // nothing is ever split
  items_.resize(threads - 1);
  for (SplitItem& item : items_) item.memory = carve_item();
  partials_.resize(threads * kChunksPerThread);
  for (Partial& partial : partials_) partial = carve_partial(arena, shape_);
}

int64_t decode_workspace_bytes(const BackendLimits& limits) {
  Decoder measured;
  Arena arena(nullptr);
  measured.carve(arena, limits);
  return arena.used();
}

// Appends the row and selects for it, or takes the caller's list; what is then attended to.
AttendArgs Decoder::prepare(DecodeTask& task, Mode mode, DecodeRow& row, int32_t head,
                            Worker& worker, const Item& item) const {
  AttendArgs args;
  args.shape = &shape_;
  args.store = &row.store;
  args.options = task.attention;
  args.head = head;
  args.q = item.q;
  args.count = row.live;
  const bool selects = mode != Mode::kAttend && !row.dense && row.top_k < row.live;
  if (mode != Mode::kAttend && row.append) {
    append_row(shape_, row.store, head, task.k, task.v, row.row, row.live,
               row.dense ? 0 : row.page_size, target_);
  }
  if (mode != Mode::kSelect || selects) {
    load_query(shape_, task.q, row.row, head, item.q, target_);
  }
  if (mode == Mode::kAttend) {
    args.list = list_line(task, shape_, row, head);
    if (args.list != nullptr) args.count = task.counts[int64_t{row.row} * shape_.kv_heads + head];
    args.fetched = args.count;
    return args;
  }
  if (selects) {
    SelectArgs select;
    select.shape = &shape_;
    select.store = &row.store;
    select.options = &task.select;
    select.scale = task.attention.scale;
    select.head = head;
    select.live = row.live;
    select.page_size = row.page_size;
    select.channels = row.channels;
    select.top_k = row.top_k;
    select.tail_is_current = row.append;
    select.q = item.q;
    int32_t* list = task.indices != nullptr ? list_line(task, shape_, row, head) : item.list;
    bool nonfinite = false;
    args.count = select_rows(select, worker.select, list, &nonfinite, target_);
    if (nonfinite) flag_nonfinite(row);
    args.list = list;
  }
  if (task.indices != nullptr) finish_list(task, shape_, row, head, !selects, args.count);
  args.fetched = args.count;
  return args;
}

void Decoder::finish(const DecodeTask& task, const AttendArgs& args, DecodeRow& row,
                     const Partial& sum, bool nonfinite) const {
  if (nonfinite) flag_nonfinite(row);
  store_result(shape_, sum, task.out, row.row, args.head, task.lse, target_);
}

// One thread per (run, KV head), or per (row, KV head) where rows do not depend on each other.
void Decoder::run_whole(DecodeTask& task, Mode mode) noexcept {
  const int64_t heads = shape_.kv_heads;
  const bool by_row = mode == Mode::kAttend;
  pool_->run((by_row ? task.row_count : task.run_count) * heads, [&](int64_t i, int thread) {
    Worker& worker = workers_[static_cast<size_t>(thread)];
    const auto place = static_cast<int32_t>(i / heads);
    const auto head = static_cast<int32_t>(i % heads);
    const DecodeRun run = by_row ? DecodeRun{place, 1} : task.runs[place];
    for (int32_t r = run.first; r < run.first + run.count; ++r) {
      DecodeRow& row = task.rows[r];
      const AttendArgs args = prepare(task, mode, row, head, worker, worker.item);
      if (mode == Mode::kSelect) continue;
      const bool nonfinite =
          attend_rows(args, worker.attend, worker.chunk, worker.item.sum, target_);
      finish(task, args, row, worker.item.sum, nonfinite);
    }
  });
}

// Fewer (run, KV head) pairs than threads: the n-th rows of all runs together, their selections
// side by side, then the chunks of their lists.
void Decoder::run_split(DecodeTask& task, Mode mode) noexcept {
  int32_t longest = 0;
  for (int32_t i = 0; i < task.run_count; ++i) longest = std::max(longest, task.runs[i].count);
  for (int32_t n = 0; n < longest; ++n) {
    int64_t items = 0;
    for (int32_t i = 0; i < task.run_count; ++i) {
      if (n >= task.runs[i].count) continue;
      for (int32_t head = 0; head < shape_.kv_heads; ++head, ++items) {
        SplitItem& item = items_[static_cast<size_t>(items)];
        item.row = &task.rows[task.runs[i].first + n];
        item.args.head = head;
      }
    }
    pool_->run(items, [&](int64_t i, int thread) {
      SplitItem& item = items_[static_cast<size_t>(i)];
      item.args = prepare(task, mode, *item.row, item.args.head,
                          workers_[static_cast<size_t>(thread)], item.memory);
    });
    attend_split(task, items);
  }
}

Decoder::SplitItem& Decoder::owner_of(int64_t chunk, int64_t items) noexcept {
  const auto after =
      std::upper_bound(items_.begin(), items_.begin() + items, chunk,
                       [](int64_t c, const SplitItem& item) { return c < item.first_chunk; });
  return *(after - 1);
}

void Decoder::attend_split(DecodeTask& task, int64_t items) noexcept {
  int64_t chunks = 0;
  for (int64_t i = 0; i < items; ++i) {
    SplitItem& item = items_[static_cast<size_t>(i)];
    item.first_chunk = chunks;
    item.chunks = (item.args.count + kChunkRows - 1) / kChunkRows;
    chunks += item.chunks;
    std::fill_n(item.memory.sum.top, shape_.group, -HUGE_VALF);
    std::fill_n(item.memory.sum.total, shape_.group, 0.0F);
  }
  const auto slots = static_cast<int64_t>(partials_.size());
  for (int64_t first = 0; first < chunks; first += slots) {
    const int64_t count = std::min(slots, chunks - first);
    // A few chunks in a row per thread, so that each can fetch the next one ahead.
    const int64_t strip = std::clamp<int64_t>(count / (2 * pool_->threads()), 1, 4);
    pool_->run((count + strip - 1) / strip, [&](int64_t i, int thread) {
      const int64_t end = std::min(first + (i + 1) * strip, first + count);
      const SplitItem* before = nullptr;
      for (int64_t chunk = first + i * strip; chunk < end; ++chunk) {
        SplitItem& owner = owner_of(chunk, items);
        AttendArgs args = owner.args;
        args.fetched = std::min(args.count, (end - owner.first_chunk) * kChunkRows);
        if (attend_chunk(args, chunk - owner.first_chunk, &owner != before,
                         workers_[static_cast<size_t>(thread)].attend,
                         partials_[static_cast<size_t>(chunk - first)], target_)) {
          flag_nonfinite(*owner.row);
        }
        before = &owner;
      }
    });
    pool_->run(items, [&](int64_t i, int) {
      const SplitItem& item = items_[static_cast<size_t>(i)];
      const int64_t begin = std::max(first, item.first_chunk);
      const int64_t end = std::min(first + count, item.first_chunk + item.chunks);
      for (int64_t c = begin; c < end; ++c) {
        merge_partial(shape_, partials_[static_cast<size_t>(c - first)], item.memory.sum, target_);
      }
    });
  }
  for (int64_t i = 0; i < items; ++i) {
    const SplitItem& item = items_[static_cast<size_t>(i)];
    finish(task, item.args, *item.row, item.memory.sum, false);
  }
}

void Decoder::select(DecodeTask& task) noexcept { run_whole(task, Mode::kSelect); }

void Decoder::attend(DecodeTask& task) noexcept {
  if (int64_t{task.row_count} * shape_.kv_heads < pool_->threads()) {
    run_split(task, Mode::kAttend);
  } else {
    run_whole(task, Mode::kAttend);
  }
}

void Decoder::decode(DecodeTask& task) noexcept {
  if (int64_t{task.run_count} * shape_.kv_heads < pool_->threads()) {
    run_split(task, Mode::kDecode);
  } else {
    run_whole(task, Mode::kDecode);
  }
}

}  // namespace rkv::cpu
