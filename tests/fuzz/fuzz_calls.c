/* Fuzz entry: calls in any order with valid and invalid arguments, held to a model of lengths and
 * phases (B25, B26, B27, B28, B33, B69, B76). Now and then every sequence must give the bits of
 * one that came to its length the straight way. */
#include "input.h"
#include "model.h"

#include <math.h>

static rig r;
static model m;

/* Returns whether the call was to succeed, and did. */
static int expect(unsigned may, int certain, rkv_status got, const char* call) {
  if (!certain && got == RKV_OUT_OF_CAPACITY) return 0;
  const int fine = may ? got != RKV_OK && (may & MAY(got)) != 0 : got == RKV_OK;
  if (!CHECK(fine)) {
    printf("%s gave %s (allowed: mask %x): %s\n", call, rkv_status_name(got), may, r.err.text);
  }
  if (got != RKV_OK) CHECK(r.err.text[0] != '\0' && r.err.status == got);
  return fine && got == RKV_OK;
}

/* Mostly one that exists. */
static int32_t take_seq(input* in) {
  return (int32_t)(take(in, 0, 15) ? take(in, 0, m.config.max_sequences - 1) : take_wild(in));
}
static int32_t take_layer(input* in) {
  return (int32_t)(take(in, 0, 15) ? take(in, 0, m.config.layers - 1) : take_wild(in));
}
static const model_slot* slot_at(int32_t seq) {
  return seq >= 0 && seq < m.config.max_sequences ? &m.slots[seq] : NULL;
}

static void do_open(input* in) {
  const int32_t seq = take_seq(in);
  rkv_sequence_options options = ZERO(rkv_sequence_options);
  const int64_t kind = take(in, 0, 3);
  if (kind == 1) options.max_new_tokens = take(in, 1, 20);
  if (kind == 2) options.token_budget = take(in, 1, 60);
  const model_slot* old = slot_at(seq);
  const unsigned may = old == NULL ? MAY(RKV_INVALID_ARGUMENT) : old->open ? MAY(RKV_BAD_STATE) : 0;
  const rkv_status got = rkv_sequence_open(r.cache, seq, kind ? &options : NULL, &r.err);
  if (!expect(may, 1, got, "open")) return;
  m.slots[seq] = (model_slot){.open = 1, .with_options = kind != 0, .options = options};
  m.slots[seq].max_new = kind == 1 ? options.max_new_tokens : m.config.max_new_tokens;
}

static void do_close(input* in) {
  const int32_t seq = take_seq(in);
  const rkv_status got = rkv_sequence_close(r.cache, seq, NULL, &r.err);
  if (expect(model_seq(&m, seq), 1, got, "close")) memset(&m.slots[seq], 0, sizeof m.slots[seq]);
}

static void do_rewind(input* in) {
  const int32_t seq = take_seq(in);
  const model_slot* s = slot_at(seq);
  const int64_t position = s && take(in, 0, 7) ? s->prompt + take(in, 0, 9) - 1 : take_wild(in);
  const unsigned may = model_rewind(&m, seq, position, 0);
  const rkv_status got = rkv_sequence_rewind(r.cache, seq, position, NULL, &r.err);
  if (expect(may, 1, got, "rewind")) model_rewind(&m, seq, position, 1);
}

static void do_prefill(input* in) {
  const int32_t seq = take_seq(in), layer = take_layer(in);
  const model_slot* s = slot_at(seq);
  int64_t S = s && s->planned ? s->prompt : take(in, 0, m.config.max_prompt_tokens);
  int64_t start = 0, end = S;
  switch (take(in, 0, 3)) {
    case 0: start = take(in, 0, S), end = take(in, start, S); break;
    case 1: start = S > 12 ? S - take(in, 0, 12) : 0, end = take(in, start, S); break;
    case 2: start = S > 12 ? S - take(in, 0, 12) : 0; break;
    default: break;
  }
  rkv_prefill_args args = *rig_chunk(&r, seq, layer, start, end, S);
  if (take(in, 0, 11) == 0) args.prompt_tokens = take_wild(in);
  if (take(in, 0, 11) == 0) args.start = take_wild(in);
  /* K and V hold S rows: where the call says another length they cannot fit. */
  unsigned wrong_shape = args.prompt_tokens != S ? MAY(RKV_INVALID_ARGUMENT) : 0;
  int certain = 1;
  unsigned may = model_prefill(&m, &args, end - start, &certain, 0);
  const int last = args.prompt_tokens > 0 && args.start == args.prompt_tokens - (end - start);
  if (wrong_shape && last && !may) may = wrong_shape | (certain ? 0 : MAY(RKV_OUT_OF_CAPACITY));
  const rkv_status got = rkv_prefill(r.cache, &args, NULL, &r.err);
  if (expect(may, certain, got, "prefill")) model_prefill(&m, &args, end - start, &certain, 1);
}

enum { SELECT, ATTEND_ALL, ATTEND_LIST, DECODE, AUDIT, STEP_KINDS };

