// Section 4.1 to 4.5 of the algorithm: which live rows one group reads in one decode step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "rows.hpp"
#include "summaries.hpp"

namespace rkv_ref {

struct Stage2Options {
  std::int64_t num_channels = 1;  // r
  std::int64_t top_k = 1;         // k, in tokens
  bool tokens_unit = false;       // exactly k tokens instead of ceil(k / P) pages
  bool page_softmax = false;      // softmax over pages instead of live tokens
  bool sqrt_d = false;            // tau = sqrt(D) instead of SparQ's
  std::int64_t recent = 0;
  std::int64_t sinks = 0;
  double scale = 0;  // 0 = 1/sqrt(D)
};

struct Stage2Result {
  bool dense = false;                  // k >= live rows
  std::vector<double> strength;        // [D] sum over the group of |q|
  std::vector<std::int64_t> channels;  // all D, strongest first; I is the first r of them
  std::vector<double> direction;       // [D] sum over the group of q
  Rows score;                          // [G][pages], -inf where not finite
  std::vector<double> rank;            // [pages], by which pages are taken
  double noise = 0;                    // G = 1: largest sum of |terms| of a page score
  std::vector<bool> forced;            // [pages]
  std::vector<std::int64_t> order;     // pages as they are taken: forced first, then by rank
  std::vector<std::int64_t> rows;      // the selection, ascending live rows
};

// All D channels, strongest first; ties go to the lower channel.
inline std::vector<std::int64_t> rank_channels(const std::vector<double>& strength) {
  std::vector<std::int64_t> order(strength.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return strength[a] != strength[b] ? strength[a] > strength[b] : a < b;
  });
  return order;
}

// Step 3 for one head. I is the first r of result.channels, the side that of result.direction.
inline void score_pages(const double* q, const Summaries& pages, const Stage2Options& options,
                        Stage2Result* result, std::int64_t g) {
  const std::int64_t dim = pages.low.width;
  double part = 0;
  double whole = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const double magnitude = std::fabs(q[result->channels[i]]);
    if (i < options.num_channels) part += magnitude;
    whole += magnitude;
  }
  const double scale = resolve_scale(options.scale, dim);
  const double tau =
      options.sqrt_d ? std::sqrt(static_cast<double>(dim)) : std::sqrt(part / whole) / scale;
  for (std::int64_t p = 0; p < pages.pages(); ++p) {
    double sum = 0;
    double terms = 0;
    for (std::int64_t i = 0; i < options.num_channels; ++i) {
      const std::int64_t d = result->channels[i];
      const double bound = result->direction[d] > 0 ? pages.high.row(p)[d] : pages.low.row(p)[d];
      sum += q[d] * bound;
      terms += std::fabs(q[d] * bound);
    }
    if (part == 0) continue;  // s stays 0: the quotient would be 0/0
    const double s = sum / tau;
    if (finite32(sum) && finite32(s)) {
      result->score.row(g)[p] = s;
      result->noise = std::max(result->noise, terms / tau);
    } else {
      result->score.row(g)[p] = -std::numeric_limits<double>::infinity();
    }
  }
}

// Step 4: G = 1 ranks by the score itself, a larger group by the sum over its heads of the
// probability of one token of the page.
inline std::vector<double> rank_scores(const Rows& score, std::int64_t live, std::int64_t page_size,
                                       bool page_softmax) {
  const std::int64_t pages = score.width;
  std::vector<double> rank(static_cast<std::size_t>(pages), 0.0);
  if (score.count == 1) {
    rank.assign(score.row(0), score.row(0) + pages);
    return rank;
  }
  for (std::int64_t g = 0; g < score.count; ++g) {
    const double* s = score.row(g);
    const double top = *std::max_element(s, s + pages);
    if (std::isinf(top)) continue;  // no finite score in this head
    double total = 0;
    for (std::int64_t p = 0; p < pages; ++p) {
      const std::int64_t tokens = std::min(page_size, live - p * page_size);
      total += (page_softmax ? 1.0 : static_cast<double>(tokens)) * std::exp(s[p] - top);
    }
    for (std::int64_t p = 0; p < pages; ++p) rank[p] += std::exp(s[p] - top) / total;
  }
  return rank;
}

// Step 5. Fills forced, order and rows.
inline void select_pages(std::int64_t live, std::int64_t page_size, const Stage2Options& options,
                         Stage2Result* result) {
  const std::int64_t pages = static_cast<std::int64_t>(result->rank.size());
  result->forced.assign(result->rank.size(), false);
  for (std::int64_t j = 0; j < live; ++j) {
    if (j < options.sinks || j >= live - options.recent) result->forced[j / page_size] = true;
  }
  result->order.resize(result->rank.size());
  std::iota(result->order.begin(), result->order.end(), 0);
  std::sort(result->order.begin(), result->order.end(), [&](std::int64_t a, std::int64_t b) {
    if (result->forced[a] != result->forced[b]) return static_cast<bool>(result->forced[a]);
    if (result->rank[a] != result->rank[b]) return result->rank[a] > result->rank[b];
    return a < b;
  });
  const std::int64_t best =
      options.tokens_unit ? pages : (options.top_k + page_size - 1) / page_size;
  for (std::int64_t n = 0; n < std::min(best, pages); ++n) {
    const std::int64_t first = result->order[n] * page_size;
    for (std::int64_t j = first; j < std::min(first + page_size, live); ++j) {
      const bool full = static_cast<std::int64_t>(result->rows.size()) >= options.top_k;
      if (options.tokens_unit && full) break;  // the edge page is cut after its first tokens
      result->rows.push_back(j);
    }
  }
  std::sort(result->rows.begin(), result->rows.end());
}

// q: Rows{G, D}; keys: all live rows, the new token's among them. `hint`, when given, replaces the
// channel order and the direction: a test uses it where fp32 cannot tell two channels apart.
inline Stage2Result stage2(const Rows& q, const Rows& keys, std::int64_t page_size,
                           const Stage2Options& options, const Stage2Result* hint = nullptr) {
  Stage2Result result;
  const std::int64_t live = keys.count;
  if (options.top_k >= live) {
    result.dense = true;
    result.rows.resize(static_cast<std::size_t>(live));
    std::iota(result.rows.begin(), result.rows.end(), 0);
    return result;
  }
  const Summaries pages = summarise(keys, page_size);
  result.strength.assign(static_cast<std::size_t>(q.width), 0.0);
  result.direction.assign(static_cast<std::size_t>(q.width), 0.0);
  for (std::int64_t g = 0; g < q.count; ++g) {
    for (std::int64_t d = 0; d < q.width; ++d) {
      result.strength[d] += std::fabs(q.row(g)[d]);
      result.direction[d] += q.row(g)[d];
    }
  }
  result.channels = rank_channels(result.strength);
  if (hint != nullptr) {
    result.channels = hint->channels;
    result.direction = hint->direction;
  }
  result.score = Rows(q.count, pages.pages());
  for (std::int64_t g = 0; g < q.count; ++g) score_pages(q.row(g), pages, options, &result, g);
  result.rank = rank_scores(result.score, live, page_size, options.page_softmax);
  select_pages(live, page_size, options, &result);
  return result;
}

}  // namespace rkv_ref
