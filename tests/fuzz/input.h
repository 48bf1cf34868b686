/* Bytes of a fuzzer turned into choices. When they are used up every choice is 0. */
#ifndef RKV_TESTS_FUZZ_INPUT_H
#define RKV_TESTS_FUZZ_INPUT_H

#include "../capi/check.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

typedef struct input {
  const uint8_t* data;
  size_t left;
} input;

static inline uint64_t take_bytes(input* in, int n) {
  uint64_t value = 0;
  for (; n > 0 && in->left > 0; --n, --in->left) value = value << 8 | *in->data++;
  return value;
}

/* The end of an entry: a failed check ends the process, as fuzzers expect it. */
static inline int end_of_input(void) {
  if (atomic_load(&check_run.failed)) abort();
  return 0;
}

/* In [low, high]. */
static inline int64_t take(input* in, int64_t low, int64_t high) {
  const uint64_t span = (uint64_t)(high - low) + 1;
  return low + (int64_t)(take_bytes(in, span > 256 ? 2 : 1) % span);
}

/* Mostly small numbers, now and then the edges of the type. */
static inline int64_t take_wild(input* in) {
  static const int64_t edges[] = {-1,        0,         1,         2147483647, 2147483648,
                                  INT64_MAX, INT64_MIN, INT32_MIN, 4294967296, 1099511627776};
  const int64_t kind = take(in, 0, 15);
  if (kind < 10) return take(in, 0, 300);
  if (kind < 14) return edges[take(in, 0, 9)];
  return (int64_t)take_bytes(in, 8);
}

#endif
