// Stage 1 as the caller sees it: chunks of a prompt, window rows that span calls, then one selection.
#include <algorithm>
#include <cstring>

#include "core/cache.hpp"

namespace rkv {

// One checked call.
struct Cache::Prefill {
  int32_t seq = 0, layer = 0;
  int64_t prompt = 0, start = 0, rows = 0;  // this call's queries are rows [start, start + rows)
  bool has_q = false, last = false;         // last: the call that ends at the prompt's end
  bool scores = false;                      // something has to be evicted by query rows
  int64_t keep = 0;
  int64_t stored_rows = 0;  // window rows from earlier calls, right before `start`
  int64_t window = 0;       // query rows that will score
  Plan plan;
  View q, k, v;
};

rkv_status Cache::check_slot_holds(const Plan& plan, const Prefill& prefill,
                                   Failure& failure) const {
  struct Need {
    const char* what;
    int64_t need, have;
  };
  const int64_t all = prefill.prompt + slot(prefill.seq).request.max_new;
  const Need needs[] = {
      {"rows", plan.rows, layout_.capacity.rows},
      {"pages", plan.pages, layout_.capacity.pages},
      {"rows of a selection", plan.selection_rows(), layout_.selection},
      {"rows of a dense layer", layout_.dense_rows == 0 ? 0 : all, layout_.dense_rows},
  };
  for (const Need& need : needs) {
    if (need.need > need.have) {
      return fail(failure, RKV_OUT_OF_CAPACITY,
                  "args.prompt_tokens is %lld: the plan of sequence %d needs %lld %s, a slot of "
                  "this cache holds %lld (raise config.max_prompt_tokens, max_new_tokens or "
                  "token_budget)",
                  static_cast<long long>(prefill.prompt), prefill.seq,
                  static_cast<long long>(need.need), need.what, static_cast<long long>(need.have));
    }
  }
  return RKV_OK;
}

// Which rows the call brings and whether it is the last one.
rkv_status Cache::check_rows(const PrefillCall& call, Prefill& prefill, Failure& failure) const {
  const Shape& shape = config_.shape;
  const int64_t prompt = prefill.prompt, start = call.args.start;
  if (start < 0 || start > prompt) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "args.start", start,
                      "it must lie in [0, prompt_tokens = %lld]", static_cast<long long>(prompt));
  }
  prefill.start = start;
  prefill.has_q = call.q != nullptr;
  if (prefill.has_q) {
    RKV_TRY(read_tensor(
        call.q, {"args.q", shape.query, "config.query_dtype", -1, shape.q_heads, shape.head_dim},
        prefill.q, prefill.rows, failure));
    if (prefill.rows > prompt - start) {
      return fail(failure, RKV_INVALID_ARGUMENT,
                  "args.q has %lld rows from start = %lld: they must end at prompt_tokens = %lld "
                  "or before",
                  static_cast<long long>(prefill.rows), static_cast<long long>(start),
                  static_cast<long long>(prompt));
    }
  } else if (!prefill.scores) {
    prefill.rows = prompt - start;
  } else {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "args.q is NULL: it may be only where the whole prompt is kept (prompt_tokens is "
                "%lld, prompt_budget %lld) or with key_as_query",
                static_cast<long long>(prompt), static_cast<long long>(prefill.plan.prompt_budget));
  }
  prefill.last = start + prefill.rows == prompt;
  return RKV_OK;
}

