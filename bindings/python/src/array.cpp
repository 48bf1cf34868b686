#include "array.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "dlpack_abi.hpp"

namespace rkv_python {
namespace {

// Element types by the name that numpy extensions (ml_dtypes) give them; such arrays have no
// buffer format.
Element element_of_name(const char* name) {
  if (std::strcmp(name, "bfloat16") == 0) return Element::kBfloat16;
  if (std::strcmp(name, "float8_e4m3fn") == 0) return Element::kE4m3;
  if (std::strcmp(name, "float8_e5m2") == 0) return Element::kE5m2;
  return Element::kOther;
}

Element element_of_format(const char* format, Py_ssize_t item_size) {
  if (format == nullptr) return Element::kUint8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == '\0' || format[1] != '\0') return Element::kOther;
  switch (*format) {
    case 'f': return Element::kFloat32;
    case 'e': return Element::kFloat16;
    case 'H': return Element::kUint16;
    case 'B':
    case 'b':
    case 'c':
    case '?': return Element::kUint8;
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      if (item_size == 4) return Element::kInt32;
      return item_size == 8 ? Element::kInt64 : Element::kOther;
    case 'L':
    case 'Q':
    case 'N': return item_size == 8 ? Element::kUint64 : Element::kOther;
    default: return Element::kOther;
  }
}

Element element_of_dlpack(const dlpack::DataType& type) {
  if (type.lanes != 1) return Element::kOther;
  switch (type.code) {
    case dlpack::kFloat:
      if (type.bits == 32) return Element::kFloat32;
      return type.bits == 16 ? Element::kFloat16 : Element::kOther;
    case dlpack::kBfloat: return type.bits == 16 ? Element::kBfloat16 : Element::kOther;
    case dlpack::kFloat8E4m3fn: return Element::kE4m3;
    case dlpack::kFloat8E5m2: return Element::kE5m2;
    case dlpack::kInt:
      if (type.bits == 32) return Element::kInt32;
      return type.bits == 64 ? Element::kInt64 : Element::kOther;
    case dlpack::kUint:
      if (type.bits == 8) return Element::kUint8;
      if (type.bits == 16) return Element::kUint16;
      return type.bits == 64 ? Element::kUint64 : Element::kOther;
    default: return Element::kOther;
  }
}

// object.dtype.name where there is one, else "".
void dtype_name(PyObject* object, char (&out)[24]) {
  out[0] = '\0';
  PyObject* dtype = PyObject_GetAttrString(object, "dtype");
  PyObject* name = dtype == nullptr ? nullptr : PyObject_GetAttrString(dtype, "name");
  const char* text =
      name != nullptr && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, nullptr) : nullptr;
  if (text != nullptr) std::snprintf(out, sizeof out, "%s", text);
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  PyErr_Clear();
}

// Calls object.__dlpack__(stream=-1 on a device, max_version=(1, 0) where versioned).
PyObject* call_dlpack(PyObject* object, bool on_device, bool versioned) {
  PyObject* method = PyObject_GetAttrString(object, "__dlpack__");
  PyObject* arguments = PyTuple_New(0);
  PyObject* keywords = PyDict_New();
  PyObject* result = nullptr;
  if (method != nullptr && arguments != nullptr && keywords != nullptr) {
    // -1: no synchronisation, events between streams are the caller's.
    PyObject* stream = on_device ? PyLong_FromLong(-1) : nullptr;
    PyObject* version = versioned ? Py_BuildValue("(ii)", 1, 0) : nullptr;
    if (stream != nullptr) PyDict_SetItemString(keywords, "stream", stream);
    if (version != nullptr) PyDict_SetItemString(keywords, "max_version", version);
    if (!PyErr_Occurred()) result = PyObject_Call(method, arguments, keywords);
    Py_XDECREF(stream);
    Py_XDECREF(version);
  }
  Py_XDECREF(keywords);
  Py_XDECREF(arguments);
  Py_XDECREF(method);
  return result;
}

// The device type of __dlpack_device__; -1: none, the exception is set.
int dlpack_device_type(PyObject* object) {
  PyObject* device = PyObject_CallMethod(object, "__dlpack_device__", nullptr);
  if (device == nullptr) return -1;
  int type = -1;
  PyObject* first = PySequence_GetItem(device, 0);
  PyObject* number = first == nullptr ? nullptr : PyNumber_Index(first);  // an enum in some
  if (number != nullptr) type = static_cast<int>(PyLong_AsLong(number));
  Py_XDECREF(number);
  Py_XDECREF(first);
  Py_DECREF(device);
  return type;
}

}  // namespace

void raise(rkv_status status, int32_t native_code, const char* text) {
  PyObject* module = PyImport_ImportModule("rkv._errors");
  if (module == nullptr) return;
  PyObject* message =
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
  PyObject* error = message == nullptr
                        ? nullptr
                        : PyObject_CallMethod(module, "make_error", "iiO", static_cast<int>(status),
                                              static_cast<int>(native_code), message);
  if (error != nullptr) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_XDECREF(error);
  Py_XDECREF(message);
  Py_DECREF(module);
}

