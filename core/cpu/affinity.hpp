// Keeps a worker off the core of the thread that it works for.
//
// Linux may wake a thread on the core of its waker, above all in a virtual machine, where it takes a
// core that sleeps for one that is gone; there the thread would wait until the waker's job is done.
#pragma once

#include <pthread.h>
#ifdef __linux__
#include <sched.h>
#endif

namespace rkv::cpu {

// Where the calling thread runs; -1 where that cannot be told.
int current_core();

class Affinity {
 public:
  // Takes `core` out of the cores that `thread`, which must be running or asleep, may run on, and
  // puts back the one that was taken out before. Leaves it alone where no other would remain. A set
  // that is not the one that was left here is somebody's wish and becomes the new base (a wish for
  // exactly that one cannot be told from it).
  void avoid(pthread_t thread, int core) noexcept;
  // Whether it does already, as far as known; the rest is system calls.
  bool avoids(int core) const noexcept { return core == avoided_; }

 private:
  int avoided_ = -1;
#ifdef __linux__
  cpu_set_t base_{}, left_{};
#endif
};

}  // namespace rkv::cpu
