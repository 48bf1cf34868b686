// A cache: its slots, what state each layer of each slot is in, and the calls that move them.
// Everything here is plain bookkeeping; the two stages are the backend's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend.hpp"
#include "core/config.hpp"
#include "core/layout.hpp"
#include "core/plan.hpp"
#include "core/tensor.hpp"

namespace rkv {

// Public arguments with their nested structs read to full size. A pointer is null where the
// caller's was.
struct PrefillCall {
  rkv_prefill_args args{};
  const rkv_tensor *q = nullptr, *k = nullptr, *v = nullptr;
};

struct DecodeCall {
  rkv_decode_args args{};
  const rkv_tensor *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr;
  const rkv_selection* selection = nullptr;
};

enum class LayerPhase : uint8_t { kEmpty, kPrefilling, kReady };

struct LayerState {
  LayerPhase phase = LayerPhase::kEmpty;
  bool holds_window_rows = false;  // rows of earlier calls wait in the slot's window
  bool nonfinite = false;
  int32_t window_rows = 0;  // query rows that scored; 0 where nothing had to be scored
  int64_t kept = 0, generated = 0;
};

struct Slot {
  bool open = false, planned = false;
  int32_t window_slot = -1, window_layers = 0;  // held while any layer has rows waiting
  int64_t prompt = 0;
  uint64_t last_call = 0;  // the decode call that last met this slot: rows must be adjacent
  Request request;
  Plan plan;
};

class Cache {
 public:
  // Memory that the caller gives; null storage: the cache allocates (and frees) both.
  static rkv_status create(const Config& config, const rkv_buffers* buffers,
                           std::unique_ptr<Cache>& out, Failure& failure);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const Config& config() const { return config_; }

  rkv_status open(int32_t seq, const rkv_sequence_options& options, Failure& failure);
  rkv_status close(int32_t seq, Failure& failure);
  rkv_status rewind(int32_t seq, int64_t position, Failure& failure);
  rkv_status check_open(int32_t seq, Failure& failure) const;
  rkv_status check_layer(int32_t layer, Failure& failure) const;

  rkv_status prefill(const PrefillCall& call, Failure& failure);

  enum class Step { kSelect, kAttend, kDecode };
  rkv_status decode(Step step, const DecodeCall& call, Failure& failure);
  rkv_status audit(const DecodeCall& call, rkv_audit_result& result, Failure& failure);

  rkv_status stats(int32_t seq, int32_t layer, rkv_sequence_stats& out, rkv_plan* plan,
                   Failure& failure) const;
  rkv_status kept_positions(int32_t seq, int32_t layer, int64_t* out, int64_t capacity,
                            int64_t& count, Failure& failure) const;

 private:
  Cache(const Config& config, Layout layout) : config_(config), layout_(std::move(layout)) {}

  LayerState& layer(int32_t seq, int32_t index) {
    return layers_[static_cast<size_t>(int64_t{seq} * config_.layers + index)];
  }
  const LayerState& layer(int32_t seq, int32_t index) const {
    return layers_[static_cast<size_t>(int64_t{seq} * config_.layers + index)];
  }
  Slot& slot(int32_t seq) { return slots_[static_cast<size_t>(seq)]; }
  const Slot& slot(int32_t seq) const { return slots_[static_cast<size_t>(seq)]; }
  LayerStore store(int32_t seq, int32_t index) const {
    return layout_.store(config_, storage_, seq, index);
  }
  // Whether this layer of this slot keeps and attends to everything.
  bool dense(int32_t seq, int32_t index) const {
    return slot(seq).plan.dense || config_.dense_layer(index);
  }
  int64_t page_size(int32_t seq, int32_t index) const {  // 0: no summaries
    return dense(seq, index) ? 0 : slot(seq).plan.page_size;
  }
  int64_t length(int32_t seq, int32_t index) const {
    return slot(seq).prompt + layer(seq, index).generated;
  }

  void drop_rows(int32_t seq, int32_t index, int64_t generated);
  uint8_t* window_marks(int32_t window_slot, int32_t index) {
    return window_marks_.data() + (int64_t{window_slot} * config_.layers + index) * config_.window;
  }
  const uint8_t* window_marks(int32_t window_slot, int32_t index) const {
    return const_cast<Cache*>(this)->window_marks(window_slot, index);
  }
  void release_window(int32_t seq, int32_t index);

  // prefill.cpp
  struct Prefill;
  rkv_status check_prefill(const PrefillCall& call, Prefill& prefill, Failure& failure) const;
  rkv_status check_rows(const PrefillCall& call, Prefill& prefill, Failure& failure) const;
  rkv_status check_window(const PrefillCall& call, Prefill& prefill, Failure& failure) const;
  rkv_status check_slot_holds(const Plan& plan, const Prefill& prefill, Failure& failure) const;
  void keep_window_rows(const Prefill& prefill);
  void run_stage1(const Prefill& prefill);

  // decode_rows.cpp: checks all rows of a call and fills rows_ and runs_; nothing changes on failure.
  enum class Access { kAppend, kExisting };
  struct RowPlace {
    int32_t seq, layer;
    int64_t row, position, length;
  };
  rkv_status read_rows(const DecodeCall& call, Access access, DecodeTask& task, Failure& failure);
  rkv_status check_row(const RowPlace& place, Access access, Failure& failure) const;
  rkv_status check_adjacent(const rkv_decode_args& args, int64_t row, Failure& failure);
  void add_row(const RowPlace& place, Access access, DecodeTask& task);

  // decode.cpp
  rkv_status check_call(const rkv_decode_args& args, Failure& failure) const;
  rkv_status read_outputs(Step step, const DecodeCall& call, DecodeTask& task, Failure& failure);
  rkv_status check_selection(const DecodeCall& call, bool read, DecodeTask& task,
                             Failure& failure) const;
  rkv_status check_indices(const DecodeTask& task, Failure& failure) const;
  void clear_padding(const DecodeCall& call, bool writes_selection, const DecodeTask& task) const;
  void drop_replaced_rows(const rkv_decode_args& args, const DecodeTask& task);
  void finish_rows(const rkv_decode_args& args, Access access, const DecodeTask& task);
  void to_positions(const DecodeCall& call, const DecodeTask& task) const;

  Config config_;
  Layout layout_;
  std::byte *storage_ = nullptr, *workspace_ = nullptr;
  bool owns_buffers_ = false;
  std::unique_ptr<Backend> backend_;
  std::vector<Slot> slots_;
  std::vector<LayerState> layers_;     // [max_sequences][layers]
  std::vector<uint8_t> window_marks_;  // [max_prefills][layers][window], 1 = row present
  std::vector<uint8_t> window_taken_;  // [max_prefills]
  std::vector<DecodeRow> rows_;        // [max_rows]
  std::vector<DecodeRun> runs_;        // [max_rows]
  uint64_t calls_ = 0;
};

void fill_plan(const Plan& plan, rkv_plan& out);

}  // namespace rkv
