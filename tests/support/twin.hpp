// One sequence of one layer in the library and in the reference, driven side by side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../reference/sequence.hpp"
#include "capi.hpp"
#include "compare.hpp"
#include "random.hpp"

namespace rkv_test {

inline rkv_ref::SequenceConfig reference_config(const rkv_cache_config& c, int layer = 0,
                                                const rkv_sequence_options* o = nullptr) {
  rkv_ref::SequenceConfig r;
  r.q_heads = c.q_heads;
  r.kv_heads = c.kv_heads;
  r.head_dim = c.head_dim;
  r.head_dim_v = value_dim(c);
  r.plan.max_new = c.max_new_tokens;
  r.plan.head_dim = c.head_dim;
  r.plan.token_budget = c.token_budget;
  r.plan.ratio = c.compression_ratio;
  if (o != nullptr && o->max_new_tokens > 0) r.plan.max_new = o->max_new_tokens;
  if (o != nullptr && (o->token_budget > 0 || o->compression_ratio > 0)) {
    r.plan.token_budget = o->token_budget;
    r.plan.ratio = o->compression_ratio;
  }
  r.plan.window = c.window_size > 0 ? c.window_size : 32;
  r.plan.sinks = c.sinks;
  r.plan.prompt_budget = c.prompt_budget;
  r.plan.page_size = c.page_size;
  r.plan.num_channels = c.num_channels;
  r.plan.top_k = c.top_k;
  r.stage1.window = r.plan.window;
  r.stage1.kernel = c.kernel_size > 0 ? c.kernel_size : 63;
  r.stage1.sinks = c.sinks;
  r.stage1.prefix_only = c.stage1_domain == RKV_STAGE1_PREFIX_ONLY;
  r.stage1.average = c.pooling == RKV_POOL_AVG;
  r.stage1.key_as_query = c.key_as_query != 0;
  r.stage1.scale = c.softmax_scale;
  r.stage1.softcap = c.logit_softcap;
  r.stage2.tokens_unit = c.selection_unit == RKV_UNIT_TOKENS;
  r.stage2.page_softmax = c.selection_domain == RKV_SOFTMAX_PAGES;
  r.stage2.sqrt_d = c.temperature == RKV_TEMPERATURE_SQRT_D;
  r.stage2.recent = c.recent_tokens;
  r.stage2.sinks = c.sinks;
  r.stage2.scale = c.softmax_scale;
  r.dense_layer = (c.dense_layers[layer / 32] >> (layer % 32) & 1) != 0;
  return r;
}

// How a prompt and its steps lie in memory.
struct Placement {
  Layout q = Layout::kTokenMajor;
  Layout k = Layout::kTokenMajor;
  Layout v = Layout::kTokenMajor;
  Layout step = Layout::kTokenMajor;  // new rows, queries and outputs of decode
  bool interleaved = false;           // K and V of the prompt in one row
};

// The values of one prompt, rounded to their storage types. A few keys lie along the queries'
// common direction, so that attention has something to find.
struct Prompt {
  std::int64_t tokens = 0;
  rkv_ref::Rows q, k, v;  // [n][Hq*D] rows that end at the prompt's end, [S][Hkv*D], [S][Hkv*Dv]

  Prompt(const rkv_cache_config& c, std::int64_t tokens_, std::int64_t q_rows, std::uint64_t seed,
         double q_sigma = 1)
      : tokens(tokens_),
        q(q_rows, c.q_heads * c.head_dim),
        k(tokens_, c.kv_heads * c.head_dim),
        v(tokens_, c.kv_heads * value_dim(c)) {
    Random random(seed);
    const std::vector<double> common =
        normal_values(&random, c.kv_heads * c.head_dim, RKV_DTYPE_F32);
    const std::int64_t group = c.q_heads / c.kv_heads;
    for (std::int64_t i = 0; i < q.count; ++i) {
      for (std::int64_t x = 0; x < q.width; ++x) {
        const double base = common[x / (group * c.head_dim) * c.head_dim + x % c.head_dim];
        const double value = q_sigma * (0.5 * base + random.normal());
        q.row(i)[x] = rounded(query_dtype(c), static_cast<float>(value));
      }
    }
    for (std::int64_t j = 0; j < tokens; ++j) {
      const double hot = random.integer(0, 30) == 0 ? random.uniform() : 0;
      for (std::int64_t x = 0; x < k.width; ++x) {
        const double value = random.normal() + hot * common[x];
        k.row(j)[x] = rounded(c.kv_dtype, static_cast<float>(value));
      }
    }
    v.data = normal_values(&random, tokens * v.width, c.kv_dtype);
  }
};

// The new rows of one position: a function of seed and position alone, so a step can be repeated.
struct StepData {
  std::vector<double> q, k, v;
  StepData(const rkv_cache_config& c, std::uint64_t seed, std::int64_t position,
           double q_sigma = 1) {
    Random random(seed * 1000003 + static_cast<std::uint64_t>(position));
    q = normal_values(&random, c.q_heads * c.head_dim, query_dtype(c), q_sigma);
    k = normal_values(&random, c.kv_heads * c.head_dim, c.kv_dtype);
    v = normal_values(&random, c.kv_heads * value_dim(c), c.kv_dtype);
  }
};

// Prompt tensors in guarded memory.
struct PromptTensors {
  HostTensor q;
  KeyValue kv;

