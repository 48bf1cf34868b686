#include "book.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "fields.hpp"
#include "support/dtypes.hpp"
#include "support/twin.hpp"

namespace rkv_golden {
namespace {

constexpr double kOutput = 5e-5;  // algorithm.md section 6, of F32 outputs
constexpr double kReal = 1e-9;    // plans in double precision; powers may differ in a last bit

std::string id_text(const RowId& id) {
  return std::to_string(id.first) + ":" + std::to_string(id.second);
}

std::string list_text(const std::vector<std::int64_t>& list) {
  if (list.empty()) return "-";
  std::string text;
  for (std::size_t i = 0; i < list.size();) {
    std::size_t last = i;
    while (last + 1 < list.size() && list[last + 1] == list[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(list[i]);
    if (last > i) text += '-' + std::to_string(list[last]);
    i = last + 1;
  }
  return text;
}

// Half a unit in the last place of a 16-bit type at x: what rounding to it may add.
double half_unit(std::int32_t dtype, double x) {
  if (dtype == RKV_DTYPE_F32 || x == 0 || !std::isfinite(x)) return 0;
  const int digits = dtype == RKV_DTYPE_F16 ? 11 : 8;
  const int least = dtype == RKV_DTYPE_F16 ? -24 : -133;
  return std::ldexp(0.5, std::max(std::ilogb(x) - digits + 1, least));
}

}  // namespace

Case::Case(const std::string& name, std::uint64_t first_seed) : first_seed_(first_seed) {
  config_ = rkv_test::zeroed<rkv_cache_config>();
  options_ = rkv_test::zeroed<rkv_sequence_options>();
  line("case " + name);
}

Case& Case::config(const std::string& fields) {
  set_fields(config_, fields);
  line("config " + fields);
  return *this;
}

Case& Case::options(const std::string& fields) {
  options_ = rkv_test::zeroed<rkv_sequence_options>();
  set_fields(options_, fields);
  has_options_ = !fields.empty();
  line(fields.empty() ? "options" : "options " + fields);
  return *this;
}

void Case::set(Tensor tensor, std::int64_t position, std::int64_t head, std::int64_t channel,
               double value) {
  const std::int64_t channels = tensor == kV ? value_dim() : config_.head_dim;
  const std::int64_t heads = tensor == kQ ? config_.q_heads : config_.kv_heads;
  if (head >= heads || channel >= channels) throw std::invalid_argument("set");
  values_.set[{tensor, position, head, channel}] = value;
  const char* const names[] = {"q", "k", "v"};
  line(std::string("set ") + names[tensor] + " " + std::to_string(position) + " " +
       std::to_string(head) + " " + std::to_string(channel) + " " + real_text(value));
}

std::int64_t Case::value_dim() const { return rkv_test::value_dim(config_); }

void Case::plan(std::int64_t prompt) {
  rkv_ref::PlanInput in =
      rkv_test::reference_config(config_, 0, has_options_ ? &options_ : nullptr).plan;
  in.prompt_tokens = prompt;
  const rkv_ref::Plan p = rkv_ref::make_plan(in);
  // Where a power lands on the edge of the snapped floor, its last bit would decide.
  const double share = static_cast<double>(prompt + in.max_new) / std::pow(p.ratio, p.split);
  const double edge = std::fabs(share - std::round(share)) / share;
  if (edge > 1e-13 && edge < 1e-11) throw Tie("a plan on the edge of a floor");
  line("plan " + std::to_string(prompt));
  std::ostringstream out;
  out << "= fields 0 raised=" << p.raised << " dense=" << p.dense << " page_size=" << p.page_size
      << " num_channels=" << p.num_channels << " cap=" << p.cap
      << " prompt_budget=" << p.prompt_budget << " rows=" << p.rows
      << " pages=" << (p.dense ? 0 : p.pages) << " top_k=" << p.top_k
      << " token_budget=" << p.token_budget;
  line(out.str());
  line("= fields " + real_text(kReal) + " ratio=" + real_text(p.ratio, 12) +
       " split=" + real_text(p.split, 12) + " storage_ratio=" + real_text(p.storage_ratio, 12) +
       " traffic_ratio=" + real_text(p.traffic_ratio, 12));
}

void Case::memory(const std::string& expected_fields) {
  line("memory");
  line("= fields 0 " + expected_fields);
}

void Case::create() { line("create"); }

void Case::open(int seq) {
  Sequence fresh;
  fresh.seed = first_seed_++;
  fresh.options = options_;
  fresh.has_options = has_options_;
  line("open " + std::to_string(seq) + " " + std::to_string(fresh.seed));
  sequences_[seq] = fresh;
}

Case::Layer& Case::layer(int seq, int index) {
  Sequence& s = sequences_.at(seq);
  const auto found = s.layers.find(index);
  if (found != s.layers.end()) return found->second;
  const auto config =
      rkv_test::reference_config(config_, index, s.has_options ? &s.options : nullptr);
  return s.layers.emplace(index, Layer(config)).first->second;
}

void Case::prefill(int seq, int index, std::int64_t prompt, std::int64_t start, std::int64_t end) {
  line("prefill " + std::to_string(seq) + " " + std::to_string(index) + " " +
       std::to_string(prompt) + " " + std::to_string(start) + " " + std::to_string(end));
  if (prompt == 0) return;
  const std::uint64_t seed = sequences_.at(seq).seed;
  Layer& l = layer(seq, index);
  l.prompt = prompt;
  l.began = true;
  const std::int64_t window = l.reference.config().stage1.window;
  for (std::int64_t p = std::max({start, prompt - window, std::int64_t{0}}); p < end; ++p) {
    l.rows.insert(p);
  }
  if (end != prompt) return;
  std::int64_t first = prompt;  // of the unbroken run that ends at S
  while (l.rows.count(first - 1) != 0) --first;
  const auto stages = l.reference.prefill(
      values_.rows(seed, index, kQ, first, prompt, config_.q_heads, config_.head_dim),
      values_.rows(seed, index, kK, 0, prompt, config_.kv_heads, config_.head_dim),
      values_.rows(seed, index, kV, 0, prompt, config_.kv_heads, value_dim()));
  for (const auto& stage : stages) {
    check_stage1(stage, config_.sinks);
    l.window_rows = stage.identity ? 0 : stage.window_rows;
    l.nonfinite = l.nonfinite || stage.nonfinite;
  }
  l.ready = true;
}

void Case::kept(int seq, int index) {
  line("kept " + std::to_string(seq) + " " + std::to_string(index));
  const rkv_ref::Sequence& reference = layer(seq, index).reference;
  for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
    line("= kept " + std::to_string(h) + " " + list_text(reference.positions(h)));
  }
}

rkv_ref::Rows Case::row(int seq, int index, Tensor tensor, std::int64_t position) const {
  return values_.rows(sequences_.at(seq).seed, index, tensor, position, position + 1,
                      tensor == kQ ? config_.q_heads : config_.kv_heads,
                      tensor == kV ? value_dim() : config_.head_dim);
}

Case::Lists Case::append_and_select(int index, const RowId& id) {
  Lists lists(static_cast<std::size_t>(config_.kv_heads));
  if (id.first == -1) return lists;
  Layer& l = layer(id.first, index);
  l.reference.append(id.second, row(id.first, index, kK, id.second).row(0),
                     row(id.first, index, kV, id.second).row(0));
  const rkv_ref::Rows q = row(id.first, index, kQ, id.second);
  for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
    const rkv_ref::Stage2Result stage = l.reference.select(h, q.row(0));
    check_stage2(stage, l);
    for (double score : stage.score.data) {
      if (std::isinf(score)) l.nonfinite_known = false;
    }
    lists[static_cast<std::size_t>(h)] = stage.rows;
  }
  return lists;
}

void Case::rows_line(const char* action, int index, const Batch& rows) {
  std::string text = std::string(action) + " " + std::to_string(index);
  for (const RowId& id : rows) text += " " + id_text(id);
  line(text);
}

void Case::write_selection(const std::vector<Lists>& selections) {
  for (std::size_t row = 0; row < selections.size(); ++row) {
    for (std::size_t h = 0; h < selections[row].size(); ++h) {
      line("= selection " + std::to_string(row) + " " + std::to_string(h) + " " +
           list_text(selections[row][h]));
    }
  }
}

// One row: all heads where they are few, else the first and the last.
void Case::write_output(std::size_t row, const std::vector<std::vector<double>>& out,
                        const std::vector<double>& lse, std::string* text) const {
  const std::int32_t dtype = rkv_test::query_dtype(config_);
  const std::size_t heads = out.size();
  const bool all = heads * out[0].size() <= 96;
  for (std::size_t h = 0; h < heads; h += all ? 1 : std::max<std::size_t>(1, heads - 1)) {
    double rounding = 0;
    std::string values;
    for (double x : out[h]) {
      const double unit = half_unit(dtype, std::fabs(x) + kOutput);
      rounding = std::max(rounding, unit / std::max(1.0, std::fabs(x)));
      values += " " + real_text(x, 7);
    }
    *text += "= out " + std::to_string(row) + " " + std::to_string(h) + " " +
             real_text(kOutput + rounding, 6) + values + "\n";
  }
  std::string values;
  for (double x : lse) values += " " + real_text(x, 8);
  *text += "= lse " + std::to_string(row) + " " + real_text(kOutput) + values + "\n";
}

void Case::write_outputs(int index, const Batch& rows, const std::vector<Lists>& selections,
                         std::string* text) {
  const auto group = config_.q_heads / config_.kv_heads;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<double>> out;
    std::vector<double> lse;
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      if (rows[r].first == -1) {
        for (int g = 0; g < group; ++g) {
          out.emplace_back(static_cast<std::size_t>(value_dim()), 0.0);
          lse.push_back(-std::numeric_limits<double>::infinity());
        }
        continue;
      }
      Layer& l = layer(rows[r].first, index);
      const rkv_ref::Rows q = row(rows[r].first, index, kQ, rows[r].second);
      const auto& list = selections[r][static_cast<std::size_t>(h)];
      for (const auto& head : l.reference.attend(h, q.row(0), list)) {
        out.push_back(head.out);
        lse.push_back(head.lse);
        if (head.nonfinite) l.nonfinite = l.nonfinite_known = true;
      }
    }
    write_output(r, out, lse, text);
  }
}

