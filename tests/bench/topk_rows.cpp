// Row 10: the top-k selection against std::nth_element on a copy of the floats and one scan.
#include <algorithm>
#include <cmath>
#include <random>

#include "bench.hpp"
#include "pieces.hpp"
#include "sampling.hpp"

namespace rkv_bench {
namespace {

constexpr int64_t kCounts[] = {400, 700, 1000, 1500, 2500, 5000};
constexpr int kRepeats = 64;  // selections of one sample, each of another array
constexpr int64_t kSpare = 64;

// Ascending indices of the k largest; of equal ones the lower indices.
void select_by_nth_element(const float* values, int64_t n, int64_t k, float* copy,
                           int32_t* indices) {
  std::copy_n(values, n, copy);
  std::nth_element(copy, copy + (k - 1), copy + n, std::greater<float>());
  const float cut = copy[k - 1];
  int64_t equal = k - std::count_if(copy, copy + k, [=](float x) { return x > cut; });
  int64_t count = 0;
  for (int64_t i = 0; i < n && count < k; ++i) {
    if (values[i] > cut || (values[i] == cut && equal-- > 0)) {
      indices[count++] = static_cast<int32_t>(i);
    }
  }
}

}  // namespace

void run_topk_rows(const Run& run) {
  Row row{"10", "top-k over std::nth_element, an eighth chosen",
          "x",  Better::kHigher,
          {},   {},
          {},   {},
          0,    ""};
  std::mt19937 random(7);
  std::normal_distribution<float> logit(0.0F, 2.0F);
  for (const int64_t n : kCounts) {
    const int64_t k = n / 8;
    const auto stride = static_cast<size_t>(n + kSpare);
    std::vector<float> values(stride * kRepeats), copy(stride);
    std::vector<uint32_t> keys(stride);
    std::vector<int32_t> ours(stride), theirs(stride);
    for (float& value : values) value = std::exp(logit(random));
    const auto each = [&](auto&& select) {
      for (size_t i = 0; i < kRepeats; ++i) select(values.data() + i * stride);
    };
    bool same = true;
    each([&](const float* v) {
      select_best(v, n, k, keys.data(), ours.data());
      select_by_nth_element(v, n, k, copy.data(), theirs.data());
      same = same && std::equal(ours.begin(), ours.begin() + k, theirs.begin());
    });
    std::vector<Side> sides;
    sides.push_back({"librkv",
                     [&](int) {
                       each(
                           [&](const float* v) { select_best(v, n, k, keys.data(), ours.data()); });
                     },
                     nullptr,
                     false,
                     {}});
    sides.push_back({"nth_element",
                     [&](int) {
                       each([&](const float* v) {
                         select_by_nth_element(v, n, k, copy.data(), theirs.data());
                       });
                     },
                     nullptr,
                     false,
                     {}});
    interleave(sides, 2 * run.rounds);
    row.points.push_back((row.points.empty() ? "n = " : "") + std::to_string(n));
    // A wrong selection has no speed.
    row.values.push_back(same ? ratio(sides[1], sides[0]) : 0);
    row.floors.push_back(1.0);
    row.goals.push_back(1.35);
    for (const Side& side : sides) {
      run.report->detail("top-k, n = " + std::to_string(n) + ", " + side.name,
                         side.series.median() / kRepeats * 1e6, "us");
    }
  }
  run.report->rows.push_back(row);
}

}  // namespace rkv_bench
