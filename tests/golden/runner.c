/* The golden vectors over rkv.h alone: runner FILE... reads the files in the order given, makes each
 * action's call and compares. Ends with "golden: N cases, checksum X", or prints
 * "FILE:LINE: what differs" and exits with 1. The format is README.md's. */
#include "runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_state run;

#define ZEROED(type, name)          \
  type name;                        \
  memset(&(name), 0, sizeof(name)); \
  (name).struct_size = sizeof(name)

static void end_case(void) {
  rkv_cache_destroy(run.cache);
  free(run.positions);
  free(run.selection.indices);
  free(run.selection.counts);
  free(run.out.data);
  free(run.lse);
}

static void begin_case(void) {
  end_case();
  const int cases = run.cases;
  const uint64_t checksum = run.checksum;
  memset(&run, 0, sizeof run);
  run.cases = cases + 1;
  run.checksum = checksum;
  run.config.struct_size = sizeof run.config;
  run.options.struct_size = sizeof run.options;
}

/* Whether the call went well; a status or text other than the expected one ends the program. */
static int settle(const line *at, rkv_status status, const rkv_error *err) {
  if (status != at->status) {
    fail(at, "%s is %s (%s), expected %s", at->words[0], rkv_status_name(status),
         status == RKV_OK ? "" : err->text, rkv_status_name(at->status));
  }
  if (err->status != status) fail(at, "err.status is %d, expected %d", err->status, status);
  if (status == RKV_OK) {
    if (err->text[0] != '\0') fail(at, "err.text is %s", err->text);
    return 1;
  }
  if (strstr(err->text, at->text) == NULL) {
    fail(at, "the text \"%s\" lacks %s", err->text, at->text);
  }
  add_bytes(&run.checksum, (uint32_t)status, 4);
  return 0;
}

static uint64_t seed_of(int64_t seq) {
  return seq >= 0 && seq < MAX_SEQUENCES ? run.seeds[seq] : 0;
}

/* --- state --- */

static void set_element(const line *at) {
  const char *const names[] = {"q", "k", "v"};
  if (run.set.count == MAX_OVERRIDES) fail(at, "too many set lines");
  override *o = &run.set.list[run.set.count++];
  int kind = 0;
  while (kind < 3 && strcmp(names[kind], word(at, 1)) != 0) ++kind;
  if (kind == 3) fail(at, "%s is no tensor", word(at, 1));
  o->tensor = (enum tensor_kind)kind;
  o->position = integer(at, 2);
  o->head = integer(at, 3);
  o->channel = integer(at, 4);
  o->value = (float)read_real(at, word(at, 5));
}

static void set_options(const line *at) {
  memset(&run.options, 0, sizeof run.options);
  run.options.struct_size = sizeof run.options;
  run.has_options = at->count > 1;
  for (int i = 1; i < at->count; ++i) set_field(at, OF_OPTIONS, &run.options, at->words[i]);
}

/* --- actions --- */

static void do_plan(const line *at) {
  ZEROED(rkv_error, err);
  ZEROED(rkv_plan, plan);
  const rkv_status status = rkv_plan_make(&run.config, run.has_options ? &run.options : NULL,
                                          integer(at, 1), &plan, &err);
  if (!settle(at, status, &err)) return;
  run.fields.plan = plan;
  run.last = FIELDS;
  run.kind = OF_PLAN;
}

static void do_memory(const line *at) {
  ZEROED(rkv_error, err);
  ZEROED(rkv_memory, memory);
  if (!settle(at, rkv_cache_memory(&run.config, &memory, &err), &err)) return;
  run.fields.memory = memory;
  run.last = FIELDS;
  run.kind = OF_MEMORY;
}

static void do_create(const line *at) {
  ZEROED(rkv_error, err);
  ZEROED(rkv_memory, memory);
  rkv_cache *cache = NULL;
  if (!settle(at, rkv_cache_create(&run.config, NULL, &cache, &err), &err)) return;
  rkv_cache_destroy(run.cache);
  run.cache = cache;
  if (rkv_cache_memory(&run.config, &memory, NULL) != RKV_OK) fail(at, "rkv_cache_memory fails");
  run.capacity = memory.selection_capacity;
}

