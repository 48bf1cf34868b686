#include "core/cpu/workspace.hpp"

#include <limits>

namespace rkv::cpu {

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

std::byte* Arena::take_bytes(int64_t count, int64_t size) {
  constexpr int64_t kSpare = 64;
  const int64_t start = used_;
  int64_t bytes = 0;
  if (overflow_ || __builtin_mul_overflow(count, size, &bytes) ||
      __builtin_add_overflow(bytes, kSpare + 63, &bytes) ||
      __builtin_add_overflow(used_, bytes / 64 * 64, &used_)) {
    overflow_ = true;
    return nullptr;
  }
  return base_ == nullptr ? nullptr : base_ + start;
}

}  // namespace rkv::cpu
