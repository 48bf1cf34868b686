/* librkv: RocketKV's two-stage KV-cache compression (arXiv 2502.14051) for any inference engine.
 *
 * Stage 1 evicts, once per prompt, the tokens that the prompt's last queries do not look at.
 * Stage 2 picks, at every decode step, the few pages of what is left that matter now.
 * One number sets everything: a token budget or a compression ratio (rkv_plan_make shows the sizes).
 *
 * A cache serves `layers` layers of one shape and up to `max_sequences` sequences:
 *
 *   rkv_cache_memory -> rkv_cache_create -> rkv_sequence_open
 *     per prompt and layer   rkv_prefill   after the engine's own dense attention over the prompt
 *     per step and layer     rkv_decode    instead of the engine's attention (append, select, attend)
 *   rkv_sequence_close -> rkv_cache_destroy
 *
 * The library computes no prompt attention, keeps no pointer to a caller's tensor between calls, and
 * stores keys exactly as given (after RoPE).
 *
 * Conventions, for every struct and call below
 *   Structs    Set struct_size to sizeof; all other fields may be 0 = the default named beside them.
 *              A smaller struct_size (an older caller) is read as if the missing fields were 0. A larger
 *              one (a newer caller) is accepted where the unknown tail of an input is 0, else
 *              RKV_UNSUPPORTED; the unknown tail of an output is set to 0.
 *   Shapes     S prompt tokens, W window rows, Hq query heads, Hkv KV heads, D head size of Q and K, Dv
 *              of V; live rows = kept prompt tokens in order of position, then generated ones.
 *   Memory     Arrays are aligned to their element. Outputs overlap neither each other nor an input.
 *   Ownership  All arguments are the caller's and free again when the call returns (on CUDA: when the
 *              stream has passed it). Only rkv_cache_create makes something, for rkv_cache_destroy.
 *   Stream     A cudaStream_t as void *, NULL = the default stream. On the CPU it is ignored and every
 *              call is finished when it returns.
 *   Threads    One call at a time per cache; calls that take a const cache may run side by side. A
 *              second caller gets RKV_BAD_STATE and changes nothing. Different caches are independent.
 *              A child of fork(2) may use and destroy the caches it inherits, with one thread.
 *              The CPU backend's own threads sleep between calls, block all signals, may run where the
 *              thread that made the cache may, and keep off the core of the one that calls.
 *   Capture    rkv_decode_select, rkv_attend and rkv_decode may be captured in a CUDA graph: pointers,
 *              shapes and strides are baked in; ids, positions and tables are read at replay. Every other
 *              call that enqueues or waits is RKV_BAD_STATE on a capturing stream.
 *   Errors     rkv_status says the kind; *err, where given, a text that names the argument, its value and
 *              what would be right. A call that returns an error has changed nothing, unless its
 *              comment says otherwise. Nothing is printed, thrown or aborted. RKV_INVALID_ARGUMENT for a
 *              NULL, a value out of range or a wrong shape or dtype, RKV_BAD_STATE for a cache in use and
 *              RKV_UNSUPPORTED for what this version does not serve can come from every call and are
 *              not repeated.
 *   Allocation rkv_prefill, rkv_decode_select, rkv_attend and rkv_decode never allocate.
 *   Results    Same input, same backend, same SIMD target: same bits, whatever the number of threads,
 *              the batch, or the chunks of a prompt.
 *   Since      Everything here is since ABI version 1.
 */
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

#define RKV_ABI_VERSION 1 /* major * 1000 + minor; 0.x until the CUDA backend is in, then 1000 */

/* Appended to, never renumbered. */
typedef int32_t rkv_status;
enum {
  RKV_OK,
  RKV_INVALID_ARGUMENT, /* a value, shape or dtype that can never be right here */
  RKV_UNSUPPORTED,      /* valid, but not served by this version, build or backend */
  RKV_OUT_OF_CAPACITY,  /* more than the cache was created for */
  RKV_BUFFER_TOO_SMALL, /* a caller's buffer; the text says the need */
  RKV_BAD_STATE,        /* right call, wrong moment */
  RKV_DEVICE_ERROR,     /* the device failed; only rkv_cache_destroy is valid from here on */
  RKV_ABI_MISMATCH,     /* imported bytes of another version or byte order */
  RKV_CORRUPT_DATA,     /* imported bytes that are damaged or do not fit together */
  RKV_OUT_OF_MEMORY,    /* memory or threads */
  RKV_INTERNAL          /* a bug of the library */
};

