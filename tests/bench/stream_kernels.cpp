#include "stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/stream_kernels.cpp"
#include "core/cpu/target.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rkv_bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint64_t>;

using Vec = hn::Vec<Words>;

// Four sums, so that no load waits for the one before.
struct Sums {
  Vec a, b, c, e;
};

HWY_INLINE Sums no_sums() {
  const Vec zero = hn::Zero(Words());
  return {zero, zero, zero, zero};
}

HWY_INLINE uint64_t total(const Sums& s) {
  return hn::ReduceSum(Words(), hn::Xor(hn::Xor(s.a, s.b), hn::Xor(s.c, s.e)));
}

HWY_INLINE void add_span(const uint64_t* from, int64_t words, Sums& sums) {
  const Words d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= words; i += 4 * lanes) {
    sums.a = hn::Xor(sums.a, hn::LoadU(d, from + i));
    sums.b = hn::Xor(sums.b, hn::LoadU(d, from + i + lanes));
    sums.c = hn::Xor(sums.c, hn::LoadU(d, from + i + 2 * lanes));
    sums.e = hn::Xor(sums.e, hn::LoadU(d, from + i + 3 * lanes));
  }
  for (; i < words; i += lanes) sums.a = hn::Xor(sums.a, hn::LoadU(d, from + i));
}

uint64_t span_for_target(const std::byte* data, int64_t bytes) {
  Sums sums = no_sums();
  add_span(reinterpret_cast<const uint64_t*>(data), bytes / 8, sums);
  return total(sums);
}

uint64_t rows_for_target(const std::byte* base, const int32_t* index, int64_t count, int64_t stride,
                         int64_t span) {
  Sums sums = no_sums();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = index == nullptr ? i : index[i];
    add_span(reinterpret_cast<const uint64_t*>(base + row * stride), span / 8, sums);
  }
  return total(sums);
}

}  // namespace rkv_bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv_bench {

HWY_EXPORT(span_for_target);
HWY_EXPORT(rows_for_target);

uint64_t read_span(const std::byte* data, int64_t bytes) {
  return HWY_DYNAMIC_DISPATCH(span_for_target)(data, bytes);
}

uint64_t read_rows(const std::byte* base, const int32_t* index, int64_t count, int64_t stride,
                   int64_t span) {
  return HWY_DYNAMIC_DISPATCH(rows_for_target)(base, index, count, stride, span);
}

}  // namespace rkv_bench
#endif
