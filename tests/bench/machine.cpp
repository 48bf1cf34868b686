#include "machine.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace rkv_bench {

std::string cpuinfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, name.size(), name) != 0) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;
    return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

bool cpu_has(const std::string& flag) {
  return (" " + cpuinfo("flags") + " ").find(" " + flag + " ") != std::string::npos;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

double stolen_seconds() {
  std::ifstream stat("/proc/stat");
  std::string label;
  double ticks = 0;  // user, nice, system, idle, iowait, irq, softirq, steal
  stat >> label;
  for (int i = 0; i < 8; ++i) stat >> ticks;
  return stat ? ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace rkv_bench
