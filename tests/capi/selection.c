/* Selections: spaces, lists given by the caller (B40), padding rows (B57, B48), several rows of one
 * sequence, layers that share K and V. */
#include "twin.h"

#include <math.h>

static const float kNegInf = -INFINITY;

static int32_t threads; /* of every cache here: with 3, attention is split along rows */

static void setup(rig* r, int64_t S, int steps) {
  rkv_cache_config config = small_config();
  config.num_threads = threads;
  rig_init(r, &config);
  rig_start(r, 0, S);
  for (int i = 0; i < steps; ++i) CHECK_STATUS(RKV_OK, rig_decode(r, 0, 0, S + i), &r->err);
}

static const int32_t* list_of(const rig* r, int32_t row, int32_t head) {
  return r->selection.indices + (row * r->config.kv_heads + head) * r->selection.capacity;
}

/* Lists of every row and head: k rounded up to pages, ascending, within the live rows, -1 behind.
 */
static void check_lists(const rig* r, int32_t row, int64_t live, int64_t most) {
  for (int32_t head = 0; head < r->config.kv_heads; ++head) {
    const int32_t count = r->selection.counts[row * r->config.kv_heads + head];
    const int32_t* list = list_of(r, row, head);
    CHECK(count > 0 && count <= most);
    for (int32_t i = 0; i < count; ++i) {
      CHECK(list[i] >= 0 && list[i] < live && (i == 0 || list[i] > list[i - 1]));
    }
    for (int64_t i = count; i < r->selection.capacity; ++i) {
      if (!CHECK_INT(-1, list[i])) break;
    }
  }
}

static void test_live_rows_and_positions(void) {
  rig a, b;
  setup(&a, 150, 6);
  setup(&b, 150, 6);
  rkv_plan plan = ZERO(rkv_plan);
  rkv_sequence_stats s = ZERO(rkv_sequence_stats);
  s.plan = &plan;
  CHECK_STATUS(RKV_OK, rkv_stats(a.cache, 0, 0, NULL, &s, &a.err), &a.err);
  CHECK(!plan.dense && plan.page_size > 1);
  const int64_t most = (plan.top_k + plan.page_size - 1) / plan.page_size * plan.page_size;
  for (int64_t p = 156; p < 170; ++p) {
    CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, p), &a.err);
    const rkv_decode_args* args = rig_row(&b, 0, 0, p);
    b.selection.space = RKV_SPACE_POSITION;
    CHECK_STATUS(RKV_OK, rkv_decode(b.cache, args, NULL, &b.err), &b.err);
    const int64_t live = rig_stats(&a, 0, 0).kept + p - 149;
    check_lists(&a, 0, live, most);
    static int64_t kept[1024];
    int64_t count = 0;
    CHECK_INT(RKV_OK, rkv_kept_positions(a.cache, 0, 0, NULL, kept, 1024, &count, &a.err));
    CHECK_INT(live, count);
    for (int32_t head = 0; head < 2; ++head) {
      const int32_t n = a.selection.counts[head];
      CHECK_INT(n, b.selection.counts[head]);
      for (int32_t i = 0; i < n; ++i) {
        CHECK_INT(kept[head * count + list_of(&a, 0, head)[i]], list_of(&b, 0, head)[i]);
      }
      for (int64_t i = n; i < b.selection.capacity; ++i) CHECK_INT(-1, list_of(&b, 0, head)[i]);
    }
    CHECK(memcmp(a.out, b.out, sizeof(float) * 64) ==
          0); /* asking for positions changes no output */
  }
  rig_free(&a);
  rig_free(&b);
}

/* A larger capacity is a stride; without a selection the output is the same. */
static void test_capacity_is_a_stride(void) {
  rig a, b;
  setup(&a, 150, 2);
  setup(&b, 150, 2);
  enum { CAPACITY = 700 };
  static int32_t indices[2 * CAPACITY], counts[2];
  memset(indices, 0x7F, sizeof indices);
  CHECK_STATUS(RKV_OK, rig_decode(&a, 0, 0, 152), &a.err);
  rkv_decode_args args = *rig_row(&b, 0, 0, 152);
  rkv_selection wide = {
      .struct_size = sizeof wide, .indices = indices, .counts = counts, .capacity = CAPACITY};
  args.selection = &wide;
  CHECK_STATUS(RKV_OK, rkv_decode(b.cache, &args, NULL, &b.err), &b.err);
  for (int32_t head = 0; head < 2; ++head) {
    const int32_t n = a.selection.counts[head];
    CHECK_INT(n, counts[head]);
    CHECK(memcmp(indices + head * CAPACITY, list_of(&a, 0, head), (size_t)n * 4) == 0);
    for (int i = n; i < CAPACITY; ++i) CHECK_INT(-1, indices[head * CAPACITY + i]);
  }
  CHECK(memcmp(a.out, b.out, sizeof(float) * 64) == 0);
  args.selection = NULL;
  memset(b.out, 0xFF, sizeof(float) * 64);
  CHECK_STATUS(RKV_OK, rkv_decode(b.cache, &args, NULL, &b.err), &b.err);
  CHECK(memcmp(a.out, b.out, sizeof(float) * 64) == 0);
  rig_free(&a);
  rig_free(&b);
}

