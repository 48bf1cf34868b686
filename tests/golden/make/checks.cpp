// What a case may claim: cuts that rounding cannot move, and the counters that follow from the rules.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "book.hpp"
#include "fields.hpp"
#include "support/twin.hpp"

namespace rkv_golden {
namespace {

constexpr double kClear = 1e-4;  // relative distance of a score from the cut, at least

bool close_to(double a, double b) {
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= kClear * std::max(std::fabs(a), std::fabs(b));
}

}  // namespace

void Case::near(double a, double b, const char* what) const {
  if (!ties_ && close_to(a, b)) throw Tie(what);
}

// Max pooling gives plateaus of one number: inside one the unpooled scores decide.
void Case::check_stage1(const rkv_ref::Stage1Result& stage, std::int64_t sinks) const {
  if (stage.identity || ties_) return;
  const auto chosen = static_cast<std::int64_t>(stage.kept.size()) - stage.window_rows - sinks;
  const auto order = rkv_ref::rank_prefix(stage.pooled, stage.score, sinks);
  if (chosen <= 0 || chosen >= static_cast<std::int64_t>(order.size())) return;
  const auto at = [](const std::vector<double>& v, std::int64_t i) {
    return v[static_cast<std::size_t>(i)];
  };
  const std::int64_t last = order[static_cast<std::size_t>(chosen - 1)];
  const std::int64_t next = order[static_cast<std::size_t>(chosen)];
  const double cut = at(stage.pooled, last);
  if (cut < 1e-30) throw Tie("the cut lies where exp underflows");
  for (std::int64_t j : order) {
    if (at(stage.pooled, j) != cut) near(at(stage.pooled, j), cut, "pooled score");
  }
  if (at(stage.pooled, next) != cut) return;
  if (config_.pooling == RKV_POOL_AVG) throw Tie("equal averages");
  near(at(stage.score, last), at(stage.score, next), "score in a plateau");
}

void Case::check_stage2(const rkv_ref::Stage2Result& stage, const Layer& l) const {
  if (stage.dense || ties_) return;
  const std::int64_t live = l.reference.live(), size = l.reference.plan().page_size;
  const auto k = static_cast<std::int64_t>(l.reference.config().stage2.top_k);
  std::size_t taken = 0;  // pages, the cut one included
  std::int64_t rows = 0;
  bool partial = false;
  if (config_.selection_unit == RKV_UNIT_TOKENS) {
    for (; rows < k; ++taken) {
      rows += std::min(size, live - stage.order[taken] * size);
    }
    partial = rows > k;
  } else {
    taken = std::min(static_cast<std::size_t>((k + size - 1) / size), stage.order.size());
  }
  const bool single = config_.q_heads == config_.kv_heads;
  const auto clear = [&](std::size_t first) {  // between the pages of rank first and first + 1
    if (first + 1 >= stage.order.size()) return;
    const auto a = static_cast<std::size_t>(stage.order[first]);
    const auto b = static_cast<std::size_t>(stage.order[first + 1]);
    if (stage.forced[a] != stage.forced[b]) return;
    const double x = stage.rank[a], y = stage.rank[b];
    // With one head a score is a sum of few binary digits, exact in any order; no page is finite
    // twice: both go by the lower index.
    if (x == y && (single || x == 0)) return;
    if (!single && x < 1e-30) throw Tie("the cut lies where exp underflows");
    near(x, y, "page score");
  };
  clear(taken - 1);
  if (partial && taken > 1) clear(taken - 2);
}

void Case::stats(int seq, int index) {
  line("stats " + std::to_string(seq) + " " + std::to_string(index));
  const Layer& l = layer(seq, index);
  if (!l.began) {
    line(
        "= fields 0 turn=0 window_rows=0 fault=0 nonfinite=0 saturated=0 position=0 "
        "max_position=0 prompt=0 kept=0 generated=0 pages=0 k_bytes=0 v_bytes=0 summary_bytes=0 "
        "index_bytes=0 full_kv_bytes=0 bytes_read_per_step=0");
    return;
  }
  const rkv_ref::Sequence& reference = l.reference;
  const rkv_ref::Plan& plan = reference.plan();
  const std::int64_t live = reference.live(), heads = config_.kv_heads, d = config_.head_dim;
  const std::int64_t position = reference.length(), bytes = element();
  const bool dense = plan.dense || reference.config().dense_layer;
  const std::int64_t pages = dense ? 0 : (live + plan.page_size - 1) / plan.page_size;
  std::int64_t selected = live, scored = 0;
  if (!dense && plan.top_k < live) {
    const std::int64_t p = plan.page_size, rounded = (plan.top_k + p - 1) / p * p;
    selected = config_.selection_unit == RKV_UNIT_TOKENS ? plan.top_k : std::min(live, rounded);
    scored = plan.num_channels * pages * bytes;
  }
  std::ostringstream out;
  out << "= fields 0 turn=1 window_rows=" << l.window_rows
      << " fault=0 saturated=0 position=" << position
      << " max_position=" << l.prompt + reference.config().plan.max_new << " prompt=" << l.prompt
      << " kept=" << reference.kept() << " generated=" << live - reference.kept()
      << " pages=" << pages << " k_bytes=" << heads * live * d * bytes
      << " v_bytes=" << heads * live * value_dim() * bytes
      << " summary_bytes=" << heads * 2 * d * pages * bytes
      << " full_kv_bytes=" << heads * position * (d + value_dim()) * bytes
      << " bytes_read_per_step=" << heads * (scored + selected * (d + value_dim()) * bytes);
  if (l.nonfinite_known) out << " nonfinite=" << l.nonfinite;
  line(out.str());
}

void Case::audit(int index, const Batch& rows) {
  rows_line("audit", index, rows);
  const auto group = config_.q_heads / config_.kv_heads;
  double mass = 0, least = 2, error = 0, largest = 0;
  int tokens = 0, heads = 0;
  for (const RowId& id : rows) {
    if (id.first == -1) continue;
    ++tokens;
    Layer view = layer(id.first, index);  // as it was when the row had been appended
    if (view.reference.length() > id.second + 1) view.reference.rewind(id.second + 1);
    const rkv_ref::Rows q = row(id.first, index, kQ, id.second);
    std::vector<std::int64_t> all(static_cast<std::size_t>(view.reference.live()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      const rkv_ref::Stage2Result stage = view.reference.select(h, q.row(0));
      check_stage2(stage, view);
      const auto some = view.reference.attend(h, q.row(0), stage.rows);
      const auto full = view.reference.attend(h, q.row(0), all);
      for (std::size_t g = 0; g < static_cast<std::size_t>(group); ++g) {
        double difference = 0, norm = 0;
        for (std::size_t x = 0; x < full[g].out.size(); ++x) {
          difference += std::pow(some[g].out[x] - full[g].out[x], 2);
          norm += std::pow(full[g].out[x], 2);
        }
        const double share = std::exp(some[g].lse - full[g].lse);
        const double off = std::sqrt(difference / norm);
        mass += share, least = std::min(least, share);
        error += off, largest = std::max(largest, off);
        ++heads;
      }
    }
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (heads == 0) mass = least = error = largest = none;
  line("= fields 0 rows=" + std::to_string(tokens));
  line("= fields 0.0002 mass_mean=" + real_text(mass / heads, 8) + " mass_min=" +
       real_text(least, 8) + " prompt_mass_mean=nan error_mean=" + real_text(error / heads, 8) +
       " error_max=" + real_text(largest, 8));
}

}  // namespace rkv_golden
