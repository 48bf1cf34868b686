/* The generator, tensors in the three storage types, and the checksum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static float generated(uint64_t seed, uint64_t layer, uint64_t tensor, uint64_t index) {
  uint64_t z = (((seed * 256 + layer) * 4 + tensor) << 40) + index;
  z += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  z ^= z >> 31;
  return ((float)(z >> 56) - 128.0F) / 64.0F;
}

static uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* x is a value that F16 holds, an infinity or NaN. */
static uint16_t to_f16(float x) {
  const uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x)) return 0x7E00;
  if (isinf(x)) return (uint16_t)(sign | 0x7C00);
  if (x == 0) return sign;
  int exponent = 0;
  frexpf(fabsf(x), &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
  const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
  const int steps = (int)ldexpf(fabsf(x), -unit); /* 1024 to 2047, below for subnormals */
  return (uint16_t)(sign | ((unit + 24) * 1024 + steps));
}

static float from_f16(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  float x = 0;
  if (exponent == 31) {
    x = mantissa != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    x = ldexpf((float)mantissa, -24);
  } else {
    x = ldexpf((float)(1024 + mantissa), exponent - 25);
  }
  return (h & 0x8000) != 0 ? -x : x;
}

static size_t element_bytes(int32_t dtype) { return dtype == RKV_DTYPE_F32 ? 4 : 2; }

static void store(int32_t dtype, void *p, float x) {
  if (dtype == RKV_DTYPE_F32) {
    memcpy(p, &x, sizeof x);
    return;
  }
  const uint16_t h = dtype == RKV_DTYPE_F16 ? to_f16(x) : (uint16_t)(float_bits(x) >> 16);
  memcpy(p, &h, sizeof h);
}

static size_t offset_of(const rkv_tensor *t, int64_t row, int64_t head, int64_t channel) {
  return (size_t)(row * t->strides[0] + head * t->strides[1] + channel) * element_bytes(t->dtype);
}

double element(const rkv_tensor *t, int64_t row, int64_t head, int64_t channel) {
  const char *p = (const char *)t->data + offset_of(t, row, head, channel);
  float x;
  uint16_t h;
  if (t->dtype == RKV_DTYPE_F32) {
    memcpy(&x, p, sizeof x);
    return x;
  }
  memcpy(&h, p, sizeof h);
  return t->dtype == RKV_DTYPE_F16 ? from_f16(h) : bits_float((uint32_t)h << 16);
}

rkv_tensor make_tensor(const rkv_cache_config *c, enum tensor_kind kind, int64_t rows) {
  const int query = kind == TENSOR_Q || kind == TENSOR_OUT;
  const int value = kind == TENSOR_V || kind == TENSOR_OUT;
  rkv_tensor t;
  memset(&t, 0, sizeof t);
  t.struct_size = sizeof t;
  t.dtype = query && c->query_dtype != 0 ? c->query_dtype : c->kv_dtype;
  t.ndim = 3;
  t.shape[0] = rows;
  t.shape[1] = query ? c->q_heads : c->kv_heads;
  t.shape[2] = value && c->head_dim_v != 0 ? c->head_dim_v : c->head_dim;
  t.strides[2] = 1;
  t.strides[1] = t.shape[2];
  t.strides[0] = t.shape[1] * t.shape[2];
  t.data = allocate((size_t)(rows * t.strides[0]) * element_bytes(t.dtype));
  return t;
}

void fill_row(const rkv_tensor *t, enum tensor_kind kind, int64_t row, row_source source,
              const overrides *set) {
  const uint64_t first = (uint64_t)source.position * (uint64_t)t->strides[0];
  char *p = (char *)t->data + offset_of(t, row, 0, 0);
  for (int64_t i = 0; i < t->strides[0]; ++i) {
    store(t->dtype, p + (size_t)i * element_bytes(t->dtype),
          generated(source.seed, source.layer, (uint64_t)kind, first + (uint64_t)i));
  }
  for (int i = 0; i < set->count; ++i) {
    const override *o = &set->list[i];
    if (o->tensor != kind || o->position != source.position) continue;
    store(t->dtype, (char *)t->data + offset_of(t, row, o->head, o->channel), o->value);
  }
}

void fill_nan(const rkv_tensor *t) {
  const size_t bytes = element_bytes(t->dtype);
  for (int64_t i = 0; i < t->shape[0] * t->strides[0]; ++i) {
    store(t->dtype, (char *)t->data + (size_t)i * bytes, NAN);
  }
}

void add_bytes(uint64_t *checksum, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    *checksum = (*checksum ^ (value >> (8 * i) & 255)) * UINT64_C(0x100000001b3);
  }
}

void add_float(uint64_t *checksum, float value) { add_bytes(checksum, float_bits(value), 4); }

void add_tensor(uint64_t *checksum, const rkv_tensor *t) {
  for (int64_t i = 0; i < t->shape[0] * t->strides[0]; ++i) {
    const char *p = (const char *)t->data + (size_t)i * element_bytes(t->dtype);
    uint32_t word;
    uint16_t half;
    if (t->dtype == RKV_DTYPE_F32) {
      memcpy(&word, p, sizeof word);
      add_bytes(checksum, word, 4);
    } else {
      memcpy(&half, p, sizeof half);
      add_bytes(checksum, half, 2);
    }
  }
}
