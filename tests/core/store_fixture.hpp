// One layer of one sequence as the core would hold it, beside the same rows in double precision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/cpu/summaries.hpp"
#include "core/cpu/target.hpp"
#include "reference/rows.hpp"
#include "support/dtypes.hpp"
#include "support/memory.hpp"
#include "support/random.hpp"

namespace rkv_test {

inline rkv::Shape make_shape(int32_t kv_heads, int32_t group, int32_t dim, int32_t dim_v,
                             rkv::DType kv, rkv::DType query) {
  rkv::Shape shape;
  shape.kv_heads = kv_heads;
  shape.group = group;
  shape.q_heads = kv_heads * group;
  shape.head_dim = dim;
  shape.head_dim_v = dim_v;
  shape.kv = kv;
  shape.query = query;
  return shape;
}

// A strided tensor [rows, heads, channels]; `channel` > 1 leaves gaps between channels.
class Strided {
 public:
  Strided(rkv::DType type, int64_t rows, int64_t heads, int64_t channels, int64_t channel = 1)
      : type_(type), rows_(rows), heads_(heads), channels_(channels) {
    view_.dtype = type;
    view_.channel = channel;
    view_.head = channels * channel + (channel > 1 ? 3 : 0);
    view_.row = heads * view_.head;
    memory_.resize(static_cast<size_t>(rows * view_.row * rkv::dtype_bytes(type)) + 8);
    view_.data = memory_.data();
  }
  void set(int64_t row, int64_t head, int64_t channel, double x) {
    store_element(static_cast<int32_t>(type_), place(row, head, channel), static_cast<float>(x));
  }
  double get(int64_t row, int64_t head, int64_t channel) {
    return load_element(static_cast<int32_t>(type_), place(row, head, channel));
  }
  void randomise(Random& random, double sigma = 1) {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t h = 0; h < heads_; ++h) {
        for (int64_t c = 0; c < channels_; ++c) set(r, h, c, sigma * random.normal());
      }
    }
  }
  // One row's heads [first, first + count) as doubles.
  rkv_ref::Rows rows_of(int64_t row, int64_t first, int64_t count) {
    rkv_ref::Rows rows(count, channels_);
    for (int64_t h = 0; h < count; ++h) {
      for (int64_t c = 0; c < channels_; ++c) rows.row(h)[c] = get(row, first + h, c);
    }
    return rows;
  }
  const rkv::View& view() const { return view_; }
  const std::vector<std::byte>& bytes() const { return memory_; }

 private:
  std::byte* place(int64_t row, int64_t head, int64_t channel) {
    return view_.at(row, head) + channel * view_.channel * rkv::dtype_bytes(type_);
  }
  rkv::DType type_;
  int64_t rows_, heads_, channels_;
  rkv::View view_;
  std::vector<std::byte> memory_;
};

class TestStore {
 public:
  TestStore(const rkv::Shape& shape, int64_t rows, int64_t page_size)
      : shape_(shape),
        page_size_(page_size),
        blocks_((rows / page_size + rkv::kPageBlock) / rkv::kPageBlock),
        kv_(shape.kv_heads * rows * (shape.head_dim + shape.head_dim_v) *
                rkv::dtype_bytes(shape.kv),
            64),
        pages_(shape.kv_heads * blocks_ * 2 * shape.head_dim * rkv::kPageBlock *
                   rkv::dtype_bytes(shape.kv),
               64),
        tail_(shape.kv_heads * rkv::kTailPages * 2 * shape.head_dim * rkv::dtype_bytes(shape.kv),
              64) {
    store_.kv = reinterpret_cast<std::byte*>(kv_.data());
    store_.pages = reinterpret_cast<std::byte*>(pages_.data());
    store_.tail = reinterpret_cast<std::byte*>(tail_.data());
    store_.rows = rows;
    store_.blocks = blocks_;
  }

