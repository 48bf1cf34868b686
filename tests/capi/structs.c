/* Rule 4, struct growth: for every struct an older, smaller size, a newer one with a zero tail, a
 * newer one that asks for something unknown, and a struct_size that was never set. */
#include "rig.h"

enum { TAIL = 64 };

/* A struct as a newer caller has it: bytes beyond what this library knows. */
#define NEWER(type)                     \
  union {                               \
    type known;                         \
    uint8_t bytes[sizeof(type) + TAIL]; \
  }

static const uint32_t garbage[] = {0, 1, 4, 7, 12, 4097, 0x80000000u, 0xFFFFFFFFu};
enum { GARBAGE = sizeof garbage / sizeof garbage[0] };

static rig r;
static rkv_error err;

/* Any call with the struct under test, as `attempt` does it. */
typedef rkv_status (*attempt)(void* structure);

/* Copies of an input struct whose real content lies in `known`. Every valid size gives `want`. */
static void check_input(const void* known, uint32_t size, uint32_t least, attempt call,
                        const char* name) {
  uint8_t bytes[512] = {0};
  uint32_t* struct_size = (uint32_t*)(void*)bytes;
  char text[96];
  REQUIRE(size + TAIL <= sizeof bytes);
  /* An older caller: fields from `least` on are not given, and not read. */
  for (uint32_t older = least; older <= size; older += 8) {
    memset(bytes, 0xFF, sizeof bytes);
    memcpy(bytes, known, older);
    *struct_size = older;
    err = ZERO(rkv_error);
    if (CHECK_STATUS(RKV_OK, call(bytes), &err) == 0) printf("%s of %u bytes\n", name, older);
  }
  /* A newer caller that uses nothing new. */
  memset(bytes, 0, sizeof bytes);
  memcpy(bytes, known, size);
  *struct_size = size + TAIL;
  CHECK_STATUS(RKV_OK, call(bytes), &err);
  /* One that does: any byte of the tail. */
  for (uint32_t i = size; i < size + TAIL; i += 21) {
    bytes[i] = 1;
    CHECK_STATUS(RKV_UNSUPPORTED, call(bytes), &err);
    snprintf(text, sizeof text, "%s has %u bytes, byte %u is not 0", name, size + TAIL, i);
    CHECK_TEXT(err.text, text);
    snprintf(text, sizeof text, "knows %u bytes", size);
    CHECK_TEXT(err.text, text);
    bytes[i] = 0;
  }
  for (int i = 0; i < GARBAGE; ++i) {
    *struct_size = garbage[i];
    CHECK_STATUS(RKV_INVALID_ARGUMENT, call(bytes), &err);
    snprintf(text, sizeof text, "%s.struct_size is %u", name, garbage[i]);
    CHECK_TEXT(err.text, text);
    snprintf(text, sizeof text, "sizeof (%u)", size);
    CHECK_TEXT(err.text, text);
  }
}

/* `out` of every size: filled only so far, the unknown tail zeroed, struct_size kept. */
static void check_output(const void* known, uint32_t size, attempt call, const char* name) {
  uint8_t bytes[512];
  uint32_t* struct_size = (uint32_t*)(void*)bytes;
  char text[96];
  REQUIRE(size + TAIL <= sizeof bytes);
  for (uint32_t older = 8; older <= size; older += 8) {
    memset(bytes, 0x00, sizeof bytes);
    memset(bytes + older, 0xEE, sizeof bytes - older);
    *struct_size = older;
    CHECK_STATUS(RKV_OK, call(bytes), &err);
    CHECK_INT(older, *struct_size);
    CHECK(memcmp(bytes + 4, (const uint8_t*)known + 4, older - 4) == 0);
    for (uint32_t i = older; i < sizeof bytes; ++i) {
      if (!CHECK_INT(0xEE, bytes[i])) return;
    }
  }
  memset(bytes, 0x00, size);
  memset(bytes + size, 0xEE, sizeof bytes - size);
  *struct_size = size + TAIL;
  CHECK_STATUS(RKV_OK, call(bytes), &err);
  CHECK_INT(size + TAIL, *struct_size);
  CHECK(memcmp(bytes + 4, (const uint8_t*)known + 4, size - 4) == 0);
  for (uint32_t i = size; i < size + TAIL; ++i) CHECK_INT(0, bytes[i]);
  for (uint32_t i = size + TAIL; i < sizeof bytes; ++i) CHECK_INT(0xEE, bytes[i]);
  for (int i = 0; i < GARBAGE; ++i) {
    memset(bytes, 0xEE, sizeof bytes);
    *struct_size = garbage[i];
    CHECK_STATUS(RKV_INVALID_ARGUMENT, call(bytes), &err);
    snprintf(text, sizeof text, "%s.struct_size is %u", name, garbage[i]);
    CHECK_TEXT(err.text, text);
    for (size_t j = 4; j < sizeof bytes; ++j) {
      if (!CHECK_INT(0xEE, bytes[j])) break;
    }
  }
}

