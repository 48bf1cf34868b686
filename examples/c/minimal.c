/* The whole life of a cache: one layer, random data.
 *   cc minimal.c $(pkg-config --cflags --libs rkv) && ./a.out */
#include <rkv/rkv.h>
#include <stdio.h>
#include <stdlib.h>

enum { HQ = 8, HKV = 2, D = 64, PROMPT = 4096, STEPS = 32 };

static rkv_error err = {.struct_size = sizeof err};

static void check(rkv_status status, const char* call) {
  if (status == RKV_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, rkv_status_name(status), err.text);
  exit(1);
}
#define CHECK(call) check(call, #call)

static rkv_tensor random_rows(int64_t rows, int64_t heads) { /* [rows, heads, D], contiguous */
  rkv_tensor t = {.struct_size = sizeof t, .dtype = RKV_DTYPE_F32, .ndim = 3};
  float* data = malloc((size_t)(rows * heads * D) * sizeof *data);
  if (data == NULL) exit(1);
  for (int64_t i = 0; i < rows * heads * D; ++i) data[i] = 2 * (float)rand() / (float)RAND_MAX - 1;
  t.data = data;
  t.shape[0] = rows, t.shape[1] = heads, t.shape[2] = D;
  t.strides[0] = heads * D, t.strides[1] = D, t.strides[2] = 1;
  return t;
}

int main(void) {
  rkv_cache_config config = {.struct_size = sizeof config, .layers = 1};
  config.q_heads = HQ, config.kv_heads = HKV, config.head_dim = D;
  config.kv_dtype = RKV_DTYPE_F32;
  config.max_prompt_tokens = PROMPT, config.max_new_tokens = STEPS;
  config.token_budget = 256;

  rkv_memory need = {.struct_size = sizeof need};
  CHECK(rkv_cache_memory(&config, &need, &err));
  rkv_buffers buffers = {.struct_size = sizeof buffers};
  buffers.storage = aligned_alloc((size_t)need.alignment, (size_t)need.storage_bytes);
  buffers.workspace = aligned_alloc((size_t)need.alignment, (size_t)need.workspace_bytes);
  buffers.storage_bytes = need.storage_bytes, buffers.workspace_bytes = need.workspace_bytes;
  rkv_cache* cache = NULL;
  CHECK(rkv_cache_create(&config, &buffers, &cache, &err));
  CHECK(rkv_sequence_open(cache, 0, NULL, &err));

  /* After the engine's own attention over the prompt. */
  rkv_tensor q = random_rows(PROMPT, HQ), k = random_rows(PROMPT, HKV), v = k;
  rkv_prefill_args prompt = {.struct_size = sizeof prompt, .prompt_tokens = PROMPT};
  prompt.q = &q, prompt.k = &k, prompt.v = &v;
  CHECK(rkv_prefill(cache, &prompt, NULL, &err));

  /* Instead of the engine's attention, once per token and layer. */
  rkv_tensor new_q = random_rows(1, HQ), new_k = random_rows(1, HKV), out = random_rows(1, HQ);
  const int32_t seq = 0;
  int64_t position;
  rkv_decode_args step = {.struct_size = sizeof step, .rows = 1, .seq = &seq};
  step.positions = &position, step.out = &out;
  step.q = &new_q, step.k = &new_k, step.v = &new_k;
  for (position = PROMPT; position < PROMPT + STEPS; ++position) {
    CHECK(rkv_decode(cache, &step, NULL, &err));
  }

  rkv_sequence_stats s = {.struct_size = sizeof s};
  CHECK(rkv_stats(cache, 0, 0, NULL, &s, &err));
  printf("kept %lld of %lld prompt tokens, generated %lld\n", (long long)s.kept,
         (long long)s.prompt, (long long)s.generated);
  printf("stored %lld bytes of %lld, read %lld a step\n",
         (long long)(s.k_bytes + s.v_bytes + s.summary_bytes + s.index_bytes),
         (long long)s.full_kv_bytes, (long long)s.bytes_read_per_step);
  CHECK(rkv_sequence_close(cache, 0, NULL, &err));
  rkv_cache_destroy(cache);
  free(buffers.storage), free(buffers.workspace);
  free(q.data), free(k.data), free(new_q.data), free(new_k.data), free(out.data);
  return 0;
}
