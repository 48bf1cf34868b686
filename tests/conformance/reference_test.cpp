// The reference itself, against golden values and cases small enough to do by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../reference/sequence.hpp"
#include "../support/dtypes.hpp"
#include "../support/random.hpp"
#include "golden_plans.hpp"

namespace {

using rkv_ref::Rows;
constexpr double kInf = std::numeric_limits<double>::infinity();

Rows table(std::int64_t count, std::int64_t width, std::vector<double> values) {
  Rows rows(count, width);
  rows.data = std::move(values);
  return rows;
}

rkv_ref::Plan plan_of(std::int64_t length, std::int64_t t, double c, std::int64_t max_new) {
  rkv_ref::PlanInput in;
  in.prompt_tokens = length - max_new;
  in.max_new = max_new;
  in.head_dim = 128;
  in.token_budget = t;
  in.ratio = c;
  return rkv_ref::make_plan(in);
}

TEST(ReferencePlan, Golden) {
  for (const auto& g : rkv_test::kGoldenPlans) {
    const rkv_ref::Plan plan = plan_of(g.length, g.budget, 0, g.max_new);
    EXPECT_EQ(g.cap, plan.cap) << g.length << " " << g.budget;
    EXPECT_EQ(g.prompt_budget, plan.prompt_budget);
    EXPECT_EQ(g.page_size, plan.page_size);
    EXPECT_EQ(g.num_channels, plan.num_channels);
    EXPECT_EQ(g.top_k, plan.top_k);
  }
}

TEST(ReferencePlan, Split) {
  for (const auto& g : rkv_test::kGoldenSplits) {
    EXPECT_NEAR(g.split, rkv_ref::split_exponent(g.ratio), 5e-5) << g.ratio;
  }
}

// c = 64: a = .56, stage 1 10.3x, stage 2 6.2x, P = 3, head ratio 2.08.
TEST(ReferencePlan, PaperExample) {
  const rkv_ref::Plan plan = plan_of(65536, 1024, 0, 0);
  EXPECT_DOUBLE_EQ(64, plan.ratio);
  EXPECT_DOUBLE_EQ(0.56, plan.split);
  const double stage1 = 65536.0 / static_cast<double>(plan.cap);
  EXPECT_NEAR(10.3, stage1, 0.05);
  EXPECT_NEAR(6.2, 64 / stage1, 0.05);
  EXPECT_EQ(3, plan.page_size);
  EXPECT_NEAR(2.08, 128.0 / static_cast<double>(plan.num_channels), 0.02);
}

TEST(ReferencePlan, SnappedFloor) {
  EXPECT_EQ(1000, rkv_ref::snapped_floor(1100 / 1.1));
  EXPECT_EQ(2, rkv_ref::snapped_floor(2.999999));
  EXPECT_EQ(3, rkv_ref::snapped_floor(3.0000001));
  EXPECT_EQ(1000, plan_of(1100, 0, 1.1, 10).token_budget);
}

// c = 1024 exactly: L / c^.8 = L / 256 without the token that plain doubles lose.
TEST(ReferencePlan, Ratio1024LosesNothing) {
  EXPECT_EQ(256, plan_of(65536, 64, 0, 10).cap);
  EXPECT_EQ(512, plan_of(131072, 128, 0, 10).cap);
  EXPECT_EQ(4096, plan_of(1048576, 1024, 0, 10).cap);
}

TEST(ReferencePlan, RaisedDenseAndOverrides) {
  rkv_ref::PlanInput in;
  in.prompt_tokens = 300;
  in.max_new = 10;
  in.head_dim = 64;
  in.token_budget = 1;
  in.sinks = 4;
  rkv_ref::Plan plan = rkv_ref::make_plan(in);
  EXPECT_TRUE(plan.raised);  // 310 / 310^.8 is 3: window, sinks and answer decide
  EXPECT_EQ(32 + 4 + 10, plan.cap);
  EXPECT_EQ(36, plan.prompt_budget);
  EXPECT_EQ(1, plan.top_k);

  in.token_budget = 2 * 310;
  plan = rkv_ref::make_plan(in);
  EXPECT_TRUE(plan.dense);
  EXPECT_EQ(310, plan.cap);
  EXPECT_EQ(310, plan.top_k);
  EXPECT_EQ(310, plan.token_budget);

  in.token_budget = 16;
  in.prompt_budget = 100;
  in.page_size = 5;
  plan = rkv_ref::make_plan(in);
  EXPECT_EQ(110, plan.cap);
  EXPECT_EQ(47, plan.num_channels);  // 64 * 5 * 16 / 110 = 46.5
  in.num_channels = 7;
  in.top_k = 9;
  plan = rkv_ref::make_plan(in);
  EXPECT_EQ(7, plan.num_channels);
  EXPECT_EQ(9, plan.top_k);
  EXPECT_EQ(110, plan.cap);
  EXPECT_EQ(22, plan.pages);
}

TEST(ReferencePlan, HalfEven) {
  EXPECT_EQ(2, rkv_ref::divide_half_even(5, 2));
  EXPECT_EQ(4, rkv_ref::divide_half_even(7, 2));
  EXPECT_EQ(3, rkv_ref::divide_half_even(10, 3));
  EXPECT_EQ(4, rkv_ref::divide_half_even(11, 3));
}

// Equal logits: row i sees S - w + i + 1 keys, each weighs the same.
TEST(ReferenceStage1, ScoresOfEqualKeys) {
  const Rows keys = table(6, 1, {1, 1, 1, 1, 1, 1});
  const Rows q = table(2, 1, {0, 0});
  rkv_ref::Stage1Options options;
  options.kernel = 1;
  std::vector<bool> bad;
  auto score = rkv_ref::window_scores(q, 1, keys, 2, options, &bad);
  ASSERT_EQ(4u, score.size());
  for (double s : score) EXPECT_NEAR(1.0 / 5 + 1.0 / 6, s, 1e-15);
  options.prefix_only = true;
  score = rkv_ref::window_scores(q, 1, keys, 2, options, &bad);
  for (double s : score) EXPECT_NEAR(0.5, s, 1e-15);
}

// One head, one row, logits log(1), log(3), log(4) and a window key of log(2).
TEST(ReferenceStage1, ScaleSoftcapAndGroup) {
  const Rows keys = table(4, 1, {0, std::log(3), std::log(4), std::log(2)});
  rkv_ref::Stage1Options options;
  options.scale = 2;
  std::vector<bool> bad;
  auto score = rkv_ref::window_scores(table(1, 1, {0.5}), 1, keys, 1, options, &bad);
  EXPECT_NEAR(0.1, score[0], 1e-15);
  EXPECT_NEAR(0.3, score[1], 1e-15);
  EXPECT_NEAR(0.4, score[2], 1e-15);
  // A second head with a zero query adds a quarter to each.
  score = rkv_ref::window_scores(table(2, 1, {0.5, 0}), 2, keys, 1, options, &bad);
  EXPECT_NEAR(0.35, score[0], 1e-15);
  EXPECT_NEAR(0.65, score[2], 1e-15);
  // A tiny cap makes every positive logit the cap.
  options.softcap = 1e-9;
  score = rkv_ref::window_scores(table(1, 1, {0.5}), 1, keys, 1, options, &bad);
  EXPECT_NEAR(0.25, score[0], 1e-8);
}

TEST(ReferenceStage1, Pooling) {
  const std::vector<double> score = {1, 0, 0, 5, 0, 2};
  EXPECT_EQ((std::vector<double>{1, 1, 5, 5, 5, 2}), rkv_ref::pool(score, 3, false));
  EXPECT_EQ((std::vector<double>{5, 5, 5, 5, 5, 5}), rkv_ref::pool(score, 63, false));
  const std::vector<double> mean = rkv_ref::pool(score, 3, true);
  EXPECT_DOUBLE_EQ(1.0 / 3, mean[0]);
  EXPECT_DOUBLE_EQ(5.0 / 3, mean[2]);
  EXPECT_DOUBLE_EQ(2.0 / 3, mean[5]);
}

// Plateaus: higher unpooled score first, then the lower index; sinks are not ranked.
TEST(ReferenceStage1, Ranking) {
  EXPECT_EQ((std::vector<std::int64_t>{4, 2, 3, 1}),
            rkv_ref::rank_prefix({9, 5, 7, 7, 7}, {9, 0, 3, 3, 7}, 1));
}

TEST(ReferenceStage1, SelectionIsSinksBestAndWindow) {
  // D = 1, zero queries but one large: key 5 of the prefix attracts everything.
  Rows keys = table(10, 1, {0, 0, 0, 0, 0, 9, 0, 0, 0, 0});
  rkv_ref::Stage1Options options;
  options.window = 2;
  options.kernel = 3;
  options.sinks = 1;
  const auto r = rkv_ref::stage1(table(2, 1, {3, 3}), 1, keys, 6, options);
  EXPECT_EQ((std::vector<std::int64_t>{0, 4, 5, 6, 8, 9}), r.kept);
  EXPECT_EQ(2, r.window_rows);
  EXPECT_FALSE(r.nonfinite);
  // Its infinite twin is last, raises the flag, and its neighbours gain nothing from it.
  keys.row(5)[0] = kInf;
  const auto bad = rkv_ref::stage1(table(2, 1, {3, 3}), 1, keys, 6, options);
  EXPECT_TRUE(bad.nonfinite);
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 2, 3, 8, 9}), bad.kept);
  EXPECT_EQ(-kInf, bad.pooled[5]);
}

