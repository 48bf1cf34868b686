// One task of stage 1, random or by hand: its tensors, what the backend makes of them and the check
// against the double-precision reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/cpu/pool.hpp"
#include "core/cpu/stage1.hpp"
#include "core/cpu/summaries.hpp"
#include "core/cpu/target.hpp"
#include "reference/stage1.hpp"
#include "support/dtypes.hpp"
#include "support/memory.hpp"
#include "support/random.hpp"
#include "support/tensor.hpp"

namespace rkv_test {

using rkv::BackendLimits;
using rkv::DType;
using rkv::Stage1Task;
using rkv::View;
using rkv::cpu::Pool;
using rkv::cpu::Target;

inline std::vector<Target> targets() {
  std::vector<Target> found;
  for (const char* name : {"avx3", "avx2", "sse2", "neon", "portable"}) {
    setenv("RKV_SIMD", name, 1);
    const Target target = rkv::cpu::resolve_target();
    if (target.error == nullptr) found.push_back(target);
  }
  unsetenv("RKV_SIMD");
  return found;
}

inline View view(const HostTensor& tensor) {
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
    q = normal_values(random, window * heads * group * dim, query, sigma);
    k = normal_values(random, prompt * heads * dim, kv, sigma);
    v = normal_values(random, prompt * heads * dim_v, kv);
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
      : kv(p.heads * p.keep * (p.dim + p.dim_v) * dtype_size(p.kv), 64),
        positions(p.heads * p.keep * 4, 64),
        pages(p.heads * blocks * 2 * p.dim * rkv::kPageBlock * dtype_size(p.kv), 64),
        tail(p.heads * rkv::kTailPages * 2 * p.dim * dtype_size(p.kv), 64),
        store{data(kv), data(pages), data(tail), reinterpret_cast<int32_t*>(positions.data()),
              p.keep,   blocks,      p.keep} {}
  static std::byte* data(GuardedMemory& memory) {
    return reinterpret_cast<std::byte*>(memory.data());
  }
  rkv::LayerStore store;
};

inline Output run(const Problem& p, const Target& target, Pool& pool, BackendLimits limits,
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
  task.q.data += stored_rows * task.q.row * dtype_size(p.query);
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

inline Output run(const Problem& p, const Target& target, int threads = 1) {
  Pool pool(threads);
  return run(p, target, pool, p.limits());
}

inline rkv_ref::Stage1Result reference(const Problem& p, int64_t head) {
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
inline int64_t check_set(const Problem& p, const Output& out, int64_t head) {
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
inline void check_store(const Problem& p, const Output& out, const Target& target) {
  const int64_t element = dtype_size(p.kv);
  std::vector<uint8_t> expected;
  const auto append = [&](const std::vector<double>& values, int64_t at, int64_t n) {
    for (int64_t d = 0; d < n; ++d) {
      uint8_t bytes[4];
      store_element(p.kv, bytes, static_cast<float>(values[at + d]));
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

inline int64_t check(const Problem& p, const Target& target) {
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

}  // namespace rkv_test
