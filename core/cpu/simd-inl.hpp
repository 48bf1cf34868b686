// Loads, stores and elementary functions shared by the kernels. Included once per SIMD target:
// no include guard in the ordinary sense, see Highway's per-target pattern.
#if defined(RKV_CORE_CPU_SIMD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_SIMD_INL_HPP_
#undef RKV_CORE_CPU_SIMD_INL_HPP_
#else
#define RKV_CORE_CPU_SIMD_INL_HPP_
#endif

#include <cstdint>

#include "core/cpu/target.hpp"  // before Highway

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

// 16 bits to float. Infinities and NaN survive on every target (Highway's emulation of F16C, which
// is what SSE2 has, makes large numbers of them).
template <class T>
HWY_INLINE VF promote_bits(F32 d, hn::Vec<hn::Rebind<uint16_t, F32>> bits) {
  const hn::Rebind<T, F32> d16;
#if HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  if constexpr (hwy::IsSame<T, hwy::float16_t>()) {
    const hn::RebindToUnsigned<F32> du;
    const auto wide = hn::PromoteTo(du, bits);
    const auto shifted = hn::ShiftLeft<13>(hn::And(wide, hn::Set(du, 0x7FFFU)));
    // The exponent's bias goes from 15 to 127; exact, subnormals included.
    const VF scaled = hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112F));
    const auto special = hn::Ge(scaled, hn::Set(d, 65536.0F));
    const auto fixed = hn::IfThenElse(hn::RebindMask(du, special),
                                      hn::Or(shifted, hn::Set(du, 0x7F800000U)),
                                      hn::BitCast(du, scaled));
    return hn::BitCast(d, hn::Or(fixed, hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000U)))));
  }
#endif
  return hn::PromoteTo(d, hn::BitCast(d16, bits));
}

// Storage element types: float, hwy::float16_t, hwy::bfloat16_t. All arithmetic is in float.
template <class T>
HWY_INLINE VF load_f32(F32 d, const T* p) {
  if constexpr (sizeof(T) == 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Rebind<uint16_t, F32> du;
    return promote_bits<T>(d, hn::LoadU(du, reinterpret_cast<const uint16_t*>(p)));
  }
}

template <class T>
HWY_INLINE VF load_n_f32(F32 d, const T* p, size_t n) {
  if constexpr (sizeof(T) == 4) {
    return hn::LoadN(d, p, n);
  } else {
    const hn::Rebind<uint16_t, F32> du;
    return promote_bits<T>(d, hn::LoadN(du, reinterpret_cast<const uint16_t*>(p), n));
  }
}

// The first n lanes, rounded to nearest even.
template <class T>
HWY_INLINE void store_n_f32(F32 d, VF v, T* p, size_t n) {
  if constexpr (sizeof(T) == 4) {
    hn::StoreN(v, d, p, n);
  } else {
    const hn::Rebind<uint16_t, F32> du;
    const hn::Rebind<T, F32> d16;
    hn::StoreN(hn::BitCast(du, hn::DemoteTo(d16, v)), du, reinterpret_cast<uint16_t*>(p), n);
  }
}

// exp(x) to about 1 ulp for x <= 88; 0 below -87.3 (no denormals); x must not be NaN.
HWY_INLINE VF exp_f32(F32 d, VF x) {
  const hn::RebindToSigned<F32> di;
  const VF log2e = hn::Set(d, 1.442695041F);
  const VF ln2_hi = hn::Set(d, 0.693359375F);
  const VF ln2_lo = hn::Set(d, -2.12194440e-4F);
  const auto tiny = hn::Lt(x, hn::Set(d, -87.3F));
  const VF xc = hn::Min(hn::Max(x, hn::Set(d, -87.3F)), hn::Set(d, 88.0F));
  const VF n = hn::Round(hn::Mul(xc, log2e));
  VF r = hn::NegMulAdd(n, ln2_hi, xc);
  r = hn::NegMulAdd(n, ln2_lo, r);
  VF p = hn::Set(d, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0F)));
  const auto pow2 = hn::BitCast(
      d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127))));
  return hn::IfThenZeroElse(tiny, hn::Mul(p, pow2));
}

// All lanes of `v` finite where the mask is true.
HWY_INLINE hn::Mask<F32> finite(F32 d, VF v) {
  return hn::Lt(hn::Abs(v), hn::Inf(d));  // false for NaN
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
