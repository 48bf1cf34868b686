// Stage 2 and attention for one KV head of one row, by the thread that owns it and by any others
// that have nothing else to do. Who computes what does not change a bit: a page's score depends on
// that page alone, and the owner merges the chunks of the list in its order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cpu/attend.hpp"
#include "core/cpu/pool.hpp"
#include "core/cpu/select.hpp"

namespace rkv::cpu {

// Parts 0, 1, 2, ... of one piece of work after another, each taken by one thread. What the owner
// wrote before open() may be read by those that hold a claim, and has to stay until all parts that
// were taken are done.
class Claims {
 public:
  struct Claim {
    int64_t first = 0, end = 0;
    bool empty() const { return first == end; }
  };

  // Parts from `limit` on wait until the owner allows them.
  void open(int64_t parts, int64_t limit) noexcept;
  void allow(int64_t limit) noexcept;
  void close() noexcept;
  // A few parts in a row.
  Claim claim(int64_t threads) noexcept;

 private:
  // Parts taken so far in the lower half, all of its bits set while nothing is open; above it a
  // number of its own for each piece of work, so that a claim never mixes two.
  static constexpr uint64_t kClosed = 0xffffffffULL;

  std::atomic<uint64_t> taken_{kClosed};
  std::atomic<int64_t> parts_{0}, limit_{0};
};

class SharedSelect {
 public:
  // The owner: as select_rows.
  int64_t select(const SelectArgs& args, const SelectScratch& scratch, Pool& pool, int32_t* out,
                 bool* nonfinite, size_t target) noexcept;
  // Another thread: scores pages as long as there are any to take. Returns whether there were.
  bool help(int64_t threads, size_t target) noexcept;

 private:
  Claims blocks_;
  std::atomic<int64_t> done_{0};  // blocks that others have scored
  SelectArgs args_;               // these two for the holder of a claim
  SelectScratch scratch_;
};

// A chunk's result until all those before it are merged.
struct ChunkSlot {
  Partial result;
  std::atomic<bool> ready{false};
};

class SharedAttend {
 public:
  // Between two jobs. slots: memory for `count` chunks that wait.
  void use(ChunkSlot* slots, int64_t count) noexcept;
  // The owner: as attend_rows.
  bool attend(const AttendArgs& args, const AttendScratch& scratch, Pool& pool,
              const Partial& chunk, const Partial& sum, size_t target) noexcept;
  // Another thread: attends to chunks as long as there are any to take. Returns whether there were.
  bool help(const AttendScratch& scratch, int64_t threads, size_t target) noexcept;

 private:
  Claims chunks_;
  std::atomic<bool> nonfinite_{false};  // in a chunk that another thread took
  AttendArgs args_;                     // for the holder of a claim
  ChunkSlot* slots_ = nullptr;
  int64_t slot_count_ = 0;
};

// What one thread shares.
struct alignas(64) Shared {
  SharedSelect select;
  SharedAttend attend;
};

}  // namespace rkv::cpu
