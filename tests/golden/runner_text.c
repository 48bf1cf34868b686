/* Lines, words, numbers, lists and the fields of structs by their names. */
#include "runner.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const line *at, const char *format, ...) {
  va_list list;
  va_start(list, format);
  printf("%s:%d: ", at->file, at->number);
  vprintf(format, list);
  printf("\n");
  va_end(list);
  exit(1);
}

void *allocate(size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) {
    printf("out of memory\n");
    exit(1);
  }
  return memory;
}

char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  size_t used = 0, room = 1 << 16;
  char *text = allocate(room);
  for (;;) {
    used += fread(text + used, 1, room - used - 1, file);
    if (used < room - 1) break;
    char *more = allocate(room * 2);
    memcpy(more, text, used);
    free(text);
    text = more;
    room *= 2;
  }
  fclose(file);
  text[used] = '\0';
  return text;
}

static rkv_status read_status(const line *at, const char *name) {
  for (rkv_status status = RKV_INVALID_ARGUMENT; status <= RKV_INTERNAL; ++status) {
    if (strcmp(rkv_status_name(status), name) == 0) return status;
  }
  fail(at, "no status %s", name);
}

int next_line(char **rest, line *at) {
  char *text = *rest;
  if (*text == '\0') return 0;
  char *end = strchr(text, '\n');
  *rest = end != NULL ? end + 1 : text + strlen(text);
  if (end != NULL) *end = '\0';
  ++at->number;
  at->count = 0;
  at->status = RKV_OK;
  at->text = NULL;
  if (*text == '#') return 1;
  int words = 1;
  for (const char *c = text; *c != '\0'; ++c) words += *c == ' ';
  free(at->words);
  at->words = allocate((size_t)words * sizeof *at->words);
  for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
    if (strcmp(word, "!") != 0) {
      at->words[at->count++] = word;
      continue;
    }
    const char *status = strtok(NULL, " ");
    at->text = strtok(NULL, " ");
    if (status == NULL || at->text == NULL) fail(at, "! STATUS WORD expected");
    at->status = read_status(at, status);
  }
  return 1;
}

int64_t read_integer(const line *at, const char *word) {
  char *end = NULL;
  const long long value = strtoll(word, &end, 10);
  if (end == word || *end != '\0') fail(at, "%s is no integer", word);
  return value;
}

const char *word(const line *at, int index) {
  if (index >= at->count) fail(at, "%s: a word is missing", at->words[0]);
  return at->words[index];
}

int64_t integer(const line *at, int index) { return read_integer(at, word(at, index)); }

double read_real(const line *at, const char *word) {
  char *end = NULL;
  const double value = strtod(word, &end);
  if (end == word || *end != '\0') fail(at, "%s is no number", word);
  return value;
}

int near_enough(double got, double want, double tolerance) {
  if (isnan(want)) return isnan(got);
  if (isinf(want)) return got == want;
  return fabs(got - want) <= tolerance * fmax(1.0, fabs(want));
}

void read_row(const line *at, const char *word, int32_t *seq, int64_t *position) {
  char head[32];
  const char *colon = strchr(word, ':');
  if (colon == NULL || (size_t)(colon - word) >= sizeof head) fail(at, "%s: SEQ:POSITION", word);
  memcpy(head, word, (size_t)(colon - word));
  head[colon - word] = '\0';
  *seq = (int32_t)read_integer(at, head);
  *position = read_integer(at, colon + 1);
}

int64_t read_list(const line *at, const char *word, int64_t *out, int64_t room) {
  int64_t count = 0;
  if (strcmp(word, "-") == 0) return 0;
  for (const char *c = word; *c != '\0';) {
    char *end = NULL;
    int64_t first = strtoll(c, &end, 10), last = first;
    if (end == c) fail(at, "%s is no list", word);
    if (*end == '-') {
      c = end + 1;
      last = strtoll(c, &end, 10);
      if (end == c || last < first) fail(at, "%s is no list", word);
    }
    for (; first <= last; ++first, ++count) {
      if (count < room) out[count] = first;
    }
    if (*end != '\0' && *end != ',') fail(at, "%s is no list", word);
    c = *end == ',' ? end + 1 : end;
  }
  return count;
}

enum field_type { INT32, INT64, FLOAT, DOUBLE, LAYERS };

typedef struct field {
  const char *name;
  size_t offset;
  enum field_type type;
} field;

#define FIELD(type, name, kind) {#name, offsetof(type, name), kind}

