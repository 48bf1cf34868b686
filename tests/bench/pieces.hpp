// One decode step of one KV head, its parts timed one by one, with the library's own kernels.
#pragma once

#include <cstdint>

#include "core/cpu/select.hpp"

namespace rkv_bench {

enum Piece { kAppend, kQuery, kChannels, kScore, kSoftmax, kTopK, kAttend, kStore, kPieces };
inline constexpr const char* kPieceNames[kPieces] = {
    "append",  "load the query", "channels",  "page scores",
    "softmax", "top-k and rows", "attention", "store the output"};

// select_rows in four parts; adds the seconds of each to times[kChannels .. kTopK].
int64_t timed_select(const rkv::cpu::SelectArgs& args, const rkv::cpu::SelectScratch& scratch,
                     int32_t* out, double* times);

// Ascending indices of the k largest of n floats that are not negative, as stage 2 finds them.
// keys: room for n, indices: for k, and a vector more each.
void select_best(const float* values, int64_t n, int64_t k, uint32_t* keys, int32_t* indices);

}  // namespace rkv_bench
