// Channels, temperatures and page scores of stage 2, for one SIMD target. Included once per target.
#if defined(RKV_CORE_CPU_SELECT_SCORE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_SELECT_SCORE_INL_HPP_
#undef RKV_CORE_CPU_SELECT_SCORE_INL_HPP_
#else
#define RKV_CORE_CPU_SELECT_SCORE_INL_HPP_
#endif

#include <cmath>

#include "core/cpu/select.hpp"
#include "core/cpu/summaries-inl.hpp"
#include "core/cpu/topk-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

using I32 = hn::ScalableTag<int32_t>;

// The indices of the k largest of n keys, ascending; of equal ones the lower indices. `out` has
// room for one vector more.
HWY_NOINLINE void take_best(const uint32_t* keys, int64_t n, int64_t k, int32_t* out) {
  const U32 d;
  const I32 di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Cut cut = find_cut_here(keys, n, k);
  const VU vcut = hn::Set(d, cut.key);
  // At most n indices are written, and the spare vector behind them.
  int64_t count = 0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto taken = hn::RebindMask(di, hn::Ge(hn::LoadU(d, keys + i), vcut));
    count += static_cast<int64_t>(
        hn::CompressStore(hn::Iota(di, static_cast<int32_t>(i)), taken, di, out + count));
  }
  for (; i < n; ++i) {
    if (keys[i] >= cut.key) out[count++] = static_cast<int32_t>(i);
  }
  if (count == k) return;
  int64_t equal = k - cut.above;
  int64_t kept = 0;
  for (i = 0; i < count; ++i) {
    if (keys[out[i]] == cut.key && --equal < 0) continue;
    out[kept++] = out[i];
  }
}

// Steps 1 and 2: fills channels and rows.
HWY_NOINLINE void choose_channels(const SelectArgs& args, const SelectScratch& s) {
  const F32 d;
  const U32 du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t dim = args.shape->head_dim;
  const int64_t stride = query_stride(*args.shape);
  const int32_t group = args.shape->group;
  for (int64_t c = 0; c < dim; c += lanes) {
    VF strength = hn::Zero(d);
    VF direction = hn::Zero(d);
    for (int32_t g = 0; g < group; ++g) {
      const VF q = hn::Load(d, args.q + g * stride + c);
      strength = hn::Add(strength, hn::Abs(q));
      direction = hn::Add(direction, q);
    }
    // Not negative, so its bits rank it; a NaN, whatever its sign, ranks first.
    hn::Store(hn::BitCast(du, hn::Abs(strength)), du, s.strength + c);
    hn::Store(direction, d, s.direction + c);
  }
  const int64_t r = args.channels;
  if (r == dim) {
    for (int64_t c = 0; c < dim; ++c) s.channels[c] = static_cast<int32_t>(c);
  } else {
    take_best(s.strength, dim, r, s.channels);
  }
  for (int64_t i = 0; i < r; ++i) {
    const int32_t c = s.channels[i];
    s.rows[i] = s.direction[c] > 0 ? static_cast<int32_t>(dim) + c : c;
  }
}

// The queries at the chosen channels, and 1 / tau of each head; 0 where |q_I| is 0, which asks for
// zero scores.
HWY_NOINLINE void weigh_channels(const SelectArgs& args, const SelectScratch& s) {
  const F32 d;
  const I32 di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t dim = args.shape->head_dim;
  const int64_t stride = query_stride(*args.shape);
  for (int32_t g = 0; g < args.shape->group; ++g) {
    const float* q = args.q + g * stride;
    float* weights = s.weights + g * stride;
    VF parts = hn::Zero(d);
    for (int64_t i = 0; i < args.channels; i += lanes) {
      const auto real = hn::FirstN(d, static_cast<size_t>(HWY_MIN(lanes, args.channels - i)));
      const auto index = hn::IfThenElseZero(hn::RebindMask(di, real), hn::Load(di, s.channels + i));
      const VF w = hn::IfThenElseZero(real, hn::GatherIndex(d, q, index));
      parts = hn::Add(parts, hn::Abs(w));
      hn::Store(w, d, weights + i);
    }
    VF all = hn::Zero(d);
    for (int64_t c = 0; c < dim; c += lanes) all = hn::Add(all, hn::Abs(hn::Load(d, q + c)));
    double part = hn::ReduceSum(d, parts);
    double whole = hn::ReduceSum(d, all);
    if (!std::isfinite(whole)) {  // too large for fp32, or q is not finite
      part = whole = 0;
      for (int64_t i = 0; i < args.channels; ++i) part += std::fabs(weights[i]);
      for (int64_t c = 0; c < dim; ++c) whole += std::fabs(q[c]);
    }
    if (part == 0) {
      s.inv_tau[g] = 0.0F;
    } else if (args.options->sqrt_d_temperature) {
      s.inv_tau[g] = 1.0F / std::sqrt(static_cast<float>(dim));
    } else {
      s.inv_tau[g] = static_cast<float>(args.scale / std::sqrt(part / whole));
    }
  }
}

