// The two products of attention over one chunk of rows, for one SIMD target. Included once per
// target.
#if defined(RKV_CORE_CPU_ATTEND_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RKV_CORE_CPU_ATTEND_INL_HPP_
#undef RKV_CORE_CPU_ATTEND_INL_HPP_
#else
#define RKV_CORE_CPU_ATTEND_INL_HPP_
#endif

#include <cmath>

#include "core/cpu/attend.hpp"
#include "core/cpu/simd-inl.hpp"
#include "core/cpu/summaries.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

inline constexpr int64_t kRowTile = 4;

// The rows of one chunk.
template <class T>
struct ChunkRows {
  const T* at[kChunkRows + kRowTile];  // K of each row; the last one is repeated to a whole tile
  int64_t count = 0;
  // The chunk to come. While a part of row i is worked on, the same part of next[i] is fetched, so
  // that the memory is busy all the time.
  const T* next[kChunkRows];
  int64_t next_count = 0;
};

// Positions of a list that is given or 0, 1, 2, ...
HWY_INLINE int64_t row_of(const AttendArgs& args, int64_t i) {
  return args.list == nullptr ? i : args.list[i];
}

template <class T>
HWY_INLINE void list_rows(const AttendArgs& args, int64_t chunk, ChunkRows<T>& rows) {
  const int64_t row_size = int64_t{args.shape->head_dim} + args.shape->head_dim_v;
  const T* kv = kv_row<T>(*args.shape, *args.store, args.head, 0);
  const int64_t first = chunk * kChunkRows;
  rows.count = HWY_MIN(kChunkRows, args.count - first);
  for (int64_t i = 0; i < rows.count; ++i) rows.at[i] = kv + row_of(args, first + i) * row_size;
  for (int64_t i = 0; i < kRowTile; ++i) rows.at[rows.count + i] = rows.at[rows.count - 1];
  const int64_t second = first + kChunkRows;
  rows.next_count = HWY_MAX(HWY_MIN(kChunkRows, args.fetched - second), int64_t{0});
  for (int64_t i = 0; i < rows.next_count; ++i) {
    rows.next[i] = kv + row_of(args, second + i) * row_size;
  }
}

// The heads' queries with the channels of whole blocks in the order in which load_half reads K.
template <class T>
HWY_INLINE const float* reorder_query(const AttendArgs& args, float* out) {
  if constexpr (hwy::IsSame<T, hwy::bfloat16_t>()) {
    const F32 d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t stride = query_stride(*args.shape);
    for (int32_t g = 0; g < args.shape->group; ++g) {
      const float* q = args.q + g * stride;
      float* to = out + g * stride;
      int64_t c = 0;
      for (; c + 2 * lanes <= args.shape->head_dim; c += 2 * lanes) {
        VF even;
        VF odd;
        hn::LoadInterleaved2(d, q + c, even, odd);
        hn::Store(even, d, to + c);
        hn::Store(odd, d, to + c + lanes);
      }
      for (; c < stride; c += lanes) hn::Store(hn::Load(d, q + c), d, to + c);
    }
    return out;
  } else {
    return args.q;
  }
}

// q . K of kRowTile rows and kHeads heads, to logits[h * kChunkRows + 0 .. kRowTile - 1].
template <class T, int kHeads>
HWY_INLINE void dot_tile(const T* const* rows, const float* q, int64_t q_stride, int64_t dim,
                         float* logits) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  VF sum[kHeads][kRowTile];
  for (int h = 0; h < kHeads; ++h) {
    for (int r = 0; r < kRowTile; ++r) sum[h][r] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + 2 * lanes <= dim; c += 2 * lanes) {
    for (int half = 0; half < 2; ++half) {
      VF k[kRowTile];
      for (int r = 0; r < kRowTile; ++r) k[r] = load_half(d, rows[r] + c, half);
      for (int h = 0; h < kHeads; ++h) {
        const VF x = hn::Load(d, q + h * q_stride + c + half * lanes);
        for (int r = 0; r < kRowTile; ++r) sum[h][r] = hn::MulAdd(x, k[r], sum[h][r]);
      }
    }
  }
  for (; c < dim; c += lanes) {
    const size_t n = static_cast<size_t>(HWY_MIN(lanes, dim - c));
    for (int r = 0; r < kRowTile; ++r) {
      const VF k = load_n_f32(d, rows[r] + c, n);
      for (int h = 0; h < kHeads; ++h) {
        sum[h][r] = hn::MulAdd(hn::Load(d, q + h * q_stride + c), k, sum[h][r]);
      }
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    reduce_four(d, sum[h][0], sum[h][1], sum[h][2], sum[h][3], logits + h * kChunkRows);
  }
}

