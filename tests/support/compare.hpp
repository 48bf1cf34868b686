// The tolerance of algorithm.md section 6. Every function returns "" or says what is wrong, and
// prints each exchange that the rule allows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../reference/sequence.hpp"
#include "tensor.hpp"

namespace rkv_test {

// Members may change places where their score is this near the cut, relative to it.
inline constexpr double kRelative = 2e-5;
// Below this exp underflows in fp32 and everything ties at zero.
inline constexpr double kUnderflow = 1e-36;
// What fp32 sums of terms of total size 1 cannot tell apart (a few units of 2^-24).
inline constexpr double kRounding = 2.5e-7;
inline constexpr double kOutput = 5e-5;

inline std::string format(const char* pattern, long long a, double x, double y) {
  char text[200];
  std::snprintf(text, sizeof text, pattern, a, x, y);
  return text;
}

struct Cut {
  double value = 0;
  double slack = 0;
  bool below(double x) const { return std::isinf(value) ? x < value : x < value - slack; }
  bool above(double x) const { return std::isinf(value) ? x > value : x > value + slack; }
  bool near(double x) const { return !below(x) && !above(x); }
};

inline Cut make_cut(double value, double noise = 0) {
  return {value, kRelative * std::fabs(value) + kUnderflow + kRounding * noise};
}

// Sets that differ, as (only in the first, only in the second).
struct Difference {
  std::vector<std::int64_t> first, second;
};
inline Difference difference(const std::vector<std::int64_t>& a,
                             const std::vector<std::int64_t>& b) {
  Difference d;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(d.first));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(d.second));
  return d;
}

inline bool strictly_ascending(const std::vector<std::int64_t>& v) {
  return std::adjacent_find(v.begin(), v.end(), std::greater_equal<std::int64_t>()) == v.end();
}

// Kept prompt positions of one head against the reference's stage 1.
inline std::string compare_kept(const std::vector<std::int64_t>& kept,
                                const rkv_ref::Stage1Result& reference, std::int64_t prompt,
                                std::int64_t sinks, bool max_pooling = true) {
  if (!strictly_ascending(kept)) return "kept positions are not strictly ascending";
  if (kept.size() != reference.kept.size()) {
    return "kept " + std::to_string(kept.size()) + " rows, expected " +
           std::to_string(reference.kept.size());
  }
  if (kept == reference.kept) return "";
  const std::int64_t prefix = prompt - reference.window_rows;
  // The cut is the worst candidate that the reference kept; the plateau is everything near it.
  const std::vector<std::int64_t> order =
      rkv_ref::rank_prefix(reference.pooled, reference.score, sinks);
  const std::int64_t chosen =
      static_cast<std::int64_t>(reference.kept.size()) - reference.window_rows - sinks;
  if (chosen <= 0) return "sinks and window are not what was kept";
  const std::int64_t edge = order[chosen - 1];
  const Cut cut = make_cut(reference.pooled[edge]);
  const Cut inner = make_cut(reference.score[edge]);
  bool one_plateau = max_pooling;  // only a maximum is the same number all over its plateau
  for (std::int64_t j : order) {
    if (cut.near(reference.pooled[j]) && reference.pooled[j] != cut.value) one_plateau = false;
  }
  const Difference d = difference(kept, reference.kept);
  for (std::int64_t j : d.first) {
    if (j < 0 || j >= prefix) return format("kept position %lld out of range", j, 0, 0);
    const double x = reference.pooled[j];
    if (cut.below(x))
      return format("kept %lld: pooled %.9g is below the cut %.9g", j, x, cut.value);
    if (one_plateau && inner.below(reference.score[j])) {
      return format("kept %lld of the plateau: score %.9g, cut %.9g", j, reference.score[j],
                    inner.value);
    }
    std::printf("exchange: kept %lld, pooled %.9g, cut %.9g\n", static_cast<long long>(j), x,
                cut.value);
  }
  for (std::int64_t j : d.second) {
    if (j < sinks || j >= prefix) return format("dropped %lld of window or sinks", j, 0, 0);
    const double x = reference.pooled[j];
    if (cut.above(x)) {
      return format("dropped %lld: pooled %.9g is above the cut %.9g", j, x, cut.value);
    }
    if (one_plateau && inner.above(reference.score[j])) {
      return format("dropped %lld of the plateau: score %.9g, cut %.9g", j, reference.score[j],
                    inner.value);
    }
    std::printf("exchange: dropped %lld, pooled %.9g, cut %.9g\n", static_cast<long long>(j), x,
                cut.value);
  }
  return "";
}

