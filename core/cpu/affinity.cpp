#include "core/cpu/affinity.hpp"

namespace rkv::cpu {

#ifdef __linux__

int current_core() { return sched_getcpu(); }

void Affinity::avoid(pthread_t thread, int core) noexcept {
  if (core < 0 || core >= CPU_SETSIZE) return;
  cpu_set_t now;
  if (pthread_getaffinity_np(thread, sizeof now, &now) != 0) return;
  if (avoided_ < 0 || CPU_EQUAL(&now, &left_) == 0) base_ = now;
  cpu_set_t others = base_;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) others = base_;
  if (CPU_EQUAL(&now, &others) == 0 &&
      pthread_setaffinity_np(thread, sizeof others, &others) != 0) {
    return;
  }
  left_ = others;
  avoided_ = core;
}

#else

int current_core() { return -1; }

void Affinity::avoid(pthread_t /*thread*/, int /*core*/) noexcept {}

#endif

}  // namespace rkv::cpu
