// The parts of a run. Each adds its rows to the report.
#pragma once

#include <cstdint>
#include <string>

#include "prompt.hpp"
#include "report.hpp"
#include "stream.hpp"

namespace rkv_bench {

struct Run {
  int threads = 2;
  int rounds = 15;     // samples of each side
  bool quick = false;  // one dtype, shorter prompts in stage 1
  bool peers = true;
  std::string onnxruntime_results;  // file that ort_gqa.py wrote; empty = none
  std::string openblas;             // library file; empty = the system's
  Streamer* streamer = nullptr;
  Report* report = nullptr;
};

// Rows 1 to 5: dense decode, decode step, replica. `prompt` holds the longest length's tokens.
void run_decode_rows(const Run& run, Prompt& prompt);
// Rows 6 and 8: what a step is made of.
void run_piece_rows(const Run& run, Prompt& prompt);
// Row 9: two threads over one.
void run_thread_rows(const Run& run, Prompt& prompt);
// Row 7: stage 1.
void run_stage1_rows(const Run& run, Prompt& prompt);
// Row 10.
void run_topk_rows(const Run& run);
// Row 11.
void run_memory_rows(const Run& run, Prompt& prompt);
// Dense decode beside ggml's flash attention and onnxruntime's GroupQueryAttention.
void run_peer_rows(const Run& run, Prompt& prompt);

}  // namespace rkv_bench
