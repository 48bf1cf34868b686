/* Caches know nothing of each other: interleaved, on threads, made and destroyed at the same time
 * (B10, B74), and again and again without growing (B77). */
#include "twin.h"

#include <pthread.h>

typedef struct result {
  float out[24][64];
  int32_t lists[24][2048];
} result;

static rkv_cache_config config_of(int which) {
  rkv_cache_config c = small_config();
  c.num_threads = 1 + which % 3;
  c.token_budget = 20 + 3 * which;
  c.page_size = which % 2 ? 3 : 0;
  return c;
}

static void start(rig* r, int which) {
  const rkv_cache_config config = config_of(which);
  rig_init(r, &config);
  r->seed = 100 + (uint64_t)which;
  rig_start(r, 1, 150 - which);
}

static void one_step(rig* r, int which, int i, result* out) {
  CHECK_STATUS(RKV_OK, rig_decode(r, 1, 0, 150 - which + i), &r->err);
  memcpy(out->out[i], r->out, sizeof out->out[i]);
  const size_t bytes = (size_t)(2 * r->selection.capacity) * 4;
  REQUIRE(bytes <= sizeof out->lists[i]);
  memcpy(out->lists[i], r->selection.indices, bytes);
}

static void solo(int which, result* out) {
  rig r;
  memset(out, 0, sizeof *out);
  start(&r, which);
  for (int i = 0; i < 24; ++i) one_step(&r, which, i, out);
  rig_free(&r);
}

enum { CACHES = 4 };
static result alone[CACHES], together[CACHES];

static void test_interleaved(void) {
  rig rigs[CACHES];
  memset(together, 0, sizeof together);
  for (int i = 0; i < CACHES; ++i) start(&rigs[i], i);
  for (int step = 0; step < 24; ++step) {
    for (int i = 0; i < CACHES; ++i) one_step(&rigs[i], i, step, &together[i]);
  }
  for (int i = 0; i < CACHES; ++i) rig_free(&rigs[i]);
  CHECK(memcmp(alone, together, sizeof alone) == 0);
}

static void* run_one(void* argument) {
  const int which = *(const int*)argument;
  for (int again = 0; again < 3; ++again) solo(which, &together[which]);
  return NULL;
}

static void test_on_threads(void) {
  pthread_t threads[CACHES];
  int numbers[CACHES];
  memset(together, 0, sizeof together);
  for (int i = 0; i < CACHES; ++i) {
    numbers[i] = i;
    REQUIRE(pthread_create(&threads[i], NULL, run_one, &numbers[i]) == 0);
  }
  for (int i = 0; i < CACHES; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  CHECK(memcmp(alone, together, sizeof alone) == 0);
}

/* Storage and workspace in the same bytes: results would be wrong, and silently. */
static void test_overlapping_buffers(void) {
  const rkv_cache_config config = small_config();
  rkv_memory need = ZERO(rkv_memory);
  rkv_error err = ZERO(rkv_error);
  CHECK_STATUS(RKV_OK, rkv_cache_memory(&config, &need, &err), &err);
  const int64_t bytes = need.storage_bytes + need.workspace_bytes;
  char* memory = aligned_alloc(
      (size_t)need.alignment, (size_t)((bytes + need.alignment) / need.alignment * need.alignment));
  REQUIRE(memory != NULL);
  rkv_buffers buffers = ZERO(rkv_buffers);
  buffers.storage = memory;
  buffers.storage_bytes = buffers.workspace_bytes = bytes;
  rkv_cache* cache = NULL;
  const int64_t last = (need.storage_bytes - 1) / need.alignment * need.alignment;
  for (int64_t at = 0; at <= last; at += last > 0 ? last : 1) {
    buffers.workspace = memory + at;
    CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_cache_create(&config, &buffers, &cache, &err), &err);
    CHECK_TEXT(err.text, "it must not overlap");
    CHECK(cache == NULL);
  }
  buffers.workspace =
      memory + (need.storage_bytes + need.alignment - 1) / need.alignment * need.alignment;
  CHECK_STATUS(RKV_OK, rkv_cache_create(&config, &buffers, &cache, &err), &err);
  rkv_cache_destroy(cache);
  free(memory);
}