void raise_argument(const char* name, const char* format, ...) {
  PyObject *type = nullptr, *cause = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &cause, &trace);
  PyErr_NormalizeException(&type, &cause, &trace);

  char text[240];
  const int length = std::snprintf(text, sizeof text, "%s: ", name);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length), format, arguments);
  va_end(arguments);
  raise(RKV_INVALID_ARGUMENT, 0, text);

  if (cause != nullptr) {
    PyObject *new_type = nullptr, *error = nullptr, *new_trace = nullptr;
    PyErr_Fetch(&new_type, &error, &new_trace);
    if (error != nullptr) PyException_SetCause(error, Py_NewRef(cause));
    PyErr_Restore(new_type, error, new_trace);
  }
  Py_XDECREF(type);
  Py_XDECREF(cause);
  Py_XDECREF(trace);
}

bool to_integer(PyObject* object, const char* name, int64_t low, int64_t high, int64_t* out) {
  PyObject* number = PyNumber_Index(object);
  if (number == nullptr) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s: %R is no integer", name, object);
    return false;
  }
  const long long value = PyLong_AsLongLong(number);
  const bool failed = value == -1 && PyErr_Occurred() != nullptr;
  Py_DECREF(number);
  if (failed || value < low || value > high) {
    PyErr_Clear();
    char text[64] = "the value";
    PyObject* shown = PyObject_Repr(object);
    const char* utf8 = shown == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(shown, nullptr);
    if (utf8 != nullptr) std::snprintf(text, sizeof text, "%s", utf8);
    Py_XDECREF(shown);
    PyErr_Clear();
    raise_argument(name, "%s, need an integer from %lld to %lld", text, static_cast<long long>(low),
                   static_cast<long long>(high));
    return false;
  }
  *out = value;
  return true;
}

bool to_double(PyObject* object, const char* name, double largest, double* out) {
  *out = PyFloat_AsDouble(object);
  if (*out == -1.0 && PyErr_Occurred() != nullptr) {
    const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (too_large) {
      raise_argument(name, "too large for a double");
    } else {
      PyErr_Format(PyExc_TypeError, "%s: %R is no number", name, object);
    }
    return false;
  }
  if (std::isfinite(*out) && std::fabs(*out) > largest) {
    raise_argument(name, "%g, need at most %g", *out, largest);
    return false;
  }
  return true;
}

const char* element_text(Element element) {
  switch (element) {
    case Element::kFloat32: return "float32";
    case Element::kFloat16: return "float16";
    case Element::kBfloat16: return "bfloat16";
    case Element::kE4m3: return "float8_e4m3fn";
    case Element::kE5m2: return "float8_e5m2";
    case Element::kInt32: return "int32";
    case Element::kInt64: return "int64";
    case Element::kUint8: return "uint8";
    case Element::kUint16: return "uint16";
    case Element::kUint64: return "uint64";
    case Element::kOther: break;
  }
  return "other";
}

Array::Text Array::describe() const {
  Text out;
  if (!present) {
    std::snprintf(out.text, sizeof out.text, "None");
    return out;
  }
  const char* type = element == Element::kOther ? type_name : element_text(element);
  size_t used = static_cast<size_t>(std::snprintf(out.text, sizeof out.text, "%s [", type));
  for (int axis = 0; axis < ndim && used < sizeof out.text; ++axis) {
    used += static_cast<size_t>(std::snprintf(out.text + used, sizeof out.text - used, "%s%lld",
                                              axis > 0 ? ", " : "",
                                              static_cast<long long>(shape[axis])));
  }
  if (used < sizeof out.text) std::snprintf(out.text + used, sizeof out.text - used, "]");
  return out;
}

Array::~Array() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
  Py_XDECREF(capsule_);
}

void Array::swap(Array& other) {
  std::swap(present, other.present);
  std::swap(element, other.element);
  std::swap(item_size, other.item_size);
  std::swap(device_type, other.device_type);
  std::swap(device, other.device);
  std::swap(ndim, other.ndim);
  std::swap(data, other.data);
  std::swap(shape, other.shape);
  std::swap(strides, other.strides);
  std::swap(type_name, other.type_name);
  std::swap(view_, other.view_);
  std::swap(capsule_, other.capsule_);
}

bool Array::contiguous() const {
  int64_t expected = 1;
  for (int axis = ndim - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[axis] != expected) return size() == 0;
    expected *= shape[axis];
  }
  return true;
}

bool Array::packed() const {
  if (size() == 0) return true;
  return contiguous() && reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(item_size) == 0;
}

int64_t Array::size() const {
  int64_t count = 1;
  for (int axis = 0; axis < ndim; ++axis) count *= shape[axis];
  return count;
}

