// Stage 1 on the CPU: score the prompt, choose the rows to keep, gather and summarise them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"
#include "core/cpu/pool.hpp"

namespace rkv::cpu {

// -1 where it does not fit in int64.
int64_t stage1_workspace_bytes(const BackendLimits& limits);

// workspace: stage1_workspace_bytes(limits), 64-byte aligned; pool: limits.threads threads.
// target: Target::index. The bits of the result depend on the task and the target alone.
void run_stage1(Stage1Task& task, const BackendLimits& limits, Pool& pool, std::byte* workspace,
                size_t target) noexcept;

}  // namespace rkv::cpu
