#pragma once

#include <chrono>
#include <thread>

#include <hwy/cache_control.h>

namespace rkv::cpu {

// For a loop that waits for a thread which is at work on something small: busily at first; then,
// since that thread seems to have lost its core, in short sleeps.
class Backoff {
 public:
  void wait() {
    if (pauses_ < kPauses) {
      ++pauses_;
      hwy::Pause();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  // What was waited for has come.
  void reset() { pauses_ = 0; }

 private:
  static constexpr int kPauses = 1000;
  int pauses_ = 0;
};

}  // namespace rkv::cpu
