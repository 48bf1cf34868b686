// find_cut for one SIMD target; see topk.hpp. Included once per target.
#if defined(RKV_CORE_CPU_TOPK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_TOPK_INL_HPP_
#undef RKV_CORE_CPU_TOPK_INL_HPP_
#else
#define RKV_CORE_CPU_TOPK_INL_HPP_
#endif

#include "core/cpu/simd-inl.hpp"
#include "core/cpu/topk.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

using U32 = hn::ScalableTag<uint32_t>;
using VU = hn::Vec<U32>;

inline constexpr int64_t kRankedKeys = 32;      // so few candidates are ranked one by one
inline constexpr int64_t kBisectedKeys = 8192;  // more keys than this go through histograms first

HWY_INLINE VU count_up(U32 d, VU counts, hn::Mask<U32> where) {
#if HWY_TARGET <= HWY_AVX3
  return hn::MaskedAddOr(counts, where, counts, hn::Set(d, 1U));
#else
  return hn::Sub(counts, hn::VecFromMask(d, where));
#endif
}

HWY_INLINE int64_t sum_counts(U32 d, VU counts) {
  return static_cast<int64_t>(hn::ReduceSum(d, counts));
}

// Writes the keys in [low, high] to `out`, which has room for one vector more; returns how many.
HWY_INLINE int64_t compact_keys(const uint32_t* keys, int64_t n, uint32_t low, uint32_t high,
                                uint32_t* out) {
  const U32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VU vlow = hn::Set(d, low);
  const VU span = hn::Set(d, high - low);
  int64_t count = 0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VU v = hn::LoadU(d, keys + i);
    const auto inside = hn::Le(hn::Sub(v, vlow), span);
    count += static_cast<int64_t>(hn::CompressStore(v, inside, d, out + count));
  }
  for (; i < n; ++i) {
    if (keys[i] - low <= high - low) out[count++] = keys[i];
  }
  return count;
}

// The cut among at most kRankedKeys keys; the buffer is readable up to a whole number of vectors.
HWY_INLINE Cut rank_keys(const uint32_t* keys, int64_t n, int64_t k) {
  const U32 d;
  const size_t lanes = hn::Lanes(d);
  for (int64_t i = 0; i < n; ++i) {
    const VU x = hn::Set(d, keys[i]);
    int64_t above = 0;
    int64_t equal = 0;
    for (size_t j = 0; j < static_cast<size_t>(n); j += lanes) {
      const VU v = hn::LoadU(d, keys + j);
      const auto real = hn::FirstN(d, static_cast<size_t>(n) - j);
      above += static_cast<int64_t>(hn::CountTrue(d, hn::And(real, hn::Gt(v, x))));
      equal += static_cast<int64_t>(hn::CountTrue(d, hn::And(real, hn::Eq(v, x))));
    }
    if (above < k && k <= above + equal) return {keys[i], above};
  }
  return {};  // not reached for 1 <= k <= n
}

