// Conversions between float and the storage types of K, V, Q and outputs, round half to even.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rkv/rkv.h"

namespace rkv_test {

inline std::int64_t dtype_size(std::int32_t dtype) { return dtype == RKV_DTYPE_F32 ? 4 : 2; }

inline const char* dtype_name(std::int32_t dtype) {
  switch (dtype) {
    case RKV_DTYPE_F32: return "f32";
    case RKV_DTYPE_F16: return "f16";
    case RKV_DTYPE_BF16: return "bf16";
    case RKV_DTYPE_E4M3: return "e4m3";
    case RKV_DTYPE_E5M2: return "e5m2";
    default: return "as kv";
  }
}

inline std::uint32_t float_bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float bits_float(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline std::uint16_t to_bf16(float x) {
  const std::uint32_t bits = float_bits(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline float from_bf16(std::uint16_t h) { return bits_float(static_cast<std::uint32_t>(h) << 16); }

inline float from_f16(std::uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                              : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  }
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

inline std::uint16_t to_f16(float x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7E00);
  const float magnitude = std::fabs(x);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7C00);  // rounds to inf
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  // Units of 2^-24 for subnormals, of 2^(exponent - 11) for normals; nearbyint rounds to even.
  const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // steps is 1024..2048 for normals: 2048 carries into the exponent by plain addition.
  return static_cast<std::uint16_t>(sign | ((unit + 24) * 1024 + steps));
}

// Bytes of one element at `p`.
inline void store_element(std::int32_t dtype, void* p, float x) {
  if (dtype == RKV_DTYPE_F32) {
    std::memcpy(p, &x, 4);
    return;
  }
  const std::uint16_t h = dtype == RKV_DTYPE_F16 ? to_f16(x) : to_bf16(x);
  std::memcpy(p, &h, 2);
}

inline float load_element(std::int32_t dtype, const void* p) {
  if (dtype == RKV_DTYPE_F32) {
    float x;
    std::memcpy(&x, p, 4);
    return x;
  }
  std::uint16_t h;
  std::memcpy(&h, p, 2);
  return dtype == RKV_DTYPE_F16 ? from_f16(h) : from_bf16(h);
}

// x as the storage type holds it.
inline float rounded(std::int32_t dtype, float x) {
  if (dtype == RKV_DTYPE_F16) return from_f16(to_f16(x));
  if (dtype == RKV_DTYPE_BF16) return from_bf16(to_bf16(x));
  return x;
}

}  // namespace rkv_test
