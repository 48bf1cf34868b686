// Where everything lies in the storage and the workspace: the size query and the run share this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend.hpp"
#include "core/config.hpp"
#include "core/plan.hpp"

namespace rkv {

inline constexpr int64_t kAlignment = 64;

struct Layout {
  Capacity capacity;       // of an ordinary layer's slot
  int64_t dense_rows = 0;  // rows of a dense layer's slot; 0 where there is none
  int64_t selection = 0;   // longest selection over all layers

  int64_t slot_bytes = 0;                             // one sequence, all layers
  std::vector<int64_t> layer_offsets;                 // in a slot
  int64_t window_offset = 0, window_layer_bytes = 0;  // [max_prefills][layers][window][q_heads][D]
  int64_t audit_offset = 0;                           // in the workspace, behind the backend's part

  int64_t storage_bytes = 0, workspace_bytes = 0;
  int64_t k_bytes = 0, v_bytes = 0, summary_bytes = 0, index_bytes = 0, window_bytes = 0,
          table_bytes = 0;  // what storage_bytes is made of; table: alignment

  int64_t rows_of(const Config& config, int32_t layer) const {
    return config.dense_layer(layer) ? dense_rows : capacity.rows;
  }
  LayerStore store(const Config& config, std::byte* storage, int32_t sequence, int32_t layer) const;
  std::byte* window_rows(const Config& config, std::byte* storage, int32_t window_slot,
                         int32_t layer) const;
};

// One row's selection and both outputs, for rkv_audit. Offsets from Layout::audit_offset.
struct AuditLayout {
  int64_t indices = 0, counts = 0, lse_selected = 0, lse_all = 0, out_selected = 0, out_all = 0;
  int64_t bytes = 0;
};
AuditLayout audit_layout(const Config& config, int64_t selection);

BackendLimits backend_limits(const Config& config, const Layout& layout);
rkv_status make_layout(const Config& config, Layout& out, Failure& failure);

}  // namespace rkv
