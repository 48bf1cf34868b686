// How much a selection misses: its share of the attention mass, and the error of the output.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cache.hpp"

namespace rkv {
namespace {

struct Tally {
  double mass_sum = 0.0, mass_min = std::numeric_limits<double>::infinity();
  double error_sum = 0.0, error_max = 0.0;
  int64_t heads = 0;

  void add(double mass, double error) {
    mass_sum += mass;
    mass_min = std::min(mass_min, mass);
    error_sum += error;
    error_max = std::max(error_max, error);
    ++heads;
  }
};

// |selected - all| / |all|; 0 where both are 0.
double relative_error(const float* selected, const float* all, int64_t n) {
  double difference = 0.0, norm = 0.0;
  for (int64_t d = 0; d < n; ++d) {
    const double delta = double{selected[d]} - double{all[d]};
    difference += delta * delta;
    norm += double{all[d]} * double{all[d]};
  }
  if (difference == 0.0) return 0.0;
  return norm == 0.0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / norm);
}

}  // namespace

rkv_status Cache::audit(const DecodeCall& call, rkv_audit_result& result, Failure& failure) {
  const rkv_decode_args& args = call.args;
  const Shape& shape = config_.shape;
  DecodeTask rows;
  rows.select = config_.select;
  rows.attention = config_.attention;
  RKV_TRY(check_call(args, failure));
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  result.mass_mean = result.mass_min = result.prompt_mass_mean = kNone;
  result.error_mean = result.error_max = kNone;
  if (args.rows == 0) return RKV_OK;
  RKV_TRY(read_tensor(
      call.q,
      {"args.q", shape.query, "config.query_dtype", args.rows, shape.q_heads, shape.head_dim},
      rows.q, failure));
  if (call.selection != nullptr) RKV_TRY(check_selection(call, true, rows, failure));
  RKV_TRY(read_rows(call, Access::kExisting, rows, failure));
  if (rows.indices != nullptr) RKV_TRY(check_indices(rows, failure));

  const AuditLayout parts = audit_layout(config_, layout_.selection);
  std::byte* base = workspace_ + layout_.audit_offset;
  const auto floats = [base](int64_t offset) { return reinterpret_cast<float*>(base + offset); };
  Tally tally;
  for (int32_t r = 0; r < rows.row_count; ++r) {
    DecodeRow row = rows.rows[r];
    const int64_t line = int64_t{row.row} * shape.kv_heads;
    const DecodeRun run{0, 1};
    DecodeTask one = rows;
    one.q.data = rows.q.at(row.row, 0);
    one.rows = &row;
    one.runs = &run;
    one.run_count = one.row_count = 1;
    one.out = {base + parts.out_selected, DType::kF32, 0, shape.head_dim_v, 1};
    one.lse = floats(parts.lse_selected);
    row.row = 0;
    if (rows.indices != nullptr) {
      one.indices = rows.indices + line * rows.capacity;
      one.counts = rows.counts + line;
    } else {
      one.indices = reinterpret_cast<int32_t*>(base + parts.indices);
      one.counts = reinterpret_cast<int32_t*>(base + parts.counts);
      one.capacity = layout_.selection;
      backend_->select(one);
    }
    backend_->attend(one);
    one.indices = one.counts = nullptr;
    one.out.data = base + parts.out_all;
    one.lse = floats(parts.lse_all);
    backend_->attend(one);
    for (int64_t head = 0; head < shape.q_heads; ++head) {
      const double all = floats(parts.lse_all)[head], selected = floats(parts.lse_selected)[head];
      const double mass = std::isinf(all) ? 1.0 : std::min(1.0, std::exp(selected - all));
      tally.add(mass,
                relative_error(floats(parts.out_selected) + head * shape.head_dim_v,
                               floats(parts.out_all) + head * shape.head_dim_v, shape.head_dim_v));
    }
  }
  result.rows = rows.row_count;
  if (tally.heads > 0) {
    const auto heads = static_cast<double>(tally.heads);
    result.mass_mean = tally.mass_sum / heads;
    result.mass_min = tally.mass_min;
    result.error_mean = tally.error_sum / heads;
    result.error_max = tally.error_max;
  }
  return RKV_OK;
}

}  // namespace rkv
