// Every SIMD target holds the tolerance against the reference; RKV_SIMD forces one at creation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

class Target : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* before = std::getenv("RKV_SIMD");
    had_ = before != nullptr;
    if (had_) before_ = before;
    setenv("RKV_SIMD", GetParam(), 1);
    Cache probe(make_config(1, 1, 8, 8, 8, 8));
    // The error lists what this machine has; a target that is listed may not be refused.
    const std::string text = probe.text();
    if (probe.status() == RKV_INVALID_ARGUMENT &&
        text.find(GetParam(), text.find("must be")) == std::string::npos) {
      GTEST_SKIP() << text;
    }
    ASSERT_EQ(RKV_OK, probe.status()) << probe.text();
  }
  void TearDown() override {
    if (had_) {
      setenv("RKV_SIMD", before_.c_str(), 1);
    } else {
      unsetenv("RKV_SIMD");
    }
  }

 private:
  bool had_ = false;
  std::string before_;
};

TEST_P(Target, RandomLives) {
  for (int i = 0; i < scaled(80) && !HasFailure(); ++i) {
    Random random(9000 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 2000, 2e7);
    random_stage1_options(&random, &c);
    random_stage2_options(&random, &c);
    const std::int64_t prompt = c.max_prompt_tokens;
    SCOPED_TRACE(describe(c) + " i=" + std::to_string(i));
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
    Twin twin(&cache, 0);
    const Placement at = random_placement(&random);
    twin.prefill(Prompt(c, prompt, std::min<std::int64_t>(prompt, 64), i), at);
    const std::int64_t steps = std::min<std::int64_t>(8, c.max_new_tokens);
    for (std::int64_t p = prompt; p < prompt + steps && !HasFailure(); ++p) twin.step(p, i, at);
  }
}

TEST_P(Target, EveryTypeAtRealSizes) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(8, 2, 128, 4000, 16, 256, dtype);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    twin.prefill(Prompt(c, 4000, 32, 3));
    for (std::int64_t p = 4000; p < 4016 && !HasFailure(); ++p) twin.step(p, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, Target, testing::Values("avx3", "avx2", "sse2"),
                         [](const auto& info) { return std::string(info.param); });

// A target that does not exist is refused, not replaced in silence.
TEST(Simd, AnUnknownTargetIsRefused) {
  const char* before = std::getenv("RKV_SIMD");
  const std::string saved = before != nullptr ? before : "";
  setenv("RKV_SIMD", "abacus", 1);
  Cache cache(make_config(1, 1, 8, 8, 8, 8));
  EXPECT_NE(RKV_OK, cache.status());
  EXPECT_NE(std::string::npos, std::string(cache.text()).find("abacus")) << cache.text();
  if (before != nullptr) {
    setenv("RKV_SIMD", saved.c_str(), 1);
  } else {
    unsetenv("RKV_SIMD");
  }
}

}  // namespace
