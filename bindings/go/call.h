/* Everything that one call hands to the library besides the engine's own arrays. It lies in C memory,
 * so that the argument structs may hold pointers, and is used again by the next call. */
#ifndef RKVGO_CALL_H
#define RKVGO_CALL_H
#include <rkv/rkv.h>
#include <stdlib.h>

typedef struct rkvgo_call {
  rkv_error err;
  rkv_tensor q, k, v, out;
  rkv_selection selection;
  rkv_paging paging;
  rkv_prefill_args prefill;
  rkv_decode_args decode;
  rkv_transfer_args transfer;
  rkv_sequence_options options;
  rkv_sequence_stats stats;
  rkv_audit_result audit;
  rkv_plan plan;
  int64_t number; /* bytes or count, written by the library */
  int64_t rows;   /* what seq and positions have room for */
  int32_t *seq;
  int64_t *positions;
} rkvgo_call;

/* Arguments of the calls that need no cache. */
typedef struct rkvgo_setup {
  rkv_error err;
  rkv_cache_config config;
  rkv_sequence_options options;
  rkv_plan plan;
  rkv_memory memory;
  rkv_buffers buffers;
  rkv_cache *cache;
  int32_t count;
} rkvgo_setup;

#endif
