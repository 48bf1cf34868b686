// A dense table of doubles and the two scalar helpers that every stage of the reference shares.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

namespace rkv_ref {

// `count` rows of `width` values, row-major. The reference works on one KV head ("group") at a
// time, so keys are Rows{S, D}, values Rows{S, Dv} and the queries of a row Rows{G, D}.
struct Rows {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::vector<double> data;

  Rows() = default;
  Rows(std::int64_t count_, std::int64_t width_)
      : count(count_), width(width_), data(static_cast<std::size_t>(count_ * width_), 0.0) {}

  double* row(std::int64_t i) { return data.data() + i * width; }
  const double* row(std::int64_t i) const { return data.data() + i * width; }

  void append(const double* values) {
    data.insert(data.end(), values, values + width);
    ++count;
  }
  void resize(std::int64_t rows) {
    data.resize(static_cast<std::size_t>(rows * width));
    count = rows;
  }
};

// Plain inner product; four partial sums only so that long test runs stay short.
inline double dot(const double* a, const double* b, std::int64_t n) {
  double sum[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// The library works in fp32, so what fp32 cannot hold is not finite for the reference either.
inline bool finite32(double x) { return std::isfinite(x) && std::fabs(x) <= FLT_MAX; }

// scale 0 stands for 1/sqrt(D) everywhere.
inline double resolve_scale(double scale, std::int64_t head_dim) {
  return scale != 0 ? scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
}

// The attention logit of sections 2 and 4.6. `*finite` is false where the logit must weigh nothing;
// an infinite product stays infinite under a softcap, it does not become the cap.
inline double logit(const double* q, const double* k, std::int64_t head_dim, double scale,
                    double softcap, bool* finite) {
  const double product = dot(q, k, head_dim);
  double x = product * scale;
  *finite = finite32(product) && finite32(x);
  if (softcap != 0) x = softcap * std::tanh(x / softcap);
  return x;
}

}  // namespace rkv_ref
