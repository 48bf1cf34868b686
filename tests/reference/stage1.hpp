// Section 2 of the algorithm: which prompt tokens of one KV head are kept for good.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "rows.hpp"

namespace rkv_ref {

struct Stage1Options {
  std::int64_t window = 32;
  std::int64_t kernel = 63;
  std::int64_t sinks = 0;
  bool prefix_only = false;   // softmax over j < S - w only
  bool average = false;       // average instead of maximum pooling
  bool key_as_query = false;  // the last w keys stand in for the queries, G = 1
  double scale = 0;           // 0 = 1/sqrt(D)
  double softcap = 0;         // 0 = off
};

struct Stage1Result {
  bool identity = false;           // S <= prompt_budget: everything kept, nothing scored
  bool nonfinite = false;          // some scored logit was not finite
  std::int64_t window_rows = 0;    // w
  std::vector<double> score;       // [S - w] before pooling
  std::vector<double> pooled;      // [S - w]
  std::vector<std::int64_t> kept;  // ascending positions
};

// Sum over window rows and heads of the softmax weight of each prefix key. `bad[j]` marks keys that
// met a non-finite logit. queries: Rows{w * G, D}, row i * G + g.
inline std::vector<double> window_scores(const Rows& queries, std::int64_t group, const Rows& keys,
                                         std::int64_t w, const Stage1Options& options,
                                         std::vector<bool>* bad) {
  const std::int64_t prompt = keys.count;
  const std::int64_t prefix = prompt - w;
  const double scale = resolve_scale(options.scale, keys.width);
  std::vector<double> score(static_cast<std::size_t>(prefix), 0.0);
  std::vector<double> x(static_cast<std::size_t>(prompt));
  bad->assign(static_cast<std::size_t>(prompt), false);
  for (std::int64_t i = 0; i < w; ++i) {
    for (std::int64_t g = 0; g < group; ++g) {
      const std::int64_t end = options.prefix_only ? prefix : prefix + i + 1;  // j <= position(i)
      double top = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = 0; j < end; ++j) {
        bool finite = true;
        x[j] = logit(queries.row(i * group + g), keys.row(j), keys.width, scale, options.softcap,
                     &finite);
        if (!finite) {
          x[j] = -std::numeric_limits<double>::infinity();
          (*bad)[j] = true;
        }
        top = std::max(top, x[j]);
      }
      if (std::isinf(top)) continue;  // no key left in this row
      double total = 0;
      for (std::int64_t j = 0; j < end; ++j) total += std::exp(x[j] - top);
      for (std::int64_t j = 0; j < prefix; ++j) score[j] += std::exp(x[j] - top) / total;
    }
  }
  return score;
}

// Stride 1, odd kernel, inside the prefix only: maximum (padding -inf) or average (zeros outside,
// the divisor is always the kernel).
inline std::vector<double> pool(const std::vector<double>& score, std::int64_t kernel,
                                bool average) {
  const std::int64_t n = static_cast<std::int64_t>(score.size());
  std::vector<double> pooled(score.size());
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t first = std::max<std::int64_t>(0, j - kernel / 2);
    const std::int64_t last = std::min(n - 1, j + kernel / 2);
    double top = score[first];
    double sum = 0;
    for (std::int64_t i = first; i <= last; ++i) {
      top = std::max(top, score[i]);
      sum += score[i];
    }
    pooled[j] = average ? sum / static_cast<double>(kernel) : top;
  }
  return pooled;
}

// Candidates [sinks, S - w) best first: pooled score, then unpooled score, then lower index.
inline std::vector<std::int64_t> rank_prefix(const std::vector<double>& pooled,
                                             const std::vector<double>& score, std::int64_t sinks) {
  std::vector<std::int64_t> order(score.size() - static_cast<std::size_t>(sinks));
  std::iota(order.begin(), order.end(), sinks);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    if (pooled[a] != pooled[b]) return pooled[a] > pooled[b];
    if (score[a] != score[b]) return score[a] > score[b];
    return a < b;
  });
  return order;
}

// queries: the rows given that end at the prompt's end, Rows{n * G, D}; more than W are cut off.
inline Stage1Result stage1(const Rows& queries, std::int64_t group, const Rows& keys,
                           std::int64_t prompt_budget, const Stage1Options& options) {
  Stage1Result result;
  const std::int64_t prompt = keys.count;
  const std::int64_t given = options.key_as_query ? prompt : queries.count / group;
  const std::int64_t w = std::min(options.window, given);
  result.window_rows = w;
  if (prompt <= prompt_budget) {
    result.identity = true;
    result.kept.resize(static_cast<std::size_t>(prompt));
    std::iota(result.kept.begin(), result.kept.end(), 0);
    return result;
  }

  const std::int64_t heads = options.key_as_query ? 1 : group;
  const Rows& source = options.key_as_query ? keys : queries;
  Rows window(w * heads, keys.width);
  std::copy(source.row(source.count - w * heads), source.row(source.count), window.row(0));

  std::vector<bool> bad;
  result.score = window_scores(window, heads, keys, w, options, &bad);
  result.pooled = pool(result.score, options.kernel, options.average);
  for (std::int64_t j = 0; j < prompt; ++j) {
    if (!bad[j]) continue;
    result.nonfinite = true;
    if (j < prompt - w) result.pooled[j] = -std::numeric_limits<double>::infinity();
  }

  const std::int64_t chosen = prompt_budget - w - options.sinks;
  std::vector<std::int64_t> order = rank_prefix(result.pooled, result.score, options.sinks);
  result.kept.assign(order.begin(), order.begin() + chosen);
  for (std::int64_t j = 0; j < options.sinks; ++j) result.kept.push_back(j);
  for (std::int64_t j = prompt - w; j < prompt; ++j) result.kept.push_back(j);
  std::sort(result.kept.begin(), result.kept.end());
  return result;
}

}  // namespace rkv_ref