/* B40: lists that attention may not follow. */
static void test_bad_lists(void) {
  rig r;
  setup(&r, 150, 3);
  const rkv_sequence_stats s = rig_stats(&r, 0, 0);
  const int32_t live = (int32_t)(s.kept + s.generated);
  rkv_decode_args args = *rig_row(&r, 0, 0, 152);
  rkv_audit_result audit = ZERO(rkv_audit_result);
#define LIST(want, count0, ...)                                                     \
  do {                                                                              \
    const int32_t list[] = {__VA_ARGS__};                                           \
    memset(r.out, 0xFF, 64 * 4);                                                    \
    for (int head = 0; head < 2; ++head) {                                          \
      r.selection.counts[head] = (count0);                                          \
      memcpy(r.selection.indices + head * r.selection.capacity, list, sizeof list); \
    }                                                                               \
    CHECK_STATUS(want, rkv_attend(r.cache, &args, NULL, &r.err), &r.err);           \
    if ((want) != RKV_OK) CHECK_TEXT(r.err.text, "selection.");                     \
    if ((want) != RKV_OK) CHECK(bytes_are(r.out, 64 * 4, 0xFF));                    \
    CHECK_STATUS(want, rkv_audit(r.cache, &args, &audit, NULL, &r.err), &r.err);    \
  } while (0)
  LIST(RKV_OK, 3, 0, 5, live - 1);
  LIST(RKV_OK, 1, 0, INT32_MAX, -9); /* what lies behind the count is not looked at */
  LIST(RKV_INVALID_ARGUMENT, 3, 0, 5, live);
  LIST(RKV_INVALID_ARGUMENT, 3, -1, 5, 6);
  LIST(RKV_INVALID_ARGUMENT, 3, 0, 5, 5);
  LIST(RKV_INVALID_ARGUMENT, 3, 0, 6, 5);
  LIST(RKV_INVALID_ARGUMENT, 3, 0, 5, INT32_MAX);
  LIST(RKV_INVALID_ARGUMENT, 3, 0, INT32_MIN, 5);
  LIST(RKV_INVALID_ARGUMENT, -1, 0);
  LIST(RKV_INVALID_ARGUMENT, INT32_MIN, 0);
  LIST(RKV_INVALID_ARGUMENT, INT32_MAX, 0);
  LIST(RKV_INVALID_ARGUMENT, live + 1, 0);
  LIST(RKV_INVALID_ARGUMENT, (int32_t)r.selection.capacity + 1, 0);
  CHECK_TEXT(r.err.text, "selection.counts[0, 0] is ");
  /* Good in head 0, bad in head 1: both are named. */
  r.selection.counts[0] = 1, r.selection.counts[1] = 1;
  r.selection.indices[0] = 0, r.selection.indices[r.selection.capacity] = live;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_attend(r.cache, &args, NULL, &r.err), &r.err);
  CHECK_TEXT(r.err.text, "selection.indices[0, 1, 0] is ");
  rig_free(&r);
}

/* B48: a list of no rows gives output 0 and log-sum-exp -inf, over any poison. */
static void test_empty_list(void) {
  rig r;
  setup(&r, 150, 3);
  rkv_decode_args args = *rig_row(&r, 0, 0, 152);
  r.selection.counts[0] = 0, r.selection.counts[1] = 1;
  r.selection.indices[r.selection.capacity] = 3;
  CHECK_STATUS(RKV_OK, rkv_attend(r.cache, &args, NULL, &r.err), &r.err);
  CHECK(bytes_are(r.out, 2 * 16 * 4, 0)); /* the two query heads of KV head 0 */
  CHECK(r.lse[0] == kNegInf && r.lse[1] == kNegInf);
  CHECK(isfinite(r.lse[2]) && isfinite(r.lse[3]));
  for (int i = 32; i < 64; ++i) CHECK(isfinite(r.out[i]));
  rig_free(&r);
}

