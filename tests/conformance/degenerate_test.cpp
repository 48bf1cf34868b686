// Section 6 of the algorithm: input that has broken others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

std::vector<std::int64_t> iota(std::int64_t n) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

// B14, B34: a dozen tokens, a window as long as the prompt, every budget; one page, no full page.
TEST(Degenerate, B14_B34_TinyContexts) {
  const std::int64_t window = 6;
  for (std::int64_t prompt = 1; prompt <= window + 2; ++prompt) {
    for (std::int64_t budget = window; budget <= prompt + 1 || budget == window; ++budget) {
      for (std::int64_t k : {1, 2, 100}) {
        rkv_cache_config c = make_config(3, 1, 16, 16, 6, 2);
        c.window_size = window;
        c.prompt_budget = budget;
        c.top_k = k;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
        Twin twin(&cache, 0);
        twin.prefill(Prompt(c, prompt, std::min(prompt, window), 1));
        if (prompt <= budget) {
          EXPECT_EQ(iota(prompt), cache.positions(0)[0]);
        }
        for (std::int64_t p = prompt; p < prompt + 6 && !HasFailure(); ++p) twin.step(p, 1);
      }
    }
  }
}

// S = 1, and windows of S - 1, S and S + 1 rows.
TEST(Degenerate, OneTokenAndWindowsAroundThePrompt) {
  for (int window : {11, 12, 13, 32}) {
    rkv_cache_config c = make_config(4, 2, 24, 12, 40, 1, RKV_DTYPE_F16);
    c.window_size = window;
    for (std::int64_t prompt : {1, 12}) {
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0));
      Twin twin(&cache, 0);
      twin.prefill(Prompt(c, prompt, prompt, 3));
      for (std::int64_t p = prompt; p < prompt + 40 && !HasFailure(); ++p) twin.step(p, 3);
    }
  }
}

// B06: keys all positive or all negative, last page partial: no zero may enter a bound.
TEST(Degenerate, B06_PartialPagesOfOneSign) {
  for (double sign : {1.0, -1.0}) {
    for (int page : {2, 3, 5, 8}) {
      rkv_cache_config c = make_config(2, 1, 16, 90, 20, 12);
      c.prompt_budget = 50;
      c.page_size = page;
      c.num_channels = 16;
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0));
      Twin twin(&cache, 0);
      Prompt p(c, 90, 32, 7);
      for (double& x : p.k.data) x = sign * (5 + std::fabs(x));
      twin.prefill(p);
      for (std::int64_t at = 90; at < 110 && !HasFailure(); ++at) {
        StepData data(c, 7, at);
        for (double& x : data.k) x = sign * (5 + std::fabs(x));
        // Queries that pull away from zero: a bound of 0 would win or lose at once.
        for (double& x : data.q) x = sign * (at % 2 == 0 ? -1 : 1) * std::fabs(x);
        twin.step(at, data);
      }
    }
  }
}

// B49: all logits equal, every length around vector and tile edges: weights are exactly 1 / n.
TEST(Degenerate, B49_EqualKeysWeighTheSame) {
  rkv_cache_config c = make_config(2, 1, 64, 140, 4, 400);
  for (std::int64_t prompt = 1; prompt <= 139; ++prompt) {
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Prompt p(c, prompt, std::min<std::int64_t>(prompt, 32), 2);
    std::fill(p.k.data.begin(), p.k.data.end(), 0.25);
    Twin twin(&cache, 0);
    twin.prefill(p);
    StepData data(c, 2, prompt);
    std::fill(data.k.begin(), data.k.end(), 0.25);
    if (prompt % 2 == 0) std::fill(data.q.begin(), data.q.end(), 0.0);
    StepBuffers step(&cache, 1);
    fill_step(&step, prompt, data);
    ASSERT_EQ(RKV_OK, step.decode());
    twin.check_row(step, 0, prompt, data);
    if (prompt % 2 == 0) {
      const double n = static_cast<double>(prompt + 1);
      EXPECT_NEAR(std::log(n), step.lse_of(0, 0), 1e-6 * std::log(n));
      double mean = data.v[0];
      for (std::int64_t j = 0; j < prompt; ++j) mean += p.v.row(j)[0];
      EXPECT_NEAR(mean / n, step.out.value(0, 0, 0), 1e-6);
    }
    if (HasFailure()) break;
  }
}

