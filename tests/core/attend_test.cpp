// Exact attention over a list of rows against double precision, on every SIMD target.
#include "core/cpu/attend.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "core/store_fixture.hpp"
#include "reference/attention.hpp"

namespace rkv_test {
namespace {

struct Outcome {
  std::vector<double> out;  // [group][head_dim_v]
  std::vector<float> lse;
  bool nonfinite = false;
};

// Attention of KV head `head` for row 0 of q.
Outcome attend(const rkv::Shape& shape, const TestStore& store, int32_t head, Strided& q,
               const std::vector<int32_t>* list, int64_t count, rkv::AttentionOptions options,
               size_t target, int64_t out_channel = 1) {
  rkv::cpu::Arena measure(nullptr);
  std::unique_ptr<GuardedMemory> memory;
  rkv::cpu::Partial chunk;
  rkv::cpu::Partial sum;
  rkv::cpu::AttendScratch scratch;
  float* queries = nullptr;
  const auto carve = [&](rkv::cpu::Arena& arena) {
    chunk = rkv::cpu::carve_partial(arena, shape);
    sum = rkv::cpu::carve_partial(arena, shape);
    scratch = rkv::cpu::carve_attend(arena, shape);
    queries = arena.take<float>(rkv::cpu::query_stride(shape) * shape.group);
  };
  carve(measure);
  memory = std::make_unique<GuardedMemory>(measure.used(), 64);
  rkv::cpu::Arena arena(reinterpret_cast<std::byte*>(memory->data()));
  carve(arena);

  rkv::cpu::load_query(shape, q.view(), 0, head, queries, target);
  rkv::cpu::AttendArgs args;
  args.shape = &shape;
  args.store = &store.get();
  args.options = options;
  args.head = head;
  args.list = list != nullptr ? list->data() : nullptr;
  args.count = args.fetched = count;
  args.q = queries;
  Outcome result;
  result.nonfinite = rkv::cpu::attend_rows(args, scratch, chunk, sum, target);
  Strided out(shape.query, 1, shape.q_heads, shape.head_dim_v, out_channel);
  std::vector<float> lse(static_cast<size_t>(shape.q_heads), 77.0F);
  rkv::cpu::store_result(shape, sum, out.view(), 0, head, lse.data(), target);
  for (int32_t h = 0; h < shape.q_heads; ++h) {
    const bool own = h / shape.group == head;
    if (!own) {
      EXPECT_EQ(lse[h], 77.0F);
      continue;
    }
    result.lse.push_back(lse[h]);
    for (int64_t d = 0; d < shape.head_dim_v; ++d) result.out.push_back(out.get(0, h, d));
  }
  EXPECT_TRUE(memory->intact());
  return result;
}

void expect_close(const rkv::Shape& shape, const TestStore& store, int32_t head, Strided& q,
                  const std::vector<int64_t>& rows, rkv::AttentionOptions options,
                  const Outcome& got) {
  const int64_t stored = rows.empty() ? 0 : rows.back() + 1;
  const rkv_ref::Rows keys = store.keys(head, stored);
  const rkv_ref::Rows values = store.values(head, stored);
  const rkv_ref::Rows group = q.rows_of(0, int64_t{head} * shape.group, shape.group);
  const double step = shape.query == rkv::DType::kF32   ? 0
                      : shape.query == rkv::DType::kF16 ? 0x1p-10
                                                        : 0x1p-7;
  bool nonfinite = false;
  for (int64_t g = 0; g < shape.group; ++g) {
    const rkv_ref::AttentionResult want =
        rkv_ref::attention(group.row(g), keys, values, rows, options.scale, options.softcap);
    nonfinite = nonfinite || want.nonfinite;
    if (std::isinf(want.lse)) {
      ASSERT_EQ(got.lse[g], want.lse);
    } else {
      ASSERT_NEAR(got.lse[g], want.lse, 2e-5 * std::max(1.0, std::fabs(want.lse)));
    }
    for (int64_t d = 0; d < shape.head_dim_v; ++d) {
      const double tolerance =
          5e-5 * std::max(1.0, std::fabs(want.out[d])) + step * std::fabs(want.out[d]);
      ASSERT_NEAR(got.out[g * shape.head_dim_v + d], want.out[d], tolerance)
          << "head " << g << " channel " << d << " D " << shape.head_dim << " rows " << rows.size();
    }
  }
  ASSERT_EQ(got.nonfinite, nonfinite);
}

std::vector<int64_t> all_rows(int64_t n) {
  std::vector<int64_t> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

class AttendTest : public ::testing::TestWithParam<rkv::cpu::Target> {
 protected:
  size_t target() const { return GetParam().index; }
};

TEST_P(AttendTest, RandomShapes) {
  Random random(21);
  static const int32_t kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 71};
  for (int i = 0; i < scaled(80); ++i) {
    const auto dim = static_cast<int32_t>(8 * random.integer(1, 32));
    const auto dim_v = i % 2 == 0 ? dim : static_cast<int32_t>(8 * random.integer(1, 32));
    const rkv::Shape shape =
        make_shape(2, random.pick(kGroups), dim, dim_v, random.pick(kTypes), random.pick(kTypes));
    const int64_t live = random.integer(1, i % 4 == 0 ? 700 : 150);
    TestStore store(shape, live, 1);
    store.randomise(random, live);
    Strided q(shape.query, 1, shape.q_heads, dim, i % 3 + 1);
    q.randomise(random, 2);
    rkv::AttentionOptions options;
    options.scale = i % 5 == 0 ? 1.0F : 1 / std::sqrt(static_cast<float>(dim));
    if (i % 3 == 0) options.softcap = 5.0F;
    const auto head = static_cast<int32_t>(i % 2);
    if (i % 7 == 0) {
      ASSERT_NO_FATAL_FAILURE(
          expect_close(shape, store, head, q, all_rows(live), options,
                       attend(shape, store, head, q, nullptr, live, options, target(), i % 3 + 1)));
      continue;
    }
    std::vector<int32_t> list;
    for (int32_t r = 0; r < live; ++r) {
      if (random.coin()) list.push_back(r);
    }
    ASSERT_NO_FATAL_FAILURE(
        expect_close(shape, store, head, q, std::vector<int64_t>(list.begin(), list.end()), options,
                     attend(shape, store, head, q, &list, static_cast<int64_t>(list.size()),
                            options, target(), i % 3 + 1)));
  }
}

// A row whose logit is not finite has weight 0 for that head alone, whatever its V holds.
TEST_P(AttendTest, NonFiniteLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Random random(22);
  for (const rkv::DType type : kTypes) {
    for (const float softcap : {0.0F, 30.0F}) {
      const rkv::Shape shape = make_shape(1, 5, 40, 24, type, rkv::DType::kF32);
      const int64_t live = 200;
      TestStore store(shape, live, 1);
      store.randomise(random, live);
      rkv::AttentionOptions options;
      options.scale = 0.15F;
      options.softcap = softcap;
      Strided q(rkv::DType::kF32, 1, 5, 40);
      q.randomise(random);
      q.set(0, 2, 7, 0);
      for (const double bad : {inf, -inf, nan}) {
        for (const int64_t row : {3, 77, 199}) {
          store.set(0, row, 7, bad);
          for (int64_t d = 40; d < 64; ++d) store.set(0, row, d, nan);
        }
        ASSERT_NO_FATAL_FAILURE(
            expect_close(shape, store, 0, q, all_rows(live), options,
                         attend(shape, store, 0, q, nullptr, live, options, target())));
      }
      // A first chunk without one finite logit, then nothing at all.
      for (int64_t row = 0; row < live; ++row) {
        if (row == 64) {
          ASSERT_NO_FATAL_FAILURE(
              expect_close(shape, store, 0, q, all_rows(live), options,
                           attend(shape, store, 0, q, nullptr, live, options, target())));
        }
        store.set(0, row, 0, nan);
      }
      const Outcome none = attend(shape, store, 0, q, nullptr, live, options, target());
      EXPECT_TRUE(none.nonfinite);
      for (const double x : none.out) EXPECT_EQ(x, 0.0);
      for (const float x : none.lse) EXPECT_EQ(x, -inf);
    }
  }
}

TEST_P(AttendTest, EmptyList) {
  const rkv::Shape shape = make_shape(1, 4, 64, 64, rkv::DType::kBF16, rkv::DType::kBF16);
  TestStore store(shape, 4, 1);
  Strided q(rkv::DType::kBF16, 1, 4, 64);
  const std::vector<int32_t> list;
  const Outcome none = attend(shape, store, 0, q, &list, 0, {}, target());
  EXPECT_FALSE(none.nonfinite);
  for (const double x : none.out) EXPECT_EQ(x, 0.0);
  for (const float x : none.lse) EXPECT_EQ(x, -std::numeric_limits<float>::infinity());
}

// fp16 values near 65504 stay finite in fp32, and one row far above the others takes all.
TEST_P(AttendTest, LargeValues) {
  Random random(23);
  const rkv::Shape shape = make_shape(1, 2, 64, 64, rkv::DType::kF16, rkv::DType::kF32);
  TestStore store(shape, 100, 1);
  for (int64_t r = 0; r < 100; ++r) {
    for (int64_t c = 0; c < 128; ++c) store.set(0, r, c, random.coin() ? 65504 : -65504);
  }
  Strided q(rkv::DType::kF32, 1, 2, 64);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t c = 0; c < 64; ++c) q.set(0, h, c, random.coin() ? 65504 : -65504);
  }
  rkv::AttentionOptions options;
  options.scale = 0.125F;
  const Outcome got = attend(shape, store, 0, q, nullptr, 100, options, target());
  EXPECT_FALSE(got.nonfinite);
  for (const double x : got.out) EXPECT_LE(std::fabs(x), 65504.0 * 1.0001);
}

