/* A small F32 cache with everything its calls need. The data of every row is a function of (seed,
 * sequence, layer, position), so that two rigs given the same calls hold the same bits. */
#ifndef RKV_TESTS_RIG_H
#define RKV_TESTS_RIG_H

#include "guard.h"

typedef struct rig {
  rkv_cache_config config;
  rkv_memory memory;
  rkv_cache* cache;
  rkv_error err;
  uint64_t seed;
  /* The next prefill call: q [n, Hq, D], k and v of the whole prompt. */
  float *q, *k, *v;
  rkv_tensor prompt_q, prompt_k, prompt_v;
  rkv_prefill_args prefill;
  /* The next decode call, up to max_rows rows. */
  int32_t *seq, *row_status;
  int64_t* positions;
  float *step_q, *step_k, *step_v, *out, *lse;
  rkv_tensor new_q, new_k, new_v, result;
  rkv_selection selection;
  rkv_decode_args step;
} rig;

/* Two layers, three sequences; at S = 150 the plan evicts, has pages and is not dense. */
static inline rkv_cache_config small_config(void) {
  rkv_cache_config c = ZERO(rkv_cache_config);
  c.layers = 2;
  c.q_heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.kv_dtype = RKV_DTYPE_F32;
  c.max_sequences = 3;
  c.max_rows = 4;
  c.max_prompt_tokens = 150;
  c.max_new_tokens = 24;
  c.token_budget = 24;
  c.window_size = 8;
  c.kernel_size = 5;
  c.num_threads = 1;
  return c;
}

static inline void* must_calloc(int64_t n, size_t size) {
  void* p = calloc((size_t)(n > 0 ? n : 1), size);
  REQUIRE(p != NULL);
  return p;
}

static inline int32_t rig_head_dim_v(const rig* r) {
  return r->config.head_dim_v ? r->config.head_dim_v : r->config.head_dim;
}

static inline void rig_init(rig* r, const rkv_cache_config* config) {
  memset(r, 0, sizeof *r);
  r->config = *config;
  r->err = ZERO(rkv_error);
  r->memory = ZERO(rkv_memory);
  r->seed = 1;
  const int64_t dv = rig_head_dim_v(r), d = config->head_dim, s = config->max_prompt_tokens;
  const int64_t hq = config->q_heads, hkv = config->kv_heads;
  const int64_t rows =
      config->max_rows ? config->max_rows : (config->max_sequences ? config->max_sequences : 1);
  CHECK_STATUS(RKV_OK, rkv_cache_memory(config, &r->memory, &r->err), &r->err);
  CHECK_STATUS(RKV_OK, rkv_cache_create(config, NULL, &r->cache, &r->err), &r->err);
  REQUIRE(r->cache != NULL);
  r->q = must_calloc(s * hq * d, sizeof(float));
  r->k = must_calloc(s * hkv * d, sizeof(float));
  r->v = must_calloc(s * hkv * dv, sizeof(float));
  r->seq = must_calloc(rows, sizeof *r->seq);
  r->row_status = must_calloc(rows, sizeof *r->row_status);
  r->positions = must_calloc(rows, sizeof *r->positions);
  r->step_q = must_calloc(rows * hq * d, sizeof(float));
  r->step_k = must_calloc(rows * hkv * d, sizeof(float));
  r->step_v = must_calloc(rows * hkv * dv, sizeof(float));
  r->out = must_calloc(rows * hq * dv, sizeof(float));
  r->lse = must_calloc(rows * hq, sizeof(float));
  r->selection = ZERO(rkv_selection);
  r->selection.capacity = r->memory.selection_capacity;
  r->selection.indices = must_calloc(rows * hkv * r->selection.capacity, sizeof(int32_t));
  r->selection.counts = must_calloc(rows * hkv, sizeof(int32_t));
}

static inline void rig_free(rig* r) {
  rkv_cache_destroy(r->cache);
  void* all[] = {
      r->q,      r->k,      r->v,   r->seq, r->row_status,        r->positions,       r->step_q,
      r->step_k, r->step_v, r->out, r->lse, r->selection.indices, r->selection.counts};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) free(all[i]);
  memset(r, 0, sizeof *r);
}

static inline uint64_t rig_seed(const rig* r, int32_t seq, int32_t layer, int64_t position,
                                int what) {
  return mix(r->seed) ^ mix((uint64_t)seq << 48 ^ (uint64_t)layer << 40 ^ (uint64_t)what << 36 ^
                            (uint64_t)position);
}

/* Arguments of a call that brings query rows [start, end) of a prompt of S tokens. */
static inline const rkv_prefill_args* rig_chunk(rig* r, int32_t seq, int32_t layer, int64_t start,
                                                int64_t end, int64_t S) {
  const rkv_cache_config* c = &r->config;
  const int64_t dv = rig_head_dim_v(r), d = c->head_dim;
  for (int64_t i = start; i < end; ++i) {
    fill(r->q + (i - start) * c->q_heads * d, c->q_heads * d, rig_seed(r, seq, layer, i, 0));
  }
  for (int64_t i = 0; i < S; ++i) {
    fill(r->k + i * c->kv_heads * d, c->kv_heads * d, rig_seed(r, seq, layer, i, 1));
    fill(r->v + i * c->kv_heads * dv, c->kv_heads * dv, rig_seed(r, seq, layer, i, 2));
  }
  r->prompt_q = tensor(RKV_DTYPE_F32, r->q, end - start, c->q_heads, d);
  r->prompt_k = tensor(RKV_DTYPE_F32, r->k, S, c->kv_heads, d);
  r->prompt_v = tensor(RKV_DTYPE_F32, r->v, S, c->kv_heads, dv);
  r->prefill = ZERO(rkv_prefill_args);
  r->prefill.seq = seq;
  r->prefill.layer = layer;
  r->prefill.start = start;
  r->prefill.prompt_tokens = S;
  r->prefill.q = &r->prompt_q;
  r->prefill.k = &r->prompt_k;
  r->prefill.v = &r->prompt_v;
  return &r->prefill;
}