// Scores of kVecs vectors of pages for kHeads heads: the sum over the chosen channels in ascending
// order, one fused multiply-add each, whatever holds the pages, so equal pages have equal scores.
// Channel i of the pages lies at base + (rows == null ? i : rows[i]) * width. `next`, where given,
// is the block to come: its rows are fetched meanwhile.
template <class T, int kHeads, int kVecs>
HWY_NOINLINE void score_tile(const SelectArgs& args, const SelectScratch& s, const T* base,
                             const int32_t* rows, int64_t width, const T* next, int32_t g,
                             float* scores) {
  const F32 d;
  constexpr int64_t kLanes = hn::MaxLanes(F32());
  constexpr int kPaired = kVecs / 2 * 2;
  VF sum[kHeads][kVecs];
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kVecs; ++v) sum[h][v] = hn::Zero(d);
  }
  const int64_t stride = query_stride(*args.shape);
  const float* weights = s.weights + g * stride;
  for (int64_t i = 0; i < args.channels; ++i) {
    const int64_t row = rows == nullptr ? i : rows[i];
    if (next != nullptr) prefetch_elements(next + row * width, kPageBlock);
    const T* pages = base + row * width;
    VF x[kVecs];
    for (int v = 0; v < kPaired; ++v) x[v] = load_half(d, pages + v / 2 * 2 * kLanes, v % 2);
    if constexpr (kPaired < kVecs) x[kPaired] = load_f32(d, pages + kPaired * kLanes);
    for (int h = 0; h < kHeads; ++h) {
      const VF w = hn::Set(d, weights[h * stride + i]);
      for (int v = 0; v < kVecs; ++v) sum[h][v] = hn::MulAdd(w, x[v], sum[h][v]);
    }
  }
  const VF none = hn::Neg(hn::Inf(d));
  for (int h = 0; h < kHeads; ++h) {
    const float inv_tau = s.inv_tau[g + h];
    for (int v = 0; v < kVecs; ++v) {
      const VF x = hn::Mul(sum[h][v], hn::Set(d, inv_tau));
      sum[h][v] = inv_tau == 0 ? hn::Zero(d) : hn::IfThenElse(finite(d, x), x, none);
    }
    float* out = scores + (g + h) * s.score_stride;
    for (int v = 0; v < kPaired; v += 2) {
      store_halves<T>(d, sum[h][v], sum[h][v + 1], out + v * kLanes);
    }
    if constexpr (kPaired < kVecs) hn::StoreU(sum[h][kPaired], d, out + kPaired * kLanes);
  }
}

// Pages come in multiples of kTailPages = 16.
inline constexpr int kTailVecs = kTailPages / HWY_MIN(kTailPages, hn::MaxLanes(F32()));

