// Interleaved samples: every side is measured once per round, so that a change of the machine's speed
// meets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rkv_bench {

double seconds_now();

struct Series {
  std::vector<double> seconds;
  double median() const;
  double quantile(double q) const;
};

struct Side {
  std::string name;
  std::function<void(int round)> run;     // timed
  std::function<void()> before;           // not timed; null = nothing
  double settle_seconds = 0;              // wait after it: a peer's threads may spin on for a while
  Series series;
};

// `rounds` samples of every side; the side that starts changes from round to round. One round more is
// run first and thrown away.
void interleave(std::vector<Side>& sides, int rounds);

// a's median over b's.
double ratio(const Side& a, const Side& b);

}  // namespace rkv_bench
