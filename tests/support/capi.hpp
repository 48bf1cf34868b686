// A thin C++ skin over the C API for tests: config builder, a cache in guarded buffers of exactly
// the size asked for, a selection in guarded memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "memory.hpp"
#include "rkv/rkv.h"
#include "tensor.hpp"

namespace rkv_test {

template <typename T>
T zeroed() {
  T value;
  std::memset(&value, 0, sizeof value);
  value.struct_size = sizeof value;
  return value;
}

// One layer on the CPU with everything else at its default.
inline rkv_cache_config make_config(int q_heads, int kv_heads, int head_dim, std::int64_t prompt,
                                    std::int64_t max_new, std::int64_t token_budget,
                                    int dtype = RKV_DTYPE_F32) {
  rkv_cache_config config = zeroed<rkv_cache_config>();
  config.layers = 1;
  config.q_heads = q_heads;
  config.kv_heads = kv_heads;
  config.head_dim = head_dim;
  config.kv_dtype = dtype;
  config.max_prompt_tokens = prompt;
  config.max_new_tokens = max_new;
  config.token_budget = token_budget;
  config.num_threads = 1;
  return config;
}

inline std::int32_t query_dtype(const rkv_cache_config& c) {
  return c.query_dtype != 0 ? c.query_dtype : c.kv_dtype;
}
inline std::int64_t value_dim(const rkv_cache_config& c) {
  return c.head_dim_v != 0 ? c.head_dim_v : c.head_dim;
}

inline std::string describe(const rkv_cache_config& c) {
  std::string text;
  const auto add = [&](const char* name, double value) {
    if (value == 0) return;
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%s=%g ", name, value);
    text += buffer;
  };
  add("Hq", c.q_heads), add("Hkv", c.kv_heads), add("D", c.head_dim), add("Dv", c.head_dim_v);
  text += std::string("kv=") + dtype_name(c.kv_dtype) + " ";
  if (c.query_dtype != 0) text += std::string("q=") + dtype_name(c.query_dtype) + " ";
  add("maxS", static_cast<double>(c.max_prompt_tokens));
  add("max_new", static_cast<double>(c.max_new_tokens));
  add("t", static_cast<double>(c.token_budget)), add("c", c.compression_ratio);
  add("budget", static_cast<double>(c.prompt_budget)), add("k", static_cast<double>(c.top_k));
  add("P", c.page_size), add("r", c.num_channels), add("W", c.window_size);
  add("kernel", c.kernel_size), add("sinks", c.sinks), add("recent", c.recent_tokens);
  add("unit", c.selection_unit), add("prefix_only", c.stage1_domain);
  add("page_softmax", c.selection_domain), add("avg", c.pooling), add("sqrt_d", c.temperature);
  add("key_as_query", c.key_as_query), add("scale", c.softmax_scale);
  add("softcap", c.logit_softcap), add("dense", c.dense_layers[0]), add("threads", c.num_threads);
  return text;
}

// A cache whose storage and workspace are poisoned, guarded and exactly as large as the query says.
class Cache {
 public:
  explicit Cache(const rkv_cache_config& config, bool own_buffers = true) : config_(config) {
    memory_ = zeroed<rkv_memory>();
    error_ = zeroed<rkv_error>();
    status_ = rkv_cache_memory(&config, &memory_, &error_);
    if (status_ != RKV_OK) return;
    rkv_buffers buffers = zeroed<rkv_buffers>();
    if (own_buffers) {
      storage_ = std::make_unique<GuardedMemory>(memory_.storage_bytes, memory_.alignment);
      workspace_ = std::make_unique<GuardedMemory>(memory_.workspace_bytes, memory_.alignment);
      buffers.storage = storage_->data();
      buffers.storage_bytes = memory_.storage_bytes;
      buffers.workspace = workspace_->data();
      buffers.workspace_bytes = memory_.workspace_bytes;
    }
    status_ = rkv_cache_create(&config, own_buffers ? &buffers : nullptr, &cache_, &error_);
  }
  ~Cache() {
    rkv_cache_destroy(cache_);
    if (storage_ != nullptr) {
      EXPECT_TRUE(storage_->intact()) << "storage overrun: " << describe(config_);
      EXPECT_TRUE(workspace_->intact()) << "workspace overrun: " << describe(config_);
    }
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  rkv_status open(int seq, const rkv_sequence_options* options = nullptr) {
    return rkv_sequence_open(cache_, seq, options, &error_);
  }
  rkv_status close(int seq) { return rkv_sequence_close(cache_, seq, nullptr, &error_); }
  rkv_status rewind(int seq, std::int64_t position) {
    return rkv_sequence_rewind(cache_, seq, position, nullptr, &error_);
  }

  // Any tensor may be null.
  rkv_status prefill(int seq, int layer, std::int64_t start, std::int64_t prompt,
                     const HostTensor* q, const HostTensor* k, const HostTensor* v) {
    rkv_prefill_args args = zeroed<rkv_prefill_args>();
    args.seq = seq;
    args.layer = layer;
    args.start = start;
    args.prompt_tokens = prompt;
    args.q = q != nullptr ? q->get() : nullptr;
    args.k = k != nullptr ? k->get() : nullptr;
    args.v = v != nullptr ? v->get() : nullptr;
    return rkv_prefill(cache_, &args, nullptr, &error_);
  }

  rkv_sequence_stats stats(int seq, int layer = 0, rkv_plan* plan = nullptr) {
    rkv_sequence_stats stats = zeroed<rkv_sequence_stats>();
    if (plan != nullptr) *plan = zeroed<rkv_plan>();
    stats.plan = plan;
    EXPECT_EQ(RKV_OK, rkv_stats(cache_, seq, layer, nullptr, &stats, &error_)) << error_.text;
    return stats;
  }

  // Original positions of all live rows, one list per KV head.
  std::vector<std::vector<std::int64_t>> positions(int seq, int layer = 0) {
    const std::int64_t heads = config_.kv_heads;
    const std::int64_t live = live_rows(seq, layer);
    std::vector<std::int64_t> flat(static_cast<std::size_t>(heads * live), -7);
    std::int64_t count = -1;
    EXPECT_EQ(RKV_OK, rkv_kept_positions(cache_, seq, layer, nullptr, flat.data(), heads * live,
                                         &count, &error_))
        << error_.text;
    EXPECT_EQ(live, count);
    std::vector<std::vector<std::int64_t>> lists;
    for (std::int64_t h = 0; h < heads; ++h) {
      lists.emplace_back(flat.begin() + h * live, flat.begin() + (h + 1) * live);
    }
    return lists;
  }
  std::int64_t live_rows(int seq, int layer = 0) {
    const rkv_sequence_stats s = stats(seq, layer);
    return s.kept + s.generated;
  }

  rkv_status status() const { return status_; }
  const char* text() const { return error_.text; }
  rkv_error* error() { return &error_; }
  rkv_cache* get() { return cache_; }
  const rkv_memory& memory() const { return memory_; }
  const rkv_cache_config& config() const { return config_; }

 private:
  rkv_cache_config config_;
  rkv_memory memory_;
  rkv_error error_;
  rkv_status status_ = RKV_OK;
  std::unique_ptr<GuardedMemory> storage_, workspace_;
  rkv_cache* cache_ = nullptr;
};

// Selection lists [rows, Hkv, capacity] in guarded memory.
class Selection {
 public:
  Selection(std::int64_t rows, std::int64_t heads, std::int64_t capacity)
      : rows_(rows),
        heads_(heads),
        capacity_(capacity),
        indices_(rows * heads * capacity * 4, 4),
        counts_(rows * heads * 4, 4) {
    selection_ = zeroed<rkv_selection>();
    selection_.space = RKV_SPACE_LIVE_ROW;
    selection_.indices = reinterpret_cast<std::int32_t*>(indices_.data());
    selection_.counts = reinterpret_cast<std::int32_t*>(counts_.data());
    selection_.capacity = capacity;
  }

