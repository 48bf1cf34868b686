/* The library without linking: every function looked up at run time.
 *   cc dlopen.c -ldl && ./a.out [path/to/librkv.so.0] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rkv/rkv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 2, D = 32, PROMPT = 512, STEPS = 8 };

/* Pointers with the types of the header's own declarations. */
static struct {
  __typeof__(&rkv_abi_version) abi_version;
  __typeof__(&rkv_version_string) version_string;
  __typeof__(&rkv_status_name) status_name;
  __typeof__(&rkv_cache_create) cache_create;
  __typeof__(&rkv_cache_destroy) cache_destroy;
  __typeof__(&rkv_sequence_open) sequence_open;
  __typeof__(&rkv_prefill) prefill;
  __typeof__(&rkv_decode) decode;
  __typeof__(&rkv_stats) stats;
} rkv;

static rkv_error err = {.struct_size = sizeof err};

static void* must(void* found, const char* what) {
  if (found != NULL) return found;
  const char* why = dlerror();
  fprintf(stderr, "%s: %s\n", what, why ? why : "not found");
  exit(1);
}

static void load(void* library, const char* name, void* slot) {
  void* symbol = must(dlsym(library, name), name);
  memcpy(slot, &symbol, sizeof symbol); /* ISO C has no cast from object to function pointer */
}

static void check(rkv_status status, const char* call) {
  if (status == RKV_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, rkv.status_name(status), err.text);
  exit(1);
}
#define CHECK(call) check(call, #call)

static float data[PROMPT * HEADS * D], out_data[HEADS * D];

static rkv_tensor rows_of(float* from, int64_t rows) {
  return (rkv_tensor){.struct_size = sizeof(rkv_tensor),
                      .dtype = RKV_DTYPE_F32,
                      .data = from,
                      .ndim = 3,
                      .shape = {rows, HEADS, D},
                      .strides = {HEADS * D, D, 1}};
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "librkv.so.0";
  void* library = must(dlopen(path, RTLD_NOW | RTLD_LOCAL), path);
  load(library, "rkv_abi_version", &rkv.abi_version);
  load(library, "rkv_version_string", &rkv.version_string);
  load(library, "rkv_status_name", &rkv.status_name);
  load(library, "rkv_cache_create", &rkv.cache_create);
  load(library, "rkv_cache_destroy", &rkv.cache_destroy);
  load(library, "rkv_sequence_open", &rkv.sequence_open);
  load(library, "rkv_prefill", &rkv.prefill);
  load(library, "rkv_decode", &rkv.decode);
  load(library, "rkv_stats", &rkv.stats);
  if (rkv.abi_version() != RKV_ABI_VERSION) {
    fprintf(stderr, "%s has ABI %d, not %d\n", path, rkv.abi_version(), RKV_ABI_VERSION);
    return 1;
  }

  rkv_cache_config config = {.struct_size = sizeof config,
                             .layers = 1,
                             .q_heads = HEADS,
                             .kv_heads = HEADS,
                             .head_dim = D,
                             .kv_dtype = RKV_DTYPE_F32,
                             .max_prompt_tokens = PROMPT,
                             .max_new_tokens = STEPS,
                             .token_budget = 64,
                             .num_threads = 1};
  rkv_cache* cache = NULL;
  CHECK(rkv.cache_create(&config, NULL, &cache, &err)); /* buffers NULL: its own memory */
  CHECK(rkv.sequence_open(cache, 0, NULL, &err));

  for (int i = 0; i < PROMPT * HEADS * D; ++i) data[i] = 2 * (float)rand() / (float)RAND_MAX - 1;
  rkv_tensor prompt = rows_of(data, PROMPT);
  rkv_prefill_args prefill = {.struct_size = sizeof prefill,
                              .prompt_tokens = PROMPT,
                              .q = &prompt,
                              .k = &prompt,
                              .v = &prompt};
  CHECK(rkv.prefill(cache, &prefill, NULL, &err));

  const int32_t seq = 0;
  rkv_tensor out = rows_of(out_data, 1);
  for (int64_t position = PROMPT; position < PROMPT + STEPS; ++position) {
    rkv_tensor row = rows_of(data + (position - PROMPT) * HEADS * D, 1);
    rkv_decode_args step = {.struct_size = sizeof step,
                            .rows = 1,
                            .seq = &seq,
                            .positions = &position,
                            .q = &row,
                            .k = &row,
                            .v = &row,
                            .out = &out};
    CHECK(rkv.decode(cache, &step, NULL, &err));
  }

  rkv_sequence_stats stats = {.struct_size = sizeof stats};
  CHECK(rkv.stats(cache, 0, 0, NULL, &stats, &err));
  printf("librkv %s: kept %lld of %lld prompt tokens, generated %lld\n", rkv.version_string(),
         (long long)stats.kept, (long long)stats.prompt, (long long)stats.generated);
  rkv.cache_destroy(cache);
  return dlclose(library);
}