static void do_open(const line *at) {
  ZEROED(rkv_error, err);
  const int64_t seq = integer(at, 1);
  const uint64_t seed = (uint64_t)integer(at, 2);
  const rkv_status status =
      rkv_sequence_open(run.cache, (int32_t)seq, run.has_options ? &run.options : NULL, &err);
  if (settle(at, status, &err) && seq < MAX_SEQUENCES) run.seeds[seq] = seed;
}

static void do_prefill(const line *at) {
  ZEROED(rkv_error, err);
  ZEROED(rkv_prefill_args, args);
  args.seq = (int32_t)integer(at, 1);
  args.layer = (int32_t)integer(at, 2);
  args.prompt_tokens = integer(at, 3);
  args.start = integer(at, 4);
  const int64_t end = integer(at, 5);
  row_source source = {seed_of(args.seq), (uint64_t)args.layer, 0};
  rkv_tensor tensors[3];
  memset(tensors, 0, sizeof tensors);
  if (end > args.start) {
    tensors[TENSOR_Q] = make_tensor(&run.config, TENSOR_Q, end - args.start);
    for (source.position = args.start; source.position < end; ++source.position) {
      fill_row(&tensors[TENSOR_Q], TENSOR_Q, source.position - args.start, source, &run.set);
    }
    args.q = &tensors[TENSOR_Q];
  }
  for (int kind = TENSOR_K; end == args.prompt_tokens && kind <= TENSOR_V; ++kind) {
    tensors[kind] = make_tensor(&run.config, (enum tensor_kind)kind, end);
    for (source.position = 0; source.position < end; ++source.position) {
      fill_row(&tensors[kind], (enum tensor_kind)kind, source.position, source, &run.set);
    }
    *(kind == TENSOR_K ? &args.k : &args.v) = &tensors[kind];
  }
  settle(at, rkv_prefill(run.cache, &args, NULL, &err), &err);
  for (int kind = 0; kind < 3; ++kind) free(tensors[kind].data);
}

static void do_kept(const line *at) {
  ZEROED(rkv_error, err);
  const int32_t seq = (int32_t)integer(at, 1), layer = (int32_t)integer(at, 2);
  int64_t count = 0;
  rkv_status status = rkv_kept_positions(run.cache, seq, layer, NULL, NULL, 0, &count, &err);
  if (!settle(at, status, &err)) return;
  const int64_t all = count * run.config.kv_heads;
  free(run.positions);
  run.positions = allocate((size_t)all * sizeof *run.positions);
  status = rkv_kept_positions(run.cache, seq, layer, NULL, run.positions, all, &count, &err);
  settle(at, status, &err);
  run.position_count = count;
  for (int64_t i = 0; i < all; ++i) add_bytes(&run.checksum, (uint64_t)run.positions[i], 8);
  run.last = KEPT;
}

static void do_stats(const line *at) {
  ZEROED(rkv_error, err);
  ZEROED(rkv_sequence_stats, stats);
  const rkv_status status =
      rkv_stats(run.cache, (int32_t)integer(at, 1), (int32_t)integer(at, 2), NULL, &stats, &err);
  if (!settle(at, status, &err)) return;
  run.fields.stats = stats;
  run.last = FIELDS;
  run.kind = OF_STATS;
}

static void new_selection(int64_t rows) {
  const int64_t lists = rows * run.config.kv_heads;
  free(run.selection.indices);
  free(run.selection.counts);
  memset(&run.selection, 0, sizeof run.selection);
  run.selection.struct_size = sizeof run.selection;
  run.selection.space = RKV_SPACE_LIVE_ROW;
  run.selection.capacity = run.capacity;
  run.selection.indices = allocate((size_t)(lists * run.capacity) * sizeof(int32_t));
  run.selection.counts = allocate((size_t)lists * sizeof(int32_t));
  memset(run.selection.indices, 0x55, (size_t)(lists * run.capacity) * sizeof(int32_t));
  memset(run.selection.counts, 0x55, (size_t)lists * sizeof(int32_t));
  run.selected_rows = rows;
}

