// Interleaved samples: every side is measured once per round, so that a change of the machine's speed
// meets all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rkv_bench {

double seconds_now();

struct Series {
  std::vector<double> seconds;
  double median() const;
};

// How often the system took a core away in the middle of a sample, over all samples of this process.
// Such samples are left out of a side's medians as long as enough others remain.
struct Disturbance {
  int64_t samples = 0, disturbed = 0;
  int64_t sides = 0, sides_disturbed = 0;  // with too few undisturbed samples
};
Disturbance disturbance();

// The calling thread is at work between samples alone: that it makes room for one is no disturbance.
void leave_out_this_thread();

struct Side {
  std::string name;
  std::function<void(int round)> run;  // timed
  std::function<void()> before;        // not timed; null = nothing
  bool lingers = false;  // a peer's threads look for more work for a while: see interleave
  Series series;
};

// `rounds` undisturbed samples of every side, or twice as many samples of any kind; the side that starts
// changes from round to round. One round more is run first and thrown away. After a side that lingers it
// waits until no thread of this process runs.
void interleave(std::vector<Side>& sides, int rounds);

// a's median over b's.
double ratio(const Side& a, const Side& b);

}  // namespace rkv_bench
