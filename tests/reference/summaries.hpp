// Section 3 of the algorithm: per page and channel, minimum and maximum over the page's real rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rows.hpp"

namespace rkv_ref {

struct Summaries {
  std::int64_t page_size = 1;
  Rows low;   // [pages][D]
  Rows high;  // [pages][D]

  std::int64_t pages() const { return low.count; }
};

// Live rows (kept tokens in kept order, then generated ones in order) cut into pages of P.
inline Summaries summarise(const Rows& keys, std::int64_t page_size) {
  Summaries s;
  s.page_size = page_size;
  const std::int64_t pages = (keys.count + page_size - 1) / page_size;
  s.low = Rows(pages, keys.width);
  s.high = Rows(pages, keys.width);
  for (std::int64_t j = 0; j < keys.count; ++j) {
    const double* key = keys.row(j);
    double* low = s.low.row(j / page_size);
    double* high = s.high.row(j / page_size);
    const bool opens = j % page_size == 0;
    for (std::int64_t d = 0; d < keys.width; ++d) {
      low[d] = opens ? key[d] : std::min(low[d], key[d]);
      high[d] = opens ? key[d] : std::max(high[d], key[d]);
    }
  }
  return s;
}

}  // namespace rkv_ref
