#include "core/layout.hpp"

#include <algorithm>

namespace rkv {
namespace {

// Sizes add and multiply in 128 bits; the largest that are accepted leave room for every index.
using Wide = __int128;
constexpr Wide kLargest = Wide{1} << 62;

Wide align(Wide bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The parts of one layer of one slot, in order.
struct LayerParts {
  Wide kv = 0, pages = 0, tail = 0, positions = 0;
  Wide bytes() const { return align(kv) + align(pages) + align(tail) + align(positions); }
};

int64_t page_blocks(int64_t pages) { return (pages + kPageBlock - 1) / kPageBlock; }

LayerParts layer_parts(const Shape& shape, int64_t rows, int64_t pages) {
  const Wide element = dtype_bytes(shape.kv);
  const Wide heads = shape.kv_heads;
  LayerParts parts;
  parts.kv = heads * rows * (shape.head_dim + shape.head_dim_v) * element;
  parts.pages = heads * page_blocks(pages) * kPageBlock * 2 * shape.head_dim * element;
  parts.tail = pages == 0 ? 0 : heads * kTailPages * 2 * shape.head_dim * element;
  parts.positions = heads * rows * Wide{sizeof(int32_t)};
  return parts;
}

}  // namespace

LayerStore Layout::store(const Config& config, std::byte* storage, int32_t sequence,
                         int32_t layer) const {
  const bool dense = config.dense_layer(layer);
  const int64_t pages = dense ? 0 : capacity.pages;
  LayerStore store;
  store.rows = store.kept = rows_of(config, layer);
  store.blocks = page_blocks(pages);
  const LayerParts parts = layer_parts(config.shape, store.rows, pages);
  std::byte* at = storage + sequence * slot_bytes + layer_offsets[static_cast<size_t>(layer)];
  store.kv = at;
  at += static_cast<int64_t>(align(parts.kv));
  store.pages = at;
  at += static_cast<int64_t>(align(parts.pages));
  store.tail = at;
  at += static_cast<int64_t>(align(parts.tail));
  store.positions = reinterpret_cast<int32_t*>(at);
  return store;
}

std::byte* Layout::window_rows(const Config& config, std::byte* storage, int32_t window_slot,
                               int32_t layer) const {
  return storage + window_offset +
         (int64_t{window_slot} * config.layers + layer) * window_layer_bytes;
}

AuditLayout audit_layout(const Config& config, int64_t selection) {
  const Shape& shape = config.shape;
  AuditLayout audit;
  int64_t at = 0;
  const auto take = [&at](int64_t bytes) {
    const int64_t offset = at;
    at += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  };
  audit.indices = take(shape.kv_heads * selection * int64_t{sizeof(int32_t)});
  audit.counts = take(shape.kv_heads * int64_t{sizeof(int32_t)});
  audit.lse_selected = take(shape.q_heads * int64_t{sizeof(float)});
  audit.lse_all = take(shape.q_heads * int64_t{sizeof(float)});
  audit.out_selected = take(int64_t{shape.q_heads} * shape.head_dim_v * int64_t{sizeof(float)});
  audit.out_all = take(int64_t{shape.q_heads} * shape.head_dim_v * int64_t{sizeof(float)});
  audit.bytes = at;
  return audit;
}

BackendLimits backend_limits(const Config& config, const Layout& layout) {
  BackendLimits limits;
  limits.shape = config.shape;
  limits.threads = config.threads;
  limits.max_rows = config.max_rows;
  limits.window = config.window;
  limits.max_prompt = config.max_prompt;
  limits.max_live = std::max(layout.capacity.rows, layout.dense_rows);
  limits.max_pages = layout.capacity.pages;
  limits.selection_capacity = layout.selection;
  limits.stage1 = config.stage1;
  return limits;
}

rkv_status make_layout(const Config& config, Layout& out, Failure& failure) {
  const Shape& shape = config.shape;
  Layout layout;
  layout.capacity = capacity_for_all_prompts(config);
  layout.selection = layout.capacity.selection;
  layout.layer_offsets.reserve(static_cast<size_t>(config.layers));
  Wide kv = 0, summaries = 0, positions = 0, slot = 0;
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    const bool dense = config.dense_layer(layer);
    if (dense) {
      layout.dense_rows = config.max_prompt + config.request.max_new;
      layout.selection = layout.dense_rows;
    }
    const LayerParts parts =
        layer_parts(shape, layout.rows_of(config, layer), dense ? 0 : layout.capacity.pages);
    layout.layer_offsets.push_back(static_cast<int64_t>(slot));
    kv += parts.kv;
    summaries += parts.pages + parts.tail;
    positions += parts.positions;
    slot += parts.bytes();
  }
  const Wide window_layer =
      config.stage1.key_as_query
          ? 0
          : align(Wide{config.window} * shape.q_heads * shape.head_dim * dtype_bytes(shape.query));
  const Wide window = Wide{config.max_prefills} * config.layers * window_layer;
  const Wide slots = Wide{config.max_sequences} * slot;
  const Wide storage = slots + window;
  layout.slot_bytes = static_cast<int64_t>(std::min(slot, kLargest));
  const int64_t backend =
      storage > kLargest ? -1 : cpu::workspace_bytes(backend_limits(config, layout));
  const Wide audit = Wide{shape.kv_heads} * layout.selection * Wide{sizeof(int32_t)};
  if (storage > kLargest || backend < 0 || audit > kLargest || backend > kLargest) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "config.max_prompt_tokens is %lld, max_sequences %d, layers %d: storage or "
                "workspace would exceed 2^62 bytes",
                static_cast<long long>(config.max_prompt), config.max_sequences, config.layers);
  }
  layout.window_offset = static_cast<int64_t>(slots);
  layout.window_layer_bytes = static_cast<int64_t>(window_layer);
  layout.window_bytes = static_cast<int64_t>(window);
  layout.storage_bytes = static_cast<int64_t>(storage);
  const Wide sequences = config.max_sequences;
  const Wide k = kv / (shape.head_dim + shape.head_dim_v) * shape.head_dim;
  layout.k_bytes = static_cast<int64_t>(sequences * k);
  layout.v_bytes = static_cast<int64_t>(sequences * (kv - k));
  layout.summary_bytes = static_cast<int64_t>(sequences * summaries);
  layout.index_bytes = static_cast<int64_t>(sequences * positions);
  layout.table_bytes = layout.storage_bytes - layout.k_bytes - layout.v_bytes -
                       layout.summary_bytes - layout.index_bytes - layout.window_bytes;
  layout.audit_offset = static_cast<int64_t>(align(backend));
  layout.workspace_bytes = layout.audit_offset + audit_layout(config, layout.selection).bytes;
  out = std::move(layout);
  return RKV_OK;
}

}  // namespace rkv
