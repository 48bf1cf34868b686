// The plan: golden values, random configs against the reference, refused requests, and a memory
// query that covers every prompt up to the maximum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "../support/twin.hpp"
#include "golden_plans.hpp"

namespace {

using namespace rkv_test;

rkv_error g_error = zeroed<rkv_error>();

rkv_status make(const rkv_cache_config& config, std::int64_t prompt, rkv_plan* plan,
                const rkv_sequence_options* options = nullptr) {
  *plan = zeroed<rkv_plan>();
  return rkv_plan_make(&config, options, prompt, plan, &g_error);
}

void expect_equal(const rkv_ref::Plan& want, const rkv_plan& got) {
  EXPECT_EQ(want.cap, got.cap);
  EXPECT_EQ(want.prompt_budget, got.prompt_budget);
  EXPECT_EQ(want.page_size, got.page_size);
  EXPECT_EQ(want.num_channels, got.num_channels);
  EXPECT_EQ(want.top_k, got.top_k);
  EXPECT_EQ(want.token_budget, got.token_budget);
  EXPECT_EQ(want.rows, got.rows);
  EXPECT_EQ(want.raised, got.raised != 0);
  EXPECT_EQ(want.dense, got.dense != 0);
  if (!want.dense) {
    EXPECT_EQ(want.pages, got.pages);
  }
  EXPECT_DOUBLE_EQ(want.ratio, got.ratio);
  EXPECT_DOUBLE_EQ(want.split, got.split);
  EXPECT_DOUBLE_EQ(want.storage_ratio, got.storage_ratio);
  EXPECT_DOUBLE_EQ(want.traffic_ratio, got.traffic_ratio);
}

TEST(Plan, Golden) {
  for (const GoldenPlan& g : kGoldenPlans) {
    rkv_plan plan;
    const std::int64_t prompt = g.length - g.max_new;
    ASSERT_EQ(RKV_OK, make(make_config(8, 2, 128, prompt, g.max_new, g.budget), prompt, &plan))
        << g_error.text;
    EXPECT_EQ(g.cap, plan.cap) << g.length << " " << g.budget;
    EXPECT_EQ(g.prompt_budget, plan.prompt_budget);
    EXPECT_EQ(g.page_size, plan.page_size);
    EXPECT_EQ(g.num_channels, plan.num_channels);
    EXPECT_EQ(g.top_k, plan.top_k);
    EXPECT_EQ(0, plan.raised);
  }
}

TEST(Plan, GoldenSplits) {
  for (const GoldenSplit& g : kGoldenSplits) {
    rkv_plan plan;
    // L = 256 c exactly, so that t = 256.
    const std::int64_t length = static_cast<std::int64_t>(256 * g.ratio);
    ASSERT_EQ(RKV_OK, make(make_config(1, 1, 128, length - 8, 8, 256), length - 8, &plan));
    EXPECT_NEAR(g.split, plan.split, 5e-5);
  }
}

// B11: at c = 1024 plain doubles lose one token.
TEST(Plan, B11_Ratio1024) {
  const std::int64_t cases[][3] = {{65536, 64, 256}, {131072, 128, 512}, {1048576, 1024, 4096}};
  for (const auto& c : cases) {
    rkv_plan plan;
    ASSERT_EQ(RKV_OK, make(make_config(1, 1, 128, c[0] - 8, 8, c[1]), c[0] - 8, &plan));
    EXPECT_EQ(c[2], plan.cap);
    rkv_cache_config by_ratio = make_config(1, 1, 128, c[0] - 8, 8, 0);
    by_ratio.compression_ratio = 1024;
    ASSERT_EQ(RKV_OK, make(by_ratio, c[0] - 8, &plan));
    EXPECT_EQ(c[2], plan.cap);
    EXPECT_EQ(c[1], plan.token_budget);
  }
  rkv_plan plan;
  rkv_cache_config config = make_config(1, 1, 128, 1090, 10, 0);
  config.compression_ratio = 1.1;
  ASSERT_EQ(RKV_OK, make(config, 1090, &plan));
  EXPECT_EQ(1000, plan.token_budget);
}

rkv_cache_config random_config(Random* random) {
  const int heads = static_cast<int>(random->integer(1, 8));
  const std::int64_t longest = std::int64_t{1} << random->integer(1, 20);
  rkv_cache_config c = make_config(heads * static_cast<int>(random->integer(1, 16)), heads,
                                   8 * static_cast<int>(random->integer(1, 32)),
                                   random->integer(1, longest), random->integer(1, 300), 0);
  if (random->coin()) {
    c.token_budget = random->integer(1, 1 << random->integer(1, 14));
  } else {
    c.compression_ratio = std::pow(2.0, 12 * random->uniform());
    if (random->coin()) c.compression_ratio = std::round(c.compression_ratio);
  }
  if (random->coin()) c.window_size = static_cast<int>(random->integer(1, 100));
  if (random->coin()) c.sinks = static_cast<int>(random->integer(0, 10));
  const int window = c.window_size > 0 ? c.window_size : 32;
  if (random->integer(0, 3) == 0) c.prompt_budget = window + c.sinks + random->integer(0, 3000);
  if (random->integer(0, 3) == 0) c.page_size = static_cast<int>(random->integer(1, 20));
  if (random->integer(0, 3) == 0) {
    c.num_channels = static_cast<int>(random->integer(1, c.head_dim));
  }
  if (random->integer(0, 3) == 0) c.top_k = random->integer(1, 5000);
  return c;
}

TEST(Plan, RandomConfigsAgainstTheReference) {
  Random random(1);
  for (int i = 0; i < scaled(3000); ++i) {
    const rkv_cache_config c = random_config(&random);
    SCOPED_TRACE(describe(c));
    rkv_ref::PlanInput in = reference_config(c).plan;
    in.prompt_tokens = random.integer(1, c.max_prompt_tokens);
    rkv_plan plan;
    ASSERT_EQ(RKV_OK, make(c, in.prompt_tokens, &plan)) << g_error.text;
    expect_equal(rkv_ref::make_plan(in), plan);
    if (HasFailure()) break;
  }
}

TEST(Plan, OptionsReplaceTheConfigsDefaults) {
  Random random(2);
  for (int i = 0; i < scaled(500); ++i) {
    const rkv_cache_config c = random_config(&random);
    rkv_sequence_options o = zeroed<rkv_sequence_options>();
    if (random.coin()) o.max_new_tokens = random.integer(1, c.max_new_tokens);
    if (random.coin())
      o.token_budget = random.integer(1, 2000);
    else if (random.coin())
      o.compression_ratio = 1 + 100 * random.uniform();
    SCOPED_TRACE(describe(c));
    rkv_ref::PlanInput in = reference_config(c, 0, &o).plan;
    in.prompt_tokens = random.integer(1, c.max_prompt_tokens);
    rkv_plan plan;
    ASSERT_EQ(RKV_OK, make(c, in.prompt_tokens, &plan, &o)) << g_error.text;
    expect_equal(rkv_ref::make_plan(in), plan);
    if (HasFailure()) break;
  }
}

// B09: a request of a few tokens at a high ratio is raised, and says so.
TEST(Plan, B09_SmallRequestsAreRaised) {
  rkv_cache_config c = make_config(4, 1, 64, 4096, 16, 0);
  c.compression_ratio = 400;
  rkv_plan plan;
  ASSERT_EQ(RKV_OK, make(c, 40, &plan));
  EXPECT_EQ(1, plan.raised);
  EXPECT_EQ(48, plan.cap);
  EXPECT_EQ(32, plan.prompt_budget);
  EXPECT_EQ(1, plan.token_budget);
  EXPECT_EQ(1, plan.top_k);
  // An answer as long as the rest: the second term decides, the plan is not raised.
  c = make_config(4, 1, 64, 4096, 1000, 16);
  ASSERT_EQ(RKV_OK, make(c, 1100, &plan));
  EXPECT_EQ(2000, plan.cap);
  EXPECT_EQ(0, plan.raised);
}

// ---- refused ------------------------------------------------------------------------------------

void expect_refused(const rkv_cache_config& c, const char* what) {
  SCOPED_TRACE(what);
  rkv_memory memory = zeroed<rkv_memory>();
  EXPECT_EQ(RKV_INVALID_ARGUMENT, rkv_cache_memory(&c, &memory, &g_error));
  EXPECT_EQ(RKV_INVALID_ARGUMENT, g_error.status);
  EXPECT_NE(std::string::npos, std::string(g_error.text).find(what)) << g_error.text;
  EXPECT_EQ(0, memory.storage_bytes);
  rkv_cache* cache = nullptr;
  EXPECT_EQ(RKV_INVALID_ARGUMENT, rkv_cache_create(&c, nullptr, &cache, &g_error));
  EXPECT_EQ(nullptr, cache);
}

// B09, B29: ratio and budget as the API decides; B76: numbers at -1 and beyond.
TEST(PlanErrors, B09_B29_B76_ConfigsThatAreRefused) {
  const auto with = [](const std::function<void(rkv_cache_config*)>& change) {
    rkv_cache_config c = make_config(8, 2, 64, 4000, 64, 256);
    change(&c);
    return c;
  };
  const auto ratio = [&](double value) {
    return with([=](rkv_cache_config* c) {
      c->token_budget = 0;
      c->compression_ratio = value;
    });
  };
  using C = rkv_cache_config*;
  expect_refused(ratio(-1), "compression_ratio");
  expect_refused(ratio(0.5), "compression_ratio");
  expect_refused(ratio(std::nextafter(1.0, 0.0)), "compression_ratio");
  expect_refused(ratio(std::numeric_limits<double>::quiet_NaN()), "compression_ratio");
  expect_refused(ratio(std::numeric_limits<double>::infinity()), "compression_ratio");
  expect_refused(ratio(0), "token_budget");
  expect_refused(with([](C c) { c->compression_ratio = 4; }), "compression_ratio");
  expect_refused(with([](C c) { c->token_budget = -1; }), "token_budget");
  expect_refused(with([](C c) { c->prompt_budget = -1; }), "prompt_budget");
  expect_refused(with([](C c) { c->prompt_budget = 31; }), "prompt_budget");
  expect_refused(with([](C c) { c->prompt_budget = 35, c->sinks = 4; }), "prompt_budget");
  expect_refused(with([](C c) { c->top_k = -1; }), "top_k");
  expect_refused(with([](C c) { c->page_size = -1; }), "page_size");
  expect_refused(with([](C c) { c->num_channels = -1; }), "num_channels");
  expect_refused(with([](C c) { c->num_channels = 65; }), "num_channels");
  expect_refused(with([](C c) { c->window_size = -1; }), "window_size");
  expect_refused(with([](C c) { c->kernel_size = -1; }), "kernel_size");
  expect_refused(with([](C c) { c->kernel_size = 8; }), "kernel_size");
  expect_refused(with([](C c) { c->sinks = -1; }), "sinks");
  expect_refused(with([](C c) { c->recent_tokens = -1; }), "recent_tokens");
  expect_refused(with([](C c) { c->q_heads = 9; }), "q_heads");
  expect_refused(with([](C c) { c->q_heads = 0; }), "q_heads");
  expect_refused(with([](C c) { c->kv_heads = 0; }), "kv_heads");
  expect_refused(with([](C c) { c->kv_heads = -1; }), "kv_heads");
  expect_refused(with([](C c) { c->head_dim = 0; }), "head_dim");
  expect_refused(with([](C c) { c->head_dim_v = -8; }), "head_dim_v");
  expect_refused(with([](C c) { c->layers = 257; }), "layers");
  expect_refused(with([](C c) { c->layers = -1; }), "layers");
  expect_refused(with([](C c) { c->max_sequences = -1; }), "max_sequences");
  expect_refused(with([](C c) { c->max_rows = -1; }), "max_rows");
  expect_refused(with([](C c) { c->max_prefills = -1; }), "max_prefills");
  expect_refused(with([](C c) { c->num_threads = -1; }), "num_threads");
  expect_refused(with([](C c) { c->max_prompt_tokens = -1; }), "max_prompt_tokens");
  expect_refused(with([](C c) { c->max_new_tokens = -1; }), "max_new_tokens");
  expect_refused(with([](C c) { c->kv_dtype = 0; }), "kv_dtype");
  expect_refused(with([](C c) { c->kv_dtype = 77; }), "kv_dtype");
  expect_refused(with([](C c) { c->query_dtype = 77; }), "query_dtype");
  expect_refused(with([](C c) { c->summary_dtype = 77; }), "summary_dtype");
  expect_refused(with([](C c) { c->storage = 2; }), "storage");
  expect_refused(with([](C c) { c->selection_unit = 2; }), "selection_unit");
  expect_refused(with([](C c) { c->stage1_domain = -1; }), "stage1_domain");
  expect_refused(with([](C c) { c->selection_domain = 2; }), "selection_domain");
  expect_refused(with([](C c) { c->pooling = 2; }), "pooling");
  expect_refused(with([](C c) { c->temperature = 2; }), "temperature");
  expect_refused(with([](C c) { c->key_as_query = 2; }), "key_as_query");
  expect_refused(with([](C c) { c->softmax_scale = std::nanf(""); }), "softmax_scale");
  expect_refused(with([](C c) { c->softmax_scale = -1; }), "softmax_scale");
  expect_refused(with([](C c) { c->logit_softcap = -1; }), "logit_softcap");
  expect_refused(with([](C c) { c->logit_softcap = INFINITY; }), "logit_softcap");
  expect_refused(with([](C c) { c->device_type = 9; }), "device_type");
}

// What the plan itself is made of is refused by rkv_plan_make too.
TEST(PlanErrors, B29_PlanInputsThatAreRefused) {
  const rkv_cache_config good = make_config(8, 2, 64, 4000, 64, 256);
  rkv_plan plan;
  const auto refused = [&](rkv_cache_config c, const char* what) {
    EXPECT_EQ(RKV_INVALID_ARGUMENT, make(c, 1000, &plan)) << what;
    EXPECT_NE(std::string::npos, std::string(g_error.text).find(what)) << g_error.text;
  };
  for (double ratio : {-1.0, 0.5, 0.999999, std::nan(""), double{INFINITY}}) {
    rkv_cache_config c = good;
    c.token_budget = 0;
    c.compression_ratio = ratio;
    refused(c, "compression_ratio");
  }
  rkv_cache_config c = good;
  c.compression_ratio = 4;
  refused(c, "compression_ratio");
  c = good, c.token_budget = 0;
  refused(c, "token_budget");
  c = good, c.token_budget = -5;
  refused(c, "token_budget");
  c = good, c.prompt_budget = 31;
  refused(c, "prompt_budget");
  c = good, c.num_channels = 65;
  refused(c, "num_channels");
  c = good, c.head_dim = 0;
  refused(c, "head_dim");
  EXPECT_EQ(RKV_INVALID_ARGUMENT, make(good, -1, &plan));
  EXPECT_EQ(RKV_INVALID_ARGUMENT, make(good, INT64_MIN, &plan));
}

TEST(PlanErrors, OptionsThatAreRefused) {
  const rkv_cache_config c = make_config(8, 2, 64, 4000, 64, 256);
  const auto refused = [&](std::int64_t max_new, std::int64_t budget, double ratio) {
    rkv_sequence_options o = zeroed<rkv_sequence_options>();
    o.max_new_tokens = max_new;
    o.token_budget = budget;
    o.compression_ratio = ratio;
    rkv_plan plan;
    EXPECT_EQ(RKV_INVALID_ARGUMENT, make(c, 1000, &plan, &o)) << max_new << budget << ratio;
    EXPECT_NE('\0', g_error.text[0]);
    Cache cache(c);
    EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.open(0, &o));
    EXPECT_EQ(RKV_OK, cache.open(0));  // the slot is as it was
  };
  refused(-1, 0, 0);
  refused(0, -1, 0);
  refused(0, 0, -1);
  refused(0, 0, 0.99);
  refused(0, 0, std::numeric_limits<double>::quiet_NaN());
  refused(0, 0, std::numeric_limits<double>::infinity());
  refused(0, 64, 4);
}

