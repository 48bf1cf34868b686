// What the figures were measured on.
#pragma once

#include <string>

namespace rkv_bench {

// The value of the first line "name : value" of /proc/cpuinfo; empty where there is none.
std::string cpuinfo(const std::string& name);
bool cpu_has(const std::string& flag);
double load_average();  // of the last minute
// Seconds that the host of this virtual machine has kept its cores from work so far, all together.
double stolen_seconds();

}  // namespace rkv_bench
