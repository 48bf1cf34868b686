// The generator of README.md, and the elements that a case sets itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "reference/rows.hpp"

namespace rkv_golden {

enum Tensor { kQ, kK, kV };

inline double generated(std::uint64_t seed, std::uint64_t layer, std::uint64_t tensor,
                        std::uint64_t index) {
  std::uint64_t z = (((seed * 256 + layer) * 4 + tensor) << 40) + index;
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return (static_cast<double>(z >> 56) - 128) / 64;
}

// A seed is shifted by 50 bits: larger ones repeat.
inline constexpr std::uint64_t kSeeds = 16384;

struct Values {
  std::map<std::array<std::int64_t, 4>, double> set;  // tensor, position, head, channel

  // Rows [first, end) of a tensor, Rows{end - first, heads * channels}.
  rkv_ref::Rows rows(std::uint64_t seed, int layer, Tensor tensor, std::int64_t first,
                     std::int64_t end, std::int64_t heads, std::int64_t channels) const {
    rkv_ref::Rows out(end - first, heads * channels);
    for (std::int64_t p = first; p < end; ++p) {
      for (std::int64_t i = 0; i < out.width; ++i) {
        const auto own = set.find({tensor, p, i / channels, i % channels});
        out.row(p - first)[i] = own != set.end()
                                    ? own->second
                                    : generated(seed, static_cast<std::uint64_t>(layer), tensor,
                                                static_cast<std::uint64_t>(p * out.width + i));
      }
    }
    return out;
  }
};

}  // namespace rkv_golden
