// Which SIMD targets are compiled, and which of them a backend uses. Include before any Highway
// header, so that every file compiles for the same set.
#pragma once

#include <cstddef>

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
// AVX-512 (F, BW, CD, DQ, VL), AVX2 with FMA and F16C, and the baseline of x86-64.
#define HWY_DISABLED_TARGETS (~(HWY_AVX3 | HWY_AVX2 | HWY_SSE2))
#elif defined(__aarch64__) || defined(_M_ARM64)
#define HWY_DISABLED_TARGETS (~HWY_NEON_WITHOUT_AES)
#else
// Elsewhere the portable target alone.
#define HWY_DISABLED_TARGETS (~(HWY_SCALAR | HWY_EMU128))
#endif

namespace rkv::cpu {

// A backend's SIMD target: its place in Highway's dispatch tables. Kept per backend and never set
// in Highway itself, so that backends with different targets live side by side.
struct Target {
  size_t index = 0;
  const char* name = nullptr;   // as RKV_SIMD spells it
  const char* error = nullptr;  // what is wrong with RKV_SIMD, with the values valid here; or null
};

// The target that the environment variable RKV_SIMD asks for, else the best one of this machine
// (that one too where RKV_SIMD is wrong).
Target resolve_target();

}  // namespace rkv::cpu
