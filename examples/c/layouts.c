/* K and V as three engines store them, read where they lie: no copy, the same bits as contiguous rows.
 *   cc layouts.c $(pkg-config --cflags --libs rkv) && ./a.out
 *
 *   llama.cpp     K [cap][Hkv * D] F16; without flash attention V is transposed, [Hkv * D][cap]; Q F32
 *   candle        [1, Hkv, S, D] F32; or one row for both, [S, Hkv, 2 * D]
 *   ONNX Runtime  [B, Hkv, cap, D], each sequence with its own length in a capacity of its own */
#include <rkv/rkv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HQ = 6, HKV = 2, D = 64, PROMPT = 1000, STEPS = 8, LENGTH = PROMPT + STEPS, CAP = 1024 };

static rkv_error err = {.struct_size = sizeof err};

static void check(rkv_status status, const char* call) {
  if (status == RKV_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, rkv_status_name(status), err.text);
  exit(1);
}
#define CHECK(call) check(call, #call)

/* Where element [row, head, channel] lies: `first` is that of [0, 0, 0], strides in elements. */
typedef struct layout {
  int64_t first, row, head, channel;
} layout;

static rkv_tensor view(void* data, int32_t dtype, layout at, int64_t row, int64_t rows,
                       int64_t heads) {
  const int64_t size = dtype == RKV_DTYPE_F32 ? 4 : 2;
  rkv_tensor t = {.struct_size = sizeof t, .dtype = dtype, .ndim = 3};
  t.data = (char*)data + (at.first + row * at.row) * size;
  t.shape[0] = rows, t.shape[1] = heads, t.shape[2] = D;
  t.strides[0] = at.row, t.strides[1] = at.head, t.strides[2] = at.channel;
  return t;
}

/* K (which = 0) or V (1) of all tokens: the same numbers in every layout, exact in F16. */
static void store(void* data, int32_t dtype, layout at, int which) {
  for (int64_t row = 0; row < LENGTH; ++row) {
    for (int64_t head = 0; head < HKV; ++head) {
      for (int64_t c = 0; c < D; ++c) {
        uint32_t x = (uint32_t)(((row * HKV + head) * D + c) * 2 + which) * 2654435761u;
        x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
        const int32_t n = (int32_t)(x >> 24) - 128; /* value n / 64 */
        const int64_t i = at.first + row * at.row + head * at.head + c * at.channel;
        if (dtype == RKV_DTYPE_F32) {
          ((float*)data)[i] = (float)n / 64;
        } else {
          uint32_t m = (uint32_t)(n < 0 ? -n : n), e = 19; /* m / 64 = 1.xxx * 2^(e - 15) */
          for (; m != 0 && m < 1024; m <<= 1) --e;
          const uint32_t bits = m == 0 ? 0 : e << 10 | (m & 1023);
          ((uint16_t*)data)[i] = (uint16_t)(bits | (n < 0 ? 0x8000u : 0));
        }
      }
    }
  }
}

/* Prefill and decode over K and V where they lie; out: F32 [STEPS, HQ, D]. */
static void run(int32_t dtype, void* k, layout k_at, void* v, layout v_at, float* out) {
  static float q[LENGTH * HQ * D];
  for (int64_t i = 0; i < LENGTH * HQ * D; ++i) q[i] = (float)(i * 7919 % 257 - 128) / 64;
  const layout rows = {0, HQ * D, D, 1};
  rkv_cache_config config = {.struct_size = sizeof config, .layers = 1};
  config.q_heads = HQ, config.kv_heads = HKV, config.head_dim = D;
  config.kv_dtype = dtype, config.query_dtype = RKV_DTYPE_F32;
  config.max_prompt_tokens = PROMPT, config.max_new_tokens = STEPS, config.token_budget = 128;
  rkv_cache* cache = NULL;
  CHECK(rkv_cache_create(&config, NULL, &cache, &err));
  CHECK(rkv_sequence_open(cache, 0, NULL, &err));

  /* llama.cpp's graph computes a prompt in ubatches of 512: their last rows may span two calls. */
  rkv_tensor tk = view(k, dtype, k_at, 0, PROMPT, HKV), tv = view(v, dtype, v_at, 0, PROMPT, HKV);
  for (int64_t start = 0; start < PROMPT; start += 512) {
    const int64_t n = PROMPT - start < 512 ? PROMPT - start : 512;
    rkv_tensor tq = view(q, RKV_DTYPE_F32, rows, start, n, HQ);
    rkv_prefill_args prompt = {.struct_size = sizeof prompt, .prompt_tokens = PROMPT};
    prompt.start = start, prompt.q = &tq, prompt.k = &tk, prompt.v = &tv;
    CHECK(rkv_prefill(cache, &prompt, NULL, &err));
  }
  for (int64_t position = PROMPT; position < LENGTH; ++position) {
    const int32_t seq = 0;
    rkv_tensor new_q = view(q, RKV_DTYPE_F32, rows, position, 1, HQ);
    rkv_tensor new_k = view(k, dtype, k_at, position, 1, HKV);
    rkv_tensor new_v = view(v, dtype, v_at, position, 1, HKV);
    rkv_tensor to = view(out, RKV_DTYPE_F32, rows, position - PROMPT, 1, HQ);
    rkv_decode_args step = {.struct_size = sizeof step, .rows = 1, .seq = &seq};
    step.positions = &position, step.out = &to;
    step.q = &new_q, step.k = &new_k, step.v = &new_v;
    CHECK(rkv_decode(cache, &step, NULL, &err));
  }
  rkv_cache_destroy(cache);
}

int main(void) {
  const layout plain = {0, HKV * D, D, 1};
  const struct {
    const char* name;
    int32_t dtype;
    layout k, v; /* both in one buffer of 2 * HKV * CAP * D elements, twice for a batch of two */
  } engines[] = {
      {"llama.cpp, V transposed", RKV_DTYPE_F16, plain, {HKV * CAP * D, 1, D * CAP, CAP}},
      {"candle, head-major", RKV_DTYPE_F32, {0, D, CAP * D, 1}, {HKV * CAP * D, D, CAP * D, 1}},
      {"candle, K and V in one row",
       RKV_DTYPE_F32,
       {0, HKV * 2 * D, 2 * D, 1},
       {D, HKV * 2 * D, 2 * D, 1}},
      {"ONNX Runtime, second sequence",
       RKV_DTYPE_F32,
       {HKV * CAP * D, D, CAP * D, 1},
       {3 * HKV * CAP * D, D, CAP * D, 1}},
  };
  static float data[4 * HKV * CAP * D], contiguous[2 * LENGTH * HKV * D];
  static float want[STEPS * HQ * D], got[STEPS * HQ * D];
  int wrong = 0;
  for (size_t i = 0; i < sizeof engines / sizeof *engines; ++i) {
    const int32_t dtype = engines[i].dtype;
    float* v = contiguous + LENGTH * HKV * D;
    store(contiguous, dtype, plain, 0), store(v, dtype, plain, 1);
    run(dtype, contiguous, plain, v, plain, want);
    memset(data, 0xFF, sizeof data); /* NaN wherever no token is */
    store(data, dtype, engines[i].k, 0), store(data, dtype, engines[i].v, 1);
    run(dtype, data, engines[i].k, data, engines[i].v, got);
    const int same = memcmp(want, got, sizeof got) == 0;
    printf("%-30s %s\n", engines[i].name, same ? "same bits" : "DIFFERS");
    wrong += !same;
  }
  return wrong != 0;
}