enum { RKV_DEVICE_CPU = 0, RKV_DEVICE_CUDA = 1 };
enum { RKV_DTYPE_F32 = 1, RKV_DTYPE_F16, RKV_DTYPE_BF16, RKV_DTYPE_E4M3, RKV_DTYPE_E5M2 };
enum {
  RKV_STORAGE_COMPACT = 0, /* the kept rows are copied into the cache */
  RKV_STORAGE_INDEXED = 1  /* lists and summaries over the engine's own K and V (multi-turn) */
};
enum { RKV_UNIT_PAGES = 0, RKV_UNIT_TOKENS = 1 };        /* selection_unit */
enum { RKV_STAGE1_ALL = 0, RKV_STAGE1_PREFIX_ONLY = 1 }; /* stage1_domain */
enum { RKV_SOFTMAX_TOKENS = 0, RKV_SOFTMAX_PAGES = 1 };  /* selection_domain */
enum { RKV_POOL_MAX = 0, RKV_POOL_AVG = 1 };             /* pooling */
enum { RKV_TEMPERATURE_SPARQ = 0, RKV_TEMPERATURE_SQRT_D = 1 };
enum { RKV_SPACE_LIVE_ROW = 0, RKV_SPACE_POSITION = 1, RKV_SPACE_SLOT = 2 };

typedef struct rkv_cache rkv_cache;

/* On success only status, native_code and text[0] are written; with a struct_size of 0 nothing ever
 * is. */
typedef struct rkv_error {
  uint32_t struct_size;
  rkv_status status;
  int32_t native_code; /* of the device or the system, 0 = none */
  int32_t reserved;
  char text[240]; /* NUL-terminated, cut to what struct_size leaves */
} rkv_error;

/* A strided array. Only strides decide how it lies; every axis has one, of any sign, in elements.
 * Element alignment is enough. Logical axes: [rows, heads, channels]; paged [block, N, Hkv, D] or
 * [block, N, Hkv, D/x, x]. */
typedef struct rkv_tensor {
  uint32_t struct_size;
  int32_t dtype; /* RKV_DTYPE_*; 0 is invalid */
  void *data;    /* only outputs are written */
  int32_t ndim, reserved0;
  int64_t shape[6], strides[6];
  const float *scale;       /* not NULL: RKV_UNSUPPORTED for now */
  int64_t scale_strides[6]; /* read with scale */
  int64_t reserved[4];
} rkv_tensor;

