// The number of threads does not change a bit. Prompts are shorter where RKV_TEST_SCALE is below 1,
// so that ThreadSanitizer can watch stage 1 and 2 share their work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "../support/life.hpp"

namespace {

using namespace rkv_test;

TEST(Threads, Shapes) {
  for (int dtype : kDtypes) {
    for (const auto& shape : {std::array<int, 4>{8, 2, 64, scaled(3000)},
                              {4, 1, 128, scaled(20000)},
                              {5, 5, 40, scaled(700)},
                              {71, 1, 16, scaled(2500)}}) {
      rkv_cache_config c =
          make_config(shape[0], shape[1], shape[2], shape[3], 12, shape[3] / 12, dtype);
      const Trace one = life(c, shape[3], 12, 3);
      for (int threads : {2, 3, 8}) {
        c.num_threads = threads;
        EXPECT_TRUE(one == life(c, shape[3], 12, 3)) << describe(c);
      }
    }
  }
}

// Options that take other paths through stage 1 and 2.
TEST(Threads, Options) {
  for (int i = 0; i < scaled(40); ++i) {
    Random random(300 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 3000, 6e7);
    random_stage1_options(&random, &c);
    random_stage2_options(&random, &c);
    c.key_as_query = 0;
    const std::int64_t steps = std::min<std::int64_t>(6, c.max_new_tokens);
    c.num_threads = 1;
    const Trace one = life(c, c.max_prompt_tokens, steps, 4);
    c.num_threads = static_cast<int>(random.integer(2, 8));
    EXPECT_TRUE(one == life(c, c.max_prompt_tokens, steps, 4)) << describe(c);
  }
}

// A dense step of many rows and one KV head is split along tokens.
TEST(Threads, OneKvHeadDenseAndLong) {
  for (int dtype : kDtypes) {
    const int prompt = scaled(20000);
    rkv_cache_config c = make_config(4, 1, 64, prompt, 4, 2 * prompt, dtype);
    const Trace one = life(c, prompt, 4, 9);
    for (int threads : {2, 3, 8}) {
      c.num_threads = threads;
      EXPECT_TRUE(one == life(c, prompt, 4, 9)) << describe(c);
    }
  }
}

}  // namespace
