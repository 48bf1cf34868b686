/* A DLPack tensor as an rkv_tensor. Optional, header only; <dlpack/dlpack.h> is the caller's. */
#ifndef RKV_RKV_DLPACK_H
#define RKV_RKV_DLPACK_H
#include <dlpack/dlpack.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "rkv/rkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *err as far as its struct_size reaches. */
static inline rkv_status rkv_dlpack_refuse_(rkv_error *err, rkv_status status, const char *format,
                                            ...) {
  const size_t head = offsetof(rkv_error, text);
  va_list values;
  if (err == NULL || err->struct_size <= head) return status;
  va_start(values, format);
  vsnprintf(err->text, (err->struct_size < sizeof *err ? err->struct_size : sizeof *err) - head,
            format, values);
  va_end(values);
  err->status = status;
  err->native_code = 0;
  return status;
}

/* RKV_DTYPE_* of an element type, 0 where there is none. */
static inline int32_t rkv_dlpack_dtype(DLDataType type) {
  if (type.lanes != 1) return 0;
  if (type.code == kDLFloat && type.bits == 32) return RKV_DTYPE_F32;
  if (type.code == kDLFloat && type.bits == 16) return RKV_DTYPE_F16;
  if (type.code == kDLBfloat && type.bits == 16) return RKV_DTYPE_BF16;
  if (type.code == 10 && type.bits == 8) return RKV_DTYPE_E4M3; /* kDLFloat8_e4m3fn, DLPack 1.1 */
  if (type.code == 12 && type.bits == 8) return RKV_DTYPE_E5M2; /* kDLFloat8_e5m2 */
  return 0;
}

/* Fills *tensor with a view of *from: its data with byte_offset, its strides or, where they are NULL,
 * those of a dense row-major array. Nothing is copied and nothing of *from is kept but the data pointer.
 * device_type, device: the cache's (rkv_cache_config); pinned host memory counts as the CPU's, managed
 * memory as any CUDA device's. `name` is the argument's name in error texts, e.g. "k".
 * RKV_INVALID_ARGUMENT: NULL, another device, a number of axes outside 1 to 6, an offset that splits an
 * element. RKV_UNSUPPORTED: an element type that rkv_tensor does not have. *tensor is written on
 * success only. */
static inline rkv_status rkv_tensor_from_dlpack(const DLTensor *from, int32_t device_type,
                                                int32_t device, const char *name,
                                                rkv_tensor *tensor, rkv_error *err) {
  rkv_tensor made;
  int64_t stride = 1;
  int32_t axis, on, dtype;
  if (name == NULL) name = "tensor";
  if (from == NULL || tensor == NULL) {
    return rkv_dlpack_refuse_(err, RKV_INVALID_ARGUMENT,
                              "%s: NULL, need a DLTensor and an rkv_tensor", name);
  }
  switch ((int)from->device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: on = device_type == RKV_DEVICE_CPU; break;
    case kDLCUDA: on = device_type == RKV_DEVICE_CUDA && from->device.device_id == device; break;
    case 13 /* kDLCUDAManaged */: on = device_type == RKV_DEVICE_CUDA; break;
    default: on = 0;
  }
  if (!on) {
    return rkv_dlpack_refuse_(err, RKV_INVALID_ARGUMENT,
                              "%s: DLPack device (%d, %d), need the cache's: %s %d", name,
                              (int)from->device.device_type, (int)from->device.device_id,
                              device_type == RKV_DEVICE_CPU ? "CPU" : "CUDA", (int)device);
  }
  dtype = rkv_dlpack_dtype(from->dtype);
  if (dtype == 0) {
    return rkv_dlpack_refuse_(
        err, RKV_UNSUPPORTED,
        "%s: DLPack type code %d, %d bits, %d lanes, need a float of 32 or 16 "
        "bits, a bfloat of 16 or a float8 e4m3fn or e5m2, 1 lane",
        name, (int)from->dtype.code, (int)from->dtype.bits, (int)from->dtype.lanes);
  }
  if (from->ndim < 1 || from->ndim > 6 || from->shape == NULL) {
    return rkv_dlpack_refuse_(err, RKV_INVALID_ARGUMENT, "%s: %d axes, need 1 to 6 and a shape",
                              name, (int)from->ndim);
  }
  if (from->byte_offset % (from->dtype.bits / 8u) != 0) {
    return rkv_dlpack_refuse_(err, RKV_INVALID_ARGUMENT,
                              "%s: byte_offset %llu, need a multiple of the element's %d bytes",
                              name, (unsigned long long)from->byte_offset,
                              (int)(from->dtype.bits / 8));
  }
  memset(&made, 0, sizeof made);
  made.struct_size = sizeof made;
  made.dtype = dtype;
  made.ndim = from->ndim;
  made.data = from->data == NULL ? NULL : (char *)from->data + from->byte_offset;
  for (axis = from->ndim - 1; axis >= 0; --axis) {
    made.shape[axis] = from->shape[axis];
    made.strides[axis] = from->strides != NULL ? from->strides[axis] : stride;
    if (from->strides == NULL && from->shape[axis] > 0) stride *= from->shape[axis];
  }
  *tensor = made;
  return RKV_OK;
}

#ifdef __cplusplus
}
#endif
#endif
