#include "core/cpu/stage1_kernels.hpp"
#include "core/cpu/target.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/stage1_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "core/cpu/simd-inl.hpp"
#include "core/cpu/stage1_pool-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Register tile: kTileKeys keys by two vectors of rows, one accumulator each, two query vectors and
// one broadcast key. 32 registers hold 12 x 2, 16 hold 6 x 2.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int64_t kTileKeys = 12;
#else
constexpr int64_t kTileKeys = 6;
#endif
static_assert(kBlockKeys % kTileKeys == 0);

// 2^t for t <= 0 to 5e-7; 0 for t < -125 and for NaN.
HWY_INLINE VF exp2_f32(F32 d, VF t) {
  const hn::RebindToSigned<F32> di;
  const VF magic = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const VF shifted = hn::Add(t, magic);
  const VF f = hn::Sub(t, hn::Sub(shifted, magic));
  // Minimax in relative error on [-1/2, 1/2], exact at 0.
  VF p = hn::Set(d, 1.11255092635e-3F);
  p = hn::MulAdd(p, f, hn::Set(d, 9.66628254749e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.55740046864e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.40223506502e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 6.93142830611e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const VF value = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(hn::Gt(t, hn::Set(d, -125.0F)), value);
}

// tanh(x) to a few ulp.
HWY_INLINE VF tanh_f32(F32 d, VF x) {
  const VF a = hn::Abs(x);
  const VF z = hn::Mul(x, x);
  // Below 1/2: x + x^3 * p(x^2).
  VF p = hn::Set(d, -5.70498872745e-3F);
  p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1F));
  const VF small = hn::MulAdd(hn::Mul(p, z), x, x);
  const VF one = hn::Set(d, 1.0F);
  const VF e = exp2_f32(d, hn::Mul(a, hn::Set(d, -2.885390082F)));  // exp(-2 |x|)
  const VF large = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.5F)), small, hn::CopySign(large, x));
}

template <class T>
HWY_INLINE void load_row(const T* row, int64_t channel_stride, int64_t dim, float* out) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (channel_stride == 1) {
    int64_t c = 0;
    for (; c + lanes <= dim; c += lanes) hn::StoreU(load_f32(d, row + c), d, out + c);
    if (c < dim) {
      const size_t rest = static_cast<size_t>(dim - c);
      hn::StoreN(load_n_f32(d, row + c, rest), d, out + c, rest);
    }
    return;
  }
  for (int64_t c = 0; c < dim; ++c) {
    const F32 one;
    out[c] = hn::GetLane(load_n_f32(one, row + c * channel_stride, 1));
  }
}

HWY_INLINE void load_any_row(const std::byte* row, DType dtype, int64_t channel_stride, int64_t dim,
                             float* out) {
  switch (dtype) {
    case DType::kF32:
      return load_row(reinterpret_cast<const float*>(row), channel_stride, dim, out);
    case DType::kF16:
      return load_row(reinterpret_cast<const hwy::float16_t*>(row), channel_stride, dim, out);
    case DType::kBF16:
      return load_row(reinterpret_cast<const hwy::bfloat16_t*>(row), channel_stride, dim, out);
  }
}

void load_keys(const View& k, int64_t first, int64_t count, int64_t head, int64_t dim,
               float* keys) {
  for (int64_t i = 0; i < count; ++i) {
    load_any_row(k.at(first + i, head), k.dtype, k.channel, dim, keys + i * kKeyStride);
  }
  const int64_t full = (count + kTileKeys - 1) / kTileKeys * kTileKeys;
  for (int64_t i = count; i < full; ++i) {
    std::fill_n(keys + i * kKeyStride, dim, 0.0F);
  }
}

void pack_query(const std::byte* data, DType dtype, int64_t channel_stride, int64_t dim,
                float scale, int64_t row, float* queries) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(F32()));
  float plain[256];
  load_any_row(data, dtype, channel_stride, dim, plain);
  float* out = queries + row / width * width * dim + row % width;
  for (int64_t c = 0; c < dim; ++c) out[c * width] = plain[c] * scale;
}

// The running maximum of the logits and a sum that turns NaN where one was not finite.
struct Watch {
  VF top0, top1, odd0, odd1;
};

// One register tile's share of what to bring into the cache, spread over the multiplication: in one
// burst it would fill the line buffers and stall.
struct Ahead {
  const std::byte* weights = nullptr;
  const std::byte* keys = nullptr;
  int64_t weight_bytes = 0, key_stride = 0, key_rows = 0;  // weight_bytes: for 8 channels
  int64_t key_bytes = 0;                                   // of 8 channels
};

HWY_INLINE void fetch(Ahead* ahead) {
  for (int64_t b = 0; b < ahead->weight_bytes; b += 64) {
    __builtin_prefetch(ahead->weights + b, 0, 2);
  }
  for (int64_t i = 0; i < ahead->key_rows; ++i) {
    __builtin_prefetch(ahead->keys + i * ahead->key_stride, 0, 2);
  }
  ahead->weights += ahead->weight_bytes;
  ahead->keys += ahead->key_bytes;
}

