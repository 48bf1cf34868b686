// The one exception barrier: nothing leaves an entry point but a status and a filled rkv_error.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "capi/src/structs.hpp"
#include "core/cache.hpp"
#include "core/failure.hpp"
#include "rkv/rkv.h"

// The handle: a cache and who is inside it. -1: one call that changes it; n > 0: n const calls.
struct rkv_cache {
  mutable std::atomic<int32_t> users{0};
  std::unique_ptr<rkv::Cache> cache;
};

namespace rkv::capi {

// On success only status, native code and the first character of the text are written.
inline rkv_status report(rkv_error* err, rkv_status status, const Failure& failure) noexcept {
  if (err == nullptr) return status;
  const size_t size = err->struct_size;
  const auto holds = [size](size_t offset, size_t bytes) { return size >= offset + bytes; };
  if (holds(offsetof(rkv_error, status), sizeof err->status)) err->status = status;
  if (holds(offsetof(rkv_error, native_code), sizeof err->native_code)) {
    err->native_code = status == RKV_OK ? 0 : failure.native_code;
  }
  constexpr size_t kText = offsetof(rkv_error, text);
  if (!holds(kText, 1)) return status;
  if (status == RKV_OK) {
    err->text[0] = '\0';
    return status;
  }
  const size_t room = std::min(size - kText, sizeof err->text);
  const size_t length = std::min(std::strlen(failure.text), room - 1);
  std::memcpy(err->text, failure.text, length);
  std::memset(err->text + length, 0, room - length);
  if (size > sizeof(rkv_error) && size <= kLargestStruct) {  // what only a newer caller knows
    std::memset(reinterpret_cast<unsigned char*>(err) + sizeof(rkv_error), 0,
                size - sizeof(rkv_error));
  }
  return status;
}

template <class Body>
rkv_status guarded(rkv_error* err, Body&& body) noexcept {
  Failure failure;
  rkv_status status = RKV_INTERNAL;
  try {
    status = std::forward<Body>(body)(failure);
  } catch (const std::bad_alloc&) {
    status = fail(failure, RKV_OUT_OF_MEMORY, "the process is out of memory");
  } catch (const std::exception& error) {
    status = fail(failure, RKV_INTERNAL, "unexpected: %s", error.what());
  } catch (...) {
    status = fail(failure, RKV_INTERNAL, "unexpected exception");
  }
  return report(err, status, failure);
}

// A call that changes the cache: alone inside it.
template <class Body>
rkv_status exclusive(rkv_cache* handle, rkv_error* err, Body&& body) noexcept {
  return guarded(err, [&](Failure& failure) {
    if (handle == nullptr) return fail_null(failure, "cache", "it must come from rkv_cache_create");
    int32_t idle = 0;
    if (!handle->users.compare_exchange_strong(idle, -1, std::memory_order_acquire)) {
      return fail(failure, RKV_BAD_STATE, "cache is in use by another call: one call at a time");
    }
    struct Leave {
      rkv_cache* handle;
      ~Leave() { handle->users.store(0, std::memory_order_release); }
    } leave{handle};
    return std::forward<Body>(body)(*handle->cache, failure);
  });
}

// A const call: beside others of its kind.
template <class Body>
rkv_status shared(const rkv_cache* handle, rkv_error* err, Body&& body) noexcept {
  return guarded(err, [&](Failure& failure) {
    if (handle == nullptr) return fail_null(failure, "cache", "it must come from rkv_cache_create");
    int32_t users = handle->users.load(std::memory_order_relaxed);
    do {
      if (users < 0) {
        return fail(failure, RKV_BAD_STATE, "cache is in use by a call that changes it");
      }
    } while (!handle->users.compare_exchange_weak(users, users + 1, std::memory_order_acquire));
    struct Leave {
      const rkv_cache* handle;
      ~Leave() { handle->users.fetch_sub(1, std::memory_order_release); }
    } leave{handle};
    return std::forward<Body>(body)(std::as_const(*handle->cache), failure);
  });
}

}  // namespace rkv::capi
