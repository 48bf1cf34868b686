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

OpenBlas::OpenBlas(const std::string& library, int threads) {
  const bool wide = !library.empty();
  const std::string prefix = wide ? "scipy_" : "", suffix = wide ? "64_" : "";
  void* handle = dlopen(wide ? library.c_str() : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return;
  const std::string sgemm = prefix + "cblas_sgemm" + suffix;
  if (wide) {
    wide_ = symbol<Sgemm<int64_t>>(handle, sgemm.c_str());
  } else {
    narrow_ = symbol<Sgemm<int32_t>>(handle, sgemm.c_str());
  }
  const auto text = [&](const char* name) {
    const auto get = symbol<char* (*)()>(handle, (prefix + name + suffix).c_str());
    return std::string(get != nullptr ? get() : "?");
  };
  const auto set_threads =
      symbol<void (*)(int)>(handle, (prefix + "openblas_set_num_threads" + suffix).c_str());
  if (set_threads != nullptr) set_threads(threads);
  kernel_ = "kernel " + text("openblas_get_corename") + " (" + text("openblas_get_config") + ")";
}

void OpenBlas::multiply(int m, int n, int k, const float* a, int lda, const float* b, int ldb,
                        float* c, int ldc) const {
  if (wide_ != nullptr) {
    wide_(kRowMajor, kNoTrans, kTrans, m, n, k, 1.0F, a, lda, b, ldb, 0.0F, c, ldc);
  } else {
    narrow_(kRowMajor, kNoTrans, kTrans, m, n, k, 1.0F, a, lda, b, ldb, 0.0F, c, ldc);
  }
}

}  // namespace rkv_bench
