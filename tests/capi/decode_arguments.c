/* Every argument of select, attend, decode and audit wrong in turn: status, text, nothing written,
 * and a cache that stays as it was (rule 6; B25, B28, B40, B76). */
#include "twin.h"

static rig a, b; /* b never sees a failing call */

/* Sequences 0 and 1 generate (0 has 5 tokens, 1 has none), 2 is open and not prefilled. */
static void setup(void) {
  rig* both[] = {&a, &b};
  const rkv_cache_config config = small_config();
  for (int i = 0; i < 2; ++i) {
    rig* r = both[i];
    rig_init(r, &config);
    rig_start(r, 0, 150);
    rig_start(r, 1, 90);
    for (int64_t p = 150; p < 155; ++p) CHECK_STATUS(RKV_OK, rig_decode(r, 0, 0, p), &r->err);
    CHECK_STATUS(RKV_OK, rkv_sequence_open(r->cache, 2, NULL, &r->err), &r->err);
  }
}

enum { SELECT = 1, ATTEND = 2, DECODE = 4, AUDIT = 8, ALL = 15, APPENDS = SELECT | DECODE };

/* Each of `calls` with the same arguments. Attend and audit look at stored rows alone, so they get
 * the arguments with the last stored position. */
static void failed(int calls, rkv_status want, const rkv_decode_args* args, const char* text,
                   int line) {
  for (int call = 1; call <= AUDIT; call <<= 1) {
    if ((calls & call) == 0) continue;
    rkv_audit_result audit, before;
    memset(&audit, 0x5A, sizeof audit);
    audit.struct_size = sizeof audit;
    before = audit;
    rkv_error* e = &a.err;
    const rkv_status got = call == SELECT   ? rkv_decode_select(a.cache, args, NULL, e)
                           : call == ATTEND ? rkv_attend(a.cache, args, NULL, e)
                           : call == DECODE ? rkv_decode(a.cache, args, NULL, e)
                                            : rkv_audit(a.cache, args, &audit, NULL, e);
    int good = CHECK_STATUS(want, got, e);
    good &= CHECK_INT(want, e->status);
    good &= CHECK_TEXT(e->text, text);
    good &= CHECK(rig_untouched(&a, 3));
    good &= CHECK(memcmp(&audit, &before, sizeof audit) == 0);
    good &= CHECK(twins_agree(&a, &b));
    if (!good) printf("line %d, call %d\n", line, call);
  }
  if (!CHECK(twins_decode(&a, &b, 0, 0, 154))) printf("line %d\n", line);
}

/* Three rows: sequence 0 at its last stored position, a padding row, sequence 1 at 90; one thing
 * changed. Sequence 1 has nothing stored there, so attend and audit get sequence 0 and padding. */
#define STEP(calls, want, saying, change)                                \
  do {                                                                   \
    for (int existing = 0; existing < 2; ++existing) {                   \
      const int which = (calls) & (existing ? ATTEND | AUDIT : APPENDS); \
      if (which == 0) continue;                                          \
      a.seq[0] = 0, a.seq[1] = -1, a.seq[2] = existing ? -1 : 1;         \
      a.positions[0] = 154, a.positions[1] = -77, a.positions[2] = 90;   \
      rkv_decode_args args = *rig_rows(&a, 0, 3);                        \
      rkv_tensor q = a.new_q, k = a.new_k, v = a.new_v, out = a.result;  \
      rkv_selection selection = a.selection;                             \
      args.q = &q, args.k = &k, args.v = &v, args.out = &out;            \
      args.selection = existing ? NULL : &selection;                     \
      change;                                                            \
      failed(which, want, &args, saying, __LINE__);                      \
    }                                                                    \
  } while (0)

static void* off_by(const void* p, int bytes) { return (void*)((uintptr_t)p + (uintptr_t)bytes); }

