#include "openblas.hpp"

#include <dlfcn.h>

namespace rkv_bench {
namespace {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

OpenBlas::OpenBlas(int threads) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  sgemm_ = symbol<Sgemm>(library, "cblas_sgemm");
  const auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
  const auto corename = symbol<char* (*)()>(library, "openblas_get_corename");
  const auto config = symbol<char* (*)()>(library, "openblas_get_config");
  if (set_threads != nullptr) set_threads(threads);
  if (config != nullptr) kernel_ = config();
  if (corename != nullptr) kernel_ += std::string(", kernel ") + corename();
}

void OpenBlas::multiply(int m, int n, int k, const float* a, int lda, const float* b, int ldb,
                        float* c, int ldc) const {
  sgemm_(kRowMajor, kNoTrans, kTrans, m, n, k, 1.0F, a, lda, b, ldb, 0.0F, c, ldc);
}

}  // namespace rkv_bench
