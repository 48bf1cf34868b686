// Plain reads: the bandwidth that everything is set against, and what empties the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/pool.hpp"
#include "memory.hpp"

namespace rkv_bench {

// Loads `bytes` (a multiple of 64) from `data`, whole vectors, in order.
uint64_t read_span(const std::byte* data, int64_t bytes);

// Loads `span` bytes (a multiple of 64) at base + index[i] * stride for each of `count` indices;
// index null: 0, 1, 2, ...
uint64_t read_rows(const std::byte* base, const int32_t* index, int64_t count, int64_t stride,
                   int64_t span);

class Streamer {
 public:
  // evict_bytes: what is read to empty the caches, in equal parts by all threads.
  Streamer(int threads, int64_t evict_bytes);

  int threads() const { return pool_.threads(); }
  int64_t evict_bytes() const { return evicted_.bytes(); }
  rkv::cpu::Pool& pool() { return pool_; }

  // Reads [data, data + bytes) with all threads.
  void read(const std::byte* data, int64_t bytes);
  // Leaves the caches with other data in every core. By threads of its own, as an engine's are between
  // two layers: those of read() and of a cache have slept meanwhile, all alike.
  void evict();

 private:
  rkv::cpu::Pool pool_, evict_pool_;
  HugeBuffer evicted_;
};

}  // namespace rkv_bench
