// The summary of one page for one SIMD target; see summaries.hpp. Included once per target.
#if defined(RKV_CORE_CPU_SUMMARIES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_SUMMARIES_INL_HPP_
#undef RKV_CORE_CPU_SUMMARIES_INL_HPP_
#else
#define RKV_CORE_CPU_SUMMARIES_INL_HPP_
#endif

#include "core/cpu/simd-inl.hpp"
#include "core/cpu/summaries.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

// Minima and maxima of `rows` >= 1 rows of K, `stride` elements apart, to out [2][head_dim].
template <class T>
HWY_INLINE void summarise_rows(const T* k, int64_t stride, int64_t rows, int64_t head_dim, T* out) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < head_dim; c += lanes) {
    const size_t n = static_cast<size_t>(HWY_MIN(lanes, head_dim - c));
    VF low = load_n_f32(d, k + c, n);
    VF high = low;
    for (int64_t r = 1; r < rows; ++r) {
      const VF x = load_n_f32(d, k + r * stride + c, n);
      const auto nan = hn::IsNaN(x);
      low = hn::IfThenElse(hn::Or(hn::Lt(x, low), nan), x, low);
      high = hn::IfThenElse(hn::Or(hn::Gt(x, high), nan), x, high);
    }
    store_n_f32(d, low, out + c, n);
    store_n_f32(d, high, out + head_dim + c, n);
  }
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
