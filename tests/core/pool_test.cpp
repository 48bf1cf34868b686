// The fork-join pool: every item once, its writes visible, for any number of threads, spinning and
// sleeping workers, and failing thread creation.
#include "core/cpu/pool.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using rkv::cpu::Pool;

// Plain (not atomic) cells, so that a missing happens-before shows under the thread sanitizer.
void check_job(Pool* pool, int64_t items) {
  std::vector<int64_t> cells(static_cast<size_t>(items), -1);
  std::atomic<bool> thread_in_range{true};
  pool->run(items, [&](int64_t item, int thread) {
    if (thread < 0 || thread >= pool->threads()) thread_in_range = false;
    cells[static_cast<size_t>(item)] += item + 1;
  });
  EXPECT_TRUE(thread_in_range);
  for (int64_t i = 0; i < items; ++i) ASSERT_EQ(cells[static_cast<size_t>(i)], i);
}

TEST(Pool, EveryItemOnceForAnyThreadCount) {
  for (int threads = 1; threads <= 16; ++threads) {
    Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t items : {0, 1, 2, 3, 7, 16, 17, 1000}) check_job(&pool, items);
  }
}

TEST(Pool, ManyTinyJobs) {
  Pool pool(4);
  int64_t cells[3] = {0, 0, 0};
  for (int job = 0; job < 100000; ++job) {
    pool.run(3, [&](int64_t item, int) { cells[item] += job % 7; });
  }
  int64_t expected = 0;
  for (int job = 0; job < 100000; ++job) expected += job % 7;
  for (const int64_t cell : cells) EXPECT_EQ(cell, expected);
  EXPECT_EQ(pool.counters().jobs, 100000);
  EXPECT_EQ(pool.counters().items, 300000);
}

TEST(Pool, SleepingWorkersWakeUp) {
  Pool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far beyond the spin
    // The job ends only when all three threads are in it, so a worker that is not woken hangs here.
    std::atomic<int> arrived{0};
    pool.run(3, [&](int64_t, int) {
      ++arrived;
      while (arrived.load() < 3) std::this_thread::yield();
    });
    EXPECT_EQ(pool.counters().last_threads, 3);
    EXPECT_EQ(pool.counters().last_items, 3);
  }
}

