#include "ggml_peer.hpp"

#include <cmath>
#include <cstdlib>
#include <vector>

#ifdef RKV_BENCH_GGML
#include <ggml-cpu.h>
#include <ggml.h>

namespace rkv_bench {

struct GgmlAttention::Graph {
  ggml_context* context = nullptr;
  ggml_cgraph* graph = nullptr;
  ggml_cplan plan{};
  ggml_tensor *q = nullptr, *out = nullptr;
  std::vector<float> queries;  // [kQueries][q_heads][D]
  std::vector<float> result;
  std::vector<uint8_t> work;
};

bool GgmlAttention::built() { return true; }

GgmlAttention::GgmlAttention(Prompt& prompt, int64_t tokens, int threads)
    : graph_(std::make_unique<Graph>()) {
  Graph& g = *graph_;
  ggml_cpu_init();
  g.context =
      ggml_init({ggml_tensor_overhead() * 16 + ggml_graph_overhead() + 4096, nullptr, true});
  if (g.context == nullptr) std::abort();
  // [D, tokens, heads] over rows of all heads, as llama.cpp permutes its cache.
  const size_t head_bytes = kHeadDim * 2, row_bytes = head_bytes * kKvHeads;
  const auto cache = [&](void* data) {
    ggml_tensor* rows = ggml_new_tensor_2d(g.context, GGML_TYPE_F16, kHeadDim * kKvHeads, tokens);
    rows->data = data;
    ggml_tensor* view =
        ggml_view_3d(g.context, rows, kHeadDim, tokens, kKvHeads, row_bytes, head_bytes, 0);
    view->data = data;
    return view;
  };
  ggml_tensor* k = cache(prompt.k.data());
  ggml_tensor* v = cache(prompt.v.data());
  for (int64_t i = 0; i < int64_t{kQueries} * kQueryHeads * kHeadDim; ++i) {
    g.queries.push_back(to_float(prompt.step_q.data(), i, prompt.dtype));
  }
  g.q = ggml_new_tensor_3d(g.context, GGML_TYPE_F32, kHeadDim, 1, kQueryHeads);
  g.q->data = g.queries.data();
  g.out = ggml_flash_attn_ext(g.context, g.q, k, v, nullptr,
                              1.0F / std::sqrt(static_cast<float>(kHeadDim)), 0.0F, 0.0F);
  g.result.resize(kQueryHeads * kHeadDim);
  g.out->data = g.result.data();
  g.graph = ggml_new_graph(g.context);
  ggml_build_forward_expand(g.graph, g.out);
  g.plan = ggml_graph_plan(g.graph, threads, nullptr);
  g.work.resize(g.plan.work_size);
  g.plan.work_data = g.work.data();
}

GgmlAttention::~GgmlAttention() { ggml_free(graph_->context); }

void GgmlAttention::run(int query) {
  Graph& g = *graph_;
  g.q->data = g.queries.data() + (query % kQueries) * kQueryHeads * kHeadDim;
  if (ggml_graph_compute(g.graph, &g.plan) != GGML_STATUS_SUCCESS) std::abort();
}

const float* GgmlAttention::output() const { return graph_->result.data(); }

}  // namespace rkv_bench

#else

namespace rkv_bench {

struct GgmlAttention::Graph {};
bool GgmlAttention::built() { return false; }
GgmlAttention::GgmlAttention(Prompt&, int64_t, int) { std::abort(); }
GgmlAttention::~GgmlAttention() = default;
void GgmlAttention::run(int) { std::abort(); }
const float* GgmlAttention::output() const { return nullptr; }

}  // namespace rkv_bench

#endif
