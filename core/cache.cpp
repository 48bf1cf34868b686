#include "core/cache.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace rkv {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

// Pages of 2 MB where the system gives them: attention over many rows misses the TLB less.
std::byte* allocate(int64_t bytes) {
  const int64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const int64_t rounded = std::max<int64_t>(1, (bytes + alignment - 1) / alignment) * alignment;
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
  if (memory != nullptr && alignment == kHugePage) {
    (void)madvise(memory, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  }
  return static_cast<std::byte*>(memory);
}

rkv_status check_buffer(const char* name, const void* data, int64_t have, int64_t need,
                        Failure& failure) {
  char argument[48];
  if (need == 0) return RKV_OK;
  std::snprintf(argument, sizeof argument, "buffers.%s", name);
  if (data == nullptr) return fail_null(failure, argument, "rkv_cache_memory says its bytes");
  RKV_TRY(check_aligned(argument, data, kAlignment, failure));
  if (have < need) {
    std::snprintf(argument, sizeof argument, "buffers.%s_bytes", name);
    return fail_value(failure, RKV_BUFFER_TOO_SMALL, argument, have, "this config needs %lld",
                      static_cast<long long>(need));
  }
  return RKV_OK;
}

rkv_status check_apart(const rkv_buffers& buffers, const Layout& need, Failure& failure) {
  const auto storage = reinterpret_cast<uintptr_t>(buffers.storage);
  const auto workspace = reinterpret_cast<uintptr_t>(buffers.workspace);
  if (workspace >= storage + static_cast<uintptr_t>(need.storage_bytes) ||
      storage >= workspace + static_cast<uintptr_t>(need.workspace_bytes)) {
    return RKV_OK;
  }
  return fail(failure, RKV_INVALID_ARGUMENT,
              "buffers.workspace is %p: it must not overlap the %lld bytes of buffers.storage (%p)",
              buffers.workspace, static_cast<long long>(need.storage_bytes), buffers.storage);
}

}  // namespace

rkv_status Cache::create(const Config& config, const rkv_buffers* buffers,
                         std::unique_ptr<Cache>& out, Failure& failure) {
  if (const char* text = cpu::simd_target_error(); text != nullptr) {
    return fail(failure, RKV_INVALID_ARGUMENT, "the environment has RKV_SIMD=%.32s: %s",
                std::getenv("RKV_SIMD"), text);
  }
  Layout layout;
  RKV_TRY(make_layout(config, layout, failure));
  if (buffers != nullptr) {
    RKV_TRY(check_buffer("storage", buffers->storage, buffers->storage_bytes, layout.storage_bytes,
                         failure));
    RKV_TRY(check_buffer("workspace", buffers->workspace, buffers->workspace_bytes,
                         layout.workspace_bytes, failure));
    RKV_TRY(check_apart(*buffers, layout, failure));
  }
  std::unique_ptr<Cache> cache(new Cache(config, std::move(layout)));
  const Layout& sizes = cache->layout_;
  if (buffers != nullptr) {
    cache->storage_ = static_cast<std::byte*>(buffers->storage);
    cache->workspace_ = static_cast<std::byte*>(buffers->workspace);
  } else {
    cache->owns_buffers_ = true;
    cache->storage_ = allocate(sizes.storage_bytes);
    cache->workspace_ = allocate(sizes.workspace_bytes);
    if (cache->storage_ == nullptr || cache->workspace_ == nullptr) {
      return fail(failure, RKV_OUT_OF_MEMORY,
                  "buffers is NULL: %lld bytes of storage and %lld of workspace were not to be had",
                  static_cast<long long>(sizes.storage_bytes),
                  static_cast<long long>(sizes.workspace_bytes));
    }
  }
  const auto sequences = static_cast<size_t>(config.max_sequences);
  const auto prefills = static_cast<size_t>(config.max_prefills);
  const auto layers = static_cast<size_t>(config.layers);
  cache->slots_.resize(sequences);
  cache->layers_.resize(sequences * layers);
  if (!config.stage1.key_as_query) {
    cache->window_marks_.resize(prefills * layers * static_cast<size_t>(config.window));
  }
  cache->window_taken_.resize(prefills);
  cache->rows_.resize(static_cast<size_t>(config.max_rows));
  cache->runs_.resize(static_cast<size_t>(config.max_rows));
  const BackendLimits limits = backend_limits(config, sizes);
  try {
    cache->backend_ = cpu::create(limits, cache->workspace_);
  } catch (const std::system_error& error) {
    failure.native_code = error.code().value();
    return fail_value(failure, RKV_OUT_OF_MEMORY, "config.num_threads", limits.threads,
                      "the system gave no more threads (error %d)", failure.native_code);
  }
  out = std::move(cache);
  return RKV_OK;
}