  PromptTensors(const rkv_cache_config& c, const Prompt& p, const Placement& at)
      : q(query_dtype(c), p.q.count, c.q_heads, c.head_dim, at.q),
        kv(at.interleaved
               ? interleaved(c.kv_dtype, p.tokens, c.kv_heads, c.head_dim, value_dim(c))
               : KeyValue{HostTensor(c.kv_dtype, p.tokens, c.kv_heads, c.head_dim, at.k),
                          HostTensor(c.kv_dtype, p.tokens, c.kv_heads, value_dim(c), at.v)}) {
    q.fill(p.q.data);
    kv.fill(p.k.data, p.v.data);
  }
  bool unchanged() const { return q.unchanged() && kv.k.unchanged() && kv.v.unchanged(); }
};

class Twin {
 public:
  Twin(Cache* cache, int seq, int layer = 0, const rkv_sequence_options* options = nullptr)
      : cache_(cache),
        seq_(seq),
        layer_(layer),
        reference_(reference_config(cache->config(), layer, options)) {}

  // One call with q rows that end at the prompt's end; kept sets and plan are checked and adopted.
  void prefill(const Prompt& prompt, const Placement& at = Placement()) {
    PromptTensors t(cache_->config(), prompt, at);
    const bool keys_only = cache_->config().key_as_query != 0;
    ASSERT_EQ(RKV_OK, cache_->prefill(seq_, layer_, prompt.tokens - prompt.q.count, prompt.tokens,
                                      keys_only ? nullptr : &t.q, &t.kv.k, &t.kv.v))
        << cache_->text();
    EXPECT_TRUE(t.unchanged());
    check_prefill(prompt);
  }

  void check_prefill(const Prompt& prompt) {
    const auto stages = reference_.prefill(prompt.q, prompt.k, prompt.v);
    check_plan();
    const auto kept = cache_->positions(seq_, layer_);
    bool nonfinite = false;
    for (std::size_t h = 0; h < kept.size(); ++h) {
      const rkv_cache_config& c = cache_->config();
      ASSERT_EQ("",
                compare_kept(kept[h], stages[h], prompt.tokens, c.sinks, c.pooling == RKV_POOL_MAX))
          << "head " << h;
      reference_.keep(static_cast<std::int64_t>(h), kept[h]);
      nonfinite = nonfinite || stages[h].nonfinite;
    }
    const rkv_sequence_stats s = cache_->stats(seq_, layer_);
    EXPECT_EQ(nonfinite, s.nonfinite != 0);
    EXPECT_EQ(reference_.kept(), s.kept);
    EXPECT_EQ(prompt.tokens, s.prompt);
    EXPECT_EQ(prompt.tokens, s.position);
    EXPECT_EQ(0, s.generated);
    EXPECT_EQ(1, s.turn);
    EXPECT_EQ(prompt.tokens + reference_.config().plan.max_new, s.max_position);
  }

  void check_plan() {
    rkv_plan plan;
    cache_->stats(seq_, layer_, &plan);
    const rkv_ref::Plan& expected = reference_.plan();
    EXPECT_EQ(expected.cap, plan.cap);
    // What is kept of this prompt; the reported number itself is a matter of plan_test.
    EXPECT_EQ(expected.prompt_budget,
              std::min(plan.prompt_budget, cache_->stats(seq_, layer_).prompt));
    EXPECT_EQ(expected.page_size, plan.page_size);
    EXPECT_EQ(expected.num_channels, plan.num_channels);
    EXPECT_EQ(expected.top_k, plan.top_k);
    EXPECT_EQ(expected.raised, plan.raised != 0);
    EXPECT_EQ(expected.dense, plan.dense != 0);
  }

  // Checks row `row` of a finished decode call that appended at `position`.
  void check_row(StepBuffers& step, std::int64_t row, std::int64_t position, const StepData& data) {
    reference_.append(position, data.k.data(), data.v.data());
    const std::int64_t group = reference_.config().group();
    for (std::int64_t h = 0; h < reference_.config().kv_heads; ++h) {
      const std::vector<std::int64_t> rows = step.selection.list(row, h);
      ASSERT_EQ("", compare_selection(rows, reference_, h, data.q.data()))
          << "position " << position << " head " << h;
      const auto heads = reference_.attend(h, data.q.data(), rows);
      for (std::int64_t g = 0; g < group; ++g) {
        const std::int64_t head = h * group + g;
        ASSERT_EQ("", compare_output(step.out, row, head, step.lse_of(row, head),
                                     heads[static_cast<std::size_t>(g)], tolerance))
            << "position " << position << " head " << head;
      }
    }
  }

  // One decode call of one row, checked.
  void step(std::int64_t position, std::uint64_t seed, const Placement& at = Placement(),
            double q_sigma = 1) {
    const StepData data(cache_->config(), seed, position, q_sigma);
    step(position, data, at);
  }
  void step(std::int64_t position, const StepData& data, const Placement& at = Placement()) {
    StepBuffers buffers(cache_, 1, at.step);
    buffers.seq[0] = seq_;
    buffers.positions[0] = position;
    buffers.q.fill(data.q);
    buffers.k.fill(data.k);
    buffers.v.fill(data.v);
    ASSERT_EQ(RKV_OK, buffers.decode(layer_)) << cache_->text();
    EXPECT_TRUE(buffers.sound()) << "something around a caller buffer changed";
    check_row(buffers, 0, position, data);
    const rkv_sequence_stats s = cache_->stats(seq_, layer_);
    EXPECT_EQ(position + 1, s.position);
    EXPECT_EQ(reference_.live() - reference_.kept(), s.generated);
  }

  rkv_ref::Sequence& reference() { return reference_; }
  double tolerance = kOutput;

 private:
  Cache* cache_;
  int seq_, layer_;
  rkv_ref::Sequence reference_;
};

}  // namespace rkv_test
