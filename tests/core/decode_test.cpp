// Whole calls through the backend interface: fused, in two calls, split over threads, in drafts and
// after a rewind, always the same bits; and those are right.
#include <cmath>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "core/store_fixture.hpp"
#include "reference/attention.hpp"

namespace rkv_test {
namespace {

struct Sizes {
  rkv::Shape shape;
  int64_t page_size = 3, channels = 1, top_k = 1, prompt = 1, max_new = 40;
  bool dense = false;
  int64_t capacity() const {
    return dense ? prompt + max_new : (top_k / page_size + 1) * page_size;
  }
};

struct Backend {
  Backend(const Sizes& sizes, int threads, int max_rows) {
    rkv::BackendLimits limits;
    limits.shape = sizes.shape;
    limits.threads = threads;
    limits.max_rows = max_rows;
    limits.window = 1;
    limits.max_prompt = sizes.prompt;
    limits.max_live = sizes.prompt + sizes.max_new;
    limits.max_pages = sizes.dense ? 0 : limits.max_live / sizes.page_size + 1;
    limits.selection_capacity = sizes.capacity();
    memory = std::make_unique<GuardedMemory>(rkv::cpu::workspace_bytes(limits), 64);
    backend = rkv::cpu::create(limits, reinterpret_cast<std::byte*>(memory->data()));
  }
  std::unique_ptr<GuardedMemory> memory;
  std::unique_ptr<rkv::Backend> backend;
};

// Several sequences of one layer and the queries and new rows of their steps.
class Layer {
 public:
  Layer(const Sizes& sizes, int sequences, uint64_t seed, size_t target)
      : sizes_(sizes), lengths_(static_cast<size_t>(sequences), sizes.prompt) {
    Random random(seed);
    for (int s = 0; s < sequences; ++s) {
      stores_.push_back(
          std::make_unique<TestStore>(sizes.shape, sizes.prompt + sizes.max_new, sizes.page_size));
      stores_.back()->randomise(random, sizes.prompt);
      if (!sizes.dense) stores_.back()->summarise(sizes.prompt, target);
    }
  }
  // A call with `counts[s]` rows of each sequence s.
  struct Call {
    std::vector<rkv::DecodeRow> rows;
    std::vector<rkv::DecodeRun> runs;
    Strided q, k, v, out;
    std::vector<float> lse;
    std::vector<int32_t> indices, counts;
    rkv::DecodeTask task;
  };
  std::unique_ptr<Call> call(const std::vector<int>& counts, Random& random, bool append = true) {
    int total = 0;
    for (const int n : counts) total += n;
    const rkv::Shape& shape = sizes_.shape;
    const int64_t gap = total % 2 + 1;
    auto call = std::make_unique<Call>(
        Call{{},
             {},
             Strided(shape.query, total, shape.q_heads, shape.head_dim, gap),
             Strided(shape.kv, total, shape.kv_heads, shape.head_dim, gap),
             Strided(shape.kv, total, shape.kv_heads, shape.head_dim_v),
             Strided(shape.query, total, shape.q_heads, shape.head_dim_v, gap),
             {},
             {},
             {},
             {}});
    call->q.randomise(random, 1.5);
    call->k.randomise(random);
    call->v.randomise(random);
    call->lse.resize(static_cast<size_t>(total) * shape.q_heads);
    call->indices.resize(static_cast<size_t>(total * shape.kv_heads * (sizes_.capacity() + 2)), -9);
    call->counts.resize(static_cast<size_t>(total) * shape.kv_heads);
    int32_t next = 0;
    for (size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] == 0) continue;
      call->runs.push_back({next, counts[s]});
      for (int n = 0; n < counts[s]; ++n) {
        rkv::DecodeRow row;
        row.row = next++;
        row.append = append;
        row.dense = sizes_.dense;
        row.live = append ? ++lengths_[s] : lengths_[s] - counts[s] + n + 1;
        row.page_size = sizes_.page_size;
        row.channels = sizes_.channels;
        row.top_k = sizes_.top_k;
        row.store = stores_[s]->get();
        call->rows.push_back(row);
      }
    }
    rkv::DecodeTask& task = call->task;
    task.rows = call->rows.data();
    task.runs = call->runs.data();
    task.run_count = static_cast<int32_t>(call->runs.size());
    task.row_count = next;
    task.q = call->q.view();
    if (append) {
      task.k = call->k.view();
      task.v = call->v.view();
    }
    task.out = call->out.view();
    task.lse = call->lse.data();
    task.capacity = sizes_.capacity() + 2;
    task.attention.scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    return call;
  }
  void with_lists(Call& call) const {
    call.task.indices = call.indices.data();
    call.task.counts = call.counts.data();
  }
  int64_t& length(int s) { return lengths_[static_cast<size_t>(s)]; }
  const TestStore& store(int s) const { return *stores_[static_cast<size_t>(s)]; }
  // Every summary and row of [0, length).
  void expect_equal(const Layer& other) const {
    for (size_t s = 0; s < stores_.size(); ++s) {
      ASSERT_TRUE(stores_[s]->intact());
      const rkv::Shape& shape = sizes_.shape;
      for (int64_t h = 0; h < shape.kv_heads; ++h) {
        ASSERT_EQ(stores_[s]->keys(h, lengths_[s]).data,
                  other.stores_[s]->keys(h, lengths_[s]).data);
        ASSERT_EQ(stores_[s]->values(h, lengths_[s]).data,
                  other.stores_[s]->values(h, lengths_[s]).data);
        if (sizes_.dense) continue;
        for (int64_t p = 0; p < lengths_[s] / sizes_.page_size; ++p) {
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            for (const int64_t side : {0, 1}) {
              ASSERT_EQ(stores_[s]->summary(h, p, side, d, lengths_[s]),
                        other.stores_[s]->summary(h, p, side, d, lengths_[s]));
            }
          }
        }
      }
    }
  }

 private:
  Sizes sizes_;
  std::vector<std::unique_ptr<TestStore>> stores_;
  std::vector<int64_t> lengths_;
};

