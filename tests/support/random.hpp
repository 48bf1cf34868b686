// Reproducible random data, the same on every machine and standard library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "dtypes.hpp"

namespace rkv_test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Inclusive on both ends.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool coin() { return (next() >> 40 & 1) != 0; }
  double normal() {
    const double u = 1.0 - uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * uniform());
  }
  template <typename T, std::size_t N>
  T pick(const T (&choices)[N]) {
    return choices[integer(0, static_cast<std::int64_t>(N) - 1)];
  }

 private:
  std::uint64_t state_;
};

// `n` values of N(0, sigma), rounded to the storage type.
inline std::vector<double> normal_values(Random* random, std::int64_t n, std::int32_t dtype,
                                         double sigma = 1) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (double& x : values) x = rounded(dtype, static_cast<float>(sigma * random->normal()));
  return values;
}

// Iterations of a random test: RKV_TEST_SCALE (default 1) multiplies them, at least one is left.
inline int scaled(int iterations) {
  const char* text = std::getenv("RKV_TEST_SCALE");
  const double scale = text != nullptr ? std::atof(text) : 1.0;
  const int n = static_cast<int>(iterations * scale);
  return n < 1 ? 1 : n;
}

}  // namespace rkv_test
