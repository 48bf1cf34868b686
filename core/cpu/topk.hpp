// The cut of a top-k selection, without a sort.
#pragma once

#include <bit>
#include <cstdint>

namespace rkv::cpu {

// A monotone map of floats to unsigned integers: a < b gives a smaller key, -0 and +0 the same.
// Keys of finite and infinite values lie in [0x007FFFFF, 0xFF800000]; callers keep NaN out.
constexpr uint32_t ordered_key(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (bits == 0x80000000U) return 0x80000000U;
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// The k-th largest key, and how many keys are strictly larger. A selection takes all of those and
// the first k - above of the keys that equal the cut.
struct Cut {
  uint32_t key = 0;
  int64_t above = 0;
};

// 1 <= k <= n. Exact for any keys. On the stack alone; at most three passes over a large array plus
// one per two bits where n is small.
Cut find_cut(const uint32_t* keys, int64_t n, int64_t k);

}  // namespace rkv::cpu
