// The CPU backend: one workspace for the two stages, which never run at the same time, one pool of
// threads, one SIMD target.
#include "core/backend.hpp"

#include <algorithm>
#include <memory>

#include "core/cpu/decode.hpp"
#include "core/cpu/pool.hpp"
#include "core/cpu/stage1.hpp"
#include "core/cpu/summaries.hpp"
#include "core/cpu/target.hpp"

namespace rkv::cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const BackendLimits& limits, std::byte* workspace)
      : limits_(limits),
        workspace_(workspace),
        target_(resolve_target().index),
        pool_(limits.threads),
        decoder_(limits, pool_, workspace, target_) {}

  void stage1(Stage1Task& task) noexcept override {
    run_stage1(task, limits_, pool_, workspace_, target_);
  }
  void expect() noexcept override { pool_.rouse(limits_.shape.kv_heads); }
  void select(DecodeTask& task) noexcept override { decoder_.select(task); }
  void attend(DecodeTask& task) noexcept override { decoder_.attend(task); }
  void decode(DecodeTask& task) noexcept override { decoder_.decode(task); }

  void rewind(const LayerStore& store, int64_t page_size, int64_t before,
              int64_t live) noexcept override {
    const int64_t flushed = flushed_pages(live, page_size);
    if (flushed_pages(before, page_size) == flushed) return;  // the tail still holds them
    for (int32_t head = 0; head < limits_.shape.kv_heads; ++head) {
      build_pages(limits_.shape, store, head, page_size, flushed, live / page_size, flushed,
                  target_);
    }
  }

 private:
  const BackendLimits limits_;
  std::byte* const workspace_;
  const size_t target_;
  Pool pool_;
  Decoder decoder_;
};

}  // namespace

int64_t workspace_bytes(const BackendLimits& limits) {
  const int64_t prefill = stage1_workspace_bytes(limits);
  const int64_t decode = decode_workspace_bytes(limits);
  return prefill < 0 || decode < 0 ? -1 : std::max(prefill, decode);
}

const char* simd_target_error() { return resolve_target().error; }

std::unique_ptr<Backend> create(const BackendLimits& limits, std::byte* workspace) {
  return std::make_unique<CpuBackend>(limits, workspace);
}

}  // namespace rkv::cpu