/* B57: padding rows among real ones are zeroed and change nothing else; all of them padding too. */
static void test_padding_rows(void) {
  rig a, b;
  setup(&a, 150, 3);
  setup(&b, 150, 3);
  a.seq[0] = a.seq[2] = a.seq[3] = -1;
  a.seq[1] = 0;
  a.positions[0] = INT64_MIN, a.positions[1] = 153, a.positions[2] = 0, a.positions[3] = INT64_MAX;
  const rkv_decode_args* args = rig_rows(&a, 0, 4);
  const int64_t block = 2 * a.selection.capacity;
  for (int64_t i = 0; i < 64; ++i) {
    a.step_q[i] = a.step_k[i % 32] = a.step_v[i % 32] = NAN; /* row 0 */
  }
  CHECK_STATUS(RKV_OK, rkv_decode(a.cache, args, NULL, &a.err), &a.err);
  CHECK_STATUS(RKV_OK, rig_decode(&b, 0, 0, 153), &b.err);
  CHECK(memcmp(a.out + 64, b.out, 64 * 4) == 0);
  CHECK(memcmp(a.selection.indices + block, b.selection.indices, (size_t)block * 4) == 0);
  for (int row = 0; row < 4; ++row) {
    if (row == 1) continue;
    CHECK(bytes_are(a.out + row * 64, 64 * 4, 0));
    for (int head = 0; head < 4; ++head) CHECK(a.lse[row * 4 + head] == kNegInf);
    CHECK_INT(0, a.selection.counts[row * 2]);
    CHECK_INT(0, a.selection.counts[row * 2 + 1]);
    CHECK(bytes_are(a.selection.indices + row * block, block * 4, 0xFF));
  }
  CHECK(twins_agree(&a, &b));
  for (int row = 0; row < 4; ++row) a.seq[row] = -1;
  for (int call = 0; call < 3; ++call) { /* warming up: all padding */
    args = rig_rows(&a, 1, 4);
    if (call == 0) CHECK_STATUS(RKV_OK, rkv_decode(a.cache, args, NULL, &a.err), &a.err);
    if (call == 1) CHECK_STATUS(RKV_OK, rkv_decode_select(a.cache, args, NULL, &a.err), &a.err);
    if (call == 2) CHECK_STATUS(RKV_OK, rkv_attend(a.cache, args, NULL, &a.err), &a.err);
    if (call != 1) CHECK(bytes_are(a.out, 4 * 64 * 4, 0));
    if (call == 1) CHECK(bytes_are(a.out, 4 * 64 * 4, 0xFF));
    if (call != 2) CHECK_INT(0, a.selection.counts[7]);
    if (call == 2) CHECK(bytes_are(a.selection.counts, 8 * 4, 0x7F)); /* attend only reads lists */
    if (call == 2) CHECK(bytes_are(a.selection.indices, 4 * block * 4, 0x7F));
  }
  CHECK(twins_agree(&a, &b));
  CHECK(twins_decode(&a, &b, 0, 0, 154));
  rig_free(&a);
  rig_free(&b);
}

/* Rows of one sequence in one call give the bits of one call per row, also beside others, also when
 * they first drop rows; and a layer that shares K and V sees what its owner saw (attend_only). */
static void test_rows_of_one_sequence(void) {
  rig a, b;
  setup(&a, 150, 5);
  setup(&b, 150, 5);
  for (int64_t start = 153; start < 168; start += 2) { /* two rows are replaced, two are new */
    float out[4 * 64], lse[4 * 4];
    for (int i = 0; i < 4; ++i) a.seq[i] = 0, a.positions[i] = start + i;
    const rkv_decode_args* args = rig_rows(&a, 0, 4);
    CHECK_STATUS(RKV_OK, rkv_decode(a.cache, args, NULL, &a.err), &a.err);
    for (int i = 0; i < 4; ++i) {
      CHECK_STATUS(RKV_OK, rig_decode(&b, 0, 0, start + i), &b.err);
      CHECK(memcmp(a.out + i * 64, b.out, 64 * 4) == 0);
      CHECK(memcmp(a.lse + i * 4, b.lse, 4 * 4) == 0);
      CHECK(memcmp(list_of(&a, i, 0), b.selection.indices, (size_t)b.selection.capacity * 8) == 0);
      /* The sharing layer's step right behind its owner's. */
      rkv_decode_args sharing = b.step;
      memcpy(out, b.out, 64 * 4);
      memset(b.out, 0xFF, 64 * 4);
      sharing.attend_only = 1;
      sharing.k = sharing.v = NULL;
      CHECK_STATUS(RKV_OK, rkv_decode(b.cache, &sharing, NULL, &b.err), &b.err);
      CHECK(memcmp(out, b.out, 64 * 4) == 0);
    }
    CHECK(twins_agree(&a, &b));
    /* All four rows of it in one call: no row sees later rows, nor page bounds made from them. */
    memcpy(out, a.out, sizeof out);
    memcpy(lse, a.lse, sizeof lse);
    static int32_t lists[4 * 2 * 1024];
    const size_t bytes = (size_t)(8 * a.selection.capacity) * 4;
    REQUIRE(bytes <= sizeof lists);
    memcpy(lists, a.selection.indices, bytes);
    for (int i = 0; i < 4; ++i) a.seq[i] = 0, a.positions[i] = start + i;
    rkv_decode_args sharing = *rig_rows(&a, 0, 4);
    sharing.attend_only = 1;
    CHECK_STATUS(RKV_OK, rkv_decode(a.cache, &sharing, NULL, &a.err), &a.err);
    CHECK(memcmp(out, a.out, sizeof out) == 0);
    CHECK(memcmp(lse, a.lse, sizeof lse) == 0);
    CHECK(memcmp(lists, a.selection.indices, bytes) == 0);
    CHECK(twins_agree(&a, &b));
  }
  rig_free(&a);
  rig_free(&b);
}

