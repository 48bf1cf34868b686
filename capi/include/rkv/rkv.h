/* Trial of the public header: names, types and order of fields, almost no documentation (api.md has the rules and meanings).
 * It compiles as C11 and C++17. The project writes its own header, documented as api.md asks; differ where you have a reason, and say so. */
#ifndef RKV_RKV_H
#define RKV_RKV_H
#include <stddef.h>
#include <stdint.h>

#ifndef RKV_API
#if defined(__GNUC__)
#define RKV_API __attribute__((visibility("default")))
#else
#define RKV_API
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define RKV_ABI_VERSION 1 /* major*1000 + minor; 0.x until the CUDA backend is in, then 1000 */

typedef int32_t rkv_status;
enum { RKV_OK, RKV_INVALID_ARGUMENT, RKV_UNSUPPORTED, RKV_OUT_OF_CAPACITY, RKV_BUFFER_TOO_SMALL, RKV_BAD_STATE, RKV_DEVICE_ERROR, RKV_ABI_MISMATCH,
       RKV_CORRUPT_DATA, RKV_OUT_OF_MEMORY, RKV_INTERNAL };
enum { RKV_DEVICE_CPU = 0, RKV_DEVICE_CUDA = 1 };
enum { RKV_DTYPE_F32 = 1, RKV_DTYPE_F16, RKV_DTYPE_BF16, RKV_DTYPE_E4M3, RKV_DTYPE_E5M2 }; /* 0 = invalid in a tensor, "as kv" in a config */
enum { RKV_STORAGE_COMPACT = 0, RKV_STORAGE_INDEXED = 1 };
enum { RKV_UNIT_PAGES = 0, RKV_UNIT_TOKENS = 1 };           /* selection_unit */
enum { RKV_STAGE1_ALL = 0, RKV_STAGE1_PREFIX_ONLY = 1 };    /* stage1_domain */
enum { RKV_SOFTMAX_TOKENS = 0, RKV_SOFTMAX_PAGES = 1 };     /* selection_domain */
enum { RKV_POOL_MAX = 0, RKV_POOL_AVG = 1 };
enum { RKV_TEMPERATURE_SPARQ = 0, RKV_TEMPERATURE_SQRT_D = 1 };
enum { RKV_SPACE_LIVE_ROW = 0, RKV_SPACE_POSITION = 1, RKV_SPACE_SLOT = 2 };

typedef struct rkv_cache rkv_cache;

typedef struct rkv_error { uint32_t struct_size; rkv_status status; int32_t native_code; int32_t reserved; char text[240]; } rkv_error;

typedef struct rkv_tensor {
  uint32_t struct_size; int32_t dtype; void *data; int32_t ndim; int32_t reserved0;
  int64_t shape[6], strides[6];               /* in elements */
  const float *scale; int64_t scale_strides[6]; /* not NULL: UNSUPPORTED for now */
  int64_t reserved[4];
} rkv_tensor;

typedef struct rkv_cache_config {
  uint32_t struct_size; int32_t device_type, device, layers, q_heads, kv_heads, head_dim, head_dim_v, kv_dtype, query_dtype, summary_dtype, storage;
  int32_t max_sequences, max_rows, max_prefills, num_threads;
  int64_t max_prompt_tokens, max_new_tokens;
  int64_t token_budget; double compression_ratio;            /* one of both */
  int64_t prompt_budget, top_k; int32_t page_size, num_channels; /* overrides, 0 = from the plan */
  int32_t window_size, kernel_size, sinks, recent_tokens, selection_unit, stage1_domain, selection_domain, pooling, temperature, key_as_query;
  float softmax_scale, logit_softcap;
  uint32_t dense_layers[8];                                  /* bit l: layer l keeps and attends to all */
  int32_t reserved[8];
} rkv_cache_config;

typedef struct rkv_sequence_options { uint32_t struct_size; int32_t reserved; int64_t max_new_tokens, token_budget; double compression_ratio; } rkv_sequence_options;

typedef struct rkv_plan {
  uint32_t struct_size; int32_t raised, dense, page_size, num_channels, reserved;
  int64_t cap, prompt_budget, rows, pages, top_k, token_budget;
  double ratio, split, storage_ratio, traffic_ratio;
} rkv_plan;

typedef struct rkv_memory {
  uint32_t struct_size; int32_t reserved;
  int64_t alignment, storage_bytes, workspace_bytes, selection_capacity; /* alignment in bytes; capacity in token rows */
  int64_t k_bytes, v_bytes, summary_bytes, index_bytes, window_bytes, table_bytes; /* what storage_bytes is made of */
} rkv_memory;

