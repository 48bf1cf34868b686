/* The order of calls: every entry at the wrong moment (B33), lengths per layer (B27), positions
 * kept apart from row counts (B16, B23), rewinds (B25, B26, B69), repeated steps. */
#include "twin.h"

/* Every second cache has three threads: twins differ in nothing else, and give the same bits. */
static void setup(rig* r) {
  static int made;
  rkv_cache_config config = small_config();
  config.num_threads = made++ % 2 ? 3 : 1;
  rig_init(r, &config);
}

/* Every call on a sequence that is not there yet, and again after it was closed. */
static void wrong_before_open(rig* r) {
  rkv_sequence_stats s = ZERO(rkv_sequence_stats);
  rkv_audit_result audit = ZERO(rkv_audit_result);
  int64_t count = 0;
  rkv_error* e = &r->err;
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_close(r->cache, 0, NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_rewind(r->cache, 0, 0, NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_fork(r->cache, 0, 1, NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rig_prefill(r, 0, 0, 40), e);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(r, 0, 0, 40), e);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(r, 0, 0, 0), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_decode_select(r->cache, &r->step, NULL, e), e);
  r->step.selection = NULL;
  CHECK_STATUS(RKV_BAD_STATE, rkv_attend(r->cache, &r->step, NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_audit(r->cache, &r->step, &audit, NULL, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_stats(r->cache, 0, 0, NULL, &s, e), e);
  CHECK_STATUS(RKV_BAD_STATE, rkv_kept_positions(r->cache, 0, 0, NULL, NULL, 0, &count, e), e);
}

static void test_wrong_order(void) {
  rig r;
  setup(&r);
  wrong_before_open(&r);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(&r, 0, 0, 0), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_rewind(r.cache, 0, 0, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rig_prefill(&r, 0, 0, 40), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rig_prefill(&r, 0, 0, 40), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(&r, 0, 1, 40), &r.err); /* the other layer */
  CHECK_STATUS(RKV_OK, rig_decode(&r, 0, 0, 40), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rig_prefill(&r, 0, 0, 40), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(r.cache, 0, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_close(r.cache, 0, NULL, &r.err), &r.err);
  wrong_before_open(&r);
  rig_free(&r);
}

/* B54: no rows and no prompt are fine and do nothing. */
static void test_nothing_to_do(void) {
  rig r;
  setup(&r);
  rkv_decode_args none = ZERO(rkv_decode_args);
  rkv_audit_result audit = ZERO(rkv_audit_result);
  CHECK_STATUS(RKV_OK, rkv_decode(r.cache, &none, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_decode_select(r.cache, &none, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_attend(r.cache, &none, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_audit(r.cache, &none, &audit, NULL, &r.err), &r.err);
  CHECK(audit.rows == 0 && audit.mass_mean != audit.mass_mean && audit.mass_min != audit.mass_min &&
        audit.error_mean != audit.error_mean && audit.error_max != audit.error_max);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
  rkv_prefill_args empty = ZERO(rkv_prefill_args);
  CHECK_STATUS(RKV_OK, rkv_prefill(r.cache, &empty, NULL, &r.err), &r.err);
  CHECK_INT(0, rig_stats(&r, 0, 0).turn);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(&r, 0, 0, 0), &r.err); /* unprefilled */
  /* An empty chunk fixes nothing. */
  rkv_prefill_args args = *rig_chunk(&r, 0, 0, 10, 10, 40);
  CHECK_STATUS(RKV_OK, rkv_prefill(r.cache, &args, NULL, &r.err), &r.err);
  r.prompt_q.data = NULL;
  CHECK_STATUS(RKV_OK, rkv_prefill(r.cache, &args, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rig_prefill(&r, 0, 0, 50), &r.err);
  rig_free(&r);
}

/* B27, B23, B16: layers in any order, each with its own length; positions are true positions. */
static void test_layers_are_apart(void) {
  rig a, b;
  setup(&a);
  setup(&b);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(a.cache, 0, NULL, &a.err), &a.err);
  CHECK_STATUS(RKV_OK, rig_prefill(&a, 0, 1, 150), &a.err); /* the last layer first */
  CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 1, 150), &a.err);
  CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 1, 151), &a.err);
  CHECK_INT(0, rig_stats(&a, 0, 0).turn);
  CHECK_STATUS(RKV_OK, rig_prefill(&a, 0, 0, 150), &a.err);
  CHECK_INT(150, rig_stats(&a, 0, 0).position);
  CHECK_INT(152, rig_stats(&a, 0, 1).position);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(&a, 0, 0, 152), &a.err); /* fails in one layer alone */
  CHECK_INT(150, rig_stats(&a, 0, 0).position);
  CHECK_INT(152, rig_stats(&a, 0, 1).position);
  CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, 150), &a.err);
  CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, 151), &a.err);

  rig_start(&b, 0, 150); /* the usual order */
  for (int64_t p = 150; p < 152; ++p) {
    for (int32_t layer = 0; layer < 2; ++layer) {
      CHECK_STATUS(RKV_OK, rig_decode(&b, 0, layer, p), &b.err);
    }
  }
  CHECK(twins_agree(&a, &b));
  CHECK(twins_decode(&a, &b, 0, 0, 152) && twins_decode(&a, &b, 0, 1, 152));

  const rkv_sequence_stats s = rig_stats(&a, 0, 0);
  CHECK_INT(153, s.position);
  CHECK_INT(174, s.max_position);
  CHECK_INT(3, s.generated);
  CHECK(s.kept < 150);
  static int64_t kept[512];
  int64_t count = 0;
  CHECK_INT(RKV_OK, rkv_kept_positions(a.cache, 0, 0, NULL, kept, 512, &count, &a.err));
  CHECK_INT(s.kept + 3, count);
  for (int head = 0; head < 2; ++head) {
    const int64_t* line = kept + head * count;
    for (int64_t i = 1; i < count; ++i) CHECK(line[i] > line[i - 1]); /* B08 */
    for (int64_t i = 0; i < 3; ++i) CHECK_INT(150 + i, line[s.kept + i]);
  }
  rig_free(&a);
  rig_free(&b);
}

