/* Random configurations in buffers of exactly the size that was asked for, poisoned and guarded on
 * both sides; every caller buffer guarded too; and the bits of the same calls on one thread with
 * contiguous tensors and the library's own buffers (B01, B02, B04, B18, B19, B51, B56, B73). */
#include "plane.h"

enum { CONFIGS = CHECK_SANITIZER ? 40 : 150, STEPS = 10 };

static rkv_error err;
static uint64_t random_state;

static int64_t draw(int64_t low, int64_t high) { return pick(&random_state, low, high); }

static rkv_cache_config draw_config(void) {
  static const int32_t groups[] = {1, 1, 2, 3, 4, 5, 7, 8, 16, 71};
  rkv_cache_config c = ZERO(rkv_cache_config);
  c.layers = (int32_t)draw(1, 3);
  c.kv_heads = (int32_t)draw(1, 4);
  const int32_t group = groups[draw(0, 9)];
  c.q_heads = c.kv_heads * group;
  c.head_dim = (int32_t)draw(1, draw(0, 3) ? 12 : 32) * 8;
  if (draw(0, 2) == 0) c.head_dim_v = (int32_t)draw(1, 16) * 8;
  c.kv_dtype = (int32_t)draw(1, 3);
  if (draw(0, 2) == 0) c.query_dtype = (int32_t)draw(1, 3);
  c.max_sequences = (int32_t)draw(1, 3);
  c.max_rows = (int32_t)draw(1, 4);
  c.max_prefills = (int32_t)draw(0, 2);
  c.num_threads = (int32_t)draw(1, 4);
  c.max_prompt_tokens = draw(1, draw(0, 1) ? 60 : 700);
  c.max_new_tokens = draw(0, 24);
  if (draw(0, 1)) {
    c.token_budget = draw(1, 80);
  } else {
    c.compression_ratio = 1 + (double)draw(0, 400) / 10;
  }
  c.window_size = (int32_t)draw(0, 20);
  c.kernel_size = (int32_t)draw(0, 9) * 2 + 1;
  c.sinks = draw(0, 2) ? 0 : (int32_t)draw(1, 6);
  c.recent_tokens = draw(0, 2) ? 0 : (int32_t)draw(1, 9);
  const int64_t window = c.window_size ? c.window_size : 32;
  c.prompt_budget = draw(0, 3) ? 0 : window + c.sinks + draw(0, 200);
  c.top_k = draw(0, 3) ? 0 : draw(1, 100);
  c.page_size = draw(0, 2) ? 0 : (int32_t)draw(1, 12);
  c.num_channels = draw(0, 2) ? 0 : (int32_t)draw(1, c.head_dim);
  c.selection_unit = (int32_t)draw(0, 1);
  c.stage1_domain = (int32_t)draw(0, 1);
  c.selection_domain = (int32_t)draw(0, 1);
  c.pooling = (int32_t)draw(0, 1);
  c.temperature = (int32_t)draw(0, 1);
  c.key_as_query = draw(0, 4) == 0;
  c.logit_softcap = draw(0, 2) ? 0 : 20;
  c.softmax_scale = draw(0, 2) ? 0 : 0.2F;
  c.dense_layers[0] = draw(0, 2) ? 0 : (uint32_t)draw(0, (1 << c.layers) - 1);
  return c;
}

/* What one cache needs for the run; `guarded`: everything in exact, poisoned, guarded memory. */
typedef struct side {
  rkv_cache_config config;
  rkv_memory memory;
  rkv_cache* cache;
  int guarded;
  guard storage, workspace;
} side;

static void side_make(side* s, const rkv_cache_config* config, int guarded) {
  memset(s, 0, sizeof *s);
  s->config = *config;
  s->guarded = guarded;
  s->memory = ZERO(rkv_memory);
  CHECK_STATUS(RKV_OK, rkv_cache_memory(config, &s->memory, &err), &err);
  rkv_buffers buffers = ZERO(rkv_buffers);
  if (guarded) {
    s->storage = guard_make(s->memory.storage_bytes, s->memory.alignment);
    s->workspace = guard_make(s->memory.workspace_bytes, s->memory.alignment);
    buffers.storage = s->storage.data;
    buffers.storage_bytes = s->memory.storage_bytes;
    buffers.workspace = s->workspace.data;
    buffers.workspace_bytes = s->memory.workspace_bytes;
  }
  CHECK_STATUS(RKV_OK, rkv_cache_create(config, guarded ? &buffers : NULL, &s->cache, &err), &err);
  REQUIRE(s->cache != NULL);
}

