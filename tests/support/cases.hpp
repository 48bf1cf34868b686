// Random configurations and prompts of bounded cost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "twin.hpp"

namespace rkv_test {

inline constexpr int kGroups[] = {1, 1, 2,  3,  4,  4,  5,  6,  7,  8,
                                  8, 9, 10, 11, 12, 13, 14, 15, 16, 71};
inline constexpr int kHeadDims[] = {8,  16,  24,  40,  64,  64,  72, 80,
                                    96, 112, 128, 128, 160, 192, 256};
inline constexpr int kDtypes[] = {RKV_DTYPE_F32, RKV_DTYPE_F16, RKV_DTYPE_BF16};

// `cost` bounds W * Hq * S * D, the multiplications of the reference's stage 1.
inline rkv_cache_config random_shape(Random* random, std::int64_t longest, double cost) {
  rkv_cache_config c = zeroed<rkv_cache_config>();
  c.layers = 1;
  c.window_size = random->coin() ? 0 : static_cast<int>(random->integer(1, 64));
  const double window = c.window_size > 0 ? c.window_size : 32;
  do {
    const int group = random->pick(kGroups);
    c.kv_heads = static_cast<int>(random->integer(1, 4));
    c.q_heads = c.kv_heads * group;
    c.head_dim = random->pick(kHeadDims);
    const double length = std::exp(random->uniform() * std::log(static_cast<double>(longest)));
    c.max_prompt_tokens = std::max<std::int64_t>(1, static_cast<std::int64_t>(length));
  } while (window * c.q_heads * c.head_dim * static_cast<double>(c.max_prompt_tokens) > cost);
  if (random->integer(0, 3) == 0) c.head_dim_v = random->pick(kHeadDims);
  c.kv_dtype = random->pick(kDtypes);
  if (random->integer(0, 2) == 0) c.query_dtype = random->pick(kDtypes);
  c.max_new_tokens = random->integer(1, 24);
  c.num_threads = static_cast<int>(random->integer(1, 3));
  return c;
}

inline void random_stage1_options(Random* random, rkv_cache_config* c) {
  const std::int64_t length = c->max_prompt_tokens + c->max_new_tokens;
  if (random->coin()) c->sinks = static_cast<int>(random->integer(1, 9));
  if (random->coin()) c->kernel_size = static_cast<int>(2 * random->integer(0, 50) + 1);
  if (random->integer(0, 2) == 0) c->stage1_domain = RKV_STAGE1_PREFIX_ONLY;
  if (random->integer(0, 2) == 0) {
    c->pooling = RKV_POOL_AVG;
    c->kernel_size = random->coin() ? 5 : 7;
  }
  if (random->integer(0, 4) == 0) c->key_as_query = 1;
  if (random->integer(0, 3) == 0)
    c->softmax_scale = static_cast<float>(0.02 + 0.3 * random->uniform());
  if (random->integer(0, 3) == 0) c->logit_softcap = static_cast<float>(1 + 30 * random->uniform());
  const int window = c->window_size > 0 ? c->window_size : 32;
  if (random->integer(0, 2) == 0) {
    c->prompt_budget =
        window + c->sinks + random->integer(0, std::max<std::int64_t>(1, length / 3));
  }
  c->token_budget = std::max<std::int64_t>(1, length / random->integer(1, 40));
}

inline void random_stage2_options(Random* random, rkv_cache_config* c) {
  if (random->coin()) c->selection_unit = RKV_UNIT_TOKENS;
  if (random->integer(0, 2) == 0) c->selection_domain = RKV_SOFTMAX_PAGES;
  if (random->integer(0, 2) == 0) c->temperature = RKV_TEMPERATURE_SQRT_D;
  if (random->integer(0, 2) == 0) c->recent_tokens = static_cast<int>(random->integer(1, 40));
  if (random->integer(0, 2) == 0) c->page_size = static_cast<int>(random->integer(1, 9));
  if (random->integer(0, 2) == 0)
    c->num_channels = static_cast<int>(random->integer(1, c->head_dim));
  if (random->integer(0, 2) == 0) c->top_k = random->integer(1, 200);
}

inline Placement random_placement(Random* random) {
  Placement at;
  at.q = random->pick(kAllLayouts);
  at.k = random->pick(kAllLayouts);
  at.v = random->pick(kAllLayouts);
  at.step = random->pick(kAllLayouts);
  at.interleaved = random->integer(0, 3) == 0;
  return at;
}

inline std::string describe(const Placement& at) {
  return std::string("q ") + layout_name(at.q) + ", k " + layout_name(at.k) + ", v " +
         layout_name(at.v) + ", step " + layout_name(at.step) +
         (at.interleaved ? ", K and V interleaved" : "");
}

// One row of a call, of the sequence that step->seq names.
inline void fill_step(StepBuffers* step, std::int64_t position, const StepData& data) {
  step->positions[0] = position;
  step->q.fill(data.q);
  step->k.fill(data.k);
  step->v.fill(data.v);
}

inline bool all_finite(const HostTensor& t) {
  for (std::int64_t i = 0; i < t.rows(); ++i) {
    for (std::int64_t h = 0; h < t.heads(); ++h) {
      for (std::int64_t d = 0; d < t.width(); ++d) {
        if (!std::isfinite(t.value(i, h, d))) return false;
      }
    }
  }
  return true;
}

}  // namespace rkv_test
