// Plain reads: the bandwidth that everything is set against, and what empties the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/pool.hpp"
#include "evictor.hpp"

namespace rkv_bench {

// Loads `bytes` (a multiple of 64) from `data`, whole vectors, in order.
uint64_t read_span(const std::byte* data, int64_t bytes);

// Loads `span` bytes (a multiple of 64) at base + index[i] * stride for each of `count` indices;
// index null: 0, 1, 2, ...
uint64_t read_rows(const std::byte* base, const int32_t* index, int64_t count, int64_t stride,
                   int64_t span);

// Where what was read ends, so that no compiler leaves a read out.
void consume(uint64_t sum);

class Streamer {
 public:
  // evict_bytes: what all threads together read to empty the caches.
  Streamer(int threads, int64_t evict_bytes);

  int threads() const { return pool_.threads(); }
  int64_t evict_bytes() const { return evictor_.bytes(); }
  rkv::cpu::Pool& pool() { return pool_; }

  // Reads [data, data + bytes) with all threads.
  void read(const std::byte* data, int64_t bytes);
  // Leaves the caches with other data in every core. Meanwhile the threads of read() and of every
  // cache fall asleep, all alike.
  void evict() { evictor_.run(); }

 private:
  rkv::cpu::Pool pool_;
  Evictor evictor_;
};

}  // namespace rkv_bench