TEST(ReferenceStage1, IdentityAndShortPrompts) {
  const Rows keys(5, 1);
  rkv_ref::Stage1Options options;
  options.window = 32;
  const auto r = rkv_ref::stage1(Rows(5, 1), 1, keys, 5, options);
  EXPECT_TRUE(r.identity);
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 2, 3, 4}), r.kept);
}

// The last keys stand in; a key meets itself, and not those behind it.
TEST(ReferenceStage1, KeyAsQueryIsCausal) {
  const Rows keys = table(4, 1, {1, 0, 2, 1});
  rkv_ref::Stage1Options options;
  options.window = 2;
  options.kernel = 1;
  options.key_as_query = true;
  options.scale = 1;
  const auto r = rkv_ref::stage1(Rows(0, 1), 4, keys, 3, options);
  const double first = std::exp(2) / (std::exp(2) + 1 + std::exp(4));
  const double second = std::exp(1) / (std::exp(1) + 1 + std::exp(2) + std::exp(1));
  EXPECT_NEAR(first + second, r.score[0], 1e-14);
  EXPECT_EQ((std::vector<std::int64_t>{0, 2, 3}), r.kept);
}

TEST(ReferenceSummaries, LastPageHoldsRealRowsOnly) {
  const auto s = rkv_ref::summarise(table(5, 2, {1, -1, 3, -3, 2, -2, 9, -9, 4, -4}), 3);
  ASSERT_EQ(2, s.pages());
  EXPECT_EQ((std::vector<double>{1, -3, 4, -9}), s.low.data);
  EXPECT_EQ((std::vector<double>{3, -1, 9, -4}), s.high.data);
}