/* What a cache is made for. "plan" = from rkv_plan_make's rules (paper section 3). */
typedef struct rkv_cache_config {
  uint32_t struct_size;
  int32_t device_type, device;     /* RKV_DEVICE_*; ordinal, 0 on the CPU */
  int32_t layers;                  /* 1 to 256, all of this shape; sliding-window layers stay out */
  int32_t q_heads, kv_heads;       /* of this rank, up to 65536; q_heads % kv_heads = 0 */
  int32_t head_dim, head_dim_v;    /* multiples of 8 up to 256; head_dim_v 0 = head_dim */
  int32_t kv_dtype;                /* F32, F16 or BF16; must be given */
  int32_t query_dtype;             /* of q and out; 0 = kv_dtype */
  int32_t summary_dtype;           /* 0 = kv_dtype; E4M3, E5M2 */
  int32_t storage;                 /* RKV_STORAGE_* */
  int32_t max_sequences;           /* slots, up to 2^20; 0 = 1 */
  int32_t max_rows;                /* of one decode call, drafts are rows too; 0 = max_sequences */
  int32_t max_prefills;            /* prompts that come in chunks at one time; 0 = 1 */
  int32_t num_threads;             /* of the CPU backend, the caller's included; 0 = all */
  int64_t max_prompt_tokens;       /* bounds every S; positions stay below 2^31 */
  int64_t max_new_tokens;          /* generated tokens per prompt, drafts included */
  int64_t token_budget;            /* t: tokens' worth of traffic per step, half of it selected
                                      tokens, so t >= 2 * (S + max_new) is lossless; this ... */
  double compression_ratio;        /* ... or (S + max_new) / t, at least 1: exactly one of both */
  int64_t prompt_budget;           /* tokens that stage 1 keeps; >= window + sinks; 0 = plan */
  int64_t top_k;                   /* tokens that stage 2 selects; 0 = plan */
  int32_t page_size, num_channels; /* P, r; 0 = plan; page_size alone also recomputes r */
  int32_t window_size;             /* W, up to 65536; 0 = 32 */
  int32_t kernel_size;             /* pooling of stage 1, odd; 0 = 63 */
  int32_t sinks;                   /* first tokens that both stages always keep */
  int32_t recent_tokens;           /* newest live tokens that stage 2 always selects; 0: even the
                                      new token itself has to compete */
  int32_t selection_unit;          /* RKV_UNIT_*: whole pages, or exactly top_k tokens */
  int32_t stage1_domain, selection_domain, pooling, temperature; /* RKV_STAGE1_*, ... */
  int32_t key_as_query;     /* 1: the last W keys stand in for queries */
  float softmax_scale;      /* 0 = 1 / sqrt(D) */
  float logit_softcap;      /* 0 = none; else cap * tanh(x / cap) */
  uint32_t dense_layers[8]; /* bit l: layer l keeps the whole prompt, attends to all */
  int32_t reserved[8];
} rkv_cache_config;

/* One request's own sizes; 0 = the config's. They may ask for whatever fits the slots; the first
 * rkv_prefill says RKV_OUT_OF_CAPACITY where it does not. */
typedef struct rkv_sequence_options {
  uint32_t struct_size;
  int32_t reserved;
  int64_t max_new_tokens; /* drafts included */
  int64_t token_budget;   /* one of both at most */
  double compression_ratio;
} rkv_sequence_options;

typedef struct rkv_plan {
  uint32_t struct_size;
  int32_t raised; /* 1: the request is short, cap was raised to window + sinks + max_new */
  int32_t dense;  /* 1: top_k >= rows, everything kept is attended to, nothing is scored */
  int32_t page_size, num_channels, reserved;
  int64_t cap;           /* tokens stored per KV head at most */
  int64_t prompt_budget; /* cap - max_new: of the prompt */
  int64_t rows, pages;   /* the most live rows this prompt reaches, and their pages (0 = dense) */
  int64_t top_k;         /* tokens selected per step */
  int64_t token_budget;  /* t, within [1, S + max_new] */
  double ratio, split;   /* c = (S + max_new) / t, and the paper's split factor */
  double storage_ratio, traffic_ratio; /* of full KV, the paper's formulas of c alone */
} rkv_plan;

typedef struct rkv_memory {
  uint32_t struct_size;
  int32_t reserved;
  int64_t alignment;                      /* of both buffers, bytes */
  int64_t storage_bytes, workspace_bytes; /* what rkv_cache_create wants */
  int64_t selection_capacity;             /* least rkv_selection.capacity, token rows */
  int64_t k_bytes, v_bytes, summary_bytes, index_bytes, window_bytes,
      table_bytes; /* what storage_bytes is made of, all slots; table: tables and alignment */
} rkv_memory;

/* The caller's memory on the cache's device, kept alive until rkv_cache_destroy. Caches whose calls
 * never overlap may share a workspace. Contents need not be cleared. */
typedef struct rkv_buffers {
  uint32_t struct_size;
  int32_t reserved;
  void *storage;
  int64_t storage_bytes;
  void *workspace;
  int64_t workspace_bytes;
} rkv_buffers;

/* K and V in the engine's blocks. Not served yet. */
typedef struct rkv_paging {
  uint32_t struct_size;
  int32_t reserved;
  int64_t block_tokens, max_blocks, row_stride;
  const int32_t *block_table;  /* [rows, max_blocks], negative = absent; or block addresses: */
  const void *const *k_blocks; /* [rows, max_blocks] */
  const void *const *v_blocks;
} rkv_paging;

