#include "evictor.hpp"

#include <algorithm>

#include "sampling.hpp"
#include "stream.hpp"

namespace rkv_bench {
namespace {

// Small, so that all threads are done at about the same time.
constexpr int64_t kPart = int64_t{256} << 10;

}  // namespace

Evictor::Evictor(int threads, int64_t bytes) : data_(bytes) {
  data_.touch();
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Evictor::~Evictor() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Evictor::run() {
  next_ = 0;
  reading_ = static_cast<uint32_t>(threads_.size());
  ++round_;
  round_.notify_all();
  read_parts();
  while (reading_ > 0) {
  }
}

void Evictor::read_parts() {
  for (;;) {
    const int64_t first = next_.fetch_add(1) * kPart;
    if (first >= data_.bytes()) return;
    consume(read_span(data_.data() + first, std::min(kPart, data_.bytes() - first) / 64 * 64));
  }
}

void Evictor::work() {
  leave_out_this_thread();
  for (uint32_t seen = 0;; ++seen) {
    round_.wait(seen);
    if (stopping_) return;
    read_parts();
    --reading_;
  }
}

}  // namespace rkv_bench