void expect_same(const Layer::Call& a, const Layer::Call& b, bool lists) {
  ASSERT_EQ(a.out.bytes(), b.out.bytes());
  ASSERT_EQ(a.lse, b.lse);
  for (size_t r = 0; r < a.rows.size(); ++r) ASSERT_EQ(a.rows[r].nonfinite, b.rows[r].nonfinite);
  if (!lists) return;
  ASSERT_EQ(a.counts, b.counts);
  ASSERT_EQ(a.indices, b.indices);
}

Sizes random_sizes(Random& random, int i) {
  static const int32_t kGroups[] = {1, 2, 3, 4, 7, 8};
  Sizes sizes;
  const auto dim = static_cast<int32_t>(8 * random.integer(1, 20));
  sizes.shape = make_shape(static_cast<int32_t>(random.integer(1, 3)), random.pick(kGroups), dim,
                           static_cast<int32_t>(8 * random.integer(1, 20)), random.pick(kTypes),
                           random.pick(kTypes));
  sizes.page_size = random.integer(1, 5);
  sizes.channels = random.integer(1, dim);
  sizes.prompt = random.integer(1, 900);
  sizes.top_k = random.integer(1, i % 3 == 0 ? sizes.prompt + 60 : sizes.prompt / 3 + 1);
  sizes.dense = i % 6 == 5;
  return sizes;
}

class DecodeTest : public ::testing::TestWithParam<rkv::cpu::Target> {
 protected:
  void SetUp() override { setenv("RKV_SIMD", GetParam().name, 1); }
  void TearDown() override { unsetenv("RKV_SIMD"); }
  size_t target() const { return GetParam().index; }
};

// The lists that decode writes are attended to exactly.
TEST_P(DecodeTest, OutputsFollowTheLists) {
  Random random(31);
  for (int i = 0; i < scaled(12); ++i) {
    const Sizes sizes = random_sizes(random, i);
    const rkv::Shape& shape = sizes.shape;
    Layer layer(sizes, 2, random.next(), target());
    Backend backend(sizes, 1 + i % 3, 4);
    for (int step = 0; step < 3; ++step) {
      const auto call = layer.call({1, 2}, random);
      layer.with_lists(*call);
      backend.backend->decode(call->task);
      for (int32_t r = 0; r < 3; ++r) {
        const int64_t live = call->rows[r].live;
        for (int32_t h = 0; h < shape.kv_heads; ++h) {
          const int64_t line = int64_t{r} * shape.kv_heads + h;
          const int32_t* list = call->indices.data() + line * call->task.capacity;
          const int32_t n = call->counts[line];
          const bool everything = sizes.dense || sizes.top_k >= live;
          ASSERT_GT(n, 0);
          if (everything) {
            ASSERT_EQ(n, live);
          } else {
            ASSERT_LE(n, (sizes.top_k + sizes.page_size - 1) / sizes.page_size * sizes.page_size);
          }
          for (int64_t j = n; j < call->task.capacity; ++j) ASSERT_EQ(list[j], -1);
          const std::vector<int64_t> rows(list, list + n);
          ASSERT_LT(rows.back(), live);
          const TestStore& store = layer.store(r == 0 ? 0 : 1);
          const rkv_ref::Rows q = call->q.rows_of(r, int64_t{h} * shape.group, shape.group);
          for (int64_t g = 0; g < shape.group; ++g) {
            const rkv_ref::AttentionResult want =
                rkv_ref::attention(q.row(g), store.keys(h, live), store.values(h, live), rows,
                                   call->task.attention.scale, 0);
            const int64_t head = int64_t{h} * shape.group + g;
            ASSERT_NEAR(call->lse[r * shape.q_heads + head], want.lse, 1e-4);
            for (int64_t d = 0; d < shape.head_dim_v; ++d) {
              const double step_size = shape.query == rkv::DType::kF32 ? 0 : 0x1p-7;
              ASSERT_NEAR(call->out.get(r, head, d), want.out[d],
                          5e-5 + step_size * std::fabs(want.out[d]));
            }
          }
        }
      }
    }
  }
}