Cache::~Cache() {
  backend_.reset();
  if (owns_buffers_) {
    std::free(storage_);
    std::free(workspace_);
  }
}

rkv_status Cache::check_open(int32_t seq, Failure& failure) const {
  if (seq < 0 || seq >= config_.max_sequences) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "seq", seq, "it must lie in [0, %d]",
                      config_.max_sequences - 1);
  }
  if (!slot(seq).open) {
    return fail_value(failure, RKV_BAD_STATE, "seq", seq, "this sequence is not open");
  }
  return RKV_OK;
}

rkv_status Cache::check_layer(int32_t layer, Failure& failure) const {
  if (layer >= 0 && layer < config_.layers) return RKV_OK;
  return fail_value(failure, RKV_INVALID_ARGUMENT, "layer", layer, "it must lie in [0, %d]",
                    config_.layers - 1);
}

rkv_status Cache::open(int32_t seq, const rkv_sequence_options& options, Failure& failure) {
  if (seq < 0 || seq >= config_.max_sequences) return check_open(seq, failure);
  if (slot(seq).open) {
    return fail_value(failure, RKV_BAD_STATE, "seq", seq, "this sequence is open; close it first");
  }
  Request request;
  RKV_TRY(read_request(options, config_, request, failure));
  Slot fresh;
  fresh.open = true;
  fresh.request = request;
  slot(seq) = fresh;
  for (int32_t index = 0; index < config_.layers; ++index) layer(seq, index) = LayerState{};
  return RKV_OK;
}

rkv_status Cache::close(int32_t seq, Failure& failure) {
  RKV_TRY(check_open(seq, failure));
  for (int32_t index = 0; index < config_.layers; ++index) release_window(seq, index);
  slot(seq) = Slot{};
  return RKV_OK;
}

void Cache::release_window(int32_t seq, int32_t index) {
  LayerState& state = layer(seq, index);
  Slot& owner = slot(seq);
  if (!state.holds_window_rows) return;
  state.holds_window_rows = false;
  std::fill_n(window_marks(owner.window_slot, index), config_.window, uint8_t{0});
  if (--owner.window_layers == 0) {
    window_taken_[static_cast<size_t>(owner.window_slot)] = 0;
    owner.window_slot = -1;
  }
}

// Drops generated rows of one layer down to `generated` and brings its summaries to that length.
void Cache::drop_rows(int32_t seq, int32_t index, int64_t generated) {
  LayerState& state = layer(seq, index);
  if (generated >= state.generated) return;
  if (const int64_t pages = page_size(seq, index); pages > 0) {
    backend_->rewind(store(seq, index), pages, state.kept + state.generated,
                     state.kept + generated);
  }
  state.generated = generated;
}

rkv_status Cache::rewind(int32_t seq, int64_t position, Failure& failure) {
  RKV_TRY(check_open(seq, failure));
  int64_t longest = -1;
  for (int32_t index = 0; index < config_.layers; ++index) {
    if (layer(seq, index).phase != LayerPhase::kReady) continue;
    longest = std::max(longest, length(seq, index));
  }
  if (longest < 0) {
    return fail_value(failure, RKV_BAD_STATE, "seq", seq, "no layer of it has been prefilled");
  }
  const int64_t prompt = slot(seq).prompt;
  if (position < prompt || position > longest) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "position", position,
                      "it must lie in [%lld, %lld]: the prompt's end and the sequence's length",
                      static_cast<long long>(prompt), static_cast<long long>(longest));
  }
  for (int32_t index = 0; index < config_.layers; ++index) {
    if (layer(seq, index).phase == LayerPhase::kReady) drop_rows(seq, index, position - prompt);
  }
  return RKV_OK;
}

