/* What a cache must look like from outside: lengths and phases, nothing of its numbers. */
#ifndef RKV_TESTS_FUZZ_MODEL_H
#define RKV_TESTS_FUZZ_MODEL_H

#include "../capi/rig.h"

enum { MAX_SLOTS = 3, MAX_LAYERS = 2, WINDOW = 8 };
enum { EMPTY, PREFILLING, READY };

/* Sets of statuses that a call may return; 0: it must succeed. */
#define MAY(status) (1u << (status))

typedef struct model_layer {
  int phase, holds; /* holds: window rows wait */
  int64_t kept, generated, window_rows;
  uint8_t marks[WINDOW]; /* rows S - WINDOW .. S - 1 that were seen */
} model_layer;

typedef struct model_slot {
  int open, planned, with_options;
  int64_t prompt, prompt_budget, max_new;
  rkv_sequence_options options;
  model_layer layers[MAX_LAYERS];
} model_slot;

typedef struct model {
  rkv_cache_config config;
  model_slot slots[MAX_SLOTS];
} model;

static inline unsigned model_seq(const model* m, int64_t seq) {
  if (seq < 0 || seq >= m->config.max_sequences) return MAY(RKV_INVALID_ARGUMENT);
  return m->slots[seq].open ? 0 : MAY(RKV_BAD_STATE);
}
static inline unsigned model_layer_index(const model* m, int64_t layer) {
  return layer < 0 || layer >= m->config.layers ? MAY(RKV_INVALID_ARGUMENT) : 0;
}

static inline int model_slot_holds(const model_slot* s) {
  return s->layers[0].holds || s->layers[1].holds;
}
static inline int model_windows_taken(const model* m) {
  int taken = 0;
  for (int i = 0; i < MAX_SLOTS; ++i) taken += model_slot_holds(&m->slots[i]);
  return taken;
}

static inline int model_dense_layer(const model* m, int32_t layer) {
  return (int)(m->config.dense_layers[0] >> layer & 1u);
}

/* `*certain` 0: the request may be more than the slot holds, which only the plan can tell. */
static inline unsigned model_prefill(model* m, const rkv_prefill_args* a, int64_t rows,
                                     int* certain, int apply) {
  *certain = 1;
  unsigned may = model_seq(m, a->seq) | model_layer_index(m, a->layer);
  if (may) return may;
  model_slot* s = &m->slots[a->seq];
  model_layer* l = &s->layers[a->layer];
  *certain = s->planned || !s->with_options;
  const int64_t S = a->prompt_tokens;
  if (l->phase == READY) may |= MAY(RKV_BAD_STATE);
  if (S < 0 || (s->planned && S != s->prompt)) may |= MAY(RKV_INVALID_ARGUMENT);
  if (S > m->config.max_prompt_tokens) may |= MAY(RKV_OUT_OF_CAPACITY);
  if (may || S == 0) return may;
  if (a->start < 0 || a->start > S || rows > S - a->start) return MAY(RKV_INVALID_ARGUMENT);
  int64_t budget = s->prompt_budget;
  if (!s->planned) {
    rkv_plan plan = ZERO(rkv_plan);
    CHECK_INT(RKV_OK, rkv_plan_make(&m->config, &s->options, S, &plan, NULL));
    budget = plan.prompt_budget;
  }
  const int64_t keep = model_dense_layer(m, a->layer) || budget > S ? S : budget;
  const int scores = keep < S, last = a->start + rows == S;
  const int64_t base = S - WINDOW;
  int64_t window = 0;
  if (last && scores) {
    window = rows < WINDOW ? rows : WINDOW;
    for (int64_t at = a->start - 1; at >= base && l->marks[at - base]; --at) ++window;
    if (window == 0) return MAY(RKV_INVALID_ARGUMENT);
  }
  if (!last && rows == 0) return 0;
  const int waits = !last && scores && a->start + rows > base;
  if (waits && !model_slot_holds(s) && model_windows_taken(m) == m->config.max_prefills) {
    return MAY(RKV_OUT_OF_CAPACITY);
  }
  if (!apply) return 0;
  s->planned = 1;
  s->prompt = S;
  s->prompt_budget = budget;
  l->phase = last ? READY : PREFILLING;
  if (last) {
    *l = (model_layer){.phase = READY, .kept = keep, .window_rows = window};
  } else if (waits) {
    l->holds = 1;
    for (int64_t at = a->start; at < a->start + rows; ++at) {
      if (at >= base) l->marks[at - base] = 1;
    }
  }
  return 0;
}

