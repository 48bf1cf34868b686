#include "core/failure.hpp"

#include <cstdarg>
#include <cstdio>

namespace rkv {

rkv_status fail(Failure& failure, rkv_status status, const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::vsnprintf(failure.text, sizeof failure.text, format, list);
  va_end(list);
  return status;
}

rkv_status fail_value(Failure& failure, rkv_status status, const char* argument, int64_t value,
                      const char* need, ...) {
  const int used = std::snprintf(failure.text, sizeof failure.text, "%s is %lld: ", argument,
                                 static_cast<long long>(value));
  if (used > 0 && used < static_cast<int>(sizeof failure.text)) {
    va_list list;
    va_start(list, need);
    std::vsnprintf(failure.text + used, sizeof failure.text - static_cast<size_t>(used), need,
                   list);
    va_end(list);
  }
  return status;
}

rkv_status fail_real(Failure& failure, rkv_status status, const char* argument, double value,
                     const char* need) {
  return fail(failure, status, "%s is %g: %s", argument, value, need);
}

rkv_status fail_null(Failure& failure, const char* argument, const char* need) {
  return fail(failure, RKV_INVALID_ARGUMENT, "%s is NULL: %s", argument, need);
}

}  // namespace rkv
