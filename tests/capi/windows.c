/* Chunked prefill: any chunking, the same bits (B22, B31); whose window rows wait, and for how many
 * sequences there is room (max_prefills). */
#include "twin.h"

static rkv_cache_config chunk_config(int32_t max_prefills) {
  rkv_cache_config config = small_config();
  config.max_prefills = max_prefills;
  return config;
}

static rkv_status chunk(rig* r, int32_t seq, int32_t layer, int64_t start, int64_t end, int64_t S) {
  rkv_prefill_args args = *rig_chunk(r, seq, layer, start, end, S);
  if (end != S) args.k = args.v = NULL; /* the last call alone carries them */
  return rkv_prefill(r->cache, &args, NULL, &r->err);
}

/* Chunks of every size up to past the window, rows repeated, early calls left out, layers mixed. */
static void test_any_chunking(void) {
  const rkv_cache_config config = chunk_config(1);
  rig whole;
  rig_init(&whole, &config);
  rig_start(&whole, 0, 150);
  CHECK_INT(8, rig_stats(&whole, 0, 0).window_rows);
  for (int64_t size = 1; size <= 12; ++size) {
    rig r;
    rig_init(&r, &config);
    CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
    const int64_t first = size % 2 ? 0 : 142; /* only the last 8 rows matter */
    for (int64_t start = first; start < 150; start += size) {
      const int64_t end = start + size < 150 ? start + size : 150;
      for (int32_t layer = 0; layer < 2; ++layer) {
        if (end < 150 && start % 3 == 0) { /* a repeat overwrites */
          r.seed = 77;
          CHECK_STATUS(RKV_OK, chunk(&r, 0, layer, start, end, 150), &r.err);
          r.seed = 1;
        }
        CHECK_STATUS(RKV_OK, chunk(&r, 0, layer, start, end, 150), &r.err);
      }
    }
    if (!CHECK(twins_agree(&whole, &r))) printf("chunks of %d\n", (int)size);
    CHECK(twins_decode(&whole, &r, 0, 0, 150));
    CHECK_STATUS(RKV_OK, rkv_sequence_rewind(whole.cache, 0, 150, NULL, &whole.err), &whole.err);
    rig_free(&r);
  }
  rig_free(&whole);
}

/* A gap ends the run that scores: only the unbroken rows at the end count, and the stats say so. */
static void test_unbroken_run(void) {
  const rkv_cache_config config = chunk_config(1);
  rig gap, tail;
  rig_init(&gap, &config);
  rig_init(&tail, &config);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(gap.cache, 0, NULL, &gap.err), &gap.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(tail.cache, 0, NULL, &tail.err), &tail.err);
  CHECK_STATUS(RKV_OK, chunk(&gap, 0, 0, 140, 144, 150), &gap.err);
  CHECK_STATUS(RKV_OK, chunk(&gap, 0, 0, 145, 147, 150), &gap.err); /* 144 is missing */
  CHECK_STATUS(RKV_OK, chunk(&gap, 0, 0, 147, 150, 150), &gap.err);
  CHECK_STATUS(RKV_OK, chunk(&tail, 0, 0, 145, 150, 150), &tail.err);
  CHECK_INT(5, rig_stats(&gap, 0, 0).window_rows);
  CHECK(twins_agree(&gap, &tail));
  /* No row at all at the end. */
  CHECK_STATUS(RKV_OK, chunk(&gap, 0, 1, 140, 149, 150), &gap.err);
  CHECK_STATUS(RKV_INVALID_ARGUMENT, chunk(&gap, 0, 1, 150, 150, 150), &gap.err);
  CHECK_TEXT(gap.err.text, "position 149");
  CHECK_STATUS(RKV_OK, chunk(&gap, 0, 1, 149, 150, 150), &gap.err);
  CHECK_INT(8, rig_stats(&gap, 0, 1).window_rows);
  rig_free(&gap);
  rig_free(&tail);
}

/* Every slot of the window taken: the next sequence is refused by name; close and the end of a
 * prompt give slots back; a prompt in one call, or one that keeps everything, needs none. */