static void add_selection(const line *at) {
  for (int64_t i = 0; i < run.selected_rows * run.config.kv_heads; ++i) {
    const int32_t count = run.selection.counts[i];
    const int32_t *list = run.selection.indices + i * run.capacity;
    if (count < 0 || count > run.capacity) fail(at, "a selection has the count %d", count);
    add_bytes(&run.checksum, (uint32_t)count, 4);
    for (int32_t j = 0; j < count; ++j) add_bytes(&run.checksum, (uint32_t)list[j], 4);
    for (int64_t j = count; j < run.capacity; ++j) {
      if (list[j] != -1) fail(at, "a selection is not padded with -1");
    }
  }
}

/* select, attend, decode, audit: LAYER SEQ:POSITION ... */
static void do_rows(const line *at) {
  const int audit = strcmp(at->words[0], "audit") == 0;
  const int selects = strcmp(at->words[0], "select") == 0;
  const int attends = strcmp(at->words[0], "attend") == 0;
  ZEROED(rkv_error, err);
  ZEROED(rkv_decode_args, args);
  ZEROED(rkv_audit_result, result);
  const int64_t rows = at->count - 2;
  int32_t *seq = allocate((size_t)rows * sizeof *seq);
  int64_t *positions = allocate((size_t)rows * sizeof *positions);
  args.layer = (int32_t)integer(at, 1);
  args.rows = (int32_t)rows;
  args.seq = seq;
  args.positions = positions;
  rkv_tensor tensors[3];
  for (int kind = 0; kind < 3; ++kind) {
    tensors[kind] = make_tensor(&run.config, (enum tensor_kind)kind, rows);
  }
  for (int64_t i = 0; i < rows; ++i) {
    read_row(at, at->words[i + 2], &seq[i], &positions[i]);
    row_source source = {seed_of(seq[i]), (uint64_t)args.layer, positions[i]};
    if (seq[i] == -1) source.seed = 0, source.position = 0;
    for (int kind = 0; kind < 3; ++kind) {
      fill_row(&tensors[kind], (enum tensor_kind)kind, i, source, &run.set);
    }
  }
  args.q = &tensors[TENSOR_Q];
  args.k = &tensors[TENSOR_K];
  args.v = &tensors[TENSOR_V];
  if (!audit && !attends) new_selection(rows);
  if (attends && rows > run.selected_rows) fail(at, "no select of as many rows");
  if (!audit) args.selection = &run.selection;
  if (!audit && !selects) {
    free(run.out.data);
    free(run.lse);
    run.out = make_tensor(&run.config, TENSOR_OUT, rows);
    run.lse = allocate((size_t)(rows * run.config.q_heads) * sizeof *run.lse);
    fill_nan(&run.out);
    for (int64_t i = 0; i < rows * run.config.q_heads; ++i) run.lse[i] = NAN;
    args.out = &run.out;
    args.lse = run.lse;
  }
  const rkv_status status = audit     ? rkv_audit(run.cache, &args, &result, NULL, &err)
                            : selects ? rkv_decode_select(run.cache, &args, NULL, &err)
                            : attends ? rkv_attend(run.cache, &args, NULL, &err)
                                      : rkv_decode(run.cache, &args, NULL, &err);
  if (settle(at, status, &err)) {
    run.rows = rows;
    if (audit) {
      run.fields.audit = result;
      run.last = FIELDS;
      run.kind = OF_AUDIT;
    }
    if (!audit && !attends) {
      add_selection(at);
      run.last = SELECTION;
    }
    if (!audit && !selects) {
      add_tensor(&run.checksum, &run.out);
      for (int64_t i = 0; i < rows * run.config.q_heads; ++i) add_float(&run.checksum, run.lse[i]);
      run.also = OUTPUT;
    }
  }
  for (int kind = 0; kind < 3; ++kind) free(tensors[kind].data);
  free(seq);
  free(positions);
}

