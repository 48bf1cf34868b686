// The cut of a top-k selection, against a sort.
#include "core/cpu/topk.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace {

using rkv::cpu::Cut;
using rkv::cpu::find_cut;
using rkv::cpu::ordered_key;

void expect_cut(const std::vector<uint32_t>& keys, int64_t k) {
  std::vector<uint32_t> sorted = keys;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const uint32_t key = sorted[k - 1];
  const int64_t above =
      std::lower_bound(sorted.begin(), sorted.end(), key, std::greater<>()) - sorted.begin();
  const Cut cut = find_cut(keys.data(), static_cast<int64_t>(keys.size()), k);
  ASSERT_EQ(cut.key, key) << "n " << keys.size() << " k " << k;
  ASSERT_EQ(cut.above, above) << "n " << keys.size() << " k " << k;
}

void expect_cuts(const std::vector<uint32_t>& keys) {
  const auto n = static_cast<int64_t>(keys.size());
  for (const int64_t k : {int64_t{1}, int64_t{2}, n / 10, n / 3, n / 2, n - 1, n}) {
    if (k < 1 || k > n) continue;
    ASSERT_NO_FATAL_FAILURE(expect_cut(keys, k));
  }
}

std::vector<uint32_t> random_keys(std::mt19937& rng, int64_t n, uint32_t base, uint32_t span) {
  std::vector<uint32_t> keys(n);
  for (uint32_t& key : keys) key = base + (span == 0 ? 0 : rng() % span);
  return keys;
}

TEST(OrderedKey, IsMonotone) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending = {-inf,   -3e38F, -1.0F, -1e-40F, 0.0F,
                                        1e-40F, 1.0F,   3e38F, inf};
  for (size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(ordered_key(ascending[i - 1]), ordered_key(ascending[i]));
  }
  EXPECT_EQ(ordered_key(-0.0F), ordered_key(0.0F));
  EXPECT_EQ(ordered_key(-inf), 0x007FFFFFU);
  EXPECT_EQ(ordered_key(inf), 0xFF800000U);
}

TEST(FindCut, EverySmallSize) {
  std::mt19937 rng(1);
  for (int64_t n = 1; n <= 130; ++n) {
    for (const uint32_t span : {0U, 1U, 2U, 7U, 1000U, 0xFFFFFFFFU}) {
      const std::vector<uint32_t> keys = random_keys(rng, n, 5, span);
      for (int64_t k = 1; k <= n; ++k) ASSERT_NO_FATAL_FAILURE(expect_cut(keys, k));
    }
  }
}

TEST(FindCut, Probabilities) {
  std::mt19937 rng(2);
  std::normal_distribution<float> normal;
  for (const int64_t n : {400, 433, 1000, 2158, 5000, 8192, 8193, 20000, 100000}) {
    std::vector<uint32_t> keys(n);
    for (uint32_t& key : keys) key = ordered_key(std::exp(3 * normal(rng)));
    ASSERT_NO_FATAL_FAILURE(expect_cuts(keys));
  }
}

TEST(FindCut, SharedBitsAndPlateaus) {
  std::mt19937 rng(3);
  for (const int64_t n : {100, 500, 5000, 9000, 70000}) {
    for (const uint32_t base : {0U, 0x80000000U, 0xBF800000U, 0xFFFFF000U}) {
      for (const uint32_t span : {0U, 1U, 2U, 16U, 4096U}) {
        ASSERT_NO_FATAL_FAILURE(expect_cuts(random_keys(rng, n, base, span)));
      }
    }
  }
}

TEST(FindCut, OutliersHideACluster) {
  std::mt19937 rng(4);
  for (const int64_t n : {64, 432, 3000, 40000}) {
    std::vector<uint32_t> keys = random_keys(rng, n, 0x3F800000U, 9);
    keys[0] = 0;
    keys[n / 2] = 0xFFFFFFFFU;
    keys[n - 1] = 1;
    ASSERT_NO_FATAL_FAILURE(expect_cuts(keys));
  }
}

TEST(FindCut, Extremes) {
  std::vector<uint32_t> keys(10000, 0xFFFFFFFFU);
  ASSERT_NO_FATAL_FAILURE(expect_cuts(keys));
  std::fill(keys.begin(), keys.end(), 0U);
  ASSERT_NO_FATAL_FAILURE(expect_cuts(keys));
  keys[77] = 0xFFFFFFFFU;
  ASSERT_NO_FATAL_FAILURE(expect_cuts(keys));
}

TEST(FindCut, SixteenMillion) {
  std::mt19937 rng(5);
  std::vector<uint32_t> keys = random_keys(rng, 1 << 24, 0, 0xFFFFFFFFU);
  std::vector<uint32_t> sorted = keys;
  const int64_t k = 12345678;
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const uint32_t key = sorted[k - 1];
  const Cut cut = find_cut(keys.data(), static_cast<int64_t>(keys.size()), k);
  EXPECT_EQ(cut.key, key);
  EXPECT_EQ(cut.above,
            std::count_if(keys.begin(), keys.end(), [&](uint32_t x) { return x > key; }));
}

}  // namespace
