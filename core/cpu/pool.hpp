// Fork-join pool. The caller takes part as thread 0, and a job waits for no worker but those that
// hold a part of it: one that the system does not schedule costs speed, not latency. So a forked
// child, which inherits no worker, may go on alone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/cpu/affinity.hpp"

namespace rkv::cpu {

class Pool {
 public:
  // threads >= 1, the caller included. Throws std::system_error or std::bad_alloc, with every
  // worker started so far joined.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_->size()) + 1; }

  // Calls body(int64_t item, int thread) once for every item in [0, items), thread in
  // [0, threads()), taken in this order; what the calls wrote is visible afterwards. Of the first
  // `items` - 1 workers, those that sleep are woken. No allocation. One caller at a time, and no
  // nesting.
  template <class Body>
  void run(int64_t items, Body&& body) noexcept {
    run_shared(items, items, body);
  }

  // The same with items that threads may share: body(kHelp, thread) is called in addition, by
  // threads that find no item left, each time that an item has called for helpers. It takes part in
  // the items of others and returns as soon as there is nothing to take. `useful`: threads that the
  // job is worth, instead of `items`.
  static constexpr int64_t kHelp = -1;
  template <class Body>
  void run_shared(int64_t items, int64_t useful, Body&& body) noexcept {
    using Plain = std::remove_reference_t<Body>;
    const Function call = [](void* context, int64_t item, int thread) {
      (*static_cast<Plain*>(context))(item, thread);
    };
    run_job(items, useful, call, const_cast<void*>(static_cast<const void*>(&body)));
  }
  // From within an item: there is something to take part in.
  void call_helpers() noexcept { calls_.fetch_add(1, std::memory_order_release); }

  // A job worth as many threads is about to come: workers that sleep begin to wake up, which takes
  // them some tens of microseconds.
  void rouse(int64_t useful) noexcept;

  // What the jobs since the last reset did. For tests; read between jobs.
  struct Counters {
    int64_t jobs = 0, items = 0;
    int64_t last_items = 0, most_items = 0;  // of one job
    int last_threads = 0, most_threads = 0;  // that ran at least one item of one job
  };
  const Counters& counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }

 private:
  using Function = void (*)(void* context, int64_t item, int thread);
  void run_job(int64_t items, int64_t useful, Function function, void* context) noexcept;
  int64_t take_items(int thread) noexcept;
  void wait_for_workers() noexcept;
  void work(int thread) noexcept;
  void stop() noexcept;

  // Generation in the upper half; below it the open bit, the bit of a caller that sleeps until the
  // last worker leaves, and the number of workers inside.
  static constexpr uint64_t kGeneration = 1ULL << 32;
  static constexpr uint64_t kOpen = 1ULL << 31;
  static constexpr uint64_t kCallerSleeps = 1ULL << 30;
  static constexpr uint64_t kInside = kCallerSleeps - 1;

  // A worker that found nothing to do says so, sleeps until it is called, and is up some time later.
  enum class Rest : uint32_t { kUp, kAsleep, kCalled };
  struct alignas(64) Bed {
    std::atomic<Rest> rest{Rest::kUp};
    Affinity affinity;  // the caller's to use
  };

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> calls_{0};  // for helpers, of this job
  std::atomic<uint32_t> left_{0};              // what a sleeping caller waits on
  std::atomic<int> took_part_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> items_{0};
  // The rest of the job; written only while no worker is inside.
  Function function_ = nullptr;
  void* context_ = nullptr;
  Counters counters_;
  std::unique_ptr<Bed[]> beds_;  // of worker 1 .. threads() - 1
  std::unique_ptr<std::vector<std::thread>> workers_;
  const pid_t owner_;  // the process whose threads the workers are
};

}  // namespace rkv::cpu
