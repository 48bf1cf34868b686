// What the core asks of a backend: plain task descriptors (pointers, strides, sizes, plan numbers).
// A backend knows nothing of handles, errors or configuration; the core has checked everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rkv {

enum class DType : int32_t { kF32 = 1, kF16 = 2, kBF16 = 3 };

constexpr int64_t dtype_bytes(DType type) { return type == DType::kF32 ? 4 : 2; }

// A strided view of [row, head, channel]; strides in elements, of any sign.
struct View {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int64_t row = 0, head = 0, channel = 0;

  std::byte* at(int64_t r, int64_t h) const {
    return data + (r * row + h * head) * dtype_bytes(dtype);
  }
};

// Complete pages lie in blocks of kPageBlock pages, channel-major inside a block; the newest ones,
// fewer than kTailPages, lie row-major until they are flushed together (see LayerStore).
inline constexpr int64_t kPageBlock = 64;
inline constexpr int64_t kTailPages = 16;

// Pages that have been flushed to the blocks when `live` rows are stored. A function of the row
// count alone, so that every history that leads to the same rows leads to the same store.
constexpr int64_t flushed_pages(int64_t live, int64_t page_size) {
  return live / page_size / kTailPages * kTailPages;
}

struct Shape {
  int32_t q_heads = 0, kv_heads = 0, group = 0;  // group = q_heads / kv_heads
  int32_t head_dim = 0, head_dim_v = 0;
  DType kv = DType::kF32;     // type of K, V and the summaries
  DType query = DType::kF32;  // type of Q and the output
};

// One layer of one sequence, COMPACT storage, head-major. Type of K, V and summaries: Shape::kv.
struct LayerStore {
  std::byte* kv = nullptr;       // [kv_heads][rows][head_dim + head_dim_v], K and V side by side
  std::byte* pages = nullptr;    // [kv_heads][blocks][2][head_dim][kPageBlock], 0 = min, 1 = max
  std::byte* tail = nullptr;     // [kv_heads][kTailPages][2][head_dim]
  int32_t* positions = nullptr;  // [kv_heads][kept], original positions of the kept rows
  int64_t rows = 0, blocks = 0, kept = 0;  // capacities
};

struct AttentionOptions {
  float scale = 1.0F;
  float softcap = 0.0F;  // 0 = off
};

struct Stage1Options {
  int32_t kernel = 63;
  bool average_pooling = false;
  bool prefix_only = false;   // softmax over the prefix alone
  bool key_as_query = false;  // the last `window` keys stand in for queries, one per KV head
};

// Stage 1 of one layer of one sequence, then the gather of the kept rows and their summaries.
struct Stage1Task {
  int64_t prompt = 0;  // S
  int64_t window = 0;  // w query rows, positions S - w .. S - 1; 0 only where all is kept
  int64_t keep = 0;    // rows to keep: min(prompt_budget, S); == S keeps everything
  int64_t sinks = 0;
  // Window row i is stored_q row i for i < stored_rows, else q row i - stored_rows.
  View stored_q, q;
  int64_t stored_rows = 0;
  View k, v;  // [S, kv_heads, D], [S, kv_heads, Dv]
  Stage1Options options;
  AttentionOptions attention;
  int64_t page_size = 0;  // 0: no summaries (a dense plan)
  LayerStore store;
  bool nonfinite = false;  // out: a logit was not finite
};

struct SelectOptions {
  bool tokens = false;        // unit: TOKENS instead of PAGES
  bool page_softmax = false;  // selection_domain PAGES
  bool sqrt_d_temperature = false;
  int64_t sinks = 0, recent = 0;
};

// One row of a decode call that is not padding.
struct DecodeRow {
  int32_t row = 0;      // index in the call's tensors
  bool append = false;  // write this row's K and V as live row `live - 1` first
  bool dense = false;   // nothing is summarised, scored or selected
  int64_t live = 0;     // rows that it sees, its own included
  int64_t page_size = 0, channels = 0, top_k = 0;
  LayerStore store;
  uint32_t nonfinite = 0;  // out, set with std::atomic_ref: a logit was not finite
};

// Rows [first, first + count) of the task belong to one sequence, in order.
struct DecodeRun {
  int32_t first = 0, count = 0;
};

struct DecodeTask {
  DecodeRow* rows = nullptr;
  const DecodeRun* runs = nullptr;
  int32_t run_count = 0, row_count = 0;
  View q;     // [rows, q_heads, D]
  View k, v;  // [rows, kv_heads, D], [rows, kv_heads, Dv]; data null where nothing is appended
  View out;   // [rows, q_heads, Dv]; data null: select alone
  float* lse = nullptr;  // [rows, q_heads] or null
  // Live rows, ascending: written by select and decode (padding with -1 up to capacity), read by attend.
  // Null: select's result stays inside (decode), or everything is attended to (attend).
  int32_t* indices = nullptr;  // [rows, kv_heads, capacity]
  int32_t* counts = nullptr;   // [rows, kv_heads]
  int64_t capacity = 0;
  SelectOptions select;
  AttentionOptions attention;
};

// What sizes a backend's workspace. All are maxima over everything the cache may be asked.
struct BackendLimits {
  Shape shape;
  int32_t threads = 1;
  int32_t max_rows = 1;
  int64_t window = 0;
  int64_t max_prompt = 0;
  int64_t max_live = 0;   // rows of the largest slot
  int64_t max_pages = 0;  // pages of the largest slot, the partial one included; 0 = always dense
  int64_t selection_capacity = 0;
  Stage1Options stage1;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // No call allocates, throws or fails.
  virtual void stage1(Stage1Task& task) noexcept = 0;
  // select, attend or decode is about to come: what takes a while to get ready may begin to.
  virtual void expect() noexcept = 0;
  virtual void select(DecodeTask& task) noexcept = 0;  // append + stage 2
  virtual void attend(DecodeTask& task) noexcept = 0;  // exact attention; never appends
  virtual void decode(DecodeTask& task) noexcept = 0;  // append + stage 2 + attention
  // Rebuilds the tail after rows were dropped: pages of rows [0, live) that were flushed before but
  // are not at this length. `before` = rows stored until now.
  virtual void rewind(const LayerStore& store, int64_t page_size, int64_t before,
                      int64_t live) noexcept = 0;
};

namespace cpu {
// Bytes of workspace for these limits; -1 where it does not fit in int64.
int64_t workspace_bytes(const BackendLimits& limits);
// Null text where RKV_SIMD (the forced SIMD target) is unset or can be served, else what is wrong.
const char* simd_target_error();
// Throws std::bad_alloc or std::system_error (no more threads). workspace: 64-byte aligned, caller's.
std::unique_ptr<Backend> create(const BackendLimits& limits, std::byte* workspace);
}  // namespace cpu

}  // namespace rkv
