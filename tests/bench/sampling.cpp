#include "sampling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace rkv_bench {

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double Series::quantile(double q) const {
  if (seconds.empty()) return std::nan("");
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(low);
  return sorted[low] * (1 - part) + sorted[high] * part;
}

double Series::median() const { return quantile(0.5); }

void interleave(std::vector<Side>& sides, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      Side& side = sides[(i + static_cast<size_t>(round + 1)) % sides.size()];
      if (side.before) side.before();
      const double start = seconds_now();
      side.run(round + 1);
      const double taken = seconds_now() - start;
      if (round >= 0) side.series.seconds.push_back(taken);
      if (side.settle_seconds > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double>(side.settle_seconds));
      }
    }
  }
}

double ratio(const Side& a, const Side& b) { return a.series.median() / b.series.median(); }

}  // namespace rkv_bench
