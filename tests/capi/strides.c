/* Only strides decide: every layout gives the bits of the contiguous one, K and V interleaved in
 * one buffer (B50, B55) and offsets beyond 2^31 and 2^32 elements (B03, B46, B52, B64) among them.
 */
#include "plane.h"

enum { S = 150, HQ = 6, HKV = 3, D = 16, DV = 24, STEPS = 12, ROWS = 3 };

/* Contiguous data of one run, sized for F32. */
static struct {
  uint8_t q[S * HQ * D * 4], k[S * HKV * D * 4], v[S * HKV * DV * 4];
  uint8_t new_q[ROWS * HQ * D * 4], new_k[ROWS * HKV * D * 4], new_v[ROWS * HKV * DV * 4];
} data;

typedef struct answer {
  int64_t kept[HKV * (S + STEPS)], count;
  uint8_t out[STEPS][ROWS * HQ * DV * 4];
  float lse[STEPS][ROWS * HQ];
} answer;

static rkv_cache_config stride_config(int32_t dtype) {
  rkv_cache_config c = ZERO(rkv_cache_config);
  c.layers = 1;
  c.q_heads = HQ;
  c.kv_heads = HKV;
  c.head_dim = D;
  c.head_dim_v = DV;
  c.kv_dtype = dtype;
  c.max_rows = ROWS;
  c.max_prompt_tokens = S;
  c.max_new_tokens = STEPS + ROWS;
  c.token_budget = 24;
  c.window_size = 8;
  c.kernel_size = 5;
  c.num_threads = 2;
  return c;
}

static rkv_error err;

/* K and V of the prompt as given, everything else in layout `kind`. */
static void run(int32_t dtype, int kind, const rkv_tensor* k, const rkv_tensor* v, int queries,
                answer* a) {
  const rkv_cache_config config = stride_config(dtype);
  rkv_cache* cache = NULL;
  memset(a, 0, sizeof *a);
  REQUIRE(rkv_cache_create(&config, NULL, &cache, &err) == RKV_OK);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(cache, 0, NULL, &err), &err);
  const int other = queries ? kind : PLANE_TOKEN_MAJOR;
  plane q = plane_make(other, dtype, S, HQ, D);
  plane_write(&q, data.q);
  rkv_prefill_args prefill = ZERO(rkv_prefill_args);
  prefill.prompt_tokens = S;
  prefill.q = &q.t;
  prefill.k = k;
  prefill.v = v;
  CHECK_STATUS(RKV_OK, rkv_prefill(cache, &prefill, NULL, &err), &err);
  CHECK_STATUS(RKV_OK,
               rkv_kept_positions(cache, 0, 0, NULL, a->kept, HKV * (S + STEPS), &a->count, &err),
               &err);
  CHECK(a->count > 20 && a->count < S);
  plane new_q = plane_make(other, dtype, ROWS, HQ, D), out = plane_make(other, dtype, ROWS, HQ, DV);
  plane new_k = plane_make(other, dtype, ROWS, HKV, D);
  plane new_v = plane_make(other, dtype, ROWS, HKV, DV);
  for (int step = 0; step < STEPS; ++step) {
    fill_dtype(data.new_q, dtype, ROWS * HQ * D, 100 + (uint64_t)step);
    fill_dtype(data.new_k, dtype, ROWS * HKV * D, 200 + (uint64_t)step);
    fill_dtype(data.new_v, dtype, ROWS * HKV * DV, 300 + (uint64_t)step);
    plane_write(&new_q, data.new_q);
    plane_write(&new_k, data.new_k);
    plane_write(&new_v, data.new_v);
    const int32_t seq[ROWS] = {0, 0, 0};
    const int64_t positions[ROWS] = {S + step, S + step + 1, S + step + 2};
    rkv_decode_args args = ZERO(rkv_decode_args);
    args.rows = ROWS;
    args.seq = seq;
    args.positions = positions;
    args.q = &new_q.t;
    args.k = &new_k.t;
    args.v = &new_v.t;
    args.out = &out.t;
    args.lse = a->lse[step];
    CHECK_STATUS(RKV_OK, rkv_decode(cache, &args, NULL, &err), &err);
    plane_read(&out, a->out[step]);
  }
  CHECK(plane_gaps_intact(&out));
  rkv_cache_destroy(cache);
  plane_free(&q);
  plane_free(&new_q);
  plane_free(&new_k);
  plane_free(&new_v);
  plane_free(&out);
}

