// What the figures were measured on.
#pragma once

#include <string>

namespace rkv_bench {

// The value of the first line "name : value" of /proc/cpuinfo; empty where there is none.
std::string cpuinfo(const std::string& name);
bool cpu_has(const std::string& flag);
double load_average();  // of the last minute

}  // namespace rkv_bench
