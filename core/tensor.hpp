// From the public tensor to a view: every check that needs no cache.
#pragma once

#include <cstdint>

#include "core/backend.hpp"
#include "core/failure.hpp"

namespace rkv {

struct TensorNeed {
  const char* name;  // as the caller knows it, e.g. "args.k"
  DType dtype;
  const char* dtype_of;  // the config field that sets it, e.g. "config.kv_dtype"
  int64_t rows;          // -1: any
  int64_t heads, channels;
  bool output = false;
};

// NULL is aligned. bytes: a power of two.
rkv_status check_aligned(const char* argument, const void* data, int64_t bytes, Failure& failure);

// tensor: [rows, heads, channels]. NULL is an error here; callers that allow it test first.
rkv_status read_tensor(const rkv_tensor* tensor, const TensorNeed& need, View& view, int64_t& rows,
                       Failure& failure);
inline rkv_status read_tensor(const rkv_tensor* tensor, const TensorNeed& need, View& view,
                              Failure& failure) {
  int64_t rows = 0;
  return read_tensor(tensor, need, view, rows, failure);
}

}  // namespace rkv
