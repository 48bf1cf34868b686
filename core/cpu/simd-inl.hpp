// Loads, stores and elementary functions shared by the kernels. Included once per SIMD target:
// no include guard in the ordinary sense, see Highway's per-target pattern.
#if defined(RKV_CORE_CPU_SIMD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_SIMD_INL_HPP_
#undef RKV_CORE_CPU_SIMD_INL_HPP_
#else
#define RKV_CORE_CPU_SIMD_INL_HPP_
#endif

#include <cstdint>

#include "core/backend.hpp"
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
    const auto fixed =
        hn::IfThenElse(hn::RebindMask(du, special), hn::Or(shifted, hn::Set(du, 0x7F800000U)),
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

// Elements in blocks of two vectors: half 0 and half 1 of a block are its first and second vector,
// but of bf16 its even and its odd elements, which take one instruction each to become floats.
template <class T>
HWY_INLINE VF load_half(F32 d, const T* block, int half) {
  if constexpr (hwy::IsSame<T, hwy::bfloat16_t>()) {
    const hn::RebindToUnsigned<F32> du;
    const auto pairs = hn::LoadU(du, reinterpret_cast<const uint32_t*>(block));
    return hn::BitCast(
        d, half == 0 ? hn::ShiftLeft<16>(pairs) : hn::And(pairs, hn::Set(du, 0xFFFF0000U)));
  } else {
    return load_f32(d, block + half * static_cast<int64_t>(hn::Lanes(d)));
  }
}

// Results for the two halves of a block of T, in the elements' order.
template <class T>
HWY_INLINE void store_halves(F32 d, VF first, VF second, float* out) {
  if constexpr (hwy::IsSame<T, hwy::bfloat16_t>()) {
    hn::StoreInterleaved2(first, second, d, out);
  } else {
    hn::StoreU(first, d, out);
    hn::StoreU(second, d, out + hn::Lanes(d));
  }
}

// Fetches n elements to the second-level cache.
template <class T>
HWY_INLINE void prefetch_elements(const T* p, int64_t n) {
  const char* line = reinterpret_cast<const char*>(p);
  for (int64_t b = 0; b < n * static_cast<int64_t>(sizeof(T)); b += 64) {
    __builtin_prefetch(line + b, 0, 2);
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
  const auto pow2 =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127))));
  return hn::IfThenZeroElse(tiny, hn::Mul(p, pow2));
}

// tanh(x) to a few ulp, for every x that is not NaN.
HWY_INLINE VF tanh_f32(F32 d, VF x) {
  const VF one = hn::Set(d, 1.0F);
  const VF magnitude = hn::Abs(x);
  const VF e = exp_f32(d, hn::Min(hn::Add(magnitude, magnitude), hn::Set(d, 40.0F)));
  const VF large = hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(e, one)));
  const VF z = hn::Mul(x, x);
  VF p = hn::Set(d, -5.70498872745e-3F);
  p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1F));
  const VF small = hn::MulAdd(hn::Mul(p, z), magnitude, magnitude);
  const VF result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625F)), small, large);
  return hn::CopySign(result, x);
}

// The sums of the lanes of four vectors, to out[0..3]; in a fixed order.
HWY_INLINE void reduce_four(F32 d, VF a, VF b, VF c, VF e, float* out) {
#if HWY_TARGET == HWY_SCALAR
  out[0] = hn::GetLane(a);
  out[1] = hn::GetLane(b);
  out[2] = hn::GetLane(c);
  out[3] = hn::GetLane(e);
  (void)d;
#else
  // Within each 128-bit block: [a0+a2, b0+b2, a1+a3, b1+b3], the same of c and e, then all four.
  const hn::RepartitionToWide<hn::RebindToUnsigned<F32>> d64;
  const auto ab =
      hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce =
      hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  const VF sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab, ce)),
                          hn::BitCast(d, hn::InterleaveUpper(d64, ab, ce)));
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(sums, d, out);
  } else {
    const hn::Half<F32> d2;
    const auto half = hn::Add(hn::LowerHalf(d2, sums), hn::UpperHalf(d2, sums));
    if constexpr (hn::MaxLanes(d) == 8) {
      hn::StoreU(half, d2, out);
    } else {
      const hn::Half<hn::Half<F32>> d4;
      hn::StoreU(hn::Add(hn::LowerHalf(d4, half), hn::UpperHalf(d4, half)), d4, out);
    }
  }
#endif
}

// Heads of a group that a register tile serves at once: 4 x 4 accumulators where there are 32
// vector registers, half of it where there are 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kTileHeads = 4;
#else
inline constexpr int kTileHeads = 2;
#endif

// Calls body.template operator()<n>(first) for heads [first, first + n), n <= kTileHeads.
template <class Body>
HWY_INLINE void for_head_tiles(int32_t group, const Body& body) {
  int32_t g = 0;
  for (; g + kTileHeads <= group; g += kTileHeads) body.template operator()<kTileHeads>(g);
  switch (group - g) {
    case 1: body.template operator()<1>(g); break;
    case 2:
      if constexpr (kTileHeads > 2) body.template operator()<2>(g);
      break;
    case 3:
      if constexpr (kTileHeads > 3) body.template operator()<3>(g);
      break;
    default: break;
  }
}

// Calls body(T()) with the storage element type of `type`.
template <class Body>
HWY_INLINE auto with_element_type(DType type, const Body& body) {
  switch (type) {
    case DType::kF16: return body(hwy::float16_t());
    case DType::kBF16: return body(hwy::bfloat16_t());
    default: return body(float());
  }
}

// All lanes of `v` finite where the mask is true.
HWY_INLINE hn::Mask<F32> finite(F32 d, VF v) {
  return hn::Lt(hn::Abs(v), hn::Inf(d));  // false for NaN
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