// B39: all scores equal: the lowest indices, the same on every run and thread count.
TEST(Degenerate, B39_AllScoresEqual) {
  for (int unit : {RKV_UNIT_PAGES, RKV_UNIT_TOKENS}) {
    for (int heads : {1, 4}) {
      for (int threads = 1; threads <= 4; ++threads) {
        rkv_cache_config c = make_config(heads, 1, 32, 500, 8, 60);
        c.prompt_budget = 200;
        c.page_size = 3;
        c.top_k = 20;
        c.selection_unit = unit;
        c.num_threads = threads;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        Prompt p(c, 500, 32, 2);
        std::fill(p.k.data.begin(), p.k.data.end(), 0.5);
        PromptTensors t(c, p, Placement());
        ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 468, 500, &t.q, &t.kv.k, &t.kv.v));
        std::vector<std::int64_t> kept = iota(168);  // lowest of the prefix, then the window
        for (std::int64_t j = 468; j < 500; ++j) kept.push_back(j);
        EXPECT_EQ(kept, cache.positions(0)[0]);
        StepData data(c, 2, 500);
        std::fill(data.k.begin(), data.k.end(), 0.5);
        for (int run = 0; run < 25; ++run) {
          StepBuffers step(&cache, 1);
          fill_step(&step, 500, data);
          ASSERT_EQ(RKV_OK, step.decode());
          EXPECT_EQ(iota(unit == RKV_UNIT_PAGES ? 21 : 20), step.selection.list(0, 0));
        }
      }
    }
  }
}

// A zero query scores 0 everywhere: the lowest pages, a plain mean of their values.
TEST(Degenerate, ZeroQueries) {
  for (int heads : {1, 3}) {
    for (int temperature : {RKV_TEMPERATURE_SPARQ, RKV_TEMPERATURE_SQRT_D}) {
      rkv_cache_config c = make_config(heads, 1, 16, 200, 8, 20, RKV_DTYPE_BF16);
      c.prompt_budget = 80;
      c.page_size = 2;
      c.top_k = 11;
      c.temperature = temperature;
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0));
      Twin twin(&cache, 0);
      Prompt p(c, 200, 32, 5);
      std::fill(p.q.data.begin(), p.q.data.end(), 0.0);
      twin.prefill(p);
      StepData data(c, 5, 200);
      std::fill(data.q.begin(), data.q.end(), 0.0);
      StepBuffers step(&cache, 1);
      fill_step(&step, 200, data);
      ASSERT_EQ(RKV_OK, step.decode());
      EXPECT_EQ(iota(12), step.selection.list(0, 0));
      twin.check_row(step, 0, 200, data);
      // One head of the group has a zero query, or zeros in the chosen channels alone.
      StepData half(c, 6, 201);
      for (int d = 0; d < 16; ++d) half.q[d] = d < 8 || heads == 1 ? half.q[d] : 0;
      if (heads == 3) {
        for (int d = 0; d < 16; ++d) half.q[16 + d] = 0;
        for (int d = 0; d < 16; ++d) half.q[32 + d] = d < 8 ? 0 : 0.001;
      }
      twin.step(201, half);
    }
  }
}

// B59: constant channels (max == min), subnormals, all zero.
TEST(Degenerate, B59_AllZeroKeysAndConstantChannels) {
  rkv_cache_config c = make_config(4, 2, 32, 300, 10, 40, RKV_DTYPE_F16);
  for (double value : {0.0, 1.0, 6e-8, -3.0}) {  // 6e-8 is an fp16 subnormal
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    Prompt p(c, 300, 32, 9);
    for (std::size_t x = 0; x < p.k.data.size(); ++x) {
      if (x % 32 < 16 || value == 0)
        p.k.data[x] = rounded(RKV_DTYPE_F16, static_cast<float>(value));
    }
    twin.prefill(p);
    for (std::int64_t at = 300; at < 310 && !HasFailure(); ++at) twin.step(at, 9);
  }
}

