/* Two rigs given the same calls; one of them also sees failing ones. A call that failed must have
 * left no trace (rule 6). */
#ifndef RKV_TESTS_TWIN_H
#define RKV_TESTS_TWIN_H

#include "rig.h"

static inline int bytes_are(const void* data, int64_t n, uint8_t value) {
  const uint8_t* bytes = data;
  for (int64_t i = 0; i < n; ++i) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

/* Nothing of what a decode call writes has been touched since rig_rows poisoned it. */
static inline int rig_untouched(const rig* r, int32_t rows) {
  const rkv_cache_config* c = &r->config;
  return bytes_are(r->out, (int64_t)rows * c->q_heads * rig_head_dim_v(r) * 4, 0xFF) &&
         bytes_are(r->lse, (int64_t)rows * c->q_heads * 4, 0xFF) &&
         bytes_are(r->selection.counts, (int64_t)rows * c->kv_heads * 4, 0x7F) &&
         bytes_are(r->selection.indices, rows * c->kv_heads * r->selection.capacity * 4, 0x7F);
}

/* Statuses, stats, plans and positions of every layer of every slot are the same in both. */
static inline int twins_agree(rig* a, rig* b) {
  static int64_t kept_a[65536], kept_b[65536];
  const int32_t sequences = a->config.max_sequences ? a->config.max_sequences : 1;
  for (int32_t seq = 0; seq < sequences; ++seq) {
    for (int32_t layer = 0; layer < a->config.layers; ++layer) {
      rkv_sequence_stats sa = ZERO(rkv_sequence_stats), sb = ZERO(rkv_sequence_stats);
      rkv_plan pa = ZERO(rkv_plan), pb = ZERO(rkv_plan);
      int64_t na = -1, nb = -1;
      sa.plan = &pa;
      sb.plan = &pb;
      if (rkv_stats(a->cache, seq, layer, NULL, &sa, &a->err) !=
          rkv_stats(b->cache, seq, layer, NULL, &sb, &b->err)) {
        return 0;
      }
      sa.plan = sb.plan = NULL;
      if (memcmp(&sa, &sb, sizeof sa) != 0 || memcmp(&pa, &pb, sizeof pa) != 0) return 0;
      if (rkv_kept_positions(a->cache, seq, layer, NULL, kept_a, 65536, &na, &a->err) !=
          rkv_kept_positions(b->cache, seq, layer, NULL, kept_b, 65536, &nb, &b->err)) {
        return 0;
      }
      if (na != nb) return 0;
      if (na > 0 && memcmp(kept_a, kept_b, (size_t)(na * a->config.kv_heads) * 8) != 0) return 0;
    }
  }
  return 1;
}

/* The same decode step gives the same bits in both. */
static inline int twins_decode(rig* a, rig* b, int32_t seq, int32_t layer, int64_t position) {
  const rkv_status sa = rig_decode(a, seq, layer, position);
  const rkv_status sb = rig_decode(b, seq, layer, position);
  return sa == RKV_OK && sb == RKV_OK && rig_same_results(a, b, 1);
}

#endif
