// Decode through the C API: selections, outputs and log-sum-exps against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

// Prefill of one prompt, then `steps` checked decode calls.
void check_life(const rkv_cache_config& c, std::int64_t prompt, std::int64_t steps,
                std::uint64_t seed, const Placement& at = Placement(), double q_sigma = 1) {
  SCOPED_TRACE(describe(c) + " S=" + std::to_string(prompt) + " seed=" + std::to_string(seed) +
               " " + describe(at));
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
  ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
  Twin twin(&cache, 0);
  const std::int64_t window = c.window_size > 0 ? c.window_size : 32;
  twin.prefill(Prompt(c, prompt, std::min(prompt, window), seed), at);
  for (std::int64_t p = prompt; p < prompt + steps && !testing::Test::HasFailure(); ++p) {
    twin.step(p, seed, at, q_sigma);
  }
}

// B36, B43, B44, B45, B50: every option, any shape, any layout.
TEST(Stage2, RandomShapesOptionsAndLayouts) {
  for (int i = 0; i < scaled(600) && !HasFailure(); ++i) {
    Random random(5000 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 1500, 2e7);
    random_stage1_options(&random, &c);
    random_stage2_options(&random, &c);
    check_life(c, c.max_prompt_tokens, std::min<std::int64_t>(12, c.max_new_tokens),
               static_cast<std::uint64_t>(i), random_placement(&random), random.coin() ? 1 : 3);
  }
}

TEST(Stage2, EveryCombinationOfOptions) {
  for (int bits = 0; bits < 256 && !HasFailure(); ++bits) {
    const int group = (bits >> 7 & 1) != 0 ? 1 : 5;
    rkv_cache_config c = make_config(2 * group, 2, 40, 300, 6, 64, kDtypes[bits % 3]);
    c.page_size = 3;
    c.selection_unit = bits & 1;
    c.selection_domain = bits >> 1 & 1;
    c.temperature = bits >> 2 & 1;
    c.recent_tokens = (bits >> 3 & 1) != 0 ? 7 : 0;
    c.sinks = (bits >> 4 & 1) != 0 ? 4 : 0;
    c.softmax_scale = (bits >> 5 & 1) != 0 ? 0.4f : 0;
    c.logit_softcap = (bits >> 6 & 1) != 0 ? 3 : 0;
    check_life(c, 300, 6, static_cast<std::uint64_t>(bits));
  }
}

// Every head dim and group of the reports, in every type.
TEST(Stage2, B43_B44_B45_ShapeSweep) {
  int i = 0;
  for (int dim : {8, 24, 40, 64, 72, 80, 96, 112, 128, 160, 192, 248, 256}) {
    for (int group : {1, 2, 3, 5, 8, 16, 71}) {
      rkv_cache_config c = make_config(group, 1, dim, 200, 5, 40, kDtypes[i++ % 3]);
      c.window_size = 4;
      if (i % 4 == 0) c.head_dim_v = 88;
      check_life(c, 200, 5, static_cast<std::uint64_t>(i));
    }
  }
  for (const auto& heads :
       {std::pair<int, int>{9, 3}, {28, 4}, {40, 8}, {64, 1}, {32, 1}, {5, 5}}) {
    check_life(make_config(heads.first, heads.second, 96, 200, 5, 40, RKV_DTYPE_BF16), 200, 5, 8);
  }
}

TEST(Stage2, TypesOfQueriesAndOutputs) {
  for (int kv : kDtypes) {
    for (int q : kDtypes) {
      rkv_cache_config c = make_config(8, 2, 64, 400, 8, 50, kv);
      c.query_dtype = q;
      c.head_dim_v = 40;
      check_life(c, 400, 8, static_cast<std::uint64_t>(kv * 8 + q));
    }
  }
}