/* B26, B69: drafts rejected, rewinds before the next step, a step repeated: the bits of the
 * straight way, page bounds included. */
static void test_rewinds(void) {
  rig a, b;
  setup(&a);
  setup(&b);
  rig_start(&a, 0, 150);
  rig_start(&b, 0, 150);
  for (int64_t p = 150; p < 158; ++p) CHECK(twins_decode(&a, &b, 0, 0, p));
  a.seed = 99; /* other drafts than what is kept in the end */
  for (int64_t p = 158; p < 164; ++p) CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, p), &a.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_rewind(a.cache, 0, 162, NULL, &a.err), &a.err);
  CHECK_INT(162, rig_stats(&a, 0, 0).position);
  CHECK_STATUS(RKV_OK, rkv_sequence_rewind(a.cache, 0, 155, NULL, &a.err), &a.err); /* again */
  CHECK_INT(155, rig_stats(&a, 0, 0).position);
  CHECK_INT(150, rig_stats(&a, 0, 1).position); /* a shorter layer stays */
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_sequence_rewind(a.cache, 0, 156, NULL, &a.err), &a.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_rewind(a.cache, 0, 155, NULL, &a.err), &a.err);
  a.seed = 1;
  for (int64_t p = 155; p < 158; ++p) CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, p), &a.err);
  CHECK(twins_agree(&a, &b));
  for (int64_t p = 158; p < 162; ++p) CHECK(twins_decode(&a, &b, 0, 0, p));
  /* By the position of the next step alone. */
  a.seed = 7;
  for (int64_t p = 162; p < 170; ++p) CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, p), &a.err);
  a.seed = 1;
  CHECK(twins_decode(&a, &b, 0, 0, 162));
  CHECK(twins_agree(&a, &b));
  for (int again = 0; again < 3; ++again) CHECK(twins_decode(&a, &b, 0, 0, 162));
  /* To the prompt's end and on. */
  CHECK_STATUS(RKV_OK, rkv_sequence_rewind(a.cache, 0, 150, NULL, &a.err), &a.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_rewind(b.cache, 0, 150, NULL, &b.err), &b.err);
  CHECK_INT(0, rig_stats(&a, 0, 0).generated);
  for (int64_t p = 150; p < 174; ++p) CHECK(twins_decode(&a, &b, 0, 0, p));
  CHECK(twins_agree(&a, &b));
  rig_free(&a);
  rig_free(&b);
}

