// Pooling of the scores along the tokens. Included once per SIMD target.
#if defined(RKV_CORE_CPU_STAGE1_POOL_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_STAGE1_POOL_INL_HPP_
#undef RKV_CORE_CPU_STAGE1_POOL_INL_HPP_
#else
#define RKV_CORE_CPU_STAGE1_POOL_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include "core/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// scratch[i] = max of scratch[i, i + kernel) for i < count. Doubling: windows of 1, 2, 4, ... while
// they fit, then two that overlap. Scratch may be read and written up to a vector past its end.
HWY_INLINE void slide_max(float* scratch, int64_t count, int64_t kernel) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto merge = [&](int64_t end, int64_t offset) {
    for (int64_t i = 0; i < end; i += lanes) {
      const VF a = hn::LoadU(d, scratch + i);
      hn::StoreU(hn::Max(a, hn::LoadU(d, scratch + i + offset)), d, scratch + i);
    }
  };
  int64_t window = 1;
  for (; 2 * window <= kernel; window *= 2) merge(count + kernel - 2 * window, window);
  if (window < kernel) merge(count, kernel - window);
}

// scratch[i] = mean of scratch[i, i + kernel) for i < count, summed in ascending order in groups.
HWY_INLINE void slide_mean(float* scratch, int64_t count, int64_t kernel, float divisor) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kGroup = 1024;
  for (int64_t i = 0; i < count; i += lanes) {
    VF sum = hn::Zero(d);
    for (int64_t first = 0; first < kernel; first += kGroup) {
      VF part = hn::Zero(d);
      const int64_t end = std::min(kernel, first + kGroup);
      for (int64_t t = first; t < end; ++t) part = hn::Add(part, hn::LoadU(d, scratch + i + t));
      sum = hn::Add(sum, part);
    }
    hn::StoreU(hn::Div(sum, hn::Set(d, divisor)), d, scratch + i);
  }
}

// Scores are >= 0, a set sign bit marks a token with a logit that was not finite: it pools to -inf,
// its magnitude counts for its neighbours. Outside [0, n) lies 0: nothing to a mean, and no more
// than any score to a maximum.
void pool_scores(const float* scores, int64_t n, int64_t first, int64_t count, int64_t reach,
                 bool average, float divisor, float* scratch, uint32_t* keys) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t total = count + 2 * reach;
  const int64_t begin = std::max<int64_t>(0, first - reach);
  const int64_t end = std::min(n, first + count + reach);
  float* inside = scratch + (begin - (first - reach));
  std::fill(scratch, inside, 0.0F);
  for (int64_t i = 0; i < end - begin; ++i) inside[i] = __builtin_fabsf(scores[begin + i]);
  std::fill(inside + (end - begin), scratch + total + 2 * lanes, 0.0F);
  const int64_t kernel = 2 * reach + 1;
  if (average) {
    slide_mean(scratch, count, kernel, divisor);
  } else {
    slide_max(scratch, count, kernel);
  }
  // Ordered keys (ordered_key of topk.hpp) of values >= 0, and of -inf.
  const auto sign = hn::Set(du, 0x80000000U);
  const auto none = hn::Set(du, 0x007FFFFFU);
  for (int64_t i = 0; i < count; i += lanes) {
    const size_t some = static_cast<size_t>(std::min(lanes, count - i));
    const auto raw = hn::BitCast(du, hn::LoadN(d, scores + first + i, some));
    const auto pooled = hn::BitCast(du, hn::LoadU(d, scratch + i));
    const auto marked = hn::Ne(hn::And(raw, sign), hn::Zero(du));
    hn::StoreN(hn::IfThenElse(marked, none, hn::Or(pooled, sign)), du, keys + i, some);
  }
}

}  // namespace
}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
