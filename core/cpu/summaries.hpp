// Page summaries: minimum and maximum of K per page and channel, over the page's real rows.
//
// A channel that holds a NaN in any row of the page has NaN for both; among -0 and +0 the earlier
// row's stays. So the summary of a page is a function of its rows in order, on every target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace rkv::cpu {

// Row `row` of K, then V, of one KV head.
template <class T>
T* kv_row(const Shape& shape, const LayerStore& store, int32_t head, int64_t row) {
  return reinterpret_cast<T*>(store.kv) +
         (head * store.rows + row) * (int64_t{shape.head_dim} + shape.head_dim_v);
}

// Block `block` of the pages of one KV head: [2][head_dim][kPageBlock].
template <class T>
T* page_block(const Shape& shape, const LayerStore& store, int32_t head, int64_t block) {
  return reinterpret_cast<T*>(store.pages) +
         (head * store.blocks + block) * (int64_t{2} * shape.head_dim * kPageBlock);
}

// Page `page` of one KV head in the tail: [2][head_dim].
template <class T>
T* tail_page(const Shape& shape, const LayerStore& store, int32_t head, int64_t page) {
  return reinterpret_cast<T*>(store.tail) +
         (head * kTailPages + page % kTailPages) * (int64_t{2} * shape.head_dim);
}

// Builds the summaries of the complete pages [first_page, end_page) of one KV head from the stored
// rows of K. Page p goes to the blocks where p < flushed, else to the tail; `flushed` is
// flushed_pages() of the rows stored in the end. Disjoint ranges may be built side by side.
// target: Target::index.
void build_pages(const Shape& shape, const LayerStore& store, int32_t head, int64_t page_size,
                 int64_t first_page, int64_t end_page, int64_t flushed, size_t target);

// Writes row `row` of the call's K and V as live row `live - 1` of one KV head. Where it completes
// a page, its summary too. page_size 0: no summaries.
void append_row(const Shape& shape, const LayerStore& store, int32_t head, const View& k,
                const View& v, int64_t row, int64_t live, int64_t page_size, size_t target);

}  // namespace rkv::cpu
