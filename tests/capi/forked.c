/* A child of fork(2) inherits caches but none of their threads: it may go on with them, alone, and
 * destroy them. */
#include "rig.h"

#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 6, OUT = 4 * 16 };

static rkv_cache_config threaded_config(void) {
  rkv_cache_config config = small_config();
  config.num_threads = 3;
  return config;
}

/* Steps at the positions behind the prompt; their outputs. */
static void decode_steps(rig* r, float (*out)[OUT]) {
  for (int i = 0; i < STEPS; ++i) {
    CHECK_STATUS(RKV_OK, rig_decode(r, 0, 0, 150 + i), &r->err);
    memcpy(out[i], r->out, sizeof out[i]);
  }
}

/* The exit status of a child that runs `body`; a child that hangs is killed. */
static int in_child(int (*body)(rig*), rig* r) {
  fflush(NULL);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(30);
    _exit(body(r));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static float parent_out[STEPS][OUT];

static int decode_and_destroy(rig* r) {
  static float out[STEPS][OUT];
  decode_steps(r, out);
  rkv_cache_destroy(r->cache);
  return memcmp(out, parent_out, sizeof out) == 0 ? 0 : 2;
}

/* The threads of a cache of the child's own may have the names that the lost ones had. */
static int own_cache_beside(rig* r) {
  static float out[STEPS][OUT];
  const rkv_cache_config config = threaded_config();
  rig own;
  rig_init(&own, &config);
  rig_start(&own, 0, 150);
  rkv_cache_destroy(r->cache);
  decode_steps(&own, out);
  rig_free(&own);
  return memcmp(out, parent_out, sizeof out) == 0 ? 0 : 2;
}

static int destroy_after_own(rig* r) {
  const rkv_cache_config config = threaded_config();
  rig own;
  rig_init(&own, &config);
  rig_free(&own);
  rkv_cache_destroy(r->cache);
  return 0;
}

static void test_children(void) {
  const rkv_cache_config config = threaded_config();
  rig r;
  rig_init(&r, &config);
  rig_start(&r, 0, 150);
  decode_steps(&r, parent_out);
  for (int round = 0; round < 5; ++round) {
    CHECK_INT(0, in_child(decode_and_destroy, &r));
    CHECK_INT(0, in_child(own_cache_beside, &r));
    CHECK_INT(0, in_child(destroy_after_own, &r));
  }
  static float again[STEPS][OUT];
  decode_steps(&r, again); /* the parent is none the worse */
  CHECK(memcmp(again, parent_out, sizeof again) == 0);
  rig_free(&r);
}

int main(void) {
  check_begin(__FILE__);
  CASE(test_children);
  return check_end();
}
