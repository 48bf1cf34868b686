// Dense decode beside the attention of other engines: the same tokens, the same bytes, the same
// threads. onnxruntime runs in a process of its own (ort_gqa.py), with librkv beside it there.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "bench.hpp"
#include "ggml_peer.hpp"
#include "sampling.hpp"
#include "session.hpp"

namespace rkv_bench {
namespace {

// Norm of the difference of two outputs over the norm of ours. ggml adds up V in F16, which is off by
// several percent over 128K tokens; another attention would be off by more than 100.
constexpr double kSameOutput = .2;

double difference(const Session& ours, const float* theirs) {
  double apart = 0, whole = 0;
  for (int64_t i = 0; i < int64_t{kQueryHeads} * kHeadDim; ++i) {
    const double a = to_float(ours.output(), i, ours.setup().dtype);
    apart += (a - theirs[i]) * (a - theirs[i]);
    whole += a * a;
  }
  return std::sqrt(apart / whole);
}

// Makes the token that a step appends the prompt's own row, so that both sides attend to the same.
void last_row_as_step(Prompt& prompt, int64_t row) {
  const int64_t bytes = int64_t{kKvHeads} * kHeadDim * element_bytes(prompt.dtype);
  for (int64_t i = 0; i < kQueries; ++i) {
    std::memcpy(prompt.step_k.data() + i * bytes, prompt.k.data() + row * bytes,
                static_cast<size_t>(bytes));
    std::memcpy(prompt.step_v.data() + i * bytes, prompt.v.data() + row * bytes,
                static_cast<size_t>(bytes));
  }
}

void run_ggml(const Run& run, Prompt& prompt) {
  Row row{"peers", "dense decode over ggml flash attention, f16",
          "x",     Better::kHigher,
          {},      {},
          {},      {},
          0,       ""};
  if (!run.peers || !GgmlAttention::built()) {
    row.skipped = "without ggml";
    run.report->rows.push_back(row);
    return;
  }
  Streamer& streamer = *run.streamer;
  const std::function<void()> cold = [&] { streamer.evict(); };
  for (const int64_t length : {int64_t{8192}, int64_t{32768}, int64_t{131072}}) {
    if (length > prompt.tokens || (run.quick && length > 32768)) continue;
    last_row_as_step(prompt, length - 2);
    Session ours({prompt.dtype, length, 0, run.threads});
    ours.open();
    ours.prefill(prompt);
    ours.fill(prompt);
    GgmlAttention ggml(prompt, ours.live(), run.threads);
    std::vector<Side> sides;
    sides.push_back({"dense decode", [&](int i) { ours.step(i); }, cold, false, {}});
    sides.push_back({"ggml flash attention", [&](int i) { ggml.run(i); }, cold, true, {}});
    sides.push_back(
        {"read stream",
         [&](int) { streamer.read(ours.store().kv, kv_bytes(ours.live(), prompt.dtype)); },
         cold,
         false,
         {}});
    interleave(sides, run.rounds);
    ours.step(0);
    ggml.run(0);
    const double apart = difference(ours, ggml.output());
    const std::string name = "peers, " + length_name(length) + " f16, ";
    for (const Side& side : sides) {
      run.report->detail(name + side.name, side.series.median() * 1e6, "us");
    }
    run.report->detail(name + "ggml's output differs by", 100 * apart, "%");
    row.points.push_back((row.points.empty() ? "S = " : "") + length_name(length));
    // An engine that computes something else is no peer.
    row.values.push_back(apart <= kSameOutput ? ratio(sides[1], sides[0]) : std::nan(""));
    row.floors.push_back(1.0);
    row.goals.push_back(1.0);
    row.stream =
        static_cast<double>(kv_bytes(ours.live(), prompt.dtype)) / sides[2].series.median();
  }
  run.report->rows.push_back(row);
}

// Lines "dtype length ours_seconds theirs_seconds stream_bytes_per_second difference".
void read_onnxruntime(const Run& run) {
  std::ifstream file(run.onnxruntime_results);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string dtype;
    int64_t length = 0;
    double ours = 0, theirs = 0, stream = 0, apart = 0;
    if (!(words >> dtype >> length >> ours >> theirs >> stream >> apart)) continue;
    if (rows.empty() || rows.back().what.find(dtype) == std::string::npos) {
      rows.push_back({"peers",
                      "dense decode over onnxruntime GroupQueryAttention, " + dtype,
                      "x",
                      Better::kHigher,
                      {},
                      {},
                      {},
                      {},
                      0,
                      ""});
    }
    Row& row = rows.back();
    row.points.push_back((row.points.empty() ? "S = " : "") + length_name(length));
    row.values.push_back(apart <= kSameOutput ? theirs / ours : std::nan(""));
    row.floors.push_back(1.0);
    row.goals.push_back(1.0);
    row.stream = stream;
    const std::string name = "peers, " + length_name(length) + " " + dtype + ", ";
    run.report->detail(name + "dense decode beside onnxruntime", ours * 1e6, "us");
    run.report->detail(name + "onnxruntime GroupQueryAttention", theirs * 1e6, "us");
    run.report->detail(name + "onnxruntime's output differs by", 100 * apart, "%");
  }
  if (rows.empty()) {
    rows.push_back({"peers",
                    "dense decode over onnxruntime GroupQueryAttention",
                    "x",
                    Better::kHigher,
                    {},
                    {},
                    {},
                    {},
                    0,
                    "without onnxruntime"});
  }
  for (Row& row : rows) run.report->rows.push_back(std::move(row));
}

}  // namespace

void run_peer_rows(const Run& run, Prompt& prompt) {
  run_ggml(run, prompt);
  read_onnxruntime(run);
}

}  // namespace rkv_bench
