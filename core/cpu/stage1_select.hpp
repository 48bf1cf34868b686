// The second half of stage 1: from scores to kept rows in the store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace rkv::cpu {

// Writes the positions kept of one head, ascending: the first `sinks`, the `keep - sinks - window`
// best of [sinks, prefix) and the last `window`.
//
// scores [prefix]: magnitudes break ties of the pooled scores; rank_keys [prefix]: ordered keys of
// the pooled scores, overwritten.
void choose_rows(const Stage1Task& task, const float* scores, uint32_t* rank_keys,
                 int32_t* positions);

// Rows [first, first + count) of one head's store: K and V of their positions side by side.
void gather_rows(const Stage1Task& task, const Shape& shape, int64_t head, int64_t first,
                 int64_t count);

}  // namespace rkv::cpu
