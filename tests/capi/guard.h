/* Memory that tells when somebody wrote, or read, beyond it; and data that depends on a seed alone.
 */
#ifndef RKV_TESTS_GUARD_H
#define RKV_TESTS_GUARD_H

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

/* `bytes` of 0xFF (a NaN in every float type) whose end touches a page that may not be accessed.
 * The bytes before it, and behind it where alignment leaves a gap, carry a canary. */
typedef struct guard {
  uint8_t* data;
  size_t bytes;
  uint8_t* base;
  size_t open, mapped;
} guard;

enum { GUARD_CANARY = 0xA5, GUARD_FRONT = 256 };

static inline guard guard_make(int64_t bytes, int64_t alignment) {
  guard g;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), align = (size_t)alignment;
  g.bytes = (size_t)bytes;
  const size_t room = (g.bytes + align - 1) / align * align;
  g.open = (room + GUARD_FRONT + page - 1) / page * page;
  g.mapped = g.open + page;
  g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(g.base != MAP_FAILED);
  REQUIRE(mprotect(g.base + g.open, page, PROT_NONE) == 0);
  g.data = g.base + g.open - room;
  memset(g.base, GUARD_CANARY, g.open);
  memset(g.data, 0xFF, g.bytes);
  return g;
}

static inline int guard_intact(const guard* g) {
  for (const uint8_t* p = g->base; p < g->data; ++p) {
    if (*p != GUARD_CANARY) return 0;
  }
  for (const uint8_t* p = g->data + g->bytes; p < g->base + g->open; ++p) {
    if (*p != GUARD_CANARY) return 0;
  }
  return 1;
}

static inline void guard_free(guard* g) {
  munmap(g->base, g->mapped);
  memset(g, 0, sizeof *g);
}

/* splitmix64 */
static inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static inline uint64_t next_random(uint64_t* state) { return *state = mix(*state); }

/* In [low, high]. */
static inline int64_t pick(uint64_t* state, int64_t low, int64_t high) {
  return low + (int64_t)(next_random(state) % (uint64_t)(high - low + 1));
}

/* In [-1, 1), a function of seed and index. */
static inline float value_at(uint64_t seed, uint64_t index) {
  return (float)((double)(mix(mix(seed) ^ (index * 0x2545F4914F6CDD1Du)) >> 11) * 0x1p-52 - 1.0);
}

static inline void fill(float* out, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < n; ++i) out[i] = value_at(seed, (uint64_t)i);
}

/* Any dtype; the magnitudes lie between about 0.01 and 4. */
static inline void fill_dtype(void* out, int32_t dtype, int64_t n, uint64_t seed) {
  if (dtype == RKV_DTYPE_F32) {
    fill(out, n, seed);
    return;
  }
  uint16_t* bits = out;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t x = mix(mix(seed) ^ (uint64_t)i);
    const uint32_t sign = (uint32_t)(x & 1u) << 15, low = (uint32_t)(x >> 32);
    const uint32_t exponent = (uint32_t)((x >> 1) % 8);
    bits[i] = (uint16_t)(dtype == RKV_DTYPE_F16 ? sign | (9 + exponent) << 10 | (low & 0x3FFu)
                                                : sign | (121 + exponent) << 7 | (low & 0x7Fu));
  }
}

static inline int64_t dtype_bytes(int32_t dtype) { return dtype == RKV_DTYPE_F32 ? 4 : 2; }

/* Contiguous [rows, heads, channels]. */
static inline rkv_tensor tensor(int32_t dtype, void* data, int64_t rows, int64_t heads,
                                int64_t channels) {
  rkv_tensor t = ZERO(rkv_tensor);
  t.dtype = dtype;
  t.data = data;
  t.ndim = 3;
  t.shape[0] = rows;
  t.shape[1] = heads;
  t.shape[2] = channels;
  t.strides[0] = heads * channels;
  t.strides[1] = channels;
  t.strides[2] = 1;
  return t;
}

#endif
