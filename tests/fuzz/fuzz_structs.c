/* Fuzz entry: structs with any numbers in any field. Sizes and plans are right or refused; a cache
 * that would be small is made, used with wild arguments and destroyed. Nothing crashes, nothing is
 * written outside (B71, B76, B83). */
#include "../capi/rig.h"
#include "input.h"

static void wild_fields(input* in, rkv_cache_config* c) {
  /* The word-sized fields behind struct_size, and the wide ones. */
  int32_t* const words[] = {
      &c->device_type,   &c->device,         &c->layers,        &c->q_heads,
      &c->kv_heads,      &c->head_dim,       &c->head_dim_v,    &c->kv_dtype,
      &c->query_dtype,   &c->summary_dtype,  &c->storage,       &c->max_sequences,
      &c->max_rows,      &c->max_prefills,   &c->num_threads,   &c->page_size,
      &c->num_channels,  &c->window_size,    &c->kernel_size,   &c->sinks,
      &c->recent_tokens, &c->selection_unit, &c->stage1_domain, &c->selection_domain,
      &c->pooling,       &c->temperature,    &c->key_as_query,  &c->reserved[0]};
  int64_t* const wide[] = {&c->max_prompt_tokens, &c->max_new_tokens, &c->token_budget,
                           &c->prompt_budget, &c->top_k};
  const int64_t changes = take(in, 0, 6);
  for (int64_t i = 0; i < changes; ++i) {
    switch (take(in, 0, 3)) {
      case 0: *words[take(in, 0, sizeof words / sizeof *words - 1)] = (int32_t)take_wild(in); break;
      case 1: *wide[take(in, 0, 4)] = take_wild(in); break;
      case 2: {
        const uint64_t bits = take_bytes(in, 8);
        memcpy(&c->compression_ratio, &bits, 8);
        c->token_budget = 0;
        break;
      }
      default: {
        const uint32_t bits = (uint32_t)take_bytes(in, 4);
        memcpy(take(in, 0, 1) ? &c->softmax_scale : &c->logit_softcap, &bits, 4);
      }
    }
  }
}

/* A struct_size that does not reach beyond the struct, or one that is refused at sight. */
static uint32_t take_size(input* in, size_t size) {
  static const uint32_t never[] = {0, 4097, 0x7FFFFFFF, 0xFFFFFFFF};
  return take(in, 0, 3) ? (uint32_t)take(in, 0, (int64_t)size) : never[take(in, 0, 3)];
}

static void wild_tensor(input* in, rkv_tensor* t) {
  switch (take(in, 0, 7)) {
    case 0: t->dtype = (int32_t)take_wild(in); break;
    case 1: t->ndim = (int32_t)take_wild(in); break;
    case 2: t->shape[take(in, 0, 2)] = take_wild(in); break;
    case 3: t->data = NULL; break;
    case 4: t->reserved[take(in, 0, 3)] = take_wild(in); break;
    case 5: t->struct_size = take_size(in, sizeof *t); break;
    case 6: t->data = (uint8_t*)t->data + take(in, 0, 1); break;
    default: break;
  }
}

