#include "core/cpu/pool.hpp"

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
  const int64_t items = items_.load(std::memory_order_relaxed);
  for (int64_t taken = 0;; ++taken) {
    const int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items) return taken;
    function_(context_, item, thread);
  }
}

// A worker says that it sleeps before it looks at the state for the last time, and a job was opened
// before this looks at who sleeps (all sequentially consistent), so one of the two sees the other.
// The first workers are called first: their caches have seen the last job.
void Pool::rouse(int64_t useful) noexcept {
  const int64_t workers = std::min<int64_t>(useful, threads()) - 1;
  const int core = current_core();
  for (int64_t i = 0; i < workers; ++i) {
    Bed& bed = beds_[static_cast<size_t>(i)];
    // Awake or not: the caller may have moved to the only core that this one was left. One that
    // shall end may be gone any time; in a forked child all are.
    if (!bed.affinity.avoids(core) && !stopping_.load(std::memory_order_relaxed) &&
        getpid() == owner_) {
      bed.affinity.avoid((*workers_)[static_cast<size_t>(i)].native_handle(), core);
    }
    Rest asleep = Rest::kAsleep;
    if (bed.rest.load() != asleep) continue;
    if (bed.rest.compare_exchange_strong(asleep, Rest::kCalled)) bed.rest.notify_one();
  }
}

void Pool::run_job(int64_t items, int64_t useful, Function function, void* context) noexcept {
  if (items <= 0) return;
  int participants = 1;
  if (workers_->empty() || (items == 1 && useful <= 1)) {
    for (int64_t item = 0; item < items; ++item) function(context, item, 0);
  } else {
    items_.store(items, std::memory_order_relaxed);
    function_ = function;
    context_ = context;
    next_.store(0, std::memory_order_relaxed);
    calls_.store(0, std::memory_order_relaxed);
    took_part_.store(0, std::memory_order_relaxed);
    const uint64_t before = state_.load(std::memory_order_relaxed);
    state_.store((before & ~(kGeneration - 1)) + kGeneration + kOpen);
    rouse(useful);
    const bool own = take_items(0) > 0;
    wait_for_workers();
    participants = took_part_.load(std::memory_order_relaxed) + (own ? 1 : 0);
  }
  ++counters_.jobs;
  counters_.items += items;
  counters_.last_items = items;
  counters_.most_items = std::max(counters_.most_items, items);
  counters_.last_threads = participants;
  counters_.most_threads = std::max(counters_.most_threads, participants);
}

// Ends the job: no worker is inside, and none can come any more.
void Pool::wait_for_workers() noexcept {
  int64_t answered = 0;  // calls for helpers
  const auto inside = [this] { return (state_.load(std::memory_order_acquire) & kInside) != 0; };
  const auto called = [&] { return calls_.load(std::memory_order_acquire) != answered; };
  for (;;) {
    if (!spin_until([&] { return !inside() || called(); })) {
      const uint32_t left = left_.load();
      if ((state_.fetch_or(kCallerSleeps, std::memory_order_acq_rel) & kInside) != 0) {
        left_.wait(left);
      }
    } else if (inside()) {
      answered = calls_.load(std::memory_order_acquire);
      function_(context_, kHelp, 0);
    }
    uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & kInside) == 0 &&
        state_.compare_exchange_strong(state, state & ~(kOpen | kCallerSleeps),
                                       std::memory_order_acq_rel)) {
      return;
    }
  }
}

void Pool::work(int thread) noexcept {
  uint64_t seen = 0;     // generation of the last job joined
  int64_t answered = 0;  // calls for helpers in it
  std::atomic<Rest>& rest = beds_[static_cast<size_t>(thread - 1)].rest;
  const auto something_in = [&](uint64_t state) {
    if ((state & kOpen) == 0) return false;
    const int64_t calls = calls_.load(std::memory_order_relaxed);
    if (state / kGeneration == seen) return calls != answered;
    return calls > 0 ||
           next_.load(std::memory_order_relaxed) < items_.load(std::memory_order_relaxed);
  };
  const auto offered = [&] { return stopping_.load() || something_in(state_.load()); };
  for (;;) {
    if (!spin_until(offered)) {
      rest.store(Rest::kAsleep);
      if (!offered()) rest.wait(Rest::kAsleep);
      rest.store(Rest::kUp);
    }
    if (stopping_.load()) return;
    uint64_t state = state_.load();
    if (!something_in(state) ||
        !state_.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel)) {
      continue;
    }
    if (state / kGeneration != seen) {
      seen = state / kGeneration;
      answered = 0;
      if (take_items(thread) > 0) took_part_.fetch_add(1, std::memory_order_relaxed);
    }
    for (int64_t calls; (calls = calls_.load(std::memory_order_acquire)) != answered;) {
      answered = calls;
      function_(context_, kHelp, thread);
    }
    const uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kCallerSleeps) != 0 && (before & kInside) == 1) {
      left_.fetch_add(1);
      left_.notify_one();
    }
  }
}

}  // namespace rkv::cpu
