#include "core/cpu/attend.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/attend.cpp"
#include "core/cpu/target.hpp"

#include <hwy/foreach_target.h>

#include "core/cpu/attend-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

bool attend_chunk_for_target(const AttendArgs& args, int64_t chunk, bool cold,
                             const AttendScratch& scratch, const Partial& out) {
  return with_element_type(args.shape->kv, [&](auto t) {
    return attend_chunk_typed<decltype(t)>(args, chunk, cold, scratch, out);
  });
}

void merge_for_target(const Shape& shape, const Partial& later, const Partial& sum) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = value_stride(shape);
  for (int32_t g = 0; g < shape.group; ++g) {
    if (!std::isfinite(later.top[g])) continue;  // no row had weight
    float* out = sum.out + g * stride;
    const float* add = later.out + g * stride;
    if (!std::isfinite(sum.top[g])) {
      sum.top[g] = later.top[g];
      sum.total[g] = later.total[g];
      std::memcpy(out, add, static_cast<size_t>(stride) * sizeof(float));
      continue;
    }
    const float top = HWY_MAX(sum.top[g], later.top[g]);
    const VF old_weight = exp_f32(d, hn::Set(d, sum.top[g] - top));
    const VF new_weight = exp_f32(d, hn::Set(d, later.top[g] - top));
    sum.top[g] = top;
    sum.total[g] = hn::GetLane(hn::MulAdd(hn::Set(d, later.total[g]), new_weight,
                                          hn::Mul(hn::Set(d, sum.total[g]), old_weight)));
    for (int64_t c = 0; c < stride; c += lanes) {
      const VF scaled = hn::Mul(hn::Load(d, out + c), old_weight);
      hn::Store(hn::MulAdd(hn::Load(d, add + c), new_weight, scaled), d, out + c);
    }
  }
}

bool attend_rows_for_target(const AttendArgs& args, const AttendScratch& scratch,
                            const Partial& chunk, const Partial& sum) {
  return with_element_type(args.shape->kv, [&](auto t) {
    using T = decltype(t);
    const Shape& shape = *args.shape;
    clear_partial(shape, sum);
    bool nonfinite = false;
    for (int64_t c = 0; c * kChunkRows < args.count; ++c) {
      nonfinite |= attend_chunk_typed<T>(args, c, c == 0, scratch, c == 0 ? sum : chunk);
      if (c > 0) merge_for_target(shape, chunk, sum);
    }
    return nonfinite;
  });
}

void load_query_for_target(const Shape& shape, const View& q, int64_t row, int32_t head,
                           float* out) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = query_stride(shape);
  const int64_t dim = shape.head_dim;
  with_element_type(shape.query, [&](auto t) {
    using T = decltype(t);
    for (int32_t g = 0; g < shape.group; ++g) {
      const T* in = reinterpret_cast<const T*>(q.at(row, int64_t{head} * shape.group + g));
      T packed[256];
      if (q.channel != 1) {
        for (int64_t c = 0; c < dim; ++c) {
          std::memcpy(static_cast<void*>(packed + c), in + c * q.channel, sizeof(T));
        }
        in = packed;
      }
      for (int64_t c = 0; c < stride; c += lanes) {
        const size_t n = static_cast<size_t>(HWY_MAX(HWY_MIN(lanes, dim - c), int64_t{0}));
        hn::Store(load_n_f32(d, in + c, n), d, out + g * stride + c);
      }
    }
  });
}

void store_result_for_target(const Shape& shape, const Partial& sum, const View& out, int64_t row,
                             int32_t head, float* lse) {
  const F32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = value_stride(shape);
  const int64_t dim = shape.head_dim_v;
  with_element_type(out.dtype, [&](auto t) {
    using T = decltype(t);
    for (int32_t g = 0; g < shape.group; ++g) {
      const int64_t q_head = int64_t{head} * shape.group + g;
      const bool empty = !std::isfinite(sum.top[g]);
      const VF inverse = hn::Set(d, empty ? 0.0F : 1.0F / sum.total[g]);
      T packed[256];
      T* to = reinterpret_cast<T*>(out.at(row, q_head));
      T* dense = out.channel == 1 ? to : packed;
      for (int64_t c = 0; c < dim; c += lanes) {
        const size_t n = static_cast<size_t>(HWY_MIN(lanes, dim - c));
        VF x = hn::Zero(d);
        if (!empty) x = hn::Mul(hn::Load(d, sum.out + g * stride + c), inverse);
        store_n_f32(d, x, dense + c, n);
      }
      if (dense == packed) {
        for (int64_t c = 0; c < dim; ++c) {
          std::memcpy(static_cast<void*>(to + c * out.channel), packed + c, sizeof(T));
        }
      }
      if (lse != nullptr) {
        lse[row * shape.q_heads + q_head] =
            empty ? -std::numeric_limits<float>::infinity()
                  : static_cast<float>(static_cast<double>(sum.top[g]) +
                                       std::log(static_cast<double>(sum.total[g])));
      }
    }
  });
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv::cpu {

HWY_EXPORT(attend_chunk_for_target);
HWY_EXPORT(attend_rows_for_target);
HWY_EXPORT(merge_for_target);
HWY_EXPORT(load_query_for_target);
HWY_EXPORT(store_result_for_target);

Partial carve_partial(Arena& arena, const Shape& shape) {
  Partial p;
  p.top = arena.take<float>(shape.group);
  p.total = arena.take<float>(shape.group);
  p.out = arena.take<float>(value_stride(shape) * shape.group);
  return p;
}

void clear_partial(const Shape& shape, const Partial& sum) {
  for (int32_t g = 0; g < shape.group; ++g) {
    sum.top[g] = -std::numeric_limits<float>::infinity();
    sum.total[g] = 0;
  }
}

AttendScratch carve_attend(Arena& arena, const Shape& shape) {
  AttendScratch s;
  s.logits = arena.take<float>(kChunkRows * shape.group);
  s.q = arena.take<float>(query_stride(shape) * shape.group);
  return s;
}

void load_query(const Shape& shape, const View& q, int64_t row, int32_t head, float* out,
                size_t target) {
  HWY_DISPATCH_TABLE(load_query_for_target)[target](shape, q, row, head, out);
}

bool attend_chunk(const AttendArgs& args, int64_t chunk, bool cold, const AttendScratch& scratch,
                  const Partial& out, size_t target) {
  return HWY_DISPATCH_TABLE(attend_chunk_for_target)[target](args, chunk, cold, scratch, out);
}

void merge_partial(const Shape& shape, const Partial& later, const Partial& sum, size_t target) {
  HWY_DISPATCH_TABLE(merge_for_target)[target](shape, later, sum);
}

bool attend_rows(const AttendArgs& args, const AttendScratch& scratch, const Partial& chunk,
                 const Partial& sum, size_t target) {
  return HWY_DISPATCH_TABLE(attend_rows_for_target)[target](args, scratch, chunk, sum);
}

void store_result(const Shape& shape, const Partial& sum, const View& out, int64_t row,
                  int32_t head, float* lse, size_t target) {
  HWY_DISPATCH_TABLE(store_result_for_target)[target](shape, sum, out, row, head, lse);
}

}  // namespace rkv::cpu
#endif
