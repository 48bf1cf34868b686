/* Rule 5: a second caller gets BAD_STATE and changes nothing; const calls run side by side; caches
 * are independent (B10, B74, B77). */
#include "twin.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 300 };

typedef struct worker {
  rig* shared;
  int number;
  atomic_int* running;
  int64_t good, busy, other;
} worker;

static void tally(worker* w, rkv_status status) {
  w->good += status == RKV_OK;
  w->busy += status == RKV_BAD_STATE;
  w->other += status != RKV_OK && status != RKV_BAD_STATE;
}

/* Each thread: decode of its own sequence in the shared cache, in and out of turn; what was decoded
 * is what a cache of its own gives. */
static void* race(void* argument) {
  worker* w = argument;
  rig own; /* arguments and, in its cache, the truth */
  const rkv_cache_config config = w->shared->config;
  rig_init(&own, &config);
  rig_start(&own, w->number, 150);
  rkv_cache* const truth = own.cache;
  atomic_fetch_add(w->running, 1);
  while (atomic_load(w->running) < THREADS) sched_yield();
  for (int64_t p = 150; p < 162; ++p) {
    CHECK_STATUS(RKV_OK, rig_decode(&own, w->number, 0, p), &own.err);
    float out[64];
    memcpy(out, own.out, sizeof out);
    rkv_status status;
    int tries = 0;
    do { /* the caller's business: again, until nobody else is inside */
      const rkv_decode_args* args = rig_row(&own, w->number, 0, p);
      status = rkv_decode(w->shared->cache, args, NULL, &own.err);
      tally(w, status);
      if (status == RKV_BAD_STATE) CHECK_TEXT(own.err.text, "in use");
      if (status == RKV_BAD_STATE) CHECK(rig_untouched(&own, 1));
      if (++tries % 16 == 0) sched_yield();
    } while (status == RKV_BAD_STATE);
    CHECK(memcmp(out, own.out, sizeof out) == 0);
    rkv_sequence_stats s = ZERO(rkv_sequence_stats);
    status = rkv_stats(w->shared->cache, w->number, 0, NULL, &s, &own.err);
    tally(w, status);
    if (status == RKV_OK) CHECK_INT(p + 1, s.position);
    tally(w, rkv_sequence_open(w->shared->cache, w->number, NULL, &own.err)); /* BAD_STATE anyway */
  }
  own.cache = truth;
  rig_free(&own);
  return NULL;
}

static void test_race(void) {
  rkv_cache_config config = small_config();
  config.max_sequences = THREADS;
  config.num_threads = 2;
  rig shared;
  rig_init(&shared, &config);
  for (int32_t seq = 0; seq < THREADS; ++seq) rig_start(&shared, seq, 150);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  atomic_int running = 0;
  for (int i = 0; i < THREADS; ++i) {
    workers[i] = (worker){.shared = &shared, .number = i, .running = &running};
    REQUIRE(pthread_create(&threads[i], NULL, race, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < THREADS; ++i) {
    CHECK_INT(0, workers[i].other);
    CHECK(workers[i].good >= 12);
    CHECK(workers[i].busy >= 12); /* the opens, at least */
    CHECK_INT(162, rig_stats(&shared, i, 0).position);
  }
  rig_free(&shared);
}

/* A call that takes milliseconds, until somebody has met it. */
static void* prefill_again(void* argument) {
  worker* w = argument;
  rig* r = w->shared;
  rkv_error err = ZERO(rkv_error);
  const int64_t S = r->config.max_prompt_tokens;
  const rkv_prefill_args args = *rig_chunk(r, 0, 0, 0, S, S);
  for (int i = 0; i < 2000 && atomic_load(w->running); ++i) {
    rkv_status status = RKV_BAD_STATE;
    while (status == RKV_BAD_STATE) status = rkv_prefill(r->cache, &args, NULL, &err);
    tally(w, status);
    do {
      status = rkv_sequence_close(r->cache, 0, NULL, &err);
    } while (status == RKV_BAD_STATE);
    do {
      status = rkv_sequence_open(r->cache, 0, NULL, &err);
    } while (status == RKV_BAD_STATE);
  }
  atomic_store(w->running, 0);
  return NULL;
}

/* A second caller meets the first inside: BAD_STATE that says so, from const and other calls. */
static void test_second_caller_is_refused(void) {
  rkv_cache_config config = small_config();
  config.max_prompt_tokens = 8000;
  rig shared;
  rig_init(&shared, &config);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(shared.cache, 0, NULL, &shared.err), &shared.err);
  atomic_int running = 1;
  worker writer = {.shared = &shared, .running = &running};
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, prefill_again, &writer) == 0);
  int met_const = 0, met_other = 0;
  rkv_error err = ZERO(rkv_error);
  const rkv_decode_args none = ZERO(rkv_decode_args);
  while (atomic_load(&running) && !(met_const && met_other)) {
    rkv_sequence_stats s = ZERO(rkv_sequence_stats);
    rkv_status status = rkv_stats(shared.cache, 0, 0, NULL, &s, &err);
    met_const |= status == RKV_BAD_STATE && strstr(err.text, "in use by a call") != NULL;
    status = rkv_decode(shared.cache, &none, NULL, &err); /* no rows: OK where nobody is inside */
    CHECK(status == RKV_OK || status == RKV_BAD_STATE);
    met_other |= status == RKV_BAD_STATE && strstr(err.text, "in use by another") != NULL;
    sched_yield();
  }
  CHECK(met_const);
  CHECK(met_other);
  atomic_store(&running, 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK_INT(0, writer.busy + writer.other);
  rig_free(&shared);
}

