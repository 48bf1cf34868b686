/* The size query: sizes far beyond any machine are right or refused, never wrapped (B71, B72, B83);
 * the parts make the whole (B04); bytes count KV heads of this rank (B02, B19). */
#include "rig.h"

static rkv_error err;

static rkv_status query(const rkv_cache_config* config, rkv_memory* memory) {
  *memory = ZERO(rkv_memory);
  err = ZERO(rkv_error);
  return rkv_cache_memory(config, memory, &err);
}

static void check_parts(const rkv_memory* m) {
  CHECK(m->k_bytes >= 0 && m->v_bytes >= 0 && m->summary_bytes >= 0 && m->index_bytes >= 0 &&
        m->window_bytes >= 0 && m->table_bytes >= 0);
  CHECK_INT(m->storage_bytes, m->k_bytes + m->v_bytes + m->summary_bytes + m->index_bytes +
                                  m->window_bytes + m->table_bytes);
  CHECK(m->storage_bytes > 0 && m->workspace_bytes > 0 && m->selection_capacity > 0);
  CHECK_INT(64, m->alignment);
}

/* Configurations of any shape: the parts, and more of anything never needs less. */
static void test_parts(void) {
  uint64_t random = 4;
  for (int i = 0; i < 3000; ++i) {
    rkv_cache_config c = ZERO(rkv_cache_config);
    c.kv_heads = (int32_t)pick(&random, 1, 9);
    c.q_heads = c.kv_heads * (int32_t)pick(&random, 1, 9);
    c.head_dim = (int32_t)pick(&random, 1, 32) * 8;
    if (pick(&random, 0, 1)) c.head_dim_v = (int32_t)pick(&random, 1, 32) * 8;
    c.kv_dtype = (int32_t)pick(&random, 1, 3);
    c.query_dtype = (int32_t)pick(&random, 0, 3);
    c.layers = (int32_t)pick(&random, 1, 6);
    c.max_sequences = (int32_t)pick(&random, 0, 5);
    c.max_rows = (int32_t)pick(&random, 0, 5);
    c.max_prefills = (int32_t)pick(&random, 0, 5);
    c.num_threads = (int32_t)pick(&random, 1, 5);
    c.max_prompt_tokens = pick(&random, 1, 1 << pick(&random, 0, 18));
    c.max_new_tokens = pick(&random, 0, 300);
    if (pick(&random, 0, 1)) {
      c.token_budget = pick(&random, 1, 2000);
    } else {
      c.compression_ratio = 1 + (double)pick(&random, 0, 100000) / 50;
    }
    c.window_size = (int32_t)pick(&random, 0, 64);
    c.page_size = pick(&random, 0, 2) ? 0 : (int32_t)pick(&random, 1, 100);
    c.top_k = pick(&random, 0, 2) ? 0 : pick(&random, 1, 5000);
    c.dense_layers[0] = pick(&random, 0, 3) ? 0 : 1;
    rkv_memory m, more;
    if (!CHECK_STATUS(RKV_OK, query(&c, &m), &err)) break;
    check_parts(&m);
    rkv_cache_config larger = c;
    switch (pick(&random, 0, 4)) {
      case 0: larger.layers += 1; break;
      case 1: larger.max_sequences = (c.max_sequences ? c.max_sequences : 1) + 1; break;
      case 2: larger.max_prompt_tokens *= 2; break;
      case 3: larger.kv_heads *= 2, larger.q_heads *= 2; break;
      case 4: larger.max_rows = (c.max_rows ? c.max_rows : c.max_sequences) + 3; break;
    }
    if (!CHECK_STATUS(RKV_OK, query(&larger, &more), &err)) break;
    CHECK(more.storage_bytes >= m.storage_bytes);
  }
}

/* B02, B19: 32 query heads over 8 KV heads store 8 heads; a rank with 2 of them a quarter. */
static void test_heads(void) {
  rkv_cache_config c = small_config();
  rkv_memory all, one, rank, mha;
  c.q_heads = 32, c.kv_heads = 8;
  CHECK_STATUS(RKV_OK, query(&c, &all), &err);
  c.q_heads = 4, c.kv_heads = 1;
  CHECK_STATUS(RKV_OK, query(&c, &one), &err);
  CHECK_INT(all.k_bytes, 8 * one.k_bytes);
  CHECK_INT(all.v_bytes, 8 * one.v_bytes);
  CHECK_INT(all.summary_bytes, 8 * one.summary_bytes);
  CHECK_INT(all.index_bytes, 8 * one.index_bytes);
  CHECK_INT(all.window_bytes, 8 * one.window_bytes);
  c.q_heads = 8, c.kv_heads = 2;
  CHECK_STATUS(RKV_OK, query(&c, &rank), &err);
  CHECK_INT(all.k_bytes, 4 * rank.k_bytes);
  c.q_heads = 32, c.kv_heads = 32;
  CHECK_STATUS(RKV_OK, query(&c, &mha), &err);
  CHECK_INT(mha.k_bytes, 4 * all.k_bytes);
  CHECK_INT(mha.window_bytes, all.window_bytes);
}

