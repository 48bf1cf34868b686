#include "core/cpu/topk.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/topk.cpp"
#include "core/cpu/target.hpp"

#include <hwy/foreach_target.h>

#include "core/cpu/topk-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

Cut cut_for_target(const uint32_t* keys, int64_t n, int64_t k) { return find_cut_here(keys, n, k); }

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv::cpu {

HWY_EXPORT(cut_for_target);

Cut find_cut(const uint32_t* keys, int64_t n, int64_t k) {
  // The result is exact, so any target will do for every backend.
  static const size_t target = resolve_target().index;
  return HWY_DISPATCH_TABLE(cut_for_target)[target](keys, n, k);
}

}  // namespace rkv::cpu
#endif
