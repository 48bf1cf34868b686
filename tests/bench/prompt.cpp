#include "prompt.hpp"

#include <bit>
#include <cstring>

namespace rkv_bench {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  uint64_t next() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DU;
  }

 private:
  uint64_t state_;
};

// Sign and mantissa at random, the exponent that of 0.5 or of 1.
constexpr uint64_t kLanes16 = 0x0001000100010001U;
constexpr uint64_t random16(uint64_t bits, uint64_t keep, uint64_t base) {
  return (bits & keep * kLanes16) + base * kLanes16;
}

}  // namespace

void fill_random(void* data, int64_t count, int32_t dtype, uint64_t seed) {
  Random random(seed);
  auto* out = static_cast<std::byte*>(data);
  const int64_t bytes = count * element_bytes(dtype);
  for (int64_t at = 0; at < bytes; at += 8) {
    uint64_t bits = random.next();
    switch (dtype) {
      case RKV_DTYPE_F16: bits = random16(bits, 0x87FF, 0x3800); break;
      case RKV_DTYPE_BF16: bits = random16(bits, 0x80FF, 0x3F00); break;
      default: bits = (bits & 0x80FFFFFF80FFFFFFU) + 0x3F0000003F000000U; break;
    }
    std::memcpy(out + at, &bits, static_cast<size_t>(bytes - at < 8 ? bytes - at : 8));
  }
}

float to_float(const void* data, int64_t index, int32_t dtype) {
  if (dtype == RKV_DTYPE_F32) return static_cast<const float*>(data)[index];
  const uint32_t bits = static_cast<const uint16_t*>(data)[index];
  if (dtype == RKV_DTYPE_BF16) return std::bit_cast<float>(bits << 16);
  // A half's bits as a float's lack 112 in the exponent. Finite values alone come here.
  const float magnitude = std::bit_cast<float>((bits & 0x7FFFU) << 13) * 0x1p112F;
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

Prompt::Prompt(int64_t token_count, int32_t type)
    : tokens(token_count),
      dtype(type),
      k(kv_bytes(token_count, type) / 2),
      v(kv_bytes(token_count, type) / 2),
      window_q(int64_t{kWindow} * kQueryHeads * kHeadDim * element_bytes(type)),
      step_q(int64_t{kQueries} * kQueryHeads * kHeadDim * element_bytes(type)),
      step_k(kv_bytes(kQueries, type) / 2),
      step_v(kv_bytes(kQueries, type) / 2) {
  uint64_t seed = 1;
  for (const HugeBuffer* buffer : {&k, &v, &window_q, &step_q, &step_k, &step_v}) {
    fill_random(buffer->data(), buffer->bytes() / element_bytes(type), type, seed++);
  }
}

rkv_tensor tensor_of(void* data, int32_t dtype, int64_t rows, int64_t heads, int64_t row_stride,
                     int64_t head_stride) {
  rkv_tensor tensor;
  std::memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.dtype = dtype;
  tensor.data = data;
  tensor.ndim = 3;
  tensor.shape[0] = rows;
  tensor.shape[1] = heads;
  tensor.shape[2] = kHeadDim;
  tensor.strides[0] = row_stride;
  tensor.strides[1] = head_stride;
  tensor.strides[2] = 1;
  return tensor;
}

rkv_tensor tensor_of(void* data, int32_t dtype, int64_t rows, int64_t heads) {
  return tensor_of(data, dtype, rows, heads, heads * kHeadDim, kHeadDim);
}

}  // namespace rkv_bench