bool Array::acquire(PyObject* object, const char* name, bool writable, bool cpu) {
  if (object == Py_None) return true;
  if (PyObject_CheckBuffer(object)) return acquire_buffer(object, name, writable);
  if (PyObject_HasAttrString(object, "__dlpack__") != 0) {
    return acquire_dlpack(object, name, writable, cpu);
  }
  PyErr_Format(PyExc_TypeError, "%s: %R has neither the buffer protocol nor __dlpack__", name,
               reinterpret_cast<PyObject*>(Py_TYPE(object)));
  return false;
}

bool Array::acquire_buffer(PyObject* object, const char* name, bool writable) {
  const int flags = PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object, &view_, flags | PyBUF_FORMAT) == 0) {
    element = element_of_format(view_.format, view_.itemsize);
    std::snprintf(type_name, sizeof type_name, "'%s'",
                  view_.format == nullptr ? "B" : view_.format);
  } else {
    // numpy cannot write down the format of an extension type: ask without, and for the name.
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    dtype_name(object, type_name);
    element = element_of_name(type_name);
    if (element == Element::kOther || PyObject_GetBuffer(object, &view_, flags) != 0) {
      PyErr_Clear();
      PyErr_Restore(type, value, trace);
      view_.obj = nullptr;
      raise_argument(name, writable ? "no writable strided buffer%s%s" : "no strided buffer%s%s",
                     type_name[0] == '\0' ? "" : " of type ", type_name);
      return false;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  }

  if (view_.ndim > kMaxAxes) {
    raise_argument(name, "%d axes, at most %d", view_.ndim, kMaxAxes);
    return false;
  }
  present = true;
  data = view_.buf;
  ndim = view_.ndim;
  item_size = static_cast<int32_t>(view_.itemsize);
  for (int axis = 0; axis < ndim; ++axis) {
    shape[axis] = view_.shape[axis];
    if (item_size == 0 || view_.strides[axis] % item_size != 0) {
      raise_argument(name, "stride of axis %d is %lld bytes, need a multiple of %d", axis,
                     static_cast<long long>(view_.strides[axis]), item_size);
      return false;
    }
    strides[axis] = view_.strides[axis] / item_size;
  }
  return true;
}

bool Array::acquire_dlpack(PyObject* object, const char* name, bool writable, bool cpu) {
  const int device_kind = cpu ? int{dlpack::kCpu} : dlpack_device_type(object);
  const bool on_device = device_kind == dlpack::kCuda || device_kind == dlpack::kCudaManaged;
  // Only the versioned form says whether the memory may be written, but not all libraries have it.
  if (device_kind >= 0) {
    capsule_ = call_dlpack(object, on_device, writable);
    if (capsule_ == nullptr &&
        PyErr_ExceptionMatches(writable ? PyExc_TypeError : PyExc_BufferError)) {
      PyErr_Clear();
      capsule_ = call_dlpack(object, on_device, !writable);
    }
  }
  if (capsule_ == nullptr) {
    raise_argument(name, "its __dlpack__ failed");
    return false;
  }
  if (PyCapsule_IsValid(capsule_, "dltensor")) {
    auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule_, "dltensor"));
    return read_tensor(&managed->tensor, name);
  }
  if (PyCapsule_IsValid(capsule_, "dltensor_versioned")) {
    auto* managed =
        static_cast<dlpack::VersionedTensor*>(PyCapsule_GetPointer(capsule_, "dltensor_versioned"));
    if (managed->major != 1) {
      raise_argument(name, "DLPack version %u, need 1", managed->major);
      return false;
    }
    if (writable && (managed->flags & dlpack::kReadOnly) != 0) {
      raise_argument(name, "read-only, need a writable array");
      return false;
    }
    return read_tensor(&managed->tensor, name);
  }
  raise_argument(name, "its __dlpack__ gave no DLPack capsule");
  return false;
}

bool Array::read_tensor(const void* tensor, const char* name) {
  const auto& source = *static_cast<const dlpack::Tensor*>(tensor);
  switch (source.device.type) {
    case dlpack::kCpu:
    case dlpack::kCudaHost: device_type = RKV_DEVICE_CPU; break;
    case dlpack::kCuda:
    case dlpack::kCudaManaged:
      device_type = RKV_DEVICE_CUDA;
      device = source.device.index;
      break;
    default:
      raise_argument(name, "DLPack device type %d, need 1 (CPU) or 2 (CUDA)", source.device.type);
      return false;
  }
  if (source.ndim > kMaxAxes) {
    raise_argument(name, "%d axes, at most %d", source.ndim, kMaxAxes);
    return false;
  }
  present = true;
  data = static_cast<char*>(source.data) + source.byte_offset;
  ndim = source.ndim;
  item_size = source.dtype.bits / 8;
  element = element_of_dlpack(source.dtype);
  std::snprintf(type_name, sizeof type_name, "(DLPack %u, %u bits)", source.dtype.code,
                source.dtype.bits);
  int64_t packed = 1;
  for (int axis = ndim - 1; axis >= 0; --axis) {
    shape[axis] = source.shape[axis];
    strides[axis] = source.strides == nullptr ? packed : source.strides[axis];
    packed *= shape[axis];
  }
  return true;
}

}  // namespace rkv_python
