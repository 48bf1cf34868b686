#include "core/cpu/summaries.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/summaries.cpp"
#include "core/cpu/target.hpp"

#include <hwy/foreach_target.h>

#include "core/cpu/summaries-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rkv::cpu::HWY_NAMESPACE {

// Copies `count` row-major pages, [count][2][head_dim], to columns [column, column + count) of a
// block.
template <class T>
void transpose_pages(const T* pages, int64_t count, int64_t head_dim, int64_t column, T* block) {
  const int64_t width = 2 * head_dim;
  for (int64_t i = 0; i < width; ++i) {
    T* to = block + i * kPageBlock + column;
    for (int64_t p = 0; p < count; ++p) to[p] = pages[p * width + i];
  }
}

template <class T>
void build_typed(const Shape& shape, const LayerStore& store, int32_t head, int64_t page_size,
                 int64_t first, int64_t end, int64_t flushed) {
  const int64_t dim = shape.head_dim;
  const int64_t stride = dim + shape.head_dim_v;
  T batch[kTailPages * 2 * 256];  // head_dim <= 256
  for (int64_t page = first; page < end;) {
    const T* rows = kv_row<T>(shape, store, head, page * page_size);
    if (page >= flushed) {
      summarise_rows(rows, stride, page_size, dim, tail_page<T>(shape, store, head, page));
      ++page;
      continue;
    }
    // Up to the next multiple of kTailPages, which divides a block.
    const int64_t count = HWY_MIN(kTailPages - page % kTailPages, HWY_MIN(end, flushed) - page);
    for (int64_t p = 0; p < count; ++p) {
      summarise_rows(rows + p * page_size * stride, stride, page_size, dim, batch + p * 2 * dim);
    }
    transpose_pages(batch, count, dim, page % kPageBlock,
                    page_block<T>(shape, store, head, page / kPageBlock));
    page += count;
  }
}

void build_for_target(const Shape& shape, const LayerStore& store, int32_t head, int64_t page_size,
                      int64_t first, int64_t end, int64_t flushed) {
  with_element_type(shape.kv, [&](auto t) {
    build_typed<decltype(t)>(shape, store, head, page_size, first, end, flushed);
  });
}

template <class T>
void copy_channels(const View& view, int64_t row, int64_t head, int64_t channels, T* out) {
  const T* in = reinterpret_cast<const T*>(view.at(row, head));
  if (view.channel == 1) {
    std::memcpy(out, in, static_cast<size_t>(channels) * sizeof(T));
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      std::memcpy(static_cast<void*>(out + c), in + c * view.channel, sizeof(T));
    }
  }
}

template <class T>
void append_typed(const Shape& shape, const LayerStore& store, int32_t head, const View& k,
                  const View& v, int64_t row, int64_t live, int64_t page_size) {
  const int64_t dim = shape.head_dim;
  T* out = kv_row<T>(shape, store, head, live - 1);
  copy_channels(k, row, head, dim, out);
  copy_channels(v, row, head, shape.head_dim_v, out + dim);
  if (page_size == 0 || live % page_size != 0) return;
  const int64_t page = live / page_size - 1;
  summarise_rows(kv_row<T>(shape, store, head, page * page_size), dim + shape.head_dim_v, page_size,
                 dim, tail_page<T>(shape, store, head, page));
  if ((page + 1) % kTailPages != 0) return;
  const int64_t first = page + 1 - kTailPages;
  transpose_pages(tail_page<T>(shape, store, head, first), kTailPages, dim, first % kPageBlock,
                  page_block<T>(shape, store, head, first / kPageBlock));
}

void append_for_target(const Shape& shape, const LayerStore& store, int32_t head, const View& k,
                       const View& v, int64_t row, int64_t live, int64_t page_size) {
  with_element_type(shape.kv, [&](auto t) {
    append_typed<decltype(t)>(shape, store, head, k, v, row, live, page_size);
  });
}

}  // namespace rkv::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rkv::cpu {

HWY_EXPORT(build_for_target);
HWY_EXPORT(append_for_target);

void build_pages(const Shape& shape, const LayerStore& store, int32_t head, int64_t page_size,
                 int64_t first_page, int64_t end_page, int64_t flushed, size_t target) {
  HWY_DISPATCH_TABLE(build_for_target)
  [target](shape, store, head, page_size, first_page, end_page, flushed);
}

void append_row(const Shape& shape, const LayerStore& store, int32_t head, const View& k,
                const View& v, int64_t row, int64_t live, int64_t page_size, size_t target) {
  HWY_DISPATCH_TABLE(append_for_target)[target](shape, store, head, k, v, row, live, page_size);
}

}  // namespace rkv::cpu
#endif