// Chunks one by one, merged in order, give the bits of all of them at once.
TEST_P(AttendTest, ChunksMergeToTheSameBits) {
  Random random(24);
  const rkv::Shape shape = make_shape(1, 7, 96, 80, rkv::DType::kBF16, rkv::DType::kF32);
  const int64_t live = 5 * rkv::cpu::kChunkRows + 13;
  TestStore store(shape, live, 1);
  store.randomise(random, live, 3);
  for (int64_t r = 0; r < rkv::cpu::kChunkRows; ++r) {
    store.set(0, r, 1, std::numeric_limits<double>::quiet_NaN());  // the first chunk is empty
  }
  Strided q(rkv::DType::kF32, 1, 7, 96);
  q.randomise(random);
  rkv::cpu::Arena measure(nullptr);
  std::vector<rkv::cpu::Partial> parts(8);
  rkv::cpu::AttendScratch scratch;
  float* queries = nullptr;
  const auto carve = [&](rkv::cpu::Arena& arena) {
    for (auto& part : parts) part = rkv::cpu::carve_partial(arena, shape);
    scratch = rkv::cpu::carve_attend(arena, shape);
    queries = arena.take<float>(rkv::cpu::query_stride(shape) * 7);
  };
  carve(measure);
  GuardedMemory memory(measure.used(), 64);
  rkv::cpu::Arena arena(reinterpret_cast<std::byte*>(memory.data()));
  carve(arena);
  rkv::cpu::load_query(shape, q.view(), 0, 0, queries, target());
  rkv::cpu::AttendArgs args;
  args.shape = &shape;
  args.store = &store.get();
  args.options.scale = 0.3F;
  args.count = args.fetched = live;
  args.q = queries;
  EXPECT_TRUE(rkv::cpu::attend_rows(args, scratch, parts[6], parts[7], target()));
  for (int64_t c = 5; c >= 0; --c)
    rkv::cpu::attend_chunk(args, c, c % 2 == 0, scratch, parts[c], target());
  for (int64_t c = 1; c < 6; ++c) rkv::cpu::merge_partial(shape, parts[c], parts[0], target());
  for (int64_t g = 0; g < 7; ++g) {
    EXPECT_EQ(parts[0].top[g], parts[7].top[g]);
    EXPECT_EQ(parts[0].total[g], parts[7].total[g]);
    const int64_t stride = rkv::cpu::value_stride(shape);
    EXPECT_EQ(std::memcmp(parts[0].out + g * stride, parts[7].out + g * stride, 80 * 4), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, AttendTest, ::testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rkv_test
