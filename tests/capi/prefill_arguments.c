/* Every argument of the sequence calls and of rkv_prefill wrong in turn: status, text, and a cache
 * that stays as it was (rule 6), also halfway through a chunked prompt. */
#include "twin.h"

static rig a, b; /* b never sees a failing call */

/* Sequence 0: generating. 1: window rows of a prompt of 150 wait in layer 0. 2: closed. */
static void setup(void) {
  rig* both[] = {&a, &b};
  const rkv_cache_config config = small_config();
  for (int i = 0; i < 2; ++i) {
    rig* r = both[i];
    rig_init(r, &config);
    rig_start(r, 0, 150);
    for (int64_t p = 150; p < 155; ++p) CHECK_STATUS(RKV_OK, rig_decode(r, 0, 0, p), &r->err);
    CHECK_STATUS(RKV_OK, rkv_sequence_open(r->cache, 1, NULL, &r->err), &r->err);
    CHECK_STATUS(RKV_OK, rkv_prefill(r->cache, rig_chunk(r, 1, 0, 0, 147, 150), NULL, &r->err),
                 &r->err);
  }
}

static void failed(rkv_status want, rkv_status got, const char* text, int line) {
  if (!CHECK_STATUS(want, got, &a.err)) printf("line %d\n", line);
  CHECK_INT(want, a.err.status);
  if (!CHECK_TEXT(a.err.text, text)) printf("line %d\n", line);
  if (!CHECK(twins_agree(&a, &b))) printf("line %d\n", line);
  if (!CHECK(twins_decode(&a, &b, 0, 0, 154))) printf("line %d\n", line);
}
#define FAILED(want, call, text) failed(want, call, text, __LINE__)

static void test_sequence_calls(void) {
  rkv_cache* c = a.cache;
  rkv_error* e = &a.err;
  FAILED(RKV_BAD_STATE, rkv_sequence_open(c, 0, NULL, e), "seq is 0: this sequence is open");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_open(c, -1, NULL, e),
         "seq is -1: it must lie in [0, 2]");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_open(c, 3, NULL, e), "seq is 3: it must lie in [0, 2]");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_open(c, INT32_MAX, NULL, e), "[0, 2]");
  FAILED(RKV_BAD_STATE, rkv_sequence_close(c, 2, NULL, e), "seq is 2: this sequence is not open");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_close(c, INT32_MIN, NULL, e), "[0, 2]");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_close(c, 3, NULL, e), "seq is 3");
  /* B25 */
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_rewind(c, 0, -1, NULL, e),
         "position is -1: it must lie in [150, 155]");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_rewind(c, 0, 149, NULL, e), "position is 149");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_rewind(c, 0, 156, NULL, e), "position is 156");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_rewind(c, 0, INT64_MAX, NULL, e), "[150, 155]");
  FAILED(RKV_BAD_STATE, rkv_sequence_rewind(c, 1, 150, NULL, e), "no layer of it");
  FAILED(RKV_BAD_STATE, rkv_sequence_rewind(c, 2, 150, NULL, e), "not open");
  FAILED(RKV_INVALID_ARGUMENT, rkv_sequence_rewind(c, 3, 150, NULL, e), "seq is 3");
}