static void test_alignment(void) {
  STEP(ALL, RKV_INVALID_ARGUMENT, "aligned to 4 bytes", args.seq = off_by(args.seq, 2));
  STEP(ALL, RKV_INVALID_ARGUMENT, "aligned to 8 bytes", args.positions = off_by(args.positions, 4));
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.row_status is 0x",
       args.row_status = off_by(a.row_status, 1));
  STEP(ATTEND | DECODE, RKV_INVALID_ARGUMENT, "args.lse is 0x", args.lse = off_by(a.lse, 2));
}

static void test_fields(void) {
  STEP(ALL, RKV_INVALID_ARGUMENT, "layer is 2: it must lie in [0, 1]", args.layer = 2);
  STEP(ALL, RKV_INVALID_ARGUMENT, "layer is -1", args.layer = -1);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.rows is -1", args.rows = -1);
  STEP(ALL, RKV_OUT_OF_CAPACITY, "args.rows is 5: config.max_rows is 4", args.rows = 5);
  STEP(ALL, RKV_OUT_OF_CAPACITY, "args.rows is 2147483647", args.rows = INT32_MAX);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.attend_only is 2: it must be 0 or 1", args.attend_only = 2);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.attend_only is -1", args.attend_only = -1);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.seq is NULL", args.seq = NULL);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.positions is NULL", args.positions = NULL);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.q is NULL", args.q = NULL);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "args.k is NULL", args.k = NULL);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "args.v is NULL", args.v = NULL);
  STEP(ATTEND | DECODE, RKV_INVALID_ARGUMENT, "args.out is NULL", args.out = NULL);
  STEP(SELECT, RKV_INVALID_ARGUMENT, "args.selection is NULL", args.selection = NULL);
}

#define STEP_TENSOR(calls, t, heads)                                                               \
  do {                                                                                             \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".dtype is 0 (none): it must be 1 (F32)",         \
         t.dtype = 0);                                                                             \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".dtype is 3 (BF16)", t.dtype = 3);               \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".ndim is 2: it must be 3", t.ndim = 2);          \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".shape is [2, " heads ", 16]: it must be [3, ",  \
         t.shape[0] = 2);                                                                          \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".shape is [4, ", t.shape[0] = 4);                \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".shape is [3, 9, 16]", t.shape[1] = 9);          \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".shape is [3, " heads ", 8]", t.shape[2] = 8);   \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".shape is [-3, ", t.shape[0] = -3);              \
    STEP(calls, RKV_INVALID_ARGUMENT, "args." #t ".data is NULL: it must hold 3 rows",             \
         t.data = NULL);                                                                           \
    STEP(calls, RKV_INVALID_ARGUMENT, "aligned to 4 bytes", t.data = (char*)t.data + 3);           \
    STEP(calls, RKV_INVALID_ARGUMENT, "under 2^62 bytes", t.strides[0] = INT64_MIN);               \
    STEP(calls, RKV_INVALID_ARGUMENT, "under 2^62 bytes", t.strides[2] = INT64_MAX);               \
    STEP(calls, RKV_UNSUPPORTED, "args." #t ".reserved[1] is 1: it must be 0", t.reserved[1] = 1); \
  } while (0)

static void test_tensors(void) {
  STEP_TENSOR(ALL, q, "4");
  STEP_TENSOR(APPENDS, k, "2");
  STEP_TENSOR(APPENDS, v, "2");
  STEP_TENSOR(ATTEND | DECODE, out, "4");
  STEP(ATTEND | DECODE, RKV_INVALID_ARGUMENT, "args.out.strides[1] is 0", out.strides[1] = 0);
  STEP(ATTEND | DECODE, RKV_INVALID_ARGUMENT, "args.out.strides[2] is 0", out.strides[2] = 0);
}