/* The same over many pages: a step far back, explicitly or by its position alone, takes away pages
 * that were complete long ago. */
static void test_far_rewinds(void) {
  for (int by_position = 0; by_position < 2; ++by_position) {
    rig a, b;
    rkv_cache_config config = small_config();
    config.max_new_tokens = 220;
    config.token_budget = 40;
    rig_init(&a, &config);
    config.num_threads = 3;
    rig_init(&b, &config);
    rig_start(&a, 0, 150);
    rig_start(&b, 0, 150);
    for (int64_t p = 150; p < 171; ++p) CHECK(twins_decode(&a, &b, 0, 0, p));
    a.seed = 8;
    for (int64_t p = 171; p < 370; ++p) CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, p), &a.err);
    CHECK(rig_stats(&a, 0, 0).pages > rig_stats(&b, 0, 0).pages + 40);
    a.seed = 1;
    if (!by_position) {
      CHECK_STATUS(RKV_OK, rkv_sequence_rewind(a.cache, 0, 171, NULL, &a.err), &a.err);
      CHECK(twins_agree(&a, &b));
    }
    for (int64_t p = 171; p < 370; ++p) {
      if (!CHECK(twins_decode(&a, &b, 0, 0, p))) break;
    }
    CHECK(twins_agree(&a, &b));
    rig_free(&a);
    rig_free(&b);
  }
}

/* A slot that was used serves the next sequence as a fresh one does. */
static void test_slot_is_reused(void) {
  rig a, b;
  setup(&a);
  setup(&b);
  a.seed = 5;
  rig_start(&a, 1, 150);
  for (int64_t p = 150; p < 170; ++p) CHECK_STATUS(RKV_OK, rig_decode(&a, 1, 0, p), &a.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(a.cache, 1, NULL, &a.err), &a.err);
  a.seed = 1;
  rig_start(&a, 1, 77);
  rig_start(&b, 1, 77);
  CHECK(twins_agree(&a, &b));
  for (int64_t p = 77; p < 101; ++p) CHECK(twins_decode(&a, &b, 1, 0, p));
  rig_free(&a);
  rig_free(&b);
}

/* Select then attend gives the bits of decode; attend and audit never append. */
static void test_select_then_attend(void) {
  rig a, b;
  setup(&a);
  setup(&b);
  rig_start(&a, 0, 150);
  rig_start(&b, 0, 150);
  for (int64_t p = 150; p < 174; ++p) {
    rkv_decode_args args = *rig_row(&a, 0, 0, p);
    args.out = NULL;
    args.lse = NULL;
    CHECK_STATUS(RKV_OK, rkv_decode_select(a.cache, &args, NULL, &a.err), &a.err);
    args.out = &a.result;
    args.lse = a.lse;
    args.k = args.v = NULL;
    CHECK_STATUS(RKV_OK, rkv_attend(a.cache, &args, NULL, &a.err), &a.err);
    CHECK_STATUS(RKV_OK, rig_decode(&b, 0, 0, p), &b.err);
    CHECK(rig_same_results(&a, &b, 1));
    rkv_audit_result audit = ZERO(rkv_audit_result);
    CHECK_STATUS(RKV_OK, rkv_audit(a.cache, &args, &audit, NULL, &a.err), &a.err);
    CHECK(twins_agree(&a, &b));
  }
  rig_free(&a);
  rig_free(&b);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_wrong_order);
  CASE(test_nothing_to_do);
  CASE(test_layers_are_apart);
  CASE(test_rewinds);
  CASE(test_far_rewinds);
  CASE(test_slot_is_reused);
  CASE(test_select_then_attend);
  return check_end();
}
