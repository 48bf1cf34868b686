// Page summaries, built for a range and appended, against minimum and maximum.
#include "core/cpu/summaries.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/store_fixture.hpp"
#include "reference/summaries.hpp"

namespace rkv_test {
namespace {

void expect_summaries(const TestStore& store, const rkv::Shape& shape, int64_t live) {
  for (int64_t h = 0; h < shape.kv_heads; ++h) {
    const rkv_ref::Summaries want = rkv_ref::summarise(store.keys(h, live), store.page_size());
    for (int64_t p = 0; p < live / store.page_size(); ++p) {
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        ASSERT_EQ(store.summary(h, p, 0, d, live), want.low.row(p)[d]) << p << " " << d;
        ASSERT_EQ(store.summary(h, p, 1, d, live), want.high.row(p)[d]) << p << " " << d;
      }
    }
  }
  ASSERT_TRUE(store.intact());
}

class SummariesTest : public ::testing::TestWithParam<rkv::cpu::Target> {};

TEST_P(SummariesTest, BuildAndAppend) {
  const size_t target = GetParam().index;
  Random random(1);
  for (int i = 0; i < scaled(24); ++i) {
    const auto dim = static_cast<int32_t>(8 * random.integer(1, 32));
    const auto dim_v = static_cast<int32_t>(8 * random.integer(1, 32));
    const rkv::Shape shape = make_shape(2, 1, dim, dim_v, random.pick(kTypes), rkv::DType::kF32);
    const int64_t page_size = random.integer(1, i % 3 == 0 ? 64 : 4);
    const int64_t rows = page_size * random.integer(20, 150);
    TestStore store(shape, rows, page_size);
    const int64_t prompt = random.integer(1, rows / 2);
    store.randomise(random, prompt);
    store.summarise(prompt, target);
    ASSERT_NO_FATAL_FAILURE(expect_summaries(store, shape, prompt));

    Strided k(shape.kv, 1, 2, dim, i % 2 + 1);
    Strided v(shape.kv, 1, 2, dim_v, i % 2 + 1);
    int64_t live = prompt;
    while (live < rows) {
      k.randomise(random);
      v.randomise(random);
      ++live;
      for (int32_t h = 0; h < 2; ++h) {
        rkv::cpu::append_row(shape, store.get(), h, k.view(), v.view(), 0, live, page_size, target);
        for (int64_t c = 0; c < dim; ++c) ASSERT_EQ(store.get(h, live - 1, c), k.get(0, h, c));
        for (int64_t c = 0; c < dim_v; ++c) {
          ASSERT_EQ(store.get(h, live - 1, dim + c), v.get(0, h, c));
        }
      }
      if (random.integer(0, 40) == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_summaries(store, shape, live));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_summaries(store, shape, live));
  }
}

// The bits of a page are those of its rows in order: a NaN stays, an earlier zero stays.
TEST_P(SummariesTest, NanAndSignedZeros) {
  for (const rkv::DType type : kTypes) {
    const rkv::Shape shape = make_shape(1, 1, 8, 8, type, type);
    TestStore store(shape, 12, 3);
    for (int64_t r = 0; r < 12; ++r) {
      for (int64_t c = 0; c < 16; ++c) store.set(0, r, c, static_cast<double>(r + 1));
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    store.set(0, 0, 0, nan);   // first row of page 0
    store.set(0, 5, 1, nan);   // last row of page 1
    store.set(0, 6, 2, -0.0);  // page 2: all zeros, the first one negative
    store.set(0, 7, 2, 0.0);
    store.set(0, 8, 2, 0.0);
    store.set(0, 9, 3, std::numeric_limits<double>::infinity());
    store.set(0, 10, 3, -std::numeric_limits<double>::infinity());
    store.summarise(12, GetParam().index);
    for (int64_t side = 0; side < 2; ++side) {
      EXPECT_TRUE(std::isnan(store.summary(0, 0, side, 0, 12)));
      EXPECT_TRUE(std::isnan(store.summary(0, 1, side, 1, 12)));
      EXPECT_TRUE(std::signbit(store.summary(0, 2, side, 2, 12)));
      EXPECT_EQ(store.summary(0, 2, side, 2, 12), 0.0);
    }
    EXPECT_EQ(store.summary(0, 3, 0, 3, 12), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(store.summary(0, 3, 1, 3, 12), std::numeric_limits<double>::infinity());
    EXPECT_EQ(store.summary(0, 0, 1, 1, 12), 3.0);
  }
}

// Any cut into ranges gives the same pages.
TEST_P(SummariesTest, Ranges) {
  Random random(2);
  const rkv::Shape shape = make_shape(1, 1, 40, 8, rkv::DType::kBF16, rkv::DType::kBF16);
  TestStore store(shape, 600, 4);
  store.randomise(random, 600);
  const int64_t flushed = rkv::flushed_pages(599, 4);
  for (int64_t first = 0; first < 149;) {
    const int64_t end = std::min<int64_t>(149, first + random.integer(1, 30));
    rkv::cpu::build_pages(shape, store.get(), 0, 4, first, end, flushed, GetParam().index);
    first = end;
  }
  ASSERT_NO_FATAL_FAILURE(expect_summaries(store, shape, 599));
}

INSTANTIATE_TEST_SUITE_P(Targets, SummariesTest, ::testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rkv_test