// dim: a multiple of 8.
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys,
                              int64_t dim, Ahead ahead, float* HWY_RESTRICT out, Watch* watch) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  VF a[kTileKeys], b[kTileKeys];
#pragma GCC unroll 12
  for (int64_t i = 0; i < kTileKeys; ++i) a[i] = b[i] = hn::Zero(d);
  for (int64_t end = 8; end <= dim; end += 8) {
    fetch(&ahead);
    for (int64_t c = end - 8; c < end; ++c, q += 2 * lanes) {
      const VF q0 = hn::Load(d, q);
      const VF q1 = hn::Load(d, q + lanes);
#pragma GCC unroll 12
      for (int64_t i = 0; i < kTileKeys; ++i) {
        const VF k = hn::Set(d, keys[i * kKeyStride + c]);
        a[i] = hn::MulAdd(q0, k, a[i]);
        b[i] = hn::MulAdd(q1, k, b[i]);
      }
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < kTileKeys; ++i) {
    watch->odd0 = hn::MulAdd(a[i], hn::Zero(d), watch->odd0);
    watch->odd1 = hn::MulAdd(b[i], hn::Zero(d), watch->odd1);
    watch->top0 = hn::Max(watch->top0, a[i]);
    watch->top1 = hn::Max(watch->top1, b[i]);
    hn::Store(a[i], d, out + 2 * i * lanes);
    hn::Store(b[i], d, out + (2 * i + 1) * lanes);
  }
}

HWY_INLINE Watch multiply(const PanelTask& task) {
  const F32 d;
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  const VF lowest = hn::Neg(hn::Inf(d));
  Watch watch{lowest, lowest, hn::Zero(d), hn::Zero(d)};
  const int64_t tiles = (task.count + kTileKeys - 1) / kTileKeys;
  constexpr int64_t kFloat = sizeof(float);
  for (int64_t t = 0; t < tiles; ++t) {
    Ahead ahead;
    if (task.weights_ahead != nullptr) {
      ahead.weights =
          reinterpret_cast<const std::byte*>(task.weights_ahead + t * kTileKeys * width);
      ahead.weight_bytes = (kTileKeys * width * kFloat * 8 + task.dim - 1) / task.dim;
    }
    const int64_t first = t * task.keys_ahead.rows / tiles;
    ahead.keys = task.keys_ahead.first + first * task.keys_ahead.stride;
    ahead.key_stride = task.keys_ahead.stride;
    ahead.key_rows = (t + 1) * task.keys_ahead.rows / tiles - first;
    ahead.key_bytes = 8 * task.element;
    multiply_tile(task.queries, task.keys + t * kTileKeys * kKeyStride, task.dim, ahead,
                  task.logits + t * kTileKeys * width, &watch);
  }
  return watch;
}

// Caps the logits in place and finds the maxima anew; what is not finite stays so.
HWY_INLINE void cap_logits(const PanelTask& task, Watch* watch) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF softcap = hn::Set(d, task.softcap);
  watch->top0 = watch->top1 = hn::Neg(hn::Inf(d));
  for (int64_t i = 0; i < task.count; ++i) {
    for (int64_t half = 0; half < 2; ++half) {
      float* at = task.logits + (2 * i + half) * lanes;
      VF x = hn::Load(d, at);
      x = hn::IfThenElse(finite(d, x), hn::Mul(softcap, tanh_f32(d, x)), x);
      VF& top = half == 0 ? watch->top0 : watch->top1;
      top = hn::Max(top, x);
      hn::Store(x, d, at);
    }
  }
}

// Every row sees every key and every logit is finite.
HWY_INLINE void weigh_all(const PanelTask& task, const Watch& watch) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  VF sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  const float* HWY_RESTRICT logits = task.logits;
  float* HWY_RESTRICT weights = task.weights;
  for (int64_t i = 0; i < task.count; ++i) {
    const int64_t at = 2 * i * lanes;
    const VF w0 = exp2_f32(d, hn::Sub(hn::Load(d, logits + at), watch.top0));
    const VF w1 = exp2_f32(d, hn::Sub(hn::Load(d, logits + at + lanes), watch.top1));
    sum0 = hn::Add(sum0, w0);
    sum1 = hn::Add(sum1, w1);
    hn::Store(w0, d, weights + at);
    hn::Store(w1, d, weights + at + lanes);
  }
  hn::Store(watch.top0, d, task.top);
  hn::Store(watch.top1, d, task.top + lanes);
  hn::Store(sum0, d, task.sum);
  hn::Store(sum1, d, task.sum + lanes);
}

