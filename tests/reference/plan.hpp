// Section 1 of the algorithm: from one number to all the sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rkv_ref {

struct PlanInput {
  std::int64_t prompt_tokens = 0;  // S, or the length of the store in multi-turn
  std::int64_t max_new = 0;
  std::int64_t head_dim = 0;
  std::int64_t token_budget = 0;  // t; exactly one of this and `ratio` is given
  double ratio = 0;               // c
  std::int64_t window = 32;
  std::int64_t sinks = 0;
  // Set by hand; 0 = from the plan.
  std::int64_t prompt_budget = 0;
  std::int64_t page_size = 0;
  std::int64_t num_channels = 0;
  std::int64_t top_k = 0;
  bool multi_turn = false;  // only the reported storage ratio differs
};

struct Plan {
  bool raised = false;
  bool dense = false;
  std::int64_t cap = 0;
  std::int64_t prompt_budget = 0;
  std::int64_t page_size = 0;     // P
  std::int64_t num_channels = 0;  // r
  std::int64_t top_k = 0;         // k
  std::int64_t token_budget = 0;  // t after clamping
  std::int64_t rows = 0;
  std::int64_t pages = 0;
  double ratio = 0;  // c = L / t
  double split = 0;  // a
  double storage_ratio = 0;
  double traffic_ratio = 0;
};

// floor(x), but a value within 1e-12 (relative) of an integer is that integer.
inline std::int64_t snapped_floor(double x) {
  const double nearest = std::round(x);
  if (std::fabs(x - nearest) < 1e-12 * x) return static_cast<std::int64_t>(nearest);
  return static_cast<std::int64_t>(std::floor(x));
}

inline double split_exponent(double c) { return std::min(0.2 + 0.06 * std::log2(c), 0.8); }

// numerator / denominator rounded to the nearest integer, halves to even; all exact.
inline std::int64_t divide_half_even(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t whole = numerator / denominator;
  const std::int64_t twice = 2 * (numerator % denominator);
  if (twice > denominator) return whole + 1;
  if (twice < denominator) return whole;
  return whole + (whole % 2);
}

inline Plan make_plan(const PlanInput& in) {
  Plan plan;
  const std::int64_t length = in.prompt_tokens + in.max_new;  // L
  std::int64_t t = in.token_budget;
  if (t == 0) t = std::max<std::int64_t>(1, snapped_floor(static_cast<double>(length) / in.ratio));

  // 1. k from the unclamped budget, then the ratio that holds from here on.
  plan.top_k = std::max<std::int64_t>(1, t / 2);
  t = std::clamp<std::int64_t>(t, 1, length);
  const double c = static_cast<double>(length) / static_cast<double>(t);
  const double a = split_exponent(c);

  // 2. and 3. what stays of prompt and answer.
  if (in.prompt_budget > 0) {
    plan.cap = std::min(length, in.prompt_budget + in.max_new);
  } else {
    const std::int64_t share = snapped_floor(static_cast<double>(length) / std::pow(c, a));
    const std::int64_t answer = std::min(2 * in.max_new, length);
    const std::int64_t window = std::min(in.window + in.sinks + in.max_new, length);
    plan.cap = std::max({share, answer, window});
    plan.raised = window > std::max(share, answer);
  }
  plan.prompt_budget = plan.cap - in.max_new;

  // 4. page size: smallest p with p*p*t >= cap, at most cap div t, at least 1.
  std::int64_t page = 1;
  while (page * page * t < plan.cap) ++page;
  page = std::max<std::int64_t>(1, std::min(page, plan.cap / t));
  plan.page_size = in.page_size > 0 ? in.page_size : page;
  const std::int64_t channels = divide_half_even(in.head_dim * plan.page_size * t, plan.cap);
  plan.num_channels =
      in.num_channels > 0 ? in.num_channels : std::clamp<std::int64_t>(channels, 1, in.head_dim);
  if (in.top_k > 0) plan.top_k = in.top_k;

  // 5. rows of the slot; k >= rows selects everything at every step.
  plan.rows = std::min(plan.prompt_budget, in.prompt_tokens) + in.max_new;
  plan.pages = (plan.rows + plan.page_size - 1) / plan.page_size;
  plan.dense = plan.top_k >= plan.rows;

  // 6. reported.
  plan.token_budget = t;
  plan.ratio = c;
  plan.split = a;
  plan.storage_ratio =
      (in.multi_turn ? 1.0 : 1.0 / std::pow(c, a)) + 2.0 / std::pow(c, (1 + a) / 2);
  plan.traffic_ratio = 1.0 / c;
  return plan;
}

}  // namespace rkv_ref
