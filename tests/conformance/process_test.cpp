// The library inside a process: several handles, threads, silence, and quality that must not drift.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

using Bits = std::vector<std::uint8_t>;

rkv_cache_config thread_config(int which) {
  rkv_cache_config c = make_config(4, 2, 32, 600, 16, 40, kDtypes[which % 3]);
  c.num_threads = 1 + which % 2;
  return c;
}

std::vector<Bits> solo(int which) {
  const rkv_cache_config c = thread_config(which);
  std::vector<Bits> bits;
  Cache cache(c);
  EXPECT_EQ(RKV_OK, cache.open(0));
  const std::int64_t prompt = 300 + 40 * which;
  const Prompt p(c, prompt, 32, which);
  PromptTensors t(c, p, Placement());
  EXPECT_EQ(RKV_OK, cache.prefill(0, 0, prompt - 32, prompt, &t.q, &t.kv.k, &t.kv.v));
  for (std::int64_t n = prompt; n < prompt + 16; ++n) {
    StepBuffers step(&cache, 1);
    const StepData data(c, which, n);
    step.positions[0] = n;
    step.q.fill(data.q);
    step.k.fill(data.k);
    step.v.fill(data.v);
    EXPECT_EQ(RKV_OK, step.decode());
    bits.push_back(step.result_bits());
  }
  return bits;
}

// B10, B74: many threads, each with a handle of its own, created and destroyed all the while.
TEST(Process, B10_B74_ThreadsWithHandlesOfTheirOwn) {
  const int workers = 6;
  std::vector<std::vector<Bits>> expected;
  for (int w = 0; w < workers; ++w) expected.push_back(solo(w));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (int round = 0; round < scaled(8); ++round) {
        if (solo(w) != expected[static_cast<std::size_t>(w)]) ++wrong;
        rkv_plan plan = zeroed<rkv_plan>();
        rkv_error error = zeroed<rkv_error>();
        const rkv_cache_config c = thread_config(w);
        if (rkv_plan_make(&c, nullptr, 100 + round, &plan, &error) != RKV_OK) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(0, wrong.load());
}

// Rule 5: calls that overlap on one cache end in BAD_STATE or in the right bits, never in between.
TEST(Process, RacesOnOneCacheAreBadState) {
  const rkv_cache_config c = thread_config(0);
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  const Prompt p(c, 300, 32, 0);
  PromptTensors t(c, p, Placement());
  ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 268, 300, &t.q, &t.kv.k, &t.kv.v));
  const std::vector<Bits> expected = solo(0);
  std::atomic<int> wrong{0}, busy{0}, fine{0};
  std::vector<std::thread> threads;
  for (int w = 0; w < 3; ++w) {
    threads.emplace_back([&] {
      StepBuffers step(&cache, 1);
      const StepData data(c, 0, 300);
      step.positions[0] = 300;
      step.q.fill(data.q);
      step.k.fill(data.k);
      step.v.fill(data.v);
      rkv_error error = zeroed<rkv_error>();
      for (int i = 0; i < scaled(2000); ++i) {
        const rkv_decode_args args = step.args(0);
        const rkv_status status = rkv_decode(cache.get(), &args, nullptr, &error);
        if (status == RKV_OK) {
          ++fine;
          if (step.result_bits() != expected[0]) ++wrong;
        } else if (status == RKV_BAD_STATE) {
          ++busy;
        } else {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong.load());
  EXPECT_GT(fine.load(), 0);
}

// B13: ten thousand steps, good and refused ones, print nothing.
TEST(Process, B13_Silence) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  rkv_status last = RKV_OK;
  {
    rkv_cache_config c = make_config(2, 1, 16, 200, 100, 20);
    Cache cache(c);
    last = cache.open(0);
    const Prompt p(c, 200, 32, 1);
    PromptTensors t(c, p, Placement());
    if (last == RKV_OK) last = cache.prefill(0, 0, 168, 200, &t.q, &t.kv.k, &t.kv.v);
    StepBuffers step(&cache, 1);
    const StepData data(c, 1, 200);
    step.q.fill(data.q);
    step.k.fill(data.k);
    step.v.fill(data.v);
    for (int i = 0; i < 10000 && last == RKV_OK; ++i) {
      step.positions[0] = 200 + i % 100;
      last = step.decode();
      step.positions[0] = 199;  // before the prompt's end
      if (i % 10 == 0 && step.decode() != RKV_INVALID_ARGUMENT) last = RKV_INTERNAL;
    }
  }
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(RKV_OK, last);
  EXPECT_EQ("", out);
  EXPECT_EQ("", err);
}

// The audit against the reference: the share of the attention mass that the selection caught.
TEST(Process, AuditIsTheMassOfTheSelection) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(6, 2, 64, 900, 8, 60, dtype);
    c.logit_softcap = dtype == RKV_DTYPE_F16 ? 20 : 0;
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    twin.prefill(Prompt(c, 900, 32, 2));
    for (std::int64_t p = 900; p < 905; ++p) twin.step(p, 2);
    StepBuffers step(&cache, 1);
    const StepData data(c, 2, 904);
    step.positions[0] = 904;
    step.q.fill(data.q);
    step.k.fill(StepData(c, 2, 904).k);
    step.v.fill(StepData(c, 2, 904).v);
    ASSERT_EQ(RKV_OK, step.decode_select()) << cache.text();
    rkv_decode_args args = step.args(0);
    args.k = args.v = nullptr;
    rkv_audit_result result = zeroed<rkv_audit_result>();
    ASSERT_EQ(RKV_OK, rkv_audit(cache.get(), &args, &result, nullptr, cache.error()))
        << cache.text();
    EXPECT_EQ(905, cache.stats(0).position);
    EXPECT_EQ(1, result.rows);
    EXPECT_TRUE(std::isnan(result.prompt_mass_mean));
    double sum = 0, least = 1;
    for (int h = 0; h < 2; ++h) {
      const auto rows = twin.reference().select(h, data.q.data()).rows;
      std::vector<std::int64_t> all(static_cast<std::size_t>(twin.reference().live()));
      for (std::size_t j = 0; j < all.size(); ++j) all[j] = static_cast<std::int64_t>(j);
      const auto full = twin.reference().attend(h, data.q.data(), all);
      for (const auto& head : full) {
        double mass = 0;
        for (std::int64_t j : rows) mass += head.weight[static_cast<std::size_t>(j)];
        sum += mass;
        least = std::min(least, mass);
      }
    }
    EXPECT_NEAR(sum / 6, result.mass_mean, 1e-4);
    EXPECT_NEAR(least, result.mass_min, 1e-4);
    EXPECT_GT(result.error_mean, 0);
    EXPECT_LE(result.error_mean, result.error_max);
  }
}