static void do_step(input* in) {
  const int kind = (int)take(in, 0, STEP_KINDS - 1), attend_only = take(in, 0, 5) == 0;
  const int32_t layer = take_layer(in), rows = (int32_t)take(in, 0, m.config.max_rows);
  const int appends = (kind == SELECT || kind == DECODE) && !attend_only;
  int32_t seq = take_seq(in);
  for (int32_t i = 0; i < rows; ++i) {
    const int64_t way = take(in, 0, 7);
    if (i > 0 && way < 4) { /* the row goes on */
      r.seq[i] = r.seq[i - 1];
      r.positions[i] = r.positions[i - 1] < INT64_MAX ? r.positions[i - 1] + 1 : 0;
      continue;
    }
    if (i > 0) seq = take_seq(in);
    const model_slot* s = slot_at(seq);
    const int64_t back = appends ? take(in, 0, 9) - 6 : take(in, 1, 4); /* mostly the next one */
    r.seq[i] = way == 7 ? -1 : seq;
    r.positions[i] = s && layer >= 0 && layer < m.config.layers && way != 6
                         ? s->prompt + s->layers[layer].generated - (back > 0 ? back : 0)
                         : take_wild(in);
  }
  rkv_decode_args args = *rig_rows(&r, layer, rows);
  args.attend_only = attend_only;
  if (kind == ATTEND_ALL || kind == AUDIT) args.selection = NULL;
  if (take(in, 0, 31) == 0) args.rows = (int32_t)take_wild(in) | 8; /* too many or negative */
  unsigned may = model_rows(&m, &args, appends, 0);
  if (kind == ATTEND_LIST) {
    for (int32_t i = 0; i < rows * m.config.kv_heads; ++i) {
      r.selection.counts[i] = (int32_t)take(in, 0, 2);
      r.selection.indices[i * r.selection.capacity] = 0;
      r.selection.indices[i * r.selection.capacity + 1] = (int32_t)take(in, 1, 3);
    }
  }
  rkv_audit_result audit = ZERO(rkv_audit_result);
  rkv_status got = RKV_OK;
  switch (kind) {
    case SELECT: got = rkv_decode_select(r.cache, &args, NULL, &r.err); break;
    case DECODE: got = rkv_decode(r.cache, &args, NULL, &r.err); break;
    case AUDIT: got = rkv_audit(r.cache, &args, &audit, NULL, &r.err); break;
    default: got = rkv_attend(r.cache, &args, NULL, &r.err); break;
  }
  if (kind == ATTEND_LIST && may == 0 && got == RKV_INVALID_ARGUMENT) { /* fewer rows than asked */
    CHECK(strstr(r.err.text, "selection.") != NULL);
    return;
  }
  if (!expect(may, 1, got, "step")) return;
  model_rows(&m, &args, appends, 1);
  for (int32_t i = 0; i < rows && (kind == DECODE || kind == ATTEND_ALL); ++i) {
    for (int32_t h = 0; h < m.config.q_heads; ++h) {
      const float lse = r.lse[i * m.config.q_heads + h];
      const float out = r.out[(i * m.config.q_heads + h) * rig_head_dim_v(&r)];
      CHECK(r.seq[i] == -1 ? lse == -INFINITY && out == 0 : isfinite(lse) && isfinite(out));
    }
  }
}

/* The sequence once more in a fresh cache: its last step must give the same bits. */
static void check_straight_way(int32_t seq, int32_t layer) {
  static rig fresh;
  const model_slot* s = &m.slots[seq];
  const model_layer* l = &s->layers[layer];
  if (l->phase != READY || l->generated == 0) return;
  rig_init(&fresh, &m.config);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(fresh.cache, seq, &s->options, &fresh.err), &fresh.err);
  const int64_t start = l->window_rows ? s->prompt - l->window_rows : 0;
  const rkv_prefill_args* args = rig_chunk(&fresh, seq, layer, start, s->prompt, s->prompt);
  CHECK_STATUS(RKV_OK, rkv_prefill(fresh.cache, args, NULL, &fresh.err), &fresh.err);
  for (int64_t i = 0; i < l->generated; ++i) {
    CHECK_STATUS(RKV_OK, rig_decode(&fresh, seq, layer, s->prompt + i), &fresh.err);
  }
  CHECK_STATUS(RKV_OK, rig_decode(&r, seq, layer, s->prompt + l->generated - 1), &r.err);
  CHECK(rig_same_results(&r, &fresh, 1));
  rig_free(&fresh);
}

static void check_all_the_straight_way(void) {
  for (int32_t seq = 0; seq < m.config.max_sequences; ++seq) {
    for (int32_t layer = 0; layer < m.config.layers; ++layer) check_straight_way(seq, layer);
  }
}

static rkv_cache_config take_config(input* in) {
  rkv_cache_config c = small_config();
  c.max_sequences = (int32_t)take(in, 1, MAX_SLOTS);
  c.layers = (int32_t)take(in, 1, MAX_LAYERS);
  c.max_rows = (int32_t)take(in, 1, 4);
  c.max_prefills = (int32_t)take(in, 1, c.max_sequences);
  c.max_prompt_tokens = take(in, 20, 120);
  c.max_new_tokens = take(in, 0, 20);
  c.token_budget = take(in, 4, 60);
  c.page_size = (int32_t)take(in, 0, 3);
  c.selection_unit = (int32_t)take(in, 0, 1);
  c.dense_layers[0] = take(in, 0, 3) ? 0 : 1;
  c.num_threads = take(in, 0, 15) ? 1 : 3;
  c.window_size = WINDOW;
  return c;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  input in = {data, size};
  memset(&m, 0, sizeof m);
  m.config = take_config(&in);
  rig_init(&r, &m.config);
  for (int calls = 0; in.left > 0 && !atomic_load(&check_run.failed); ++calls) {
    switch (take(&in, 0, 9)) {
      case 0: do_open(&in); break;
      case 1: take(&in, 0, 7) ? do_open(&in) : do_close(&in); break;
      case 2: take(&in, 0, 3) ? do_step(&in) : do_rewind(&in); break;
      case 3:
      case 4: do_prefill(&in); break;
      default: do_step(&in); break;
    }
    model_check(&m, &r);
    if (calls % 32 == 31) check_all_the_straight_way();
  }
  check_all_the_straight_way();
  rig_free(&r);
  return end_of_input();
}
