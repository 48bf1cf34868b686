/* What comes later is refused by name, never ignored (B36, B45, B70). */
#include "twin.h"

static rig r;

static void refused(const rkv_cache_config* config, const char* text, int line) {
  rkv_error err = ZERO(rkv_error);
  rkv_memory memory = ZERO(rkv_memory);
  rkv_cache* cache = NULL;
  int good = CHECK_STATUS(RKV_UNSUPPORTED, rkv_cache_memory(config, &memory, &err), &err);
  good &= CHECK_TEXT(err.text, text);
  good &= CHECK_STATUS(RKV_UNSUPPORTED, rkv_cache_create(config, NULL, &cache, &err), &err);
  good &= CHECK_TEXT(err.text, text);
  good &= CHECK(cache == NULL && memory.storage_bytes == 0);
  if (!good) printf("line %d\n", line);
}
#define REFUSED(change, text)            \
  do {                                   \
    rkv_cache_config c = small_config(); \
    change;                              \
    refused(&c, text, __LINE__);         \
  } while (0)

static void test_config(void) {
  REFUSED(c.storage = RKV_STORAGE_INDEXED, "config.storage is 1: INDEXED");
  REFUSED(c.device_type = RKV_DEVICE_CUDA, "config.device_type is 1: this build has no CUDA");
  REFUSED(c.summary_dtype = RKV_DTYPE_E4M3, "config.summary_dtype is 4: 8-bit");
  REFUSED(c.summary_dtype = RKV_DTYPE_E5M2, "config.summary_dtype is 5: 8-bit");
  REFUSED(c.kv_dtype = RKV_DTYPE_E4M3, "config.kv_dtype is 4: 8-bit");
  REFUSED(c.kv_dtype = RKV_DTYPE_E5M2, "config.kv_dtype is 5: 8-bit");
  REFUSED(c.query_dtype = RKV_DTYPE_E5M2, "config.query_dtype is 5: 8-bit");
  REFUSED(c.head_dim = 512, "config.head_dim is 512: this build serves up to 256");
  REFUSED(c.head_dim = 264, "config.head_dim is 264: this build serves up to 256");
  REFUSED(c.head_dim_v = 512, "config.head_dim_v is 512: this build serves up to 256");
}

static const rkv_paging paging = {.struct_size = sizeof paging, .block_tokens = 16};

static void failed(rkv_status got, const char* text, int line) {
  int good = CHECK_STATUS(RKV_UNSUPPORTED, got, &r.err);
  good &= CHECK_TEXT(r.err.text, text);
  good &= CHECK_INT(0, rig_stats(&r, 1, 0).turn);
  good &= CHECK_INT(151, rig_stats(&r, 0, 0).position);
  if (!good) printf("line %d\n", line);
}

/* Sequence 0 generates, 1 is open. */
static void test_prefill(void) {
#define PREFILL(change, text)                                          \
  do {                                                                 \
    rkv_prefill_args args = *rig_chunk(&r, 1, 0, 0, 150, 150);         \
    rkv_tensor q = r.prompt_q, k = r.prompt_k, v = r.prompt_v;         \
    args.q = &q, args.k = &k, args.v = &v;                             \
    change;                                                            \
    failed(rkv_prefill(r.cache, &args, NULL, &r.err), text, __LINE__); \
  } while (0)
  const float scale = 1;
  PREFILL(args.paging = &paging, "args.paging is set");
  PREFILL(q.scale = &scale, "args.q.scale is set");
  PREFILL(k.scale = &scale, "args.k.scale is set");
  PREFILL(v.scale = &scale, "args.v.scale is set");
  PREFILL(k.ndim = 4, "args.k.ndim is 4: it must be 3; paged tensors");
  PREFILL(v.ndim = 5, "args.v.ndim is 5: it must be 3; paged tensors");
  PREFILL(k.dtype = RKV_DTYPE_E4M3, "args.k.dtype is 4 (E4M3)");
  PREFILL(v.dtype = RKV_DTYPE_E5M2, "args.v.dtype is 5 (E5M2)");
}

