// The golden values of section 1, D = 128.
#pragma once

#include <cstdint>

namespace rkv_test {

struct GoldenPlan {
  std::int64_t length, budget, max_new;  // L, t, max_new
  std::int64_t cap, prompt_budget, page_size, num_channels, top_k;
};

inline constexpr GoldenPlan kGoldenPlans[] = {
    {131072, 256, 256, 1296, 1040, 3, 76, 128},   {65536, 256, 256, 1509, 1253, 3, 65, 128},
    {32768, 256, 256, 1618, 1362, 3, 61, 128},    {16384, 256, 256, 1595, 1339, 3, 62, 128},
    {131072, 1024, 1024, 6472, 5448, 3, 61, 512}, {8192, 512, 128, 2418, 2290, 3, 81, 256},
    {4128, 256, 32, 1212, 1180, 3, 81, 128},      {1024, 512, 64, 855, 791, 1, 77, 256},
    {512, 512, 64, 512, 448, 1, 128, 256},
};

struct GoldenSplit {
  double ratio, split;
};

inline constexpr GoldenSplit kGoldenSplits[] = {{1, .2},    {4, .32},     {16, .44},  {64, .56},
                                                {256, .68}, {400, .7186}, {1024, .8}, {4096, .8}};

}  // namespace rkv_test
