// Stage 1 through the C API: kept positions against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

// One cache, one prompt: kept sets, plan and stats against the reference.
void check_prompt(const rkv_cache_config& c, std::int64_t prompt, std::int64_t q_rows,
                  std::uint64_t seed, const Placement& at = Placement(), double q_sigma = 1) {
  SCOPED_TRACE(describe(c) + " S=" + std::to_string(prompt) + " rows=" + std::to_string(q_rows) +
               " seed=" + std::to_string(seed) + " " + describe(at));
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
  ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, prompt, q_rows, seed, q_sigma), at);
}

// B43, B44, B45, B50, B66: any group, any head dim, any layout, head dim apart from Hq.
TEST(Stage1, RandomShapesOptionsAndLayouts) {
  for (int i = 0; i < scaled(450); ++i) {
    Random random(1000 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 5000, 8e7);
    random_stage1_options(&random, &c);
    const std::int64_t window = c.window_size > 0 ? c.window_size : 32;
    const std::int64_t prompt = c.max_prompt_tokens;
    const std::int64_t rows =
        std::min(prompt, random.integer(0, 3) == 0 ? random.integer(1, window) : window + 9);
    check_prompt(c, prompt, rows, static_cast<std::uint64_t>(i), random_placement(&random),
                 random.coin() ? 1 : 3);
    if (HasFatalFailure() || HasNonfatalFailure()) break;
  }
}

// B43, B44: every group the reports name.
TEST(Stage1, B43_B44_Groups) {
  for (int group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32, 64, 71}) {
    for (int dim : {128, 256}) {
      rkv_cache_config c = make_config(group, 1, dim, 400, 8, 40, RKV_DTYPE_F16);
      c.window_size = 8;
      check_prompt(c, 400, 8, static_cast<std::uint64_t>(group));
    }
  }
  for (const auto& heads :
       {std::pair<int, int>{9, 3}, {28, 4}, {40, 8}, {64, 1}, {71, 1}, {5, 5}}) {
    check_prompt(make_config(heads.first, heads.second, 64, 300, 8, 30, RKV_DTYPE_BF16), 300, 32,
                 3);
  }
}

// B45: every head dim in every type.
TEST(Stage1, B45_HeadDims) {
  for (int dim : {8, 16, 24, 40, 56, 64, 72, 80, 96, 112, 120, 128, 160, 192, 200, 248, 256}) {
    for (int dtype : kDtypes) {
      check_prompt(make_config(6, 2, dim, 500, 8, 50, dtype), 500, 32,
                   static_cast<std::uint64_t>(dim));
    }
  }
}

// Checklist 1: lengths around window and budget.
TEST(Stage1, LengthSweep) {
  rkv_cache_config c = make_config(4, 2, 64, 300, 8, 20, RKV_DTYPE_F16);
  c.prompt_budget = 100;
  for (std::int64_t prompt :
       {1, 2, 31, 32, 33, 63, 64, 65, 99, 100, 101, 102, 127, 128, 129, 299, 300}) {
    check_prompt(c, prompt, std::min<std::int64_t>(prompt, 40), static_cast<std::uint64_t>(prompt));
    check_prompt(c, prompt, 1, static_cast<std::uint64_t>(prompt));
  }
}

// Each combination of the options once, whatever the random test has drawn.
TEST(Stage1, EveryCombinationOfOptions) {
  for (int bits = 0; bits < 128; ++bits) {
    rkv_cache_config c = make_config(6, 2, 72, 700, 8, 60, kDtypes[bits % 3]);
    c.stage1_domain = bits & 1;
    c.pooling = bits >> 1 & 1;
    c.kernel_size = c.pooling == RKV_POOL_AVG ? 7 : 21;
    c.key_as_query = bits >> 2 & 1;
    c.softmax_scale = (bits >> 3 & 1) != 0 ? 0.25f : 0;
    c.logit_softcap = (bits >> 4 & 1) != 0 ? 2.5f : 0;
    c.sinks = (bits >> 5 & 1) != 0 ? 4 : 0;
    c.window_size = (bits >> 6 & 1) != 0 ? 5 : 0;
    check_prompt(c, 700, 32, 77);
    if (HasFailure()) break;
  }
}

