#include "core/cpu/stage1.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "core/cpu/stage1_kernels.hpp"
#include "core/cpu/stage1_select.hpp"
#include "core/cpu/stage1_workspace.hpp"
#include "core/cpu/summaries.hpp"

namespace rkv::cpu {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr int64_t kItemBlocks = 4;  // blocks of keys per work item, at most
constexpr int64_t kItemsPerThread = 16;
constexpr int64_t kGatherRows = 256;
constexpr int64_t kPageChunk = 4 * kPageBlock;

// Scoring of one task. KV heads go in waves of as many as the weight buffer holds. A work item is
// a few blocks of one head of this wave and, first, the same blocks of the head that had its place
// in the wave before: what the second pass reads is fetched while the first one computes, and its
// memory is written again while it is in the cache.
class Scoring {
 public:
  Scoring(const Stage1Task& task, const BackendLimits& limits, Pool& pool,
          const Stage1Workspace& space, const Stage1Kernels& kernels)
      : task_(task), pool_(pool), space_(space), kernels_(kernels), limits_(limits) {
    const Stage1Options& options = task.options;
    heads_ = limits.shape.kv_heads;
    dim_ = limits.shape.head_dim;
    group_ = options.key_as_query ? 1 : limits.shape.group;
    rows_ = task.window * group_;
    panels_ = (rows_ + kernels.panel_rows - 1) / kernels.panel_rows;
    prefix_ = task.prompt - task.window;
    columns_ = options.prefix_only ? prefix_ : task.prompt;
    blocks_ = (columns_ + kBlockKeys - 1) / kBlockKeys;
    panel_floats_ = kernels.panel_rows * kBlockKeys;

    held_ = std::min(blocks_, space.held_blocks);
    int64_t places = held_ < blocks_ ? 1 : std::min(heads_, space.held_blocks / blocks_);
    const int64_t items = kItemsPerThread * pool.threads();
    places = std::min(places, (items * kItemBlocks + blocks_ - 1) / blocks_);
    waves_ = (heads_ + places - 1) / places;
    places_ = (heads_ + waves_ - 1) / waves_;
    item_blocks_ = std::clamp<int64_t>(blocks_ * places_ / items, 1, kItemBlocks);
  }

  // Leaves scores [kv_heads][prefix] in the workspace; true where a logit was not finite.
  bool run() noexcept {
    for (int64_t r = 0; r < panels_ * kernels_.panel_rows; ++r) {
      space_.all[r] = r < rows_ ? static_cast<int32_t>(kBlockKeys - 1) : -1;
    }
    pool_.run(heads_, [this](int64_t head, int) { pack_queries(head); });
    const int64_t parts = (blocks_ + item_blocks_ - 1) / item_blocks_;
    for (int64_t wave = 0; wave <= waves_; ++wave) {
      pool_.run(places_ * parts, [&](int64_t item, int thread) {
        const int64_t place = item / parts;
        const int64_t first = item % parts * item_blocks_;
        const int64_t end = std::min(blocks_, first + item_blocks_);
        for (int64_t block = first; block < end; ++block) {
          run_block(wave * places_ + place, place, block, block + 1 < end, thread);
        }
      });
      if (wave == waves_) break;
      pool_.run(places_ * panels_, [this](int64_t item, int) {
        const int64_t panel = item % panels_;
        kernels_.factors(stats(item / panels_, 0, panel), blocks_, space_.row_stride,
                         std::min(rows_ - panel * kernels_.panel_rows, kernels_.panel_rows));
      });
    }
    return odd_.load(std::memory_order_relaxed);
  }

 private:
  float* stats(int64_t place, int64_t block, int64_t panel) const {
    return space_.stats + (place * blocks_ + block) * 2 * space_.row_stride +
           panel * kernels_.panel_rows;
  }
  float* weights(int64_t place, int64_t block, int64_t panel) const {
    return space_.weights + ((place * held_ + block) * panels_ + panel) * panel_floats_;
  }
  float* scores(int64_t head) const { return space_.scores + head * limits_.max_prompt; }

  // Keys of a block that lie in the prefix.
  int64_t scored(int64_t block) const {
    return std::clamp<int64_t>(prefix_ - block * kBlockKeys, 0, kBlockKeys);
  }

