// A decode step's memory traffic and nothing else: plain reads of the lines that it touches.
#pragma once

#include <cstdint>
#include <vector>

#include "session.hpp"
#include "stream.hpp"

namespace rkv_bench {

class Replica {
 public:
  // The session must be at its step (Session::fill).
  explicit Replica(Session& session);

  // What step `i` reads, by all threads of the streamer, one item per KV head as the step has it.
  void read(int i, Streamer& streamer) const;
  int64_t bytes() const { return bytes_; }  // of step 0

 private:
  struct Head {
    std::vector<int32_t> channels;  // rows of a page block: channel d's minima d, maxima D + d
    std::vector<int32_t> rows;      // selected
  };
  uint64_t read_head(const Head& head, int64_t index) const;

  rkv::LayerStore store_;
  int64_t element_, page_size_, live_;
  std::vector<std::vector<Head>> steps_;  // [kQueries][kv_heads]
  int64_t bytes_ = 0;
};

}  // namespace rkv_bench