static void test_queries(void) {
  rkv_cache* c = a.cache;
  rkv_error* e = &a.err;
  rkv_sequence_stats s;
  memset(&s, 0x5A, sizeof s);
  s.struct_size = sizeof s;
  s.plan = NULL;
  const rkv_sequence_stats before = s;
  FAILED(RKV_INVALID_ARGUMENT, rkv_stats(c, 3, 0, NULL, &s, e), "seq is 3: it must lie in [0, 2]");
  FAILED(RKV_INVALID_ARGUMENT, rkv_stats(c, -1, 0, NULL, &s, e), "seq is -1");
  FAILED(RKV_BAD_STATE, rkv_stats(c, 2, 0, NULL, &s, e), "seq is 2: this sequence is not open");
  FAILED(RKV_INVALID_ARGUMENT, rkv_stats(c, 0, 2, NULL, &s, e),
         "layer is 2: it must lie in [0, 1]");
  FAILED(RKV_INVALID_ARGUMENT, rkv_stats(c, 0, -1, NULL, &s, e), "layer is -1");
  CHECK(memcmp(&s, &before, sizeof s) == 0);
  rkv_plan plan = {.struct_size = 3};
  s.plan = &plan;
  FAILED(RKV_INVALID_ARGUMENT, rkv_stats(c, 0, 0, NULL, &s, e), "stats.plan.struct_size is 3");

  int64_t out[8], count = -7;
  FAILED(RKV_INVALID_ARGUMENT, rkv_kept_positions(c, 3, 0, NULL, out, 8, &count, e), "seq is 3");
  FAILED(RKV_INVALID_ARGUMENT, rkv_kept_positions(c, 0, 5, NULL, out, 8, &count, e), "layer is 5");
  FAILED(RKV_BAD_STATE, rkv_kept_positions(c, 2, 0, NULL, out, 8, &count, e), "not open");
  FAILED(RKV_BAD_STATE, rkv_kept_positions(c, 1, 0, NULL, out, 8, &count, e), "not been prefilled");
  CHECK_INT(-7, count);
  memset(out, 0x5A, sizeof out);
  FAILED(RKV_BUFFER_TOO_SMALL, rkv_kept_positions(c, 0, 0, NULL, out, 8, &count, e),
         "capacity is 8");
  const rkv_sequence_stats live = rig_stats(&a, 0, 0);
  CHECK_INT(live.kept + live.generated, count);
  CHECK(bytes_are(out, sizeof out, 0x5A));
  FAILED(RKV_BUFFER_TOO_SMALL, rkv_kept_positions(c, 0, 0, NULL, out, -1, &count, e), "is -1");
  CHECK_INT(RKV_OK, rkv_kept_positions(c, 0, 0, NULL, NULL, 0, &count, e));
  CHECK_INT(live.kept + live.generated, count);
}

/* A call for rows [147, 150) of sequence 1, which would be right, with one thing changed. */
#define PREFILL(want, text, change)                                          \
  do {                                                                       \
    rkv_prefill_args args = *rig_chunk(&a, 1, 0, 147, 150, 150);             \
    rkv_tensor q = a.prompt_q, k = a.prompt_k, v = a.prompt_v;               \
    args.q = &q;                                                             \
    args.k = &k;                                                             \
    args.v = &v;                                                             \
    change;                                                                  \
    failed(want, rkv_prefill(a.cache, &args, NULL, &a.err), text, __LINE__); \
  } while (0)

static void test_prefill_fields(void) {
  PREFILL(RKV_UNSUPPORTED, "args.reserved is 1", args.reserved = 1);
  PREFILL(RKV_INVALID_ARGUMENT, "seq is 3: it must lie in [0, 2]", args.seq = 3);
  PREFILL(RKV_INVALID_ARGUMENT, "seq is -1", args.seq = -1);
  PREFILL(RKV_BAD_STATE, "seq is 2: this sequence is not open", args.seq = 2);
  PREFILL(RKV_INVALID_ARGUMENT, "layer is 2: it must lie in [0, 1]", args.layer = 2);
  PREFILL(RKV_INVALID_ARGUMENT, "layer is -1", args.layer = -1);
  PREFILL(RKV_BAD_STATE, "layer 0 of sequence 0 is prefilled", args.seq = 0);
  PREFILL(RKV_INVALID_ARGUMENT, "args.prompt_tokens is -1", args.prompt_tokens = -1);
  PREFILL(RKV_OUT_OF_CAPACITY, "args.prompt_tokens is 151: config.max_prompt_tokens is 150",
          args.prompt_tokens = 151);
  PREFILL(RKV_OUT_OF_CAPACITY, "9223372036854775807", args.prompt_tokens = INT64_MAX);
  PREFILL(RKV_INVALID_ARGUMENT, "args.prompt_tokens is 149: this sequence's first call said 150",
          args.prompt_tokens = 149);
  PREFILL(RKV_INVALID_ARGUMENT, "args.prompt_tokens is 0", args.prompt_tokens = 0);
  PREFILL(RKV_INVALID_ARGUMENT, "args.start is -1", args.start = -1);
  PREFILL(RKV_INVALID_ARGUMENT, "args.start is 151: it must lie in [0, prompt_tokens = 150]",
          args.start = 151);
  PREFILL(RKV_INVALID_ARGUMENT, "args.start is -9223372036854775808", args.start = INT64_MIN);
  PREFILL(RKV_INVALID_ARGUMENT, "args.q has 3 rows from start = 148", args.start = 148);
  PREFILL(RKV_INVALID_ARGUMENT, "args.q is NULL: it may be only where", args.q = NULL);
  PREFILL(RKV_INVALID_ARGUMENT, "args.k is NULL", args.k = NULL);
  PREFILL(RKV_INVALID_ARGUMENT, "args.v is NULL", args.v = NULL);
}

