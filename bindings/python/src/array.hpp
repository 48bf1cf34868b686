// One argument of a Python call seen as an array: by the buffer protocol or by DLPack, no copy.
#pragma once

#include <Python.h>

#include <cstdint>

#include "rkv/rkv.h"

namespace rkv_python {

inline constexpr int kMaxAxes = 6;  // of rkv_tensor

enum class Element : uint8_t {
  kOther,
  kFloat32,
  kFloat16,
  kBfloat16,
  kE4m3,
  kE5m2,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint64
};

// Sets the exception of the facade for a status; the GIL is held.
void raise(rkv_status status, int32_t native_code, const char* text);
// The same for an argument that this layer refuses, with its Python cause where one is set.
void raise_argument(const char* name, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Converts an integer (bool and numpy integers too); false: the exception is set.
bool to_integer(PyObject* object, const char* name, int64_t low, int64_t high, int64_t* out);
bool to_double(PyObject* object, const char* name, double largest, double* out);

const char* element_text(Element element);

// A view holds its source until it is destroyed. Acquire, swap and destroy under the GIL; reading
// the members needs none.
class Array {
 public:
  Array() = default;
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // None leaves it absent. False: the Python exception is set, and names the argument. `cpu`: only
  // CPU memory will do, so DLPack need not be asked first where the array is.
  bool acquire(PyObject* object, const char* name, bool writable, bool cpu);
  void swap(Array& other);

  bool contiguous() const;
  bool packed() const;   // contiguous and aligned to its elements
  int64_t size() const;  // elements
  int64_t bytes() const { return size() * item_size; }

  bool present = false;
  Element element = Element::kOther;
  int32_t item_size = 0;  // bytes
  int32_t device_type = RKV_DEVICE_CPU;
  int32_t device = 0;
  int32_t ndim = 0;
  void* data = nullptr;
  int64_t shape[kMaxAxes] = {};
  int64_t strides[kMaxAxes] = {};  // in elements
  char type_name[24] = {};         // as its own library writes it

  struct Text {
    char text[96];
  };
  Text describe() const;  // "int32 [2, 3]", for error texts

 private:
  bool acquire_buffer(PyObject* object, const char* name, bool writable);
  bool acquire_dlpack(PyObject* object, const char* name, bool writable, bool cpu);
  bool read_tensor(const void* tensor, const char* name);

  Py_buffer view_ = {};          // view_.obj set: by the buffer protocol
  PyObject* capsule_ = nullptr;  // by DLPack; its destructor frees the tensor
};

}  // namespace rkv_python