static void do_sequence(const line *at) {
  ZEROED(rkv_error, err);
  const char *name = at->words[0];
  const int32_t seq = (int32_t)integer(at, 1);
  rkv_status status = RKV_INTERNAL;
  if (strcmp(name, "rewind") == 0) {
    status = rkv_sequence_rewind(run.cache, seq, integer(at, 2), NULL, &err);
  } else if (strcmp(name, "close") == 0) {
    status = rkv_sequence_close(run.cache, seq, NULL, &err);
  } else {
    status = rkv_sequence_fork(run.cache, seq, (int32_t)integer(at, 2), NULL, &err);
  }
  settle(at, status, &err);
}

static void do_transfer(const line *at) {
  ZEROED(rkv_error, err);
  ZEROED(rkv_transfer_args, args);
  const unsigned char zeros[16] = {0};
  int64_t bytes = 0;
  args.seq = (int32_t)integer(at, 1);
  args.layer = (int32_t)integer(at, 2);
  args.head_end = run.config.kv_heads;
  const rkv_status status =
      strcmp(at->words[0], "export") == 0
          ? rkv_sequence_export(run.cache, &args, NULL, 0, &bytes, NULL, &err)
          : rkv_sequence_import(run.cache, &args, zeros, sizeof zeros, NULL, &err);
  settle(at, status, &err);
}

/* --- files --- */

typedef struct directive {
  const char *name;
  void (*action)(const line *);
  int needs_cache;
} directive;

static const directive actions[] = {{"plan", do_plan, 0},
                                    {"memory", do_memory, 0},
                                    {"create", do_create, 0},
                                    {"open", do_open, 1},
                                    {"prefill", do_prefill, 1},
                                    {"kept", do_kept, 1},
                                    {"stats", do_stats, 1},
                                    {"select", do_rows, 1},
                                    {"attend", do_rows, 1},
                                    {"decode", do_rows, 1},
                                    {"audit", do_rows, 1},
                                    {"rewind", do_sequence, 1},
                                    {"close", do_sequence, 1},
                                    {"fork", do_sequence, 1},
                                    {"export", do_transfer, 1},
                                    {"import", do_transfer, 1},
                                    {NULL, NULL, 0}};

static void do_line(const line *at) {
  const char *name = at->words[0];
  if (strcmp(name, "case") == 0) {
    begin_case();
  } else if (run.cases == 0) {
    fail(at, "%s before the first case", name);
  } else if (strcmp(name, "config") == 0) {
    for (int i = 1; i < at->count; ++i) set_field(at, OF_CONFIG, &run.config, at->words[i]);
  } else if (strcmp(name, "options") == 0) {
    set_options(at);
  } else if (strcmp(name, "set") == 0) {
    set_element(at);
  } else if (strcmp(name, "=") == 0) {
    check_expectation(at);
  } else {
    const directive *d = actions;
    while (d->name != NULL && strcmp(d->name, name) != 0) ++d;
    if (d->name == NULL) fail(at, "no directive %s", name);
    if (d->needs_cache && run.cache == NULL) fail(at, "%s without a cache", name);
    run.last = run.also = NOTHING;
    d->action(at);
  }
}

int main(int argc, char **argv) {
  line at = {NULL, 0, NULL, 0, RKV_OK, NULL};
  run.checksum = UINT64_C(0xcbf29ce484222325);
  if (argc < 2) {
    printf("usage: %s FILE...\n", argv[0]);
    return 1;
  }
  for (int i = 1; i < argc; ++i) {
    at.file = argv[i];
    at.number = 0;
    char *text = read_text(argv[i]), *rest = text;
    if (text == NULL) fail(&at, "cannot be read");
    if (!next_line(&rest, &at) || at.count != 2 || strcmp(at.words[0], "rkv-golden") != 0 ||
        strcmp(at.words[1], "1") != 0) {
      fail(&at, "the first line must be rkv-golden 1");
    }
    while (next_line(&rest, &at)) {
      if (at.count > 0) do_line(&at);
    }
    free(text);
  }
  end_case();
  free(at.words);
  printf("golden: %d cases, checksum %016llx\n", run.cases, (unsigned long long)run.checksum);
  return 0;
}