// The unbroken run of query rows that ends at the prompt's end; or room for rows that wait.
rkv_status Cache::check_window(const PrefillCall& call, Prefill& prefill, Failure& failure) const {
  const Slot& owner = slot(prefill.seq);
  if (!prefill.last) {
    const bool waits = prefill.scores &&
                       prefill.start + prefill.rows > prefill.prompt - config_.window &&
                       prefill.rows > 0;
    if (waits && owner.window_slot < 0 &&
        std::find(window_taken_.begin(), window_taken_.end(), 0) == window_taken_.end()) {
      return fail_value(failure, RKV_OUT_OF_CAPACITY, "config.max_prefills", config_.max_prefills,
                        "as many sequences already have window rows waiting; finish one first");
    }
    return RKV_OK;
  }
  const Shape& shape = config_.shape;
  RKV_TRY(read_tensor(
      call.k,
      {"args.k", shape.kv, "config.kv_dtype", prefill.prompt, shape.kv_heads, shape.head_dim},
      prefill.k, failure));
  RKV_TRY(read_tensor(
      call.v,
      {"args.v", shape.kv, "config.kv_dtype", prefill.prompt, shape.kv_heads, shape.head_dim_v},
      prefill.v, failure));
  if (config_.stage1.key_as_query) {
    prefill.window =
        prefill.keep == prefill.prompt ? 0 : std::min<int64_t>(config_.window, prefill.prompt);
    return RKV_OK;
  }
  if (!prefill.scores) return RKV_OK;
  const int64_t first = std::max<int64_t>(0, prefill.prompt - config_.window);
  if (layer(prefill.seq, prefill.layer).holds_window_rows) {
    const uint8_t* marks = window_marks(owner.window_slot, prefill.layer);
    const int64_t base = prefill.prompt - config_.window;  // position of mark 0
    for (int64_t at = prefill.start - 1; at >= first && marks[at - base] != 0; --at) {
      ++prefill.stored_rows;
    }
  }
  prefill.window = prefill.stored_rows + std::min(prefill.rows, prefill.prompt - first);
  if (prefill.window == 0) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "args.q has no row: at least the prompt's last query (position %lld) is needed",
                static_cast<long long>(prefill.prompt - 1));
  }
  return RKV_OK;
}

rkv_status Cache::check_prefill(const PrefillCall& call, Prefill& prefill, Failure& failure) const {
  const rkv_prefill_args& args = call.args;
  if (args.reserved != 0) {
    return fail_value(failure, RKV_UNSUPPORTED, "args.reserved", args.reserved, "it must be 0");
  }
  RKV_TRY(check_open(args.seq, failure));
  RKV_TRY(check_layer(args.layer, failure));
  prefill.seq = args.seq;
  prefill.layer = args.layer;
  prefill.prompt = args.prompt_tokens;
  const Slot& owner = slot(args.seq);
  if (layer(args.seq, args.layer).phase == LayerPhase::kReady) {
    return fail(failure, RKV_BAD_STATE,
                "layer %d of sequence %d is prefilled: COMPACT storage takes one prompt (feed more "
                "as decode rows, or close and open the sequence)",
                args.layer, args.seq);
  }
  if (args.paging != nullptr) {
    return fail(failure, RKV_UNSUPPORTED, "args.paging is set: paged input is not served yet");
  }
  if (args.prompt_tokens < 0) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "args.prompt_tokens", args.prompt_tokens,
                      "it must be at least 0");
  }
  if (args.prompt_tokens > config_.max_prompt) {
    return fail_value(failure, RKV_OUT_OF_CAPACITY, "args.prompt_tokens", args.prompt_tokens,
                      "config.max_prompt_tokens is %lld",
                      static_cast<long long>(config_.max_prompt));
  }
  if (owner.planned && owner.prompt != args.prompt_tokens) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "args.prompt_tokens", args.prompt_tokens,
                      "this sequence's first call said %lld", static_cast<long long>(owner.prompt));
  }
  if (args.prompt_tokens == 0) return RKV_OK;
  prefill.plan = owner.planned ? owner.plan : make_plan(config_, owner.request, args.prompt_tokens);
  if (!owner.planned) RKV_TRY(check_slot_holds(prefill.plan, prefill, failure));
  prefill.keep = config_.dense_layer(args.layer)
                     ? prefill.prompt
                     : std::min(prefill.plan.prompt_budget, prefill.prompt);
  prefill.scores = prefill.keep < prefill.prompt && !config_.stage1.key_as_query;
  RKV_TRY(check_rows(call, prefill, failure));
  return check_window(call, prefill, failure);
}

