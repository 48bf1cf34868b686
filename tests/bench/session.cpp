#include "session.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/config.hpp"
#include "core/layout.hpp"

namespace rkv_bench {
namespace {

template <class T>
T zeroed() {
  T value;
  std::memset(&value, 0, sizeof value);
  value.struct_size = sizeof value;
  return value;
}

}  // namespace

void require(rkv_status status, const rkv_error& error) {
  if (status == RKV_OK) return;
  std::fprintf(stderr, "bench: %s: %s\n", rkv_status_name(status), error.text);
  std::exit(3);
}

Session::Session(const SessionSetup& setup)
    : setup_(setup),
      config_(zeroed<rkv_cache_config>()),
      memory_(zeroed<rkv_memory>()),
      plan_(zeroed<rkv_plan>()),
      error_(zeroed<rkv_error>()),
      out_(int64_t{kQueryHeads} * kHeadDim * element_bytes(setup.dtype)) {
  const bool dense = setup.budget == 0;
  const int64_t max_new = dense ? 2 : kMaxNew;
  prompt_tokens_ = setup.length - max_new;
  config_.layers = 1;
  config_.q_heads = kQueryHeads;
  config_.kv_heads = kKvHeads;
  config_.head_dim = kHeadDim;
  config_.kv_dtype = setup.dtype;
  config_.max_prompt_tokens = prompt_tokens_;
  config_.max_new_tokens = max_new;
  config_.token_budget = dense ? 256 : setup.budget;
  config_.window_size = kWindow;
  config_.num_threads = setup.threads;
  if (dense) config_.dense_layers[0] = 1;
  require(rkv_plan_make(&config_, nullptr, prompt_tokens_, &plan_, &error_), error_);
  require(rkv_cache_memory(&config_, &memory_, &error_), error_);
  storage_ = HugeBuffer(memory_.storage_bytes);
  workspace_ = HugeBuffer(memory_.workspace_bytes);
  rkv_buffers buffers = zeroed<rkv_buffers>();
  buffers.storage = storage_.data();
  buffers.storage_bytes = memory_.storage_bytes;
  buffers.workspace = workspace_.data();
  buffers.workspace_bytes = memory_.workspace_bytes;
  require(rkv_cache_create(&config_, &buffers, &cache_, &error_), error_);
}

Session::~Session() { rkv_cache_destroy(cache_); }

void Session::open() {
  if (open_) require(rkv_sequence_close(cache_, 0, nullptr, &error_), error_);
  require(rkv_sequence_open(cache_, 0, nullptr, &error_), error_);
  open_ = true;
}

void Session::prefill(Prompt& prompt, const rkv_tensor& k, const rkv_tensor& v) {
  prompt_ = &prompt;
  const rkv_tensor q = tensor_of(prompt.window_q.data(), setup_.dtype, kWindow, kQueryHeads);
  rkv_prefill_args args = zeroed<rkv_prefill_args>();
  args.start = prompt_tokens_ - kWindow;
  args.prompt_tokens = prompt_tokens_;
  args.q = &q;
  args.k = &k;
  args.v = &v;
  require(rkv_prefill(cache_, &args, nullptr, &error_), error_);
}

void Session::prefill(Prompt& prompt) {
  prefill(prompt, tensor_of(prompt.k.data(), setup_.dtype, prompt_tokens_, kKvHeads),
          tensor_of(prompt.v.data(), setup_.dtype, prompt_tokens_, kKvHeads));
}

void Session::decode(int query, int64_t position, const rkv_selection* selection) {
  const int64_t bytes = element_bytes(setup_.dtype) * kHeadDim;
  const int64_t place = query % kQueries;
  const rkv_tensor q =
      tensor_of(prompt_->step_q.data() + place * kQueryHeads * bytes, setup_.dtype, 1, kQueryHeads);
  const rkv_tensor k =
      tensor_of(prompt_->step_k.data() + place * kKvHeads * bytes, setup_.dtype, 1, kKvHeads);
  const rkv_tensor v =
      tensor_of(prompt_->step_v.data() + place * kKvHeads * bytes, setup_.dtype, 1, kKvHeads);
  const rkv_tensor out = tensor_of(out_.data(), setup_.dtype, 1, kQueryHeads);
  const int32_t seq = 0;
  rkv_decode_args args = zeroed<rkv_decode_args>();
  args.rows = 1;
  args.seq = &seq;
  args.positions = &position;
  args.q = &q;
  args.k = &k;
  args.v = &v;
  args.out = &out;
  args.selection = selection;
  require(rkv_decode(cache_, &args, nullptr, &error_), error_);
}

void Session::fill(Prompt& prompt) {
  prompt_ = &prompt;
  step_position_ = setup_.length - 2;
  for (int64_t p = prompt_tokens_; p <= step_position_; ++p) {
    decode(static_cast<int>(p % kQueries), p, nullptr);
  }
}

void Session::fill_last(Prompt& prompt) {
  prompt_ = &prompt;
  decode(0, setup_.length - 1, nullptr);
}

void Session::step(int i) { decode(i, step_position_, nullptr); }

rkv_sequence_stats Session::stats() {
  rkv_sequence_stats stats = zeroed<rkv_sequence_stats>();
  require(rkv_stats(cache_, 0, 0, nullptr, &stats, &error_), error_);
  return stats;
}

std::vector<int64_t> Session::kept_positions() {
  std::vector<int64_t> positions(static_cast<size_t>(live() * kKvHeads));
  int64_t count = 0;
  require(rkv_kept_positions(cache_, 0, 0, nullptr, positions.data(),
                             static_cast<int64_t>(positions.size()), &count, &error_),
          error_);
  return positions;
}

std::vector<std::vector<int32_t>> Session::selection(int i) {
  const int64_t capacity = memory_.selection_capacity;
  std::vector<int32_t> indices(static_cast<size_t>(kKvHeads * capacity));
  std::vector<int32_t> counts(kKvHeads);
  rkv_selection selection = zeroed<rkv_selection>();
  selection.space = RKV_SPACE_LIVE_ROW;
  selection.indices = indices.data();
  selection.counts = counts.data();
  selection.capacity = capacity;
  decode(i, step_position_, &selection);
  std::vector<std::vector<int32_t>> lists;
  for (int64_t head = 0; head < kKvHeads; ++head) {
    const auto first = indices.begin() + head * capacity;
    lists.emplace_back(first, first + counts[static_cast<size_t>(head)]);
  }
  return lists;
}

rkv::LayerStore Session::store() const {
  rkv::Config config;
  rkv::Layout layout;
  rkv::Failure failure{};
  require(rkv::read_config(config_, config, failure), error_);
  require(rkv::make_layout(config, layout, failure), error_);
  return layout.store(config, storage_.data(), 0, 0);
}

}  // namespace rkv_bench
