#include "core/cpu/stage1_workspace.hpp"

#include <algorithm>

#include "core/cpu/stage1_kernels.hpp"

namespace rkv::cpu {
namespace {

// Weights kept between the passes; beyond it a block is computed again, which costs time alone.
constexpr int64_t kWeightBytes = 64LL << 20;

// Hands out 64-byte aligned pieces and counts them; `overflow` is sticky.
struct Pieces {
  std::byte* base;
  int64_t used = 0;
  bool overflow = false;

  template <class T>
  T* take(int64_t a, int64_t b, int64_t c) {
    int64_t bytes = 0;
    overflow = overflow || __builtin_mul_overflow(a, b, &bytes) ||
               __builtin_mul_overflow(bytes, c, &bytes) ||
               __builtin_mul_overflow(bytes, static_cast<int64_t>(sizeof(T)), &bytes) ||
               __builtin_add_overflow(bytes, 63, &bytes);
    const int64_t at = used;
    overflow = overflow || __builtin_add_overflow(used, bytes / 64 * 64, &used);
    return base == nullptr || overflow ? nullptr : reinterpret_cast<T*>(base + at);
  }
};

Stage1Scratch carve_scratch(Pieces* pieces, int64_t row_stride, int64_t pool_floats) {
  Stage1Scratch s;
  s.keys = pieces->take<float>(kBlockKeys, kKeyStride, 1);
  s.logits = pieces->take<float>(kBlockKeys, kMaxPanelRows, 1);
  s.weights = pieces->take<float>(kBlockKeys, kMaxPanelRows, 1);
  s.partial = pieces->take<float>(kBlockKeys, kMaxPanelRows / 2, 1);
  s.ignored = pieces->take<float>(2, kMaxPanelRows, 1);
  s.pool = pieces->take<float>(pool_floats, 1, 1);
  s.last = pieces->take<int32_t>(row_stride, 1, 1);
  return s;
}

}  // namespace

Stage1Workspace::Stage1Workspace(const BackendLimits& limits, std::byte* base) {
  Pieces pieces{base};
  const int64_t heads = limits.shape.kv_heads;
  const int64_t group = limits.stage1.key_as_query ? 1 : limits.shape.group;
  // window and group are 32-bit numbers, so their product fits.
  const int64_t rows = limits.window * group;
  row_stride = (rows + kMaxPanelRows - 1) / kMaxPanelRows * kMaxPanelRows;
  max_blocks = (limits.max_prompt + kBlockKeys - 1) / kBlockKeys;
  const int64_t block_floats = std::max<int64_t>(1, row_stride) * kBlockKeys;
  held_blocks = std::min(heads * max_blocks,
                         kWeightBytes / static_cast<int64_t>(sizeof(float)) / block_floats);
  stat_blocks = std::max(held_blocks, max_blocks);
  const int64_t longest = std::max<int64_t>(1, limits.max_prompt);
  pool_floats_ = pool_scratch_floats(pool_reach(limits.stage1.kernel, longest));

  queries = pieces.take<float>(heads, row_stride, limits.shape.head_dim);
  weights = pieces.take<float>(held_blocks, row_stride, kBlockKeys);
  stats = pieces.take<float>(stat_blocks, 2, row_stride);
  scores = pieces.take<float>(heads, limits.max_prompt, 1);
  rank_keys = pieces.take<uint32_t>(heads, limits.max_prompt, 1);
  all = pieces.take<int32_t>(row_stride, 1, 1);

  Pieces one{nullptr};
  carve_scratch(&one, row_stride, pool_floats_);
  scratch_bytes_ = one.used;
  scratch_ = pieces.take<std::byte>(limits.threads, scratch_bytes_, 1);
  bytes = pieces.overflow || one.overflow ? -1 : pieces.used;
}

Stage1Scratch Stage1Workspace::scratch(int thread) const {
  Pieces pieces{scratch_ + thread * scratch_bytes_};
  return carve_scratch(&pieces, row_stride, pool_floats_);
}

}  // namespace rkv::cpu
