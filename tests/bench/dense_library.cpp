// Dense decode for a caller that loads this library: ort_gqa.py puts it beside onnxruntime.
#include <cstring>
#include <memory>

#include "sampling.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace {

using namespace rkv_bench;

struct Dense {
  Dense(int32_t dtype, int64_t live, int threads, int64_t evict_bytes)
      : prompt(32, dtype), session({dtype, live + 1, 0, threads}), streamer(threads, evict_bytes) {}
  Prompt prompt;  // its step queries alone are used
  Session session;
  Streamer streamer;
};

}  // namespace

#define RKV_BENCH_API extern "C" __attribute__((visibility("default")))

// K and V [kv_heads][live][D]; q [q_heads][D], all of `dtype`. The last row is the step's token.
RKV_BENCH_API void* rkv_bench_dense_open(int32_t dtype, int64_t live, int32_t threads,
                                         int64_t evict_bytes, const void* q, const void* k,
                                         const void* v) {
  auto dense = std::make_unique<Dense>(dtype, live, threads, evict_bytes);
  const int64_t bytes = element_bytes(dtype);
  const auto tensor = [&](const void* data) {
    return tensor_of(const_cast<void*>(data), dtype, live - 1, kKvHeads, kHeadDim, live * kHeadDim);
  };
  std::memcpy(dense->prompt.step_q.data(), q,
              static_cast<size_t>(int64_t{kQueryHeads} * kHeadDim * bytes));
  for (int64_t head = 0; head < kKvHeads; ++head) {
    const int64_t from = ((head + 1) * live - 1) * kHeadDim * bytes;
    const int64_t to = head * kHeadDim * bytes;
    std::memcpy(dense->prompt.step_k.data() + to, static_cast<const std::byte*>(k) + from,
                static_cast<size_t>(kHeadDim * bytes));
    std::memcpy(dense->prompt.step_v.data() + to, static_cast<const std::byte*>(v) + from,
                static_cast<size_t>(kHeadDim * bytes));
  }
  dense->session.open();
  dense->session.prefill(dense->prompt, tensor(k), tensor(v));
  dense->session.fill(dense->prompt);
  return dense.release();
}

RKV_BENCH_API void rkv_bench_dense_close(void* handle) { delete static_cast<Dense*>(handle); }

RKV_BENCH_API void rkv_bench_evict(void* handle) { static_cast<Dense*>(handle)->streamer.evict(); }

// Seconds of one step; the output [q_heads][D] to out.
RKV_BENCH_API double rkv_bench_dense_run(void* handle, void* out) {
  auto* dense = static_cast<Dense*>(handle);
  const double start = seconds_now();
  dense->session.step(0);
  const double taken = seconds_now() - start;
  std::memcpy(out, dense->session.output(),
              static_cast<size_t>(int64_t{kQueryHeads} * kHeadDim *
                                  element_bytes(dense->session.setup().dtype)));
  return taken;
}

// Seconds of plain reads of as many bytes as the step reads.
RKV_BENCH_API double rkv_bench_stream_run(void* handle) {
  auto* dense = static_cast<Dense*>(handle);
  const int64_t bytes = kv_bytes(dense->session.live(), dense->session.setup().dtype);
  const std::byte* rows = dense->session.store().kv;
  const double start = seconds_now();
  dense->streamer.read(rows, bytes);
  return seconds_now() - start;
}
