// Section 4.6 of the algorithm: exact attention of one head over chosen rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rows.hpp"

namespace rkv_ref {

struct AttentionResult {
  std::vector<double> out;     // [Dv], 0 where no row is left
  double lse = 0;              // natural log, -inf where no row is left
  std::vector<double> weight;  // one per chosen row
  bool nonfinite = false;
};

inline AttentionResult attention(const double* q, const Rows& keys, const Rows& values,
                                 const std::vector<std::int64_t>& rows, double scale,
                                 double softcap) {
  AttentionResult result;
  result.out.assign(static_cast<std::size_t>(values.width), 0.0);
  result.lse = -std::numeric_limits<double>::infinity();
  result.weight.assign(rows.size(), -std::numeric_limits<double>::infinity());
  scale = resolve_scale(scale, keys.width);
  double top = -std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < rows.size(); ++n) {
    bool finite = true;
    const double x = logit(q, keys.row(rows[n]), keys.width, scale, softcap, &finite);
    if (finite) {
      result.weight[n] = x;
      top = std::max(top, x);
    } else {
      result.nonfinite = true;
    }
  }
  if (std::isinf(top)) {
    std::fill(result.weight.begin(), result.weight.end(), 0.0);
    return result;
  }
  double total = 0;
  for (double& w : result.weight) {
    w = std::exp(w - top);
    total += w;
  }
  result.lse = top + std::log(total);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    result.weight[n] /= total;
    if (result.weight[n] == 0) continue;  // a row that weighs nothing is not looked at
    const double* value = values.row(rows[n]);
    for (std::int64_t d = 0; d < values.width; ++d) result.out[d] += result.weight[n] * value[d];
  }
  return result;
}

}  // namespace rkv_ref
