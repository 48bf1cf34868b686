#include "core/tensor.hpp"

#include <cstdio>

namespace rkv {
namespace {

const char* dtype_name(int32_t dtype) {
  static constexpr const char* kNames[] = {"none", "F32", "F16", "BF16", "E4M3", "E5M2"};
  return dtype >= 0 && dtype <= RKV_DTYPE_E5M2 ? kNames[dtype] : "unknown";
}

// Whether every element's byte offset fits in int64 with room for sums.
bool addressable(const rkv_tensor& tensor, int64_t element) {
  __int128 reach = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const __int128 stride = tensor.strides[axis];
    reach += (stride < 0 ? -stride : stride) * (tensor.shape[axis] - 1) * element;
  }
  return reach < (__int128{1} << 62);
}

rkv_status check_shape(const rkv_tensor& tensor, const TensorNeed& need, Failure& failure) {
  const int64_t want[3] = {need.rows, need.heads, need.channels};
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t have = tensor.shape[axis];
    if (have < 0 || have > int64_t{1} << 40 || (want[axis] >= 0 && have != want[axis])) {
      if (need.rows < 0) {
        return fail(failure, RKV_INVALID_ARGUMENT,
                    "%s.shape is [%lld, %lld, %lld]: it must be [rows, %lld, %lld]", need.name,
                    static_cast<long long>(tensor.shape[0]),
                    static_cast<long long>(tensor.shape[1]),
                    static_cast<long long>(tensor.shape[2]), static_cast<long long>(need.heads),
                    static_cast<long long>(need.channels));
      }
      return fail(failure, RKV_INVALID_ARGUMENT,
                  "%s.shape is [%lld, %lld, %lld]: it must be [%lld, %lld, %lld]", need.name,
                  static_cast<long long>(tensor.shape[0]), static_cast<long long>(tensor.shape[1]),
                  static_cast<long long>(tensor.shape[2]), static_cast<long long>(need.rows),
                  static_cast<long long>(need.heads), static_cast<long long>(need.channels));
    }
  }
  return RKV_OK;
}

rkv_status check_strides(const rkv_tensor& tensor, const TensorNeed& need, Failure& failure) {
  for (int axis = 0; need.output && axis < 3; ++axis) {
    if (tensor.strides[axis] == 0 && tensor.shape[axis] > 1) {
      return fail(failure, RKV_INVALID_ARGUMENT,
                  "%s.strides[%d] is 0: elements of an output must not share memory", need.name,
                  axis);
    }
  }
  if (!addressable(tensor, dtype_bytes(need.dtype))) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "%s.strides are [%lld, %lld, %lld]: offsets must stay under 2^62 bytes", need.name,
                static_cast<long long>(tensor.strides[0]),
                static_cast<long long>(tensor.strides[1]),
                static_cast<long long>(tensor.strides[2]));
  }
  return RKV_OK;
}

}  // namespace

rkv_status check_aligned(const char* argument, const void* data, int64_t bytes, Failure& failure) {
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0) return RKV_OK;
  return fail(failure, RKV_INVALID_ARGUMENT, "%s is %p: it must be aligned to %lld bytes", argument,
              data, static_cast<long long>(bytes));
}

rkv_status read_tensor(const rkv_tensor* tensor, const TensorNeed& need, View& view, int64_t& rows,
                       Failure& failure) {
  if (tensor == nullptr) return fail_null(failure, need.name, "this call needs it");
  if (tensor->scale != nullptr) {
    return fail(failure, RKV_UNSUPPORTED, "%s.scale is set: scaled tensors are not served yet",
                need.name);
  }
  if (tensor->reserved0 != 0) {
    return fail(failure, RKV_UNSUPPORTED, "%s.reserved0 is %d: it must be 0", need.name,
                tensor->reserved0);
  }
  for (int i = 0; i < 4; ++i) {
    if (tensor->reserved[i] != 0) {
      return fail(failure, RKV_UNSUPPORTED, "%s.reserved[%d] is %lld: it must be 0", need.name, i,
                  static_cast<long long>(tensor->reserved[i]));
    }
  }
  if (tensor->dtype != static_cast<int32_t>(need.dtype)) {
    const bool byte_type = tensor->dtype == RKV_DTYPE_E4M3 || tensor->dtype == RKV_DTYPE_E5M2;
    return fail(failure, byte_type ? RKV_UNSUPPORTED : RKV_INVALID_ARGUMENT,
                "%s.dtype is %d (%s): it must be %d (%s) by %s", need.name, tensor->dtype,
                dtype_name(tensor->dtype), static_cast<int32_t>(need.dtype),
                dtype_name(static_cast<int32_t>(need.dtype)), need.dtype_of);
  }
  if (tensor->ndim != 3) {
    const bool paged = tensor->ndim == 4 || tensor->ndim == 5;
    return fail(failure, paged ? RKV_UNSUPPORTED : RKV_INVALID_ARGUMENT,
                "%s.ndim is %d: it must be 3%s", need.name, tensor->ndim,
                paged ? "; paged tensors are not served yet" : "");
  }
  RKV_TRY(check_shape(*tensor, need, failure));
  RKV_TRY(check_strides(*tensor, need, failure));
  if (tensor->shape[0] > 0) {
    if (tensor->data == nullptr) {
      return fail(failure, RKV_INVALID_ARGUMENT, "%s.data is NULL: it must hold %lld rows",
                  need.name, static_cast<long long>(tensor->shape[0]));
    }
    char argument[48];
    std::snprintf(argument, sizeof argument, "%s.data", need.name);
    RKV_TRY(check_aligned(argument, tensor->data, dtype_bytes(need.dtype), failure));
  }
  view.data = static_cast<std::byte*>(tensor->data);
  view.dtype = need.dtype;
  view.row = tensor->strides[0];
  view.head = tensor->strides[1];
  view.channel = tensor->strides[2];
  rows = tensor->shape[0];
  return RKV_OK;
}

}  // namespace rkv