// Narrows the range [low, high] that holds the cut to a quarter per pass over the keys.
HWY_INLINE Cut bisect_keys(const uint32_t* keys, int64_t n, int64_t k) {
  const U32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  uint32_t low = keys[0];
  uint32_t high = keys[0];
  int64_t i = 0;
  if (n >= lanes) {
    VU vlow = hn::LoadU(d, keys);
    VU vhigh = vlow;
    for (i = lanes; i + lanes <= n; i += lanes) {
      const VU v = hn::LoadU(d, keys + i);
      vlow = hn::Min(vlow, v);
      vhigh = hn::Max(vhigh, v);
    }
    low = hn::ReduceMin(d, vlow);
    high = hn::ReduceMax(d, vhigh);
  }
  for (; i < n; ++i) {
    low = HWY_MIN(low, keys[i]);
    high = HWY_MAX(high, keys[i]);
  }

  int64_t from_low = n;  // keys >= low: at least k
  int64_t above = 0;     // keys > high: fewer than k
  while (low < high) {
    if (from_low - above <= kRankedKeys) {
      uint32_t few[kRankedKeys + HWY_MAX_BYTES / 4];
      const int64_t count = compact_keys(keys, n, low, high, few);
      const Cut cut = rank_keys(few, count, k - above);
      return {cut.key, cut.above + above};
    }
    const uint64_t span = high - low;
    const uint32_t t1 = low + static_cast<uint32_t>((span + 3) / 4);
    const uint32_t t2 = low + static_cast<uint32_t>((2 * span + 3) / 4);
    const uint32_t t3 = low + static_cast<uint32_t>((3 * span + 3) / 4);
    const VU v1 = hn::Set(d, t1);
    const VU v2 = hn::Set(d, t2);
    const VU v3 = hn::Set(d, t3);
    VU n1 = hn::Zero(d);
    VU n2 = hn::Zero(d);
    VU n3 = hn::Zero(d);
    for (i = 0; i + lanes <= n; i += lanes) {
      const VU v = hn::LoadU(d, keys + i);
      n1 = count_up(d, n1, hn::Ge(v, v1));
      n2 = count_up(d, n2, hn::Ge(v, v2));
      n3 = count_up(d, n3, hn::Ge(v, v3));
    }
    int64_t c1 = sum_counts(d, n1);
    int64_t c2 = sum_counts(d, n2);
    int64_t c3 = sum_counts(d, n3);
    for (; i < n; ++i) {
      c1 += keys[i] >= t1 ? 1 : 0;
      c2 += keys[i] >= t2 ? 1 : 0;
      c3 += keys[i] >= t3 ? 1 : 0;
    }
    if (c3 >= k) {
      low = t3;
      from_low = c3;
    } else if (c2 >= k) {
      low = t2;
      from_low = c2;
      high = t3 - 1;
      above = c3;
    } else if (c1 >= k) {
      low = t1;
      from_low = c1;
      high = t2 - 1;
      above = c2;
    } else {
      high = t1 - 1;
      above = c1;
    }
  }
  return {low, above};
}

// Fixes the cut's bits from the top, 11 + 11 + 10 of them, by a histogram each, until few keys
// share the bits fixed so far.
HWY_INLINE Cut narrow_keys(const uint32_t* keys, int64_t n, int64_t k) {
  constexpr int64_t kFew = 2048;
  constexpr int kBins = 2048;
  uint32_t prefix = 0;
  uint32_t fixed = 0;  // mask of the bits fixed so far
  int64_t above = 0;
  for (const int shift : {21, 10, 0}) {
    const uint32_t mask = shift == 0 ? 1023U : 2047U;
    uint32_t histogram[2][kBins] = {};  // two, so that equal neighbours do not wait for each other
    for (int64_t i = 0; i < n; ++i) {
      if ((keys[i] & fixed) == prefix) ++histogram[i & 1][keys[i] >> shift & mask];
    }
    int bin = static_cast<int>(mask);
    int64_t inside = 0;
    for (;; --bin) {
      inside = int64_t{histogram[0][bin]} + histogram[1][bin];
      if (above + inside >= k) break;
      above += inside;
    }
    prefix |= static_cast<uint32_t>(bin) << shift;
    fixed |= mask << shift;
    if (inside <= kFew && shift != 0) {
      uint32_t few[kFew + HWY_MAX_BYTES / 4];
      const int64_t count = compact_keys(keys, n, prefix, prefix | ~fixed, few);
      const Cut cut = bisect_keys(few, count, k - above);
      return {cut.key, cut.above + above};
    }
  }
  return {prefix, above};
}

HWY_INLINE Cut find_cut_here(const uint32_t* keys, int64_t n, int64_t k) {
  return n <= kBisectedKeys ? bisect_keys(keys, n, k) : narrow_keys(keys, n, k);
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