  // The scale, and for the softcap its inverse, go into the queries; log2(e) too, for 2^x.
  void pack_queries(int64_t head) const noexcept {
    const double scale = task_.attention.scale;
    const double softcap = task_.attention.softcap;
    const float factor = static_cast<float>(softcap != 0 ? scale / softcap : scale * kLog2E);
    float* packed = space_.queries + head * space_.row_stride * dim_;
    std::fill_n(packed, panels_ * kernels_.panel_rows * dim_, 0.0F);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t i = row / group_;
      const bool stored = i < task_.stored_rows;
      const View& view = task_.options.key_as_query ? task_.k : stored ? task_.stored_q : task_.q;
      const int64_t at = task_.options.key_as_query ? prefix_ + i
                         : stored                   ? i
                                                    : i - task_.stored_rows;
      kernels_.pack_query(view.at(at, head * group_ + row % group_), view.dtype, view.channel, dim_,
                          factor, row, packed);
    }
  }

  void run_block(int64_t head, int64_t place, int64_t block, bool more, int thread) noexcept {
    const Stage1Scratch scratch = space_.scratch(thread);
    const int64_t before = head - places_;  // the head that had this place in the last wave
    const bool ends = before >= 0 && before < heads_ && scored(block) > 0;
    const bool begins = head < heads_;
    const bool held = block < held_;
    if (ends && !held) score_again(before, place, block, scratch);
    if (begins) {
      kernels_.load_keys(task_.k, block * kBlockKeys, count(block), head, dim_, scratch.keys);
    }
    for (int64_t panel = 0; panel < panels_; ++panel) {
      if (ends && held) {
        kernels_.accumulate(weights(place, block, panel), stats(place, block, panel), scored(block),
                            panel == 0, scratch.partial);
      }
      if (!begins) continue;
      PanelTask task = panel_task(head, block, panel, scratch);
      float* statistics = stats(place, block, panel);
      task.top = statistics;
      task.sum = statistics + space_.row_stride;
      task.weights = held ? weights(place, block, panel) : scratch.weights;
      if (held) fetch_ahead(head, place, block, panel, more, &task);
      if (panel == 0) std::fill_n(scores(head) + block * kBlockKeys, scored(block), 0.0F);
      weigh(task);
    }
    if (ends && held) {
      kernels_.finish(scratch.partial, scored(block), scores(before) + block * kBlockKeys);
    }
  }

  // Second pass of a block whose weights were not kept: the same code on the same input again.
  void score_again(int64_t head, int64_t place, int64_t block,
                   const Stage1Scratch& scratch) noexcept {
    kernels_.load_keys(task_.k, block * kBlockKeys, count(block), head, dim_, scratch.keys);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      PanelTask task = panel_task(head, block, panel, scratch);
      task.top = scratch.ignored;
      task.sum = scratch.ignored + kMaxPanelRows;
      task.weights = scratch.weights;
      weigh(task);
      kernels_.accumulate(scratch.weights, stats(place, block, panel), scored(block), panel == 0,
                          scratch.partial);
    }
    kernels_.finish(scratch.partial, scored(block), scores(head) + block * kBlockKeys);
  }

  int64_t count(int64_t block) const { return std::min(kBlockKeys, columns_ - block * kBlockKeys); }

  PanelTask panel_task(int64_t head, int64_t block, int64_t panel,
                       const Stage1Scratch& scratch) const {
    const int64_t first = block * kBlockKeys;
    const int64_t first_row = panel * kernels_.panel_rows;
    PanelTask task;
    task.queries = space_.queries + (head * space_.row_stride + first_row) * dim_;
    task.keys = scratch.keys;
    task.dim = dim_;
    task.count = count(block);
    task.scored = scored(block);
    task.softcap = static_cast<float>(task_.attention.softcap * kLog2E);
    task.masked = first + kBlockKeys > prefix_;
    task.last = space_.all + first_row;
    if (task.masked) {
      for (int64_t r = first_row; r < first_row + kernels_.panel_rows; ++r) {
        const int64_t sees = std::min(prefix_ + r / group_, columns_ - 1) - first;
        const int64_t last = r < rows_ ? std::clamp<int64_t>(sees, -1, kBlockKeys - 1) : -1;
        scratch.last[r] = static_cast<int32_t>(last);
      }
      task.last = scratch.last + first_row;
    }
    task.logits = scratch.logits;
    task.marks = scores(head) + first;
    return task;
  }

  void weigh(const PanelTask& task) noexcept {
    if (kernels_.weigh(task)) odd_.store(true, std::memory_order_relaxed);
  }

  // The next panel's weights, and this panel's share of the next block's keys.
  void fetch_ahead(int64_t head, int64_t place, int64_t block, int64_t panel, bool more,
                   PanelTask* task) const {
    if (panel + 1 < panels_ || (more && block + 1 < held_)) {
      task->weights_ahead = weights(place, block, panel) + panel_floats_;
    }
    if (more && task_.k.channel == 1) {
      task->element = dtype_bytes(task_.k.dtype);
      const int64_t first = panel * count(block + 1) / panels_;
      const int64_t end = (panel + 1) * count(block + 1) / panels_;
      task->keys_ahead = {task_.k.at((block + 1) * kBlockKeys + first, head),
                          task_.k.row * task->element, end - first};
    }
  }

  const Stage1Task& task_;
  Pool& pool_;
  const Stage1Workspace& space_;
  const Stage1Kernels& kernels_;
  const BackendLimits& limits_;
  std::atomic<bool> odd_{false};
  int64_t heads_, dim_, group_, rows_, panels_;
  int64_t prefix_, columns_, blocks_, held_;
  int64_t panel_floats_;
  int64_t places_, waves_, item_blocks_;
};