static rkv_status memory_of(void* config) {
  rkv_memory memory = ZERO(rkv_memory);
  return rkv_cache_memory(config, &memory, &err);
}
static rkv_status create_of(void* config) {
  rkv_cache* cache = NULL;
  const rkv_status status = rkv_cache_create(config, NULL, &cache, &err);
  CHECK((status == RKV_OK) == (cache != NULL));
  rkv_cache_destroy(cache);
  return status;
}
static rkv_status plan_of(void* config) {
  rkv_plan plan = ZERO(rkv_plan);
  return rkv_plan_make(config, NULL, 20, &plan, &err);
}

static void test_config(void) {
  rkv_cache_config config = small_config();
  config.window_size = 0; /* the fields behind the budget keep their defaults */
  config.kernel_size = 0;
  const uint32_t least = 88; /* up to token_budget */
  check_input(&config, sizeof config, least, memory_of, "config");
  check_input(&config, sizeof config, least, create_of, "config");
  check_input(&config, sizeof config, least, plan_of, "config");

  /* What is cut off is 0: the answer of a short struct is that of a full one with zeros there. */
  rkv_cache_config changed = config, zeros = config;
  changed.dense_layers[0] = 1;
  changed.struct_size = offsetof(rkv_cache_config, dense_layers);
  rkv_memory a = ZERO(rkv_memory), b = ZERO(rkv_memory);
  CHECK_STATUS(RKV_OK, rkv_cache_memory(&changed, &a, &err), &err);
  CHECK_STATUS(RKV_OK, rkv_cache_memory(&zeros, &b, &err), &err);
  CHECK(memcmp(&a, &b, sizeof a) == 0);
}

static rkv_status open_with(void* options) {
  const rkv_status status = rkv_sequence_open(r.cache, 1, options, &err);
  if (status == RKV_OK) CHECK_INT(RKV_OK, rkv_sequence_close(r.cache, 1, NULL, NULL));
  return status;
}
static rkv_status plan_with(void* options) {
  rkv_plan plan = ZERO(rkv_plan);
  return rkv_plan_make(&r.config, options, 20, &plan, &err);
}
static void test_options(void) {
  rkv_sequence_options options = ZERO(rkv_sequence_options);
  options.max_new_tokens = 7;
  options.token_budget = 20;
  check_input(&options, sizeof options, 8, open_with, "options");
  check_input(&options, sizeof options, 8, plan_with, "options");
}

static rkv_buffers buffers;
static rkv_status create_in(void* given) {
  rkv_cache* cache = NULL;
  const rkv_status status = rkv_cache_create(&r.config, given, &cache, &err);
  rkv_cache_destroy(cache);
  return status;
}
static void test_buffers(void) {
  guard storage = guard_make(r.memory.storage_bytes, r.memory.alignment);
  guard workspace = guard_make(r.memory.workspace_bytes, r.memory.alignment);
  buffers = ZERO(rkv_buffers);
  buffers.storage = storage.data;
  buffers.storage_bytes = r.memory.storage_bytes;
  buffers.workspace = workspace.data;
  buffers.workspace_bytes = r.memory.workspace_bytes;
  check_input(&buffers, sizeof buffers, sizeof buffers, create_in, "buffers");
  guard_free(&storage);
  guard_free(&workspace);
}

static rkv_status plan_into(void* out) { return rkv_plan_make(&r.config, NULL, 150, out, &err); }
static rkv_status memory_into(void* out) { return rkv_cache_memory(&r.config, out, &err); }
static rkv_status stats_into(void* out) { return rkv_stats(r.cache, 0, 0, NULL, out, &err); }
static rkv_status stats_plan_into(void* out) {
  rkv_sequence_stats stats = ZERO(rkv_sequence_stats);
  stats.plan = out;
  return rkv_stats(r.cache, 0, 0, NULL, &stats, &err);
}
static rkv_status audit_into(void* out) {
  rkv_decode_args args = *rig_row(&r, 0, 0, 150);
  args.selection = NULL;
  return rkv_audit(r.cache, &args, out, NULL, &err);
}
static void test_outputs(void) {
  rkv_plan plan = ZERO(rkv_plan);
  CHECK_INT(RKV_OK, plan_into(&plan));
  CHECK(plan.cap > 0);
  check_output(&plan, sizeof plan, plan_into, "plan");
  rkv_memory memory = ZERO(rkv_memory);
  CHECK_INT(RKV_OK, memory_into(&memory));
  check_output(&memory, sizeof memory, memory_into, "memory");
  rkv_sequence_stats stats = ZERO(rkv_sequence_stats);
  CHECK_INT(RKV_OK, stats_into(&stats));
  CHECK(stats.kept > 0);
  check_output(&stats, sizeof stats, stats_into, "stats");
  check_output(&plan, sizeof plan, stats_plan_into, "stats.plan");
  rkv_audit_result audit = ZERO(rkv_audit_result);
  CHECK_INT(RKV_OK, audit_into(&audit));
  CHECK_INT(1, audit.rows);
  check_output(&audit, sizeof audit, audit_into, "result");
}