static answer plain, other;

static void begin(int32_t dtype) {
  fill_dtype(data.q, dtype, S * HQ * D, 1);
  fill_dtype(data.k, dtype, S * HKV * D, 2);
  fill_dtype(data.v, dtype, S * HKV * DV, 3);
  const rkv_tensor k = tensor(dtype, data.k, S, HKV, D), v = tensor(dtype, data.v, S, HKV, DV);
  run(dtype, PLANE_TOKEN_MAJOR, &k, &v, 0, &plain);
}

static void every_kind(int32_t dtype) {
  begin(dtype);
  for (int kind = 0; kind < PLANE_KINDS; ++kind) {
    for (int queries = 0; queries < 2; ++queries) {
      plane k = plane_make(kind, dtype, S, HKV, D), v = plane_make(kind, dtype, S, HKV, DV);
      plane_write(&k, data.k);
      plane_write(&v, data.v);
      run(dtype, kind, &k.t, &v.t, queries, &other);
      if (!CHECK(memcmp(&plain, &other, sizeof plain) == 0)) printf("%s\n", plane_names[kind]);
      CHECK(plane_gaps_intact(&k) && plane_gaps_intact(&v));
      plane_free(&k);
      plane_free(&v);
    }
  }
}

static void test_f32(void) { every_kind(RKV_DTYPE_F32); }
static void test_f16(void) { every_kind(RKV_DTYPE_F16); }
static void test_bf16(void) { every_kind(RKV_DTYPE_BF16); }

/* One buffer for K and V: rows [K | V], rows of heads [K | V], blocks of all K then all V. */
static void test_interleaved(void) {
  for (int32_t dtype = RKV_DTYPE_F32; dtype <= RKV_DTYPE_BF16; ++dtype) {
    begin(dtype);
    const int64_t element = dtype_bytes(dtype);
    for (int way = 0; way < 3; ++way) {
      guard pool = guard_make(S * HKV * (D + DV) * element, element);
      rkv_tensor k = tensor(dtype, pool.data, S, HKV, D), v = tensor(dtype, NULL, S, HKV, DV);
      const int64_t shift = way == 0 ? D : way == 1 ? HKV * D : S * HKV * D;
      v.data = pool.data + shift * element;
      if (way < 2) k.strides[0] = v.strides[0] = HKV * (D + DV);
      if (way == 0) k.strides[1] = v.strides[1] = D + DV;
      const plane kp = {.t = k, .memory = pool, .element = element};
      const plane vp = {.t = v, .memory = pool, .element = element};
      plane_write(&kp, data.k);
      plane_write(&vp, data.v);
      run(dtype, PLANE_TOKEN_MAJOR, &k, &v, 0, &other);
      if (!CHECK(memcmp(&plain, &other, sizeof plain) == 0)) printf("way %d\n", way);
      CHECK(guard_intact(&pool));
      guard_free(&pool);
    }
  }
}

/* A stride of 0 reads one row for all: fine for inputs. */
static void test_broadcast(void) {
  begin(RKV_DTYPE_F32);
  for (int64_t i = 1; i < S; ++i) memcpy(data.v + i * HKV * DV * 4, data.v, HKV * DV * 4);
  const rkv_tensor k = tensor(RKV_DTYPE_F32, data.k, S, HKV, D);
  rkv_tensor v = tensor(RKV_DTYPE_F32, data.v, S, HKV, DV);
  run(RKV_DTYPE_F32, PLANE_TOKEN_MAJOR, &k, &v, 0, &plain);
  v.strides[0] = 0;
  run(RKV_DTYPE_F32, PLANE_TOKEN_MAJOR, &k, &v, 0, &other);
  CHECK(memcmp(&plain, &other, sizeof plain) == 0);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  err = ZERO(rkv_error);
  CASE(test_f32);
  CASE(test_f16);
  CASE(test_bf16);
  CASE(test_interleaved);
  CASE(test_broadcast);
  return check_end();
}