  void set(int64_t head, int64_t row, int64_t channel, double x) {
    const int64_t width = shape_.head_dim + shape_.head_dim_v;
    store_element(type(), store_.kv + ((head * store_.rows + row) * width + channel) * size(),
                  static_cast<float>(x));
  }
  double get(int64_t head, int64_t row, int64_t channel) const {
    const int64_t width = shape_.head_dim + shape_.head_dim_v;
    return load_element(type(),
                        store_.kv + ((head * store_.rows + row) * width + channel) * size());
  }
  void randomise(Random& random, int64_t rows, double sigma = 1) {
    for (int64_t h = 0; h < shape_.kv_heads; ++h) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < shape_.head_dim + shape_.head_dim_v; ++c) {
          set(h, r, c, sigma * random.normal());
        }
      }
    }
  }
  // Summaries of `rows` stored rows, as stage 1 leaves them.
  void summarise(int64_t rows, size_t target) {
    for (int32_t h = 0; h < shape_.kv_heads; ++h) {
      rkv::cpu::build_pages(shape_, store_, h, page_size_, 0, rows / page_size_,
                            rkv::flushed_pages(rows, page_size_), target);
    }
  }
  rkv_ref::Rows keys(int64_t head, int64_t rows) const {
    return part(head, rows, 0, shape_.head_dim);
  }
  rkv_ref::Rows values(int64_t head, int64_t rows) const {
    return part(head, rows, shape_.head_dim, shape_.head_dim_v);
  }
  // Minimum (side 0) or maximum of a complete page as stored for `live` rows.
  double summary(int64_t head, int64_t page, int64_t side, int64_t channel, int64_t live) const {
    const int64_t dim = shape_.head_dim;
    const std::byte* p = nullptr;
    if (page < rkv::flushed_pages(live, page_size_)) {
      p = store_.pages + ((((head * blocks_ + page / rkv::kPageBlock) * 2 + side) * dim + channel) *
                              rkv::kPageBlock +
                          page % rkv::kPageBlock) *
                             size();
    } else {
      p = store_.tail +
          (((head * rkv::kTailPages + page % rkv::kTailPages) * 2 + side) * dim + channel) * size();
    }
    return load_element(type(), p);
  }
  bool intact() const { return kv_.intact() && pages_.intact() && tail_.intact(); }
  const rkv::LayerStore& get() const { return store_; }
  int64_t page_size() const { return page_size_; }

 private:
  int32_t type() const { return static_cast<int32_t>(shape_.kv); }
  int64_t size() const { return rkv::dtype_bytes(shape_.kv); }
  rkv_ref::Rows part(int64_t head, int64_t rows, int64_t first, int64_t width) const {
    rkv_ref::Rows out(rows, width);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) out.row(r)[c] = get(head, r, first + c);
    }
    return out;
  }
  rkv::Shape shape_;
  int64_t page_size_, blocks_;
  GuardedMemory kv_, pages_, tail_;
  rkv::LayerStore store_;
};

// Names of the SIMD targets that this machine can run, and their table indices.
inline std::vector<rkv::cpu::Target> all_targets() {
  const char* before = std::getenv("RKV_SIMD");
  const std::string saved = before != nullptr ? before : "";
  std::vector<rkv::cpu::Target> targets;
  for (const char* name : {"avx3", "avx2", "sse2", "neon", "portable"}) {
    setenv("RKV_SIMD", name, 1);
    const rkv::cpu::Target target = rkv::cpu::resolve_target();
    if (target.error == nullptr) targets.push_back(target);
  }
  if (before != nullptr) {
    setenv("RKV_SIMD", saved.c_str(), 1);
  } else {
    unsetenv("RKV_SIMD");
  }
  return targets;
}

inline constexpr rkv::DType kTypes[] = {rkv::DType::kF32, rkv::DType::kF16, rkv::DType::kBF16};

}  // namespace rkv_test
