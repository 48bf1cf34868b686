// Stage 2 for one KV head of one row: which live rows its attention reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"
#include "core/cpu/workspace.hpp"

namespace rkv::cpu {

struct SelectArgs {
  const Shape* shape = nullptr;
  const LayerStore* store = nullptr;
  const SelectOptions* options = nullptr;
  float scale = 1.0F;
  int32_t head = 0;
  int64_t live = 0, page_size = 0, channels = 0, top_k = 0;  // top_k < live
  // The tail holds the complete pages of [0, live) that are not in the blocks: true right after row
  // live - 1 was appended. Otherwise later rows may have flushed it, and they are made from K.
  bool tail_is_current = false;
  const float* q = nullptr;  // [group][query_stride(shape)], zero beyond head_dim
};

// Memory for one select_rows at a time.
struct SelectScratch {
  uint32_t* strength = nullptr;   // [D] keys of sum |q|
  float* direction = nullptr;     // [D] sum q
  int32_t* channels = nullptr;    // [r] chosen channels, ascending
  int32_t* rows = nullptr;        // [r] the same as rows of a page block: min d or max D + d
  float* weights = nullptr;       // [group][query_stride] q of the chosen channels, in their order
  float* inv_tau = nullptr;       // [group] 1 / temperature
  std::byte* loose = nullptr;     // [kTailPages][2][D] pages made from K here
  std::byte* gathered = nullptr;  // [r][kTailPages] chosen channels of the pages outside the blocks
  float* scores = nullptr;        // [group][score_stride]
  int64_t score_stride = 0;
  uint32_t* keys = nullptr;  // [pages] what ranks a page
  uint32_t* forced_keys = nullptr;
  int32_t* pages = nullptr;  // [pages] chosen pages, ascending
};

// max_pages 0: nothing is ever selected.
SelectScratch carve_select(Arena& arena, const Shape& shape, int64_t max_pages);

// Ascending live rows to `out`, at most top_k rounded up to pages; returns how many. Sets *nonfinite
// where a page's score was not finite.
int64_t select_rows(const SelectArgs& args, const SelectScratch& scratch, int32_t* out,
                    bool* nonfinite, size_t target);

// The same in steps. Between the first and the last one, every block [0, score_blocks(args)) is
// scored once, in any order and by any thread, and the loose pages.
struct ScoreRange {
  int64_t first = 0, end = 0;  // blocks of pages
  int64_t fetched = 0;         // blocks before this one may be brought to the cache early
  bool cold = false;           // nothing of the first one was
};
int64_t score_blocks(const SelectArgs& args);
void start_select(const SelectArgs& args, const SelectScratch& scratch, size_t target);
void score_pages(const SelectArgs& args, const SelectScratch& scratch, const ScoreRange& range,
                 size_t target);
void score_loose_pages(const SelectArgs& args, const SelectScratch& scratch, size_t target);
int64_t finish_select(const SelectArgs& args, const SelectScratch& scratch, int32_t* out,
                      bool* nonfinite, size_t target);

}  // namespace rkv::cpu