/* A reader of the cache, over and over. */
static void* read_stats(void* argument) {
  worker* w = argument;
  rkv_error err = ZERO(rkv_error);
  static _Thread_local int64_t kept[1024];
  do {
    rkv_sequence_stats s = ZERO(rkv_sequence_stats);
    rkv_plan plan = ZERO(rkv_plan);
    int64_t count = 0;
    s.plan = &plan;
    rkv_status status = rkv_stats(w->shared->cache, 0, 0, NULL, &s, &err);
    tally(w, status);
    if (status == RKV_OK) CHECK(s.prompt == 150 && plan.cap > 0);
    status = rkv_kept_positions(w->shared->cache, 0, 0, NULL, kept, 1024, &count, &err);
    tally(w, status);
    if (status == RKV_OK) CHECK(count == s.kept + s.generated || w->number == 0);
  } while (atomic_load(w->running));
  return NULL;
}

/* Const calls alone never meet BAD_STATE. */
static void test_readers_side_by_side(void) {
  const rkv_cache_config config = small_config();
  rig shared;
  rig_init(&shared, &config);
  rig_start(&shared, 0, 150);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  atomic_int running = 1;
  for (int i = 0; i < THREADS; ++i) {
    workers[i] = (worker){.shared = &shared, .number = i + 1, .running = &running};
    REQUIRE(pthread_create(&threads[i], NULL, read_stats, &workers[i]) == 0);
  }
  for (int i = 0; i < ROUNDS; ++i) {
    CHECK_INT(150, rig_stats(&shared, 0, 0).position);
    sched_yield();
  }
  atomic_store(&running, 0);
  for (int i = 0; i < THREADS; ++i) {
    REQUIRE(pthread_join(threads[i], NULL) == 0);
    CHECK_INT(0, workers[i].busy + workers[i].other);
    CHECK(workers[i].good > 0);
  }
  rig_free(&shared);
}

/* A writer beside readers: each sees the other as BAD_STATE at worst. */
static void test_writer_beside_readers(void) {
  const rkv_cache_config config = small_config();
  rig shared;
  rig_init(&shared, &config);
  rig_start(&shared, 0, 150);
  worker reader = {.shared = &shared};
  atomic_int running = 1;
  reader.running = &running;
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, read_stats, &reader) == 0);
  int64_t done = 0;
  for (int i = 0; i < 100000 && done < ROUNDS; ++i) {
    const rkv_status status = rig_decode(&shared, 0, 0, 150 + done % 20);
    CHECK(status == RKV_OK || status == RKV_BAD_STATE);
    done += status == RKV_OK;
    if (i % 8 == 0) sched_yield();
  }
  atomic_store(&running, 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK_INT(ROUNDS, done);
  CHECK_INT(0, reader.other);
  rig_free(&shared);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_race);
  CASE(test_second_caller_is_refused);
  CASE(test_readers_side_by_side);
  CASE(test_writer_beside_readers);
  return check_end();
}
