// Row 7: stage 1 (scores, softmax, pooling, selection, gather, page summaries) against the sgemm of the
// same products alone, fp32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "bench.hpp"
#include "machine.hpp"
#include "openblas.hpp"
#include "sampling.hpp"
#include "session.hpp"

namespace rkv_bench {
namespace {

// The products of one layer: per KV head the 128 = W * G window queries times all keys.
struct Products {
  Products(const Prompt& prompt, int64_t token_count)
      : tokens(token_count),
        k(token_count * kKvHeads * kHeadDim * 4),
        q(int64_t{kWindow} * kQueryHeads * kHeadDim * 4),
        c(token_count * kWindow * kGroup * 4) {
    auto* k_out = reinterpret_cast<float*>(k.data());
    for (int64_t i = 0; i < token_count * kKvHeads * kHeadDim; ++i) {
      k_out[i] = to_float(prompt.k.data(), i, prompt.dtype);
    }
    // Rows of one KV head together: [kv_heads][W * G][D].
    auto* q_out = reinterpret_cast<float*>(q.data());
    for (int64_t head = 0; head < kKvHeads; ++head) {
      for (int64_t row = 0; row < int64_t{kWindow} * kGroup; ++row) {
        const int64_t from =
            ((row / kGroup) * kQueryHeads + head * kGroup + row % kGroup) * kHeadDim;
        for (int64_t d = 0; d < kHeadDim; ++d) {
          *q_out++ = to_float(prompt.window_q.data(), from + d, prompt.dtype);
        }
      }
    }
    c.touch();
  }

  // queries_first: c is [W * G][tokens], else [tokens][W * G].
  void multiply(const OpenBlas& blas, bool queries_first) const {
    constexpr int kRows = kWindow * kGroup, kStride = kKvHeads * kHeadDim;
    const auto* keys = reinterpret_cast<const float*>(k.data());
    const auto* queries = reinterpret_cast<const float*>(q.data());
    auto* out = reinterpret_cast<float*>(c.data());
    const int n = static_cast<int>(tokens);
    for (int head = 0; head < kKvHeads; ++head) {
      const float* head_k = keys + head * kHeadDim;
      const float* head_q = queries + head * kRows * kHeadDim;
      if (queries_first) {
        blas.multiply(kRows, n, kHeadDim, head_q, kHeadDim, head_k, kStride, out, n);
      } else {
        blas.multiply(n, kRows, kHeadDim, head_k, kStride, head_q, kHeadDim, out, kRows);
      }
    }
  }

  int64_t tokens;
  HugeBuffer k, q, c;
};

// Copies the rows that stage 1 kept, as its last part does.
void gather(const Prompt& prompt, const std::vector<int64_t>& positions, std::byte* out,
            rkv::cpu::Pool& pool) {
  const int64_t bytes = kHeadDim * element_bytes(prompt.dtype);
  const int64_t count = static_cast<int64_t>(positions.size()) / kKvHeads;
  pool.run(kKvHeads, [&](int64_t head, int) {
    std::byte* to = out + head * count * 2 * bytes;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from =
          (positions[static_cast<size_t>(head * count + i)] * kKvHeads + head) * bytes;
      std::memcpy(to, prompt.k.data() + from, static_cast<size_t>(bytes));
      std::memcpy(to + bytes, prompt.v.data() + from, static_cast<size_t>(bytes));
      to += 2 * bytes;
    }
  });
}

}  // namespace

void run_stage1_rows(const Run& run, Prompt& prompt) {
  const std::string dtype = dtype_name(prompt.dtype);
  const bool dots = prompt.dtype == RKV_DTYPE_BF16 && cpu_has("avx512_bf16");
  Row row{"7",
          "stage 1 over OpenBLAS sgemm of its products, " + dtype +
              (dots ? " keys, bf16 dots" : " keys, fp32"),
          "x",
          Better::kLower,
          {},
          {},
          {},
          {},
          0,
          ""};
  const OpenBlas blas(run.openblas, run.threads);
  if (!run.peers || !blas.loaded()) row.skipped = "without OpenBLAS";
  Streamer& streamer = *run.streamer;
  const std::function<void()> cold = [&] { streamer.evict(); };
  double stream = 0;
  for (const int64_t length : {int64_t{8192}, int64_t{32768}, int64_t{131072}}) {
    if (length > prompt.tokens || (run.quick && length > 32768)) continue;
    Session session({prompt.dtype, length, 256, run.threads});
    session.open();
    session.prefill(prompt);
    const std::vector<int64_t> positions = session.kept_positions();
    HugeBuffer gathered(static_cast<int64_t>(positions.size()) * 2 * kHeadDim *
                        element_bytes(prompt.dtype));
    const int64_t stream_bytes = prompt.k.bytes() / prompt.tokens * session.prompt_tokens();
    std::vector<Side> sides;
    sides.push_back({"stage 1",
                     [&](int) { session.prefill(prompt); },
                     [&] {
                       session.open();
                       cold();
                     },
                     false,
                     {}});
    sides.push_back({"read stream over K",
                     [&](int) { streamer.read(prompt.k.data(), stream_bytes); },
                     cold,
                     false,
                     {}});
    sides.push_back({"gather of the kept rows",
                     [&](int) { gather(prompt, positions, gathered.data(), streamer.pool()); },
                     cold,
                     false,
                     {}});
    std::unique_ptr<Products> products;
    if (row.skipped.empty()) {
      products = std::make_unique<Products>(prompt, session.prompt_tokens());
      for (const bool queries_first : {true, false}) {
        sides.push_back({queries_first ? "sgemm, [queries][keys]" : "sgemm, [keys][queries]",
                         [&, queries_first](int) { products->multiply(blas, queries_first); },
                         cold,
                         true,
                         {}});
      }
    }
    interleave(sides, run.rounds);
    const std::string name = length_name(length) + " " + dtype;
    for (const Side& side : sides) {
      run.report->detail(name + ", " + side.name, side.series.median() * 1e3, "ms");
    }
    const double stage1 = sides[0].series.median();
    const double flops =
        2.0 * kWindow * kQueryHeads * kHeadDim * static_cast<double>(session.prompt_tokens());
    run.report->detail(name + ", stage 1, products alone would be", flops / stage1 / 1e9,
                       "GFLOP/s");
    run.report->detail(name + ", stage 1 without the gather",
                       (stage1 - sides[2].series.median()) * 1e3, "ms");
    if (products != nullptr) {
      const double sgemm = std::min(sides[3].series.median(), sides[4].series.median());
      run.report->detail(name + ", sgemm", flops / sgemm / 1e9, "GFLOP/s");
      row.points.push_back((row.points.empty() ? "S = " : "") + length_name(length));
      row.values.push_back(stage1 / sgemm);
      row.floors.push_back(dots ? .9 : 1.25);
      row.goals.push_back(dots ? .55 : .9);
      run.report->detail(name + ", stage 1 without the gather over sgemm",
                         (stage1 - sides[2].series.median()) / sgemm, "x");
    }
    stream = static_cast<double>(stream_bytes) / sides[1].series.median();
  }
  row.stream = stream;
  run.report->rows.push_back(row);
  if (prompt.dtype == RKV_DTYPE_BF16 && !dots) {
    run.report->rows.push_back({"7",
                                "stage 1 by bf16 dot products over sgemm",
                                "x",
                                Better::kLower,
                                {},
                                {},
                                {},
                                {},
                                0,
                                "not on this CPU"});
  }
}

}  // namespace rkv_bench
