#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace rkv_bench {
namespace {

bool holds(const Row& row, double value, double limit) {
  return row.better == Better::kHigher ? value >= limit : value <= limit;
}

bool all_hold(const Row& row, const std::vector<double>& limits) {
  for (size_t i = 0; i < row.values.size(); ++i) {
    if (!holds(row, row.values[i], limits[i])) return false;  // NaN does not hold
  }
  return true;
}

std::string number(double value) {
  char text[32];
  const double size = std::fabs(value);
  std::snprintf(text, sizeof text, size >= 99.95 ? "%.0f" : size >= 9.995 ? "%.1f" : "%.2f", value);
  return text;
}

// "142 / 75.1 / 40.2x"; equal limits are said once.
std::string joined(const std::vector<double>& values, const std::string& unit, bool limits) {
  std::string text;
  const bool once =
      limits && std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  for (size_t i = 0; i < (once ? 1 : values.size()); ++i) {
    if (i > 0) text += " / ";
    text += number(values[i]);
  }
  return text + unit;
}

std::string title(const Row& row) {
  std::string text = row.what;
  for (size_t i = 0; i < row.points.size(); ++i) text += (i == 0 ? ", " : " / ") + row.points[i];
  return text;
}

std::string limit_text(const Row& row, const std::vector<double>& limits) {
  if (!row.skipped.empty()) return "";
  return (row.better == Better::kHigher ? ">= " : "<= ") + joined(limits, row.unit, true);
}

std::string measured_text(const Row& row) {
  return row.skipped.empty() ? joined(row.values, row.unit, false) : row.skipped;
}

std::string stream_text(const Row& row) {
  return row.stream > 0 ? number(row.stream / 1e9) + " GB/s" : "";
}

class JsonFile {
 public:
  explicit JsonFile(const std::string& path) : file_(std::fopen(path.c_str(), "w")) {}
  ~JsonFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  bool open() const { return file_ != nullptr; }
  void raw(const char* text) { std::fputs(text, file_); }
  void string(const std::string& text) {
    std::fputc('"', file_);
    for (const char c : text) {
      if (c == '"' || c == '\\') std::fputc('\\', file_);
      if (static_cast<unsigned char>(c) >= 0x20) std::fputc(c, file_);
    }
    std::fputc('"', file_);
  }
  void number(double value) {
    if (std::isfinite(value)) {
      std::fprintf(file_, "%.9g", value);
    } else {
      raw("null");
    }
  }
  void key(const char* name) {
    string(name);
    raw(": ");
  }
  void numbers(const char* name, const std::vector<double>& values) {
    key(name);
    raw("[");
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) raw(", ");
      number(values[i]);
    }
    raw("], ");
  }

 private:
  std::FILE* file_;
};

void write_row(JsonFile& json, const Row& row) {
  json.raw("    {");
  json.key("row");
  json.string(row.id);
  json.raw(", ");
  json.key("what");
  json.string(row.what);
  json.raw(", ");
  json.key("unit");
  json.string(row.unit);
  json.raw(", ");
  json.key("better");
  json.string(row.better == Better::kHigher ? "higher" : "lower");
  json.raw(", ");
  json.key("points");
  json.raw("[");
  for (size_t i = 0; i < row.points.size(); ++i) {
    if (i > 0) json.raw(", ");
    json.string(row.points[i]);
  }
  json.raw("], ");
  json.numbers("values", row.values);
  json.numbers("floors", row.floors);
  json.numbers("goals", row.goals);
  json.key("stream_bytes_per_second");
  json.number(row.stream);
  json.raw(", ");
  json.key("verdict");
  json.string(verdict_text(row));
  json.raw("}");
}

}  // namespace

Verdict verdict(const Row& row) {
  if (!row.skipped.empty()) return Verdict::kSkipped;
  if (!all_hold(row, row.floors)) return Verdict::kBelowFloor;
  return all_hold(row, row.goals) ? Verdict::kGoal : Verdict::kFloor;
}

std::string verdict_text(const Row& row) {
  switch (verdict(row)) {
    case Verdict::kGoal: return "goal";
    case Verdict::kFloor: return "floor";
    case Verdict::kSkipped: return "-";
    default: break;
  }
  std::string text = "below floor";
  if (row.values.size() < 2) return text;
  for (size_t i = 0; i < row.values.size(); ++i) {
    if (!holds(row, row.values[i], row.floors[i])) {
      text += (text == "below floor" ? " (" : ", ") + row.points[i];
    }
  }
  return text + ")";
}

void print_text(const Report& report) {
  for (const auto& [name, value] : report.machine) {
    std::printf("%-10s %s\n", name.c_str(), value.c_str());
  }
  std::printf("\nMedians in detail\n");
  for (const Detail& detail : report.details) {
    std::printf("  %-72s %10s %s\n", detail.what.c_str(), number(detail.value).c_str(),
                detail.unit.c_str());
  }
  std::printf("\n%-5s %-62s %-30s %-22s %-22s %-11s %s\n", "#", "", "measured", "floor", "goal",
              "stream", "verdict");
  for (const Row& row : report.rows) {
    std::printf("%-5s %-62s %-30s %-22s %-22s %-11s %s\n", row.id.c_str(), title(row).c_str(),
                measured_text(row).c_str(), limit_text(row, row.floors).c_str(),
                limit_text(row, row.goals).c_str(), stream_text(row).c_str(),
                verdict_text(row).c_str());
  }
}

bool write_json(const Report& report, const std::string& path) {
  JsonFile json(path);
  if (!json.open()) return false;
  json.raw("{\n  ");
  json.key("machine");
  json.raw("{");
  for (size_t i = 0; i < report.machine.size(); ++i) {
    json.raw(i > 0 ? ",\n    " : "\n    ");
    json.key(report.machine[i].first.c_str());
    json.string(report.machine[i].second);
  }
  json.raw("\n  },\n  ");
  json.key("rows");
  json.raw("[\n");
  for (size_t i = 0; i < report.rows.size(); ++i) {
    if (i > 0) json.raw(",\n");
    write_row(json, report.rows[i]);
  }
  json.raw("\n  ],\n  ");
  json.key("details");
  json.raw("[\n");
  for (size_t i = 0; i < report.details.size(); ++i) {
    json.raw(i > 0 ? ",\n    {" : "    {");
    json.key("what");
    json.string(report.details[i].what);
    json.raw(", ");
    json.key("value");
    json.number(report.details[i].value);
    json.raw(", ");
    json.key("unit");
    json.string(report.details[i].unit);
    json.raw("}");
  }
  json.raw("\n  ]\n}\n");
  return true;
}

bool write_markdown(const Report& report, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  for (const auto& [name, value] : report.machine) {
    std::fprintf(file, "- %s: %s\n", name.c_str(), value.c_str());
  }
  std::fprintf(file,
               "\n| # | what | measured | floor | goal | stream | verdict |\n"
               "|---|---|---|---|---|---|---|\n");
  for (const Row& row : report.rows) {
    std::fprintf(file, "| %s | %s | %s | %s | %s | %s | %s |\n", row.id.c_str(), title(row).c_str(),
                 measured_text(row).c_str(), limit_text(row, row.floors).c_str(),
                 limit_text(row, row.goals).c_str(), stream_text(row).c_str(),
                 verdict_text(row).c_str());
  }
  std::fclose(file);
  return true;
}

bool any_below_floor(const Report& report) {
  return std::any_of(report.rows.begin(), report.rows.end(),
                     [](const Row& row) { return verdict(row) == Verdict::kBelowFloor; });
}

}  // namespace rkv_bench