// B12: the quality itself, frozen: the share of the attention mass that stage 2 catches for fixed
// seeds. The reference defines what is right; this notices when both drift together.
TEST(Process, B12_FrozenAttentionMass) {
  const struct {
    std::int64_t budget;
    double mass;
  } frozen[] = {{64, 0.1886}, {128, 0.2001}, {256, 0.2406}, {512, 0.3697}};
  for (const auto& f : frozen) {
    rkv_cache_config c = make_config(8, 2, 64, 4000, 16, f.budget);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    const Prompt p(c, 4000, 32, 31, 2);
    PromptTensors t(c, p, Placement());
    ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 3968, 4000, &t.q, &t.kv.k, &t.kv.v));
    double mass = 0;
    for (std::int64_t at = 4000; at < 4016; ++at) {
      StepBuffers step(&cache, 1);
      const StepData data(c, 31, at, 2);
      step.positions[0] = at;
      step.q.fill(data.q);
      step.k.fill(data.k);
      step.v.fill(data.v);
      ASSERT_EQ(RKV_OK, step.decode_select()) << cache.text();
      rkv_decode_args args = step.args(0);
      args.k = args.v = nullptr;
      rkv_audit_result result = zeroed<rkv_audit_result>();
      ASSERT_EQ(RKV_OK, rkv_audit(cache.get(), &args, &result, nullptr, cache.error()));
      mass += result.mass_mean / 16;
    }
    EXPECT_NEAR(f.mass, mass, 0.001) << "t = " << f.budget;
  }
}

}  // namespace
