/* Rule 7: prefill, select, attend and decode never allocate, map memory or start threads; not on
 * their error paths either; in any thread. */
#include "alloc.h"
#include "twin.h"

static rkv_cache_config large_config(int32_t threads) {
  rkv_cache_config c = small_config();
  c.q_heads = 8;
  c.kv_heads = 4;
  c.head_dim = 32;
  c.max_prompt_tokens = 3000;
  c.max_new_tokens = 40;
  c.token_budget = 200;
  c.window_size = 0;
  c.kernel_size = 0;
  c.num_threads = threads;
  return c;
}

/* Everything the four calls do, good and bad, in sequence `seq`. */
static void use(rig* r, int32_t seq) {
  rkv_error* e = &r->err;
  rkv_prefill_args args = *rig_chunk(r, seq, 0, 0, 2990, 3000); /* rows that wait */
  CHECK_STATUS(RKV_OK, rkv_prefill(r->cache, &args, NULL, e), e);
  args = *rig_chunk(r, seq, 0, 2990, 3000, 3000);
  args.start = 2991;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_prefill(r->cache, &args, NULL, e), e);
  args.start = 2990;
  CHECK_STATUS(RKV_OK, rkv_prefill(r->cache, &args, NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_prefill(r->cache, &args, NULL, e), e);
  CHECK_STATUS(RKV_OK, rig_prefill(r, seq, 1, 3000), e);
  for (int32_t layer = 0; layer < 2; ++layer) {
    for (int64_t p = 3000; p < 3010; ++p) CHECK_STATUS(RKV_OK, rig_decode(r, seq, layer, p), e);
    for (int64_t p = 3005; p < 3012; ++p) { /* back first: drops rows */
      rkv_decode_args step = *rig_row(r, seq, layer, p);
      CHECK_STATUS(RKV_OK, rkv_decode_select(r->cache, &step, NULL, e), e);
      CHECK_STATUS(RKV_OK, rkv_attend(r->cache, &step, NULL, e), e);
      step.selection = NULL;
      CHECK_STATUS(RKV_OK, rkv_attend(r->cache, &step, NULL, e), e);
    }
  }
  for (int i = 0; i < 4; ++i) r->seq[i] = i == 3 ? -1 : seq, r->positions[i] = 3012 + i;
  CHECK_STATUS(RKV_OK, rkv_decode(r->cache, rig_rows(r, 1, 4), NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(r, seq, 1, 3020), e);
  CHECK_STATUS(RKV_OUT_OF_CAPACITY, rkv_decode(r->cache, (r->step.rows = 99, &r->step), NULL, e),
               e);
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rig_decode(r, seq, 1, 5), e);
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_decode(r->cache, NULL, NULL, e), e);
}

static void with_threads(int32_t threads) {
  const rkv_cache_config config = large_config(threads);
  rig r;
  rig_init(&r, &config);
  for (int32_t seq = 0; seq < 3; ++seq) {
    CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, seq, NULL, &r.err), &r.err);
  }
  use(&r, 0); /* warm-up */
  alloc_watch(0);
  use(&r, 1);
  use(&r, 2);
  CHECK_INT(0, alloc_unwatch());
  rig_free(&r);
}

static void test_one_thread(void) { with_threads(1); }
static void test_three_threads(void) { with_threads(3); }

/* The watch sees what it should: an allocation here, and those of create inside the library. */
static void test_watch_works(void) {
  alloc_watch(0);
  void* volatile p = malloc(8);
  CHECK_INT(1, alloc_unwatch());
  CHECK_INT(1, atomic_load(&alloc.live));
  free(p);
  const rkv_cache_config config = large_config(2);
  rkv_error err = ZERO(rkv_error);
  rkv_cache* cache = NULL;
  alloc_watch(0);
  CHECK_STATUS(RKV_OK, rkv_cache_create(&config, NULL, &cache, &err), &err);
  rkv_cache_destroy(cache);
  CHECK(alloc_unwatch() > 5);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  alloc_init();
  CASE(test_watch_works);
  CASE(test_one_thread);
  CASE(test_three_threads);
  return check_end();
}