void Case::select(int index, const Batch& rows) {
  rows_line("select", index, rows);
  selected_.clear();
  for (const RowId& id : rows) selected_.push_back(append_and_select(index, id));
  write_selection(selected_);
}

void Case::attend(int index, const Batch& rows) {
  rows_line("attend", index, rows);
  write_outputs(index, rows, selected_, &text_);
}

void Case::decode(int index, const Batch& rows) {
  rows_line("decode", index, rows);
  std::vector<Lists> selections;
  for (const RowId& id : rows) selections.push_back(append_and_select(index, id));
  write_selection(selections);
  write_outputs(index, rows, selections, &text_);
}

void Case::rewind(int seq, std::int64_t position) {
  line("rewind " + std::to_string(seq) + " " + std::to_string(position));
  for (auto& [index, l] : sequences_.at(seq).layers) {
    if (l.ready && l.reference.length() > position) l.reference.rewind(position);
  }
}

void Case::close(int seq) {
  line("close " + std::to_string(seq));
  sequences_.erase(seq);
}

void Case::fails(const std::string& action, const std::string& status, const std::string& word) {
  line(action + " ! " + status + " " + word);
}

void Case::bad_config(const std::string& fields, const std::string& status,
                      const std::string& word) {
  line("config " + fields);
  fails("memory", status, word);
  fails("create", status, word);
  std::istringstream in(fields);
  std::string restored = "config";
  for (std::string one; in >> one;) {
    restored += " " + field_text(config_, one.substr(0, one.find('=')));
  }
  line(restored);
}

void Book::add(const std::string& name, const std::function<void(Case&)>& make) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // seeds hang on the name alone
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  for (std::uint64_t attempt = 0; attempt < 200; ++attempt) {
    Case one(name, 1 + (hash + 16 * attempt) % (kSeeds - 64));
    try {
      make(one);
    } catch (const Tie&) {
      continue;
    }
    text_ += "\n" + one.text();
    ++cases_;
    return;
  }
  throw std::runtime_error(name + ": no seed leaves every cut clear");
}

}  // namespace rkv_golden