/* B01: element sizes, for K, V and summaries by kv_dtype, for window rows by query_dtype. */
static void test_dtypes(void) {
  rkv_cache_config c = small_config();
  rkv_memory wide, half, mixed;
  c.head_dim_v = 64;
  CHECK_STATUS(RKV_OK, query(&c, &wide), &err);
  for (int32_t dtype = RKV_DTYPE_F16; dtype <= RKV_DTYPE_BF16; ++dtype) {
    c.kv_dtype = dtype;
    c.query_dtype = 0;
    CHECK_STATUS(RKV_OK, query(&c, &half), &err);
    CHECK_INT(wide.k_bytes, 2 * half.k_bytes);
    CHECK_INT(wide.v_bytes, 2 * half.v_bytes);
    CHECK_INT(half.v_bytes, 4 * half.k_bytes); /* 64 to 16 */
    CHECK_INT(wide.summary_bytes, 2 * half.summary_bytes);
    CHECK_INT(wide.index_bytes, half.index_bytes);
    c.query_dtype = RKV_DTYPE_F32;
    CHECK_STATUS(RKV_OK, query(&c, &mixed), &err);
    CHECK_INT(half.k_bytes, mixed.k_bytes);
    CHECK_INT(wide.window_bytes, mixed.window_bytes);
  }
}

/* S = 2^31 and 2^40 and the like. */
static void test_long_prompts(void) {
  rkv_cache_config c = small_config();
  rkv_memory m;
  c.head_dim = 256;
  const int64_t refused[] = {INT64_C(1) << 31, INT64_C(1) << 32, (INT64_C(1) << 32) + 100,
                             INT64_C(1) << 40, INT64_MAX};
  for (int i = 0; i < 5; ++i) {
    c.max_prompt_tokens = refused[i];
    CHECK_STATUS(RKV_INVALID_ARGUMENT, query(&c, &m), &err);
    CHECK_TEXT(err.text, "config.max_prompt_tokens is ");
    CHECK_INT(0, m.storage_bytes);
  }
  const int64_t good[] = {1 << 20, (1 << 20) + 1, 1 << 28, INT64_C(2147483647) - 24}; /* B32 */
  for (int i = 0; i < 4; ++i) {
    c.max_prompt_tokens = good[i];
    c.prompt_budget = 0;
    if (CHECK_STATUS(RKV_OK, query(&c, &m), &err)) check_parts(&m);
    c.prompt_budget = INT64_MAX; /* everything is kept */
    if (CHECK_STATUS(RKV_OK, query(&c, &m), &err)) {
      check_parts(&m);
      const int64_t rows = good[i] + c.max_new_tokens;
      CHECK_INT(3 * 2 * 2 * rows * 256 * 4, m.k_bytes); /* slots, layers, heads */
      CHECK_INT(3 * 2 * 2 * rows * 4, m.index_bytes);
    }
  }
}

/* Everything at its largest: products of six factors. */
static void test_everything_large(void) {
  rkv_memory m;
  rkv_cache_config c = small_config();
  c.q_heads = c.kv_heads = 65536;
  c.head_dim = 256;
  c.layers = 256;
  c.max_sequences = 1 << 20;
  c.max_prompt_tokens = INT64_C(2147483647) - 24;
  c.prompt_budget = INT64_MAX;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, query(&c, &m), &err);
  CHECK_TEXT(err.text, "2^62");
  rkv_cache* cache = NULL;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_cache_create(&c, NULL, &cache, &err), &err);
  CHECK(cache == NULL);
  /* Doubling one thing at a time from a small cache: exact until it is refused, then refused for
   * good. */
  for (int what = 0; what < 6; ++what) {
    c = small_config();
    c.kv_dtype = RKV_DTYPE_F16;
    c.head_dim = 256;
    c.prompt_budget = INT64_MAX;
    if (what >= 3) c.max_prompt_tokens = 1 << 29, c.q_heads = c.kv_heads = 4096;
    int64_t before = 0;
    int refused = 0;
    for (int step = 0; step < 20; ++step) {
      const rkv_status status = query(&c, &m);
      CHECK(status == RKV_OK || status == RKV_INVALID_ARGUMENT);
      CHECK(!(refused && status == RKV_OK));
      refused |= status != RKV_OK;
      if (status == RKV_OK) {
        check_parts(&m);
        CHECK(m.k_bytes >= before);
        CHECK(m.k_bytes < INT64_C(1) << 62 && m.workspace_bytes < INT64_MAX / 2);
        const int64_t rows = c.max_prompt_tokens + c.max_new_tokens;
        const long double k = (long double)c.max_sequences * c.layers * c.kv_heads * rows * 512;
        CHECK(k == (long double)m.k_bytes);
        before = m.k_bytes;
      }
      switch (what % 3) {
        case 0: c.max_sequences = c.max_sequences < 1 << 19 ? c.max_sequences * 2 : 1 << 20; break;
        case 1: c.layers = c.layers < 128 ? c.layers * 2 : 256; break;
        default: c.kv_heads = c.q_heads = c.q_heads < 32768 ? c.q_heads * 2 : 65536; break;
      }
    }
    if (what == 3) CHECK(refused);
  }
}

/* What does not exist cannot be allocated: an error, not an abort (B75). */
static void test_create_beyond_the_machine(void) {
  rkv_cache_config c = small_config();
  rkv_memory m;
  rkv_cache* cache = NULL;
  c.max_prompt_tokens = 1 << 30;
  c.prompt_budget = INT64_MAX;
  c.kv_heads = 1024, c.q_heads = 1024;
  CHECK_STATUS(RKV_OK, query(&c, &m), &err);
  CHECK(m.storage_bytes > INT64_C(1) << 47); /* more than a process can address */
  if (!CHECK_SANITIZER) {                    /* whose allocator ends the process on such a size */
    CHECK_STATUS(RKV_OUT_OF_MEMORY, rkv_cache_create(&c, NULL, &cache, &err), &err);
    CHECK_TEXT(err.text, "buffers is NULL: ");
  }
  CHECK(cache == NULL);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_parts);
  CASE(test_heads);
  CASE(test_dtypes);
  CASE(test_long_prompts);
  CASE(test_everything_large);
  CASE(test_create_beyond_the_machine);
  return check_end();
}
