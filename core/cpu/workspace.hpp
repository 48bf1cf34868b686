// Carves a workspace into arrays. The same carving without memory measures it, so the size that is
// asked for and the layout that is used cannot differ.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace rkv::cpu {

class Arena {
 public:
  // base null: measures only, and every array is null.
  explicit Arena(std::byte* base) : base_(base) {}

  // `count` elements, 64-byte aligned, with room for one vector more behind them, so that whole
  // vectors may be loaded and stored at the end.
  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(count, sizeof(T)));
  }
  std::byte* take_bytes(int64_t count, int64_t size);

  int64_t used() const { return overflow_ ? -1 : used_; }  // bytes; -1: beyond int64

 private:
  std::byte* base_;
  int64_t used_ = 0;
  bool overflow_ = false;
};

// a * b, or a count that no arena accepts where that is beyond int64. a, b >= 0.
int64_t checked_product(int64_t a, int64_t b);

// Floats from one head's query to the next in scratch memory.
inline int64_t query_stride(const Shape& shape) { return (shape.head_dim + int64_t{15}) / 16 * 16; }

}  // namespace rkv::cpu
