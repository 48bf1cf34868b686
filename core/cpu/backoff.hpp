#pragma once

#include <thread>

#include <hwy/cache_control.h>

namespace rkv::cpu {

// For a loop that waits for another thread of the same call: busily at first, since that thread is
// at work, then giving the core to whoever wants it, since it seems not to be.
class Backoff {
 public:
  void wait() {
    if (pauses_ < kPauses) {
      ++pauses_;
      hwy::Pause();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kPauses = 1000;  // tens of microseconds
  int pauses_ = 0;
};

}  // namespace rkv::cpu
