/* What a call from C costs: prints one line, nanoseconds (medians).
 *   cc -O2 calls.c $(pkg-config --cflags --libs rkv) && ./a.out
 *
 * trivial: rkv_device_count. decode: one rkv_decode of one row of a tiny layer, so that little but
 * the call itself is measured; always at the prompt's end, so that each call does the same.
 * token: 32 layers of it. The bindings measure the same. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <rkv/rkv.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAYERS = 32, PROMPT = 8, D = 8, ROUNDS = 25 };

static rkv_error err = {.struct_size = sizeof err};
static rkv_cache* cache;
static rkv_decode_args step = {.struct_size = sizeof step};

static void check(rkv_status status) {
  if (status == RKV_OK) return;
  fprintf(stderr, "calls: %s: %s\n", rkv_status_name(status), err.text);
  exit(1);
}

static void trivial(void) {
  int32_t count = 0;
  check(rkv_device_count(RKV_DEVICE_CPU, &count, &err));
}

static void decode(void) {
  step.layer = 0;
  check(rkv_decode(cache, &step, NULL, &err));
}

static void token(void) {
  for (step.layer = 0; step.layer < LAYERS; ++step.layer) {
    check(rkv_decode(cache, &step, NULL, &err));
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Nanoseconds of one call, median over the rounds. */
static double nanoseconds(void (*call)(void), int repeats) {
  double found[ROUNDS];
  for (int round = 0; round < ROUNDS; ++round) {
    const double begin = now();
    for (int i = 0; i < repeats; ++i) call();
    found[round] = (now() - begin) / repeats;
  }
  qsort(found, ROUNDS, sizeof *found, by_size);
  return found[ROUNDS / 2];
}

int main(void) {
  rkv_cache_config config = {.struct_size = sizeof config, .layers = LAYERS};
  config.q_heads = config.kv_heads = 1, config.head_dim = D, config.kv_dtype = RKV_DTYPE_F32;
  config.num_threads = 1, config.max_prompt_tokens = PROMPT, config.max_new_tokens = 8;
  config.token_budget = 64;
  check(rkv_cache_create(&config, NULL, &cache, &err));
  check(rkv_sequence_open(cache, 0, NULL, &err));

  static float rows[PROMPT * D], out_row[D];
  for (int i = 0; i < PROMPT * D; ++i) rows[i] = (float)(i % 13 - 6) / 8;
  rkv_tensor prompt = {.struct_size = sizeof prompt, .dtype = RKV_DTYPE_F32, .data = rows};
  prompt.ndim = 3, prompt.shape[0] = PROMPT, prompt.shape[1] = 1, prompt.shape[2] = D;
  prompt.strides[0] = prompt.strides[1] = D, prompt.strides[2] = 1;
  rkv_prefill_args prefill = {.struct_size = sizeof prefill, .prompt_tokens = PROMPT};
  prefill.q = prefill.k = prefill.v = &prompt;
  for (prefill.layer = 0; prefill.layer < LAYERS; ++prefill.layer) {
    check(rkv_prefill(cache, &prefill, NULL, &err));
  }
  rkv_tensor one = prompt, out = prompt;
  one.shape[0] = out.shape[0] = 1, out.data = out_row;
  const int32_t seq = 0;
  const int64_t position = PROMPT;
  step.rows = 1, step.seq = &seq, step.positions = &position;
  step.q = step.k = step.v = &one, step.out = &out;
  token();
  const double each = nanoseconds(decode, 4000), all = nanoseconds(token, 200);
  printf("calls c: trivial %.0f ns, decode %.0f ns, token %.0f ns\n", nanoseconds(trivial, 20000),
         each, all);
  rkv_cache_destroy(cache);
  return 0;
}