  // The list of one row and head; checks the count and the padding behind it.
  std::vector<std::int64_t> list(std::int64_t row, std::int64_t head) const {
    const std::int32_t count = selection_.counts[row * heads_ + head];
    EXPECT_GE(count, 0);
    EXPECT_LE(count, capacity_);
    const std::int32_t* p = selection_.indices + (row * heads_ + head) * capacity_;
    for (std::int64_t i = count; i < capacity_; ++i) {
      if (p[i] != -1) {
        ADD_FAILURE() << "padding of a selection list is " << p[i] << " at " << i;
        break;
      }
    }
    return std::vector<std::int64_t>(p, p + std::max<std::int32_t>(0, count));
  }
  bool intact() const { return indices_.intact() && counts_.intact(); }
  rkv_selection* get() { return &selection_; }

  bool operator==(const Selection& other) const {
    return std::memcmp(counts_.data(), other.counts_.data(), counts_.size()) == 0 &&
           std::memcmp(indices_.data(), other.indices_.data(), indices_.size()) == 0;
  }

 private:
  std::int64_t rows_, heads_, capacity_;
  GuardedMemory indices_, counts_;
  rkv_selection selection_;
};

// Everything one decode call of `rows` rows needs, in guarded memory.
class StepBuffers {
 public:
  StepBuffers(Cache* cache, std::int64_t rows, Layout layout = Layout::kTokenMajor)
      : cache_(cache),
        seq(static_cast<std::size_t>(rows), 0),
        positions(static_cast<std::size_t>(rows), 0),
        q(query_dtype(cache->config()), rows, cache->config().q_heads, cache->config().head_dim,
          layout),
        k(cache->config().kv_dtype, rows, cache->config().kv_heads, cache->config().head_dim,
          layout),
        v(cache->config().kv_dtype, rows, cache->config().kv_heads, value_dim(cache->config()),
          layout),
        out(query_dtype(cache->config()), rows, cache->config().q_heads, value_dim(cache->config()),
            layout),
        lse_memory(rows * cache->config().q_heads * 4, 4),
        status_memory(rows * 4, 4),
        selection(rows, cache->config().kv_heads, cache->memory().selection_capacity) {}

