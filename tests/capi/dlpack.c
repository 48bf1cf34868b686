/* rkv_dlpack.h: what it makes of DLPack tensors, and what it refuses. */
#include <rkv/rkv_dlpack.h>

#include "check.h"

static float data[2 * 3 * 8 * 2];
static int64_t shape[7] = {2, 3, 8, 1, 1, 1, 1};

static DLTensor floats(void) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = 3;
  t.dtype.code = kDLFloat, t.dtype.bits = 32, t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static void dense_without_strides(void) {
  DLTensor from = floats();
  from.byte_offset = 16;
  rkv_error err = {.struct_size = sizeof err};
  rkv_tensor t;
  CHECK(rkv_tensor_from_dlpack(&from, RKV_DEVICE_CPU, 0, "k", &t, &err) == RKV_OK);
  CHECK(t.struct_size == sizeof t && t.dtype == RKV_DTYPE_F32 && t.ndim == 3);
  CHECK(t.data == (void*)(data + 4));
  CHECK(t.shape[0] == 2 && t.shape[1] == 3 && t.shape[2] == 8 && t.shape[3] == 0);
  CHECK(t.strides[0] == 24 && t.strides[1] == 8 && t.strides[2] == 1 && t.strides[3] == 0);
  CHECK(t.scale == NULL);
}

static void strides_as_given(void) {
  DLTensor from = floats();
  int64_t strides[3] = {-24, 1, 3};
  from.strides = strides;
  rkv_tensor t;
  CHECK(rkv_tensor_from_dlpack(&from, RKV_DEVICE_CPU, 0, "v", &t, NULL) == RKV_OK);
  CHECK(t.strides[0] == -24 && t.strides[1] == 1 && t.strides[2] == 3);
}

static void element_types(void) {
  const struct {
    int code, bits, lanes;
    int32_t want;
  } types[] = {{kDLFloat, 32, 1, RKV_DTYPE_F32},
               {kDLFloat, 16, 1, RKV_DTYPE_F16},
               {kDLBfloat, 16, 1, RKV_DTYPE_BF16},
               {10, 8, 1, RKV_DTYPE_E4M3},
               {12, 8, 1, RKV_DTYPE_E5M2},
               {kDLFloat, 64, 1, 0},
               {kDLInt, 32, 1, 0},
               {kDLFloat, 32, 2, 0}};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    DLTensor from = floats();
    from.dtype.code = (uint8_t)types[i].code, from.dtype.bits = (uint8_t)types[i].bits;
    from.dtype.lanes = (uint16_t)types[i].lanes;
    rkv_error err = {.struct_size = sizeof err};
    rkv_tensor t = {.struct_size = 77};
    const rkv_status got = rkv_tensor_from_dlpack(&from, RKV_DEVICE_CPU, 0, "q", &t, &err);
    if (types[i].want != 0) {
      CHECK(got == RKV_OK && t.dtype == types[i].want);
    } else {
      CHECK(got == RKV_UNSUPPORTED && err.status == got && t.struct_size == 77);
      CHECK(strstr(err.text, "q: DLPack type code") == err.text);
    }
  }
}

static rkv_status refused(const DLTensor* from, const char* text) {
  rkv_error err = {.struct_size = sizeof err};
  rkv_tensor t = {.struct_size = 77};
  const rkv_status got = rkv_tensor_from_dlpack(from, RKV_DEVICE_CPU, 0, "k", &t, &err);
  CHECK(t.struct_size == 77);
  CHECK(strstr(err.text, text) != NULL);
  return got;
}

static void what_does_not_fit(void) {
  DLTensor from = floats();
  CHECK(refused(NULL, "k: NULL") == RKV_INVALID_ARGUMENT);
  from.ndim = 0;
  CHECK(refused(&from, "k: 0 axes, need 1 to 6") == RKV_INVALID_ARGUMENT);
  from.ndim = 7;
  CHECK(refused(&from, "k: 7 axes, need 1 to 6") == RKV_INVALID_ARGUMENT);
  from = floats();
  from.byte_offset = 2;
  CHECK(refused(&from, "byte_offset 2, need a multiple of the element's 4") ==
        RKV_INVALID_ARGUMENT);
  from = floats();
  from.device.device_type = kDLCUDA, from.device.device_id = 1;
  CHECK(refused(&from, "DLPack device (2, 1), need the cache's: CPU 0") == RKV_INVALID_ARGUMENT);
}

static void devices(void) {
  DLTensor from = floats();
  rkv_tensor t;
  from.device.device_type = kDLCUDA, from.device.device_id = 1;
  CHECK(rkv_tensor_from_dlpack(&from, RKV_DEVICE_CUDA, 1, "k", &t, NULL) == RKV_OK);
  CHECK(rkv_tensor_from_dlpack(&from, RKV_DEVICE_CUDA, 0, "k", &t, NULL) == RKV_INVALID_ARGUMENT);
  from.device.device_type = kDLCUDAHost; /* pinned: the CPU reads it */
  CHECK(rkv_tensor_from_dlpack(&from, RKV_DEVICE_CPU, 0, "k", &t, NULL) == RKV_OK);
  from.device.device_type = kDLCUDAManaged;
  CHECK(rkv_tensor_from_dlpack(&from, RKV_DEVICE_CUDA, 0, "k", &t, NULL) == RKV_OK);
}

static void an_older_error_is_not_overrun(void) {
  rkv_error err;
  memset(&err, 0x55, sizeof err);
  err.struct_size = 20; /* four bytes of text */
  rkv_tensor t;
  CHECK(rkv_tensor_from_dlpack(NULL, RKV_DEVICE_CPU, 0, "k", &t, &err) == RKV_INVALID_ARGUMENT);
  CHECK(strcmp(err.text, "k: ") == 0 && err.text[4] == 0x55);
  err.struct_size = 4;
  err.status = 9;
  CHECK(rkv_tensor_from_dlpack(NULL, RKV_DEVICE_CPU, 0, "k", &t, &err) == RKV_INVALID_ARGUMENT);
  CHECK(err.status == 9);
}

int main(void) {
  check_begin(__FILE__);
  CASE(dense_without_strides);
  CASE(strides_as_given);
  CASE(element_types);
  CASE(what_does_not_fit);
  CASE(devices);
  CASE(an_older_error_is_not_overrun);
  return check_end();
}
