// One sequence of one layer in a librkv cache, through the C API alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend.hpp"
#include "prompt.hpp"

namespace rkv_bench {

struct SessionSetup {
  int32_t dtype = RKV_DTYPE_BF16;
  int64_t length = 0;  // prompt and generated tokens together
  int64_t budget = 0;  // t; 0: the whole prompt is kept and attended to
  int threads = 2;
};

// Ends the program where the library answers with an error.
void require(rkv_status status, const rkv_error& error);

class Session {
 public:
  explicit Session(const SessionSetup& setup);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Opens the sequence (closes the last one) without a prompt.
  void open();
  void prefill(Prompt& prompt);
  void prefill(Prompt& prompt, const rkv_tensor& k, const rkv_tensor& v);
  // Appends tokens until a repeated step leaves cap - 1 live rows (dense: length - 1).
  void fill(Prompt& prompt);
  // Appends one more token: all cap rows are live.
  void fill_last(Prompt& prompt);
  // The step at that place: append, select, attend; query `i`, modulo kQueries.
  void step(int i);

  const SessionSetup& setup() const { return setup_; }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  const rkv_plan& plan() const { return plan_; }
  const rkv_cache_config& config() const { return config_; }
  const rkv_memory& memory() const { return memory_; }
  rkv_sequence_stats stats();
  int64_t live() { return stats().kept + stats().generated; }
  std::vector<int64_t> kept_positions();
  // Rows that step `i` attends to, [kv_heads] lists.
  std::vector<std::vector<int32_t>> selection(int i);
  const Prompt& prompt() const { return *prompt_; }  // of the last prefill
  const void* output() const { return out_.data(); }

  // Where the layer lies, as the core lays it out.
  rkv::LayerStore store() const;

 private:
  void decode(int query, int64_t position, const rkv_selection* selection);

  SessionSetup setup_;
  rkv_cache_config config_;
  rkv_memory memory_;
  rkv_plan plan_;
  rkv_error error_;
  int64_t prompt_tokens_ = 0, step_position_ = 0;
  HugeBuffer storage_, workspace_;
  rkv_cache* cache_ = nullptr;
  bool open_ = false;
  Prompt* prompt_ = nullptr;
  HugeBuffer out_;
};

}  // namespace rkv_bench
