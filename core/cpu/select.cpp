#include "core/cpu/select.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/select.cpp"
#include "core/cpu/target.hpp"

#include <hwy/foreach_target.h>

#include "core/cpu/select_rank-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

void start_for_target(const SelectArgs& args, const SelectScratch& scratch) {
  choose_channels(args, scratch);
  with_element_type(args.shape->kv, [&](auto t) { prefetch_pages<decltype(t)>(args, scratch); });
  weigh_channels(args, scratch);
}

void score_for_target(const SelectArgs& args, const SelectScratch& scratch,
                      const ScoreRange& range) {
  with_element_type(args.shape->kv,
                    [&](auto t) { score_range<decltype(t)>(args, scratch, range); });
}

void score_loose_for_target(const SelectArgs& args, const SelectScratch& scratch) {
  with_element_type(args.shape->kv, [&](auto t) { score_loose<decltype(t)>(args, scratch); });
}

int64_t finish_for_target(const SelectArgs& args, const SelectScratch& scratch, int32_t* out,
                          bool* nonfinite) {
  const int64_t pages = (args.live + args.page_size - 1) / args.page_size;
  for (int32_t g = 0; g < args.shape->group; ++g) {
    *nonfinite |= any_nonfinite(scratch.scores + g * scratch.score_stride, pages);
  }
  rank_pages(args, scratch, pages);
  return choose_rows(args, scratch, pages, out);
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv::cpu {

HWY_EXPORT(start_for_target);
HWY_EXPORT(score_for_target);
HWY_EXPORT(score_loose_for_target);
HWY_EXPORT(finish_for_target);

SelectScratch carve_select(Arena& arena, const Shape& shape, int64_t max_pages) {
  SelectScratch s;
  if (max_pages == 0) return s;
  const int64_t dim = query_stride(shape);
  const int64_t bytes = dtype_bytes(shape.kv);
  // Whole tiles are written: up to kTailPages pages beyond the last one, then a vector.
  s.score_stride = max_pages > INT64_MAX - 64 ? INT64_MAX : (max_pages + 47) / 16 * 16;
  s.strength = arena.take<uint32_t>(dim);
  s.direction = arena.take<float>(dim);
  s.channels = arena.take<int32_t>(dim);
  s.rows = arena.take<int32_t>(dim);
  s.weights = arena.take<float>(dim * shape.group);
  s.inv_tau = arena.take<float>(shape.group);
  s.loose = arena.take_bytes(kTailPages * 2 * dim, bytes);
  s.gathered = arena.take_bytes(kTailPages * dim, bytes);
  s.scores = arena.take<float>(checked_product(s.score_stride, shape.group));
  s.keys = arena.take<uint32_t>(s.score_stride);
  s.forced_keys = arena.take<uint32_t>(s.score_stride);
  s.pages = arena.take<int32_t>(s.score_stride);
  return s;
}

int64_t score_blocks(const SelectArgs& args) {
  return (flushed_pages(args.live, args.page_size) + kPageBlock - 1) / kPageBlock;
}

void start_select(const SelectArgs& args, const SelectScratch& scratch, size_t target) {
  HWY_DISPATCH_TABLE(start_for_target)[target](args, scratch);
}

void score_pages(const SelectArgs& args, const SelectScratch& scratch, const ScoreRange& range,
                 size_t target) {
  HWY_DISPATCH_TABLE(score_for_target)[target](args, scratch, range);
}

void score_loose_pages(const SelectArgs& args, const SelectScratch& scratch, size_t target) {
  HWY_DISPATCH_TABLE(score_loose_for_target)[target](args, scratch);
}

int64_t finish_select(const SelectArgs& args, const SelectScratch& scratch, int32_t* out,
                      bool* nonfinite, size_t target) {
  return HWY_DISPATCH_TABLE(finish_for_target)[target](args, scratch, out, nonfinite);
}

int64_t select_rows(const SelectArgs& args, const SelectScratch& scratch, int32_t* out,
                    bool* nonfinite, size_t target) {
  const int64_t blocks = score_blocks(args);
  start_select(args, scratch, target);
  score_pages(args, scratch, {0, blocks, blocks, false}, target);
  score_loose_pages(args, scratch, target);
  return finish_select(args, scratch, out, nonfinite, target);
}

}  // namespace rkv::cpu
#endif
