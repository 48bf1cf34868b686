/* The lines that start with "=": what the action before them must have given. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static void check_list(const line *at, const int64_t *got64, const int32_t *got32, int64_t count) {
  int64_t *want = allocate((size_t)count * sizeof *want);
  const char *list = word(at, at->count - 1);
  const int64_t wanted = read_list(at, list, want, count);
  if (wanted != count) {
    fail(at, "%lld entries, expected %lld", (long long)count, (long long)wanted);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t got = got64 != NULL ? got64[i] : got32[i];
    if (got != want[i]) {
      fail(at, "entry %lld is %lld, expected %lld", (long long)i, (long long)got,
           (long long)want[i]);
    }
  }
  free(want);
}

static int64_t within(const line *at, int index, int64_t end) {
  const int64_t value = integer(at, index);
  if (value < 0 || value >= end) fail(at, "%s is out of range", word(at, index));
  return value;
}

void check_expectation(const line *at) {
  const char *what = word(at, 1);
  if (strcmp(what, "fields") == 0 && run.last == FIELDS) {
    const double tolerance = read_real(at, word(at, 2));
    for (int i = 3; i < at->count; ++i) {
      check_field(at, run.kind, &run.fields, at->words[i], tolerance);
    }
  } else if (strcmp(what, "kept") == 0 && run.last == KEPT) {
    const int64_t head = within(at, 2, run.config.kv_heads);
    check_list(at, run.positions + head * run.position_count, NULL, run.position_count);
  } else if (strcmp(what, "selection") == 0 && run.last == SELECTION) {
    const int64_t row = within(at, 2, run.rows), head = within(at, 3, run.config.kv_heads);
    const int64_t list = row * run.config.kv_heads + head;
    check_list(at, NULL, run.selection.indices + list * run.capacity, run.selection.counts[list]);
  } else if (strcmp(what, "out") == 0 && run.also == OUTPUT) {
    const int64_t row = within(at, 2, run.rows), head = within(at, 3, run.config.q_heads);
    const double tolerance = read_real(at, word(at, 4));
    if (at->count - 5 != run.out.shape[2]) fail(at, "%d values", at->count - 5);
    for (int i = 5; i < at->count; ++i) {
      const double got = element(&run.out, row, head, i - 5);
      if (!near_enough(got, read_real(at, at->words[i]), tolerance)) {
        fail(at, "channel %d is %.9g, expected %s", i - 5, got, at->words[i]);
      }
    }
  } else if (strcmp(what, "lse") == 0 && run.also == OUTPUT) {
    const int64_t row = within(at, 2, run.rows);
    const double tolerance = read_real(at, word(at, 3));
    if (at->count - 4 != run.config.q_heads) fail(at, "%d values", at->count - 4);
    for (int i = 4; i < at->count; ++i) {
      const double got = run.lse[row * run.config.q_heads + i - 4];
      if (!near_enough(got, read_real(at, at->words[i]), tolerance)) {
        fail(at, "lse of head %d is %.9g, expected %s", i - 4, got, at->words[i]);
      }
    }
  } else {
    fail(at, "= %s does not belong to the action before", what);
  }
}
