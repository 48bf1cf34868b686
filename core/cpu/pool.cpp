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

}  // namespace

Pool::Pool(int threads)
    : beds_(std::make_unique<Bed[]>(static_cast<size_t>(std::max(threads, 1)))),
      workers_(std::make_unique<std::vector<std::thread>>()),
      owner_(getpid()) {
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
  rouse(threads());
  for (std::thread& worker : *workers_) worker.join();
}

int64_t Pool::take_items(int thread) noexcept {
  for (int64_t taken = 0;; ++taken) {
    const int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items_) return taken;
    function_(context_, item, thread);
  }
}

// Linux may wake a thread on the core of its waker, above all in a virtual machine, where it takes a
// core that sleeps for one that is gone; there the thread would wait until the caller's job is done.
void Pool::keep_off_core(int64_t workers) noexcept {
#ifdef __linux__
  const int core = sched_getcpu();
  for (int64_t i = 0; i < workers; ++i) {
    Bed& bed = beds_[static_cast<size_t>(i)];
    if (core < 0 || core >= CPU_SETSIZE || bed.avoids == core) continue;
    if (getpid() != owner_) return;  // a forked child has no workers
    const pthread_t worker = (*workers_)[static_cast<size_t>(i)].native_handle();
    cpu_set_t now;
    if (pthread_getaffinity_np(worker, sizeof now, &now) != 0) return;
    // What is not as it was left here is somebody's wish.
    if (bed.avoids < 0 || CPU_EQUAL(&now, &bed.given) == 0) bed.allowed = now;
    bed.given = bed.allowed;
    CPU_CLR(core, &bed.given);
    if (CPU_COUNT(&bed.given) == 0) bed.given = bed.allowed;
    if (CPU_EQUAL(&now, &bed.given) == 0) pthread_setaffinity_np(worker, sizeof now, &bed.given);
    bed.avoids = core;
  }
#else
  (void)workers;
#endif
}

// A worker says that it sleeps before it looks at the state for the last time, and a job was opened
// before this looks at who sleeps (all sequentially consistent), so one of the two sees the other.
// The first workers are called first: their caches have seen the last job.
void Pool::rouse(int64_t useful) noexcept {
  const int64_t workers = std::min<int64_t>(useful, threads()) - 1;
  keep_off_core(workers);
  for (int64_t i = 0; i < workers; ++i) {
    std::atomic<Rest>& rest = beds_[static_cast<size_t>(i)].rest;
    Rest asleep = Rest::kAsleep;
    if (rest.load() != asleep || !rest.compare_exchange_strong(asleep, Rest::kCalled)) continue;
    rest.notify_one();
  }
}

void Pool::run(int64_t items, int64_t useful, Function function, void* context) noexcept {
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
    const uint64_t before = state_.load(std::memory_order_relaxed);
    state_.store((before & ~(kGeneration - 1)) + kGeneration + kOpen);
    rouse(useful);
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
  std::atomic<Rest>& rest = beds_[static_cast<size_t>(thread - 1)].rest;
  const auto offered = [&] {
    const uint64_t state = state_.load();
    return stopping_.load() || ((state & kOpen) != 0 && state / kGeneration != seen);
  };
  for (;;) {
    if (!spin_until(offered)) {
      rest.store(Rest::kAsleep);
      if (!offered()) rest.wait(Rest::kAsleep);
      rest.store(Rest::kUp);
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
    const uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kCallerSleeps) != 0 && (before & kInside) == 1) {
      left_.fetch_add(1);
      left_.notify_one();
    }
  }
}

}  // namespace rkv::cpu