typedef struct rkv_buffers { uint32_t struct_size; int32_t reserved; void *storage; int64_t storage_bytes; void *workspace; int64_t workspace_bytes; } rkv_buffers;

typedef struct rkv_paging {
  uint32_t struct_size; int32_t reserved; int64_t block_tokens, max_blocks, row_stride;
  const int32_t *block_table;                                /* [rows, max_blocks], negative = absent; or: */
  const void *const *k_blocks; const void *const *v_blocks;  /* block addresses in the same shape */
} rkv_paging;

typedef struct rkv_prefill_args { uint32_t struct_size; int32_t seq, layer, reserved; int64_t start, prompt_tokens; const rkv_tensor *q, *k, *v; const rkv_paging *paging; } rkv_prefill_args;

typedef struct rkv_selection { uint32_t struct_size; int32_t space; int32_t *indices, *counts; int64_t capacity; } rkv_selection;

typedef struct rkv_decode_args {
  uint32_t struct_size; int32_t layer, rows, attend_only;
  const int32_t *seq; const int64_t *positions;              /* [rows], in the memory of the cache's device */
  const rkv_tensor *q, *k, *v; const rkv_paging *paging; const rkv_selection *selection; const rkv_tensor *out;
  float *lse; int32_t *row_status;                           /* nullable */
} rkv_decode_args;

typedef struct rkv_transfer_args { uint32_t struct_size; int32_t seq, layer, head_begin, head_end, reserved; const rkv_tensor *k, *v; const rkv_paging *paging; } rkv_transfer_args;

typedef struct rkv_sequence_stats {
  uint32_t struct_size; int32_t turn, window_rows, fault, nonfinite, saturated;
  int64_t position, max_position, prompt, kept, generated, pages;
  int64_t k_bytes, v_bytes, summary_bytes, index_bytes, full_kv_bytes, bytes_read_per_step;
  rkv_plan *plan;                                            /* nullable, filled */
} rkv_sequence_stats;

typedef struct rkv_audit_result { uint32_t struct_size; int32_t rows; double mass_mean, mass_min, prompt_mass_mean, error_mean, error_max; } rkv_audit_result;

RKV_API int32_t     rkv_abi_version(void);
RKV_API const char *rkv_version_string(void);
RKV_API const char *rkv_status_name(rkv_status status);
RKV_API rkv_status  rkv_device_count(int32_t device_type, int32_t *count, rkv_error *err);
RKV_API rkv_status  rkv_plan_make(const rkv_cache_config *config, const rkv_sequence_options *options, int64_t prompt_tokens, rkv_plan *plan, rkv_error *err);
RKV_API rkv_status  rkv_cache_memory(const rkv_cache_config *config, rkv_memory *memory, rkv_error *err);
RKV_API rkv_status  rkv_cache_create(const rkv_cache_config *config, const rkv_buffers *buffers, rkv_cache **cache, rkv_error *err);
RKV_API void        rkv_cache_destroy(rkv_cache *cache);
RKV_API rkv_status  rkv_sequence_open(rkv_cache *cache, int32_t seq, const rkv_sequence_options *options, rkv_error *err);
RKV_API rkv_status  rkv_sequence_close(rkv_cache *cache, int32_t seq, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_sequence_rewind(rkv_cache *cache, int32_t seq, int64_t position, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_sequence_fork(rkv_cache *cache, int32_t seq, int32_t copy, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_sequence_export(rkv_cache *cache, const rkv_transfer_args *args, void *out, int64_t capacity, int64_t *bytes, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_sequence_import(rkv_cache *cache, const rkv_transfer_args *args, const void *in, int64_t bytes, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_prefill(rkv_cache *cache, const rkv_prefill_args *args, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_decode_select(rkv_cache *cache, const rkv_decode_args *args, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_attend(rkv_cache *cache, const rkv_decode_args *args, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_decode(rkv_cache *cache, const rkv_decode_args *args, void *stream, rkv_error *err);
RKV_API rkv_status  rkv_stats(const rkv_cache *cache, int32_t seq, int32_t layer, void *stream, rkv_sequence_stats *stats, rkv_error *err);
RKV_API rkv_status  rkv_kept_positions(const rkv_cache *cache, int32_t seq, int32_t layer, void *stream, int64_t *out, int64_t capacity, int64_t *count, rkv_error *err);
RKV_API rkv_status  rkv_audit(rkv_cache *cache, const rkv_decode_args *args, rkv_audit_result *result, void *stream, rkv_error *err);

#ifdef __cplusplus
}
#endif
#endif