/* Two caches whose calls never overlap share one workspace. */
static void test_shared_workspace(void) {
  rkv_cache_config config = config_of(1);
  rkv_memory memory = ZERO(rkv_memory);
  rkv_error err = ZERO(rkv_error);
  REQUIRE(rkv_cache_memory(&config, &memory, &err) == RKV_OK);
  guard workspace = guard_make(memory.workspace_bytes, memory.alignment);
  guard storage[2];
  rig rigs[2];
  memset(&together[1], 0, sizeof together[1]);
  memset(&together[2], 0, sizeof together[2]);
  for (int i = 0; i < 2; ++i) {
    storage[i] = guard_make(memory.storage_bytes, memory.alignment);
    rkv_buffers buffers = ZERO(rkv_buffers);
    buffers.storage = storage[i].data;
    buffers.storage_bytes = memory.storage_bytes;
    buffers.workspace = workspace.data;
    buffers.workspace_bytes = memory.workspace_bytes;
    rig_init(&rigs[i], &config);
    rkv_cache_destroy(rigs[i].cache);
    rigs[i].cache = NULL;
    CHECK_STATUS(RKV_OK, rkv_cache_create(&config, &buffers, &rigs[i].cache, &err), &err);
    rigs[i].seed = 101;
    rig_start(&rigs[i], 1, 149);
  }
  for (int step = 0; step < 24; ++step) {
    for (int i = 0; i < 2; ++i) {
      memset(workspace.data, 0xFF, workspace.bytes); /* nothing lives there between calls */
      one_step(&rigs[i], 1, step, &together[1 + i]);
    }
  }
  CHECK(memcmp(&alone[1], &together[1], sizeof alone[1]) == 0);
  CHECK(memcmp(&alone[1], &together[2], sizeof alone[1]) == 0);
  for (int i = 0; i < 2; ++i) {
    rig_free(&rigs[i]);
    CHECK(guard_intact(&storage[i]));
    guard_free(&storage[i]);
  }
  CHECK(guard_intact(&workspace));
  guard_free(&workspace);
}

static long resident_pages(void) {
  long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  REQUIRE(file != NULL);
  REQUIRE(fscanf(file, "%ld %ld", &size, &resident) == 2);
  fclose(file);
  return resident;
}

/* 10,000 lives, now and then used and with threads: memory does not grow. */
static void test_many_lives(void) {
  rkv_error err = ZERO(rkv_error);
  long before = 0;
  const int lives =
      CHECK_SANITIZER ? 2000 : 10000; /* slow there, and leaks are looked for anyway */
  for (int i = 0; i < lives; ++i) {
    if (i == 1000) before = resident_pages();
    rkv_cache_config config = small_config();
    config.num_threads = i % 50 == 0 ? 3 : 1;
    if (i % 100 == 0) {
      rig r;
      rig_init(&r, &config);
      rig_start(&r, 2, 150);
      CHECK_STATUS(RKV_OK, rig_decode(&r, 2, 1, 150), &r.err);
      rig_free(&r);
      continue;
    }
    rkv_cache* cache = NULL;
    CHECK_STATUS(RKV_OK, rkv_cache_create(&config, NULL, &cache, &err), &err);
    CHECK_STATUS(RKV_OK, rkv_sequence_open(cache, i % 3, NULL, &err), &err);
    rkv_cache_destroy(cache);
  }
  const long grown = (resident_pages() - before) * (sysconf(_SC_PAGESIZE) / 1024);
  /* A sanitizer keeps what was freed for a while. */
  if (!CHECK(grown < (CHECK_SANITIZER ? 300 : 4) * 1024)) printf("grown by %ld KiB\n", grown);
}

static void* make_and_destroy(void* argument) {
  rkv_cache_config config = config_of(*(const int*)argument);
  rkv_error err = ZERO(rkv_error);
  for (int i = 0; i < 200; ++i) {
    rkv_cache* cache = NULL;
    rkv_memory memory = ZERO(rkv_memory);
    rkv_plan plan = ZERO(rkv_plan);
    CHECK_STATUS(RKV_OK, rkv_plan_make(&config, NULL, 1 + i % 150, &plan, &err), &err);
    CHECK_STATUS(RKV_OK, rkv_cache_memory(&config, &memory, &err), &err);
    CHECK_STATUS(RKV_OK, rkv_cache_create(&config, NULL, &cache, &err), &err);
    CHECK_STATUS(RKV_OK, rkv_sequence_open(cache, 0, NULL, &err), &err);
    rkv_cache_destroy(cache);
  }
  return NULL;
}

static void test_concurrent_lives(void) {
  pthread_t threads[CACHES];
  int numbers[CACHES];
  for (int i = 0; i < CACHES; ++i) {
    numbers[i] = i;
    REQUIRE(pthread_create(&threads[i], NULL, make_and_destroy, &numbers[i]) == 0);
  }
  for (int i = 0; i < CACHES; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  for (int i = 0; i < CACHES; ++i) solo(i, &alone[i]);
  CASE(test_interleaved);
  CASE(test_on_threads);
  CASE(test_overlapping_buffers);
  CASE(test_shared_workspace);
  CASE(test_many_lives);
  CASE(test_concurrent_lives);
  return check_end();
}
