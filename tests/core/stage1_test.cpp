// Stage 1 of the CPU backend against the double-precision reference, on every SIMD target that the
// machine has: random shapes, options, types and strides, degenerate input, and the same bits for
// every thread count, chunking and buffer size.
#include "core/cpu/stage1.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/cpu/pool.hpp"
#include "core/cpu/summaries.hpp"
#include "core/cpu/target.hpp"
#include "reference/stage1.hpp"
#include "support/dtypes.hpp"
#include "support/memory.hpp"
#include "support/random.hpp"
#include "support/tensor.hpp"

namespace {

using rkv::BackendLimits;
using rkv::DType;
using rkv::Stage1Task;
using rkv::View;
using rkv::cpu::Pool;
using rkv::cpu::Target;
using rkv_test::GuardedMemory;
using rkv_test::HostTensor;
using rkv_test::Layout;
using rkv_test::Random;

std::vector<Target> targets() {
  std::vector<Target> found;
  for (const char* name : {"avx3", "avx2", "sse2", "neon", "portable"}) {
    setenv("RKV_SIMD", name, 1);
    const Target target = rkv::cpu::resolve_target();
    if (target.error == nullptr) found.push_back(target);
  }
  unsetenv("RKV_SIMD");
  return found;
}

View view(const HostTensor& tensor) {
  const rkv_tensor* t = tensor.get();
  return {static_cast<std::byte*>(t->data), static_cast<DType>(t->dtype), t->strides[0],
          t->strides[1], t->strides[2]};
}

struct Problem {
  int64_t prompt = 1000, window = 32, keep = 200, sinks = 0, page_size = 4;
  int32_t heads = 2, group = 4, dim = 64, dim_v = 64;
  int32_t kv = RKV_DTYPE_F32, query = RKV_DTYPE_F32;
  Layout layout = Layout::kTokenMajor;
  rkv::Stage1Options options;
  double scale = 0, softcap = 0;
  std::vector<double> q, k, v;  // [window][heads * group][dim], [prompt][heads][dim], .. [dim_v]

  // Keys of a few kinds, so that some tokens stand out as in a real prompt.
  void fill(Random* random, double sigma = 1) {
    q = rkv_test::normal_values(random, window * heads * group * dim, query, sigma);
    k = rkv_test::normal_values(random, prompt * heads * dim, kv, sigma);
    v = rkv_test::normal_values(random, prompt * heads * dim_v, kv);
  }

  BackendLimits limits() const {
    BackendLimits limits;
    limits.shape = {
        heads * group, heads, group, dim, dim_v, static_cast<DType>(kv), static_cast<DType>(query)};
    limits.window = window;
    limits.max_prompt = prompt;
    limits.stage1 = options;
    return limits;
  }
};

struct Output {
  std::vector<int32_t> positions;  // [heads][keep]
  std::vector<uint8_t> kv, pages, tail;
  bool nonfinite = false;
  bool operator==(const Output&) const = default;
};

template <class T>
std::vector<T> copy_of(GuardedMemory& memory) {
  std::vector<T> values(static_cast<size_t>(memory.size()) / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), memory.data(), values.size() * sizeof(T));
  return values;
}

struct Memory {
  GuardedMemory kv, positions, pages, tail;
  Memory(const Problem& p, int64_t blocks)
      : kv(p.heads * p.keep * (p.dim + p.dim_v) * rkv_test::dtype_size(p.kv), 64),
        positions(p.heads * p.keep * 4, 64),
        pages(p.heads * blocks * 2 * p.dim * rkv::kPageBlock * rkv_test::dtype_size(p.kv), 64),
        tail(p.heads * rkv::kTailPages * 2 * p.dim * rkv_test::dtype_size(p.kv), 64),
        store{data(kv), data(pages), data(tail), reinterpret_cast<int32_t*>(positions.data()),
              p.keep,   blocks,      p.keep} {}
  static std::byte* data(GuardedMemory& memory) {
    return reinterpret_cast<std::byte*>(memory.data());
  }
  rkv::LayerStore store;
};

