// How the core says what went wrong: a status, and a text made in the caller's frame, no allocation.
#pragma once

#include <cstdint>

#include "rkv/rkv.h"

namespace rkv {

struct Failure {
  int32_t native_code = 0;
  char text[sizeof(rkv_error::text)] = {};
};

// Every text of the library is made by these. The form is one: "<argument> is <value>: <what is right>".
[[gnu::format(printf, 3, 4)]] rkv_status fail(Failure& failure, rkv_status status,
                                              const char* format, ...);
[[gnu::format(printf, 5, 6)]] rkv_status fail_value(Failure& failure, rkv_status status,
                                                    const char* argument, int64_t value,
                                                    const char* need, ...);
rkv_status fail_real(Failure& failure, rkv_status status, const char* argument, double value,
                     const char* need);
rkv_status fail_null(Failure& failure, const char* argument, const char* need);

#define RKV_TRY(expression)                                           \
  do {                                                                \
    if (const rkv_status status_ = (expression); status_ != RKV_OK) { \
      return status_;                                                 \
    }                                                                 \
  } while (false)

}  // namespace rkv
