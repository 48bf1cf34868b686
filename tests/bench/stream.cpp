#include "stream.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace rkv_bench {
namespace {

// What was read ends here, so that no compiler leaves a read out.
std::atomic<uint64_t> sink{0};

// A pool's worker looks for work for 30 us before it sleeps.
constexpr std::chrono::microseconds kAsleep{100};

void read_all(rkv::cpu::Pool& pool, const std::byte* data, int64_t bytes) {
  // Several parts for each thread: a core that is taken away for a moment delays one of them.
  const int64_t parts = pool.threads() == 1 ? 1 : int64_t{8} * pool.threads();
  const int64_t size = bytes / parts / 64 * 64;
  pool.run(parts, [&](int64_t i, int) {
    sink += read_span(data + i * size, i + 1 == parts ? (bytes - i * size) / 64 * 64 : size);
  });
}

}  // namespace

Streamer::Streamer(int threads, int64_t evict_bytes)
    : pool_(threads), evict_pool_(threads), evicted_(evict_bytes) {
  evicted_.touch();
}

void Streamer::read(const std::byte* data, int64_t bytes) { read_all(pool_, data, bytes); }

void Streamer::evict() {
  read_all(evict_pool_, evicted_.data(), evicted_.bytes());
  std::this_thread::sleep_for(kAsleep);
}

}  // namespace rkv_bench