Output run(const Problem& p, const Target& target, Pool& pool, BackendLimits limits,
           int64_t stored_rows = 0) {
  limits.threads = pool.threads();
  HostTensor q(p.query, p.window, p.heads * p.group, p.dim, p.layout);
  HostTensor k(p.kv, p.prompt, p.heads, p.dim, p.layout);
  HostTensor v(p.kv, p.prompt, p.heads, p.dim_v, p.layout);
  if (!p.q.empty()) q.fill(p.q);
  k.fill(p.k);
  v.fill(p.v);

  Stage1Task task;
  task.prompt = p.prompt;
  task.window = p.window;
  task.keep = p.keep;
  task.sinks = p.sinks;
  task.stored_q = view(q);
  task.q = view(q);
  task.q.data += stored_rows * task.q.row * rkv_test::dtype_size(p.query);
  task.stored_rows = stored_rows;
  task.k = view(k);
  task.v = view(v);
  task.options = p.options;
  task.attention = {static_cast<float>(rkv_ref::resolve_scale(p.scale, p.dim)),
                    static_cast<float>(p.softcap)};
  task.page_size = p.page_size;
  const int64_t pages = p.page_size > 0 ? p.keep / p.page_size : 0;
  Memory memory(p, (pages + rkv::kPageBlock - 1) / rkv::kPageBlock);
  task.store = memory.store;

  const int64_t bytes = rkv::cpu::stage1_workspace_bytes(limits);
  EXPECT_GE(bytes, 0);
  GuardedMemory workspace(bytes, 64);
  rkv::cpu::run_stage1(task, limits, pool, reinterpret_cast<std::byte*>(workspace.data()),
                       target.index);
  EXPECT_TRUE(workspace.intact() && memory.kv.intact() && memory.positions.intact() &&
              memory.pages.intact() && memory.tail.intact());
  EXPECT_TRUE(q.unchanged() && k.unchanged() && v.unchanged());
  return {copy_of<int32_t>(memory.positions), copy_of<uint8_t>(memory.kv),
          copy_of<uint8_t>(memory.pages), copy_of<uint8_t>(memory.tail), task.nonfinite};
}

Output run(const Problem& p, const Target& target, int threads = 1) {
  Pool pool(threads);
  return run(p, target, pool, p.limits());
}

rkv_ref::Stage1Result reference(const Problem& p, int64_t head) {
  rkv_ref::Stage1Options options;
  options.window = p.window;
  options.kernel = p.options.kernel;
  options.sinks = p.sinks;
  options.prefix_only = p.options.prefix_only;
  options.average = p.options.average_pooling;
  options.key_as_query = p.options.key_as_query;
  options.scale = p.scale;
  options.softcap = p.softcap;
  rkv_ref::Rows keys(p.prompt, p.dim);
  for (int64_t j = 0; j < p.prompt; ++j) {
    std::copy_n(p.k.data() + (j * p.heads + head) * p.dim, p.dim, keys.row(j));
  }
  rkv_ref::Rows queries(p.window * p.group, p.dim);
  if (!p.options.key_as_query) {
    for (int64_t i = 0; i < p.window; ++i) {
      std::copy_n(p.q.data() + (i * p.heads + head) * p.group * p.dim, p.group * p.dim,
                  queries.row(i * p.group));
    }
  }
  return rkv_ref::stage1(queries, p.group, keys, p.keep, options);
}

// Kept tokens that differ; every one must lie within 2e-5 of the cut.
int64_t check_set(const Problem& p, const Output& out, int64_t head) {
  const rkv_ref::Stage1Result expected = reference(p, head);
  const auto first = out.positions.begin() + head * p.keep;
  const std::vector<int64_t> kept(first, first + p.keep);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::set<int64_t>(kept.begin(), kept.end()).size(), kept.size());
  std::vector<int64_t> exchanged;
  std::set_symmetric_difference(kept.begin(), kept.end(), expected.kept.begin(),
                                expected.kept.end(), std::back_inserter(exchanged));
  if (expected.identity) {
    EXPECT_TRUE(exchanged.empty());
    return 0;
  }
  const int64_t chosen = p.keep - p.window - p.sinks;
  const auto order = rkv_ref::rank_prefix(expected.pooled, expected.score, p.sinks);
  for (const int64_t j : exchanged) {
    if (chosen == 0 || j < p.sinks || j >= p.prompt - p.window) {
      ADD_FAILURE() << "token " << j << " is forced";
      continue;
    }
    const double cut = expected.pooled[order[chosen - 1]];
    EXPECT_LE(std::fabs(expected.pooled[j] - cut), 2e-5 * cut) << "token " << j;
  }
  return static_cast<int64_t>(exchanged.size());
}

