// OpenBLAS, loaded at run time: the benchmark builds and runs without it.
#pragma once

#include <cstdint>
#include <string>

namespace rkv_bench {

class OpenBlas {
 public:
  // library: the one that numpy brings, with 64-bit integers; empty: the system's, which may be too old
  // to know the processor. kernel() says what came of it.
  OpenBlas(const std::string& library, int threads);

  bool loaded() const { return wide_ != nullptr || narrow_ != nullptr; }
  const std::string& kernel() const { return kernel_; }

  // c [m][n] = a [m][k] b^T, b [n][k]; row-major, leading dimensions in elements.
  void multiply(int m, int n, int k, const float* a, int lda, const float* b, int ldb, float* c,
                int ldc) const;

 private:
  template <class Int>
  using Sgemm = void (*)(int, int, int, Int, Int, Int, float, const float*, Int, const float*, Int,
                         float, float*, Int);
  Sgemm<int64_t> wide_ = nullptr;
  Sgemm<int32_t> narrow_ = nullptr;
  std::string kernel_ = "not found";
};

}  // namespace rkv_bench
