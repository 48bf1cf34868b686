/* Every field of a configuration wrong in turn (B29, B76): the same status from every call that
 * takes one, a text with field, value and need, nothing written. */
#include "rig.h"

#include <math.h>

/* plan: whether rkv_plan_make looks at the field with this value too. */
static void refused(const rkv_cache_config* config, rkv_status status, const char* what,
                    const char* need, int plan, int line) {
  rkv_error err = ZERO(rkv_error);
  rkv_memory memory, memory_before;
  memset(&memory, 0x5A, sizeof memory);
  memory.struct_size = sizeof memory;
  memory_before = memory;
  rkv_plan made, made_before;
  memset(&made, 0x5A, sizeof made);
  made.struct_size = sizeof made;
  made_before = made;
  rkv_cache* cache = (rkv_cache*)(void*)&err; /* any address: it must stay */
  rkv_cache* const cache_before = cache;
  for (int call = 0; call < (plan ? 3 : 2); ++call) {
    static const char* const names[] = {"rkv_cache_memory", "rkv_cache_create", "rkv_plan_make"};
    err = ZERO(rkv_error);
    const rkv_status got = call == 0   ? rkv_cache_memory(config, &memory, &err)
                           : call == 1 ? rkv_cache_create(config, NULL, &cache, &err)
                                       : rkv_plan_make(config, NULL, 20, &made, &err);
    if (got != status) printf("line %d, %s, %s\n", line, names[call], what);
    CHECK_STATUS(status, got, &err);
    CHECK_INT(got, err.status);
    if (!CHECK_TEXT(err.text, what)) printf("line %d, %s\n", line, names[call]);
    CHECK_TEXT(err.text, need);
  }
  CHECK(memcmp(&memory, &memory_before, sizeof memory) == 0);
  CHECK(memcmp(&made, &made_before, sizeof made) == 0);
  CHECK(cache == cache_before);
}

static rkv_cache_config config; /* of the running case */

#define FIELD(field, value, status, text, need)        \
  do {                                                 \
    config = small_config();                           \
    config.field = (value);                            \
    refused(&config, status, text, need, 1, __LINE__); \
  } while (0)