// One selection list against one reference selection (not dense).
inline std::string compare_pages(const std::vector<std::int64_t>& rows,
                                 const rkv_ref::Stage2Result& reference, std::int64_t live,
                                 std::int64_t page_size, const rkv_ref::Stage2Options& options,
                                 bool single_head, std::vector<std::string>* exchanges) {
  if (!strictly_ascending(rows)) return "selection is not strictly ascending";
  if (rows.size() > 0 && (rows.front() < 0 || rows.back() >= live)) return "row out of range";
  if (rows == reference.rows) return "";

  const std::int64_t pages = static_cast<std::int64_t>(reference.rank.size());
  std::vector<std::int64_t> taken(static_cast<std::size_t>(pages), 0);
  for (std::int64_t j : rows) {
    if (j % page_size != taken[j / page_size])
      return format("row %lld opens a gap in its page", j, 0, 0);
    ++taken[j / page_size];
  }
  std::int64_t touched = 0, partial = 0;
  for (std::int64_t p = 0; p < pages; ++p) {
    const std::int64_t size = std::min(page_size, live - p * page_size);
    touched += taken[p] > 0;
    partial += taken[p] > 0 && taken[p] < size;
  }
  if (options.tokens_unit) {
    if (static_cast<std::int64_t>(rows.size()) != options.top_k) return "not exactly k tokens";
    if (partial > 1) return "more than one page is cut";
  } else {
    const std::int64_t best = (options.top_k + page_size - 1) / page_size;
    if (partial > 0) return "a page is cut";
    if (touched != std::min(best, pages)) return format("%lld pages selected", touched, 0, 0);
  }

  std::int64_t last = 0;  // the last page that the reference touches, in the order of taking
  std::vector<bool> in_reference(static_cast<std::size_t>(pages), false);
  for (std::int64_t j : reference.rows) in_reference[j / page_size] = true;
  for (std::int64_t p : reference.order) {
    if (in_reference[p]) last = p;
  }
  const Cut cut = make_cut(reference.rank[last], single_head ? reference.noise : 0);
  for (std::int64_t p = 0; p < pages; ++p) {
    const std::int64_t size = std::min(page_size, live - p * page_size);
    const int tier =
        static_cast<int>(reference.forced[p]) - static_cast<int>(reference.forced[last]);
    const double x = reference.rank[p];
    const bool must = tier > 0 || (tier == 0 && cut.above(x));
    const bool may = tier > 0 || (tier == 0 && !cut.below(x));
    if (must && taken[p] != size)
      return format("page %lld missing: %.9g, cut %.9g", p, x, cut.value);
    if (!may && taken[p] != 0) return format("page %lld taken: %.9g, cut %.9g", p, x, cut.value);
    if ((taken[p] > 0) != in_reference[p]) {
      exchanges->push_back(format("exchange: page %lld, score %.9g, cut %.9g", p, x, cut.value));
    }
  }
  return "";
}

// The channel orders and directions that fp32 cannot tell from the reference's own.
inline std::vector<rkv_ref::Stage2Result> rounding_twins(const rkv_ref::Stage2Result& reference,
                                                         std::int64_t num_channels) {
  std::vector<rkv_ref::Stage2Result> twins;
  const auto vary_directions = [&](const rkv_ref::Stage2Result& base) {
    for (std::int64_t i = 0; i < num_channels; ++i) {
      const std::int64_t d = base.channels[i];
      if (std::fabs(base.direction[d]) > 1e-6 * base.strength[d]) continue;
      twins.push_back(base);
      twins.back().direction[d] = base.direction[d] > 0 ? -1.0 : 1.0;
    }
  };
  vary_directions(reference);
  if (num_channels < static_cast<std::int64_t>(reference.channels.size())) {
    rkv_ref::Stage2Result swapped = reference;
    std::int64_t& in = swapped.channels[num_channels - 1];
    std::int64_t& out = swapped.channels[num_channels];
    if (reference.strength[in] - reference.strength[out] <= 1e-6 * reference.strength[in]) {
      std::swap(in, out);
      twins.push_back(swapped);
      vary_directions(swapped);
    }
  }
  return twins;
}

// The selection of one head of a step against the reference, exchanges printed.
inline std::string compare_selection(const std::vector<std::int64_t>& rows,
                                     const rkv_ref::Sequence& sequence, std::int64_t h,
                                     const double* q) {
  const rkv_ref::Stage2Result reference = sequence.select(h, q);
  const std::int64_t live = sequence.live();
  const std::int64_t page = sequence.plan().page_size;
  if (reference.dense) {
    return rows == reference.rows ? "" : "not every live row of a dense step is listed";
  }
  const bool single = sequence.config().group() == 1;
  const rkv_ref::Stage2Options& options = sequence.config().stage2;
  std::vector<std::string> exchanges;
  const std::string verdict =
      compare_pages(rows, reference, live, page, options, single, &exchanges);
  if (!verdict.empty() && !single) {  // with one head |q| and the sign of q are exact
    for (const auto& hint : rounding_twins(reference, options.num_channels)) {
      const rkv_ref::Stage2Result twin = sequence.select(h, q, &hint);
      exchanges.clear();
      if (!compare_pages(rows, twin, live, page, options, single, &exchanges).empty()) continue;
      std::printf("exchange: two channels or a sign within rounding, head %lld\n",
                  static_cast<long long>(h));
      for (const auto& text : exchanges) std::printf("%s\n", text.c_str());
      return "";
    }
  }
  if (verdict.empty()) {
    for (const auto& text : exchanges) std::printf("%s\n", text.c_str());
  }
  return verdict;
}

// One output row of one head. In a 16-bit type every value between the roundings of both ends of
// the tolerance is right.
inline std::string compare_output(const HostTensor& out, std::int64_t row, std::int64_t head,
                                  float lse, const rkv_ref::AttentionResult& reference,
                                  double tolerance = kOutput) {
  for (std::int64_t d = 0; d < out.width(); ++d) {
    const float x = out.value(row, head, d);
    const float low = rounded(out.dtype(), static_cast<float>(reference.out[d] - tolerance));
    const float high = rounded(out.dtype(), static_cast<float>(reference.out[d] + tolerance));
    if (!(x >= low && x <= high)) {
      return format("output %lld is %.9g, expected %.9g", d, x, reference.out[d]);
    }
  }
  if (std::isinf(reference.lse)) {
    return lse == reference.lse ? "" : format("lse of %lld no rows is %.9g", 0, lse, 0);
  }
  const double slack = kOutput * std::max(1.0, std::fabs(reference.lse));
  if (!(std::fabs(lse - reference.lse) <= slack)) {
    return format("lse of head %lld is %.9g, expected %.9g", head, lse, reference.lse);
  }
  return "";
}

}  // namespace rkv_test
