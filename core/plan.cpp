#include "core/plan.hpp"

#include <algorithm>
#include <cmath>

namespace rkv {
namespace {

// floor, but a value that rounding left a hair below an integer is that integer (1100 / 1.1 = 1000).
int64_t snapped_floor(double x) {
  const double nearest = std::round(x);
  return static_cast<int64_t>(std::fabs(x - nearest) < 1e-12 * x ? nearest : std::floor(x));
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t budget_tokens(const Request& request, int64_t length) {
  if (request.token_budget > 0) return request.token_budget;
  return std::max<int64_t>(1, snapped_floor(static_cast<double>(length) / request.ratio));
}

// The smallest p with p * p * t >= cap, at most cap div t, at least 1.
int64_t page_size_for(int64_t cap, int64_t t) {
  auto p = static_cast<int64_t>(std::sqrt(static_cast<double>(cap) / static_cast<double>(t)));
  while (p > 1 && (p - 1) * (p - 1) * t >= cap) --p;
  while (p * p * t < cap) ++p;
  return std::max<int64_t>(1, std::min(p, cap / t));
}

}  // namespace

int64_t Plan::selection_rows() const {
  if (dense) return rows;
  return std::min(rows, divide_up(top_k, page_size) * page_size);
}

Plan make_plan(const Config& config, const Request& request, int64_t prompt) {
  Plan plan;
  const int64_t length = prompt + request.max_new;
  const int64_t asked = budget_tokens(request, length);
  plan.top_k = config.top_k > 0 ? config.top_k : std::max<int64_t>(1, asked / 2);
  const int64_t t = std::min(asked, length);
  const auto l = static_cast<double>(length);
  plan.token_budget = t;
  plan.ratio = l / static_cast<double>(t);
  plan.split = std::min(0.2 + 0.06 * std::log2(plan.ratio), 0.8);
  if (config.prompt_budget > 0) {
    plan.cap = std::min(length, config.prompt_budget + request.max_new);
  } else {
    const int64_t cap = std::max(snapped_floor(l / std::pow(plan.ratio, plan.split)),
                                 std::min(2 * request.max_new, length));
    const int64_t least =
        std::min(int64_t{config.window} + config.select.sinks + request.max_new, length);
    plan.raised = least > cap;
    plan.cap = std::max(cap, least);
  }
  plan.prompt_budget = plan.cap - request.max_new;
  plan.page_size = config.page_size > 0 ? config.page_size : page_size_for(plan.cap, t);
  if (config.channels > 0) {
    plan.channels = config.channels;
  } else {
    // Half-even by the default rounding mode; the quotient is exact enough to see a true half.
    const double share = static_cast<double>(config.shape.head_dim) *
                         static_cast<double>(plan.page_size) * static_cast<double>(t) /
                         static_cast<double>(plan.cap);
    plan.channels = static_cast<int64_t>(
        std::clamp(std::nearbyint(share), 1.0, double{1} * config.shape.head_dim));
  }
  plan.rows = std::min(plan.prompt_budget, prompt) + request.max_new;
  plan.dense = plan.top_k >= plan.rows;
  plan.pages = plan.dense ? 0 : divide_up(plan.rows, plan.page_size);
  plan.storage_ratio =
      1.0 / std::pow(plan.ratio, plan.split) + 2.0 / std::pow(plan.ratio, (1.0 + plan.split) / 2.0);
  plan.traffic_ratio = 1.0 / plan.ratio;
  return plan;
}

// With t fixed, log2 cap is log2 t + 0.8 x - 0.06 x^2 with x = log2(L / t): it rises to x = 20/3,
// falls to x = 10 (where the split stops at 0.8) and rises again. So the largest cap lies at the
// longest prompt, at that peak, or at the first prompt with the same t (a ratio makes t grow in
// steps; the cap of a larger t at its first prompt exceeds all caps of a smaller t). The other terms
// of cap only grow with L. One row is added for the rounding of powers near the peak.
Capacity capacity_for_all_prompts(const Config& config) {
  const Request& request = config.request;
  const int64_t longest = config.max_prompt + request.max_new;
  const int64_t t = std::min(budget_tokens(request, longest), longest);
  const double first =
      request.token_budget > 0 ? 1.0 : std::ceil(static_cast<double>(t) * request.ratio);
  const double peak = std::max(first, static_cast<double>(t) * std::exp2(20.0 / 3.0));
  int64_t rows = 0;
  for (const double place : {first, static_cast<double>(t), peak, static_cast<double>(longest)}) {
    const auto centre =
        static_cast<int64_t>(std::min(place, static_cast<double>(longest))) - request.max_new;
    for (int64_t prompt = centre - 2; prompt <= centre + 2; ++prompt) {
      const int64_t inside = std::clamp<int64_t>(prompt, 1, config.max_prompt);
      rows = std::max(rows, make_plan(config, request, inside).rows);
    }
  }
  Capacity capacity;
  capacity.rows = std::min(rows + 1, longest);

  // Of all caps up to `rows` and budgets up to t, the most pages that a plan gives: for one cap more
  // tokens in the budget mean smaller pages, so only t counts; for one page size p the largest cap is
  // p * p * t (2 t - 1 for p = 1).
  const int64_t top_k =
      config.top_k > 0 ? config.top_k : std::max<int64_t>(1, budget_tokens(request, longest) / 2);
  if (config.page_size > 0) {
    capacity.pages = divide_up(capacity.rows, config.page_size);
  } else {
    int64_t p = 1;
    for (int64_t reach = 0; reach < capacity.rows; ++p) {
      reach = p == 1 ? 2 * t - 1 : p * p * t;
      capacity.pages = std::max(capacity.pages, divide_up(std::min(reach, capacity.rows), p));
    }
  }
  // A selection is k rounded up to pages, or every row of a dense plan (k >= rows).
  const int64_t largest_page = config.page_size > 0
                                   ? config.page_size
                                   : page_size_for(capacity.rows, request.token_budget > 0 ? t : 1);
  capacity.selection = std::min(capacity.rows, top_k) + largest_page - 1;
  capacity.selection = std::min(capacity.selection, capacity.rows);
  if (config.top_k >= capacity.rows) capacity.pages = 0;  // every plan is dense
  return capacity;
}

}  // namespace rkv
