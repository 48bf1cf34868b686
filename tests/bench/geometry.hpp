// What is measured: one attention layer of Llama-3.1-8B, batch 1.
#pragma once

#include <cstdint>
#include <string>

#include "rkv/rkv.h"

namespace rkv_bench {

inline constexpr int32_t kQueryHeads = 32, kKvHeads = 8, kGroup = kQueryHeads / kKvHeads;
inline constexpr int32_t kHeadDim = 128, kWindow = 32;
inline constexpr int64_t kMaxNew = 256;
inline constexpr int64_t kBudgets[] = {256, 512, 1024, 2048};
inline constexpr int kBudgetCount = 4;
inline constexpr int kQueries = 4;  // different queries, taken in turn

constexpr int64_t element_bytes(int32_t dtype) { return dtype == RKV_DTYPE_F32 ? 4 : 2; }

inline const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case RKV_DTYPE_F32: return "f32";
    case RKV_DTYPE_F16: return "f16";
    default: return "bf16";
  }
}

// 32768 -> "32K". Lengths count the whole sequence, prompt and generated tokens.
inline std::string length_name(int64_t length) { return std::to_string(length / 1024) + "K"; }

// Bytes of K and V of `rows` tokens.
constexpr int64_t kv_bytes(int64_t rows, int32_t dtype) {
  return rows * kKvHeads * 2 * kHeadDim * element_bytes(dtype);
}

}  // namespace rkv_bench