/* Prefill of sequence 2, with the struct under test in its place. */
static rkv_prefill_args prompt;
static rkv_status fresh_prefill(const rkv_prefill_args* args) {
  CHECK_INT(RKV_OK, rkv_sequence_open(r.cache, 2, NULL, NULL));
  const rkv_status status = rkv_prefill(r.cache, args, NULL, &err);
  CHECK_INT(RKV_OK, rkv_sequence_close(r.cache, 2, NULL, NULL));
  return status;
}
static rkv_status prefill_with(void* args) { return fresh_prefill(args); }
static rkv_status prefill_q(void* t) {
  rkv_prefill_args args = prompt;
  args.q = t;
  return fresh_prefill(&args);
}
static rkv_status prefill_k(void* t) {
  rkv_prefill_args args = prompt;
  args.k = t;
  return fresh_prefill(&args);
}
static rkv_status prefill_v(void* t) {
  rkv_prefill_args args = prompt;
  args.v = t;
  return fresh_prefill(&args);
}
static void test_prefill(void) {
  prompt = *rig_chunk(&r, 2, 0, 0, 150, 150);
  const uint32_t full = sizeof(rkv_tensor), least = offsetof(rkv_tensor, scale);
  check_input(&prompt, sizeof prompt, offsetof(rkv_prefill_args, paging), prefill_with, "args");
  check_input(&r.prompt_q, full, least, prefill_q, "args.q");
  check_input(&r.prompt_k, full, least, prefill_k, "args.k");
  check_input(&r.prompt_v, full, least, prefill_v, "args.v");
}

/* Decode of the step at 150, again and again: a step is idempotent. */
static rkv_decode_args step;
static rkv_status decode_with(void* args) { return rkv_decode(r.cache, args, NULL, &err); }
#define STEP_WITH(field)                           \
  static rkv_status step_##field(void* t) {        \
    rkv_decode_args args = step;                   \
    args.field = t;                                \
    return rkv_decode(r.cache, &args, NULL, &err); \
  }
STEP_WITH(q)
STEP_WITH(k)
STEP_WITH(v)
STEP_WITH(out)
STEP_WITH(selection)
static rkv_status select_with(void* args) { return rkv_decode_select(r.cache, args, NULL, &err); }
static rkv_status attend_with(void* args) { return rkv_attend(r.cache, args, NULL, &err); }
static rkv_status audit_with(void* args) {
  rkv_audit_result result = ZERO(rkv_audit_result);
  return rkv_audit(r.cache, args, &result, NULL, &err);
}
static void test_decode(void) {
  step = *rig_row(&r, 0, 0, 150);
  const uint32_t full = sizeof(rkv_tensor), least = offsetof(rkv_tensor, scale);
  check_input(&step, sizeof step, offsetof(rkv_decode_args, lse), decode_with, "args");
  check_input(&step, sizeof step, offsetof(rkv_decode_args, out), select_with, "args");
  check_input(&step, sizeof step, offsetof(rkv_decode_args, lse), attend_with, "args");
  check_input(&step, sizeof step, offsetof(rkv_decode_args, k), audit_with, "args");
  check_input(&r.new_q, full, least, step_q, "args.q");
  check_input(&r.new_k, full, least, step_k, "args.k");
  check_input(&r.new_v, full, least, step_v, "args.v");
  check_input(&r.result, full, least, step_out, "args.out");
  check_input(&r.selection, sizeof r.selection, sizeof r.selection, step_selection,
              "args.selection");
}

/* Calls that are not served read their struct all the same. */
static void test_transfer(void) {
  NEWER(rkv_transfer_args) args;
  int64_t bytes = 0;
  memset(&args, 0, sizeof args);
  args.known.struct_size = sizeof args;
  args.bytes[sizeof(rkv_transfer_args) + 3] = 9;
  CHECK_STATUS(RKV_UNSUPPORTED,
               rkv_sequence_export(r.cache, &args.known, NULL, 0, &bytes, NULL, &err), &err);
  CHECK_TEXT(err.text, "args has ");
  args.known.struct_size = 0;
  CHECK_STATUS(RKV_INVALID_ARGUMENT,
               rkv_sequence_export(r.cache, &args.known, NULL, 0, &bytes, NULL, &err), &err);
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_sequence_import(r.cache, &args.known, "", 0, NULL, &err),
               &err);
  CHECK_TEXT(err.text, "args.struct_size is 0");
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  err = ZERO(rkv_error);
  const rkv_cache_config config = small_config();
  rig_init(&r, &config);
  rig_start(&r, 0, 150);
  CHECK_STATUS(RKV_OK, rig_decode(&r, 0, 0, 150), &r.err);
  CASE(test_config);
  CASE(test_options);
  CASE(test_buffers);
  CASE(test_outputs);
  CASE(test_prefill);
  CASE(test_decode);
  CASE(test_transfer);
  rig_free(&r);
  return check_end();
}
