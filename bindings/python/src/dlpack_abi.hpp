// The DLPack structures as their specification fixes them (ABI 0 and 1), as far as they are read.
#pragma once

#include <cstdint>

namespace rkv_python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUint = 1,
  kFloat = 2,
  kBfloat = 4,
  kFloat8E4m3fn = 10,
  kFloat8E5m2 = 12
};
inline constexpr uint64_t kReadOnly = 1;  // flag of VersionedTensor

struct Device {
  int32_t type;
  int32_t index;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: contiguous
  uint64_t byte_offset;
};

struct ManagedTensor {  // in a capsule named "dltensor"
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

struct VersionedTensor {  // in a capsule named "dltensor_versioned"
  uint32_t major, minor;
  void* context;
  void (*deleter)(VersionedTensor*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace rkv_python::dlpack
