// Input at the edges of stage 1: ties, numbers that are not finite, the largest and smallest that are,
// strides that run backwards.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/stage1_fixture.hpp"

namespace {

using namespace rkv_test;

// Equal keys make equal scores: then the unpooled score and the lower index decide, exactly.
TEST(Stage1Edges, TiesAreExact) {
  for (const Target& target : targets()) {
    Random random(10);
    for (const bool average : {false, true}) {
      Problem p;
      p.heads = 1;
      p.prompt = 1200;
      p.keep = 300;
      p.sinks = 3;
      p.options.average_pooling = average;
      p.options.kernel = average ? 1 : 9;
      p.fill(&random);
      // All alike: the lowest indices win.
      for (int64_t j = 1; j < p.prompt; ++j) {
        std::copy_n(p.k.begin(), p.dim, p.k.begin() + j * p.dim);
      }
      Output out = run(p, target);
      for (int64_t i = 0; i < p.keep; ++i) {
        ASSERT_EQ(out.positions[i], i < p.keep - p.window ? i : p.prompt - p.keep + i);
      }
      // One key that stands out: its plateau (one row if unpooled), itself first, then the rest.
      const int64_t peak = 1000;
      double norm = 0;
      std::vector<double> mean(p.dim, 0.0);
      for (size_t i = 0; i < p.q.size(); ++i) mean[i % p.dim] += p.q[i];
      for (const double x : mean) norm += x * x;
      for (int64_t d = 0; d < p.dim; ++d) {
        p.k[peak * p.dim + d] = static_cast<float>(p.k[d] + 8 * mean[d] / std::sqrt(norm));
      }
      p.keep = p.window + p.sinks + 5;  // within the plateau of 9
      out = run(p, target);
      const std::vector<int32_t> chosen(out.positions.begin() + p.sinks,
                                        out.positions.begin() + p.sinks + 5);
      if (average) {
        EXPECT_EQ(chosen, (std::vector<int32_t>{3, 4, 5, 6, 1000}));
      } else {
        EXPECT_EQ(chosen, (std::vector<int32_t>{996, 997, 998, 999, 1000}));
      }
    }
  }
}

TEST(Stage1Edges, NonFiniteKeys) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Target& target : targets()) {
    Random random(11);
    for (int i = 0; i < scaled(24); ++i) {
      Problem p;
      p.prompt = 900;
      p.dim = p.dim_v = 16;
      p.group = 3;
      p.window = 20;
      p.keep = random.integer(p.window, p.prompt - 1);
      p.softcap = i % 3 == 0 ? 20 : 0;
      p.options.prefix_only = i % 4 == 1;
      p.options.average_pooling = i % 5 == 2;
      p.options.kernel = i % 2 == 0 ? 7 : 63;
      p.fill(&random);
      const double odd[] = {inf, -inf, nan};
      for (int64_t n = random.integer(1, 30); n > 0; --n) {
        const int64_t j = random.integer(0, p.prompt - 1);
        p.k[j * p.heads * p.dim + random.integer(0, p.heads * p.dim - 1)] = random.pick(odd);
      }
      check(p, target);
      // V is not looked at.
      Problem good = p;
      good.fill(&random);
      const std::vector<int32_t> kept = run(good, target).positions;
      std::fill(good.v.begin(), good.v.end(), nan);
      const Output out = run(good, target);
      EXPECT_EQ(out.positions, kept);
      EXPECT_FALSE(out.nonfinite);
    }
  }
}

// A query row that is not finite alone, then everything.
TEST(Stage1Edges, NonFiniteQueries) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Target& target : targets()) {
    Random random(12);
    Problem p;
    p.fill(&random);
    p.q[5 * p.heads * p.group * p.dim] = nan;  // head 0: row 5 has no weight, every key is marked
    check(p, target);
    std::fill(p.q.begin(), p.q.end(), nan);
    const Output out = run(p, target);
    EXPECT_TRUE(out.nonfinite);
    for (int64_t i = 0; i < p.keep; ++i) {
      ASSERT_EQ(out.positions[i], i < p.keep - p.window ? i : p.prompt - p.keep + i);
    }
  }
}

TEST(Stage1Edges, ExtremeButFinite) {
  for (const Target& target : targets()) {
    Random random(13);
    Problem p;
    p.kv = p.query = RKV_DTYPE_F16;
    p.dim = p.dim_v = 128;
    p.fill(&random);
    // Logits of about 65504^2 * D / sqrt(D): far beyond fp16, finite in fp32.
    for (double& x : p.q) x = x > 0 ? 65504 : 65472;
    for (double& x : p.k) x = x > 0 ? 65504 : 65472;
    const Output out = run(p, target);
    EXPECT_FALSE(out.nonfinite);
    check_store(p, out, target);
    // Zero queries: every weight the same.
    p.fill(&random);
    std::fill(p.q.begin(), p.q.end(), 0.0);
    EXPECT_EQ(check(p, target), 0);
    // Weights over the whole range that fp32 has.
    Problem wide;
    wide.keep = 100;
    wide.fill(&random, 2.5);
    check(wide, target);
  }
}

TEST(Stage1Edges, NegativeStrides) {
  Random random(14);
  Problem p;
  p.heads = 1;
  p.group = 1;
  p.kv = p.query = RKV_DTYPE_BF16;
  p.fill(&random);
  for (const Target& target : targets()) {
    const Output straight = run(p, target);
    // The same tensors, stored backwards in every direction.
    Problem back = p;
    std::reverse(back.q.begin(), back.q.end());
    std::reverse(back.k.begin(), back.k.end());
    std::reverse(back.v.begin(), back.v.end());
    HostTensor q(p.query, p.window, 1, p.dim), k(p.kv, p.prompt, 1, p.dim),
        v(p.kv, p.prompt, 1, p.dim_v);
    q.fill(back.q);
    k.fill(back.k);
    v.fill(back.v);
    const auto backwards = [](const HostTensor& tensor) {
      View result = view(tensor);
      result.data += (tensor.rows() * tensor.width() - 1) * 2;
      result.row = -result.row;
      result.channel = -1;
      return result;
    };
    Memory memory(p, 1);
    BackendLimits limits = p.limits();
    GuardedMemory workspace(rkv::cpu::stage1_workspace_bytes(limits), 64);
    Pool pool(1);
    Stage1Task task;
    task.prompt = p.prompt;
    task.window = p.window;
    task.keep = p.keep;
    task.q = backwards(q);
    task.k = backwards(k);
    task.v = backwards(v);
    task.attention.scale = static_cast<float>(rkv_ref::resolve_scale(0, p.dim));
    task.page_size = p.page_size;
    task.store = memory.store;
    rkv::cpu::run_stage1(task, limits, pool, reinterpret_cast<std::byte*>(workspace.data()),
                         target.index);
    EXPECT_EQ(copy_of<int32_t>(memory.positions), straight.positions);
    EXPECT_EQ(copy_of<uint8_t>(memory.kv), straight.kv);
  }
}

}  // namespace
