// A whole sequence in one layer: prefill with its plan, then decode rows with append and rewind.
// Every KV head is held apart; nothing is shared between them but the plan.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "attention.hpp"
#include "plan.hpp"
#include "rows.hpp"
#include "stage1.hpp"
#include "stage2.hpp"

namespace rkv_ref {

struct SequenceConfig {
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t head_dim_v = 1;
  PlanInput plan;  // prompt_tokens and head_dim are set by prefill
  Stage1Options stage1;
  Stage2Options stage2;  // num_channels and top_k are set by prefill
  bool dense_layer = false;

  std::int64_t group() const { return q_heads / kv_heads; }
};

struct Step {
  std::vector<Stage2Result> selection;  // [Hkv]
  std::vector<AttentionResult> heads;   // [Hq], over the reference's own selection
};

class Sequence {
 public:
  explicit Sequence(const SequenceConfig& config)
      : config_(config),
        keys_(static_cast<std::size_t>(config.kv_heads)),
        values_(static_cast<std::size_t>(config.kv_heads)),
        positions_(static_cast<std::size_t>(config.kv_heads)) {}

  // q: Rows{n, Hq * D}, the rows that end at the prompt's end; k: Rows{S, Hkv * D};
  // v: Rows{S, Hkv * Dv}. Returns stage 1 of each KV head.
  std::vector<Stage1Result> prefill(const Rows& q, const Rows& k, const Rows& v) {
    prompt_ = k.count;
    config_.plan.prompt_tokens = prompt_;
    config_.plan.head_dim = config_.head_dim;
    plan_ = make_plan(config_.plan);
    config_.stage2.num_channels = plan_.num_channels;
    config_.stage2.top_k = plan_.top_k;
    const std::int64_t budget = config_.dense_layer ? prompt_ : plan_.prompt_budget;
    std::vector<Stage1Result> results;
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      Rows queries = heads(q, h * config_.group(), config_.group(), config_.head_dim);
      Rows keys = heads(k, h, 1, config_.head_dim);
      results.push_back(stage1(queries, config_.group(), keys, budget, config_.stage1));
      prompt_keys_.push_back(std::move(keys));
      prompt_values_.push_back(heads(v, h, 1, config_.head_dim_v));
      keep(h, results.back().kept);
    }
    return results;
  }

  // Takes `positions` as the kept set of head h; a test adopts the set it has checked.
  void keep(std::int64_t h, const std::vector<std::int64_t>& positions) {
    keys_[h] = Rows(0, config_.head_dim);
    values_[h] = Rows(0, config_.head_dim_v);
    positions_[h] = positions;
    for (std::int64_t position : positions) {
      keys_[h].append(prompt_keys_[h].row(position));
      values_[h].append(prompt_values_[h].row(position));
    }
    kept_ = static_cast<std::int64_t>(positions.size());
  }

  // Drops every generated row from `position` on, then appends one. k: [Hkv * D], v: [Hkv * Dv].
  void append(std::int64_t position, const double* k, const double* v) {
    rewind(position);
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      keys_[h].append(k + h * config_.head_dim);
      values_[h].append(v + h * config_.head_dim_v);
      positions_[h].push_back(position);
    }
  }

  void rewind(std::int64_t position) {
    if (position < prompt_ || position > length()) throw std::out_of_range("position");
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      keys_[h].resize(kept_ + position - prompt_);
      values_[h].resize(kept_ + position - prompt_);
      positions_[h].resize(static_cast<std::size_t>(kept_ + position - prompt_));
    }
  }

  // Stage 2 of one group; q: [Hq * D] of the row.
  Stage2Result select(std::int64_t h, const double* q, const Stage2Result* hint = nullptr) const {
    Stage2Options options = config_.stage2;
    if (config_.dense_layer) options.top_k = keys_[h].count;
    return stage2(group_queries(h, q), keys_[h], plan_.page_size, options, hint);
  }

  // Exact attention of the query heads of one group over given live rows.
  std::vector<AttentionResult> attend(std::int64_t h, const double* q,
                                      const std::vector<std::int64_t>& rows) const {
    std::vector<AttentionResult> results;
    const Rows queries = group_queries(h, q);
    for (std::int64_t g = 0; g < config_.group(); ++g) {
      results.push_back(attention(queries.row(g), keys_[h], values_[h], rows, config_.stage2.scale,
                                  config_.stage1.softcap));
    }
    return results;
  }

  // One decode row from beginning to end.
  Step step(std::int64_t position, const double* q, const double* k, const double* v) {
    append(position, k, v);
    Step result;
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      result.selection.push_back(select(h, q));
      for (auto& head : attend(h, q, result.selection.back().rows)) {
        result.heads.push_back(std::move(head));
      }
    }
    return result;
  }

  const Plan& plan() const { return plan_; }
  std::int64_t length() const { return prompt_ + live() - kept_; }
  std::int64_t live() const { return keys_[0].count; }
  std::int64_t kept() const { return kept_; }
  const std::vector<std::int64_t>& positions(std::int64_t h) const { return positions_[h]; }
  const Rows& keys(std::int64_t h) const { return keys_[h]; }
  const SequenceConfig& config() const { return config_; }

 private:
  // Heads [first, first + n) of every row, as Rows{count * n, dim}.
  static Rows heads(const Rows& all, std::int64_t first, std::int64_t n, std::int64_t dim) {
    Rows out(0, dim);
    for (std::int64_t i = 0; i < all.count; ++i) {
      for (std::int64_t g = 0; g < n; ++g) out.append(all.row(i) + (first + g) * dim);
    }
    return out;
  }

  Rows group_queries(std::int64_t h, const double* q) const {
    Rows out(0, config_.head_dim);
    for (std::int64_t g = 0; g < config_.group(); ++g) {
      out.append(q + (h * config_.group() + g) * config_.head_dim);
    }
    return out;
  }

  SequenceConfig config_;
  Plan plan_;
  std::int64_t prompt_ = 0;
  std::int64_t kept_ = 0;
  std::vector<Rows> prompt_keys_, prompt_values_;  // [Hkv], the whole prompt
  std::vector<Rows> keys_, values_;                // [Hkv], live rows
  std::vector<std::vector<std::int64_t>> positions_;
};

}  // namespace rkv_ref