/* Calls with one wild thing each: any status, as long as nothing breaks. */
static void use(input* in, const rkv_cache_config* config) {
  rig r;
  rig_init(&r, config);
  rkv_error* e = &r.err;
  const int64_t S = config->max_prompt_tokens;
  (void)rkv_sequence_open(r.cache, 0, NULL, e);
  for (int i = 0; i < 12; ++i) {
    rkv_prefill_args prompt = *rig_chunk(&r, 0, 0, 0, S, S);
    rkv_tensor* const prompt_tensors[] = {&r.prompt_q, &r.prompt_k, &r.prompt_v};
    r.seq[0] = (int32_t)(take(in, 0, 7) ? 0 : take_wild(in));
    r.positions[0] = take(in, 0, 3) ? S + i : take_wild(in);
    rkv_decode_args step = *rig_rows(&r, 0, 1);
    rkv_tensor* const step_tensors[] = {&r.new_q, &r.new_k, &r.new_v, &r.result};
    rkv_audit_result audit = ZERO(rkv_audit_result);
    rkv_selection selection = r.selection;
    step.selection = &selection;
    switch (take(in, 0, 9)) {
      case 0: wild_tensor(in, prompt_tensors[take(in, 0, 2)]); break;
      case 1: wild_tensor(in, step_tensors[take(in, 0, 3)]); break;
      case 2: prompt.start = take_wild(in); break;
      case 3: prompt.prompt_tokens = take_wild(in); break;
      case 4: prompt.layer = step.layer = (int32_t)take_wild(in); break;
      case 5: step.rows = (int32_t)take_wild(in); break;
      case 6: selection.capacity = take(in, 0, selection.capacity); break;
      case 7: selection.space = (int32_t)take_wild(in); break;
      case 8:
        step.struct_size = take_size(in, sizeof step);
        prompt.struct_size = take_size(in, sizeof prompt);
        break;
      default: break;
    }
    /* A valid prefill of n rows reads S rows of K: leave that to the unchanged shapes above. */
    switch (take(in, 0, 5)) {
      case 0: (void)rkv_prefill(r.cache, &prompt, NULL, e); break;
      case 1: (void)rkv_decode_select(r.cache, &step, NULL, e); break;
      case 2: (void)rkv_attend(r.cache, &step, NULL, e); break;
      case 3: (void)rkv_audit(r.cache, &step, &audit, NULL, e); break;
      case 4: (void)rkv_sequence_rewind(r.cache, 0, take_wild(in), NULL, e); break;
      default: (void)rkv_decode(r.cache, &step, NULL, e); break;
    }
    CHECK(memchr(e->text, 0, sizeof e->text) != NULL);
  }
  rig_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  input in = {data, size};
  rkv_cache_config config = small_config();
  rkv_error err = ZERO(rkv_error);
  rkv_memory memory = ZERO(rkv_memory);
  rkv_plan plan = ZERO(rkv_plan);
  rkv_sequence_options options = ZERO(rkv_sequence_options);
  wild_fields(&in, &config);
  options.max_new_tokens = take(&in, 0, 2) ? 0 : take_wild(&in);
  options.token_budget = take(&in, 0, 2) ? 0 : take_wild(&in);
  const int64_t prompt = take_wild(&in);
  if (rkv_plan_make(&config, &options, prompt, &plan, &err) == RKV_OK) {
    const int64_t max_new = options.max_new_tokens ? options.max_new_tokens : config.max_new_tokens;
    CHECK(plan.rows >= 0 && plan.rows <= prompt + max_new);
    CHECK(plan.page_size >= 1 && plan.num_channels >= 1 && plan.num_channels <= config.head_dim);
    CHECK(plan.top_k >= 1 && plan.token_budget >= 1 && plan.token_budget <= prompt + max_new);
    CHECK(plan.dense ? plan.pages == 0 : plan.pages >= 1);
    CHECK(plan.ratio >= 1);
  }
  if (rkv_cache_memory(&config, &memory, &err) != RKV_OK) return end_of_input();
  CHECK(memory.storage_bytes > 0 && memory.workspace_bytes > 0 && memory.selection_capacity > 0);
  CHECK_INT(memory.storage_bytes, memory.k_bytes + memory.v_bytes + memory.summary_bytes +
                                      memory.index_bytes + memory.window_bytes +
                                      memory.table_bytes);
  const int small = memory.storage_bytes < 4 << 20 && memory.workspace_bytes < 16 << 20 &&
                    config.num_threads <= 4 && config.num_threads != 0 &&
                    config.max_prompt_tokens <= 400 && config.max_rows <= 1000 &&
                    config.max_sequences <= 1000 &&
                    (int64_t)config.q_heads * config.head_dim <= 4096;
  if (small) use(&in, &config);
  return end_of_input();
}