static void side_free(side* s) {
  rkv_cache_destroy(s->cache);
  if (!s->guarded) return;
  CHECK(guard_intact(&s->storage));
  CHECK(guard_intact(&s->workspace));
  guard_free(&s->storage);
  guard_free(&s->workspace);
}

static int32_t query_dtype(const rkv_cache_config* c) {
  return c->query_dtype ? c->query_dtype : c->kv_dtype;
}
static int32_t value_dim(const rkv_cache_config* c) {
  return c->head_dim_v ? c->head_dim_v : c->head_dim;
}
static int kind_for(const side* s) { return s->guarded ? (int)draw(0, PLANE_NEAR_KINDS - 1) : 0; }

static plane rows_of(const side* s, int32_t dtype, int64_t rows, int64_t heads, int64_t channels,
                     uint64_t seed) {
  static uint8_t data[1 << 24];
  const int64_t n = rows * heads * channels;
  plane p = plane_make(kind_for(s), dtype, rows, heads, channels);
  REQUIRE(n * 4 <= (int64_t)sizeof data);
  fill_dtype(data, dtype, n, seed);
  plane_write(&p, data);
  return p;
}

/* One layer's prompt, with queries of the last rows alone, in up to two chunks. */
static void prefill(const side* s, int32_t layer, int64_t S, int64_t split, uint64_t seed) {
  const rkv_cache_config* c = &s->config;
  plane k = rows_of(s, c->kv_dtype, S, c->kv_heads, c->head_dim, seed + 1);
  plane v = rows_of(s, c->kv_dtype, S, c->kv_heads, value_dim(c), seed + 2);
  rkv_prefill_args args = ZERO(rkv_prefill_args);
  args.layer = layer;
  args.prompt_tokens = S;
  const int64_t first = S > 40 ? S - 40 : 0;
  const int chunks = s->guarded && split > first && split < S ? 2 : 1;
  const int64_t bounds[3] = {first, chunks == 2 ? split : S, S};
  for (int i = 0; i < chunks; ++i) {
    const int64_t from = bounds[i], to = bounds[i + 1];
    plane all = rows_of(s, query_dtype(c), S - first, c->q_heads, c->head_dim, seed);
    rkv_tensor q = all.t; /* rows [from, to) of it */
    q.data = plane_at(&all, from - first, 0, 0);
    q.shape[0] = to - from;
    args.start = from;
    args.q = &q;
    args.k = to == S ? &k.t : NULL;
    args.v = to == S ? &v.t : NULL;
    CHECK_STATUS(RKV_OK, rkv_prefill(s->cache, &args, NULL, &err), &err);
    CHECK(plane_gaps_intact(&all));
    plane_free(&all);
  }
  CHECK(plane_gaps_intact(&k) && plane_gaps_intact(&v));
  plane_free(&k);
  plane_free(&v);
}