#define INVALID(field, value, need) \
  FIELD(field, value, RKV_INVALID_ARGUMENT, "config." #field " is " #value, need)
/* Fields whose 0 rkv_plan_make replaces. */
#define SIZING_ZERO(field, need)                                                         \
  do {                                                                                   \
    config = small_config();                                                             \
    config.field = 0;                                                                    \
    refused(&config, RKV_INVALID_ARGUMENT, "config." #field " is 0", need, 0, __LINE__); \
  } while (0)

static void test_place(void) {
  INVALID(device_type, -1, "[0, 1]");
  INVALID(device_type, 2, "[0, 1]");
  INVALID(device, 1, "device 0");
  INVALID(device, -1, "device 0");
  INVALID(storage, -1, "[0, 1]");
  INVALID(storage, 2, "[0, 1]");
}

static void test_shape(void) {
  SIZING_ZERO(layers, "[1, 256]");
  INVALID(layers, -1, "[1, 256]");
  INVALID(layers, 257, "[1, 256]");
  INVALID(layers, 2147483647, "[1, 256]");
  SIZING_ZERO(q_heads, "[1, ");
  INVALID(q_heads, -4, "[1, ");
  INVALID(q_heads, 2147483647, "[1, ");
  SIZING_ZERO(kv_heads, "[1, ");
  INVALID(kv_heads, -2, "[1, ");
  INVALID(q_heads, 5, "multiple of config.kv_heads (2)");
  INVALID(q_heads, 1, "multiple of config.kv_heads (2)");
  INVALID(head_dim, 0, "multiple of 8 from 8 to 256");
  INVALID(head_dim, 1, "multiple of 8"); /* B45 */
  INVALID(head_dim, 12, "multiple of 8");
  INVALID(head_dim, -8, "multiple of 8");
  INVALID(head_dim, 2147483647, "multiple of 8");
  INVALID(head_dim_v, 12, "multiple of 8");
  INVALID(head_dim_v, -8, "multiple of 8");
  SIZING_ZERO(kv_dtype, "BF16 (3)");
  INVALID(kv_dtype, -1, "BF16 (3)");
  INVALID(kv_dtype, 6, "BF16 (3)");
  INVALID(query_dtype, -1, "BF16 (3)");
  INVALID(query_dtype, 6, "BF16 (3)");
  INVALID(summary_dtype, -1, "BF16 (3)");
  INVALID(summary_dtype, 6, "BF16 (3)");
  INVALID(summary_dtype, 2, "config.kv_dtype (1)");
}

static void test_limits(void) {
  INVALID(max_sequences, -1, "[0, ");
  INVALID(max_sequences, 2147483647, "[0, ");
  INVALID(max_rows, -1, "[0, ");
  INVALID(max_rows, 2147483647, "[0, ");
  INVALID(max_prefills, -1, "[0, ");
  INVALID(max_prefills, 2147483647, "[0, ");
  INVALID(num_threads, -1, "[0, ");
  INVALID(num_threads, 2147483647, "[0, ");
  SIZING_ZERO(max_prompt_tokens, "[1, 2147483647]");
  INVALID(max_prompt_tokens, -1, "[1, 2147483647]");
  INVALID(max_prompt_tokens, 2147483648, "[1, 2147483647]");
  INVALID(max_new_tokens, -1, "[0, ");
  INVALID(max_new_tokens, 2147483647, "[0, "); /* with the prompt beyond 2^31 */
}

static void test_budgets(void) {
  INVALID(token_budget, -1, "at least 1");
  config = small_config();
  config.token_budget = 0;
  refused(&config, RKV_INVALID_ARGUMENT, "config.token_budget and config.compression_ratio are 0",
          "give one of both", 1, __LINE__);
  config.token_budget = 24;
  config.compression_ratio = 4;
  refused(&config, RKV_INVALID_ARGUMENT, "config.token_budget is 24", "compression_ratio is 4", 1,
          __LINE__);
  const double bad[] = {-1, -0.5, 1e-300, 0.5, 0.9999999, NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 8; ++i) { /* B29 */
    config = small_config();
    config.token_budget = 0;
    config.compression_ratio = bad[i];
    refused(&config, RKV_INVALID_ARGUMENT, "config.compression_ratio is ", "at least 1", 1,
            __LINE__);
  }
  const double good[] = {1, 1.0000001, 64, 1e9, 1e300};
  for (int i = 0; i < 5; ++i) {
    config = small_config();
    config.token_budget = 0;
    config.compression_ratio = good[i];
    rkv_memory memory = ZERO(rkv_memory);
    rkv_error err = ZERO(rkv_error);
    CHECK_STATUS(RKV_OK, rkv_cache_memory(&config, &memory, &err), &err);
  }
}

static void test_overrides(void) {
  INVALID(prompt_budget, -1, "[0, ");
  INVALID(prompt_budget, 7, "window_size + sinks = 8"); /* B09 */
  config = small_config();
  config.sinks = 4;
  config.prompt_budget = 11;
  refused(&config, RKV_INVALID_ARGUMENT, "config.prompt_budget is 11", "window_size + sinks = 12",
          1, __LINE__);
  INVALID(top_k, -1, "[0, ");
  INVALID(page_size, -1, "[0, ");
  INVALID(num_channels, -1, "[0, 16]");
  INVALID(num_channels, 17, "[0, 16]");
}

static void test_stages(void) {
  INVALID(window_size, -1, "[0, ");
  INVALID(window_size, 2147483647, "[0, ");
  INVALID(kernel_size, -1, "[0, ");
  INVALID(kernel_size, 4, "odd, or 0 for 63");
  INVALID(sinks, -1, "[0, ");
  INVALID(recent_tokens, -1, "[0, ");
  INVALID(selection_unit, 2, "[0, 1]");
  INVALID(selection_unit, -1, "[0, 1]");
  INVALID(stage1_domain, 2, "[0, 1]");
  INVALID(selection_domain, 2, "[0, 1]");
  INVALID(pooling, 2, "[0, 1]");
  INVALID(temperature, 2, "[0, 1]");
  INVALID(key_as_query, 2, "[0, 1]");
  INVALID(key_as_query, -1, "[0, 1]");
  INVALID(softmax_scale, -1, "finite and above 0");
  INVALID(logit_softcap, -1, "finite and above 0");
  FIELD(softmax_scale, NAN, RKV_INVALID_ARGUMENT, "config.softmax_scale is ", "finite");
  FIELD(softmax_scale, INFINITY, RKV_INVALID_ARGUMENT, "config.softmax_scale is inf", "finite");
  FIELD(logit_softcap, NAN, RKV_INVALID_ARGUMENT, "config.logit_softcap is ", "finite");
  FIELD(dense_layers[0], 4u, RKV_INVALID_ARGUMENT, "bit 2", "config.layers is 2");
  FIELD(dense_layers[7], 1u << 31, RKV_INVALID_ARGUMENT, "bit 255", "config.layers is 2");
}

static void test_reserved(void) {
  for (int i = 0; i < 8; ++i) {
    char text[40];
    snprintf(text, sizeof text, "config.reserved[%d] is -3", i);
    config = small_config();
    config.reserved[i] = -3;
    refused(&config, RKV_UNSUPPORTED, text, "must be 0", 1, __LINE__);
  }
}

static void test_plan_prompt(void) {
  rkv_error err = ZERO(rkv_error);
  rkv_plan plan = ZERO(rkv_plan);
  config = small_config();
  const int64_t bad[] = {0, -1, INT64_MIN, INT64_C(2147483648), INT64_MAX};
  for (int i = 0; i < 5; ++i) {
    char text[60];
    snprintf(text, sizeof text, "prompt_tokens is %" PRId64, bad[i]);
    CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_plan_make(&config, NULL, bad[i], &plan, &err), &err);
    CHECK_TEXT(err.text, text);
    CHECK_TEXT(err.text, "[1, 2147483647]");
  }
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_plan_make(&config, NULL, 2147483647, &plan, &err), &err);
  CHECK_TEXT(err.text, "max_new_tokens = 24");
  CHECK_INT(0, plan.cap);
}

