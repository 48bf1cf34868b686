#include "pieces.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/pieces_kernels.cpp"
#include "core/cpu/target.hpp"

#include <hwy/foreach_target.h>

#include "core/cpu/select_rank-inl.hpp"
#include "sampling.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

// The order of select_rows.
int64_t timed_select_for_target(const SelectArgs& args, const SelectScratch& scratch, int32_t* out,
                                double* times) {
  const int64_t pages = (args.live + args.page_size - 1) / args.page_size;
  const double start = rkv_bench::seconds_now();
  choose_channels(args, scratch);
  with_element_type(args.shape->kv, [&](auto t) { prefetch_pages<decltype(t)>(args, scratch); });
  weigh_channels(args, scratch);
  const double channels = rkv_bench::seconds_now();
  const int64_t blocks = score_blocks(args);
  with_element_type(args.shape->kv, [&](auto t) {
    score_range<decltype(t)>(args, scratch, {0, blocks, blocks, false});
    score_loose<decltype(t)>(args, scratch);
  });
  const double scored = rkv_bench::seconds_now();
  rank_pages(args, scratch, pages);
  const double ranked = rkv_bench::seconds_now();
  const int64_t count = choose_rows(args, scratch, pages, out);
  times[rkv_bench::kChannels] += channels - start;
  times[rkv_bench::kScore] += scored - channels;
  times[rkv_bench::kSoftmax] += ranked - scored;
  times[rkv_bench::kTopK] += rkv_bench::seconds_now() - ranked;
  return count;
}

void select_best_for_target(const float* values, int64_t n, int64_t k, uint32_t* keys,
                            int32_t* indices) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    hn::StoreU(ordered_keys(d, hn::LoadU(d, values + i)), U32(), keys + i);
  }
  take_best(keys, n, k, indices);
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv::cpu {
HWY_EXPORT(timed_select_for_target);
HWY_EXPORT(select_best_for_target);
}  // namespace rkv::cpu

namespace rkv_bench {
namespace {

// Asked for once: finding out takes longer than a selection.
size_t target() {
  static const size_t index = rkv::cpu::resolve_target().index;
  return index;
}

}  // namespace

int64_t timed_select(const rkv::cpu::SelectArgs& args, const rkv::cpu::SelectScratch& scratch,
                     int32_t* out, double* times) {
  using namespace rkv::cpu;
  return HWY_DISPATCH_TABLE(timed_select_for_target)[target()](args, scratch, out, times);
}

void select_best(const float* values, int64_t n, int64_t k, uint32_t* keys, int32_t* indices) {
  using namespace rkv::cpu;
  HWY_DISPATCH_TABLE(select_best_for_target)[target()](values, n, k, keys, indices);
}

}  // namespace rkv_bench
#endif
