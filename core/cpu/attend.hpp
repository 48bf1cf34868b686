// Exact attention of the heads of one group over a list of rows, for one row of a call.
//
// The list is cut into chunks of kChunkRows. Each chunk is a partial result of its own, and partial
// results are merged in the list's order, so the bits do not depend on who computes which chunk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"
#include "core/cpu/workspace.hpp"

namespace rkv::cpu {

inline constexpr int64_t kChunkRows = 64;

struct AttendArgs {
  const Shape* shape = nullptr;
  const LayerStore* store = nullptr;
  AttentionOptions options;
  int32_t head = 0;
  const int32_t* list = nullptr;  // ascending rows; null: rows 0 .. count - 1
  int64_t count = 0;
  int64_t fetched = 0;       // rows [0, fetched) of the list may be brought to the cache early
  const float* q = nullptr;  // [group][query_stride(shape)], zero beyond head_dim
};

// A partial result: out = sum exp(x - top) V, not yet divided by total = sum exp(x - top).
struct Partial {
  float* top = nullptr;    // [group] largest logit, -inf where there is none
  float* total = nullptr;  // [group]
  float* out = nullptr;    // [group][value_stride(shape)]
};

// Floats from one head's output to the next in scratch memory.
inline int64_t value_stride(const Shape& shape) {
  return (shape.head_dim_v + int64_t{15}) / 16 * 16;
}

// Memory for one chunk at a time.
struct AttendScratch {
  float* logits = nullptr;  // [group][kChunkRows]
  float* q = nullptr;       // [group][query_stride(shape)], the queries in the order of the reads
};

Partial carve_partial(Arena& arena, const Shape& shape);
// To the sum of nothing.
void clear_partial(const Shape& shape, const Partial& sum);
AttendScratch carve_attend(Arena& arena, const Shape& shape);

// Row `row`, heads of KV head `head`, as floats: [group][query_stride(shape)], zero
// beyond head_dim.
void load_query(const Shape& shape, const View& q, int64_t row, int32_t head, float* out,
                size_t target);

// Attention over one chunk of the list. cold: the chunk before was not worked on by this thread, so
// nothing of this one is in the cache. Returns whether a logit was not finite.
bool attend_chunk(const AttendArgs& args, int64_t chunk, bool cold, const AttendScratch& scratch,
                  const Partial& out, size_t target);

// Adds a later chunk's result to `sum`.
void merge_partial(const Shape& shape, const Partial& later, const Partial& sum, size_t target);

// All chunks in order, to `sum`; `chunk` is scratch. Returns whether a logit was not finite.
bool attend_rows(const AttendArgs& args, const AttendScratch& scratch, const Partial& chunk,
                 const Partial& sum, size_t target);

// Writes the finished result to the call's output, and the log-sum-exp where lse is not null.
void store_result(const Shape& shape, const Partial& sum, const View& out, int64_t row,
                  int32_t head, float* lse, size_t target);

}  // namespace rkv::cpu
