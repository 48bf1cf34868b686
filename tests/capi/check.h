/* Checks for C test programs. main() is check_begin, one CASE per test function, check_end.
 *
 * A failed check prints where and what, and the case goes on. The last line is "N passed, N failed"
 * (cases). Where GTEST_OUTPUT names a folder, the cases also go there as JUnit, so that
 * tests/run.sh counts them one by one. */
#ifndef RKV_TESTS_CHECK_H
#define RKV_TESTS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* before the first system header: mmap, dlsym, sched_yield */
#endif

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rkv/rkv.h>

enum { CHECK_CASES = 128 };

static struct {
  char program[64];
  const char* names[CHECK_CASES];
  int failures[CHECK_CASES]; /* checks that failed, per case */
  int cases;
  atomic_int failed; /* checks that failed in the running case; threads may check too */
} check_run;

static inline void check_begin(const char* path) {
  const char* slash = strrchr(path, '/');
  snprintf(check_run.program, sizeof check_run.program, "%s", slash ? slash + 1 : path);
  setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline void check_case(const char* name, void (*run)(void)) {
  atomic_store(&check_run.failed, 0);
  run();
  const int failed = atomic_load(&check_run.failed);
  printf("%s %s\n", failed ? "FAILED" : "ok    ", name);
  if (check_run.cases == CHECK_CASES) abort();
  check_run.names[check_run.cases] = name;
  check_run.failures[check_run.cases++] = failed;
}

static inline void check_write_junit(void) {
  const char* output = getenv("GTEST_OUTPUT");
  char path[4096];
  if (output == NULL || strncmp(output, "xml:", 4) != 0 || output[strlen(output) - 1] != '/')
    return;
  snprintf(path, sizeof path, "%s%s.xml", output + 4, check_run.program);
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "<testsuite name=\"%s\">\n", check_run.program);
  for (int i = 0; i < check_run.cases; ++i) {
    fprintf(file, "<testcase name=\"%s\">%s</testcase>\n", check_run.names[i],
            check_run.failures[i] ? "<failure/>" : "");
  }
  fprintf(file, "</testsuite>\n");
  fclose(file);
}

static inline int check_end(void) {
  int failed = 0;
  for (int i = 0; i < check_run.cases; ++i) failed += check_run.failures[i] != 0;
  check_write_junit();
  printf("%d passed, %d failed\n", check_run.cases - failed, failed);
  return failed != 0 || check_run.cases == 0;
}

static inline int check_that(int good, const char* what, const char* file, int line) {
  if (!good) {
    printf("%s:%d: %s\n", file, line, what);
    atomic_fetch_add(&check_run.failed, 1);
  }
  return good;
}

static inline int check_int(int64_t want, int64_t have, const char* what, const char* file,
                            int line) {
  if (want != have) {
    printf("%s:%d: %s is %" PRId64 ", not %" PRId64 "\n", file, line, what, have, want);
    atomic_fetch_add(&check_run.failed, 1);
  }
  return want == have;
}

static inline int check_status(rkv_status want, rkv_status have, const rkv_error* err,
                               const char* what, const char* file, int line) {
  if (want != have) {
    printf("%s:%d: %s gave %s, not %s: %s\n", file, line, what, rkv_status_name(have),
           rkv_status_name(want), err ? err->text : "");
    atomic_fetch_add(&check_run.failed, 1);
  }
  return want == have;
}

static inline int check_text(const char* text, const char* part, const char* file, int line) {
  if (strstr(text, part) == NULL) {
    printf("%s:%d: the text does not say \"%s\": %s\n", file, line, part, text);
    atomic_fetch_add(&check_run.failed, 1);
    return 0;
  }
  return 1;
}

#define CASE(function) check_case(#function, function)
#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_INT(want, have) check_int((int64_t)(want), (int64_t)(have), #have, __FILE__, __LINE__)
/* The call may use `err`; its text is shown where the status differs. */
#define CHECK_STATUS(want, call, err) check_status((want), (call), (err), #call, __FILE__, __LINE__)
#define CHECK_TEXT(text, part) check_text((text), (part), __FILE__, __LINE__)
/* For what later lines cannot do without. */
#define REQUIRE(condition)                                                                    \
  do {                                                                                        \
    if (!check_that((condition) != 0, #condition, __FILE__, __LINE__)) exit(check_end() | 1); \
  } while (0)

/* A struct that is zero but for struct_size. */
#define ZERO(type) ((type){.struct_size = (uint32_t)sizeof(type)})

/* Sanitizers bring an allocator, threads and limits of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZER 1
#else
#define CHECK_SANITIZER 0
#endif

#endif