typedef struct rkv_prefill_args {
  uint32_t struct_size;
  int32_t seq, layer, reserved;
  int64_t start;           /* position of q's first row */
  int64_t prompt_tokens;   /* S, the same in every call of a prompt */
  const rkv_tensor *q;     /* [n, Hq, D], query_dtype: rows start .. start + n - 1 */
  const rkv_tensor *k, *v; /* [S, Hkv, D], [S, Hkv, Dv], kv_dtype: the last call alone needs them */
  const rkv_paging *paging;
} rkv_prefill_args;

/* Lists of live rows (or what `space` says), ascending, padded with -1. An engine that attends by
 * itself keeps its K and V and asks for RKV_SPACE_POSITION. */
typedef struct rkv_selection {
  uint32_t struct_size;
  int32_t space;    /* RKV_SPACE_*; attention reads LIVE_ROW alone */
  int32_t *indices; /* [rows, Hkv, capacity] */
  int32_t *counts;  /* [rows, Hkv] */
  int64_t capacity; /* at least rkv_memory.selection_capacity */
} rkv_selection;

typedef struct rkv_decode_args {
  uint32_t struct_size;
  int32_t layer, rows;
  int32_t attend_only; /* 1: a layer that shares the K and V of `layer`, after that one's call */
  const int32_t *seq;  /* [rows], -1 = padding row; memory of the cache's device */
  const int64_t *positions; /* [rows], true position of the row's token (RoPE's) */
  const rkv_tensor *q;      /* [rows, Hq, D] */
  const rkv_tensor *k, *v;  /* [rows, Hkv, D], [rows, Hkv, Dv]: the new tokens' */
  const rkv_paging *paging;
  const rkv_selection *selection;
  const rkv_tensor *out; /* [rows, Hq, Dv], query_dtype */
  float *lse;            /* [rows, Hq], natural log-sum-exp of the logits; nullable */
  int32_t *row_status;   /* [rows], written for refused rows only; nullable */
} rkv_decode_args;

typedef struct rkv_transfer_args {
  uint32_t struct_size;
  int32_t seq, layer, head_begin, head_end, reserved;
  const rkv_tensor *k, *v;
  const rkv_paging *paging;
} rkv_transfer_args;

/* One layer of one sequence. All 0 before its prefill. The plan is the sequence's; a layer of
 * dense_layers keeps and attends to everything all the same. */
typedef struct rkv_sequence_stats {
  uint32_t struct_size;
  int32_t turn;         /* 0 before prefill */
  int32_t window_rows;  /* query rows that scored the prompt; 0 where nothing had to go */
  int32_t fault;        /* status of the last row refused on the device, 0 = none */
  int32_t nonfinite;    /* 1: an inf or NaN was met in the logits (those weigh 0); V is not looked
                           at. Stays until the sequence is closed. */
  int32_t saturated;    /* 1: an 8-bit summary saturated */
  int64_t position;     /* the length: the next append */
  int64_t max_position; /* S + max_new, exclusive */
  int64_t prompt, kept, generated, pages;
  int64_t k_bytes, v_bytes, summary_bytes, index_bytes; /* in use, all KV heads */
  int64_t full_kv_bytes;                                /* of this length, uncompressed */
  int64_t bytes_read_per_step;                          /* summaries and selected rows */
  rkv_plan *plan;                                       /* nullable, filled */
} rkv_sequence_stats;

/* Over rows and query heads. No rows: all NaN. */
typedef struct rkv_audit_result {
  uint32_t struct_size;
  int32_t rows;
  double mass_mean, mass_min;   /* share of the attention mass of all live rows that was selected */
  double prompt_mass_mean;      /* of the whole prompt; NaN in COMPACT storage */
  double error_mean, error_max; /* |out - out of all live rows| / |out of all live rows| */
} rkv_audit_result;