static const field config_fields[] = {FIELD(rkv_cache_config, device_type, INT32),
                                      FIELD(rkv_cache_config, device, INT32),
                                      FIELD(rkv_cache_config, layers, INT32),
                                      FIELD(rkv_cache_config, q_heads, INT32),
                                      FIELD(rkv_cache_config, kv_heads, INT32),
                                      FIELD(rkv_cache_config, head_dim, INT32),
                                      FIELD(rkv_cache_config, head_dim_v, INT32),
                                      FIELD(rkv_cache_config, kv_dtype, INT32),
                                      FIELD(rkv_cache_config, query_dtype, INT32),
                                      FIELD(rkv_cache_config, summary_dtype, INT32),
                                      FIELD(rkv_cache_config, storage, INT32),
                                      FIELD(rkv_cache_config, max_sequences, INT32),
                                      FIELD(rkv_cache_config, max_rows, INT32),
                                      FIELD(rkv_cache_config, max_prefills, INT32),
                                      FIELD(rkv_cache_config, num_threads, INT32),
                                      FIELD(rkv_cache_config, max_prompt_tokens, INT64),
                                      FIELD(rkv_cache_config, max_new_tokens, INT64),
                                      FIELD(rkv_cache_config, token_budget, INT64),
                                      FIELD(rkv_cache_config, compression_ratio, DOUBLE),
                                      FIELD(rkv_cache_config, prompt_budget, INT64),
                                      FIELD(rkv_cache_config, top_k, INT64),
                                      FIELD(rkv_cache_config, page_size, INT32),
                                      FIELD(rkv_cache_config, num_channels, INT32),
                                      FIELD(rkv_cache_config, window_size, INT32),
                                      FIELD(rkv_cache_config, kernel_size, INT32),
                                      FIELD(rkv_cache_config, sinks, INT32),
                                      FIELD(rkv_cache_config, recent_tokens, INT32),
                                      FIELD(rkv_cache_config, selection_unit, INT32),
                                      FIELD(rkv_cache_config, stage1_domain, INT32),
                                      FIELD(rkv_cache_config, selection_domain, INT32),
                                      FIELD(rkv_cache_config, pooling, INT32),
                                      FIELD(rkv_cache_config, temperature, INT32),
                                      FIELD(rkv_cache_config, key_as_query, INT32),
                                      FIELD(rkv_cache_config, softmax_scale, FLOAT),
                                      FIELD(rkv_cache_config, logit_softcap, FLOAT),
                                      FIELD(rkv_cache_config, dense_layers, LAYERS),
                                      {NULL, 0, INT32}};

static const field options_fields[] = {FIELD(rkv_sequence_options, max_new_tokens, INT64),
                                       FIELD(rkv_sequence_options, token_budget, INT64),
                                       FIELD(rkv_sequence_options, compression_ratio, DOUBLE),
                                       {NULL, 0, INT32}};

static const field plan_fields[] = {FIELD(rkv_plan, raised, INT32),
                                    FIELD(rkv_plan, dense, INT32),
                                    FIELD(rkv_plan, page_size, INT32),
                                    FIELD(rkv_plan, num_channels, INT32),
                                    FIELD(rkv_plan, cap, INT64),
                                    FIELD(rkv_plan, prompt_budget, INT64),
                                    FIELD(rkv_plan, rows, INT64),
                                    FIELD(rkv_plan, pages, INT64),
                                    FIELD(rkv_plan, top_k, INT64),
                                    FIELD(rkv_plan, token_budget, INT64),
                                    FIELD(rkv_plan, ratio, DOUBLE),
                                    FIELD(rkv_plan, split, DOUBLE),
                                    FIELD(rkv_plan, storage_ratio, DOUBLE),
                                    FIELD(rkv_plan, traffic_ratio, DOUBLE),
                                    {NULL, 0, INT32}};

static const field memory_fields[] = {FIELD(rkv_memory, alignment, INT64),
                                      FIELD(rkv_memory, storage_bytes, INT64),
                                      FIELD(rkv_memory, workspace_bytes, INT64),
                                      FIELD(rkv_memory, selection_capacity, INT64),
                                      FIELD(rkv_memory, k_bytes, INT64),
                                      FIELD(rkv_memory, v_bytes, INT64),
                                      FIELD(rkv_memory, summary_bytes, INT64),
                                      FIELD(rkv_memory, index_bytes, INT64),
                                      FIELD(rkv_memory, window_bytes, INT64),
                                      FIELD(rkv_memory, table_bytes, INT64),
                                      {NULL, 0, INT32}};