TEST_P(DecodeTest, SameBitsForEveryThreadCountAndCut) {
  Random random(32);
  for (int i = 0; i < scaled(18); ++i) {
    const Sizes sizes = random_sizes(random, i);
    const uint64_t seed = random.next();
    const uint64_t steps_seed = random.next();
    std::unique_ptr<Layer> first;
    std::vector<std::unique_ptr<Layer::Call>> calls;
    for (const int threads : {1, 2, 5, 16}) {
      auto layer = std::make_unique<Layer>(sizes, 3, seed, target());
      Backend backend(sizes, threads, 8);
      Random steps(steps_seed);
      for (size_t step = 0; step < 6; ++step) {
        const std::vector<int> counts = {static_cast<int>(steps.integer(0, 2)), 1,
                                         step == 3 ? 0 : static_cast<int>(steps.integer(0, 3))};
        auto call = layer->call(counts, steps);
        const bool two_calls = threads == 2;
        if (threads != 5) layer->with_lists(*call);
        if (two_calls) {
          backend.backend->select(call->task);
          backend.backend->attend(call->task);
        } else {
          backend.backend->decode(call->task);
        }
        if (first == nullptr) {
          calls.push_back(std::move(call));
        } else {
          ASSERT_NO_FATAL_FAILURE(expect_same(*call, *calls[step], threads != 5))
              << threads << " threads, step " << step;
        }
      }
      ASSERT_TRUE(backend.memory->intact());
      if (first == nullptr) {
        first = std::move(layer);
      } else {
        ASSERT_NO_FATAL_FAILURE(layer->expect_equal(*first));
      }
    }
  }
}

// Drafts in one call, the same rows one per call, and later calls that append nothing.
TEST_P(DecodeTest, DraftsEqualSingleRows) {
  Random random(33);
  for (int i = 0; i < scaled(12); ++i) {
    Sizes sizes = random_sizes(random, i);
    sizes.page_size = random.integer(1, 2);  // so that some drafts flush the tail
    const uint64_t seed = random.next();
    constexpr int kDrafts = 33;
    Layer together(sizes, 1, seed, target());
    Layer one_by_one(sizes, 1, seed, target());
    Backend many(sizes, i % 2 == 0 ? 8 : 1, kDrafts);
    Backend single(sizes, 1, 1);
    const auto drafts = together.call({kDrafts}, random);
    together.with_lists(*drafts);
    many.backend->decode(drafts->task);
    const rkv::Shape& shape = sizes.shape;
    const auto again = together.call({kDrafts}, random, false);
    together.with_lists(*again);
    again->task.q = drafts->q.view();
    many.backend->decode(again->task);
    ASSERT_EQ(again->lse, drafts->lse);
    ASSERT_EQ(again->counts, drafts->counts);
    ASSERT_EQ(again->indices, drafts->indices);
    for (int r = 0; r < kDrafts; ++r) {
      const auto call = one_by_one.call({1}, random);
      one_by_one.with_lists(*call);
      call->task.q = drafts->q.view();
      call->task.k = drafts->k.view();
      call->task.v = drafts->v.view();
      call->task.q.data = drafts->q.view().at(r, 0);
      call->task.k.data = drafts->k.view().at(r, 0);
      call->task.v.data = drafts->v.view().at(r, 0);
      single.backend->decode(call->task);
      for (int64_t h = 0; h < shape.q_heads; ++h) {
        ASSERT_EQ(call->lse[h], drafts->lse[r * shape.q_heads + h]);
        for (int64_t d = 0; d < shape.head_dim_v; ++d) {
          ASSERT_EQ(call->out.get(0, h, d), drafts->out.get(r, h, d));
        }
      }
      const auto begin = drafts->indices.begin() + r * shape.kv_heads * call->task.capacity;
      ASSERT_TRUE(std::equal(call->indices.begin(), call->indices.end(), begin));
    }
    ASSERT_NO_FATAL_FAILURE(together.expect_equal(one_by_one));
  }
}