TEST(ReferenceStage2, ChannelsSignsAndTemperature) {
  // |q| = 4, 1, 4, 3: channels 0 and 2 are taken, the tie with the lower channel first.
  const Rows q = table(1, 4, {4, 1, -4, 3});
  Rows keys(4, 4);
  keys.data = {1, 0, 1, 0, 2, 0, 3, 0, 0, 0, -1, 0, 1, 0, 5, 0};
  rkv_ref::Stage2Options options;
  options.num_channels = 2;
  options.top_k = 2;
  const auto r = rkv_ref::stage2(q, keys, 2, options);
  EXPECT_EQ((std::vector<std::int64_t>{0, 2, 3, 1}), r.channels);
  // Page 0: 4 * max(1, 2) - 4 * min(1, 3); page 1: 4 * max(0, 1) - 4 * min(-1, 5).
  const double tau = std::sqrt(8.0 / 12.0) / (1 / std::sqrt(4.0));
  EXPECT_NEAR(4 / tau, r.score.row(0)[0], 1e-14);
  EXPECT_NEAR(8 / tau, r.score.row(0)[1], 1e-14);
  EXPECT_EQ((std::vector<std::int64_t>{2, 3}), r.rows);
  options.sqrt_d = true;
  EXPECT_NEAR(4.0, rkv_ref::stage2(q, keys, 2, options).score.row(0)[1], 1e-14);
}