void fill_plan(const Plan& plan, rkv_plan& out) {
  out.raised = plan.raised ? 1 : 0;
  out.dense = plan.dense ? 1 : 0;
  out.page_size = static_cast<int32_t>(plan.page_size);
  out.num_channels = static_cast<int32_t>(plan.channels);
  out.cap = plan.cap;
  out.prompt_budget = plan.prompt_budget;
  out.rows = plan.rows;
  out.pages = plan.pages;
  out.top_k = plan.top_k;
  out.token_budget = plan.token_budget;
  out.ratio = plan.ratio;
  out.split = plan.split;
  out.storage_ratio = plan.storage_ratio;
  out.traffic_ratio = plan.traffic_ratio;
}

rkv_status Cache::stats(int32_t seq, int32_t index, rkv_sequence_stats& out, rkv_plan* plan,
                        Failure& failure) const {
  RKV_TRY(check_open(seq, failure));
  RKV_TRY(check_layer(index, failure));
  const Slot& owner = slot(seq);
  const LayerState& state = layer(seq, index);
  const Shape& shape = config_.shape;
  if (plan != nullptr && owner.planned) fill_plan(owner.plan, *plan);
  if (state.phase != LayerPhase::kReady) {
    out.turn = state.phase == LayerPhase::kEmpty ? 0 : 1;
    out.prompt = state.phase == LayerPhase::kEmpty ? 0 : owner.prompt;
    return RKV_OK;
  }
  const int64_t live = state.kept + state.generated;
  const int64_t heads = shape.kv_heads;
  const int64_t element = dtype_bytes(shape.kv);
  const int64_t p = page_size(seq, index);
  out.turn = 1;
  out.window_rows = state.window_rows;
  out.nonfinite = state.nonfinite ? 1 : 0;
  out.position = length(seq, index);
  out.max_position = owner.prompt + owner.request.max_new;
  out.prompt = owner.prompt;
  out.kept = state.kept;
  out.generated = state.generated;
  out.pages = p == 0 ? 0 : (live + p - 1) / p;
  out.k_bytes = heads * live * shape.head_dim * element;
  out.v_bytes = heads * live * shape.head_dim_v * element;
  out.summary_bytes = heads * 2 * shape.head_dim * out.pages * element;
  out.index_bytes = heads * state.kept * int64_t{sizeof(int32_t)};
  out.full_kv_bytes = heads * out.position * (shape.head_dim + shape.head_dim_v) * element;
  int64_t selected = live, summaries = 0;
  if (p != 0 && owner.plan.top_k < live) {
    const int64_t k = owner.plan.top_k;
    selected = config_.select.tokens ? k : std::min(live, (k + p - 1) / p * p);
    summaries = owner.plan.channels * out.pages * element;
  }
  out.bytes_read_per_step =
      heads * (summaries + selected * (shape.head_dim + shape.head_dim_v) * element);
  return RKV_OK;
}

rkv_status Cache::kept_positions(int32_t seq, int32_t index, int64_t* out, int64_t capacity,
                                 int64_t& count, Failure& failure) const {
  RKV_TRY(check_open(seq, failure));
  RKV_TRY(check_layer(index, failure));
  const LayerState& state = layer(seq, index);
  if (state.phase != LayerPhase::kReady) {
    return fail_value(failure, RKV_BAD_STATE, "layer", index,
                      "sequence %d has not been prefilled there", seq);
  }
  const int64_t live = state.kept + state.generated;
  const int64_t heads = config_.shape.kv_heads;
  count = live;
  if (out == nullptr) return RKV_OK;
  RKV_TRY(check_aligned("out", out, sizeof(int64_t), failure));
  if (capacity < heads * live) {
    return fail_value(failure, RKV_BUFFER_TOO_SMALL, "capacity", capacity,
                      "kv_heads * live rows = %lld elements are needed",
                      static_cast<long long>(heads * live));
  }
  const LayerStore rows = store(seq, index);
  for (int64_t head = 0; head < heads; ++head) {
    int64_t* line = out + head * live;
    std::copy_n(rows.positions + head * rows.kept, state.kept, line);
    for (int64_t i = 0; i < state.generated; ++i) line[state.kept + i] = slot(seq).prompt + i;
  }
  return RKV_OK;
}

}  // namespace rkv
