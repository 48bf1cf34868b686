// One life of a sequence, prefill and decode steps, with the bits of all that came out of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cases.hpp"

namespace rkv_test {

using Bits = std::vector<std::uint8_t>;

// Kept positions and the bits of every step of one life.
struct Trace {
  std::vector<std::vector<std::int64_t>> kept;
  std::vector<Bits> steps;
  std::vector<std::vector<std::int64_t>> selections;
  bool operator==(const Trace& o) const {
    return kept == o.kept && steps == o.steps && selections == o.selections;
  }
};

inline void fill_row(StepBuffers* step, int seq, std::int64_t position, const StepData& data) {
  step->seq[0] = seq;
  fill_step(step, position, data);
}

inline void record(StepBuffers& step, std::int64_t kv_heads, Trace* trace) {
  trace->steps.push_back(step.result_bits());
  for (std::int64_t h = 0; h < kv_heads; ++h)
    trace->selections.push_back(step.selection.list(0, h));
}

inline void decode_one(Cache* cache, int seq, std::int64_t position, std::uint64_t seed,
                       Trace* trace) {
  StepBuffers step(cache, 1);
  fill_row(&step, seq, position, StepData(cache->config(), seed, position));
  ASSERT_EQ(RKV_OK, step.decode()) << cache->text();
  record(step, cache->config().kv_heads, trace);
}

inline Trace life(const rkv_cache_config& c, std::int64_t prompt, std::int64_t steps,
                  std::uint64_t seed, const rkv_sequence_options* options = nullptr) {
  Trace trace;
  Cache cache(c);
  EXPECT_EQ(RKV_OK, cache.status()) << cache.text();
  EXPECT_EQ(RKV_OK, cache.open(0, options)) << cache.text();
  const Prompt p(c, prompt, std::min<std::int64_t>(prompt, 32), seed);
  PromptTensors t(c, p, Placement());
  EXPECT_EQ(RKV_OK, cache.prefill(0, 0, prompt - p.q.count, prompt, &t.q, &t.kv.k, &t.kv.v))
      << cache.text();
  trace.kept = cache.positions(0);
  for (std::int64_t at = prompt; at < prompt + steps; ++at) {
    decode_one(&cache, 0, at, seed, &trace);
    if (testing::Test::HasFatalFailure()) break;
  }
  return trace;
}

}  // namespace rkv_test
