// Memory that tells when somebody wrote, or read, beyond it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace rkv_test {

// `bytes` of memory filled with 0xFF (a NaN in every float type). Its end touches a page that may
// not be accessed, so one byte read too far is a fault; the bytes before it carry a canary, and so
// do those behind it where `alignment` leaves a gap.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t bytes, std::int64_t alignment = 1)
      : bytes_(static_cast<std::size_t>(bytes)) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t align = static_cast<std::size_t>(alignment);
    const std::size_t room = (bytes_ + align - 1) / align * align;
    open_ = (room + kFront + align + page - 1) / page * page;
    mapped_ = open_ + page;
    void* p = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("mmap failed");
    base_ = static_cast<std::uint8_t*>(p);
    if (mprotect(base_ + open_, page, PROT_NONE) != 0) throw std::runtime_error("mprotect failed");
    std::uint8_t* first = base_ + open_ - room;
    first -= reinterpret_cast<std::uintptr_t>(first) % align;
    data_ = first;
    std::memset(base_, kCanary, open_);
    std::memset(data_, 0xFF, bytes_);
  }
  ~GuardedMemory() { munmap(base_, mapped_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_); }

  // True while no byte around the memory has changed.
  bool intact() const {
    for (const std::uint8_t* p = base_; p < data_; ++p) {
      if (*p != kCanary) return false;
    }
    for (const std::uint8_t* p = data_ + bytes_; p < base_ + open_; ++p) {
      if (*p != kCanary) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kFront = 256;
  static constexpr std::uint8_t kCanary = 0xA5;
  std::size_t bytes_, open_ = 0, mapped_ = 0;
  std::uint8_t* base_ = nullptr;
  std::uint8_t* data_ = nullptr;
};

}  // namespace rkv_test
