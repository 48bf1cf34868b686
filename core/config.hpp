// The configuration of a cache with every default resolved and every value checked.
#pragma once

#include <cstdint>

#include "core/backend.hpp"
#include "core/failure.hpp"

namespace rkv {

inline constexpr int64_t kMaxPosition = 2147483647;  // positions fit in int32
inline constexpr int32_t kMaxLayers = 256;

// What sets all sizes of one sequence: a token budget or a ratio (0 = not given), and max_new.
struct Request {
  int64_t token_budget = 0;
  double ratio = 0.0;
  int64_t max_new = 0;
};

struct Config {
  Shape shape;
  int32_t layers = 1, max_sequences = 1, max_rows = 1, max_prefills = 1, threads = 1;
  int64_t max_prompt = 0;
  Request request;                       // the default of every sequence
  int64_t prompt_budget = 0, top_k = 0;  // overrides; 0 = from the plan
  int32_t page_size = 0, channels = 0;
  int32_t window = 32;
  Stage1Options stage1;
  SelectOptions select;
  AttentionOptions attention;
  uint32_t dense_layers[8] = {};

  bool dense_layer(int32_t layer) const {
    return (dense_layers[layer / 32] >> (layer % 32) & 1U) != 0;
  }
};

rkv_status read_config(const rkv_cache_config& in, Config& out, Failure& failure);
// A sequence's options over the config's request; a field that is 0 keeps the config's value.
rkv_status read_request(const rkv_sequence_options& in, const Config& config, Request& out,
                        Failure& failure);

}  // namespace rkv
