// Append, stage 2 and attention of whole calls: who computes what, and in which memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend.hpp"
#include "core/cpu/attend.hpp"
#include "core/cpu/pool.hpp"
#include "core/cpu/select.hpp"
#include "core/cpu/workspace.hpp"

namespace rkv::cpu {

// -1 where it does not fit in int64.
int64_t decode_workspace_bytes(const BackendLimits& limits);

class Decoder {
 public:
  // workspace: decode_workspace_bytes(limits), 64-byte aligned. Throws std::bad_alloc.
  Decoder(const BackendLimits& limits, Pool& pool, std::byte* workspace, size_t target);

  void select(DecodeTask& task) noexcept;
  void attend(DecodeTask& task) noexcept;
  void decode(DecodeTask& task) noexcept;

 private:
  // Memory of one (row, KV head) while it is worked on.
  struct Item {
    float* q = nullptr;       // [group][query_stride]
    int32_t* list = nullptr;  // [selection_capacity]
    Partial sum;
  };
  struct Worker {
    Item item;  // where one thread does the whole item
    SelectScratch select;
    AttendScratch attend;
    Partial chunk;
  };
  // An item whose chunks are spread over the threads.
  struct SplitItem {
    Item memory;
    AttendArgs args;
    DecodeRow* row = nullptr;
    int64_t first_chunk = 0;  // chunks of the items before
    int64_t chunks = 0;
  };
  enum class Mode { kSelect, kAttend, kDecode };

  void carve(Arena& arena, const BackendLimits& limits);
  friend int64_t decode_workspace_bytes(const BackendLimits& limits);
  Decoder() = default;

  AttendArgs prepare(DecodeTask& task, Mode mode, DecodeRow& row, int32_t head, Worker& worker,
                     const Item& item) const;
  void finish(const DecodeTask& task, const AttendArgs& args, DecodeRow& row, const Partial& sum,
              bool nonfinite) const;
  void run_whole(DecodeTask& task, Mode mode) noexcept;
  void run_split(DecodeTask& task, Mode mode) noexcept;
  SplitItem& owner_of(int64_t chunk, int64_t items) noexcept;
  void attend_split(DecodeTask& task, int64_t items) noexcept;

  Shape shape_;
  Pool* pool_ = nullptr;
  size_t target_ = 0;
  std::vector<Worker> workers_;    // [threads]
  std::vector<SplitItem> items_;   // [threads - 1]
  std::vector<Partial> partials_;  // chunks of split items
};

}  // namespace rkv::cpu