// Two heads, three pages of which the last holds one of two tokens.
TEST(ReferenceStage2, GroupRanksByTokenProbability) {
  const Rows score = table(2, 3, {0, std::log(2), std::log(3), 0, 0, -kInf});
  auto rank = rkv_ref::rank_scores(score, 5, 2, false);
  EXPECT_NEAR(1.0 / 9 + 1.0 / 4, rank[0], 1e-15);
  EXPECT_NEAR(2.0 / 9 + 1.0 / 4, rank[1], 1e-15);
  EXPECT_NEAR(3.0 / 9, rank[2], 1e-15);
  rank = rkv_ref::rank_scores(score, 5, 2, true);
  EXPECT_NEAR(1.0 / 6 + 1.0 / 2, rank[0], 1e-15);
  EXPECT_NEAR(3.0 / 6, rank[2], 1e-15);
}

TEST(ReferenceStage2, UnitsForcedPagesAndTies) {
  rkv_ref::Stage2Result r;
  r.rank = {1, 5, 5, 0};  // four pages of three tokens, the last of one: ten live rows
  rkv_ref::Stage2Options options;
  options.top_k = 4;
  const auto rows = [&]() {
    r.rows.clear();
    rkv_ref::select_pages(10, 3, options, &r);
    return r.rows;
  };
  EXPECT_EQ((std::vector<std::int64_t>{3, 4, 5, 6, 7, 8}), rows());
  options.tokens_unit = true;
  EXPECT_EQ((std::vector<std::int64_t>{3, 4, 5, 6}), rows());
  options.recent = 1;  // the last page is taken first, though it is the worst
  EXPECT_EQ((std::vector<std::int64_t>{3, 4, 5, 9}), rows());
  options.recent = 2;  // pages 2 and 3 are forced
  EXPECT_EQ((std::vector<std::int64_t>{6, 7, 8, 9}), rows());
  options.recent = 5;  // pages 1, 2 and 3 are forced, more than k: the best of them
  EXPECT_EQ((std::vector<std::int64_t>{3, 4, 5, 6}), rows());
  options.recent = 0;
  options.sinks = 1;
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 2, 3}), rows());
  options.tokens_unit = false;
  options.top_k = 3;
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 2}), rows());
}

TEST(ReferenceStage2, ZeroQueryInfiniteKeysAndDense) {
  Rows keys = table(4, 2, {1, 1, 2, 2, 3, 3, kInf, 4});
  rkv_ref::Stage2Options options;
  options.num_channels = 1;
  options.top_k = 2;
  EXPECT_EQ((std::vector<std::int64_t>{0, 1}), rkv_ref::stage2(Rows(1, 2), keys, 1, options).rows);
  const auto r = rkv_ref::stage2(table(1, 2, {1, 0}), keys, 1, options);
  EXPECT_EQ(-kInf, r.score.row(0)[3]);
  EXPECT_EQ((std::vector<std::int64_t>{1, 2}), r.rows);
  options.top_k = 4;
  EXPECT_TRUE(rkv_ref::stage2(Rows(1, 2), keys, 1, options).dense);
  EXPECT_EQ(4u, rkv_ref::stage2(Rows(1, 2), keys, 1, options).rows.size());
}

