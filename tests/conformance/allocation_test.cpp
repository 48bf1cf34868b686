// Allocations: refused ones come back as OUT_OF_MEMORY, and the hot path makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "../support/cases.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RKV_TEST_INTERPOSE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RKV_TEST_INTERPOSE 0
#endif
#endif
#ifndef RKV_TEST_INTERPOSE
#define RKV_TEST_INTERPOSE 1
#endif

namespace {
std::atomic<long> g_calls{0};      // allocations of all threads while counting
std::atomic<long> g_fail_at{-1};   // the allocation that fails, counted from 0; -1: none
std::atomic<bool> g_counting{false};

[[maybe_unused]] bool refuse() {
  if (!g_counting.load(std::memory_order_relaxed)) return false;
  const long n = g_calls.fetch_add(1);
  if (n != g_fail_at.load()) return false;
  errno = ENOMEM;
  return true;
}
}  // namespace

#if RKV_TEST_INTERPOSE
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) { return refuse() ? nullptr : __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) { return refuse() ? nullptr : __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) { return refuse() ? nullptr : __libc_realloc(p, n); }
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  return refuse() ? nullptr : __libc_memalign(alignment, n);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  if (refuse()) return ENOMEM;
  *p = __libc_memalign(alignment, n);
  return *p != nullptr ? 0 : ENOMEM;
}
}
#endif

namespace {

using namespace rkv_test;

class Allocation : public testing::Test {
 protected:
  void SetUp() override {
    if (RKV_TEST_INTERPOSE == 0) GTEST_SKIP() << "the sanitizer owns malloc";
  }
};

// B67, B75: the n-th allocation of create fails, for every n: an error, no leak into a handle, and
// the next try succeeds.
TEST_F(Allocation, B67_B75_CreateWithAFailingAllocator) {
  for (int threads : {1, 4}) {
    rkv_cache_config c = make_config(4, 2, 16, 100, 8, 16);
    c.num_threads = threads;
    rkv_error error = zeroed<rkv_error>();
    bool finished = false;
    for (long n = 0; n < 2000 && !finished; ++n) {
      rkv_cache* cache = nullptr;
      g_calls = 0;
      g_fail_at = n;
      g_counting = true;
      const rkv_status status = rkv_cache_create(&c, nullptr, &cache, &error);
      g_counting = false;
      g_fail_at = -1;
      finished = g_calls.load() <= n;
      if (status != RKV_OK) {
        EXPECT_EQ(RKV_OUT_OF_MEMORY, status) << "allocation " << n << ": " << error.text;
        EXPECT_EQ(nullptr, cache);
        EXPECT_NE('\0', error.text[0]);
      }
      rkv_cache_destroy(cache);
    }
    EXPECT_TRUE(finished);
  }
}

// Prefill, select, attend and decode allocate nothing, in any thread, after one warm-up call.
TEST_F(Allocation, NoneInTheHotPath) {
  rkv_cache_config c = make_config(8, 2, 64, 3000, 40, 100, RKV_DTYPE_BF16);
  c.max_sequences = 2;
  c.num_threads = 3;
  Cache cache(c);
  for (int s = 0; s < 2; ++s) {
    ASSERT_EQ(RKV_OK, cache.open(s));
    const Prompt p(c, 3000, 32, 4);
    PromptTensors t(c, p, Placement());
    g_calls = 0;
    g_counting = s == 1;
    const rkv_status status = cache.prefill(s, 0, 2968, 3000, &t.q, &t.kv.k, &t.kv.v);
    g_counting = false;
    ASSERT_EQ(RKV_OK, status) << cache.text();
    EXPECT_EQ(0, g_calls.load()) << "prefill";
  }
  for (std::int64_t p = 3000; p < 3020; ++p) {
    StepBuffers step(&cache, 1);
    const StepData data(c, 4, p);
    step.positions[0] = p;
    step.q.fill(data.q);
    step.k.fill(data.k);
    step.v.fill(data.v);
    g_calls = 0;
    g_counting = p > 3000;
    const rkv_status fused = step.decode();
    const rkv_status selected = step.decode_select();
    const rkv_status attended = step.attend();
    const rkv_status refused = step.attend(7);
    g_counting = false;
    EXPECT_EQ(RKV_OK, fused);
    EXPECT_EQ(RKV_OK, selected);
    EXPECT_EQ(RKV_OK, attended);
    EXPECT_EQ(RKV_INVALID_ARGUMENT, refused);
    EXPECT_EQ(0, g_calls.load()) << "step " << p;
  }
}

}  // namespace
