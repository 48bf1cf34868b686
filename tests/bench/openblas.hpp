// OpenBLAS, loaded at run time: the benchmark builds and runs without it.
#pragma once

#include <cstdint>
#include <string>

namespace rkv_bench {

class OpenBlas {
 public:
  explicit OpenBlas(int threads);

  bool loaded() const { return sgemm_ != nullptr; }
  const std::string& kernel() const { return kernel_; }

  // c [m][n] = a [m][k] b^T, b [n][k]; row-major, leading dimensions in elements.
  void multiply(int m, int n, int k, const float* a, int lda, const float* b, int ldb, float* c,
                int ldc) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  Sgemm sgemm_ = nullptr;
  std::string kernel_;
};

}  // namespace rkv_bench