static const field stats_fields[] = {FIELD(rkv_sequence_stats, turn, INT32),
                                     FIELD(rkv_sequence_stats, window_rows, INT32),
                                     FIELD(rkv_sequence_stats, fault, INT32),
                                     FIELD(rkv_sequence_stats, nonfinite, INT32),
                                     FIELD(rkv_sequence_stats, saturated, INT32),
                                     FIELD(rkv_sequence_stats, position, INT64),
                                     FIELD(rkv_sequence_stats, max_position, INT64),
                                     FIELD(rkv_sequence_stats, prompt, INT64),
                                     FIELD(rkv_sequence_stats, kept, INT64),
                                     FIELD(rkv_sequence_stats, generated, INT64),
                                     FIELD(rkv_sequence_stats, pages, INT64),
                                     FIELD(rkv_sequence_stats, k_bytes, INT64),
                                     FIELD(rkv_sequence_stats, v_bytes, INT64),
                                     FIELD(rkv_sequence_stats, summary_bytes, INT64),
                                     FIELD(rkv_sequence_stats, index_bytes, INT64),
                                     FIELD(rkv_sequence_stats, full_kv_bytes, INT64),
                                     FIELD(rkv_sequence_stats, bytes_read_per_step, INT64),
                                     {NULL, 0, INT32}};

static const field audit_fields[] = {FIELD(rkv_audit_result, rows, INT32),
                                     FIELD(rkv_audit_result, mass_mean, DOUBLE),
                                     FIELD(rkv_audit_result, mass_min, DOUBLE),
                                     FIELD(rkv_audit_result, prompt_mass_mean, DOUBLE),
                                     FIELD(rkv_audit_result, error_mean, DOUBLE),
                                     FIELD(rkv_audit_result, error_max, DOUBLE),
                                     {NULL, 0, INT32}};

static const field *const struct_fields[] = {config_fields, options_fields, plan_fields,
                                             memory_fields, stats_fields,   audit_fields};

/* The field that `word` names; *value is what stands behind "=". */
static const field *find_field(const line *at, enum struct_kind kind, const char *word,
                               const char **value) {
  const char *equals = strchr(word, '=');
  if (equals == NULL) fail(at, "%s: FIELD=VALUE expected", word);
  const size_t length = (size_t)(equals - word);
  *value = equals + 1;
  for (const field *f = struct_fields[kind]; f->name != NULL; ++f) {
    if (strlen(f->name) == length && memcmp(f->name, word, length) == 0) return f;
  }
  fail(at, "%s: no such field", word);
}

void set_field(const line *at, enum struct_kind kind, void *object, const char *word) {
  const char *value = NULL;
  const field *f = find_field(at, kind, word, &value);
  void *target = (char *)object + f->offset;
  switch (f->type) {
    case INT32: *(int32_t *)target = (int32_t)read_integer(at, value); return;
    case INT64: *(int64_t *)target = read_integer(at, value); return;
    case FLOAT: *(float *)target = (float)read_real(at, value); return;
    case DOUBLE: *(double *)target = read_real(at, value); return;
    case LAYERS: break;
  }
  int64_t layers[256];
  const int64_t count = read_list(at, value, layers, 256);
  memset(target, 0, sizeof((rkv_cache_config *)0)->dense_layers);
  for (int64_t i = 0; i < count && i < 256; ++i) {
    if (layers[i] < 0 || layers[i] > 255) fail(at, "layer %lld", (long long)layers[i]);
    ((uint32_t *)target)[layers[i] / 32] |= UINT32_C(1) << (layers[i] % 32);
  }
}

void check_field(const line *at, enum struct_kind kind, const void *object, const char *word,
                 double tolerance) {
  const char *value = NULL;
  const field *f = find_field(at, kind, word, &value);
  const void *source = (const char *)object + f->offset;
  double got = 0;
  switch (f->type) {
    case INT32: got = *(const int32_t *)source; break;
    case INT64: got = (double)*(const int64_t *)source; break;
    case FLOAT: got = *(const float *)source; break;
    case DOUBLE: got = *(const double *)source; break;
    case LAYERS: fail(at, "%s: not a result", word);
  }
  if (!near_enough(got, read_real(at, value), tolerance)) {
    fail(at, "%s is %.17g, expected %s", f->name, got, value);
  }
}