static void test_selection_fields(void) {
  const int64_t least = a.memory.selection_capacity;
  char text[80];
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.space is 3", selection.space = 3);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.space is -1", selection.space = -1);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.indices is NULL", selection.indices = NULL);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.counts is NULL", selection.counts = NULL);
  snprintf(text, sizeof text, "selection.capacity is %" PRId64 ": ", least - 1);
  STEP(APPENDS, RKV_BUFFER_TOO_SMALL, text, selection.capacity = least - 1);
  snprintf(text, sizeof text, "rkv_memory.selection_capacity is %" PRId64, least);
  STEP(APPENDS, RKV_BUFFER_TOO_SMALL, text, selection.capacity = 0);
  STEP(APPENDS, RKV_BUFFER_TOO_SMALL, "selection.capacity is -1", selection.capacity = -1);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "6 lists of it must stay under 2^62 bytes",
       selection.capacity = INT64_MAX);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.capacity is 2305843009213693952",
       selection.capacity = INT64_C(1) << 61);
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.indices is 0x",
       selection.indices = off_by(selection.indices, 2));
  STEP(APPENDS, RKV_INVALID_ARGUMENT, "selection.counts is 0x",
       selection.counts = off_by(selection.counts, 1));
}

/* As attend and audit read one. */
#define READ(want, saying, change) \
  STEP(ATTEND | AUDIT, want, saying, (args.selection = &selection, change))

static void test_read_selection_fields(void) {
  READ(RKV_INVALID_ARGUMENT, "selection.space is 1: attention reads LIVE_ROW (0) alone",
       selection.space = RKV_SPACE_POSITION);
  READ(RKV_INVALID_ARGUMENT, "selection.space is 7", selection.space = 7);
  READ(RKV_INVALID_ARGUMENT, "selection.indices is NULL", selection.indices = NULL);
  READ(RKV_INVALID_ARGUMENT, "selection.counts is NULL", selection.counts = NULL);
  READ(RKV_BUFFER_TOO_SMALL, "selection.capacity is 1: ", selection.capacity = 1);
  /* The poison in it: no list that attention could follow (B40). */
  READ(RKV_INVALID_ARGUMENT, "selection.counts[0, 0] is 2139062143", selection.space = 0);
}

/* Ids and positions of the rows. */
static void test_rows(void) {
  STEP(ALL, RKV_BAD_STATE, "args.seq[0] is 3: it must be an open sequence in [0, 2]", a.seq[0] = 3);
  STEP(ALL, RKV_BAD_STATE, "args.seq[0] is -2", a.seq[0] = -2);
  STEP(ALL, RKV_BAD_STATE, "args.seq[2] is 2147483647", a.seq[2] = INT32_MAX);
  STEP(ALL, RKV_BAD_STATE, "args.seq[2] is -2147483648", a.seq[2] = INT32_MIN);
  STEP(ALL, RKV_BAD_STATE, "args.seq[2] is 2: layer 0 of it has not been prefilled", a.seq[2] = 2);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.positions[0] is 149: the prompt of sequence 0 ends at 150",
       a.positions[0] = 149);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.positions[0] is -1", a.positions[0] = -1);
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.positions[0] is -9223372036854775808",
       a.positions[0] = INT64_MIN);
  STEP(APPENDS, RKV_BAD_STATE, "args.positions[0] is 156: it leaves a gap", a.positions[0] = 156);
  STEP(APPENDS, RKV_BAD_STATE, "args.positions[2] is 91", a.positions[2] = 91);
  STEP(APPENDS, RKV_BAD_STATE, "goes on at 155", a.positions[0] = INT64_MAX);
  STEP(ATTEND | AUDIT, RKV_BAD_STATE, "args.positions[0] is 155: layer 0 of sequence 0 holds",
       a.positions[0] = 155);
  STEP(ATTEND | AUDIT, RKV_BAD_STATE, "positions below 155", a.positions[0] = INT64_MAX);
  /* Layer 1 has no generated rows. */
  STEP(ALL, RKV_BAD_STATE, "layer 1 of sequence 0", args.layer = 1);
}