TEST(Stage1, KernelsAndWindows) {
  for (int kernel : {1, 3, 5, 63, 65, 127, 999, 9999}) {
    for (int window : {1, 2, 31, 100}) {
      rkv_cache_config c = make_config(3, 1, 40, 1200, 8, 0, RKV_DTYPE_F32);
      c.compression_ratio = 8;
      c.kernel_size = kernel;
      c.window_size = window;
      check_prompt(c, 1200, window, static_cast<std::uint64_t>(kernel + window));
      if (kernel > 1200) continue;  // one mean for all: rounding would decide
      c.pooling = RKV_POOL_AVG;
      check_prompt(c, 1200, window, static_cast<std::uint64_t>(kernel + window));
    }
  }
}

// Sums run in blocks: long prompts, one key head, few channels.
TEST(Stage1, LongPrompts) {
  for (std::int64_t prompt : {4095, 4096, 4097, 8191, 8193, 20000, 70001}) {
    rkv_cache_config c = make_config(2, 1, 16, prompt, 16, 128, RKV_DTYPE_BF16);
    c.num_threads = 2;
    check_prompt(c, prompt, 32, static_cast<std::uint64_t>(prompt));
  }
}

// B32, B72: a prompt beyond any table, S * Hq * W beyond 2^31.
TEST(Stage1, B32_B72_AMillionTokens) {
  const std::int64_t prompt = scaled(100) >= 100 ? (1 << 20) + 1 : (1 << 17) + 1;
  rkv_cache_config c = make_config(71, 1, 8, prompt, 8, 512, RKV_DTYPE_BF16);
  c.window_size = 1;
  c.num_threads = 2;
  check_prompt(c, prompt, 1, 9);
}

// B19: one kept set for the four query heads of a group; the result is per KV head.
TEST(Stage1, B19_ASetPerKvHead) {
  rkv_cache_config c = make_config(32, 8, 64, 600, 8, 50, RKV_DTYPE_F16);
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 600, 32, 4));
  const auto kept = cache.positions(0);
  ASSERT_EQ(8u, kept.size());
  EXPECT_NE(kept[0], kept[1]);  // heads decide for themselves
}

// B07: the last prompt token is kept at every length; it is the only key that matters.
TEST(Stage1, B07_TheLastPromptTokenIsKept) {
  for (int window : {1, 8}) {
    for (std::int64_t prompt = 1; prompt <= 2 * window + 1; ++prompt) {
      rkv_cache_config c = make_config(2, 1, 16, 64, 4, 2);
      c.window_size = window;
      c.prompt_budget = window;
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
      Prompt p(c, prompt, std::min<std::int64_t>(prompt, window), 1);
      for (int d = 0; d < 16; ++d) p.k.row(prompt - 1)[d] = 4;
      Twin twin(&cache, 0);
      twin.prefill(p);
      EXPECT_EQ(prompt - 1, cache.positions(0)[0].back());
      EXPECT_EQ(std::min<std::int64_t>(prompt, window), cache.live_rows(0));
    }
  }
}

// B08: strictly ascending, in position order, whatever the scores say.
TEST(Stage1, B08_KeptInPositionOrder) {
  rkv_cache_config c = make_config(4, 1, 32, 1000, 8, 60);
  Prompt p(c, 1000, 32, 6);
  for (std::int64_t j = 0; j < 900; j += 50) {  // the later, the stronger
    for (int d = 0; d < 32; ++d) p.k.row(j)[d] += static_cast<double>(j) * 1e-3;
  }
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(p);
  EXPECT_TRUE(strictly_ascending(cache.positions(0)[0]));
}