// The whole answer, at the sizes of a real plan: pages open, fill and close hundreds of times.
TEST(Stage2, LongAnswers) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(4, 1, 64, 3000, 300, 128, dtype);
    check_life(c, 3000, 300, static_cast<std::uint64_t>(dtype));
    c.selection_unit = RKV_UNIT_TOKENS;
    c.recent_tokens = 16;
    c.sinks = 4;
    check_life(c, 3000, 300, static_cast<std::uint64_t>(dtype));
  }
}

// Tens of thousands of live rows: dense, and a selection from as many pages.
TEST(Stage2, LongStores) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(4, 1, 32, 20000, 4, 40000, dtype);
    c.num_threads = 2;
    check_life(c, 20000, 2, static_cast<std::uint64_t>(dtype));
    c.token_budget = 500;
    c.prompt_budget = 20000;
    c.page_size = 1;
    c.num_channels = 12;
    check_life(c, 20000, 4, static_cast<std::uint64_t>(dtype), Placement(), 2);
  }
}

// B37: k at n - 1, n, n + 1 and 10 n of the live rows, and the step where live rows pass k.
TEST(Stage2, B37_MoreTokensThanThereAre) {
  for (std::int64_t k : {1, 2, 39, 40, 41, 44, 45, 46, 400}) {
    for (int unit : {RKV_UNIT_PAGES, RKV_UNIT_TOKENS}) {
      for (int page : {1, 3, 7}) {
        rkv_cache_config c = make_config(4, 2, 16, 100, 12, 20);
        c.prompt_budget = 40;
        c.top_k = k;
        c.page_size = page;
        c.selection_unit = unit;
        check_life(c, 100, 12, 3);
      }
    }
  }
}

// The settings that are other methods: Quest, SparQ, exact top-k, SnapKV alone, stage 2 alone,
// full.
TEST(Stage2, PresetsAreSettings) {
  const auto preset = [](std::int64_t budget, int page, int channels, std::int64_t k) {
    rkv_cache_config c = make_config(8, 2, 64, 600, 20, 80, RKV_DTYPE_F16);
    c.prompt_budget = budget;
    c.page_size = page;
    c.num_channels = channels;
    c.top_k = k;
    check_life(c, 600, 20, 11);
  };
  preset(600, 7, 64, 40);     // Quest
  preset(600, 1, 9, 40);      // SparQ
  preset(600, 1, 64, 40);     // exact top-k
  preset(80, 1, 64, 100000);  // SnapKV alone
  preset(600, 0, 0, 40);      // stage 2 alone
  preset(600, 1, 1, 620);     // full KV
  preset(100000, 0, 0, 100000);
}

// For G = 1 with r = D and P = 1 the selection is the exact top-k of the logits.
TEST(Stage2, ExactTopKIsTheTopKOfTheLogits) {
  rkv_cache_config c = make_config(1, 1, 32, 500, 8, 64);
  c.prompt_budget = 500;
  c.page_size = 1;
  c.num_channels = 32;
  c.top_k = 25;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 500, 32, 2));
  StepBuffers step(&cache, 1);
  const StepData data(c, 2, 500);
  step.positions[0] = 500;
  step.q.fill(data.q);
  step.k.fill(data.k);
  step.v.fill(data.v);
  ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
  twin.reference().append(500, data.k.data(), data.v.data());
  std::vector<std::pair<double, std::int64_t>> logits;
  for (std::int64_t j = 0; j < 501; ++j) {
    logits.push_back({-rkv_ref::dot(data.q.data(), twin.reference().keys(0).row(j), 32), j});
  }
  std::sort(logits.begin(), logits.end());
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 25; ++i) expected.push_back(logits[static_cast<std::size_t>(i)].second);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(expected, step.selection.list(0, 0));
}