#define PREFILL_TENSOR(t, rows, heads)                                                         \
  do {                                                                                         \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".dtype is 0 (none): it must be 1 (F32)",         \
            t.dtype = 0);                                                                      \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".dtype is 2 (F16)", t.dtype = 2);                \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".dtype is -5 (unknown)", t.dtype = -5);          \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".ndim is 2: it must be 3", t.ndim = 2);          \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".ndim is 0", t.ndim = 0);                        \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".ndim is 6", t.ndim = 6);                        \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".ndim is -3", t.ndim = -3);                      \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".shape is [-1, ", t.shape[0] = -1);              \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".shape is [" rows ", 9, 16]: it must be [",      \
            t.shape[1] = 9);                                                                   \
    PREFILL(RKV_INVALID_ARGUMENT, heads ", 16]", t.shape[2] = 15);                             \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".shape is ", t.shape[0] = INT64_MAX);            \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".data is NULL", t.data = NULL);                  \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".data is 0x", t.data = (char*)t.data + 1);       \
    PREFILL(RKV_INVALID_ARGUMENT, "aligned to 4 bytes", t.data = (char*)t.data + 2);           \
    PREFILL(RKV_INVALID_ARGUMENT, "args." #t ".strides are [", t.strides[0] = INT64_MAX);      \
    PREFILL(RKV_INVALID_ARGUMENT, "under 2^62 bytes", t.strides[1] = INT64_MIN);               \
    PREFILL(RKV_UNSUPPORTED, "args." #t ".reserved0 is 1: it must be 0", t.reserved0 = 1);     \
    PREFILL(RKV_UNSUPPORTED, "args." #t ".reserved[3] is 1: it must be 0", t.reserved[3] = 1); \
  } while (0)

static void test_prefill_tensors(void) {
  PREFILL_TENSOR(q, "3", "4");
  PREFILL_TENSOR(k, "150", "2");
  PREFILL_TENSOR(v, "150", "2");
  PREFILL(RKV_INVALID_ARGUMENT, "args.k.shape is [149, 2, 16]: it must be [150, 2, 16]",
          k.shape[0] = 149);
  PREFILL(RKV_INVALID_ARGUMENT, "args.v.shape is [151, 2, 16]", v.shape[0] = 151);
}

/* After all that, the waiting rows still give the kept set of the twin. */
static void test_prompt_ends_as_if_nothing_failed(void) {
  rig* both[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    CHECK_STATUS(
        RKV_OK,
        rkv_prefill(both[i]->cache, rig_chunk(both[i], 1, 0, 147, 150, 150), NULL, &both[i]->err),
        &both[i]->err);
  }
  CHECK_INT(8, rig_stats(&a, 1, 0).window_rows);
  CHECK(twins_agree(&a, &b));
  for (int64_t p = 150; p < 160; ++p) CHECK(twins_decode(&a, &b, 1, 0, p));
}

/* Options that ask for more than a slot holds: found by the first prefill call, which names it. */
static void test_request_beyond_slot(void) {
  rkv_sequence_options more = ZERO(rkv_sequence_options);
  more.max_new_tokens = 1000;
  CHECK_STATUS(RKV_OK, rkv_sequence_open(a.cache, 2, &more, &a.err), &a.err);
  CHECK_STATUS(RKV_OUT_OF_CAPACITY, rig_prefill(&a, 2, 0, 100), &a.err);
  CHECK_TEXT(a.err.text, "args.prompt_tokens is ");
  CHECK_TEXT(a.err.text, "a slot of this cache holds ");
  CHECK_INT(0, rig_stats(&a, 2, 0).turn);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(a.cache, 2, NULL, &a.err), &a.err);
  more.max_new_tokens = 8; /* the slot is none the worse */
  CHECK_STATUS(RKV_OK, rkv_sequence_open(a.cache, 2, &more, &a.err), &a.err);
  CHECK_STATUS(RKV_OK, rig_prefill(&a, 2, 0, 100), &a.err);
  CHECK_INT(108, rig_stats(&a, 2, 0).max_position);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(a.cache, 2, NULL, &a.err), &a.err);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  setup();
  CASE(test_sequence_calls);
  CASE(test_queries);
  CASE(test_prefill_fields);
  CASE(test_prefill_tensors);
  CASE(test_prompt_ends_as_if_nothing_failed);
  CASE(test_request_beyond_slot);
  rig_free(&a);
  rig_free(&b);
  return check_end();
}
