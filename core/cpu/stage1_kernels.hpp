// Kernels of stage 1, compiled once per SIMD target. Plain pointers in, one table of functions out.
//
// Queries are the SIMD lanes: the packed window rows of a KV head form panels of `panel_rows` rows,
// [panel][dim][panel_rows], and keys are converted in blocks to fp32 rows. So a softmax maximum or
// sum over keys is a vertical one, and K is never transposed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace rkv::cpu {

// Keys of a block: the unit of work, and of the fixed order of every sum over keys. Its fp32 copy,
// the packed queries and a panel of logits share a 1 MiB L2.
inline constexpr int64_t kBlockKeys = 192;
// Floats between the rows of the fp32 copy: a constant, so that the rows of a register tile need no
// pointer each, and not a multiple of 4 KiB in any number of rows below 16.
inline constexpr int64_t kKeyStride = 256 + 16;
// panel_rows on the widest target; buffers are sized for it.
inline constexpr int64_t kMaxPanelRows = 32;

// Rows of K to bring into the cache meanwhile.
struct RowsAhead {
  const std::byte* first = nullptr;
  int64_t stride = 0, rows = 0;  // bytes between rows
};

// One panel of window rows against one block of keys.
struct PanelTask {
  const float* queries = nullptr;  // [dim][panel_rows], scaled (see pack_queries)
  const float* keys = nullptr;     // [kBlockKeys][kKeyStride]
  int64_t dim = 0, count = 0;      // count: keys of this block
  int64_t scored = 0;              // of them in the prefix
  float softcap = 0;               // in units of log2, 0 = off
  const int32_t* last = nullptr;   // [panel_rows]: last key of the block that a row sees, -1: none
  bool masked = false;             // some row does not see the whole block
  float* logits = nullptr;         // scratch, [kBlockKeys][panel_rows]
  float* weights = nullptr;        // out: 2^(logit - top), [count][panel_rows]
  float* top = nullptr;            // out: [panel_rows], maximum of the finite logits, or -inf
  float* sum = nullptr;            // out: [panel_rows], sum of the weights
  float* marks = nullptr;          // [scored]: set to -0 where a logit was not finite
  // What is needed next, to bring into the cache meanwhile: another panel's weights or null, rows
  // of K.
  const float* weights_ahead = nullptr;
  RowsAhead keys_ahead;
  int64_t element = 0;  // bytes of an element of K
};

struct Stage1Kernels {
  int64_t panel_rows;

  // Rows [first, first + count) of one head of K as fp32, zeros up to a full register tile.
  void (*load_keys)(const View& k, int64_t first, int64_t count, int64_t head, int64_t dim,
                    float* keys);
  // One row times `scale` into lane `row` of its panel. `queries` is the first panel.
  void (*pack_query)(const std::byte* data, DType dtype, int64_t channel_stride, int64_t dim,
                     float scale, int64_t row, float* queries);
  // Logits in units of log2 and their weights; true where a logit was not finite.
  bool (*weigh)(const PanelTask& task);
  // Statistics [blocks][2][rows] of a panel (top, sum) -> the softmax factor of each block in place
  // of top; 0 for rows from `rows` on and for rows without weight.
  void (*factors)(float* stats, int64_t blocks, int64_t row_stride, int64_t rows);
  // partial[key][lanes] (+)= weights[key][row] * factor[row], over the rows of a panel.
  void (*accumulate)(const float* weights, const float* factor, int64_t count, bool first,
                     float* partial);
  // scores[key] = sum of the lanes of partial[key], with the sign of scores[key].
  void (*finish)(const float* partial, int64_t count, float* scores);
  // Pooled scores [first, first + count) of scores[0, n) as ordered keys; scratch: see
  // pool_scratch_floats. reach: half the kernel, at most n - 1; divisor: of a mean.
  void (*pool)(const float* scores, int64_t n, int64_t first, int64_t count, int64_t reach,
               bool average, float divisor, float* scratch, uint32_t* keys);
};

// Highway's dispatch index -> table.
Stage1Kernels stage1_kernels(size_t target);

// Scores that pool() is given at a time, and its scratch.
int64_t pool_chunk(int64_t reach);
int64_t pool_scratch_floats(int64_t reach);

}  // namespace rkv::cpu
