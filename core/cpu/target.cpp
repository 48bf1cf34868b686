#include "core/cpu/target.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <hwy/highway.h>

namespace rkv::cpu {
namespace {

struct Candidate {
  const char* name;
  int64_t bit;
  const char* valid;  // RKV_SIMD's valid values where this is the best target of the machine
};

// Best first.
constexpr Candidate kCandidates[] = {
#if HWY_ARCH_X86
    {"avx3", HWY_AVX3, "RKV_SIMD must be avx3, avx2 or sse2 on this machine"},
    {"avx2", HWY_AVX2, "RKV_SIMD must be avx2 or sse2 on this machine"},
    {"sse2", HWY_SSE2, "RKV_SIMD must be sse2 on this machine"},
#elif HWY_ARCH_ARM_A64
    {"neon", HWY_NEON_WITHOUT_AES, "RKV_SIMD must be neon on this machine"},
#else
    {"portable", HWY_SCALAR | HWY_EMU128, "RKV_SIMD must be portable on this machine"},
#endif
};

// The formula of hwy::ChosenTarget::GetIndex for one target.
size_t table_index(int64_t bit) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  (void)bit;
  return 0;  // a table of one entry
#else
  return hwy::Num0BitsBelowLS1Bit_Nonzero64(static_cast<uint64_t>(HWY_CHOSEN_TARGET_SHIFT(bit)));
#endif
}

}  // namespace

Target resolve_target() {
  const int64_t usable = HWY_SUPPORTED_TARGETS & HWY_TARGETS;
  const char* wanted = std::getenv("RKV_SIMD");
  if (wanted != nullptr && wanted[0] == '\0') wanted = nullptr;
  Target best;
  for (const Candidate& candidate : kCandidates) {
    if ((usable & candidate.bit) == 0) continue;
    const bool named = wanted != nullptr && std::strcmp(wanted, candidate.name) == 0;
    if (best.name == nullptr || named) {
      const char* error = best.name == nullptr && wanted != nullptr ? candidate.valid : nullptr;
      best = {table_index(candidate.bit), candidate.name, named ? nullptr : error};
    }
    if (named) break;
  }
  return best;
}

}  // namespace rkv::cpu