void choose(Stage1Task& task, const BackendLimits& limits, Pool& pool, std::byte* workspace,
            size_t target) {
  const Stage1Workspace space(limits, workspace);
  const Stage1Kernels kernels = stage1_kernels(target);
  task.nonfinite = Scoring(task, limits, pool, space, kernels).run();

  const int64_t prefix = task.prompt - task.window;
  const int64_t reach = pool_reach(task.options.kernel, prefix);
  const int64_t chunk = pool_chunk(reach);
  const int64_t chunks = (prefix + chunk - 1) / chunk;
  const int64_t heads = limits.shape.kv_heads;
  pool.run(heads * chunks, [&](int64_t item, int thread) {
    const int64_t head = item / chunks;
    const int64_t first = item % chunks * chunk;
    kernels.pool(space.scores + head * limits.max_prompt, prefix, first,
                 std::min(chunk, prefix - first), reach, task.options.average_pooling,
                 static_cast<float>(task.options.kernel), space.scratch(thread).pool,
                 space.rank_keys + head * limits.max_prompt + first);
  });
  pool.run(heads, [&](int64_t head, int) {
    choose_rows(task, space.scores + head * limits.max_prompt,
                space.rank_keys + head * limits.max_prompt,
                task.store.positions + head * task.store.kept);
  });
}

}  // namespace

int64_t stage1_workspace_bytes(const BackendLimits& limits) {
  return Stage1Workspace(limits, nullptr).bytes;
}

void run_stage1(Stage1Task& task, const BackendLimits& limits, Pool& pool, std::byte* workspace,
                size_t target) noexcept {
  const Shape& shape = limits.shape;
  task.nonfinite = false;
  if (task.keep == task.prompt) {
    pool.run(shape.kv_heads, [&](int64_t head, int) {
      int32_t* positions = task.store.positions + head * task.store.kept;
      std::iota(positions, positions + task.keep, 0);
    });
  } else {
    choose(task, limits, pool, workspace, target);
  }
  const int64_t chunks = (task.keep + kGatherRows - 1) / kGatherRows;
  pool.run(shape.kv_heads * chunks, [&](int64_t item, int) {
    const int64_t first = item % chunks * kGatherRows;
    gather_rows(task, shape, item / chunks, first, std::min(kGatherRows, task.keep - first));
  });
  if (task.page_size <= 0) return;
  const int64_t pages = task.keep / task.page_size;
  const int64_t flushed = flushed_pages(task.keep, task.page_size);
  const int64_t page_chunks = (pages + kPageChunk - 1) / kPageChunk;
  pool.run(shape.kv_heads * page_chunks, [&](int64_t item, int) {
    const int64_t first = item % page_chunks * kPageChunk;
    build_pages(shape, task.store, static_cast<int32_t>(item / page_chunks), task.page_size, first,
                std::min(pages, first + kPageChunk), flushed, target);
  });
}

}  // namespace rkv::cpu