/* The ABI and the release of the loaded library. Static strings. No errors. */
RKV_API int32_t rkv_abi_version(void);
RKV_API const char *rkv_version_string(void);

/* "OK", "INVALID_ARGUMENT", ...; "UNKNOWN" for other numbers. Static string. */
RKV_API const char *rkv_status_name(rkv_status status);

/* How many devices of a kind this build and this machine serve: 1 for the CPU, 0 for CUDA where
 * there is no driver or backend. Any thread. */
RKV_API rkv_status rkv_device_count(int32_t device_type, int32_t *count, rkv_error *err);

/* All sizes for a prompt of prompt_tokens (1 or more), from the config's budget or ratio or the
 * options' (NULL = the config's). Fields that only size a cache may be 0. Touches no device, needs
 * no cache, any thread. Paper section 3.2 (split), 3.3 (page size and channels). */
RKV_API rkv_status rkv_plan_make(const rkv_cache_config *config,
                                 const rkv_sequence_options *options, int64_t prompt_tokens,
                                 rkv_plan *plan, rkv_error *err);

/* What a cache of this config needs: bytes of storage and workspace, their alignment, the least
 * capacity of a selection. Covers every prompt of 1 .. max_prompt_tokens under the config's own budget.
 * Touches no device, any thread. With num_threads 0 the workspace is sized for this machine. */
RKV_API rkv_status rkv_cache_memory(const rkv_cache_config *config, rkv_memory *memory,
                                    rkv_error *err);

/* Makes a cache in the caller's buffers, or with buffers NULL in its own. *cache is written on
 * success only. On the CPU the environment variable RKV_SIMD (avx3, avx2, sse2, neon) forces a SIMD
 * target, for tests. May allocate and wait.
 * RKV_BUFFER_TOO_SMALL, RKV_OUT_OF_MEMORY (memory, threads). */
RKV_API rkv_status rkv_cache_create(const rkv_cache_config *config, const rkv_buffers *buffers,
                                    rkv_cache **cache, rkv_error *err);

/* Frees what create made; the caller's buffers are free afterwards. NULL is fine. Never waits; no
 * other call may be running in the cache. */
RKV_API void rkv_cache_destroy(rkv_cache *cache);

/* Takes slot `seq` (the caller's number, 0 .. max_sequences - 1) for a new sequence; options NULL =
 * the config's sizes. RKV_BAD_STATE where it is open. */
RKV_API rkv_status rkv_sequence_open(rkv_cache *cache, int32_t seq,
                                     const rkv_sequence_options *options, rkv_error *err);

/* Gives the slot back; its rows are gone. RKV_BAD_STATE where it is not open. */
RKV_API rkv_status rkv_sequence_close(rkv_cache *cache, int32_t seq, void *stream, rkv_error *err);

/* Drops all rows at `position` and after, in every layer, so that the next append is there (layers
 * that are shorter stay). Not before the prompt's end, not beyond the length: RKV_INVALID_ARGUMENT.
 * RKV_BAD_STATE before the first layer's prefill. */
RKV_API rkv_status rkv_sequence_rewind(rkv_cache *cache, int32_t seq, int64_t position,
                                       void *stream, rkv_error *err);

/* Makes the closed slot `copy` a copy of `seq`. Not served yet. */
RKV_API rkv_status rkv_sequence_fork(rkv_cache *cache, int32_t seq, int32_t copy, void *stream,
                                     rkv_error *err);

/* Writes one layer's heads [head_begin, head_end) as bytes for another cache; out NULL: *bytes alone.
 * Not served yet. */
RKV_API rkv_status rkv_sequence_export(rkv_cache *cache, const rkv_transfer_args *args, void *out,
                                       int64_t capacity, int64_t *bytes, void *stream,
                                       rkv_error *err);

/* Takes such bytes into an open slot that has not been prefilled. Not served yet. */
RKV_API rkv_status rkv_sequence_import(rkv_cache *cache, const rkv_transfer_args *args,
                                       const void *in, int64_t bytes, void *stream, rkv_error *err);