static rkv_status audit(rkv_cache* cache, const rkv_decode_args* args, void* stream,
                        rkv_error* err) {
  rkv_audit_result result = ZERO(rkv_audit_result);
  return rkv_audit(cache, args, &result, stream, err);
}

static void test_steps(void) {
#define STEP(call, change, text)                                      \
  do {                                                                \
    rkv_decode_args args = *rig_row(&r, 0, 0, 150);                   \
    rkv_tensor q = r.new_q, k = r.new_k, v = r.new_v, out = r.result; \
    rkv_selection selection = r.selection;                            \
    args.q = &q, args.k = &k, args.v = &v, args.out = &out;           \
    args.selection = &selection;                                      \
    change;                                                           \
    failed(call(r.cache, &args, NULL, &r.err), text, __LINE__);       \
    CHECK(rig_untouched(&r, 1));                                      \
  } while (0)
#define EVERY_STEP(change, text)         \
  STEP(rkv_decode, change, text);        \
  STEP(rkv_decode_select, change, text); \
  STEP(rkv_attend, change, text);        \
  STEP(audit, change, text)
  const float scale = 2;
  EVERY_STEP(args.paging = &paging, "args.paging is set");
  EVERY_STEP(q.scale = &scale, "args.q.scale is set");
  EVERY_STEP(q.ndim = 4, "args.q.ndim is 4");
  EVERY_STEP(selection.space = RKV_SPACE_SLOT, "selection.space is 2: SLOT");
  STEP(rkv_decode, k.scale = &scale, "args.k.scale is set");
  STEP(rkv_decode, k.dtype = RKV_DTYPE_E4M3, "args.k.dtype is 4 (E4M3)");
  STEP(rkv_decode, k.ndim = 4, "args.k.ndim is 4: it must be 3; paged tensors");
  STEP(rkv_decode, v.ndim = 5, "args.v.ndim is 5: it must be 3; paged tensors");
  STEP(rkv_decode, out.scale = &scale, "args.out.scale is set");
  STEP(rkv_attend, out.dtype = RKV_DTYPE_E4M3, "args.out.dtype is 4 (E4M3)");
}

static void test_fork_export_import(void) {
  rkv_transfer_args args = ZERO(rkv_transfer_args);
  args.head_end = 2;
  uint8_t bytes[64];
  int64_t size = -7;
  memset(bytes, 0x5A, sizeof bytes);
  failed(rkv_sequence_fork(r.cache, 0, 2, NULL, &r.err), "copy is 2: rkv_sequence_fork", __LINE__);
  failed(rkv_sequence_export(r.cache, &args, bytes, 64, &size, NULL, &r.err),
         "rkv_sequence_export is not served yet (args.seq is 0)", __LINE__);
  args.seq = 1;
  failed(rkv_sequence_import(r.cache, &args, bytes, 64, NULL, &r.err),
         "bytes is 64: rkv_sequence_import is not served yet (args.seq is 1)", __LINE__);
  CHECK(bytes_are(bytes, sizeof bytes, 0x5A));
  CHECK_INT(-7, size);
  CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_fork(r.cache, 2, 0, NULL, &r.err), &r.err);
  args.seq = 9;
  CHECK_STATUS(RKV_INVALID_ARGUMENT,
               rkv_sequence_export(r.cache, &args, bytes, 64, &size, NULL, &r.err), &r.err);
}

/* What is left after all those: the sequence goes on. */
static void test_goes_on(void) {
  CHECK_STATUS(RKV_OK, rig_prefill(&r, 1, 0, 150), &r.err);
  CHECK_STATUS(RKV_OK, rig_decode(&r, 0, 0, 151), &r.err);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  const rkv_cache_config config = small_config();
  rig_init(&r, &config);
  rig_start(&r, 0, 150);
  CHECK_STATUS(RKV_OK, rig_decode(&r, 0, 0, 150), &r.err);
  CHECK_STATUS(RKV_OK, rkv_sequence_open(r.cache, 1, NULL, &r.err), &r.err);
  CASE(test_config);
  CASE(test_prefill);
  CASE(test_steps);
  CASE(test_fork_export_import);
  CASE(test_goes_on);
  rig_free(&r);
  return check_end();
}
