// The table: each row a set of ratios with its floors and goals; beside it all medians as details.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rkv_bench {

enum class Better { kHigher, kLower };

struct Row {
  std::string id;  // of performance table: "1" .. "11", "peers"
  std::string what;
  std::string unit;  // "x", "%" or ""
  Better better = Better::kHigher;
  std::vector<std::string> points;  // what the values belong to, for instance t = 256; may be one
  std::vector<double> values, floors, goals;
  double stream = 0;    // bandwidth of the same run, bytes per second; 0 = not measured with it
  std::string skipped;  // why there is no value
};

// One figure that is not judged.
struct Detail {
  std::string what;
  double value = 0;
  std::string unit;
};

struct Report {
  std::vector<std::pair<std::string, std::string>> machine;
  std::vector<Row> rows;
  std::vector<Detail> details;

  void detail(std::string what, double value, std::string unit) {
    details.push_back({std::move(what), value, std::move(unit)});
  }
};

enum class Verdict { kGoal, kFloor, kBelowFloor, kSkipped };
Verdict verdict(const Row& row);
std::string verdict_text(const Row& row);

void print_text(const Report& report);
bool write_json(const Report& report, const std::string& path);
bool write_markdown(const Report& report, const std::string& path);
bool any_below_floor(const Report& report);

}  // namespace rkv_bench