// Rows dropped and others appended: what a sequence without the dropped rows has.
TEST_P(DecodeTest, RewindEqualsNeverAppended) {
  Random random(34);
  for (int i = 0; i < scaled(12); ++i) {
    Sizes sizes = random_sizes(random, i);
    sizes.dense = false;
    sizes.max_new = 120;
    sizes.top_k = std::min(sizes.top_k, sizes.prompt);
    const uint64_t seed = random.next();
    Layer rewound(sizes, 1, seed, target());
    Layer straight(sizes, 1, seed, target());
    Backend backend(sizes, 2, 1);
    const uint64_t kept_seed = random.next();
    const int64_t kept = random.integer(0, 30);
    const int64_t dropped = random.integer(1, 60);
    Random kept_rows(kept_seed);
    Random same_rows(kept_seed);
    for (int64_t n = 0; n < kept; ++n) {
      backend.backend->decode(rewound.call({1}, kept_rows)->task);
      backend.backend->decode(straight.call({1}, same_rows)->task);
    }
    for (int64_t n = 0; n < dropped; ++n) backend.backend->decode(rewound.call({1}, random)->task);
    const int64_t before = rewound.length(0);
    rewound.length(0) = sizes.prompt + kept;
    backend.backend->rewind(rewound.store(0).get(), sizes.page_size, before, rewound.length(0));
    ASSERT_NO_FATAL_FAILURE(rewound.expect_equal(straight));
    for (int64_t n = 0; n < 25; ++n) {
      const auto a = rewound.call({1}, kept_rows);
      const auto b = straight.call({1}, same_rows);
      rewound.with_lists(*a);
      straight.with_lists(*b);
      backend.backend->decode(a->task);
      backend.backend->decode(b->task);
      ASSERT_NO_FATAL_FAILURE(expect_same(*a, *b, true));
    }
    ASSERT_NO_FATAL_FAILURE(rewound.expect_equal(straight));
  }
}

TEST_P(DecodeTest, NonFiniteRowsAreFlaggedAlone) {
  Random random(35);
  Sizes sizes;
  sizes.shape = make_shape(2, 3, 64, 64, rkv::DType::kF32, rkv::DType::kF32);
  sizes.prompt = 300;
  sizes.channels = 20;
  sizes.top_k = 300 + 100;
  for (const int threads : {1, 16}) {
    Layer layer(sizes, 2, 5, target());
    Backend backend(sizes, threads, 3);
    const auto call = layer.call({1, 2}, random);
    call->k.set(2, 1, 9, std::numeric_limits<double>::infinity());
    backend.backend->decode(call->task);
    EXPECT_EQ(call->rows[0].nonfinite, 0U);
    EXPECT_EQ(call->rows[1].nonfinite, 0U);
    EXPECT_EQ(call->rows[2].nonfinite, 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, DecodeTest, ::testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SimdTarget, ForcedByTheEnvironment) {
  for (const char* bad : {"avx512", "AVX2", "x"}) {
    setenv("RKV_SIMD", bad, 1);
    ASSERT_NE(rkv::cpu::simd_target_error(), nullptr);
    EXPECT_NE(std::string(rkv::cpu::simd_target_error()).find(all_targets()[0].name),
              std::string::npos);
  }
  setenv("RKV_SIMD", "", 1);
  EXPECT_EQ(rkv::cpu::simd_target_error(), nullptr);
  unsetenv("RKV_SIMD");
  EXPECT_EQ(rkv::cpu::simd_target_error(), nullptr);
  std::set<size_t> indices;
  for (const rkv::cpu::Target& target : all_targets()) indices.insert(target.index);
  EXPECT_EQ(indices.size(), all_targets().size());
}

TEST(Workspace, TooLargeIsReported) {
  rkv::BackendLimits limits;
  limits.shape = make_shape(8, 4, 128, 128, rkv::DType::kBF16, rkv::DType::kBF16);
  limits.max_rows = 1;
  limits.max_prompt = 1024;
  limits.window = 32;
  limits.max_live = int64_t{1} << 61;
  limits.max_pages = int64_t{1} << 61;
  limits.selection_capacity = 128;
  EXPECT_EQ(rkv::cpu::workspace_bytes(limits), -1);
  limits.max_pages = 432;
  EXPECT_GT(rkv::cpu::workspace_bytes(limits), 0);
}

}  // namespace
}  // namespace rkv_test
