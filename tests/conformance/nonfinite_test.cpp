// Infinities and NaN: in keys they weigh nothing and are flagged, in values nobody looks at them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

// Section 2.2 and 2.5: keys with infinities and NaN are flagged and last, never a crash.
TEST(NonFinite, NonFiniteKeysInThePrompt) {
  for (double bad : {kInf, -kInf, kNan}) {
    for (int dtype : kDtypes) {
      for (int pooling : {RKV_POOL_MAX, RKV_POOL_AVG}) {
        rkv_cache_config c = make_config(4, 2, 32, 400, 8, 50, dtype);
        c.pooling = pooling;
        c.kernel_size = 5;
        c.prompt_budget = 100;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        Twin twin(&cache, 0);
        Prompt p(c, 400, 32, 5);
        for (std::int64_t j : {0, 17, 18, 200, 367}) p.k.row(j)[j % 64] = bad;
        twin.prefill(p);
        EXPECT_NE(0, cache.stats(0).nonfinite);
        // The window is kept whatever it holds; a bad key in it is flagged too.
      }
    }
  }
  rkv_cache_config c = make_config(4, 1, 32, 400, 8, 50);
  for (double bad : {kInf, kNan}) {
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    Prompt p(c, 400, 32, 5);
    p.k.row(390)[3] = bad;
    twin.prefill(p);
    EXPECT_NE(0, cache.stats(0).nonfinite);
  }
}

// A softcap does not make an infinite product finite: the key is last all the same.
TEST(NonFinite, InfiniteKeysUnderASoftcap) {
  rkv_cache_config c = make_config(2, 1, 16, 200, 8, 20);
  c.prompt_budget = 60;
  c.logit_softcap = 5;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  Prompt p(c, 200, 32, 5);
  for (std::int64_t j : {3, 90, 150}) p.k.row(j)[4] = kInf;
  twin.prefill(p);
  for (std::int64_t at = 200; at < 204 && !HasFailure(); ++at) {
    StepData data(c, 5, at);
    if (at == 201) data.k[3] = -kInf;
    twin.step(at, data);
  }
}

// B38: fewer finite candidates than the budget: the finite ones, then the lowest of the others.
TEST(NonFinite, B38_FewerFiniteKeysThanTheBudget) {
  rkv_cache_config c = make_config(2, 1, 16, 300, 8, 20);
  c.prompt_budget = 92;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  Prompt p(c, 300, 32, 5);
  for (std::int64_t j = 0; j < 268; ++j) {
    if (j % 10 != 3) p.k.row(j)[0] = kNan;
  }
  twin.prefill(p);
  std::vector<std::int64_t> expected;
  for (std::int64_t j = 3; j < 268; j += 10) expected.push_back(j);  // 27 finite ones
  for (std::int64_t j = 0; expected.size() < 60; ++j) {
    if (j % 10 != 3) expected.push_back(j);
  }
  std::sort(expected.begin(), expected.end());
  for (std::int64_t j = 268; j < 300; ++j) expected.push_back(j);
  EXPECT_EQ(expected, cache.positions(0)[0]);

  // All of them bad: the lowest indices and the window.
  Cache none(c);
  ASSERT_EQ(RKV_OK, none.open(0));
  for (double& x : p.k.data) x = kNan;
  Twin last(&none, 0);
  last.prefill(p);
}

// A live row with an infinite key weighs nothing in decode; its page is last where the bound shows
// it. With NaN the bounds are not defined, but the answer is: finite, and of the other rows.
TEST(NonFinite, NonFiniteKeysInDecode) {
  for (double bad : {kInf, -kInf, kNan}) {
    for (int heads : {1, 4}) {
      for (int dtype : kDtypes) {
        rkv_cache_config c = make_config(heads, 1, 16, 60, 12, 16, dtype);
        c.prompt_budget = 60;
        c.page_size = 2;
        c.num_channels = 16;
        c.top_k = 9;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        Twin twin(&cache, 0);
        Prompt p(c, 60, 32, 8);
        for (std::int64_t j : {5, 20, 21}) p.k.row(j)[j % 16] = bad;
        twin.prefill(p);
        for (std::int64_t at = 60; at < 70 && !HasFailure(); ++at) {
          StepData data(c, 8, at);
          if (at == 63) data.k[2] = bad;
          StepBuffers step(&cache, 1);
          fill_step(&step, at, data);
          ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
          EXPECT_TRUE(all_finite(step.out));
          if (std::isnan(bad)) {
            twin.reference().append(at, data.k.data(), data.v.data());
            const auto rows = step.selection.list(0, 0);
            EXPECT_TRUE(strictly_ascending(rows));
            const auto expected = twin.reference().attend(0, data.q.data(), rows);
            for (int g = 0; g < heads; ++g) {
              EXPECT_EQ("", compare_output(step.out, 0, g, step.lse_of(0, g),
                                           expected[static_cast<std::size_t>(g)]));
            }
          } else {
            twin.check_row(step, 0, at, data);
          }
        }
        EXPECT_NE(0, cache.stats(0).nonfinite);
      }
    }
  }
}

