// Rows 1 to 5: dense decode against plain reads, the step against dense decode and against its replica.
#include <memory>

#include "bench.hpp"
#include "replica.hpp"
#include "sampling.hpp"
#include "session.hpp"

namespace rkv_bench {
namespace {

struct Limits {
  int64_t length;
  const char* row;
  std::vector<double> floors, goals;  // step over dense, for each budget
};

const Limits kLimits[] = {
    {131072, "2", {120, 60, 32, 17}, {230, 135, 58, 35}},
    {32768, "3", {28, 14, 8, 4.8}, {48, 26, 14, 8}},
    {8192, "4", {8.5, 4.5, 2, 1.1}, {14, 8, 4, 2.5}},
};

std::vector<std::string> budget_points() {
  std::vector<std::string> points;
  for (const int64_t t : kBudgets) points.push_back((t == 256 ? "t = " : "") + std::to_string(t));
  return points;
}

void measure_length(const Run& run, Prompt& prompt, const Limits& limits) {
  Streamer& streamer = *run.streamer;
  const std::string name = length_name(limits.length) + " " + dtype_name(prompt.dtype);
  const std::function<void()> cold = [&] { streamer.evict(); };

  Session dense({prompt.dtype, limits.length, 0, run.threads});
  dense.open();
  dense.prefill(prompt);
  dense.fill(prompt);
  const int64_t dense_bytes = kv_bytes(dense.live(), prompt.dtype);
  const std::byte* dense_rows = dense.store().kv;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Replica>> replicas;
  for (const int64_t budget : kBudgets) {
    SessionSetup setup{prompt.dtype, limits.length, budget, run.threads};
    sessions.push_back(std::make_unique<Session>(setup));
    sessions.back()->open();
    sessions.back()->prefill(prompt);
    sessions.back()->fill(prompt);
    replicas.push_back(std::make_unique<Replica>(*sessions.back()));
  }

  std::vector<Side> sides;
  sides.push_back(
      {"read stream", [&](int) { streamer.read(dense_rows, dense_bytes); }, cold, false, {}});
  sides.push_back({"dense decode", [&](int i) { dense.step(i); }, cold, false, {}});
  for (int b = 0; b < kBudgetCount; ++b) {
    const std::string budget = "t = " + std::to_string(kBudgets[b]);
    Session* session = sessions[static_cast<size_t>(b)].get();
    const Replica* replica = replicas[static_cast<size_t>(b)].get();
    sides.push_back({"step, " + budget, [=](int i) { session->step(i); }, cold, false, {}});
    sides.push_back({"replica of the step, " + budget,
                     [=, &streamer](int i) { replica->read(i, streamer); },
                     cold,
                     false,
                     {}});
  }
  // A dense decode of a short prompt takes little longer than a step: more samples cost nothing.
  interleave(sides, limits.length <= 8192 ? 2 * run.rounds : run.rounds);

  const double stream = static_cast<double>(dense_bytes) / sides[0].series.median();
  for (const Side& side : sides) {
    run.report->detail(name + ", " + side.name, side.series.median() * 1e6, "us");
  }
  if (limits.length >= 32768) {
    Row row{"1",    "dense decode, share of the read stream, " + name,
            "",     Better::kHigher,
            {},     {},
            {},     {},
            stream, ""};
    row.values = {ratio(sides[0], sides[1])};
    row.floors = {.55};
    row.goals = {.85};
    run.report->rows.push_back(row);
  }
  Row speed{limits.row,
            "step over dense decode, " + name,
            "x",
            Better::kHigher,
            budget_points(),
            {},
            limits.floors,
            limits.goals,
            stream,
            ""};
  Row replica{"5",
              "step over its read-only replica, " + name,
              "x",
              Better::kLower,
              budget_points(),
              {},
              {1.8, 1.8, 1.8, 1.8},
              {1.2, 1.2, 1.2, 1.2},
              stream,
              ""};
  for (size_t b = 0; b < kBudgetCount; ++b) {
    const Side& step = sides[2 + 2 * b];
    const Side& reads = sides[3 + 2 * b];
    speed.values.push_back(ratio(sides[1], step));
    replica.values.push_back(ratio(step, reads));
    const double bytes = static_cast<double>(replicas[b]->bytes());
    run.report->detail(name + ", step t = " + std::to_string(kBudgets[b]) + " reads", bytes / 1e6,
                       "MB");
    run.report->detail(name + ", step t = " + std::to_string(kBudgets[b]) + " bandwidth",
                       bytes / step.series.median() / 1e9, "GB/s");
  }
  run.report->rows.push_back(speed);
  run.report->rows.push_back(replica);
}

}  // namespace

void run_decode_rows(const Run& run, Prompt& prompt) {
  for (const Limits& limits : kLimits) {
    if (limits.length <= prompt.tokens) measure_length(run, prompt, limits);
  }
}

// Row 9, the step; stage 1 follows below.
void run_thread_rows(const Run& run, Prompt& prompt) {
  if (run.threads < 2) {
    Row row{"9", "two threads over one", "x", Better::kHigher, {}, {}, {}, {},
            0,   "one thread alone"};
    run.report->rows.push_back(row);
    return;
  }
  Streamer& streamer = *run.streamer;
  const std::function<void()> cold = [&] { streamer.evict(); };
  const int64_t length = prompt.tokens >= 131072 ? 131072 : 32768;
  const int64_t stage1_length = 32768;
  std::vector<std::unique_ptr<Session>> steps, prompts;
  std::vector<Side> step_sides, stage1_sides;
  for (const int threads : {1, run.threads}) {
    const std::string name = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    for (const int64_t budget : kBudgets) {
      steps.push_back(
          std::make_unique<Session>(SessionSetup{prompt.dtype, length, budget, threads}));
      Session* session = steps.back().get();
      session->open();
      session->prefill(prompt);
      session->fill(prompt);
      step_sides.push_back(
          {"step, " + length_name(length) + ", t = " + std::to_string(budget) + ", " + name,
           [=](int i) { session->step(i); },
           cold,
           false,
           {}});
    }
    prompts.push_back(
        std::make_unique<Session>(SessionSetup{prompt.dtype, stage1_length, 256, threads}));
    Session* session = prompts.back().get();
    stage1_sides.push_back({"stage 1, " + length_name(stage1_length) + ", " + name,
                            [&prompt, session](int) { session->prefill(prompt); },
                            [=] {
                              session->open();
                              cold();
                            },
                            false,
                            {}});
  }
  interleave(step_sides, 4 * run.rounds);  // short ones: more samples cost nothing
  interleave(stage1_sides, run.rounds);
  for (const std::vector<Side>* sides : {&step_sides, &stage1_sides}) {
    for (const Side& side : *sides) {
      run.report->detail(side.name + ", " + dtype_name(prompt.dtype), side.series.median() * 1e6,
                         "us");
    }
  }
  const std::string threads = std::to_string(run.threads) + " threads over one, ";
  Row step{"9",
           threads + "step, " + length_name(length) + " " + dtype_name(prompt.dtype),
           "x",
           Better::kHigher,
           budget_points(),
           {},
           {1.3, 1.3, 1.3, 1.3},
           {1.9, 1.9, 1.9, 1.9},
           0,
           ""};
  for (size_t b = 0; b < kBudgetCount; ++b) {
    step.values.push_back(ratio(step_sides[b], step_sides[kBudgetCount + b]));
  }
  run.report->rows.push_back(step);
  Row stage1{
      "9",   threads + "stage 1, " + length_name(stage1_length) + " " + dtype_name(prompt.dtype),
      "x",   Better::kHigher,
      {},    {ratio(stage1_sides[0], stage1_sides[1])},
      {1.7}, {1.97},
      0,     ""};
  run.report->rows.push_back(stage1);
}

}  // namespace rkv_bench