// `count` pages, a multiple of kTailPages, of one block, or of the gathered ones.
template <class T>
HWY_NOINLINE void score_block(const SelectArgs& args, const SelectScratch& s, const T* base,
                              const int32_t* rows, int64_t width, int64_t count, const T* next,
                              float* scores) {
  for_head_tiles(args.shape->group, [&]<int kHeads>(int32_t g) HWY_ATTR {
    const T* ahead = g == 0 ? next : nullptr;
    if constexpr (kTailVecs == 1) {
      switch (count / kTailPages) {
        case 4: score_tile<T, kHeads, 4>(args, s, base, rows, width, ahead, g, scores); break;
        case 3: score_tile<T, kHeads, 3>(args, s, base, rows, width, ahead, g, scores); break;
        case 2: score_tile<T, kHeads, 2>(args, s, base, rows, width, ahead, g, scores); break;
        default: score_tile<T, kHeads, 1>(args, s, base, rows, width, ahead, g, scores); break;
      }
    } else {
      for (int64_t p = 0; p < count; p += kTailPages) {
        score_tile<T, kHeads, kTailVecs>(args, s, base + p, rows, width, p == 0 ? ahead : nullptr,
                                         g, scores + p);
      }
    }
  });
}

// Step 3 for the pages outside the blocks: the tail's, or made from K here, and the partial one.
// At most kTailPages of them; their chosen channels are brought into the layout of a block.
template <class T>
HWY_NOINLINE void score_loose(const SelectArgs& args, const SelectScratch& s) {
  const int64_t dim = args.shape->head_dim;
  const int64_t stride = dim + args.shape->head_dim_v;
  T* gathered = reinterpret_cast<T*>(s.gathered);
  T* loose = reinterpret_cast<T*>(s.loose);
  const int64_t first = flushed_pages(args.live, args.page_size);
  int64_t column = 0;
  for (int64_t page = first; page * args.page_size < args.live; ++page, ++column) {
    const int64_t row = page * args.page_size;
    const int64_t count = HWY_MIN(args.page_size, args.live - row);
    const T* summary = tail_page<T>(*args.shape, *args.store, args.head, page);
    if (!args.tail_is_current || count < args.page_size) {
      T* made = loose + column * 2 * dim;
      summarise_rows(kv_row<T>(*args.shape, *args.store, args.head, row), stride, count, dim, made);
      summary = made;
    }
    for (int64_t i = 0; i < args.channels; ++i) {
      gathered[i * kTailPages + column] = summary[s.rows[i]];
    }
  }
  if (column == 0) return;
  score_block<T>(args, s, gathered, nullptr, kTailPages, kTailPages, nullptr, s.scores + first);
}

template <class T>
HWY_INLINE void prefetch_block(const SelectArgs& args, const SelectScratch& s, int64_t block) {
  const T* base = page_block<T>(*args.shape, *args.store, args.head, block);
  for (int64_t i = 0; i < args.channels; ++i) {
    prefetch_elements(base + s.rows[i] * kPageBlock, kPageBlock);
  }
}

// Brings what is read first on its way: the first block's chosen rows and the tail.
template <class T>
HWY_INLINE void prefetch_pages(const SelectArgs& args, const SelectScratch& s) {
  const int64_t in_blocks = flushed_pages(args.live, args.page_size);
  if (in_blocks > 0) prefetch_block<T>(args, s, 0);
  if (args.tail_is_current) {
    for (int64_t page = in_blocks; page < args.live / args.page_size; ++page) {
      prefetch_elements(tail_page<T>(*args.shape, *args.store, args.head, page),
                        int64_t{2} * args.shape->head_dim);
    }
  }
}

// Step 3 for the pages of some blocks.
template <class T>
HWY_INLINE void score_range(const SelectArgs& args, const SelectScratch& s,
                            const ScoreRange& range) {
  const int64_t in_blocks = flushed_pages(args.live, args.page_size);
  if (range.cold) prefetch_block<T>(args, s, range.first);
  const T* block = page_block<T>(*args.shape, *args.store, args.head, range.first);
  const int64_t block_size = int64_t{2} * args.shape->head_dim * kPageBlock;
  for (int64_t i = range.first; i < range.end; ++i) {
    const int64_t page = i * kPageBlock;
    score_block<T>(args, s, block, s.rows, kPageBlock, HWY_MIN(kPageBlock, in_blocks - page),
                   i + 1 < range.fetched ? block + block_size : nullptr, s.scores + page);
    block += block_size;
  }
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
