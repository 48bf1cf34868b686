/* Rule 3: nothing is ever printed: not in 10,000 decode steps, not on error paths (B13). */
#include "twin.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

static FILE* caught;
static int saved_out, saved_err;

/* From here to speak() standard output and error go to a file. */
static void hush(void) {
  fflush(stdout);
  fflush(stderr);
  caught = tmpfile();
  REQUIRE(caught != NULL);
  saved_out = dup(1);
  saved_err = dup(2);
  REQUIRE(dup2(fileno(caught), 1) == 1 && dup2(fileno(caught), 2) == 2);
}

/* Bytes that were written meanwhile. */
static int64_t speak(void) {
  fflush(stdout);
  fflush(stderr);
  const int64_t bytes = lseek(fileno(caught), 0, SEEK_END);
  dup2(saved_out, 1);
  dup2(saved_err, 2);
  close(saved_out);
  close(saved_err);
  fclose(caught);
  return bytes;
}

static void test_catches(void) {
  hush();
  REQUIRE(write(1, "out", 3) == 3 && write(2, "error", 5) == 5);
  CHECK_INT(8, speak());
}

static void test_ten_thousand_steps(void) {
  rkv_cache_config config = small_config();
  config.num_threads = 2;
  rig r;
  int64_t failed = 0;
  hush();
  rig_init(&r, &config);
  rig_start(&r, 0, 150);
  for (int i = 0; i < 10000; ++i) failed += rig_decode(&r, 0, i % 2, 150 + i / 2 % 24) != RKV_OK;
  rig_free(&r);
  CHECK_INT(0, speak());
  CHECK_INT(0, failed);
}

/* NaN and infinity everywhere, and a step of every status that can be provoked. */
static void test_errors(void) {
  const rkv_cache_config config = small_config();
  rig r;
  int64_t wrong = 0;
  hush();
  rig_init(&r, &config);
  rkv_error* e = &r.err;
  rkv_cache_config bad = config;
  rkv_memory memory = ZERO(rkv_memory);
  rkv_cache* cache = NULL;
  bad.layers = -1;
  wrong += rkv_cache_memory(&bad, &memory, e) != RKV_INVALID_ARGUMENT;
  bad = config;
  bad.storage = RKV_STORAGE_INDEXED;
  wrong += rkv_cache_create(&bad, NULL, &cache, e) != RKV_UNSUPPORTED;
  bad = config;
  bad.max_prompt_tokens = INT64_MAX;
  wrong += rkv_cache_create(&bad, NULL, &cache, NULL) != RKV_INVALID_ARGUMENT;
  if (!CHECK_SANITIZER) { /* whose allocator says so on such a size */
    bad = config;
    bad.max_prompt_tokens = 1 << 30;
    bad.prompt_budget = INT64_MAX;
    bad.kv_heads = bad.q_heads = 4096;
    wrong += rkv_cache_create(&bad, NULL, &cache, e) != RKV_OUT_OF_MEMORY;
  }
  wrong += rig_decode(&r, 0, 0, 0) != RKV_BAD_STATE;
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, e), e);
  const rkv_prefill_args* args = rig_chunk(&r, 0, 0, 0, 150, 150);
  for (int i = 0; i < 150 * 32; ++i) {
    if (i % 3 == 0) r.k[i] = i % 2 ? NAN : INFINITY;
    if (i % 5 == 0) r.v[i] = -INFINITY;
  }
  wrong += rkv_prefill(r.cache, args, NULL, e) != RKV_OK;
  for (int64_t p = 150; p < 174; ++p) wrong += rig_decode(&r, 0, 0, p) != RKV_OK;
  wrong += rig_decode(&r, 0, 0, 174) != RKV_OUT_OF_CAPACITY;
  wrong += rig_decode(&r, 0, 0, 1) != RKV_INVALID_ARGUMENT;
  wrong += rkv_sequence_fork(r.cache, 0, 1, NULL, e) != RKV_UNSUPPORTED;
  const rkv_sequence_stats s = rig_stats(&r, 0, 0);
  rig_free(&r);
  CHECK_INT(0, speak());
  CHECK_INT(0, wrong);
  CHECK_INT(1, s.nonfinite);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_catches);
  CASE(test_ten_thousand_steps);
  CASE(test_errors);
  return check_end();
}