// Products to weights exp(x - top), in place, for one head; logits behind `count` get weight 0.
// Returns whether every logit was finite.
HWY_INLINE bool weigh(const AttentionOptions& options, int64_t count, float* logits, float* top,
                      float* total) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF scale = hn::Set(d, options.scale);
  const VF none = hn::Neg(hn::Inf(d));
  VF largest = none;
  bool all_finite = true;
  for (int64_t i = 0; i < kChunkRows; i += lanes) {
    const auto real = hn::FirstN(d, static_cast<size_t>(HWY_MAX(count - i, int64_t{0})));
    VF x = hn::Mul(hn::Load(d, logits + i), scale);
    const auto usable = hn::And(real, finite(d, x));
    all_finite = all_finite && hn::AllTrue(d, hn::Or(usable, hn::Not(real)));
    if (options.softcap != 0) {
      const VF cap = hn::Set(d, options.softcap);
      x = hn::IfThenElseZero(usable, x);
      x = hn::Mul(cap, tanh_f32(d, hn::Div(x, cap)));
    }
    x = hn::IfThenElse(usable, x, none);
    largest = hn::Max(largest, x);
    hn::Store(x, d, logits + i);
  }
  *top = hn::ReduceMax(d, largest);
  *total = 0;
  if (!std::isfinite(*top)) {
    for (int64_t i = 0; i < kChunkRows; i += lanes) hn::Store(hn::Zero(d), d, logits + i);
    return all_finite;
  }
  const VF shift = hn::Set(d, *top);
  VF sum = hn::Zero(d);
  for (int64_t i = 0; i < kChunkRows; i += lanes) {
    const VF e = exp_f32(d, hn::Sub(hn::Load(d, logits + i), shift));
    sum = hn::Add(sum, e);
    hn::Store(e, d, logits + i);
  }
  *total = hn::ReduceSum(d, sum);
  return all_finite;
}

// Weighted sum of V over the chunk for kHeads heads and `channels` channels, kVecs vectors (one
// that may be partly used, or whole blocks), from `v` behind the start of a row on.
template <class T, int kHeads, int kVecs>
HWY_INLINE void value_tile(const ChunkRows<T>& rows, int64_t v, int64_t channels, bool fetch_next,
                           const float* weights, float* out, int64_t out_stride) {
  static_assert(kVecs == 1 || kVecs % 2 == 0);
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t fetched = fetch_next ? rows.next_count : 0;
  VF sum[kHeads][kVecs];
  for (int h = 0; h < kHeads; ++h) {
    for (int i = 0; i < kVecs; ++i) sum[h][i] = hn::Zero(d);
  }
  for (int64_t r = 0; r < rows.count; ++r) {
    if (r < fetched) prefetch_elements(rows.next[r] + v, channels);
    VF x[kVecs];
    if constexpr (kVecs == 1) {
      x[0] = load_n_f32(d, rows.at[r] + v, static_cast<size_t>(channels));
    } else {
      for (int i = 0; i < kVecs; ++i)
        x[i] = load_half(d, rows.at[r] + v + i / 2 * 2 * lanes, i % 2);
    }
    for (int h = 0; h < kHeads; ++h) {
      const VF w = hn::Set(d, weights[h * kChunkRows + r]);
      for (int i = 0; i < kVecs; ++i) sum[h][i] = hn::MulAdd(w, x[i], sum[h][i]);
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    float* to = out + h * out_stride;
    if constexpr (kVecs == 1) {
      hn::Store(sum[h][0], d, to);
    } else {
      for (int i = 0; i < kVecs; i += 2) {
        store_halves<T>(d, sum[h][i], sum[h][i + 1], to + i * lanes);
      }
    }
  }
}

template <class T, int kHeads>
HWY_INLINE void value_heads(const ChunkRows<T>& rows, int64_t dim, int64_t dim_v, bool fetch_next,
                            const float* weights, float* out, int64_t out_stride) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32()));
  int64_t c = 0;
  for (; c + 4 * lanes <= dim_v; c += 4 * lanes) {
    value_tile<T, kHeads, 4>(rows, dim + c, 4 * lanes, fetch_next, weights, out + c, out_stride);
  }
  if (c + 2 * lanes <= dim_v) {
    value_tile<T, kHeads, 2>(rows, dim + c, 2 * lanes, fetch_next, weights, out + c, out_stride);
    c += 2 * lanes;
  }
  for (; c < dim_v; c += lanes) {
    value_tile<T, kHeads, 1>(rows, dim + c, HWY_MIN(lanes, dim_v - c), fetch_next, weights, out + c,
                             out_stride);
  }
}

