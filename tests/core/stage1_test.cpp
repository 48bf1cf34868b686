// Stage 1 of the CPU backend against the double-precision reference, on every SIMD target that the
// machine has: random shapes, options, types and strides, and the same bits for every thread count,
// source of the window rows and buffer size.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/stage1_fixture.hpp"

namespace {

using namespace rkv_test;

Problem random_problem(Random* random) {
  Problem p;
  const int32_t dims[] = {8, 64, 80, 96, 128, 192, 256};
  const int32_t groups[] = {1, 2, 3, 4, 5, 7, 8, 16};
  const int32_t types[] = {RKV_DTYPE_F32, RKV_DTYPE_F16, RKV_DTYPE_BF16};
  const int32_t kernels[] = {1, 3, 5, 7, 31, 63, 65, 127, 9999};
  const int64_t page_sizes[] = {0, 1, 3, 4, 7};
  p.heads = static_cast<int32_t>(random->integer(1, 3));
  p.group = random->pick(groups);
  p.dim = random->pick(dims);
  p.dim_v = random->pick(dims);
  p.kv = random->pick(types);
  p.query = random->pick(types);
  p.layout = random->pick(kAllLayouts);
  p.prompt = random->integer(2, random->coin() ? 300 : 2500);
  p.window = std::min<int64_t>(random->pick({1, 5, 16, 32, 33, 64}), p.prompt - 1);
  p.sinks = random->coin() ? 0 : random->integer(0, std::min<int64_t>(8, p.prompt - p.window - 1));
  p.keep = random->integer(p.window + p.sinks, p.prompt - 1);
  p.page_size = random->pick(page_sizes);
  p.options.kernel = random->pick(kernels);
  // The mean over everything is the same for all tokens up to rounding: nothing to compare there.
  p.options.average_pooling = random->integer(0, 3) == 0 && p.options.kernel < 9999;
  p.options.prefix_only = random->coin();
  p.options.key_as_query = random->integer(0, 3) == 0;
  p.scale = random->integer(0, 3) == 0 ? 0.3 : 0;
  p.softcap = random->integer(0, 2) == 0 ? random->pick({0.5, 5.0, 30.0}) : 0;
  p.fill(random);
  return p;
}

TEST(Stage1, RandomProblems) {
  for (const Target& target : targets()) {
    Random random(20250301);
    int64_t exchanged = 0, kept = 0;
    for (int i = 0; i < scaled(60); ++i) {
      const Problem p = random_problem(&random);
      SCOPED_TRACE(std::string(target.name) + " problem " + std::to_string(i) + ": S " +
                   std::to_string(p.prompt) + " w " + std::to_string(p.window) + " keep " +
                   std::to_string(p.keep) + " G " + std::to_string(p.group) + " D " +
                   std::to_string(p.dim) + " " + dtype_name(p.kv) + " " + layout_name(p.layout));
      exchanged += check(p, target);
      kept += p.heads * p.keep;
      if (HasFailure()) return;
    }
    std::cout << target.name << ": " << exchanged << " of " << kept
              << " kept tokens exchanged near a cut\n";
    EXPECT_LT(exchanged * 500, kept);
  }
}

TEST(Stage1, KeepsEverything) {
  Random random(2);
  for (const Layout layout : kAllLayouts) {
    Problem p;
    p.prompt = p.keep = 700;
    p.window = 0;
    p.heads = 3;
    p.kv = RKV_DTYPE_BF16;
    p.layout = layout;
    p.fill(&random);
    for (const Target& target : targets()) {
      const Output out = run(p, target, 2);
      for (int64_t i = 0; i < p.heads * p.keep; ++i) ASSERT_EQ(out.positions[i], i % p.keep);
      EXPECT_FALSE(out.nonfinite);
      check_store(p, out, target);
    }
  }
  Problem one;
  one.prompt = one.keep = 1;
  one.window = 0;
  one.fill(&random);
  const Output out = run(one, targets()[0]);
  EXPECT_EQ(out.positions, (std::vector<int32_t>{0, 0}));
  check_store(one, out, targets()[0]);
}

// Bits: threads, where the window rows come from, and a workspace made for more than this task.
TEST(Stage1, SameBitsHoweverItIsRun) {
  for (const Target& target : targets()) {
    Random random(7);
    for (int i = 0; i < scaled(3); ++i) {
      Problem p = random_problem(&random);
      p.prompt = random.integer(1500, 4000);
      p.window = random.integer(5, 40);
      p.options.key_as_query = i == 2;
      p.keep = random.integer(p.window + p.sinks + 1, p.prompt - 1);
      p.fill(&random);
      const Output alone = run(p, target);
      for (const int threads : {2, 3, 8}) EXPECT_EQ(run(p, target, threads), alone) << threads;
      Pool pool(2);
      for (const int64_t stored : {int64_t{1}, p.window / 2, p.window}) {
        EXPECT_EQ(run(p, target, pool, p.limits(), std::min(stored, p.window)), alone);
      }
      BackendLimits large = p.limits();
      large.max_prompt = 30000;
      large.window = 96;
      EXPECT_EQ(run(p, target, pool, large), alone);
      large.window = 1500;  // few blocks of weights fit then, so most are computed again
      EXPECT_EQ(run(p, target, pool, large), alone);
    }
  }
}

TEST(Stage1, WeightsThatDoNotFitAreComputedAgain) {
  Random random(8);
  Problem p;
  p.heads = 1;
  p.dim = p.dim_v = 8;
  p.window = 700;
  p.group = 6;  // 4200 rows: the buffer holds 20 blocks of 3840 keys together
  p.prompt = 5000;
  p.keep = 1500;
  p.fill(&random, 1.5);
  EXPECT_EQ(check(p, targets()[0]), 0);
}

// More heads than are scored side by side: each takes the place of one whose second pass is due.
TEST(Stage1, ManyHeadsTakeTurns) {
  Random random(15);
  Problem p;
  p.heads = 7;
  p.group = 1;
  p.window = 8;
  p.dim = p.dim_v = 8;
  p.prompt = 6000;
  p.keep = 900;
  p.fill(&random, 1.5);
  for (const Target& target : targets()) {
    check(p, target);
    const Output alone = run(p, target);
    for (const int threads : {2, 3, 9}) EXPECT_EQ(run(p, target, threads), alone) << threads;
  }
}

TEST(Stage1, OneHeadUsesEveryThread) {
  Random random(9);
  Problem p;
  p.heads = 1;
  p.dim = p.dim_v = 128;
  p.prompt = 20000;
  p.kv = p.query = RKV_DTYPE_BF16;
  p.fill(&random);
  Pool pool(4);
  int most_threads = 0;
  for (int i = 0; i < 20 && most_threads < 2; ++i) {
    pool.reset_counters();
    run(p, targets()[0], pool, p.limits());
    EXPECT_GE(pool.counters().most_items, 4 * pool.threads());
    most_threads = std::max(most_threads, pool.counters().most_threads);
  }
  EXPECT_GE(most_threads, 2);
}

TEST(Stage1, WorkspaceSizes) {
  Problem p;
  BackendLimits limits = p.limits();
  const int64_t small = rkv::cpu::stage1_workspace_bytes(limits);
  EXPECT_GT(small, 0);
  limits.threads = 4;
  EXPECT_GT(rkv::cpu::stage1_workspace_bytes(limits), small);
  limits.max_prompt = std::numeric_limits<int64_t>::max() / 4;
  EXPECT_EQ(rkv::cpu::stage1_workspace_bytes(limits), -1);
  limits = p.limits();
  limits.window = std::numeric_limits<int32_t>::max();
  limits.shape.head_dim = 256;
  limits.shape.kv_heads = std::numeric_limits<int32_t>::max();
  limits.max_prompt = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(rkv::cpu::stage1_workspace_bytes(limits), -1);
}

}  // namespace
