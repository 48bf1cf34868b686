// Writes the cases of one file: every action goes to the reference and, with what it gives, to text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/sequence.hpp"
#include "rkv/rkv.h"
#include "values.hpp"

namespace rkv_golden {

// A result lies so near a cut that rounding could decide it: the case is made again, other seeds.
struct Tie : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// (sequence, position) of a decode row; (-1, 0) is a padding row.
using RowId = std::pair<int, std::int64_t>;
using Batch = std::vector<RowId>;

class Case {
 public:
  Case(const std::string& name, std::uint64_t first_seed);

  // State. `options` without text: none.
  Case& config(const std::string& fields);
  Case& options(const std::string& fields = "");
  void set(Tensor tensor, std::int64_t position, std::int64_t head, std::int64_t channel,
           double value);
  void allow_ties() { ties_ = true; }  // equal by construction, bit for bit
  void comment(const std::string& text) { line("# " + text); }

  // Actions that succeed, with their expectations.
  void plan(std::int64_t prompt);
  void memory(const std::string& expected_fields);  // by hand: "k_bytes=..."
  void create();
  void open(int seq);
  void prefill(int seq, int layer, std::int64_t prompt, std::int64_t start, std::int64_t end);
  void prefill(int seq, int layer, std::int64_t prompt) { prefill(seq, layer, prompt, 0, prompt); }
  void kept(int seq, int layer = 0);
  void stats(int seq, int layer = 0);
  void select(int layer, const Batch& rows);
  void attend(int layer, const Batch& rows);
  void decode(int layer, const Batch& rows);
  void audit(int layer, const Batch& rows);
  void rewind(int seq, std::int64_t position);
  void close(int seq);

  // Any action that fails, as it stands in the file; nothing changes.
  void fails(const std::string& action, const std::string& status, const std::string& word);
  // `memory`, `plan` and `create` fail with this config; afterwards the fields are as before.
  void bad_config(const std::string& fields, const std::string& status, const std::string& word);

  const std::string& text() const { return text_; }
  const rkv_cache_config& config() const { return config_; }

 private:
  struct Layer {
    explicit Layer(const rkv_ref::SequenceConfig& config) : reference(config) {}
    rkv_ref::Sequence reference;
    std::set<std::int64_t> rows;  // query rows that came so far
    bool ready = false;
    bool began = false;
    std::int64_t prompt = 0, window_rows = 0;
    bool nonfinite = false;
    bool nonfinite_known = true;  // a page score alone was not finite: the flag is nobody's promise
  };
  struct Sequence {
    std::uint64_t seed = 0;
    rkv_sequence_options options;
    bool has_options = false;
    std::map<int, Layer> layers;
  };
  using Lists = std::vector<std::vector<std::int64_t>>;  // per KV head

  void line(const std::string& text) { text_ += text + "\n"; }
  void rows_line(const char* action, int layer, const Batch& rows);
  Layer& layer(int seq, int index);
  rkv_ref::Rows row(int seq, int layer, Tensor tensor, std::int64_t position) const;
  std::int64_t value_dim() const;
  std::int64_t element() const { return config_.kv_dtype == RKV_DTYPE_F32 ? 4 : 2; }
  Lists append_and_select(int layer, const RowId& id);
  void write_selection(const std::vector<Lists>& selections);
  void write_outputs(int layer, const Batch& rows, const std::vector<Lists>& selections,
                     std::string* text);
  void write_output(std::size_t row, const std::vector<std::vector<double>>& out,
                    const std::vector<double>& lse, std::string* text) const;
  void check_stage1(const rkv_ref::Stage1Result& stage, std::int64_t sinks) const;
  void check_stage2(const rkv_ref::Stage2Result& stage, const Layer& layer) const;
  void near(double a, double b, const char* what) const;

  std::string text_;
  std::uint64_t first_seed_;
  rkv_cache_config config_;
  rkv_sequence_options options_;
  bool has_options_ = false, options_written_ = false;
  bool ties_ = false;
  Values values_;
  std::map<int, Sequence> sequences_;
  std::vector<Lists> selected_;  // by the last select
};

class Book {
 public:
  // Makes the case with the first seeds that leave every cut clear.
  void add(const std::string& name, const std::function<void(Case&)>& make);
  const std::string& text() const { return text_; }
  int cases() const { return cases_; }

 private:
  std::string text_ = "rkv-golden 1\n";
  int cases_ = 0;
};

void add_plans(Book& book);
void add_stage1(Book& book);
void add_stage2(Book& book);
void add_options(Book& book);
void add_lives(Book& book);
void add_errors(Book& book);

}  // namespace rkv_golden
