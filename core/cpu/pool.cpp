#include "core/cpu/pool.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>

#include <hwy/cache_control.h>

namespace rkv::cpu {
namespace {

// How long a worker looks for the next job before it sleeps, and the caller for the last worker.
// Longer than the serial gaps between the jobs of one call, shorter than an engine would notice.
constexpr std::chrono::microseconds kSpin{30};

// A job longer than this is worth a worker's move to another core at once, which costs tens of us;
// else it moves when the job is done, and is woken there next time.
constexpr std::chrono::microseconds kLong{300};

template <class Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      hwy::Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// Blocks every signal of the calling thread, for the workers to inherit: a runtime that loads the
// library expects its signals on its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

int this_core() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

// Linux likes to wake a thread on the core of its waker, and takes milliseconds to see that the
// waker goes on working there. Moves the calling thread from that core, if it is there, to another
// one that it may run on.
void leave_core(int core) {
#ifdef __linux__
  cpu_set_t allowed, others;
  if (core < 0 || core >= CPU_SETSIZE || core != this_core() ||
      sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return;
  }
  others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);
#else
  (void)core;
#endif
}

}  // namespace

Pool::Pool(int threads) : workers_(std::make_unique<std::vector<std::thread>>()), owner_(getpid()) {
  workers_->reserve(static_cast<size_t>(std::max(threads, 1) - 1));
  const SignalsBlocked blocked;
  try {
    for (int i = 1; i < threads; ++i) workers_->emplace_back([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() noexcept {
  if (getpid() != owner_) {
    // In a forked child the threads are not there: to join or even to forget one is undefined.
    (void)workers_.release();
    return;
  }
  stopping_.store(true);
  alarm_.fetch_add(1);
  alarm_.notify_all();
  for (std::thread& worker : *workers_) worker.join();
}

int64_t Pool::take_items(int thread) noexcept {
  int64_t taken = 0;
  const auto start = std::chrono::steady_clock::now();
  bool placed = thread == 0;
  for (;; ++taken) {
    const int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items_) return taken;
    function_(context_, item, thread);
    if (!placed && std::chrono::steady_clock::now() - start > kLong) {
      placed = true;
      leave_core(caller_core_.load(std::memory_order_relaxed));
    }
  }
}

// Wakes as many sleepers as can find an item. A worker counts itself as a sleeper before it looks
// at the state for the last time, and the state was opened before this looks at the count (both
// sequentially consistent), so one of the two sees the other.
void Pool::wake(int64_t useful) noexcept {
  const int64_t asleep = sleepers_.load();
  if (asleep == 0) return;
  alarm_.fetch_add(1);
  if (useful >= asleep) {
    alarm_.notify_all();
  } else {
    for (int64_t i = 0; i < useful; ++i) alarm_.notify_one();
  }
}

void Pool::run(int64_t items, Function function, void* context) noexcept {
  if (items <= 0) return;
  int participants = 1;
  if (items == 1 || workers_->empty()) {
    for (int64_t item = 0; item < items; ++item) function(context, item, 0);
  } else {
    items_ = items;
    function_ = function;
    context_ = context;
    next_.store(0, std::memory_order_relaxed);
    took_part_.store(0, std::memory_order_relaxed);
    caller_core_.store(this_core(), std::memory_order_relaxed);
    const uint64_t before = state_.load(std::memory_order_relaxed);
    state_.store((before & ~(kGeneration - 1)) + kGeneration + kOpen);
    wake(items - 1);
    const bool own = take_items(0) > 0;
    state_.fetch_and(~kOpen, std::memory_order_acq_rel);
    const auto empty = [this] { return (state_.load(std::memory_order_acquire) & kInside) == 0; };
    if (!spin_until(empty)) {
      const uint32_t left = left_.load();
      if ((state_.fetch_or(kCallerSleeps, std::memory_order_acq_rel) & kInside) != 0) {
        left_.wait(left);
      }
    }
    participants = took_part_.load(std::memory_order_relaxed) + (own ? 1 : 0);
  }
  ++counters_.jobs;
  counters_.items += items;
  counters_.last_items = items;
  counters_.most_items = std::max(counters_.most_items, items);
  counters_.last_threads = participants;
  counters_.most_threads = std::max(counters_.most_threads, participants);
}

void Pool::work(int thread) noexcept {
  uint64_t seen = 0;  // generation of the last job joined
  const auto offered = [&] {
    const uint64_t state = state_.load();
    return stopping_.load(std::memory_order_relaxed) ||
           ((state & kOpen) != 0 && state / kGeneration != seen);
  };
  for (;;) {
    if (!spin_until(offered)) {
      sleepers_.fetch_add(1);
      const uint32_t alarm = alarm_.load();
      if (!offered()) alarm_.wait(alarm);
      sleepers_.fetch_sub(1);
    }
    if (stopping_.load()) return;
    uint64_t state = state_.load();
    bool joined = false;
    while (!joined && (state & kOpen) != 0 && state / kGeneration != seen) {
      joined = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel);
    }
    if (!joined) continue;
    seen = state / kGeneration;
    if (take_items(thread) > 0) took_part_.fetch_add(1, std::memory_order_relaxed);
    const int busy = caller_core_.load(std::memory_order_relaxed);
    const uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kCallerSleeps) != 0 && (before & kInside) == 1) {
      left_.fetch_add(1);
      left_.notify_one();
    }
    leave_core(busy);
  }
}

}  // namespace rkv::cpu
