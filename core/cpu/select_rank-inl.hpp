// From page scores to rows, steps 4 and 5 of stage 2, for one SIMD target. Included once per
// target.
#if defined(RKV_CORE_CPU_SELECT_RANK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_SELECT_RANK_INL_HPP_
#undef RKV_CORE_CPU_SELECT_RANK_INL_HPP_
#else
#define RKV_CORE_CPU_SELECT_RANK_INL_HPP_
#endif

#include <cmath>
#include <cstring>

#include "core/cpu/select_score-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

// ordered_key of a vector without NaN.
HWY_INLINE VU ordered_keys(F32 d, VF x) {
  const U32 du;
  const VU bits = hn::BitCast(du, hn::Add(x, hn::Zero(d)));  // -0 becomes +0
  const VU sign = hn::BitCast(du, hn::BroadcastSignBit(hn::BitCast(I32(), bits)));
  return hn::Xor(bits, hn::Or(sign, hn::Set(du, 0x80000000U)));
}

// Whether a score of pages [0, pages) was not finite: score_tile made those -inf.
HWY_INLINE bool any_nonfinite(const float* scores, int64_t pages) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  VF low = hn::Inf(d);
  int64_t p = 0;
  for (; p + lanes <= pages; p += lanes) low = hn::Min(low, hn::Load(d, scores + p));
  if (p < pages) {
    const auto real = hn::FirstN(d, static_cast<size_t>(pages - p));
    low = hn::Min(low, hn::IfThenElse(real, hn::Load(d, scores + p), hn::Inf(d)));
  }
  return hn::ReduceMin(d, low) == -HUGE_VALF;
}

// Turns one head's scores into exp(score - largest), in place, and returns 1 / the sum over all
// tokens (over all pages where page_softmax). 0 where no score is finite.
HWY_NOINLINE float exponentiate(const SelectArgs& args, int64_t pages, float* scores) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF lowest = hn::Neg(hn::Inf(d));
  // Whole vectors: -inf behind the last page weighs nothing.
  hn::StoreU(lowest, d, scores + pages);
  VF top = lowest;
  for (int64_t p = 0; p < pages; p += lanes) top = hn::Max(top, hn::Load(d, scores + p));
  const float largest = hn::ReduceMax(d, top);
  if (!std::isfinite(largest)) return 0.0F;
  const VF shift = hn::Set(d, largest);
  // All pages have page_size tokens but perhaps the last one, which is added by itself.
  const float last = scores[pages - 1];
  const float last_weight = hn::GetLane(exp_f32(d, hn::Sub(hn::Set(d, last), shift)));
  scores[pages - 1] = -HUGE_VALF;
  VF sum = hn::Zero(d);
  for (int64_t p = 0; p < pages; p += lanes) {
    const VF e = exp_f32(d, hn::Sub(hn::Load(d, scores + p), shift));
    sum = hn::Add(sum, e);
    hn::Store(e, d, scores + p);
  }
  scores[pages - 1] = last_weight;
  const int64_t last_tokens = args.live - (pages - 1) * args.page_size;
  const float before = hn::ReduceSum(d, sum);
  const float total = args.options->page_softmax
                          ? before + last_weight
                          : before * static_cast<float>(args.page_size) +
                                last_weight * static_cast<float>(last_tokens);
  return 1.0F / total;
}

// Step 4: what ranks each page.
HWY_NOINLINE void rank_pages(const SelectArgs& args, const SelectScratch& s, int64_t pages) {
  const F32 d;
  const U32 du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t group = args.shape->group;
  if (group == 1) {
    for (int64_t p = 0; p < pages; p += lanes) {
      hn::Store(ordered_keys(d, hn::Load(d, s.scores + p)), du, s.keys + p);
    }
    return;
  }
  // The temperatures have served; their memory takes the normalisers.
  float* inv_total = s.inv_tau;
  for (int32_t g = 0; g < group; ++g) {
    float* scores = s.scores + g * s.score_stride;
    inv_total[g] = exponentiate(args, pages, scores);
    if (inv_total[g] == 0) std::memset(scores, 0, static_cast<size_t>(pages) * sizeof(float));
  }
  for (int64_t p = 0; p < pages; p += lanes) {
    VF sum = hn::Zero(d);
    for (int32_t g = 0; g < group; ++g) {
      const VF e = hn::Load(d, s.scores + g * s.score_stride + p);
      sum = hn::MulAdd(e, hn::Set(d, inv_total[g]), sum);
    }
    hn::Store(ordered_keys(d, sum), du, s.keys + p);
  }
}

// The `count` best pages, forced ones first, ascending, to s.pages; returns the keys that ranked
// them. Pages [0, sink_end) and [recent_begin, pages) are forced.
HWY_NOINLINE const uint32_t* choose_pages(const SelectScratch& s, int64_t pages, int64_t count,
                                          int64_t sink_end, int64_t recent_begin) {
  const uint32_t* keys = s.keys;
  recent_begin = HWY_MAX(recent_begin, sink_end);
  const int64_t forced = sink_end + pages - recent_begin;
  if (forced > 0) {
    keys = s.forced_keys;
    if (forced < count) {
      std::memcpy(s.forced_keys, s.keys, static_cast<size_t>(pages) * sizeof(uint32_t));
      for (int64_t p = 0; p < sink_end; ++p) s.forced_keys[p] = 0xFFFFFFFFU;
      for (int64_t p = recent_begin; p < pages; ++p) s.forced_keys[p] = 0xFFFFFFFFU;
    } else {
      // No room for others. 0 is below the key of every score.
      std::memset(s.forced_keys, 0, static_cast<size_t>(pages) * sizeof(uint32_t));
      for (int64_t p = 0; p < sink_end; ++p) s.forced_keys[p] = s.keys[p];
      for (int64_t p = recent_begin; p < pages; ++p) s.forced_keys[p] = s.keys[p];
    }
  }
  take_best(keys, pages, count, s.pages);
  return keys;
}

// Step 5: the rows of the best pages.
HWY_NOINLINE int64_t choose_rows(const SelectArgs& args, const SelectScratch& s, int64_t pages,
                                 int32_t* out) {
  const int64_t size = args.page_size;
  const int64_t sinks = HWY_MIN(args.options->sinks, args.live);
  const int64_t recent = HWY_MIN(args.options->recent, args.live);
  const int64_t sink_end = (sinks + size - 1) / size;
  const int64_t recent_begin = recent > 0 ? (args.live - recent) / size : pages;
  const int64_t missing = pages * size - args.live;  // rows that the last page lacks

  int64_t count = HWY_MIN((args.top_k + size - 1) / size, pages);
  const uint32_t* keys = choose_pages(s, pages, count, sink_end, recent_begin);
  int64_t edge = -1;  // TOKENS: the page taken last, cut after its first rows
  int64_t surplus = 0;
  if (args.options->tokens) {
    const auto rows = [&] {
      return count * size - (s.pages[count - 1] == pages - 1 ? missing : 0);
    };
    if (rows() < args.top_k) {
      ++count;
      keys = choose_pages(s, pages, count, sink_end, recent_begin);
    }
    surplus = rows() - args.top_k;
    edge = s.pages[0];
    for (int64_t i = 1; i < count; ++i) {
      if (keys[s.pages[i]] <= keys[edge]) edge = s.pages[i];
    }
  }
  int64_t n = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t page = s.pages[i];
    const int64_t first = page * size;
    int64_t end = HWY_MIN(first + size, args.live);
    if (page == edge) end -= surplus;
    for (int64_t row = first; row < end; ++row) out[n++] = static_cast<int32_t>(row);
  }
  return n;
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
