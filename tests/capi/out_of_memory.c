/* Create under failing allocation (B67, B75): whichever allocation or thread fails, the call says
 * OUT_OF_MEMORY, gives everything back, and the next one succeeds. */
#include "alloc.h"
#include "twin.h"

static rkv_cache_config thread_config(void) {
  rkv_cache_config c = small_config();
  c.num_threads = 3;
  return c;
}

static void check_works(rkv_cache* cache) {
  rkv_error err = ZERO(rkv_error);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(cache, 0, NULL, &err), &err);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(cache, 0, NULL, &err), &err);
}

#if CHECK_SANITIZER

/* No allocation can be made to fail here; leaks of a refused create are looked for instead. */
static void test_refused_create(void) {
  const rkv_cache_config config = thread_config();
  rkv_error err = ZERO(rkv_error);
  rkv_buffers none = ZERO(rkv_buffers);
  rkv_cache* cache = NULL;
  for (int i = 0; i < 10; ++i) {
    CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_cache_create(&config, &none, &cache, &err), &err);
    CHECK(cache == NULL);
  }
  CHECK_STATUS(RKV_OK, rkv_cache_create(&config, NULL, &cache, &err), &err);
  check_works(cache);
  rkv_cache_destroy(cache);
}

#else

/* Fails the n-th allocation for every n, until create needs no n-th one. */
static void every_allocation(const rkv_buffers* buffers) {
  const rkv_cache_config config = thread_config();
  rkv_error err = ZERO(rkv_error);
  rkv_cache* cache = NULL;
  for (int i = 0; i < 2; ++i) { /* thread stacks and the like stay with the system */
    CHECK_STATUS(RKV_OK, rkv_cache_create(&config, buffers, &cache, &err), &err);
    rkv_cache_destroy(cache);
  }
  long n = 1;
  int threads_refused = 0;
  for (;; ++n) {
    rkv_cache* const before = cache = (rkv_cache*)(void*)&err;
    err = ZERO(rkv_error);
    alloc_watch(n);
    const rkv_status status = rkv_cache_create(&config, buffers, &cache, &err);
    alloc_unwatch();
    if (atomic_load(&alloc.failures) == 0) {
      CHECK_STATUS(RKV_OK, status, &err);
      rkv_cache_destroy(cache);
      break;
    }
    int good = CHECK_STATUS(RKV_OUT_OF_MEMORY, status, &err);
    good &= CHECK(cache == before);
    good &= CHECK(strlen(err.text) > 10);
    good &= CHECK_INT(0, atomic_load(&alloc.live)); /* nothing leaks */
    threads_refused += strstr(err.text, "config.num_threads") != NULL;
    if (!good) printf("allocation %ld: %s\n", n, err.text);
    if (status == RKV_OK) rkv_cache_destroy(cache);
    if (!good) break;
    if (n % 5 == 0) { /* at once again */
      CHECK_STATUS(RKV_OK, rkv_cache_create(&config, buffers, &cache, &err), &err);
      check_works(cache);
      rkv_cache_destroy(cache);
    }
  }
  CHECK(n > 5);
  CHECK(threads_refused >= 2); /* each of the two workers */
}

static void test_own_buffers(void) { every_allocation(NULL); }

static void test_given_buffers(void) {
  const rkv_cache_config config = thread_config();
  rkv_memory memory = ZERO(rkv_memory);
  rkv_error err = ZERO(rkv_error);
  REQUIRE(rkv_cache_memory(&config, &memory, &err) == RKV_OK);
  guard storage = guard_make(memory.storage_bytes, memory.alignment);
  guard workspace = guard_make(memory.workspace_bytes, memory.alignment);
  rkv_buffers buffers = ZERO(rkv_buffers);
  buffers.storage = storage.data;
  buffers.storage_bytes = memory.storage_bytes;
  buffers.workspace = workspace.data;
  buffers.workspace_bytes = memory.workspace_bytes;
  every_allocation(&buffers);
  CHECK(guard_intact(&storage) && guard_intact(&workspace));
  guard_free(&storage);
  guard_free(&workspace);
}

/* The two calls that build a layout may run out of memory too. */
static void test_memory_query(void) {
  const rkv_cache_config config = thread_config();
  rkv_memory memory = ZERO(rkv_memory);
  rkv_error err = ZERO(rkv_error);
  for (long n = 1;; ++n) {
    alloc_watch(n);
    const rkv_status status = rkv_cache_memory(&config, &memory, &err);
    alloc_unwatch();
    if (atomic_load(&alloc.failures) == 0) {
      CHECK_STATUS(RKV_OK, status, &err);
      break;
    }
    CHECK_STATUS(RKV_OUT_OF_MEMORY, status, &err);
    CHECK_INT(0, memory.storage_bytes);
    CHECK_INT(0, atomic_load(&alloc.live));
  }
  CHECK(memory.storage_bytes > 0);
}

/* Open, close, rewind, stats and audit never allocate, so nothing there can fail. */
static void test_other_calls_do_not_allocate(void) {
  const rkv_cache_config config = thread_config();
  rig r;
  int64_t positions[512], count;
  rig_init(&r, &config);
  rig_start(&r, 0, 150);
  CHECK_STATUS(RKV_OK, rig_decode(&r, 0, 0, 150), &r.err);
  rkv_audit_result audit = ZERO(rkv_audit_result);
  rkv_decode_args args = *rig_row(&r, 0, 0, 150);
  args.selection = NULL;
  alloc_watch(1);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 1, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(r.cache, 1, NULL, &r.err), &r.err);
  CHECK_INT(151, rig_stats(&r, 0, 0).position);
  CHECK_STATUS(RKV_OK, rkv_kept_positions(r.cache, 0, 0, NULL, positions, 512, &count, &r.err),
               NULL);
  CHECK_STATUS(RKV_OK, rkv_audit(r.cache, &args, &audit, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_rewind(r.cache, 0, 150, NULL, &r.err), &r.err);
  CHECK_INT(0, alloc_unwatch());
  CHECK_INT(0, atomic_load(&alloc.failures));
  rig_free(&r);
}

#endif

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  alloc_init();
#if CHECK_SANITIZER
  CASE(test_refused_create);
#else
  CASE(test_own_buffers);
  CASE(test_given_buffers);
  CASE(test_memory_query);
  CASE(test_other_calls_do_not_allocate);
#endif
  return check_end();
}
