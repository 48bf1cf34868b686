// ggml's flash attention over K and V in the layout of llama.cpp's cache.
#pragma once

#include <cstdint>
#include <memory>

#include "prompt.hpp"

namespace rkv_bench {

class GgmlAttention {
 public:
  static bool built();  // whether the benchmark was built with ggml

  // Attention of one token over the first `tokens` rows of the prompt, F16.
  GgmlAttention(Prompt& prompt, int64_t tokens, int threads);
  ~GgmlAttention();
  GgmlAttention(const GgmlAttention&) = delete;
  GgmlAttention& operator=(const GgmlAttention&) = delete;

  void run(int query);
  const float* output() const;  // [q_heads][D]

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace rkv_bench