// The same for any visibility and any logits; one vector of the panel at a time.
HWY_INLINE bool weigh_some(const PanelTask& task, int64_t at) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  const VF lowest = hn::Neg(hn::Inf(d));
  const auto last = hn::Load(di, task.last + at);
  VF top = lowest;
  bool odd = false;
  for (int64_t i = 0; i < task.count; ++i) {
    const VF x = hn::Load(d, task.logits + i * width + at);
    const auto sees = hn::RebindMask(d, hn::Le(hn::Set(di, static_cast<int32_t>(i)), last));
    const auto good = hn::And(sees, finite(d, x));
    top = hn::Max(top, hn::IfThenElse(good, x, lowest));
    if (hn::AllFalse(d, hn::AndNot(good, sees))) continue;
    odd = true;
    if (i < task.scored) task.marks[i] = -0.0F;
  }
  VF sum = hn::Zero(d);
  for (int64_t i = 0; i < task.count; ++i) {
    const VF x = hn::Load(d, task.logits + i * width + at);
    const auto sees = hn::RebindMask(d, hn::Le(hn::Set(di, static_cast<int32_t>(i)), last));
    const VF w = hn::IfThenElseZero(hn::And(sees, finite(d, x)), exp2_f32(d, hn::Sub(x, top)));
    sum = hn::Add(sum, w);
    hn::Store(w, d, task.weights + i * width + at);
  }
  hn::Store(top, d, task.top + at);
  hn::Store(sum, d, task.sum + at);
  return odd;
}

bool weigh(const PanelTask& task) {
  const F32 d;
  Watch watch = multiply(task);
  if (task.softcap != 0) cap_logits(task, &watch);
  const VF odd = hn::Add(watch.odd0, watch.odd1);
  if (!task.masked && hn::AllTrue(d, hn::Eq(odd, odd))) {
    weigh_all(task, watch);
    return false;
  }
  const bool odd0 = weigh_some(task, 0);
  const bool odd1 = weigh_some(task, static_cast<int64_t>(hn::Lanes(d)));
  return odd0 || odd1;
}

// Sums over blocks run in groups, so that no fp32 sum has more than 4096 terms before 2^24 blocks.
constexpr int64_t kGroupBlocks = 4096;

HWY_INLINE void vector_factors(float* stats, int64_t blocks, int64_t row_stride, int64_t rows) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  VF top = hn::Neg(hn::Inf(d));
  for (int64_t b = 0; b < blocks; ++b) top = hn::Max(top, hn::Load(d, stats + 2 * b * row_stride));
  VF total = hn::Zero(d);
  for (int64_t first = 0; first < blocks; first += kGroupBlocks) {
    VF part = hn::Zero(d);
    const int64_t end = std::min(blocks, first + kGroupBlocks);
    for (int64_t b = first; b < end; ++b) {
      float* block = stats + 2 * b * row_stride;
      // Both -inf give NaN, of which exp2_f32 makes 0.
      const VF factor = exp2_f32(d, hn::Sub(hn::Load(d, block), top));
      part = hn::MulAdd(factor, hn::Load(d, block + row_stride), part);
      hn::Store(factor, d, block);
    }
    total = hn::Add(total, part);
  }
  const auto real =
      hn::RebindMask(d, hn::Lt(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(rows))));
  const auto weighs = hn::And(real, hn::Gt(total, hn::Zero(d)));
  const VF inverse = hn::IfThenElseZero(weighs, hn::Div(hn::Set(d, 1.0F), total));
  for (int64_t b = 0; b < blocks; ++b) {
    float* block = stats + 2 * b * row_stride;
    hn::Store(hn::Mul(hn::Load(d, block), inverse), d, block);
  }
}

void factors(float* stats, int64_t blocks, int64_t row_stride, int64_t rows) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32()));
  vector_factors(stats, blocks, row_stride, std::min(rows, lanes));
  vector_factors(stats + lanes, blocks, row_stride, std::clamp<int64_t>(rows - lanes, 0, lanes));
}

void accumulate(const float* weights, const float* factor, int64_t count, bool first,
                float* partial) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF f0 = hn::Load(d, factor);
  const VF f1 = hn::Load(d, factor + lanes);
  for (int64_t i = 0; i < count; ++i) {
    VF s = first ? hn::Zero(d) : hn::Load(d, partial + i * lanes);
    s = hn::MulAdd(hn::Load(d, weights + 2 * i * lanes), f0, s);
    s = hn::MulAdd(hn::Load(d, weights + (2 * i + 1) * lanes), f1, s);
    hn::Store(s, d, partial + i * lanes);
  }
}

void finish(const float* partial, int64_t count, float* scores) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; ++i) {
    const float sum = hn::ReduceSum(d, hn::Load(d, partial + i * lanes));
    scores[i] = __builtin_copysignf(sum, scores[i]);
  }
}

}  // namespace

Stage1Kernels make_stage1_kernels() {
  return {2 * static_cast<int64_t>(hn::Lanes(F32())),
          load_keys,
          pack_query,
          weigh,
          factors,
          accumulate,
          finish,
          pool_scores};
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv::cpu {

HWY_EXPORT(make_stage1_kernels);

Stage1Kernels stage1_kernels(size_t target) {
  return HWY_DISPATCH_TABLE(make_stage1_kernels)[target]();
}

int64_t pool_chunk(int64_t reach) { return std::max<int64_t>(4096, 2 * reach); }

int64_t pool_scratch_floats(int64_t reach) {
  return pool_chunk(reach) + 2 * reach + 2 * kMaxPanelRows;
}

}  // namespace rkv::cpu
#endif
