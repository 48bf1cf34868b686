// Random queries, keys and values, and their conversion.
#pragma once

#include <cstdint>
#include <vector>

#include "geometry.hpp"
#include "memory.hpp"

namespace rkv_bench {

// Fills `count` elements with values of both signs in [0.5, 2): logits then spread as those of a real
// model do.
void fill_random(void* data, int64_t count, int32_t dtype, uint64_t seed);

float to_float(const void* data, int64_t index, int32_t dtype);

// K and V [tokens, kv_heads, D]; window queries [kWindow, q_heads, D]; step queries
// [kQueries, q_heads, D] and the K and V of the steps' token [kQueries, kv_heads, D].
struct Prompt {
  Prompt(int64_t tokens, int32_t dtype);

  int64_t tokens;
  int32_t dtype;
  HugeBuffer k, v, window_q, step_q, step_k, step_v;
};

// [rows, heads, D], dense, or with its own strides in elements.
rkv_tensor tensor_of(void* data, int32_t dtype, int64_t rows, int64_t heads);
rkv_tensor tensor_of(void* data, int32_t dtype, int64_t rows, int64_t heads, int64_t row_stride,
                     int64_t head_stride);

}  // namespace rkv_bench