// Head dims of which fp32, page tables or kernels of others were not sure: multiples of 8 to 256.
TEST(PlanErrors, B45_HeadDimsOutsideTheRuleAreRefusedWithAText) {
  for (int dim : {1, 4, 12, 100, 264, 512}) {
    rkv_cache_config c = make_config(8, 2, dim, 4000, 64, 256);
    rkv_memory memory = zeroed<rkv_memory>();
    const rkv_status status = rkv_cache_memory(&c, &memory, &g_error);
    EXPECT_TRUE(status == RKV_INVALID_ARGUMENT || status == RKV_UNSUPPORTED) << dim;
    EXPECT_NE(std::string::npos, std::string(g_error.text).find("head_dim")) << g_error.text;
    EXPECT_NE(std::string::npos, std::string(g_error.text).find(std::to_string(dim)));
  }
}

// ---- the memory query covers every prompt -------------------------------------------------------

// cap is not monotone in L: a short prompt may need more than the longest.
TEST(PlanMemory, EveryPromptUpToTheMaximumFits) {
  Random random(3);
  for (int i = 0; i < scaled(60); ++i) {
    rkv_cache_config c = random_config(&random);
    c.max_prompt_tokens = random.integer(1, 6000);
    SCOPED_TRACE(describe(c));
    rkv_memory memory = zeroed<rkv_memory>();
    ASSERT_EQ(RKV_OK, rkv_cache_memory(&c, &memory, &g_error)) << g_error.text;
    rkv_ref::PlanInput in = reference_config(c).plan;
    std::int64_t rows = 0, selected = 0;
    for (std::int64_t prompt = 1; prompt <= c.max_prompt_tokens; ++prompt) {
      in.prompt_tokens = prompt;
      const rkv_ref::Plan plan = rkv_ref::make_plan(in);
      rows = std::max(rows, plan.rows);
      const std::int64_t pages = (plan.top_k + plan.page_size - 1) / plan.page_size;
      selected = std::max(selected, std::min(plan.rows, pages * plan.page_size));
    }
    EXPECT_GE(memory.k_bytes, rows * c.kv_heads * c.head_dim * 4);
    EXPECT_GE(memory.v_bytes, rows * c.kv_heads * c.head_dim * 4);
    EXPECT_GE(memory.selection_capacity, selected);
    // Not much more than needed either: whole blocks of rows, no second copy.
    EXPECT_LE(memory.k_bytes, (rows + 64) * c.kv_heads * c.head_dim * 4 * 1.02);
    if (HasFailure()) break;
  }
}

// t = 256: 1296 rows at L = 131072, 1625 at 27599. The slot of the long one takes the short one.
TEST(PlanMemory, ShortPromptThatNeedsMoreThanTheLongest) {
  rkv_cache_config c = make_config(1, 1, 8, 131072 - 256, 256, 256);
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
  EXPECT_GE(cache.memory().k_bytes, 1625 * 8 * 4);
  ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 27599 - 256, 32, 5));
  EXPECT_EQ(1625 - 256, twin.reference().kept());
  for (std::int64_t p = 27343; p < 27343 + 256; p += 1) {
    twin.step(p, 5);
    if (HasFailure()) break;
  }
}

}  // namespace