/* One request's options, through the plan and through open. */
static void test_options(void) {
  rkv_error err = ZERO(rkv_error);
  config = small_config();
  rkv_cache* cache = NULL;
  REQUIRE(rkv_cache_create(&config, NULL, &cache, &err) == RKV_OK);
#define OPTIONS(field, value, want, saying)                                      \
  do {                                                                           \
    rkv_sequence_options o = ZERO(rkv_sequence_options);                         \
    o.field = (value);                                                           \
    rkv_plan plan = ZERO(rkv_plan);                                              \
    CHECK_STATUS(want, rkv_plan_make(&config, &o, 20, &plan, &err), &err);       \
    CHECK_TEXT(err.text, saying);                                                \
    CHECK_INT(0, plan.cap);                                                      \
    CHECK_STATUS(want, rkv_sequence_open(cache, 0, &o, &err), &err);             \
    CHECK_TEXT(err.text, saying);                                                \
    CHECK_STATUS(RKV_BAD_STATE, rkv_sequence_close(cache, 0, NULL, &err), &err); \
  } while (0)
  OPTIONS(reserved, 5, RKV_UNSUPPORTED, "options.reserved is 5");
  OPTIONS(max_new_tokens, -1, RKV_INVALID_ARGUMENT, "options.max_new_tokens is -1");
  OPTIONS(max_new_tokens, INT64_C(1) << 31, RKV_INVALID_ARGUMENT, "2147483648");
  OPTIONS(token_budget, -5, RKV_INVALID_ARGUMENT, "options.token_budget is -5");
  OPTIONS(compression_ratio, 0.5, RKV_INVALID_ARGUMENT, "options.compression_ratio is 0.5");
  OPTIONS(compression_ratio, NAN, RKV_INVALID_ARGUMENT, "options.compression_ratio is ");
  rkv_sequence_options both = ZERO(rkv_sequence_options);
  both.token_budget = 9;
  both.compression_ratio = 3;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_sequence_open(cache, 0, &both, &err), &err);
  CHECK_TEXT(err.text, "options.token_budget is 9");
  rkv_cache_destroy(cache);
}