// Copies the rows of this call that lie in the window into the cache's own memory.
void Cache::keep_window_rows(const Prefill& prefill) {
  const Shape& shape = config_.shape;
  const int64_t base = prefill.prompt - config_.window;
  const int64_t from = std::max(prefill.start, base), to = prefill.start + prefill.rows;
  if (!prefill.scores || from >= to) return;
  Slot& owner = slot(prefill.seq);
  LayerState& state = layer(prefill.seq, prefill.layer);
  if (owner.window_slot < 0) {
    const auto free = std::find(window_taken_.begin(), window_taken_.end(), 0);
    *free = 1;
    owner.window_slot = static_cast<int32_t>(free - window_taken_.begin());
  }
  if (!state.holds_window_rows) {
    state.holds_window_rows = true;
    ++owner.window_layers;
  }
  const int64_t bytes = dtype_bytes(shape.query);
  std::byte* rows = layout_.window_rows(config_, storage_, owner.window_slot, prefill.layer);
  uint8_t* marks = window_marks(owner.window_slot, prefill.layer);
  for (int64_t position = from; position < to; ++position) {
    std::byte* row = rows + (position - base) * shape.q_heads * shape.head_dim * bytes;
    for (int64_t head = 0; head < shape.q_heads; ++head) {
      const std::byte* source = prefill.q.at(position - prefill.start, head);
      std::byte* target = row + head * shape.head_dim * bytes;
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        std::memcpy(target + d * bytes, source + d * prefill.q.channel * bytes,
                    static_cast<size_t>(bytes));
      }
    }
    marks[position - base] = 1;
  }
}

void Cache::run_stage1(const Prefill& prefill) {
  const Shape& shape = config_.shape;
  LayerState& state = layer(prefill.seq, prefill.layer);
  Stage1Task task;
  task.prompt = prefill.prompt;
  task.window = prefill.window;
  task.keep = prefill.keep;
  task.sinks = config_.select.sinks;
  task.k = prefill.k;
  task.v = prefill.v;
  task.options = config_.stage1;
  task.attention = config_.attention;
  task.page_size = page_size(prefill.seq, prefill.layer);
  task.store = store(prefill.seq, prefill.layer);
  if (prefill.scores) {
    const int64_t own = prefill.window - prefill.stored_rows;
    task.q = prefill.q;
    task.q.data = own == 0 ? nullptr : prefill.q.at(prefill.rows - own, 0);
    task.stored_rows = prefill.stored_rows;
    if (prefill.stored_rows > 0) {
      const int64_t first = prefill.start - prefill.stored_rows - (prefill.prompt - config_.window);
      task.stored_q = {
          layout_.window_rows(config_, storage_, slot(prefill.seq).window_slot, prefill.layer),
          shape.query, int64_t{shape.q_heads} * shape.head_dim, shape.head_dim, 1};
      task.stored_q.data = task.stored_q.at(first, 0);
    }
  }
  backend_->stage1(task);
  release_window(prefill.seq, prefill.layer);
  state.phase = LayerPhase::kReady;
  state.kept = prefill.keep;
  state.generated = 0;
  state.window_rows = static_cast<int32_t>(prefill.window);
  state.nonfinite = task.nonfinite;
}

rkv_status Cache::prefill(const PrefillCall& call, Failure& failure) {
  Prefill prefill;
  RKV_TRY(check_prefill(call, prefill, failure));
  if (prefill.prompt == 0 || (prefill.rows == 0 && !prefill.last)) return RKV_OK;
  Slot& owner = slot(prefill.seq);
  owner.planned = true;
  owner.plan = prefill.plan;
  owner.prompt = prefill.prompt;
  layer(prefill.seq, prefill.layer).phase = LayerPhase::kPrefilling;
  if (prefill.last) {
    run_stage1(prefill);
  } else {
    keep_window_rows(prefill);
  }
  return RKV_OK;
}

}  // namespace rkv
