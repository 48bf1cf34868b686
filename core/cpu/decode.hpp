// Append, stage 2 and attention of whole calls: who computes what, and in which memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend.hpp"
#include "core/cpu/attend.hpp"
#include "core/cpu/pool.hpp"
#include "core/cpu/select.hpp"
#include "core/cpu/shared.hpp"
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
  // Memory of one thread.
  struct Worker {
    float* q = nullptr;       // [group][query_stride]
    int32_t* list = nullptr;  // [selection_capacity]
    SelectScratch select;
    AttendScratch attend;
    Partial chunk, sum;
  };
  enum class Mode { kSelect, kAttend, kDecode };

  void carve(Arena& arena, const BackendLimits& limits);
  friend int64_t decode_workspace_bytes(const BackendLimits& limits);
  Decoder() = default;

  AttendArgs prepare(DecodeTask& task, Mode mode, DecodeRow& row, int32_t head, Worker& worker,
                     SharedSelect* shared) const;
  void work(DecodeTask& task, Mode mode, const DecodeRun& run, int32_t head, Worker& worker,
            Shared* shared) noexcept;
  void help(int thread) noexcept;
  void run(DecodeTask& task, Mode mode) noexcept;

  Shape shape_;
  Pool* pool_ = nullptr;
  size_t target_ = 0;
  std::vector<Worker> workers_;   // [threads]
  std::vector<Shared> shared_;    // [threads], where there is more than one
  std::vector<ChunkSlot> slots_;  // divided among the items of a job
};

}  // namespace rkv::cpu
