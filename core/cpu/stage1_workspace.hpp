// The buffers of stage 1 inside a backend's workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace rkv::cpu {

// What one thread needs for itself.
struct Stage1Scratch {
  float* keys = nullptr;     // [kBlockKeys][kKeyStride], a block of K as fp32
  float* logits = nullptr;   // [kBlockKeys][kMaxPanelRows]
  float* weights = nullptr;  // the same, where the shared buffer does not hold a block
  float* partial = nullptr;  // [kBlockKeys][kMaxPanelRows / 2], scores before the sum over lanes
  float* ignored = nullptr;  // [2][kMaxPanelRows], statistics of a block computed again
  float* pool = nullptr;     // pool_scratch_floats()
  int32_t* last = nullptr;   // [row_stride], see PanelTask::last
};

struct Stage1Workspace {
  int64_t row_stride = 0;   // window rows (window * group), padded to kMaxPanelRows
  int64_t max_blocks = 0;   // blocks of the longest prompt
  int64_t held_blocks = 0;  // blocks whose weights are kept between the two passes
  int64_t stat_blocks = 0;  // blocks whose statistics are kept
  int64_t bytes = -1;       // -1: does not fit in int64

  float* queries = nullptr;       // [kv_heads][row_stride][head_dim], packed
  float* weights = nullptr;       // [held_blocks][row_stride][kBlockKeys], packed by panel
  float* stats = nullptr;         // [stat_blocks][2][row_stride]
  float* scores = nullptr;        // [kv_heads][max_prompt]
  uint32_t* rank_keys = nullptr;  // [kv_heads][max_prompt]
  int32_t* all = nullptr;         // [row_stride], PanelTask::last of a block that all rows see

  // base null: sizes alone.
  Stage1Workspace(const BackendLimits& limits, std::byte* base);
  Stage1Scratch scratch(int thread) const;

 private:
  std::byte* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
  int64_t pool_floats_ = 0;
};

// Half the pooling kernel, no longer than the scores reach.
constexpr int64_t pool_reach(int64_t kernel, int64_t prefix) {
  const int64_t reach = kernel / 2;
  return reach < prefix ? reach : prefix - 1;
}

}  // namespace rkv::cpu