static inline rkv_status rig_prefill(rig* r, int32_t seq, int32_t layer, int64_t S) {
  return rkv_prefill(r->cache, rig_chunk(r, seq, layer, 0, S, S), NULL, &r->err);
}

/* Opens a sequence and prefills all its layers. */
static inline void rig_start(rig* r, int32_t seq, int64_t S) {
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r->cache, seq, NULL, &r->err), &r->err);
  for (int32_t layer = 0; layer < r->config.layers; ++layer) {
    CHECK_STATUS(RKV_OK, rig_prefill(r, seq, layer, S), &r->err);
  }
}

/* Arguments of a decode call of `rows` rows with the ids and positions in r->seq, r->positions.
 * Out, lse and selection are poisoned. */
static inline const rkv_decode_args* rig_rows(rig* r, int32_t layer, int32_t rows) {
  const rkv_cache_config* c = &r->config;
  const int64_t dv = rig_head_dim_v(r), d = c->head_dim;
  for (int32_t i = 0; i < rows; ++i) {
    const uint64_t at = (uint64_t)r->positions[i];
    fill(r->step_q + i * c->q_heads * d, c->q_heads * d,
         rig_seed(r, r->seq[i], layer, (int64_t)at, 0));
    fill(r->step_k + i * c->kv_heads * d, c->kv_heads * d,
         rig_seed(r, r->seq[i], layer, (int64_t)at, 1));
    fill(r->step_v + i * c->kv_heads * dv, c->kv_heads * dv,
         rig_seed(r, r->seq[i], layer, (int64_t)at, 2));
  }
  memset(r->out, 0xFF, (size_t)(rows * c->q_heads * dv) * sizeof(float));
  memset(r->lse, 0xFF, (size_t)(rows * c->q_heads) * sizeof(float));
  memset(r->selection.indices, 0x7F,
         (size_t)(rows * c->kv_heads * r->selection.capacity) * sizeof(int32_t));
  memset(r->selection.counts, 0x7F, (size_t)(rows * c->kv_heads) * sizeof(int32_t));
  r->new_q = tensor(RKV_DTYPE_F32, r->step_q, rows, c->q_heads, d);
  r->new_k = tensor(RKV_DTYPE_F32, r->step_k, rows, c->kv_heads, d);
  r->new_v = tensor(RKV_DTYPE_F32, r->step_v, rows, c->kv_heads, dv);
  r->result = tensor(RKV_DTYPE_F32, r->out, rows, c->q_heads, dv);
  r->step = ZERO(rkv_decode_args);
  r->step.layer = layer;
  r->step.rows = rows;
  r->step.seq = r->seq;
  r->step.positions = r->positions;
  r->step.q = &r->new_q;
  r->step.k = &r->new_k;
  r->step.v = &r->new_v;
  r->step.selection = &r->selection;
  r->step.out = &r->result;
  r->step.lse = r->lse;
  return &r->step;
}

/* Arguments of a decode call of one row. */
static inline const rkv_decode_args* rig_row(rig* r, int32_t seq, int32_t layer, int64_t position) {
  r->seq[0] = seq;
  r->positions[0] = position;
  return rig_rows(r, layer, 1);
}

static inline rkv_status rig_decode(rig* r, int32_t seq, int32_t layer, int64_t position) {
  return rkv_decode(r->cache, rig_row(r, seq, layer, position), NULL, &r->err);
}

static inline rkv_sequence_stats rig_stats(rig* r, int32_t seq, int32_t layer) {
  rkv_sequence_stats s = ZERO(rkv_sequence_stats);
  CHECK_STATUS(RKV_OK, rkv_stats(r->cache, seq, layer, NULL, &s, &r->err), &r->err);
  return s;
}

/* Whether two rigs that made the same last decode call of `rows` rows hold the same results. */
static inline int rig_same_results(const rig* a, const rig* b, int32_t rows) {
  const rkv_cache_config* c = &a->config;
  const size_t out = (size_t)(rows * c->q_heads * rig_head_dim_v(a)) * sizeof(float);
  const size_t lists = (size_t)(rows * c->kv_heads * a->selection.capacity) * sizeof(int32_t);
  return memcmp(a->out, b->out, out) == 0 &&
         memcmp(a->lse, b->lse, (size_t)(rows * c->q_heads) * sizeof(float)) == 0 &&
         memcmp(a->selection.indices, b->selection.indices, lists) == 0 &&
         memcmp(a->selection.counts, b->selection.counts,
                (size_t)(rows * c->kv_heads) * sizeof(int32_t)) == 0;
}

#endif
