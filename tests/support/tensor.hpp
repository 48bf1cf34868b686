// Strided tensors of [rows, heads, width] in the layouts of real engines, in guarded memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dtypes.hpp"
#include "memory.hpp"
#include "rkv/rkv.h"

namespace rkv_test {

enum class Layout {
  kTokenMajor,  // [S,H,D]
  kHeadMajor,   // [H,cap,D], cap > S
  kPaddedRows,  // [S, H*D + pad], rows with a gap
  kOddStrides,  // every stride odd, first element not aligned to more than itself
  kTransposed,  // [H,D,cap]: the stride of D is cap
  kEveryOther,  // the stride of D is 2
};

inline constexpr Layout kAllLayouts[] = {Layout::kTokenMajor, Layout::kHeadMajor,
                                         Layout::kPaddedRows, Layout::kOddStrides,
                                         Layout::kTransposed, Layout::kEveryOther};

inline const char* layout_name(Layout layout) {
  static const char* const names[] = {"token-major", "head-major", "padded",
                                      "odd",         "transposed", "every-other"};
  return names[static_cast<int>(layout)];
}

struct Strides {
  std::int64_t offset, row, head, element;
};

inline Strides layout_strides(Layout layout, std::int64_t rows, std::int64_t heads,
                              std::int64_t width) {
  const std::int64_t cap = rows + 3;
  switch (layout) {
    case Layout::kHeadMajor: return {0, width, cap * width, 1};
    case Layout::kPaddedRows: return {0, heads * width + 7, width, 1};
    case Layout::kOddStrides: return {1, heads * (width + 3) | 1, width + 3, 1};
    case Layout::kTransposed: return {2, 1, width * cap, cap};
    case Layout::kEveryOther: return {1, 2 * heads * width + 1, 2 * width, 2};
    case Layout::kTokenMajor: break;
  }
  return {0, heads * width, width, 1};
}

class HostTensor {
 public:
  HostTensor(std::int32_t dtype, std::int64_t rows, std::int64_t heads, std::int64_t width,
             Layout layout = Layout::kTokenMajor)
      : HostTensor(dtype, rows, heads, width, layout_strides(layout, rows, heads, width)) {}

  HostTensor(std::int32_t dtype, std::int64_t rows, std::int64_t heads, std::int64_t width,
             Strides s, std::shared_ptr<GuardedMemory> memory = nullptr)
      : dtype_(dtype), rows_(rows), heads_(heads), width_(width), strides_(s), memory_(memory) {
    if (memory_ == nullptr) {
      const bool empty = rows * heads * width == 0;
      const std::int64_t last = empty ? 0 : index(rows - 1, heads - 1, width - 1) + 1;
      memory_ = std::make_shared<GuardedMemory>(last * dtype_size(dtype), dtype_size(dtype));
    }
    std::memset(&tensor_, 0, sizeof tensor_);
    tensor_.struct_size = sizeof tensor_;
    tensor_.dtype = dtype;
    tensor_.data = memory_->data() + s.offset * dtype_size(dtype);
    tensor_.ndim = 3;
    const std::int64_t shape[3] = {rows, heads, width};
    const std::int64_t strides[3] = {s.row, s.head, s.element};
    std::memcpy(tensor_.shape, shape, sizeof shape);
    std::memcpy(tensor_.strides, strides, sizeof strides);
  }

  // values: [rows][heads][width], dense.
  void fill(const std::vector<double>& values) { fill(values.data()); }
  void fill(const double* values) {
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t d = 0; d < width_; ++d) {
          store_element(dtype_, at(i, h, d), static_cast<float>(*values++));
        }
      }
    }
    remember();
  }

  // The memory as it is now; `unchanged` compares with it.
  void remember() { before_.assign(memory_->data(), memory_->data() + memory_->size()); }
  bool unchanged() const {
    return memory_->intact() &&
           (before_.empty() || std::memcmp(before_.data(), memory_->data(), before_.size()) == 0);
  }

  // An output: nothing but the tensor's own elements may differ from the poison.
  bool gaps_untouched() const {
    if (!memory_->intact()) return false;
    std::vector<bool> own(static_cast<std::size_t>(memory_->size()), false);
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t d = 0; d < width_; ++d) {
          const std::int64_t byte = index(i, h, d) * dtype_size(dtype_);
          for (std::int64_t b = 0; b < dtype_size(dtype_); ++b) own[byte + b] = true;
        }
      }
    }
    for (std::size_t b = 0; b < own.size(); ++b) {
      if (!own[b] && memory_->data()[b] != 0xFF) return false;
    }
    return true;
  }

  float value(std::int64_t i, std::int64_t h, std::int64_t d) const {
    return load_element(dtype_, const_cast<HostTensor*>(this)->at(i, h, d));
  }

  // Bits of every element, dense, whatever the strides.
  std::vector<std::uint8_t> bits() const {
    std::vector<std::uint8_t> out;
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t d = 0; d < width_; ++d) {
          const std::uint8_t* p = memory_->data() + index(i, h, d) * dtype_size(dtype_);
          out.insert(out.end(), p, p + dtype_size(dtype_));
        }
      }
    }
    return out;
  }

  const rkv_tensor* get() const { return &tensor_; }
  rkv_tensor* raw() { return &tensor_; }
  std::int32_t dtype() const { return dtype_; }
  std::int64_t width() const { return width_; }
  std::int64_t heads() const { return heads_; }
  std::int64_t rows() const { return rows_; }

 private:
  std::int64_t index(std::int64_t i, std::int64_t h, std::int64_t d) const {
    return strides_.offset + i * strides_.row + h * strides_.head + d * strides_.element;
  }
  std::uint8_t* at(std::int64_t i, std::int64_t h, std::int64_t d) {
    return memory_->data() + index(i, h, d) * dtype_size(dtype_);
  }

  std::int32_t dtype_;
  std::int64_t rows_, heads_, width_;
  Strides strides_;
  std::shared_ptr<GuardedMemory> memory_;
  rkv_tensor tensor_;
  std::vector<std::uint8_t> before_;
};

// K and V of [rows, heads] side by side in one row of D + Dv elements per head.
struct KeyValue {
  HostTensor k;
  HostTensor v;

  void fill(const std::vector<double>& keys, const std::vector<double>& values) {
    k.fill(keys);
    v.fill(values);
    k.remember();  // both may lie in the same memory
  }
};

inline KeyValue interleaved(std::int32_t dtype, std::int64_t rows, std::int64_t heads,
                            std::int64_t dim, std::int64_t dim_v) {
  const std::int64_t row = heads * (dim + dim_v);
  auto memory = std::make_shared<GuardedMemory>(rows * row * dtype_size(dtype), dtype_size(dtype));
  return {HostTensor(dtype, rows, heads, dim, Strides{0, row, dim + dim_v, 1}, memory),
          HostTensor(dtype, rows, heads, dim_v, Strides{dim, row, dim + dim_v, 1}, memory)};
}

}  // namespace rkv_test