// A worker that was roused joins a job that wakes nobody.
TEST(Pool, RousedWorkersAreUpForTheJob) {
  Pool pool(2);
  const auto joins = [&](bool roused) {
    int joined = 0;
    for (int round = 0; round < 20; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // far beyond the spin
      if (roused) pool.rouse(2);
      pool.run_shared(
          2, 1, [](int64_t, int) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
      joined += pool.counters().last_threads - 1;
    }
    return joined;
  };
  const int unroused = joins(false);
  EXPECT_GT(joins(true), unroused);
}

// Threads without an item come back for each call, the caller too, and a job ends only when the
// last of them is out.
TEST(Pool, HelpersAnswerCalls) {
  Pool pool(3);
  std::atomic<int64_t> tokens{0};
  int64_t helped_by_caller = 0, helped_by_workers = 0;
  for (int round = 0;
       round < 3000 || ((helped_by_caller == 0 || helped_by_workers == 0) && round < 300000);
       ++round) {
    const int64_t items = 1 + round % 3;
    int64_t taken = 0;  // plain: a missing happens-before shows under the thread sanitizer
    std::vector<int64_t> takers(3, 0);
    pool.run_shared(items, 3, [&](int64_t item, int thread) {
      if (item == Pool::kHelp) {
        while (tokens.load() > 0) {
          if (tokens.fetch_sub(1) <= 0) {
            tokens.fetch_add(1);
            break;
          }
          ++takers[static_cast<size_t>(thread)];
        }
        return;
      }
      if (item != 0) return;
      for (int part = 0; part < 5; ++part) {
        tokens.fetch_add(10);
        pool.call_helpers();
        for (int spin = 0; spin < 2000 && tokens.load() > 0; ++spin) std::this_thread::yield();
        // The owner takes what is left.
        for (;;) {
          const int64_t left = tokens.load();
          if (left <= 0) break;
          if (tokens.fetch_sub(1) <= 0) {
            tokens.fetch_add(1);
            break;
          }
          ++taken;
        }
      }
    });
    ASSERT_EQ(tokens.load(), 0);
    ASSERT_EQ(taken + takers[0] + takers[1] + takers[2], 50);
    helped_by_caller += takers[0];
    helped_by_workers += takers[1] + takers[2];
  }
  EXPECT_GT(helped_by_workers, 0);
}

#ifdef __linux__
cpu_set_t only(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return set;
}

TEST(Pool, WorkersKeepOffTheCoreOfTheCaller) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  Pool pool(2);
  // Of the worker, while it is in a job.
  const auto affinity = [&](const cpu_set_t* wish) {
    cpu_set_t found;
    CPU_ZERO(&found);
    std::atomic<int> arrived{0};
    pool.run(2, [&](int64_t, int thread) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
      if (thread == 0) return;
      sched_getaffinity(0, sizeof found, &found);
      if (wish != nullptr) sched_setaffinity(0, sizeof *wish, wish);
    });
    return found;
  };
  int cores[2], count = 0;
  for (int core = 0; count < 2; ++core) {
    if (CPU_ISSET(core, &before)) cores[count++] = core;
  }
  for (int round = 0; round < 6; ++round) {
    const cpu_set_t here = only(cores[round % 2]);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the worker falls asleep
    cpu_set_t expected = before;
    CPU_CLR(cores[round % 2], &expected);
    const cpu_set_t found = affinity(nullptr);
    EXPECT_TRUE(CPU_EQUAL(&found, &expected)) << round;
  }
  // What somebody else asked for stays, even where it leaves no other core.
  const cpu_set_t wish = only(cores[1]);
  affinity(&wish);
  for (const int core : cores) {
    const cpu_set_t here = only(core);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const cpu_set_t found = affinity(nullptr);
    EXPECT_TRUE(CPU_EQUAL(&found, &wish)) << core;
  }
  sched_setaffinity(0, sizeof before, &before);
}
#endif

TEST(Pool, CallerSleepsUntilTheLastWorkerLeaves) {
  Pool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived{0};
    int64_t slow = 0;
    pool.run(2, [&](int64_t, int thread) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
      if (thread == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far beyond the caller's spin
      slow = round + 1;
    });
    EXPECT_EQ(slow, round + 1);
  }
}

TEST(Pool, JobsOfMixedSizesWithPauses) {
  Pool pool(8);
  for (int round = 0; round < 200; ++round) {
    check_job(&pool, 1 + round % 23);
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round * 5));
  }
}

TEST(Pool, Counters) {
  Pool pool(2);
  pool.run(5, [](int64_t, int) {});
  pool.run(2, [](int64_t, int) {});
  EXPECT_EQ(pool.counters().jobs, 2);
  EXPECT_EQ(pool.counters().items, 7);
  EXPECT_EQ(pool.counters().last_items, 2);
  EXPECT_EQ(pool.counters().most_items, 5);
  EXPECT_GE(pool.counters().last_threads, 1);
  EXPECT_LE(pool.counters().most_threads, 2);
  pool.reset_counters();
  EXPECT_EQ(pool.counters().jobs, 0);
}

TEST(Pool, DestroyedWhileWorkersSpinOrSleep) {
#ifdef __linux__
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
#endif
  for (int round = 0; round < 500; ++round) {
    auto pool = std::make_unique<Pool>(1 + round % 6);
    if (round % 2 == 0) check_job(pool.get(), 10);
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    pool.reset();
#ifdef __linux__
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    ASSERT_TRUE(CPU_EQUAL(&before, &after)) << round;  // the caller's own is its own
#endif
  }
}

// The sanitizers need threads and address space of their own.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(Pool, ThreadCreationThatFails) {
  // In a child, where an address space of little more than it has now cannot hold 4096 stacks.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{512U << 20, 512U << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
    try {
      Pool pool(4096);
      _exit(2);
    } catch (const std::system_error&) {
    }
    Pool small(2);  // and the process is as good as before
    int64_t cells[4] = {0, 0, 0, 0};
    small.run(4, [&](int64_t item, int) { cells[item] = item; });
    _exit(cells[3] == 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