/* One decode call of some rows of sequence 0, with padding behind; results as bytes. */
static size_t decode(const side* s, int32_t layer, int64_t position, int32_t live, uint64_t seed,
                     uint8_t* results) {
  const rkv_cache_config* c = &s->config;
  const int32_t rows = c->max_rows;
  plane q = rows_of(s, query_dtype(c), rows, c->q_heads, c->head_dim, seed);
  plane k = rows_of(s, c->kv_dtype, rows, c->kv_heads, c->head_dim, seed + 1);
  plane v = rows_of(s, c->kv_dtype, rows, c->kv_heads, value_dim(c), seed + 2);
  plane out = plane_make(kind_for(s), query_dtype(c), rows, c->q_heads, value_dim(c));
  guard lse = guard_make(rows * c->q_heads * 4, 4), seq = guard_make(rows * 4, 4);
  guard positions = guard_make(rows * 8, 8), counts = guard_make(rows * c->kv_heads * 4, 4);
  const int64_t list_bytes = rows * c->kv_heads * s->memory.selection_capacity * 4;
  guard indices = guard_make(list_bytes, 4);
  for (int32_t i = 0; i < rows; ++i) {
    ((int32_t*)(void*)seq.data)[i] = i < live ? 0 : -1;
    ((int64_t*)(void*)positions.data)[i] = position + i;
  }
  rkv_selection selection = ZERO(rkv_selection);
  selection.capacity = s->memory.selection_capacity;
  selection.indices = (int32_t*)(void*)indices.data;
  selection.counts = (int32_t*)(void*)counts.data;
  rkv_decode_args args = ZERO(rkv_decode_args);
  args.layer = layer;
  args.rows = rows;
  args.seq = (int32_t*)(void*)seq.data;
  args.positions = (int64_t*)(void*)positions.data;
  args.q = &q.t;
  args.k = &k.t;
  args.v = &v.t;
  args.selection = &selection;
  args.out = &out.t;
  args.lse = (float*)(void*)lse.data;
  CHECK_STATUS(RKV_OK, rkv_decode(s->cache, &args, NULL, &err), &err);
  plane_read(&out, results);
  size_t bytes = (size_t)(rows * c->q_heads * value_dim(c) * out.element);
  const guard* parts[] = {&lse, &counts, &indices};
  for (int i = 0; i < 3; ++i) {
    memcpy(results + bytes, parts[i]->data, parts[i]->bytes);
    bytes += parts[i]->bytes;
  }
  plane* planes[] = {&q, &k, &v, &out};
  for (int i = 0; i < 4; ++i) {
    CHECK(plane_gaps_intact(planes[i]));
    plane_free(planes[i]);
  }
  guard* guards[] = {&lse, &seq, &positions, &counts, &indices};
  for (int i = 0; i < 5; ++i) {
    CHECK(guard_intact(guards[i]));
    guard_free(guards[i]);
  }
  return bytes;
}

static void one_config(int number) {
  static uint8_t results[2][1 << 22];
  static int64_t kept[2][1 << 16];
  random_state = 1000 + (uint64_t)number;
  const rkv_cache_config config = draw_config();
  rkv_cache_config plain_config = config;
  plain_config.num_threads = 1;
  side exact, plain;
  side_make(&exact, &config, 1);
  side_make(&plain, &plain_config, 0);
  const int64_t S = draw(1, config.max_prompt_tokens);
  const int64_t split = draw(S > 30 ? S - 30 : 0, S);
  int64_t count[2] = {0, 0};
  CHECK_STATUS(RKV_OK, rkv_sequence_open(exact.cache, 0, NULL, &err), &err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(plain.cache, 0, NULL, &err), &err);
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    const uint64_t seed = (uint64_t)number * 100000 + (uint64_t)layer * 1000;
    prefill(&exact, layer, S, split, seed);
    prefill(&plain, layer, S, S, seed);
    for (int i = 0; i < 2; ++i) {
      CHECK_STATUS(RKV_OK,
                   rkv_kept_positions((i ? &plain : &exact)->cache, 0, layer, NULL, kept[i],
                                      1 << 16, &count[i], &err),
                   &err);
    }
    CHECK_INT(count[0], count[1]);
    CHECK(memcmp(kept[0], kept[1], (size_t)(count[0] * config.kv_heads) * 8) == 0);
    int64_t position = S;
    for (int step = 0; step < STEPS; ++step) {
      const int64_t left = S + config.max_new_tokens - position;
      const int32_t live = (int32_t)draw(0, left < config.max_rows ? left : config.max_rows);
      const uint64_t step_seed = seed + 10 + (uint64_t)step * 7;
      const size_t bytes = decode(&exact, layer, position, live, step_seed, results[0]);
      CHECK_INT(bytes, decode(&plain, layer, position, live, step_seed, results[1]));
      CHECK(memcmp(results[0], results[1], bytes) == 0);
      position += live;
      if (position > S && draw(0, 3) == 0) position -= draw(1, position - S); /* drops rows */
    }
  }
  side_free(&exact);
  side_free(&plain);
}

static void test_random_configurations(void) {
  for (int number = 0; number < CONFIGS; ++number) {
    one_config(number);
    if (atomic_load(&check_run.failed)) {
      printf("configuration %d\n", number);
      break;
    }
  }
}

int main(int argc, char** argv) {
  check_begin(argv[0]);
  err = ZERO(rkv_error);
  if (argc > 1) { /* one configuration, to look into */
    one_config(atoi(argv[1]));
    return atomic_load(&check_run.failed) != 0;
  }
  CASE(test_random_configurations);
  return check_end();
}