/* Buffers: missing, too small by one byte, badly aligned. */
static void test_buffers(void) {
  rkv_error err = ZERO(rkv_error);
  rkv_memory memory = ZERO(rkv_memory);
  config = small_config();
  REQUIRE(rkv_cache_memory(&config, &memory, &err) == RKV_OK);
  guard storage = guard_make(memory.storage_bytes + 64, 64);
  guard workspace = guard_make(memory.workspace_bytes + 64, 64);
  rkv_buffers good = ZERO(rkv_buffers);
  good.storage = storage.data;
  good.storage_bytes = memory.storage_bytes;
  good.workspace = workspace.data;
  good.workspace_bytes = memory.workspace_bytes;
  rkv_cache* cache = NULL;
  char text[80];
#define BUFFERS(change, want, saying)                                      \
  do {                                                                     \
    rkv_buffers b = good;                                                  \
    change;                                                                \
    CHECK_STATUS(want, rkv_cache_create(&config, &b, &cache, &err), &err); \
    CHECK_TEXT(err.text, saying);                                          \
    CHECK(cache == NULL);                                                  \
  } while (0)
  BUFFERS(b.storage = NULL, RKV_INVALID_ARGUMENT, "buffers.storage is NULL");
  BUFFERS(b.workspace = NULL, RKV_INVALID_ARGUMENT, "buffers.workspace is NULL");
  BUFFERS(b.storage = storage.data + 32, RKV_INVALID_ARGUMENT, "aligned to 64");
  BUFFERS(b.workspace = workspace.data + 1, RKV_INVALID_ARGUMENT, "aligned to 64");
  BUFFERS(b.storage_bytes = -1, RKV_BUFFER_TOO_SMALL, "buffers.storage_bytes is -1");
  snprintf(text, sizeof text, "buffers.storage_bytes is %" PRId64, memory.storage_bytes - 1);
  BUFFERS(b.storage_bytes -= 1, RKV_BUFFER_TOO_SMALL, text);
  snprintf(text, sizeof text, "needs %" PRId64, memory.workspace_bytes);
  BUFFERS(b.workspace_bytes -= 1, RKV_BUFFER_TOO_SMALL, text);
  BUFFERS(b.workspace_bytes = 0, RKV_BUFFER_TOO_SMALL, "buffers.workspace_bytes is 0");
  BUFFERS(b.reserved = 1, RKV_UNSUPPORTED, "buffers.reserved is 1");
  for (size_t i = 0; i < storage.bytes; ++i) { /* nothing was written by a failed create */
    if (!CHECK_INT(0xFF, storage.data[i])) break;
  }
  CHECK_STATUS(RKV_OK, rkv_cache_create(&config, &good, &cache, &err), &err);
  rkv_cache_destroy(cache);
  CHECK(guard_intact(&storage) && guard_intact(&workspace));
  guard_free(&storage);
  guard_free(&workspace);
}

/* A SIMD target that does not exist is refused by name, not replaced. */
static void test_simd_variable(void) {
  rkv_error err = ZERO(rkv_error);
  rkv_cache* cache = NULL;
  config = small_config();
  char* before = getenv("RKV_SIMD");
  if (before != NULL) before = strdup(before);
  setenv("RKV_SIMD", "avx9", 1);
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_cache_create(&config, NULL, &cache, &err), &err);
  CHECK_TEXT(err.text, "RKV_SIMD");
  CHECK(cache == NULL);
  setenv("RKV_SIMD", "", 1);
  CHECK_STATUS(RKV_OK, rkv_cache_create(&config, NULL, &cache, &err), &err);
  rkv_cache_destroy(cache);
  if (before != NULL) {
    setenv("RKV_SIMD", before, 1);
  } else {
    unsetenv("RKV_SIMD");
  }
  free(before);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_place);
  CASE(test_shape);
  CASE(test_limits);
  CASE(test_budgets);
  CASE(test_overrides);
  CASE(test_stages);
  CASE(test_reserved);
  CASE(test_plan_prompt);
  CASE(test_options);
  CASE(test_buffers);
  CASE(test_simd_variable);
  return check_end();
}