// B05, B17: prompts of mixed lengths in one cache keep what each keeps alone, bit for bit.
TEST(Stage1, B05_B17_MixedLengths) {
  const std::int64_t lengths[] = {300, 5000, 33, 1, 1200};
  rkv_cache_config c = make_config(4, 2, 64, 5000, 8, 80, RKV_DTYPE_F16);
  c.max_sequences = 5;
  c.num_threads = 2;
  Cache batch(c);
  for (int s = 0; s < 5; ++s) {
    ASSERT_EQ(RKV_OK, batch.open(s)) << batch.text();
    Twin twin(&batch, s);
    twin.prefill(Prompt(c, lengths[s], std::min<std::int64_t>(32, lengths[s]), 10 + s));
  }
  for (int s = 0; s < 5; ++s) {
    Cache alone(c);
    ASSERT_EQ(RKV_OK, alone.open(0));
    Twin twin(&alone, 0);
    twin.prefill(Prompt(c, lengths[s], std::min<std::int64_t>(32, lengths[s]), 10 + s));
    EXPECT_EQ(alone.positions(0), batch.positions(s)) << lengths[s];
  }
}

// Plateaus: every score of the prefix equal, then the unpooled score decides inside one plateau.
TEST(Stage1, PlateausAreBrokenByTheUnpooledScoreThenTheIndex) {
  rkv_cache_config c = make_config(1, 1, 8, 200, 4, 10);
  c.window_size = 2;
  c.prompt_budget = 22;
  c.kernel_size = 31;
  Prompt p(c, 200, 2, 1);
  std::fill(p.q.data.begin(), p.q.data.end(), 1.0);
  std::fill(p.k.data.begin(), p.k.data.end(), 0.0);
  Cache all_equal(c);
  ASSERT_EQ(RKV_OK, all_equal.open(0));
  Twin(&all_equal, 0).prefill(p);
  std::vector<std::int64_t> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  expected.insert(expected.end(), {198, 199});
  EXPECT_EQ(expected, all_equal.positions(0)[0]);

  // One peak at 100 lifts 85..115; of these the ones with a larger score of their own go first.
  for (std::int64_t j = 0; j < 200; ++j) {
    p.k.row(j)[0] = j == 100 ? 8 : (j >= 85 && j <= 115 && j % 2 == 0 ? 0.5 : 0);
  }
  Cache peak(c);
  ASSERT_EQ(RKV_OK, peak.open(0));
  Twin(&peak, 0).prefill(p);
  expected = {85, 86, 87, 88, 89, 90, 91};  // 15 even ones first, then the lowest odd ones
  for (std::int64_t j = 92; j <= 114; j += 2) expected.push_back(j);
  expected.push_back(93);
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(20u, expected.size());
  expected.insert(expected.end(), {198, 199});
  EXPECT_EQ(expected, peak.positions(0)[0]);
}

// A prompt of budget tokens is kept whole and needs no queries; one more needs them.
TEST(Stage1, QueriesMayBeLeftOutWhereNothingIsScored) {
  rkv_cache_config c = make_config(2, 1, 16, 300, 8, 20);
  c.prompt_budget = 64;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  const Prompt p(c, 65, 32, 3);
  PromptTensors t(c, p, Placement());
  EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.prefill(0, 0, 33, 65, nullptr, &t.kv.k, &t.kv.v));
  EXPECT_EQ(0, cache.stats(0).turn);
  const Prompt short_one(c, 64, 32, 3);
  PromptTensors s(c, short_one, Placement());
  ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 0, 64, nullptr, &s.kv.k, &s.kv.v)) << cache.text();
  EXPECT_EQ(64, cache.live_rows(0));
}

// A dense layer keeps the whole prompt; its neighbour does not.
TEST(Stage1, DenseLayers) {
  rkv_cache_config c = make_config(4, 2, 32, 500, 8, 40, RKV_DTYPE_F16);
  c.layers = 35;
  c.dense_layers[0] = 1u << 3;
  c.dense_layers[1] = 1u << 2;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
  ASSERT_EQ(RKV_OK, cache.open(0));
  for (int layer : {34, 0, 3, 33}) {
    Twin twin(&cache, 0, layer);
    twin.prefill(Prompt(c, 500, 32, static_cast<std::uint64_t>(layer)));
    EXPECT_EQ(layer == 3 || layer == 34 ? 500 : twin.reference().plan().prompt_budget,
              cache.live_rows(0, layer));
    for (std::int64_t p = 500; p < 508; ++p) twin.step(p, static_cast<std::uint64_t>(layer));
  }
}

}  // namespace