static void test_window_slots(void) {
  const rkv_cache_config config = chunk_config(2);
  rig r, twin;
  rig_init(&r, &config);
  rig_init(&twin, &config);
  rig* both[] = {&r, &twin};
  for (int i = 0; i < 2; ++i) {
    for (int32_t seq = 0; seq < 3; ++seq) {
      CHECK_STATUS(RKV_OK, rkv_sequence_open(both[i]->cache, seq, NULL, &both[i]->err), NULL);
    }
    CHECK_STATUS(RKV_OK, chunk(both[i], 0, 0, 0, 145, 150), &both[i]->err);
    CHECK_STATUS(RKV_OK, chunk(both[i], 0, 1, 0, 145, 150), &both[i]->err); /* the same slot */
    CHECK_STATUS(RKV_OK, chunk(both[i], 1, 1, 0, 149, 150), &both[i]->err);
  }
  CHECK_STATUS(RKV_OUT_OF_CAPACITY, chunk(&r, 2, 0, 0, 149, 150), &r.err);
  CHECK_TEXT(r.err.text, "config.max_prefills is 2");
  CHECK(twins_agree(&r, &twin));
  CHECK_STATUS(RKV_OK, chunk(&r, 2, 0, 0, 100, 150), &r.err); /* none of these rows has to wait */
  CHECK_STATUS(RKV_OUT_OF_CAPACITY, chunk(&r, 2, 0, 100, 143, 150), &r.err);
  CHECK_STATUS(RKV_OK, chunk(&r, 2, 0, 0, 150, 150), &r.err); /* nor of a prompt in one call */
  CHECK_STATUS(RKV_OK, rkv_sequence_close(r.cache, 2, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 2, NULL, &r.err), &r.err);
  for (int64_t start = 0; start < 20; start += 5) { /* nor of one that is kept whole */
    CHECK_STATUS(RKV_OK, chunk(&r, 2, 0, start, start + 5, 20), &r.err);
  }
  CHECK_INT(20, rig_stats(&r, 2, 0).kept);
  CHECK_INT(0, rig_stats(&r, 2, 0).window_rows);
  CHECK_STATUS(RKV_OK, rkv_sequence_close(r.cache, 2, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 2, NULL, &r.err), &r.err);

  /* One layer of two done: the slot is still held. Both: given back. */
  CHECK_STATUS(RKV_OK, chunk(&r, 0, 0, 145, 150, 150), &r.err);
  CHECK_STATUS(RKV_OUT_OF_CAPACITY, chunk(&r, 2, 0, 0, 149, 150), &r.err);
  CHECK_STATUS(RKV_OK, chunk(&r, 0, 1, 145, 150, 150), &r.err);
  CHECK_STATUS(RKV_OK, chunk(&r, 2, 0, 0, 149, 150), &r.err);
  /* Taken again; close gives it back, and no row of the old prompt is left in it. */
  CHECK_STATUS(RKV_OK, rkv_sequence_close(r.cache, 1, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 1, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, chunk(&r, 1, 1, 144, 146, 150), &r.err);
  CHECK_STATUS(RKV_OK, chunk(&r, 1, 1, 148, 150, 150), &r.err);
  CHECK_INT(2, rig_stats(&r, 1, 1).window_rows);
  CHECK_STATUS(RKV_OK, chunk(&r, 2, 0, 149, 150, 150), &r.err);
  CHECK_INT(8, rig_stats(&r, 2, 0).window_rows);

  /* A sequence that shared the window with others keeps what it keeps alone. */
  for (int32_t layer = 0; layer < 2; ++layer) {
    CHECK_STATUS(RKV_OK, chunk(&twin, 0, layer, 142, 150, 150), &twin.err);
  }
  for (int64_t p = 150; p < 160; ++p) CHECK(twins_decode(&r, &twin, 0, 0, p));
  rig_free(&r);
  rig_free(&twin);
}

/* While a layer waits for its prompt's end it can be asked for its stats alone. */
static void test_half_way(void) {
  const rkv_cache_config config = chunk_config(1);
  rig r;
  rig_init(&r, &config);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, chunk(&r, 0, 0, 0, 149, 150), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rig_decode(&r, 0, 0, 150), &r.err);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_rewind(r.cache, 0, 150, NULL, &r.err), &r.err);
  int64_t count = 0;
  CHECK_STATUS(RKV_BAD_STATE, rkv_kept_positions(r.cache, 0, 0, NULL, NULL, 0, &count, &r.err),
               &r.err);
  const rkv_sequence_stats s = rig_stats(&r, 0, 0);
  CHECK(s.kept == 0 && s.generated == 0 && s.position == 0);
  rig_free(&r);
}

/* q NULL: where all is kept, or with key_as_query, which never stores rows. */
static void test_without_queries(void) {
  rkv_cache_config config = chunk_config(1);
  rig r, b;
  rig_init(&r, &config);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
  rkv_prefill_args args = *rig_chunk(&r, 0, 0, 0, 20, 20);
  args.q = NULL;
  CHECK_STATUS(RKV_OK, rkv_prefill(r.cache, &args, NULL, &r.err), &r.err);
  CHECK_INT(20, rig_stats(&r, 0, 0).kept);
  rig_free(&r);
  config.key_as_query = 1;
  rig_init(&r, &config);
  rig_init(&b, &config);
  CHECK_INT(0, r.memory.window_bytes);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 0, NULL, &r.err), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(b.cache, 0, NULL, &b.err), &b.err);
  args = *rig_chunk(&r, 0, 0, 0, 150, 150);
  args.q = NULL;
  CHECK_STATUS(RKV_OK, rkv_prefill(r.cache, &args, NULL, &r.err), &r.err);
  for (int64_t start = 0; start < 150;
       start += 50) { /* queries given all the same: not looked at */
    CHECK_STATUS(RKV_OK, chunk(&b, 0, 0, start, start + 50, 150), &b.err);
  }
  CHECK_INT(8, rig_stats(&r, 0, 0).window_rows);
  CHECK(twins_agree(&r, &b));
  CHECK(twins_decode(&r, &b, 0, 0, 150));
  rig_free(&r);
  rig_free(&b);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_any_chunking);
  CASE(test_unbroken_run);
  CASE(test_window_slots);
  CASE(test_half_way);
  CASE(test_without_queries);
  return check_end();
}
