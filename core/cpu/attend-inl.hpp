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
inline constexpr int64_t kPrefetchRows = 32;

// The rows of one chunk.
template <class T>
struct ChunkRows {
  const T* at[kChunkRows + kRowTile];  // K of each row; the last one is repeated to a whole tile
  int64_t count = 0;
};

// Positions of a list that is given or 0, 1, 2, ...
HWY_INLINE int64_t row_of(const AttendArgs& args, int64_t i) {
  return args.list == nullptr ? i : args.list[i];
}

// Fetches the rows at places [first, first + n) of the list to the second-level cache.
template <class T>
HWY_INLINE void prefetch_rows(const AttendArgs& args, const T* kv, int64_t row_size, int64_t first,
                              int64_t n) {
  const int64_t end = HWY_MIN(first + n, args.count);
  for (int64_t i = first; i < end; ++i) {
    const char* line = reinterpret_cast<const char*>(kv + row_of(args, i) * row_size);
    for (int64_t b = 0; b < row_size * static_cast<int64_t>(sizeof(T)); b += 64) {
      __builtin_prefetch(line + b, 0, 2);
    }
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
  for (; c + lanes <= dim; c += lanes) {
    VF k[kRowTile];
    for (int r = 0; r < kRowTile; ++r) k[r] = load_f32(d, rows[r] + c);
    for (int h = 0; h < kHeads; ++h) {
      const VF x = hn::Load(d, q + h * q_stride + c);
      for (int r = 0; r < kRowTile; ++r) sum[h][r] = hn::MulAdd(x, k[r], sum[h][r]);
    }
  }
  if (c < dim) {
    const size_t n = static_cast<size_t>(dim - c);
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

// Weighted sum of V over the chunk for kHeads heads and kVecs vectors of channels, from `v` channels
// behind the start of a row on.
template <class T, int kHeads, int kVecs>
HWY_INLINE void value_tile(const ChunkRows<T>& rows, int64_t v, size_t lanes_used,
                           const float* weights, float* out, int64_t out_stride) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  VF sum[kHeads][kVecs];
  for (int h = 0; h < kHeads; ++h) {
    for (int i = 0; i < kVecs; ++i) sum[h][i] = hn::Zero(d);
  }
  for (int64_t r = 0; r < rows.count; ++r) {
    VF x[kVecs];
    for (int i = 0; i < kVecs; ++i) {
      x[i] = lanes_used == 0 ? load_f32(d, rows.at[r] + v + i * lanes)
                             : load_n_f32(d, rows.at[r] + v + i * lanes, lanes_used);
    }
    for (int h = 0; h < kHeads; ++h) {
      const VF w = hn::Set(d, weights[h * kChunkRows + r]);
      for (int i = 0; i < kVecs; ++i) sum[h][i] = hn::MulAdd(w, x[i], sum[h][i]);
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int i = 0; i < kVecs; ++i) hn::Store(sum[h][i], d, out + h * out_stride + i * lanes);
  }
}

template <class T, int kHeads>
HWY_INLINE void value_heads(const ChunkRows<T>& rows, int64_t dim, int64_t dim_v,
                            const float* weights, float* out, int64_t out_stride) {
  constexpr int kVecs = 4;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32()));
  int64_t c = 0;
  for (; c + kVecs * lanes <= dim_v; c += kVecs * lanes) {
    value_tile<T, kHeads, kVecs>(rows, dim + c, 0, weights, out + c, out_stride);
  }
  for (; c + lanes <= dim_v; c += lanes) {
    value_tile<T, kHeads, 1>(rows, dim + c, 0, weights, out + c, out_stride);
  }
  if (c < dim_v) {
    value_tile<T, kHeads, 1>(rows, dim + c, static_cast<size_t>(dim_v - c), weights, out + c,
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
HWY_INLINE bool attend_chunk_typed(const AttendArgs& args, int64_t chunk, float* logits,
                                   const Partial& out) {
  const Shape& shape = *args.shape;
  const int64_t dim = shape.head_dim;
  const int64_t row_size = dim + shape.head_dim_v;
  const int64_t q_stride = query_stride(shape);
  const T* kv = kv_row<T>(shape, *args.store, args.head, 0);
  const int64_t first = chunk * kChunkRows;

  ChunkRows<T> rows;
  rows.count = HWY_MIN(kChunkRows, args.count - first);
  for (int64_t i = 0; i < rows.count; ++i) rows.at[i] = kv + row_of(args, first + i) * row_size;
  for (int64_t i = 0; i < kRowTile; ++i) rows.at[rows.count + i] = rows.at[rows.count - 1];

  for (int64_t i = 0; i < rows.count; i += kRowTile) {
    prefetch_rows(args, kv, row_size, first + i + kPrefetchRows, kRowTile);
    for_head_tiles(shape.group, [&]<int kHeads>(int32_t g) HWY_ATTR {
      dot_tile<T, kHeads>(rows.at + i, args.q + g * q_stride, q_stride, dim,
                          logits + g * kChunkRows + i);
    });
  }
  bool all_finite = true;
  for (int32_t g = 0; g < shape.group; ++g) {
    all_finite &= weigh(args.options, rows.count, logits + g * kChunkRows, out.top + g,
                        out.total + g);
  }
  const int64_t out_stride = value_stride(shape);
  if (all_finite) {
    for_head_tiles(shape.group, [&]<int kHeads>(int32_t g) HWY_ATTR {
      value_heads<T, kHeads>(rows, dim, shape.head_dim_v, logits + g * kChunkRows,
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