// The same for one head where a logit was not finite: rows of weight 0 are not looked at, whatever
// their V holds.
template <class T>
HWY_INLINE void value_head_guarded(const ChunkRows<T>& rows, int64_t dim, int64_t dim_v,
                                   const float* weights, float* out) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < dim_v; c += lanes) {
    const size_t n = static_cast<size_t>(HWY_MIN(lanes, dim_v - c));
    VF sum = hn::Zero(d);
    for (int64_t r = 0; r < rows.count; ++r) {
      if (weights[r] == 0) continue;
      sum = hn::MulAdd(hn::Set(d, weights[r]), load_n_f32(d, rows.at[r] + dim + c, n), sum);
    }
    hn::Store(sum, d, out + c);
  }
}

template <class T>
HWY_INLINE bool attend_chunk_typed(const AttendArgs& args, int64_t chunk, bool cold,
                                   const AttendScratch& scratch, const Partial& out) {
  const Shape& shape = *args.shape;
  const int64_t dim = shape.head_dim;
  const int64_t q_stride = query_stride(shape);
  float* logits = scratch.logits;
  ChunkRows<T> rows;
  list_rows(args, chunk, rows);
  if (cold) {
    for (int64_t r = 0; r < rows.count; ++r) prefetch_elements(rows.at[r], dim);
  }
  const float* q = reorder_query<T>(args, scratch.q);
  for (int64_t i = 0; i < rows.count; i += kRowTile) {
    for (int64_t r = i; cold && r < i + kRowTile; ++r) {
      prefetch_elements(rows.at[r] + dim, shape.head_dim_v);
    }
    for (int64_t r = i; r < HWY_MIN(i + kRowTile, rows.next_count); ++r) {
      prefetch_elements(rows.next[r], dim);
    }
    for_head_tiles(shape.group, [&]<int kHeads>(int32_t g) HWY_ATTR {
      dot_tile<T, kHeads>(rows.at + i, q + g * q_stride, q_stride, dim,
                          logits + g * kChunkRows + i);
    });
  }
  bool all_finite = true;
  for (int32_t g = 0; g < shape.group; ++g) {
    all_finite &=
        weigh(args.options, rows.count, logits + g * kChunkRows, out.top + g, out.total + g);
  }
  const int64_t out_stride = value_stride(shape);
  if (all_finite) {
    for_head_tiles(shape.group, [&]<int kHeads>(int32_t g) HWY_ATTR {
      value_heads<T, kHeads>(rows, dim, shape.head_dim_v, g == 0, logits + g * kChunkRows,
                             out.out + g * out_stride, out_stride);
    });
  } else {
    for (int32_t g = 0; g < shape.group; ++g) {
      value_head_guarded(rows, dim, shape.head_dim_v, logits + g * kChunkRows,
                         out.out + g * out_stride);
    }
  }
  return !all_finite;
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