// B24: with sinks the first tokens are in every selection; without, what scores decide. A cliff at
// k + 1 live rows would show in the outputs.
TEST(Stage2, B24_SinksAndRecentTokensAreForced) {
  for (int sinks : {0, 4}) {
    for (int page : {1, 3}) {
      rkv_cache_config c = make_config(4, 1, 32, 200, 20, 40);
      c.prompt_budget = 64;
      c.sinks = sinks;
      c.recent_tokens = sinks;
      c.page_size = page;
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0));
      Twin twin(&cache, 0);
      Prompt p(c, 200, 32, 5);
      for (int d = 0; d < 32; ++d) p.k.row(1)[d] = -p.q.row(31)[d];  // repels
      twin.prefill(p);
      for (std::int64_t at = 200; at < 220 && !HasFailure(); ++at) {
        StepBuffers step(&cache, 1);
        const StepData data(c, 5, at);
        step.positions[0] = at;
        step.q.fill(data.q);
        step.k.fill(data.k);
        step.v.fill(data.v);
        ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
        twin.check_row(step, 0, at, data);
        const auto rows = step.selection.list(0, 0);
        const std::int64_t live = twin.reference().live();
        for (std::int64_t n = 0; n < sinks; ++n) {
          EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), n));
          EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), live - 1 - n));
        }
      }
    }
  }
}

// More forced tokens than k: never more than k, rounded up to pages; the best of the forced ones.
TEST(Stage2, ForcedPagesNeverExceedK) {
  for (int unit : {RKV_UNIT_PAGES, RKV_UNIT_TOKENS}) {
    rkv_cache_config c = make_config(4, 2, 32, 300, 10, 40);
    c.prompt_budget = 120;
    c.page_size = 3;
    c.top_k = 10;
    c.recent_tokens = 60;
    c.sinks = 30;
    c.selection_unit = unit;
    check_life(c, 300, 10, 4);
  }
}

// The new token is a candidate at once: a key that shouts is selected in its own step.
TEST(Stage2, TheNewTokenIsACandidate) {
  rkv_cache_config c = make_config(2, 1, 16, 200, 4, 20);
  c.prompt_budget = 50;
  c.page_size = 1;
  c.top_k = 3;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 200, 32, 5));
  StepData data(c, 1, 200);
  for (int d = 0; d < 16; ++d)
    data.k[static_cast<std::size_t>(d)] = 3 * (data.q[d] + data.q[16 + d]);
  StepBuffers step(&cache, 1);
  step.positions[0] = 200;
  step.q.fill(data.q);
  step.k.fill(data.k);
  step.v.fill(data.v);
  ASSERT_EQ(RKV_OK, step.decode());
  EXPECT_EQ(50, step.selection.list(0, 0).back());
  twin.check_row(step, 0, 200, data);
}

// Rows of one layer and sequence do not disturb another's. B27: layers in any order, one skipped.
TEST(Stage2, B27_LayersHaveLengthsOfTheirOwn) {
  rkv_cache_config c = make_config(4, 2, 32, 300, 8, 40, RKV_DTYPE_BF16);
  c.layers = 4;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  std::vector<Twin> twins;
  for (int layer = 0; layer < 4; ++layer) twins.emplace_back(&cache, 0, layer);
  for (int layer : {2, 0, 3}) {
    twins[layer].prefill(Prompt(c, 300, 32, static_cast<std::uint64_t>(layer)));
  }
  EXPECT_EQ(0, cache.stats(0, 1).turn);
  for (std::int64_t p = 300; p < 304; ++p) {
    for (int layer : {3, 0, 2}) twins[layer].step(p, static_cast<std::uint64_t>(layer));
  }
  // A failing call in layer 3 (a gap) changes no layer.
  StepBuffers step(&cache, 1);
  step.positions[0] = 306;
  step.q.fill(StepData(c, 1, 1).q);
  step.k.fill(StepData(c, 1, 1).k);
  step.v.fill(StepData(c, 1, 1).v);
  EXPECT_EQ(RKV_BAD_STATE, step.decode(3));
  for (int layer : {0, 2, 3}) EXPECT_EQ(304, cache.stats(0, layer).position);
  twins[1].prefill(Prompt(c, 300, 32, 1));  // late, of the same turn: the same S
  twins[1].step(300, 1);
  EXPECT_EQ(301, cache.stats(0, 1).position);
  for (int layer : {0, 2, 3}) twins[layer].step(304, static_cast<std::uint64_t>(layer));
}