  rkv_decode_args args(int layer) {
    rkv_decode_args a = zeroed<rkv_decode_args>();
    a.layer = layer;
    a.rows = static_cast<std::int32_t>(seq.size());
    a.seq = seq.data();
    a.positions = positions.data();
    a.q = q.get();
    a.k = k.get();
    a.v = v.get();
    a.selection = selection.get();
    a.out = out.get();
    a.lse = lse();
    return a;
  }
  rkv_status decode(int layer = 0) {
    const rkv_decode_args a = args(layer);
    return rkv_decode(cache_->get(), &a, nullptr, cache_->error());
  }
  rkv_status decode_select(int layer = 0) {
    rkv_decode_args a = args(layer);
    a.out = nullptr;
    a.lse = nullptr;
    return rkv_decode_select(cache_->get(), &a, nullptr, cache_->error());
  }
  // With the selection as it lies in memory, or over all live rows.
  rkv_status attend(int layer = 0, bool all_rows = false) {
    rkv_decode_args a = args(layer);
    a.k = nullptr;
    a.v = nullptr;
    if (all_rows) a.selection = nullptr;
    return rkv_attend(cache_->get(), &a, nullptr, cache_->error());
  }

  float* lse() { return reinterpret_cast<float*>(lse_memory.data()); }
  float lse_of(std::int64_t row, std::int64_t head) { return lse()[row * q.heads() + head]; }
  bool sound() const {
    return q.unchanged() && k.unchanged() && v.unchanged() && out.gaps_untouched() &&
           lse_memory.intact() && selection.intact();
  }
  // Bits of output and log-sum-exp.
  std::vector<std::uint8_t> result_bits() const {
    std::vector<std::uint8_t> bits = out.bits();
    bits.insert(bits.end(), lse_memory.data(), lse_memory.data() + lse_memory.size());
    return bits;
  }

 private:
  Cache* cache_;

 public:
  std::vector<std::int32_t> seq;
  std::vector<std::int64_t> positions;
  HostTensor q, k, v, out;
  GuardedMemory lse_memory, status_memory;
  Selection selection;
};

}  // namespace rkv_test