/* The step of an older position seen again by a sharing layer: rows and page bounds of then,
 * although pages have been completed and moved since. */
static void test_old_steps_again(void) {
  enum { STEPS = 200 };
  static float out[STEPS][64];
  static int32_t lists[STEPS][2048], counts[STEPS][2];
  rig r;
  rkv_cache_config config = small_config();
  config.max_new_tokens = STEPS;
  config.token_budget = 40;
  config.num_threads = threads;
  rig_init(&r, &config);
  rig_start(&r, 0, 150);
  const size_t bytes = (size_t)(2 * r.selection.capacity) * 4;
  REQUIRE(bytes <= sizeof lists[0]);
  for (int i = 0; i < STEPS; ++i) {
    CHECK_STATUS(RKV_OK, rig_decode(&r, 0, 0, 150 + i), &r.err);
    memcpy(out[i], r.out, sizeof out[i]);
    memcpy(lists[i], r.selection.indices, bytes);
    memcpy(counts[i], r.selection.counts, sizeof counts[i]);
  }
  CHECK(rig_stats(&r, 0, 0).pages > 60); /* beyond what waits to be moved */
  for (int i = STEPS - 1; i >= 0; --i) {
    rkv_decode_args args = *rig_row(&r, 0, 0, 150 + i);
    args.attend_only = 1;
    CHECK_STATUS(RKV_OK, rkv_decode(r.cache, &args, NULL, &r.err), &r.err);
    const int good = memcmp(out[i], r.out, sizeof out[i]) == 0 &&
                     memcmp(lists[i], r.selection.indices, bytes) == 0 &&
                     memcmp(counts[i], r.selection.counts, sizeof counts[i]) == 0;
    if (!CHECK(good)) {
      printf("position %d\n", 150 + i);
      break;
    }
  }
  CHECK_INT(350, rig_stats(&r, 0, 0).position);
  rig_free(&r);
}

/* Attention over all live rows up to the row's position: NULL and the list of all are the same. */
static void test_attend_to_all(void) {
  rig a;
  setup(&a, 60, 8);
  for (int64_t p = 60; p < 68; ++p) {
    rkv_decode_args args = *rig_row(&a, 0, 0, p);
    const int32_t live = (int32_t)(rig_stats(&a, 0, 0).kept + p - 59);
    if (live > a.selection.capacity) break;
    float out[64];
    args.selection = NULL;
    CHECK_STATUS(RKV_OK, rkv_attend(a.cache, &args, NULL, &a.err), &a.err);
    memcpy(out, a.out, sizeof out);
    memset(a.out, 0xFF, sizeof out);
    for (int head = 0; head < 2; ++head) {
      a.selection.counts[head] = live;
      for (int32_t i = 0; i < live; ++i) {
        a.selection.indices[head * a.selection.capacity + i] = i;
      }
    }
    args.selection = &a.selection;
    CHECK_STATUS(RKV_OK, rkv_attend(a.cache, &args, NULL, &a.err), &a.err);
    CHECK(memcmp(out, a.out, sizeof out) == 0);
  }
  rig_free(&a);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  for (threads = 1; threads <= 3; threads += 2) {
    CASE(test_live_rows_and_positions);
    CASE(test_capacity_is_a_stride);
    CASE(test_bad_lists);
    CASE(test_empty_list);
    CASE(test_padding_rows);
    CASE(test_rows_of_one_sequence);
    CASE(test_old_steps_again);
    CASE(test_attend_to_all);
  }
  return check_end();
}
