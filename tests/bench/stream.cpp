#include "stream.hpp"

#include <atomic>

namespace rkv_bench {

void consume(uint64_t sum) {
  static std::atomic<uint64_t> sink{0};
  sink += sum;
}

Streamer::Streamer(int threads, int64_t evict_bytes)
    : pool_(threads), evictor_(threads, evict_bytes) {}

void Streamer::read(const std::byte* data, int64_t bytes) {
  // Several parts for each thread: a core that is taken away for a moment delays one of them.
  const int64_t parts = pool_.threads() == 1 ? 1 : int64_t{8} * pool_.threads();
  const int64_t size = bytes / parts / 64 * 64;
  pool_.run(parts, [&](int64_t i, int) {
    consume(read_span(data + i * size, i + 1 == parts ? (bytes - i * size) / 64 * 64 : size));
  });
}

}  // namespace rkv_bench