// B48: no row left: output 0, log-sum-exp -inf, status OK, though the buffers held NaN.
TEST(NonFinite, B48_NoRowLeft) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(4, 2, 32, 40, 8, 400, dtype);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Prompt p(c, 40, 32, 1);
    for (double& x : p.k.data) x = kNan;
    Twin twin(&cache, 0);
    PromptTensors t(c, p, Placement());
    ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 8, 40, &t.q, &t.kv.k, &t.kv.v));
    StepData data(c, 1, 40);
    for (double& x : data.k) x = kNan;
    StepBuffers step(&cache, 1);
    fill_step(&step, 40, data);
    ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
    for (std::int64_t head = 0; head < 4; ++head) {
      EXPECT_EQ(-kInf, step.lse_of(0, head));
      for (std::int64_t d = 0; d < 32; ++d) EXPECT_EQ(0.0f, step.out.value(0, head, d));
    }
    // An empty selection given by the caller: the same.
    StepBuffers attend(&cache, 1);
    fill_step(&attend, 40, data);
    for (int h = 0; h < 2; ++h) attend.selection.get()->counts[h] = 0;
    std::fill_n(attend.selection.get()->indices, 2 * attend.selection.get()->capacity, -1);
    ASSERT_EQ(RKV_OK, attend.attend()) << cache.text();
    for (std::int64_t head = 0; head < 4; ++head) {
      EXPECT_EQ(-kInf, attend.lse_of(0, head));
      for (std::int64_t d = 0; d < 32; ++d) EXPECT_EQ(0.0f, attend.out.value(0, head, d));
    }
  }
}

// V is not looked at: NaN in a row of V shows where that row weighs, and only there.
TEST(NonFinite, NanInVReachesOnlyTheRowsThatWeigh) {
  rkv_cache_config c = make_config(2, 1, 16, 100, 4, 10);
  c.prompt_budget = 60;
  c.page_size = 1;
  c.top_k = 5;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  Prompt p(c, 100, 32, 5);
  twin.prefill(p);
  EXPECT_EQ(0, cache.stats(0).nonfinite);
  const auto kept = cache.positions(0)[0];
  const StepData data(c, 5, 100);
  StepBuffers clean(&cache, 1);
  fill_step(&clean, 100, data);
  ASSERT_EQ(RKV_OK, clean.decode());
  const auto rows = clean.selection.list(0, 0);
  // The same life with NaN in every V row that is not selected.
  Cache dirty(c);
  ASSERT_EQ(RKV_OK, dirty.open(0));
  for (std::int64_t j = 0; j < 100; ++j) {
    bool selected = false;
    for (std::int64_t r : rows) selected = selected || (r < 60 && kept[r] == j);
    for (int d = 0; d < 16 && !selected; ++d) p.v.row(j)[d] = kNan;
  }
  PromptTensors t(c, p, Placement());
  ASSERT_EQ(RKV_OK, dirty.prefill(0, 0, 68, 100, &t.q, &t.kv.k, &t.kv.v));
  EXPECT_EQ(kept, dirty.positions(0)[0]);
  EXPECT_EQ(0, dirty.stats(0).nonfinite);
  StepBuffers step(&dirty, 1);
  fill_step(&step, 100, data);
  ASSERT_EQ(RKV_OK, step.decode());
  EXPECT_EQ(clean.result_bits(), step.result_bits());
}

}  // namespace
