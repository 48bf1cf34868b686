// Large buffers in 2 MB pages where the system gives them, so that both sides of every ratio meet the
// same translations.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace rkv_bench {

class HugeBuffer {
 public:
  HugeBuffer() = default;
  explicit HugeBuffer(int64_t bytes) : bytes_(bytes) {
    constexpr int64_t kPage = int64_t{2} << 20;
    mapped_ = (bytes + 2 * kPage - 1) / kPage * kPage + kPage;
    void* memory = mmap(nullptr, static_cast<size_t>(mapped_), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    const auto address = reinterpret_cast<uintptr_t>(memory);
    data_ = base_ + (kPage - static_cast<int64_t>(address % kPage)) % kPage;
    (void)madvise(data_, static_cast<size_t>(mapped_ - (data_ - base_)), MADV_HUGEPAGE);
  }
  ~HugeBuffer() {
    if (base_ != nullptr) munmap(base_, static_cast<size_t>(mapped_));
  }
  HugeBuffer(HugeBuffer&& other) noexcept { swap(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    HugeBuffer old(std::move(*this));
    swap(other);
    return *this;
  }
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;

  // Backs every page: untouched ones all read the same zero page.
  void touch() { std::memset(data_, 1, static_cast<size_t>(bytes_)); }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void swap(HugeBuffer& other) {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
  }
  std::byte *base_ = nullptr, *data_ = nullptr;
  int64_t bytes_ = 0, mapped_ = 0;
};

}  // namespace rkv_bench
