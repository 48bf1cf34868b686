/* What the parts of the golden-vector runner share. The format is README.md's. */
#ifndef RKV_GOLDEN_RUNNER_H
#define RKV_GOLDEN_RUNNER_H

#include <stddef.h>
#include <stdint.h>

#include <rkv/rkv.h>

/* --- runner_text.c: lines, words, numbers, lists, struct fields by name --- */

/* One line cut into words. */
typedef struct line {
  const char *file;
  int number;
  char **words;
  int count;         /* of words before "!" */
  rkv_status status; /* expected; RKV_OK without "! STATUS WORD" */
  const char *text;  /* WORD, in the text of the error */
} line;

/* Prints FILE:LINE: and the text, ends the program with 1. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
void fail(const line *at, const char *format, ...);

/* The whole file as a string of the caller's, or NULL. */
char *read_text(const char *path);

/* Cuts the next line off *rest; 0 at the end. `words` is `at`'s own, reused for every line. */
int next_line(char **rest, line *at);

/* The word at `index`, as it stands or as an integer. */
const char *word(const line *at, int index);
int64_t integer(const line *at, int index);

int64_t read_integer(const line *at, const char *word);
double read_real(const line *at, const char *word);
int near_enough(double got, double want, double tolerance);

/* SEQ:POSITION */
void read_row(const line *at, const char *word, int32_t *seq, int64_t *position);

/* 0-3,7 into out, which holds `room`; the number of entries, which may be more than `room`. */
int64_t read_list(const line *at, const char *word, int64_t *out, int64_t room);

enum struct_kind { OF_CONFIG, OF_OPTIONS, OF_PLAN, OF_MEMORY, OF_STATS, OF_AUDIT };

/* FIELD=VALUE: sets the field, or compares it. */
void set_field(const line *at, enum struct_kind kind, void *object, const char *word);
void check_field(const line *at, enum struct_kind kind, const void *object, const char *word,
                 double tolerance);

/* --- runner_values.c: the generator, tensors, the checksum --- */

enum tensor_kind { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_OUT };

/* `set` lines of a case. */
typedef struct override {
  enum tensor_kind tensor;
  int64_t position, head, channel;
  float value;
} override;

enum { MAX_OVERRIDES = 4096 };
typedef struct overrides {
  int count;
  override list[MAX_OVERRIDES];
} overrides;

typedef struct row_source {
  uint64_t seed, layer;
  int64_t position;
} row_source;

/* A contiguous [rows, heads, channels] tensor for the config, its memory with malloc; rows 0 is fine. */
rkv_tensor make_tensor(const rkv_cache_config *config, enum tensor_kind kind, int64_t rows);
void fill_row(const rkv_tensor *tensor, enum tensor_kind kind, int64_t row, row_source source,
              const overrides *set);
void fill_nan(const rkv_tensor *tensor);
double element(const rkv_tensor *tensor, int64_t row, int64_t head, int64_t channel);

void add_bytes(uint64_t *checksum, uint64_t value, int bytes); /* little-endian */
void add_float(uint64_t *checksum, float value);
void add_tensor(uint64_t *checksum, const rkv_tensor *tensor);

void *allocate(size_t bytes); /* never NULL */

/* --- the state of a run --- */

/* What the last action left for its expectations. */
enum action { NOTHING, FIELDS, KEPT, SELECTION, OUTPUT };

enum { MAX_SEQUENCES = 1024 };

struct run_state {
  int cases;
  uint64_t checksum;

  rkv_cache *cache;
  rkv_cache_config config;
  rkv_sequence_options options;
  int has_options;
  uint64_t seeds[MAX_SEQUENCES];
  overrides set;
  int64_t capacity; /* of a selection, per row and KV head */

  enum action last, also; /* decode leaves a selection and an output */
  enum struct_kind kind;
  union {
    rkv_plan plan;
    rkv_memory memory;
    rkv_sequence_stats stats;
    rkv_audit_result audit;
  } fields;
  int64_t *positions, position_count; /* [Hkv][position_count] */
  int64_t rows;                       /* of the last select, attend or decode */
  rkv_selection selection;
  int64_t selected_rows;
  rkv_tensor out;
  float *lse;
};
extern struct run_state run; /* runner.c */

/* --- runner_check.c --- */

/* A line that starts with "=". */
void check_expectation(const line *at);

#endif