// B15, B81: keys and queries near the largest fp16 value, and dots of 1e5 to 1e6: fp32 accumulation
// keeps every score finite, no sentinel of 16 bits is used.
TEST(Degenerate, B15_B81_LargeValuesStayFinite) {
  for (int dtype : {RKV_DTYPE_F16, RKV_DTYPE_BF16}) {
    for (int dim : {64, 128, 256}) {
      for (double scale : {0.0, 1e-9}) {
        rkv_cache_config c = make_config(4, 1, dim, 400, 10, 40, dtype);
        c.softmax_scale = static_cast<float>(scale);
        c.page_size = 3;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        Random random(3);
        Prompt p(c, 400, 32, 4);
        for (double& x : p.k.data) x = rounded(dtype, random.coin() ? 65504.0f : -60000.0f);
        for (double& x : p.q.data) x = rounded(dtype, random.coin() ? 65504.0f : -65504.0f);
        PromptTensors t(c, p, Placement());
        ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 368, 400, &t.q, &t.kv.k, &t.kv.v));
        EXPECT_EQ(0, cache.stats(0).nonfinite);
        EXPECT_TRUE(strictly_ascending(cache.positions(0)[0]));
        StepData data(c, 4, 400);
        for (double& x : data.q) x = rounded(dtype, random.coin() ? 65504.0f : -65504.0f);
        for (double& x : data.k) x = rounded(dtype, random.coin() ? 65504.0f : -65504.0f);
        StepBuffers step(&cache, 1);
        fill_step(&step, 400, data);
        ASSERT_EQ(RKV_OK, step.decode());
        EXPECT_TRUE(all_finite(step.out));
        for (std::int64_t head = 0; head < 4; ++head)
          EXPECT_TRUE(std::isfinite(step.lse_of(0, head)));
        EXPECT_EQ(0, cache.stats(0).nonfinite);
      }
    }
  }
  // Dots of 1e5 to 1e6 under a scale that leaves moderate logits: exact comparison.
  for (int dtype : {RKV_DTYPE_F16, RKV_DTYPE_BF16}) {
    rkv_cache_config c = make_config(4, 2, 128, 500, 8, 50, dtype);
    c.softmax_scale = 1e-5f;
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    Prompt p(c, 500, 32, 6);
    for (double& x : p.k.data) x = rounded(dtype, static_cast<float>(100 * x));
    for (double& x : p.q.data) x = rounded(dtype, static_cast<float>(100 * x));
    twin.prefill(p);
    for (std::int64_t at = 500; at < 508 && !HasFailure(); ++at) {
      StepData data(c, 6, at);
      for (double& x : data.k) x = rounded(dtype, static_cast<float>(100 * x));
      for (double& x : data.q) x = rounded(dtype, static_cast<float>(100 * x));
      twin.step(at, data);
    }
  }
}

// B53: every live logit below -1e5; nothing that stands for "masked" may win or weigh.
TEST(Degenerate, B53_LogitsBelowEverySentinel) {
  for (std::int64_t prompt : {1, 7, 33, 200}) {
    rkv_cache_config c = make_config(2, 1, 16, 200, 6, 20);
    c.page_size = 3;
    c.softmax_scale = 1;
    c.prompt_budget = 60;
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    Prompt p(c, prompt, std::min<std::int64_t>(prompt, 32), 3);
    std::fill(p.q.data.begin(), p.q.data.end(), 128.0);
    // Keys -64 - 2^-10 n: logits of -131072 and steps that fp32 still holds exactly.
    for (std::int64_t j = 0; j < prompt; ++j) {
      for (int d = 0; d < 16; ++d)
        p.k.row(j)[d] = -64.0 - 0x1p-10 * static_cast<double>(j * 7 % 64);
    }
    twin.prefill(p);
    for (std::int64_t at = prompt; at < prompt + 6 && !HasFailure(); ++at) {
      StepData data(c, 3, at);
      std::fill(data.q.begin(), data.q.end(), 128.0);
      std::fill(data.k.begin(), data.k.end(), -64.0 - 0x1p-10 * static_cast<double>(at * 7 % 64));
      twin.step(at, data);
    }
  }
}