TEST(ReferenceAttention, WeightsLseAndEmpty) {
  Rows keys = table(3, 1, {std::log(1), std::log(3), kInf});
  const Rows values = table(3, 2, {10, 0, 20, 4, std::nan(""), 1});
  const double q = 1;
  auto r = rkv_ref::attention(&q, keys, values, {0, 1, 2}, 1, 0);
  EXPECT_NEAR(17.5, r.out[0], 1e-14);
  EXPECT_NEAR(3, r.out[1], 1e-14);
  EXPECT_NEAR(std::log(4), r.lse, 1e-15);
  EXPECT_TRUE(r.nonfinite);
  r = rkv_ref::attention(&q, keys, values, {2}, 1, 0);
  EXPECT_EQ((std::vector<double>{0, 0}), r.out);
  EXPECT_EQ(-kInf, r.lse);
  r = rkv_ref::attention(&q, keys, values, {}, 1, 0);
  EXPECT_EQ((std::vector<double>{0, 0}), r.out);
  EXPECT_EQ(-kInf, r.lse);
  r = rkv_ref::attention(&q, keys, values, {0, 1}, 1, 1e-9);  // capped: both weigh a half
  EXPECT_NEAR(15, r.out[0], 1e-7);
}

TEST(ReferenceSequence, AppendRewindAndPositions) {
  rkv_ref::SequenceConfig config;
  config.q_heads = 2;
  config.plan.max_new = 4;
  config.plan.token_budget = 4;
  config.plan.prompt_budget = 3;
  config.plan.window = 1;
  rkv_ref::Sequence sequence(config);
  sequence.prefill(Rows(1, 2), table(5, 1, {1, 2, 3, 4, 5}), Rows(5, 1));
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 4}), sequence.positions(0));
  const double q[2] = {1, -1}, k = 7, v = 8;
  for (std::int64_t p = 5; p < 8; ++p) sequence.step(p, q, &k, &v);
  EXPECT_EQ(6, sequence.live());
  EXPECT_EQ(8, sequence.length());
  const auto step = sequence.step(6, q, &k, &v);
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 4, 5, 6}), sequence.positions(0));
  EXPECT_EQ(2u, step.heads.size());
  EXPECT_THROW(sequence.rewind(4), std::out_of_range);
  EXPECT_THROW(sequence.rewind(8), std::out_of_range);
}

TEST(Dtypes, EveryHalfSurvivesAndRoundingIsToEven) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const float x = rkv_test::from_f16(static_cast<std::uint16_t>(h));
    if (!std::isnan(x)) {
      ASSERT_EQ(h, rkv_test::to_f16(x));
    }
    const float y = rkv_test::from_bf16(static_cast<std::uint16_t>(h));
    if (!std::isnan(y)) {
      ASSERT_EQ(h, rkv_test::to_bf16(y));
    }
  }
  EXPECT_EQ(2048.0f, rkv_test::rounded(RKV_DTYPE_F16, 2049.0f));
  EXPECT_EQ(2052.0f, rkv_test::rounded(RKV_DTYPE_F16, 2051.0f));
  EXPECT_EQ(65504.0f, rkv_test::rounded(RKV_DTYPE_F16, 65519.0f));
  EXPECT_TRUE(std::isinf(rkv_test::rounded(RKV_DTYPE_F16, 65520.0f)));
  EXPECT_EQ(0.0f, rkv_test::rounded(RKV_DTYPE_F16, 0x1p-25f));
  EXPECT_EQ(0x1p-23f, rkv_test::rounded(RKV_DTYPE_F16, 0x1.8p-24f));
  EXPECT_EQ(256.0f, rkv_test::rounded(RKV_DTYPE_BF16, 257.0f));
  EXPECT_EQ(260.0f, rkv_test::rounded(RKV_DTYPE_BF16, 259.0f));
}

}  // namespace
