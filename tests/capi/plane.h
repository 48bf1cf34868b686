/* A [rows, heads, channels] array in memory of its own, in any layout that strides can say. */
#ifndef RKV_TESTS_PLANE_H
#define RKV_TESTS_PLANE_H

#include "guard.h"

enum plane_kind {
  PLANE_TOKEN_MAJOR,
  PLANE_HEAD_MAJOR,
  PLANE_PADDED,        /* gaps between heads and rows */
  PLANE_CHANNEL_MAJOR, /* transposed: tokens are contiguous */
  PLANE_REVERSED,      /* negative strides of rows and heads */
  PLANE_SPREAD,        /* every second channel, negative */
  PLANE_NEAR_KINDS,
  /* Offsets beyond 2^31 and 2^32 elements, in mappings without memory behind them. */
  PLANE_FAR_ROWS = PLANE_NEAR_KINDS,
  PLANE_FAR_ROWS_BACK,
  PLANE_FAR_HEADS,
  PLANE_FAR_CHANNELS,
  PLANE_KINDS
};

static const char* const plane_names[PLANE_KINDS] = {
    "token-major", "head-major", "padded",        "channel-major", "reversed",
    "spread",      "far rows",   "far rows back", "far heads",     "far channels"};

typedef struct plane {
  rkv_tensor t;
  guard memory; /* near kinds */
  uint8_t* map; /* far kinds */
  size_t map_bytes;
  int64_t element;
} plane;

static inline uint8_t* plane_at(const plane* p, int64_t row, int64_t head, int64_t channel) {
  const rkv_tensor* t = &p->t;
  return (uint8_t*)t->data +
         (row * t->strides[0] + head * t->strides[1] + channel * t->strides[2]) * p->element;
}

/* Strides of a far axis of n elements: the last one lies beyond 2^32 elements, unaligned. */
static inline int64_t plane_far(int64_t n) {
  return n > 1 ? (INT64_C(1) << 32) / (n - 1) + 5 : (INT64_C(1) << 32) + 5;
}

static inline void plane_strides(int kind, int64_t rows, int64_t heads, int64_t channels,
                                 int64_t strides[3]) {
  int64_t row = heads * channels, head = channels, channel = 1;
  switch (kind) {
    case PLANE_HEAD_MAJOR: row = channels, head = rows * channels; break;
    case PLANE_PADDED: head = channels + 3, row = heads * head + 7; break;
    case PLANE_CHANNEL_MAJOR: row = 1, channel = rows, head = channels * rows; break;
    case PLANE_REVERSED: row = -row, head = -head; break;
    case PLANE_SPREAD: channel = -2, head = 2 * channels, row = heads * head; break;
    case PLANE_FAR_ROWS: row = plane_far(rows); break;
    case PLANE_FAR_ROWS_BACK: row = -plane_far(rows); break;
    case PLANE_FAR_HEADS: row = channels, head = plane_far(heads); break;
    case PLANE_FAR_CHANNELS: channel = plane_far(channels), head = 1, row = heads; break;
    default: break;
  }
  strides[0] = row, strides[1] = head, strides[2] = channel;
}

/* All elements 0xFF in near kinds, 0 in far ones. */
static inline plane plane_make(int kind, int32_t dtype, int64_t rows, int64_t heads,
                               int64_t channels) {
  plane p;
  memset(&p, 0, sizeof p);
  p.element = dtype_bytes(dtype);
  p.t = tensor(dtype, NULL, rows, heads, channels);
  plane_strides(kind, rows, heads, channels, p.t.strides);
  int64_t low = 0, high = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t reach = p.t.strides[axis] * (p.t.shape[axis] - 1);
    *(reach < 0 ? &low : &high) += reach;
  }
  const int64_t bytes = (high - low + 1) * p.element;
  uint8_t* base;
  if (kind < PLANE_NEAR_KINDS) {
    p.memory = guard_make(bytes, p.element);
    base = p.memory.data;
  } else {
    p.map_bytes = (size_t)bytes;
    void* map = mmap(NULL, p.map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(map != MAP_FAILED);
    madvise(map, p.map_bytes, MADV_NOHUGEPAGE); /* each touch costs one small page */
    p.map = base = map;
  }
  p.t.data = base - low * p.element;
  return p;
}

static inline void plane_free(plane* p) {
  if (p->map != NULL) {
    munmap(p->map, p->map_bytes);
  } else {
    guard_free(&p->memory);
  }
  memset(p, 0, sizeof *p);
}

/* To and from contiguous [rows, heads, channels]. */
static inline void plane_write(const plane* p, const void* from) {
  const uint8_t* source = from;
  for (int64_t r = 0; r < p->t.shape[0]; ++r) {
    for (int64_t h = 0; h < p->t.shape[1]; ++h) {
      for (int64_t c = 0; c < p->t.shape[2]; ++c, source += p->element) {
        memcpy(plane_at(p, r, h, c), source, (size_t)p->element);
      }
    }
  }
}
static inline void plane_read(const plane* p, void* to) {
  uint8_t* target = to;
  for (int64_t r = 0; r < p->t.shape[0]; ++r) {
    for (int64_t h = 0; h < p->t.shape[1]; ++h) {
      for (int64_t c = 0; c < p->t.shape[2]; ++c, target += p->element) {
        memcpy(target, plane_at(p, r, h, c), (size_t)p->element);
      }
    }
  }
}

/* Whether nothing but elements was written since plane_make. Forgets the elements. */
static inline int plane_gaps_intact(const plane* p) {
  if (p->map != NULL) return 1;
  for (int64_t r = 0; r < p->t.shape[0]; ++r) {
    for (int64_t h = 0; h < p->t.shape[1]; ++h) {
      for (int64_t c = 0; c < p->t.shape[2]; ++c) {
        memset(plane_at(p, r, h, c), 0xFF, (size_t)p->element);
      }
    }
  }
  for (size_t i = 0; i < p->memory.bytes; ++i) {
    if (p->memory.data[i] != 0xFF) return 0;
  }
  return guard_intact(&p->memory);
}

#endif
