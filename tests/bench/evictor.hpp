// Empties the caches of all cores between two samples.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "memory.hpp"

namespace rkv_bench {

// With threads of its own, as an engine reads its weights between two layers. They sleep as soon as
// the last byte is read: a pool's workers would look for more work for a while, on the cores that
// the next sample needs.
class Evictor {
 public:
  Evictor(int threads, int64_t bytes);
  ~Evictor();
  Evictor(const Evictor&) = delete;
  Evictor& operator=(const Evictor&) = delete;

  int64_t bytes() const { return data_.bytes(); }
  // Reads everything, each part on the core that comes first.
  void run();

 private:
  void read_parts();
  void work();

  HugeBuffer data_;
  std::atomic<int64_t> next_{0};      // part
  std::atomic<uint32_t> round_{0};    // what the threads wait for
  std::atomic<uint32_t> reading_{0};  // threads
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace rkv_bench
