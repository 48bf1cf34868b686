/* The whole life of a cache: one layer, random data.
 *   cc minimal.c $(pkg-config --cflags --libs rkv) && ./a.out */
#include <rkv/rkv.h>
#include <stdio.h>
#include <stdlib.h>

enum { HQ = 8, HKV = 2, D = 64, PROMPT = 4096, STEPS = 32 };

static rkv_error err = {.struct_size = sizeof err};

static void check(rkv_status status, const char *call) {
  if (status == RKV_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, rkv_status_name(status), err.text);
  exit(1);
}
#define CHECK(call) check(call, #call)

static rkv_tensor random_rows(int64_t rows, int64_t heads) { /* [rows, heads, D], contiguous */
  float *data = malloc((size_t)(rows * heads * D) * sizeof *data);
  if (data == NULL) exit(1);
  for (int64_t i = 0; i < rows * heads * D; ++i) data[i] = 2 * (float)rand() / (float)RAND_MAX - 1;
  return (rkv_tensor){.struct_size = sizeof(rkv_tensor), .dtype = RKV_DTYPE_F32, .data = data,
                      .ndim = 3, .shape = {rows, heads, D}, .strides = {heads * D, D, 1}};
}

int main(void) {
  rkv_cache_config config = {.struct_size = sizeof config, .layers = 1, .q_heads = HQ,
      .kv_heads = HKV, .head_dim = D, .kv_dtype = RKV_DTYPE_F32, .max_prompt_tokens = PROMPT,
      .max_new_tokens = STEPS, .token_budget = 256};

  rkv_memory memory = {.struct_size = sizeof memory};
  CHECK(rkv_cache_memory(&config, &memory, &err));
  void *storage = aligned_alloc((size_t)memory.alignment, (size_t)(memory.storage_bytes + 63) / 64 * 64);
  void *work = aligned_alloc((size_t)memory.alignment, (size_t)(memory.workspace_bytes + 63) / 64 * 64);
  rkv_buffers buffers = {.struct_size = sizeof buffers, .storage = storage, .workspace = work,
      .storage_bytes = memory.storage_bytes, .workspace_bytes = memory.workspace_bytes};
  rkv_cache *cache = NULL;
  CHECK(rkv_cache_create(&config, &buffers, &cache, &err));
  CHECK(rkv_sequence_open(cache, 0, NULL, &err));

  /* After the engine's own attention over the prompt. */
  rkv_tensor q = random_rows(PROMPT, HQ), k = random_rows(PROMPT, HKV), v = random_rows(PROMPT, HKV);
  rkv_prefill_args prompt = {.struct_size = sizeof prompt, .prompt_tokens = PROMPT, .q = &q,
                             .k = &k, .v = &v};
  CHECK(rkv_prefill(cache, &prompt, NULL, &err));

  /* Instead of the engine's attention, once per token and layer. */
  rkv_tensor out = random_rows(1, HQ);
  const int32_t seq = 0;
  for (int64_t position = PROMPT; position < PROMPT + STEPS; ++position) {
    rkv_tensor nq = random_rows(1, HQ), nk = random_rows(1, HKV), nv = random_rows(1, HKV);
    rkv_decode_args step = {.struct_size = sizeof step, .rows = 1, .seq = &seq,
        .positions = &position, .q = &nq, .k = &nk, .v = &nv, .out = &out};
    CHECK(rkv_decode(cache, &step, NULL, &err));
    free(nq.data), free(nk.data), free(nv.data);
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
  free(storage), free(work), free(q.data), free(k.data), free(v.data), free(out.data);
  return 0;
}
