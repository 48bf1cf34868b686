// From one number to all the sizes (paper section 3; the only place that computes a plan).
#pragma once

#include <cstdint>

#include "core/config.hpp"

namespace rkv {

struct Plan {
  int64_t token_budget = 0;   // t, clamped to [1, L]
  int64_t cap = 0;            // tokens stored per head at most: prompt_budget + max_new
  int64_t prompt_budget = 0;  // of the prompt, what stage 1 keeps
  int64_t rows = 0;           // the most live rows this prompt can reach
  int64_t pages = 0;          // and their pages; 0 where dense
  int64_t page_size = 1, channels = 1, top_k = 1;
  double ratio = 1.0, split = 0.0, storage_ratio = 1.0, traffic_ratio = 1.0;
  bool raised = false, dense = false;

  bool operator==(const Plan&) const = default;

  // The longest list that a selection of this plan has.
  int64_t selection_rows() const;
};

// prompt >= 1, prompt + request.max_new <= kMaxPosition.
Plan make_plan(const Config& config, const Request& request, int64_t prompt);

// The most that any prompt of 1 .. config.max_prompt tokens needs under the config's own request.
struct Capacity {
  int64_t rows = 0, pages = 0, selection = 0;
};
Capacity capacity_for_all_prompts(const Config& config);

}  // namespace rkv