/* Rows of one sequence: side by side, consecutive, within max_new. */
static void test_runs(void) {
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.seq[2] is 0: rows of one sequence must be adjacent",
       (a.seq[2] = 0, a.positions[2] = 155));
  STEP(ALL, RKV_INVALID_ARGUMENT,
       "args.positions[1] is 154: positions of one sequence must be consecutive",
       (a.seq[1] = 0, a.positions[1] = 154));
  STEP(ALL, RKV_INVALID_ARGUMENT, "the row before is at 154", (a.seq[1] = 0, a.positions[1] = 156));
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.positions[1] is 153", (a.seq[1] = 0, a.positions[1] = 153));
  STEP(ALL, RKV_INVALID_ARGUMENT, "args.positions[1] is -9223372036854775808",
       (a.seq[1] = 0, a.positions[1] = INT64_MIN));
  /* The second row of a run is refused: the first is not appended either. */
  STEP(APPENDS, RKV_BAD_STATE, "args.seq[2] is 2",
       (a.seq[1] = 0, a.positions[1] = 155, a.seq[2] = 2));
}

/* attend_only: rows of the layer whose K and V are shared must be stored. */
static void test_attend_only(void) {
  STEP(APPENDS, RKV_BAD_STATE,
       "args.positions[2] is 90: layer 0 of sequence 1 holds positions below",
       args.attend_only = 1);
  STEP(APPENDS, RKV_BAD_STATE, "args.positions[0] is 155",
       (args.attend_only = 1, a.positions[0] = 155));
}

/* B28: a step beyond prompt + max_new is an error that names the end, at once and for good. */
static void test_capacity(void) {
  rig* both[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    rig* r = both[i];
    for (int64_t p = 90; p < 114; ++p) CHECK_STATUS(RKV_OK, rig_decode(r, 1, 0, p), &r->err);
  }
  STEP(APPENDS, RKV_OUT_OF_CAPACITY,
       "args.positions[2] is 114: sequence 1 may reach prompt + max_new_tokens = 114",
       a.positions[2] = 114);
  STEP(APPENDS, RKV_OUT_OF_CAPACITY, "args.positions[1] is 114",
       (a.seq[0] = 1, a.seq[1] = 1, a.positions[0] = 113, a.positions[1] = 114, a.seq[2] = -1));
  for (int i = 0; i < 100; ++i) {
    CHECK_STATUS(RKV_OUT_OF_CAPACITY, rig_decode(&a, 1, 0, 114), &a.err);
  }
  CHECK(twins_agree(&a, &b));
  CHECK_INT(24, rig_stats(&a, 1, 0).generated);
  CHECK(twins_decode(&a, &b, 1, 0, 113));
}

/* The first refused row decides, all of them are marked, the others' entries stay. */
static void test_row_status(void) {
  a.seq[0] = 0, a.positions[0] = 154;
  a.seq[1] = 1, a.positions[1] = 10;
  a.seq[2] = 2, a.positions[2] = 0;
  a.seq[3] = -1;
  for (int i = 0; i < 4; ++i) a.row_status[i] = -9;
  rkv_decode_args args = *rig_rows(&a, 0, 4);
  args.row_status = a.row_status;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_decode(a.cache, &args, NULL, &a.err), &a.err);
  CHECK_TEXT(a.err.text, "args.positions[1] is 10");
  CHECK_INT(-9, a.row_status[0]);
  CHECK_INT(RKV_INVALID_ARGUMENT, a.row_status[1]);
  CHECK_INT(RKV_BAD_STATE, a.row_status[2]);
  CHECK_INT(-9, a.row_status[3]);
  CHECK(rig_untouched(&a, 4));
  CHECK(twins_agree(&a, &b));
  a.row_status[1] = a.row_status[2] = -9;
  a.seq[1] = a.seq[2] = -1;
  args = *rig_rows(&a, 0, 4);
  args.row_status = a.row_status;
  CHECK_STATUS(RKV_OK, rkv_decode(a.cache, &args, NULL, &a.err), &a.err);
  for (int i = 0; i < 4; ++i) CHECK_INT(-9, a.row_status[i]); /* nothing refused, nothing written */
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  setup();
  CASE(test_alignment);
  CASE(test_fields);
  CASE(test_tensors);
  CASE(test_selection_fields);
  CASE(test_read_selection_fields);
  CASE(test_rows);
  CASE(test_runs);
  CASE(test_attend_only);
  CASE(test_capacity);
  CASE(test_row_status);
  rig_free(&a);
  rig_free(&b);
  return check_end();
}
