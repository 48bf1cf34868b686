#include "sampling.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

namespace rkv_bench {

namespace {

Disturbance total;

// Threads whose cores may be taken away: see leave_out.
std::mutex left_out_mutex;
std::set<std::string> left_out;

// Involuntary context switches so far: of the calling thread, and of the others that count.
int64_t own_cores_taken() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

int64_t other_cores_taken() {
  const std::string self = std::to_string(gettid());
  int64_t sum = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string id = thread.path().filename();
    const std::lock_guard lock(left_out_mutex);
    if (id == self || left_out.count(id) != 0) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;) {
      int64_t count = 0;
      if (word == "nonvoluntary_ctxt_switches:" && status >> count) sum += count;
    }
  }
  return sum;
}

double processor_seconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Until the process used next to nothing of a look's time, or 2 s have passed. How long a peer's threads
// spin is its build's choice: OpenBLAS's do for 2^26 to 2^28 ticks (30 to 120 ms), and would hold one
// core all through the next side's sample.
void wait_until_idle() {
  constexpr std::chrono::milliseconds kLook{10};
  for (int look = 0; look < 200; ++look) {
    const double before = processor_seconds();
    std::this_thread::sleep_for(kLook);
    if (processor_seconds() - before < 0.001) return;
  }
}

}  // namespace

void leave_out_this_thread() {
  const std::lock_guard lock(left_out_mutex);
  left_out.insert(std::to_string(gettid()));
}

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double Series::median() const {
  if (seconds.empty()) return std::nan("");
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Disturbance disturbance() { return total; }

void interleave(std::vector<Side>& sides, int rounds) {
  std::vector<Series> disturbed(sides.size());
  const auto short_of = [&](const Side& side) {
    return side.series.seconds.size() < static_cast<size_t>(rounds);
  };
  for (int round = -1; round < 2 * rounds; ++round) {
    if (round >= rounds && std::none_of(sides.begin(), sides.end(), short_of)) break;
    for (size_t i = 0; i < sides.size(); ++i) {
      const size_t place = (i + static_cast<size_t>(round + 1)) % sides.size();
      Side& side = sides[place];
      const int64_t others_before = other_cores_taken();
      if (side.before) side.before();
      const int64_t own_before = own_cores_taken();
      const double start = seconds_now();
      side.run(round + 1);
      const double taken = seconds_now() - start;
      const int64_t own_after = own_cores_taken();
      if (round >= 0) {
        const bool clean = own_after == own_before && other_cores_taken() == others_before;
        (clean ? side.series : disturbed[place]).seconds.push_back(taken);
        ++total.samples;
        total.disturbed += clean ? 0 : 1;
      }
      if (side.lingers) wait_until_idle();
    }
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    ++total.sides;
    if (!short_of(sides[i])) continue;
    ++total.sides_disturbed;
    std::vector<double>& all = sides[i].series.seconds;
    all.insert(all.end(), disturbed[i].seconds.begin(), disturbed[i].seconds.end());
  }
}

double ratio(const Side& a, const Side& b) { return a.series.median() / b.series.median(); }

}  // namespace rkv_bench