// attend over lists of the caller's own.
TEST(Stage2, AttendOverAGivenSelection) {
  rkv_cache_config c = make_config(6, 2, 40, 500, 8, 60, RKV_DTYPE_F16);
  c.query_dtype = RKV_DTYPE_F32;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 500, 32, 5));
  for (std::int64_t p = 500; p < 508; ++p) twin.step(p, 5);
  Random random(8);
  for (int i = 0; i < 50 && !HasFailure(); ++i) {
    StepBuffers step(&cache, 1);
    const StepData data(c, 100 + static_cast<std::uint64_t>(i), 507);
    step.positions[0] = 507;
    step.q.fill(data.q);
    rkv_selection* s = step.selection.get();
    std::fill_n(s->indices, 2 * s->capacity, -1);
    std::vector<std::int64_t> lists[2];
    for (int h = 0; h < 2; ++h) {
      const std::int64_t live = twin.reference().live();
      const std::int64_t want = random.integer(0, std::min(live, s->capacity));
      for (std::int64_t j = 0; j < live && static_cast<std::int64_t>(lists[h].size()) < want; ++j) {
        if (random.integer(0, live - j - 1) < want - static_cast<std::int64_t>(lists[h].size())) {
          s->indices[h * s->capacity + static_cast<std::int64_t>(lists[h].size())] =
              static_cast<std::int32_t>(j);
          lists[h].push_back(j);
        }
      }
      s->counts[h] = static_cast<std::int32_t>(lists[h].size());
    }
    ASSERT_EQ(RKV_OK, step.attend()) << cache.text();
    for (std::int64_t head = 0; head < 6; ++head) {
      const auto heads = twin.reference().attend(head / 3, data.q.data(), lists[head / 3]);
      EXPECT_EQ("", compare_output(step.out, 0, head, step.lse_of(0, head),
                                   heads[static_cast<std::size_t>(head % 3)]));
    }
  }
}

// attend without a selection reads every live row, select writes what decode would.
TEST(Stage2, AttendOverAllLiveRows) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(6, 2, 64, 300, 8, 30, dtype);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    twin.prefill(Prompt(c, 300, 32, 5));
    for (std::int64_t p = 300; p < 304; ++p) twin.step(p, 5);
    StepBuffers step(&cache, 1);
    const StepData data(c, 9, 303);
    step.positions[0] = 303;
    step.q.fill(data.q);
    ASSERT_EQ(RKV_OK, step.attend(0, true)) << cache.text();
    std::vector<std::int64_t> all(static_cast<std::size_t>(twin.reference().live()));
    for (std::size_t j = 0; j < all.size(); ++j) all[j] = static_cast<std::int64_t>(j);
    for (std::int64_t head = 0; head < 6; ++head) {
      const auto heads = twin.reference().attend(head / 3, data.q.data(), all);
      EXPECT_EQ("", compare_output(step.out, 0, head, step.lse_of(0, head),
                                   heads[static_cast<std::size_t>(head % 3)]));
    }
    EXPECT_EQ(304, cache.stats(0).position);
    // A lower position sees only the rows up to itself.
    step.positions[0] = 301;
    ASSERT_EQ(RKV_OK, step.attend(0, true)) << cache.text();
    all.resize(all.size() - 2);
    for (std::int64_t head = 0; head < 6; ++head) {
      const auto heads = twin.reference().attend(head / 3, data.q.data(), all);
      EXPECT_EQ("", compare_output(step.out, 0, head, step.lse_of(0, head),
                                   heads[static_cast<std::size_t>(head % 3)]));
    }
    EXPECT_EQ(304, cache.stats(0).position);
  }
}

}  // namespace
