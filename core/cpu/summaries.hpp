// Page summaries: minimum and maximum of K per page and channel, over the page's real rows.
//
// A channel that holds a NaN in any row of the page has NaN for both; among -0 and +0 the earlier
// row's stays. So the summary of a page is a function of its rows in order, on every target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace rkv::cpu {

// Builds the summaries of the complete pages [first_page, end_page) of one KV head from the stored
// rows of K. Page p goes to the blocks where p < flushed, else to the tail; `flushed` is
// flushed_pages() of the rows stored in the end. Disjoint ranges may be built side by side.
// target: Target::index.
void build_pages(const Shape& shape, const LayerStore& store, int32_t head, int64_t page_size,
                 int64_t first_page, int64_t end_page, int64_t flushed, size_t target);

}  // namespace rkv::cpu
