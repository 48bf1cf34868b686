// Structs of callers older or newer than this library: read and written by their struct_size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/failure.hpp"

namespace rkv::capi {

inline constexpr uint32_t kLargestStruct = 4096;  // above it a struct_size was never set

// Every struct holds 8-byte fields, so a sizeof is a multiple of 8; any other size would cut a field
// in two and half a pointer would be read.
inline rkv_status check_struct_size(uint32_t size, const char* name, size_t ours,
                                    Failure& failure) {
  if (size >= sizeof(uint64_t) && size <= kLargestStruct && size % sizeof(uint64_t) == 0) {
    return RKV_OK;
  }
  return fail(failure, RKV_INVALID_ARGUMENT, "%s.struct_size is %u: set it to sizeof (%zu)", name,
              size, ours);
}

// Copies what the caller has; fields that an older caller lacks are 0 = default. What a newer
// caller has more must be 0: this library cannot know what it asks for.
template <class T>
rkv_status read_struct(const T* in, const char* name, T& out, Failure& failure) {
  if (in == nullptr) return fail_null(failure, name, "this call needs it");
  const uint32_t size = in->struct_size;
  RKV_TRY(check_struct_size(size, name, sizeof(T), failure));
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (uint32_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(failure, RKV_UNSUPPORTED,
                  "%s has %u bytes, byte %u is not 0: this library (ABI %d) knows %zu bytes", name,
                  size, i, RKV_ABI_VERSION, sizeof(T));
    }
  }
  out = T{};
  std::memcpy(&out, in, std::min<size_t>(size, sizeof(T)));
  return RKV_OK;
}

template <class T>
rkv_status check_output(const T* out, const char* name, Failure& failure) {
  if (out == nullptr) return fail_null(failure, name, "the result goes there");
  return check_struct_size(out->struct_size, name, sizeof(T), failure);
}

// Fills the smaller of both sizes and zeroes what only the caller knows.
template <class T>
void write_struct(T value, T* out) {
  const uint32_t size = out->struct_size;
  value.struct_size = size;
  const size_t common = std::min<size_t>(size, sizeof(T));
  std::memcpy(out, &value, common);
  std::memset(reinterpret_cast<unsigned char*>(out) + common, 0, size - common);
}

}  // namespace rkv::capi
