#include "core/cpu/stage1_select.hpp"

#include <cmath>
#include <cstring>

#include "core/cpu/topk.hpp"

namespace rkv::cpu {
namespace {

template <class T>
void copy_elements(std::byte* to, const std::byte* from, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)),
                from + i * stride * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }
}

void copy_row(std::byte* to, const View& view, int64_t row, int64_t head, int64_t dim) {
  const std::byte* from = view.at(row, head);
  if (view.channel == 1) {
    std::memcpy(to, from, static_cast<size_t>(dim * dtype_bytes(view.dtype)));
  } else if (dtype_bytes(view.dtype) == 4) {
    copy_elements<uint32_t>(to, from, view.channel, dim);
  } else {
    copy_elements<uint16_t>(to, from, view.channel, dim);
  }
}

// Kept rows lie apart in memory, too far for the hardware to guess the next one.
constexpr int64_t kRowsAhead = 8;

void fetch_row(const View& view, int64_t row, int64_t head, int64_t dim) {
  if (view.channel != 1) return;
  const std::byte* from = view.at(row, head);
  const int64_t bytes = dim * dtype_bytes(view.dtype);
  for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(from + b);
}

}  // namespace

void choose_rows(const Stage1Task& task, const float* scores, uint32_t* rank_keys,
                 int32_t* positions) {
  const int64_t prefix = task.prompt - task.window;
  const int64_t wanted = task.keep - task.sinks - task.window;
  for (int64_t i = 0; i < task.sinks; ++i) *positions++ = static_cast<int32_t>(i);
  if (wanted > 0) {
    const int64_t n = prefix - task.sinks;
    uint32_t* keys = rank_keys + task.sinks;
    // The cut on pooled scores splits the candidates in three. The same search over 'surely in',
    // the unpooled score inside the plateau at the cut, and 'surely out' settles the plateau.
    const uint32_t pooled_cut = find_cut(keys, n, wanted).key;
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t tie = ordered_key(std::fabs(scores[task.sinks + i]));
      keys[i] = keys[i] > pooled_cut ? UINT32_MAX : keys[i] == pooled_cut ? tie : 0;
    }
    const Cut cut = find_cut(keys, n, wanted);
    int64_t equal = wanted - cut.above;
    for (int64_t i = 0; i < n; ++i) {
      if (keys[i] < cut.key || (keys[i] == cut.key && equal-- <= 0)) continue;
      *positions++ = static_cast<int32_t>(task.sinks + i);
    }
  }
  for (int64_t i = prefix; i < task.prompt; ++i) *positions++ = static_cast<int32_t>(i);
}

void gather_rows(const Stage1Task& task, const Shape& shape, int64_t head, int64_t first,
                 int64_t count) {
  const int64_t element = dtype_bytes(shape.kv);
  const int64_t width = shape.head_dim + shape.head_dim_v;
  const int32_t* positions = task.store.positions + head * task.store.kept;
  std::byte* row = task.store.kv + (head * task.store.rows + first) * width * element;
  for (int64_t i = first; i < first + count; ++i, row += width * element) {
    if (i + kRowsAhead < first + count) {
      fetch_row(task.k, positions[i + kRowsAhead], head, shape.head_dim);
      fetch_row(task.v, positions[i + kRowsAhead], head, shape.head_dim_v);
    }
    copy_row(row, task.k, positions[i], head, shape.head_dim);
    copy_row(row + shape.head_dim * element, task.v, positions[i], head, shape.head_dim_v);
  }
}

}  // namespace rkv::cpu
