#include "core/cpu/decode.hpp"

#include <algorithm>
#include <atomic>

#include "core/cpu/summaries.hpp"

namespace rkv::cpu {
namespace {

// Chunks that may wait to be merged, for each thread: enough that no thread has to wait for a slot.
constexpr int64_t kSlotsPerThread = 16;

// Rows that make one thread more than there are items worth waking.
constexpr int64_t kRowsWorthAThread = 8 * kChunkRows;

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
  const auto threads = static_cast<size_t>(limits.threads);
  workers_.resize(threads);
  for (Worker& worker : workers_) {
    worker.q = arena.take<float>(query_stride(shape_) * shape_.group);
    worker.list = arena.take<int32_t>(limits.selection_capacity);
    worker.select = carve_select(arena, shape_, limits.max_pages);
    worker.attend = carve_attend(arena, shape_);
    worker.chunk = carve_partial(arena, shape_);
    worker.sum = carve_partial(arena, shape_);
  }
  if (threads == 1) return;  // nobody helps
  shared_ = std::vector<Shared>(threads);
  slots_ = std::vector<ChunkSlot>(threads * kSlotsPerThread);
  for (ChunkSlot& slot : slots_) slot.result = carve_partial(arena, shape_);
}

int64_t decode_workspace_bytes(const BackendLimits& limits) {
  Decoder measured;
  Arena arena(nullptr);
  measured.carve(arena, limits);
  return arena.used();
}

// Appends the row and selects for it, or takes the caller's list; what is then attended to.
AttendArgs Decoder::prepare(DecodeTask& task, Mode mode, DecodeRow& row, int32_t head,
                            Worker& worker, SharedSelect* shared) const {
  AttendArgs args;
  args.shape = &shape_;
  args.store = &row.store;
  args.options = task.attention;
  args.head = head;
  args.q = worker.q;
  args.count = row.live;
  const bool selects = mode != Mode::kAttend && !row.dense && row.top_k < row.live;
  if (mode != Mode::kAttend && row.append) {
    append_row(shape_, row.store, head, task.k, task.v, row.row, row.live,
               row.dense ? 0 : row.page_size, target_);
  }
  if (mode != Mode::kSelect || selects) {
    load_query(shape_, task.q, row.row, head, worker.q, target_);
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
    select.q = worker.q;
    int32_t* list = task.indices != nullptr ? list_line(task, shape_, row, head) : worker.list;
    bool nonfinite = false;
    args.count = shared != nullptr
                     ? shared->select(select, worker.select, *pool_, list, &nonfinite, target_)
                     : select_rows(select, worker.select, list, &nonfinite, target_);
    if (nonfinite) flag_nonfinite(row);
    args.list = list;
  }
  if (task.indices != nullptr) finish_list(task, shape_, row, head, !selects, args.count);
  args.fetched = args.count;
  return args;
}

// One KV head of one run of rows, from append to output.
void Decoder::work(DecodeTask& task, Mode mode, const DecodeRun& run, int32_t head, Worker& worker,
                   Shared* shared) noexcept {
  for (int32_t r = run.first; r < run.first + run.count; ++r) {
    DecodeRow& row = task.rows[r];
    const AttendArgs args =
        prepare(task, mode, row, head, worker, shared != nullptr ? &shared->select : nullptr);
    if (mode == Mode::kSelect) continue;
    const bool nonfinite =
        shared != nullptr
            ? shared->attend.attend(args, worker.attend, *pool_, worker.chunk, worker.sum, target_)
            : attend_rows(args, worker.attend, worker.chunk, worker.sum, target_);
    if (nonfinite) flag_nonfinite(row);
    store_result(shape_, worker.sum, task.out, row.row, head, task.lse, target_);
  }
}

// For a thread that found no item left: takes part in those that others work on.
void Decoder::help(int thread) noexcept {
  const auto self = static_cast<size_t>(thread);
  bool helped = true;
  while (helped) {
    helped = false;
    for (size_t i = 1; i <= shared_.size(); ++i) {
      Shared& other = shared_[(self + i) % shared_.size()];
      helped = other.select.help(pool_->threads(), target_) || helped;
      helped = other.attend.help(workers_[self].attend, pool_->threads(), target_) || helped;
    }
  }
}

// An item is one KV head of one run, or of one row where rows do not depend on each other.
void Decoder::run(DecodeTask& task, Mode mode) noexcept {
  const int64_t heads = shape_.kv_heads;
  const bool by_row = mode == Mode::kAttend;
  const int64_t items = (by_row ? task.row_count : task.run_count) * heads;
  if (items == 0) return;
  const int64_t threads = pool_->threads();
  const bool share = threads > 1;
  if (share) {
    const int64_t owners = std::min(items, threads);
    const int64_t slots = threads * kSlotsPerThread / owners;
    for (int64_t i = 0; i < owners; ++i) {
      shared_[static_cast<size_t>(i)].attend.use(&slots_[static_cast<size_t>(i * slots)], slots);
    }
  }
  // A few long lists are worth more threads than items. Where rows are selected, scoring the pages
  // takes about as long as attending to the rows.
  int64_t rows = 0;
  for (int32_t r = 0; items < threads && r < task.row_count; ++r) {
    const DecodeRow& row = task.rows[r];
    rows += by_row || row.dense ? row.live : std::min(row.live, 2 * row.top_k);
  }
  const int64_t useful = std::max(items, rows * heads / kRowsWorthAThread);
  pool_->run_shared(items, useful, [&](int64_t i, int thread) {
    if (i == Pool::kHelp) {
      help(thread);
      return;
    }
    const auto place = static_cast<int32_t>(i / heads);
    const int64_t owner = items < threads ? i : thread;
    work(task, mode, by_row ? DecodeRun{place, 1} : task.runs[place],
         static_cast<int32_t>(i % heads), workers_[static_cast<size_t>(thread)],
         share ? &shared_[static_cast<size_t>(owner)] : nullptr);
  });
}

void Decoder::select(DecodeTask& task) noexcept { run(task, Mode::kSelect); }

void Decoder::attend(DecodeTask& task) noexcept { run(task, Mode::kAttend); }

void Decoder::decode(DecodeTask& task) noexcept { run(task, Mode::kDecode); }

}  // namespace rkv::cpu