// The store: K and V of the positions bit for bit, and the summaries of one call over all pages.
void check_store(const Problem& p, const Output& out, const Target& target) {
  const int64_t element = rkv_test::dtype_size(p.kv);
  std::vector<uint8_t> expected;
  const auto append = [&](const std::vector<double>& values, int64_t at, int64_t n) {
    for (int64_t d = 0; d < n; ++d) {
      uint8_t bytes[4];
      rkv_test::store_element(p.kv, bytes, static_cast<float>(values[at + d]));
      expected.insert(expected.end(), bytes, bytes + element);
    }
  };
  for (int64_t h = 0; h < p.heads; ++h) {
    for (int64_t i = 0; i < p.keep; ++i) {
      const int64_t j = out.positions[h * p.keep + i];
      ASSERT_TRUE(j >= 0 && j < p.prompt);
      append(p.k, (j * p.heads + h) * p.dim, p.dim);
      append(p.v, (j * p.heads + h) * p.dim_v, p.dim_v);
    }
  }
  EXPECT_EQ(out.kv, expected);

  if (p.page_size == 0) return;
  const int64_t pages = p.keep / p.page_size;
  Memory memory(p, (pages + rkv::kPageBlock - 1) / rkv::kPageBlock);
  std::memcpy(memory.kv.data(), out.kv.data(), out.kv.size());
  for (int32_t h = 0; h < p.heads; ++h) {
    rkv::cpu::build_pages(p.limits().shape, memory.store, h, p.page_size, 0, pages,
                          rkv::flushed_pages(p.keep, p.page_size), target.index);
  }
  EXPECT_EQ(out.pages, copy_of<uint8_t>(memory.pages));
  EXPECT_EQ(out.tail, copy_of<uint8_t>(memory.tail));
}

int64_t check(const Problem& p, const Target& target) {
  const Output out = run(p, target);
  int64_t exchanged = 0;
  bool nonfinite = false;
  for (int64_t h = 0; h < p.heads; ++h) {
    exchanged += check_set(p, out, h);
    nonfinite = nonfinite || reference(p, h).nonfinite;
  }
  EXPECT_EQ(out.nonfinite, nonfinite);
  check_store(p, out, target);
  return exchanged;
}

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
  p.layout = random->pick(rkv_test::kAllLayouts);
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
    for (int i = 0; i < rkv_test::scaled(60); ++i) {
      const Problem p = random_problem(&random);
      SCOPED_TRACE(std::string(target.name) + " problem " + std::to_string(i) + ": S " +
                   std::to_string(p.prompt) + " w " + std::to_string(p.window) + " keep " +
                   std::to_string(p.keep) + " G " + std::to_string(p.group) + " D " +
                   std::to_string(p.dim) + " " + rkv_test::dtype_name(p.kv) + " " +
                   rkv_test::layout_name(p.layout));
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
  for (const Layout layout : rkv_test::kAllLayouts) {
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
    for (int i = 0; i < rkv_test::scaled(3); ++i) {
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

// Equal keys make equal scores: then the unpooled score and the lower index decide, exactly.
TEST(Stage1, TiesAreExact) {
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

TEST(Stage1, NonFiniteKeys) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Target& target : targets()) {
    Random random(11);
    for (int i = 0; i < rkv_test::scaled(24); ++i) {
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
TEST(Stage1, NonFiniteQueries) {
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

TEST(Stage1, ExtremeButFinite) {
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

TEST(Stage1, NegativeStrides) {
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
