// The benchmark of librkv: rows 1 to 11 and the peers, each a ratio inside this process.
// Exit status 0, 1 where a row is below its floor, 2 for a wrong argument, 3 where a call failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "bench.hpp"
#include "core/cpu/target.hpp"
#include "ggml_peer.hpp"
#include "machine.hpp"
#include "openblas.hpp"
#include "sampling.hpp"

namespace {

using namespace rkv_bench;

struct Options {
  Run run;
  std::string json, markdown;
  std::string only;  // one part; empty = all
  int64_t evict_megabytes = 0;
};

constexpr char kUsage[] =
    "usage: rkv_bench [--json FILE] [--markdown FILE] [--quick] [--no-peers] [--threads N]\n"
    "                 [--rounds N] [--evict MB] [--onnxruntime FILE] [--openblas FILE]\n"
    "                 [--only decode|stage1|pieces|threads|memory|peers|topk]\n";

[[noreturn]] void usage(const char* what) {
  std::fprintf(stderr, "rkv_bench: %s\n%s", what, kUsage);
  std::exit(2);
}

Options read_options(int argc, char** argv) {
  Options options;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  options.run.threads = cores < 2 ? 1 : 2;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) usage((name + " needs a value").c_str());
      return std::string(argv[++i]);
    };
    if (name == "--json")
      options.json = value();
    else if (name == "--markdown")
      options.markdown = value();
    else if (name == "--quick")
      options.run.quick = true;
    else if (name == "--no-peers")
      options.run.peers = false;
    else if (name == "--threads")
      options.run.threads = std::atoi(value().c_str());
    else if (name == "--rounds")
      options.run.rounds = std::atoi(value().c_str());
    else if (name == "--evict")
      options.evict_megabytes = std::atoi(value().c_str());
    else if (name == "--openblas")
      options.run.openblas = value();
    else if (name == "--only")
      options.only = value();
    else if (name == "--onnxruntime")
      options.run.onnxruntime_results = value();
    else
      usage(("unknown argument " + name).c_str());
  }
  if (options.run.threads < 1) usage("--threads must be at least 1");
  if (options.run.rounds < 15) usage("--rounds must be at least 15");
  if (options.evict_megabytes == 0) options.evict_megabytes = int64_t{64} * options.run.threads;
  return options;
}

void describe_machine(const Options& options, Report& report) {
  const Run& run = options.run;
  report.machine.emplace_back("CPU", cpuinfo("model name") + ", " +
                                         std::to_string(std::thread::hardware_concurrency()) +
                                         " cores, level 3 cache " + cpuinfo("cache size"));
  report.machine.emplace_back("threads", std::to_string(run.threads) + " on every side");
  report.machine.emplace_back("SIMD", rkv::cpu::resolve_target().name);
  report.machine.emplace_back(
      "cold", std::to_string(options.evict_megabytes) + " MB are read before each sample");
  report.machine.emplace_back(
      "samples", std::to_string(run.rounds) + " or more of each side, interleaved, medians");
  report.machine.emplace_back("OpenBLAS", OpenBlas(run.openblas, run.threads).kernel());
  report.machine.emplace_back("ggml", GgmlAttention::built() ? RKV_BENCH_GGML_FLAGS : "not built");
}

}  // namespace

int main(int argc, char** argv) {
  Options options = read_options(argc, argv);
  Report report;
  Run& run = options.run;
  run.report = &report;
  Streamer streamer(run.threads, options.evict_megabytes << 20);
  run.streamer = &streamer;
  describe_machine(options, report);
  const double load_before = load_average();
  const double stolen_before = stolen_seconds();
  const double start = seconds_now();
  const auto progress = [&](const char* part) {
    std::fprintf(stderr, "%6.1f s  %s\n", seconds_now() - start, part);
  };

  const auto wanted = [&](const char* part) {
    if (!options.only.empty() && options.only != part) return false;
    progress(part);
    return true;
  };
  for (const int32_t dtype : {RKV_DTYPE_BF16, RKV_DTYPE_F16}) {
    progress(dtype_name(dtype));
    // Of F16 a quick run needs what the peers read.
    Prompt prompt(run.quick && dtype == RKV_DTYPE_F16 ? 32768 : 131072, dtype);
    if (!run.quick || dtype == RKV_DTYPE_BF16) {
      if (wanted("decode")) run_decode_rows(run, prompt);
      if (wanted("stage1")) run_stage1_rows(run, prompt);
    }
    if (dtype == RKV_DTYPE_BF16) {
      if (wanted("pieces")) run_piece_rows(run, prompt);
      if (wanted("threads")) run_thread_rows(run, prompt);
      if (wanted("memory")) run_memory_rows(run, prompt);
    } else if (wanted("peers")) {
      run_peer_rows(run, prompt);
    }
  }
  if (wanted("topk")) run_topk_rows(run);
  progress("done");

  const Disturbance disturbed = disturbance();
  char load[240];
  std::snprintf(
      load, sizeof load,
      "%.1f before, %.1f after; %lld of %lld samples disturbed, %lld of %lld medians over "
      "disturbed ones; the host took %.1f s of core time of %.1f",
      load_before, load_average(), static_cast<long long>(disturbed.disturbed),
      static_cast<long long>(disturbed.samples), static_cast<long long>(disturbed.sides_disturbed),
      static_cast<long long>(disturbed.sides), stolen_seconds() - stolen_before,
      std::thread::hardware_concurrency() * (seconds_now() - start));
  report.machine.emplace_back("load", load);
  print_text(report);
  if (!options.json.empty() && !write_json(report, options.json))
    usage("cannot write the JSON file");
  if (!options.markdown.empty() && !write_markdown(report, options.markdown)) {
    usage("cannot write the markdown file");
  }
  return any_below_floor(report) ? 1 : 0;
}