// B51, B56, B63, B73: storage, workspace, outputs and every gap are NaN before the call (the test
// buffers always are); lengths around a page; nothing of it reaches an output.
TEST(Degenerate, B51_B56_B63_B73_PoisonedMemory) {
  for (int page : {1, 4, 8}) {
    for (int extra = -1; extra <= 1; ++extra) {
      const std::int64_t prompt = std::max<std::int64_t>(1, 5 * page + extra);
      for (int dtype : kDtypes) {
        rkv_cache_config c = make_config(4, 2, 40, 64, 20, 8, dtype);
        c.page_size = page;
        c.head_dim_v = 24;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        Placement at;
        at.k = Layout::kPaddedRows;
        at.v = Layout::kTransposed;
        at.q = Layout::kOddStrides;
        at.step = Layout::kPaddedRows;
        Twin twin(&cache, 0);
        twin.prefill(Prompt(c, prompt, std::min<std::int64_t>(prompt, 32), 6), at);
        for (std::int64_t p = prompt; p < prompt + 20 && !HasFailure(); ++p) twin.step(p, 6, at);
      }
    }
  }
}

// B54: no rows, no prompt: OK, and nothing happens.
TEST(Degenerate, B54_NothingToDo) {
  rkv_cache_config c = make_config(4, 2, 32, 100, 8, 10);
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  HostTensor empty_q(RKV_DTYPE_F32, 0, 4, 32), empty_k(RKV_DTYPE_F32, 0, 2, 32);
  EXPECT_EQ(RKV_OK, cache.prefill(0, 0, 0, 0, &empty_q, &empty_k, &empty_k)) << cache.text();
  EXPECT_EQ(RKV_OK, cache.prefill(0, 0, 0, 0, nullptr, nullptr, nullptr)) << cache.text();
  EXPECT_EQ(0, cache.stats(0).turn);
  rkv_decode_args args = zeroed<rkv_decode_args>();
  EXPECT_EQ(RKV_OK, rkv_decode(cache.get(), &args, nullptr, cache.error())) << cache.text();
  EXPECT_EQ(RKV_OK, rkv_decode_select(cache.get(), &args, nullptr, cache.error()));
  EXPECT_EQ(RKV_OK, rkv_attend(cache.get(), &args, nullptr, cache.error()));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 100, 32, 1));  // the sequence is still unprefilled
  EXPECT_EQ(RKV_OK, rkv_decode(cache.get(), &args, nullptr, cache.error()));
  EXPECT_EQ(100, cache.stats(0).position);
}

// B35: thousands of candidates whose scores share their high bits, a planted top set.
TEST(Degenerate, B35_ScoresThatShareTheirHighBits) {
  for (std::int64_t live : {8000, 40000}) {
    for (std::int64_t k : {128, 4096}) {
      rkv_cache_config c = make_config(1, 1, 8, live, 2, 64);
      c.prompt_budget = live;
      c.page_size = 1;
      c.num_channels = 8;
      c.top_k = k;
      c.softmax_scale = 1;
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
      Prompt p(c, live, 1, 4);
      std::fill(p.k.data.begin(), p.k.data.end(), 0.0);
      Random random(static_cast<std::uint64_t>(live + k));
      std::vector<std::int64_t> order = iota(live);
      for (std::size_t j = order.size(); j > 1; --j) {
        std::swap(
            order[j - 1],
            order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(j) - 1))]);
      }
      // Scores 1 + rank * 2^-23, all within [1, 1 + 2^-7): all different, exact in fp32.
      for (std::int64_t rank = 0; rank < live; ++rank) {
        p.k.row(order[rank])[0] = 1 + 0x1p-23 * static_cast<double>(rank);
      }
      std::vector<std::int64_t> expected(order.end() - k, order.end());
      std::sort(expected.begin(), expected.end());
      PromptTensors t(c, p, Placement());
      ASSERT_EQ(RKV_OK, cache.prefill(0, 0, live - 1, live, &t.q, &t.kv.k, &t.kv.v));
      StepData data(c, 1, live);
      std::fill(data.q.begin(), data.q.end(), 0.0);
      std::fill(data.k.begin(), data.k.end(), 0.0);
      data.q[0] = 1;
      for (int run = 0; run < scaled(50); ++run) {
        StepBuffers step(&cache, 1);
        fill_step(&step, live, data);
        ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
        ASSERT_EQ(expected, step.selection.list(0, 0)) << "run " << run;
      }
    }
  }
}

}  // namespace