/* Stage 1 (paper section 3.2) of one layer of one sequence: keeps min(prompt_budget, S) tokens per
 * KV head, in order of position, and summarises their pages. Layers in any order.
 * A prompt may come in chunks: q carries the rows of this call. Only rows in [S - W, S) matter, so
 * earlier calls may be left out; the cache keeps such rows until the call with start + n = S, which
 * comes last and carries K and V of the whole prompt (earlier calls ignore k and v). The rows that
 * score are the unbroken run that ends at S; a repeated row replaces the earlier one. Any chunking
 * gives the same bits. q may be NULL in the last call where S <= prompt_budget or with key_as_query.
 * prompt_tokens 0 and empty chunks before the last call are fine and do nothing.
 * RKV_BAD_STATE: not open, or COMPACT and already prefilled. RKV_OUT_OF_CAPACITY: S above
 * max_prompt_tokens, a plan that exceeds the slot, or more than max_prefills sequences with rows
 * waiting. The first call fixes S and the plan. */
RKV_API rkv_status rkv_prefill(rkv_cache *cache, const rkv_prefill_args *args, void *stream,
                               rkv_error *err);

/* Stage 2 (paper section 3.3): appends the rows' K and V, then writes per row and KV head which live
 * rows to attend to. Needs q, k, v, selection; out and lse are not touched.
 * A row at the layer's length n appends; at a lower position, not before the prompt's end, it first
 * drops all rows from there on (a retried step, rejected drafts). Rows of one sequence are adjacent
 * with consecutive positions and give the bits of one call per row. Padding rows get count 0.
 * Rows that are not adjacent or consecutive: RKV_INVALID_ARGUMENT for the call as a whole.
 * Refused rows (their status also goes to row_status): RKV_BAD_STATE no open, prefilled sequence or a
 * gap; RKV_INVALID_ARGUMENT before the prompt's end; RKV_OUT_OF_CAPACITY at prompt + max_new. On the
 * CPU the call returns the first of these and changes nothing; on CUDA such a row alone is skipped.
 * RKV_OUT_OF_CAPACITY: rows above max_rows. RKV_BUFFER_TOO_SMALL: selection.capacity. */
RKV_API rkv_status rkv_decode_select(rkv_cache *cache, const rkv_decode_args *args, void *stream,
                                     rkv_error *err);

/* Exact attention of each row over its selection (LIVE_ROW), or with selection NULL over all live
 * rows up to the row's position. Never appends: the row must be stored already (RKV_BAD_STATE). k and v
 * are not looked at. Padding rows and rows with nothing to attend to: out 0, lse -inf. */
RKV_API rkv_status rkv_attend(rkv_cache *cache, const rkv_decode_args *args, void *stream,
                              rkv_error *err);

/* rkv_decode_select and rkv_attend in one: the fast path, the same bits. Writes the selection too
 * where one is given. Errors as there. */
RKV_API rkv_status rkv_decode(rkv_cache *cache, const rkv_decode_args *args, void *stream,
                              rkv_error *err);

/* Counters of one layer of one sequence; stats->plan, where set, gets the plan. On CUDA it waits for
 * the stream: not for the hot path. RKV_BAD_STATE: not open. */
RKV_API rkv_status rkv_stats(const rkv_cache *cache, int32_t seq, int32_t layer, void *stream,
                             rkv_sequence_stats *stats, rkv_error *err);

/* The original positions of all live rows, ascending, [Hkv][*count]; capacity in elements. out NULL:
 * *count (per KV head) alone. RKV_BAD_STATE before prefill; RKV_BUFFER_TOO_SMALL sets *count too. */
RKV_API rkv_status rkv_kept_positions(const rkv_cache *cache, int32_t seq, int32_t layer,
                                      void *stream, int64_t *out, int64_t capacity, int64_t *count,
                                      rkv_error *err);

/* What the selection misses, for rows that are stored already: selects (or takes args->selection) and
 * compares with attention over all live rows. Never appends; out is not touched; waits. */
RKV_API rkv_status rkv_audit(rkv_cache *cache, const rkv_decode_args *args,
                             rkv_audit_result *result, void *stream, rkv_error *err);

#ifdef __cplusplus
}
#endif
#endif