/* Rows of select, attend, decode, audit. `appends`: whether rows are added. */
static inline unsigned model_rows(model* m, const rkv_decode_args* a, int appends, int apply) {
  unsigned may = model_layer_index(m, a->layer);
  if (a->rows > m->config.max_rows) may |= MAY(RKV_OUT_OF_CAPACITY);
  if (a->rows < 0) may |= MAY(RKV_INVALID_ARGUMENT);
  if (may) return may;
  int64_t length = 0;
  for (int32_t i = 0; i < a->rows; ++i) {
    const int32_t seq = a->seq[i];
    const int64_t position = a->positions[i];
    if (seq == -1) continue;
    if (model_seq(m, seq) || m->slots[seq].layers[a->layer].phase != READY) {
      may |= MAY(RKV_BAD_STATE);
    }
    const int follows = i > 0 && a->seq[i - 1] == seq;
    if (follows && (position == INT64_MIN || position - 1 != a->positions[i - 1]))
      may |= MAY(RKV_INVALID_ARGUMENT);
    for (int32_t j = 0; j < i - 1; ++j) {
      if (a->seq[j] == seq && !follows) may |= MAY(RKV_INVALID_ARGUMENT);
    }
    if (seq < 0 || seq >= m->config.max_sequences) continue;
    const model_slot* s = &m->slots[seq];
    const model_layer* l = &s->layers[a->layer];
    if (l->phase != READY) continue;
    if (!follows) length = s->prompt + l->generated;
    if (position < s->prompt) may |= MAY(RKV_INVALID_ARGUMENT);
    if (!appends && position >= length) may |= MAY(RKV_BAD_STATE);
    if (appends && position > length) may |= MAY(RKV_BAD_STATE);
    if (appends && position >= s->prompt + s->max_new) may |= MAY(RKV_OUT_OF_CAPACITY);
    if (appends && position < INT64_MAX) length = position + 1;
  }
  for (int32_t i = 0; apply && !may && appends && i < a->rows; ++i) {
    if (a->seq[i] == -1) continue;
    model_slot* s = &m->slots[a->seq[i]];
    s->layers[a->layer].generated = a->positions[i] + 1 - s->prompt;
  }
  return may;
}

static inline unsigned model_rewind(model* m, int64_t seq, int64_t position, int apply) {
  const unsigned may = model_seq(m, seq);
  if (may) return may;
  model_slot* s = &m->slots[seq];
  int64_t longest = -1;
  for (int i = 0; i < MAX_LAYERS; ++i) {
    if (s->layers[i].phase == READY && s->layers[i].generated > longest) {
      longest = s->layers[i].generated;
    }
  }
  if (longest < 0) return MAY(RKV_BAD_STATE);
  if (position < s->prompt || position > s->prompt + longest) return MAY(RKV_INVALID_ARGUMENT);
  for (int i = 0; apply && i < MAX_LAYERS; ++i) {
    model_layer* l = &s->layers[i];
    if (l->phase == READY && l->generated > position - s->prompt) {
      l->generated = position - s->prompt;
    }
  }
  return 0;
}

/* The library's stats against the model's, for every layer of every slot. */
static inline void model_check(const model* m, rig* r) {
  for (int32_t seq = 0; seq < m->config.max_sequences; ++seq) {
    for (int32_t layer = 0; layer < m->config.layers; ++layer) {
      const model_slot* s = &m->slots[seq];
      const model_layer* l = &s->layers[layer];
      rkv_sequence_stats stats = ZERO(rkv_sequence_stats);
      const rkv_status status = rkv_stats(r->cache, seq, layer, NULL, &stats, &r->err);
      CHECK_STATUS(s->open ? RKV_OK : RKV_BAD_STATE, status, &r->err);
      if (!s->open) continue;
      CHECK_INT(l->phase == EMPTY ? 0 : 1, stats.turn);
      if (l->phase != READY) continue;
      CHECK_INT(l->kept, stats.kept);
      CHECK_INT(l->generated, stats.generated);
      CHECK_INT(s->prompt, stats.prompt);
      CHECK_INT(s->prompt + l->generated, stats.position);
      CHECK_INT(s->prompt + s->max_new, stats.max_position);
      CHECK_INT(l->window_rows, stats.window_rows);
    }
  }
}

#endif
