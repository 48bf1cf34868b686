// Stage 2 for one KV head against the double-precision reference, on every SIMD target.
#include "core/cpu/select.hpp"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "core/store_fixture.hpp"
#include "reference/stage2.hpp"

namespace rkv_test {
namespace {

struct Case {
  rkv::Shape shape;
  rkv::SelectOptions options;
  int64_t live = 0, page_size = 1, channels = 1, top_k = 1;
  float scale = 1;
  bool tail_is_current = true;
};

// q: [group][head_dim].
std::vector<int32_t> select(const Case& c, const TestStore& store, int32_t head,
                            const rkv_ref::Rows& q, size_t target) {
  const int64_t pages = (c.live + c.page_size - 1) / c.page_size;
  rkv::cpu::Arena measure(nullptr);
  rkv::cpu::carve_select(measure, c.shape, pages);
  GuardedMemory memory(measure.used(), 64);
  rkv::cpu::Arena arena(reinterpret_cast<std::byte*>(memory.data()));
  const rkv::cpu::SelectScratch scratch = rkv::cpu::carve_select(arena, c.shape, pages);
  const int64_t stride = rkv::cpu::query_stride(c.shape);
  GuardedMemory q_memory(c.shape.group * stride * 4, 64);
  auto* q_floats = reinterpret_cast<float*>(q_memory.data());
  for (int64_t g = 0; g < c.shape.group; ++g) {
    for (int64_t d = 0; d < stride; ++d) {
      q_floats[g * stride + d] = d < q.width ? static_cast<float>(q.row(g)[d]) : 0.0F;
    }
  }
  rkv::cpu::SelectArgs args;
  args.shape = &c.shape;
  args.store = &store.get();
  args.options = &c.options;
  args.scale = c.scale;
  args.head = head;
  args.live = c.live;
  args.page_size = c.page_size;
  args.channels = c.channels;
  args.top_k = c.top_k;
  args.tail_is_current = c.tail_is_current;
  args.q = q_floats;
  std::vector<int32_t> out(
      static_cast<size_t>((c.top_k + c.page_size - 1) / c.page_size * c.page_size + 1), -7);
  bool nonfinite = false;
  const int64_t n = rkv::cpu::select_rows(args, scratch, out.data(), &nonfinite, target);
  EXPECT_TRUE(memory.intact() && q_memory.intact());
  EXPECT_LT(n, static_cast<int64_t>(out.size()));
  EXPECT_EQ(out.back(), -7);
  out.resize(static_cast<size_t>(n));
  return out;
}

// Channel order and directions as fp32 has them, where double may see two channels the other way
// round.
rkv_ref::Stage2Result fp32_channels(const rkv_ref::Rows& q) {
  rkv_ref::Stage2Result hint;
  std::vector<double> strength(static_cast<size_t>(q.width));
  for (int64_t d = 0; d < q.width; ++d) {
    float magnitude = 0;
    float sum = 0;
    for (int64_t g = 0; g < q.count; ++g) {
      magnitude += std::fabs(static_cast<float>(q.row(g)[d]));
      sum += static_cast<float>(q.row(g)[d]);
    }
    strength[d] = magnitude;
    hint.direction.push_back(sum);
  }
  hint.channels = rkv_ref::rank_channels(strength);
  return hint;
}

// Rows may differ from the reference only where their page ranks within 2e-5 of the cut.
void expect_selection(const Case& c, const TestStore& store, int32_t head, const rkv_ref::Rows& q,
                      size_t target) {
  rkv_ref::Stage2Options options;
  options.num_channels = c.channels;
  options.top_k = c.top_k;
  options.tokens_unit = c.options.tokens;
  options.page_softmax = c.options.page_softmax;
  options.sqrt_d = c.options.sqrt_d_temperature;
  options.recent = c.options.recent;
  options.sinks = c.options.sinks;
  options.scale = c.scale;
  const rkv_ref::Stage2Result hint = fp32_channels(q);
  const rkv_ref::Stage2Result want =
      rkv_ref::stage2(q, store.keys(head, c.live), c.page_size, options, &hint);
  const std::vector<int32_t> got = select(c, store, head, q, target);
  ASSERT_TRUE(std::is_sorted(got.begin(), got.end()));
  const std::set<int64_t> expected(want.rows.begin(), want.rows.end());
  const std::set<int64_t> found(got.begin(), got.end());
  ASSERT_EQ(found.size(), got.size());
  if (c.options.tokens) {
    ASSERT_EQ(static_cast<int64_t>(got.size()), c.top_k);
  }
  if (found == expected) return;

  // The cut: the rank of the last page that the reference takes.
  std::set<int64_t> taken;
  for (const int64_t row : expected) taken.insert(row / c.page_size);
  double cut = 0;
  for (size_t n = 0; n < taken.size(); ++n) cut = want.rank[want.order[n]];
  const double tolerance =
      q.count == 1 ? 2e-5 * std::max(std::fabs(cut), want.noise) : 2e-5 * std::fabs(cut) + 1e-37;
  for (const auto& [a, b] : {std::pair(&expected, &found), std::pair(&found, &expected)}) {
    for (const int64_t row : *a) {
      if (b->count(row) != 0) continue;
      ASSERT_NEAR(want.rank[row / c.page_size], cut, tolerance)
          << "row " << row << " G " << q.count << " D " << q.width << " P " << c.page_size << " r "
          << c.channels << " k " << c.top_k << " live " << c.live;
    }
  }
}

Case random_case(Random& random, int i) {
  static const int32_t kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 71};
  Case c;
  const auto dim = static_cast<int32_t>(8 * random.integer(1, 32));
  c.shape = make_shape(2, random.pick(kGroups), dim, 8, random.pick(kTypes), rkv::DType::kF32);
  c.page_size = random.integer(1, i % 4 == 0 ? 64 : 5);
  c.live = random.integer(2, c.page_size * (i % 5 == 0 ? 300 : 90));
  c.channels = i % 6 == 0 ? dim : random.integer(1, dim);
  c.top_k = random.integer(1, c.live - 1);
  c.scale = 1 / std::sqrt(static_cast<float>(dim));
  c.options.tokens = random.coin();
  c.options.page_softmax = random.integer(0, 3) == 0;
  c.options.sqrt_d_temperature = random.integer(0, 3) == 0;
  if (random.integer(0, 2) == 0) c.options.sinks = random.integer(0, c.live + 3);
  if (random.integer(0, 2) == 0) c.options.recent = random.integer(0, c.live + 3);
  if (random.coin()) c.options.recent = std::min<int64_t>(c.options.recent, 5);
  return c;
}

class SelectTest : public ::testing::TestWithParam<rkv::cpu::Target> {
 protected:
  size_t target() const { return GetParam().index; }
};

TEST_P(SelectTest, RandomShapes) {
  Random random(11);
  for (int i = 0; i < scaled(120); ++i) {
    Case c = random_case(random, i);
    TestStore store(c.shape, c.live + 2, c.page_size);
    store.randomise(random, c.live);
    store.summarise(c.live, target());
    Strided q(c.shape.kv, 1, c.shape.q_heads, c.shape.head_dim);
    q.randomise(random);
    for (int32_t head = 0; head < 2; ++head) {
      const rkv_ref::Rows group = q.rows_of(0, head * c.shape.group, c.shape.group);
      ASSERT_NO_FATAL_FAILURE(expect_selection(c, store, head, group, target()));
      // Pages made from K instead of the tail's: the same bits.
      const std::vector<int32_t> before = select(c, store, head, group, target());
      c.tail_is_current = false;
      ASSERT_EQ(select(c, store, head, group, target()), before);
      c.tail_is_current = true;
    }
  }
}

// A row sees neither later rows nor page bounds made from them.
TEST_P(SelectTest, LiveBelowStored) {
  Random random(12);
  const rkv::Shape shape = make_shape(1, 4, 32, 8, rkv::DType::kBF16, rkv::DType::kBF16);
  for (const int64_t page_size : {1, 3, 7}) {
    const int64_t stored = 40 * page_size;
    TestStore full(shape, stored, page_size);
    full.randomise(random, stored);
    full.summarise(stored, target());
    Strided q(shape.kv, 1, 4, 32);
    q.randomise(random);
    const rkv_ref::Rows group = q.rows_of(0, 0, 4);
    for (int64_t live = 10; live <= stored; ++live) {
      Case c;
      c.shape = shape;
      c.page_size = page_size;
      c.live = live;
      c.channels = 17;
      c.top_k = 9;
      c.scale = 0.2F;
      c.tail_is_current = false;
      TestStore own(shape, stored, page_size);
      for (int64_t r = 0; r < live; ++r) {
        for (int64_t d = 0; d < 40; ++d) own.set(0, r, d, full.get(0, r, d));
      }
      own.summarise(live, target());
      Case fresh = c;
      fresh.tail_is_current = true;
      ASSERT_EQ(select(c, full, 0, group, target()), select(fresh, own, 0, group, target()))
          << live << " of " << stored;
    }
  }
}

// Equal pages have equal scores, in the blocks, in the tail and at the end: the lower index wins.
TEST_P(SelectTest, TiesGoToTheLowerIndex) {
  Random random(13);
  for (const int32_t group : {1, 3, 4, 5}) {
    const rkv::Shape shape = make_shape(1, group, 72, 8, rkv::DType::kF16, rkv::DType::kF16);
    Case c;
    c.shape = shape;
    c.page_size = 3;
    c.live = 3 * 87 + 1;
    c.channels = 31;
    c.top_k = 60;
    c.scale = 0.1F;
    TestStore store(shape, c.live, 3);
    for (int64_t d = 0; d < 80; ++d) {
      const double x = random.normal();
      for (int64_t r = 0; r < c.live; ++r) store.set(0, r, d, x);
    }
    store.summarise(c.live, target());
    Strided q(shape.kv, 1, group, 72);
    q.randomise(random);
    std::vector<int32_t> first(60);
    for (int32_t i = 0; i < 60; ++i) first[i] = i;
    EXPECT_EQ(select(c, store, 0, q.rows_of(0, 0, group), target()), first);
    c.options.tokens = true;
    c.top_k = 59;
    first.pop_back();
    EXPECT_EQ(select(c, store, 0, q.rows_of(0, 0, group), target()), first);
    c.options.recent = 2;  // the last page of one row and the one before
    first = {};
    for (int32_t i = 0; i < 55; ++i) first.push_back(i);
    for (int32_t i = 258; i < 262; ++i) first.push_back(i);
    EXPECT_EQ(select(c, store, 0, q.rows_of(0, 0, group), target()), first);
  }
}

TEST_P(SelectTest, ZeroQueryAndNoFiniteScore) {
  Random random(14);
  for (const int32_t group : {1, 4}) {
    const rkv::Shape shape = make_shape(1, group, 64, 8, rkv::DType::kF32, rkv::DType::kF32);
    Case c;
    c.shape = shape;
    c.page_size = 2;
    c.live = 201;
    c.channels = 16;
    c.top_k = 10;
    c.scale = 0.125F;
    TestStore store(shape, c.live, 2);
    store.randomise(random, c.live);
    store.summarise(c.live, target());
    const std::vector<int32_t> first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    EXPECT_EQ(select(c, store, 0, rkv_ref::Rows(group, 64), target()), first);
    rkv_ref::Rows q(group, 64);
    for (double& x : q.data) x = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(select(c, store, 0, q, target()), first);
    for (double& x : q.data) x = 1;
    for (int64_t r = 0; r < c.live; ++r) {
      for (int64_t d = 0; d < 64; ++d) {
        store.set(0, r, d, std::numeric_limits<double>::quiet_NaN());
      }
    }
    store.summarise(c.live, target());
    EXPECT_EQ(select(c, store, 0, q, target()), first);
  }
}

// Pages with a score that is not finite come last; infinite K never crashes.
TEST_P(SelectTest, NonFiniteKeys) {
  Random random(15);
  for (int i = 0; i < scaled(40); ++i) {
    Case c = random_case(random, i);
    TestStore store(c.shape, c.live, c.page_size);
    store.randomise(random, c.live);
    const double bad[] = {std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity(), 65504.0, -65504.0};
    for (int n = 0; n < 20; ++n) {
      store.set(0, random.integer(0, c.live - 1), random.integer(0, c.shape.head_dim - 1),
                random.pick(bad));
    }
    store.summarise(c.live, target());
    Strided q(rkv::DType::kF32, 1, c.shape.q_heads, c.shape.head_dim);
    q.randomise(random);
    const rkv_ref::Rows group = q.rows_of(0, 0, c.shape.group);
    const std::vector<int32_t> got = select(c, store, 0, group, target());
    ASSERT_TRUE(std::is_sorted(got.begin(), got.end()));
    if (c.shape.group == 1) {
      ASSERT_NO_FATAL_FAILURE(expect_selection(c, store, 0, group, target()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SelectTest, ::testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rkv_test
