// Where fp32 is exact there is no tolerance: small integers, ties everywhere, lists equal to the
// last member. And the comparison of the other tests itself: it must see what is wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

void small_integers(Random* random, std::vector<double>* values, int largest) {
  for (double& x : *values) x = static_cast<double>(random->integer(-largest, largest));
}

// One window row, one head, one channel that is not zero: equal keys tie exactly, however the scale
// is applied. The largest one comes again every 16 keys, since an implementation may take
// exponentials against the maximum of a block; that must not tell equal keys apart here.
TEST(Ties, Stage1OfSmallIntegers) {
  for (int i = 0; i < scaled(150); ++i) {
    Random random(100 + static_cast<std::uint64_t>(i));
    const std::int64_t prompt = random.integer(40, 900);
    rkv_cache_config c = make_config(1, 1, 8, prompt, 4, 16, random.pick(kDtypes));
    c.window_size = 1;
    c.kernel_size = static_cast<int>(2 * random.integer(0, 12) + 1);
    c.sinks = static_cast<int>(random.integer(0, 5));
    c.prompt_budget = 1 + c.sinks + random.integer(0, prompt / 2);
    c.softmax_scale = 0.5f;
    SCOPED_TRACE(describe(c));
    Prompt p(c, prompt, 1, 1);
    std::fill(p.q.data.begin(), p.q.data.end(), 0.0);
    std::fill(p.k.data.begin(), p.k.data.end(), 0.0);
    p.q.row(0)[3] = 1;
    for (std::int64_t j = 0; j < prompt; ++j) {
      p.k.row(j)[3] = j % 16 == 0 ? 4 : static_cast<double>(random.integer(-4, 4));
    }
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
    Twin twin(&cache, 0);
    twin.prefill(p);
    rkv_ref::Sequence reference(reference_config(c));
    ASSERT_EQ(reference.prefill(p.q, p.k, p.v)[0].kept, cache.positions(0)[0]);
  }
}

// One head: page scores are integers over one common divisor; channels tie, pages tie.
TEST(Ties, Stage2OfSmallIntegers) {
  for (int i = 0; i < scaled(150); ++i) {
    Random random(400 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = make_config(1, 1, 16, 300, 10, 16, random.pick(kDtypes));
    random_stage2_options(&random, &c);
    c.prompt_budget = random.integer(60, 299);
    c.top_k = random.integer(1, 50);
    c.selection_domain = RKV_SOFTMAX_TOKENS;
    SCOPED_TRACE(describe(c));
    Prompt p(c, 300, 32, 1);
    small_integers(&random, &p.k.data, 2);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0)) << cache.text();
    Twin twin(&cache, 0);
    twin.prefill(p);
    for (std::int64_t at = 300; at < 310; ++at) {
      StepData data(c, 1, at);
      small_integers(&random, &data.q, 2);
      small_integers(&random, &data.k, 2);
      StepBuffers step(&cache, 1);
      step.positions[0] = at;
      step.q.fill(data.q);
      step.k.fill(data.k);
      step.v.fill(data.v);
      ASSERT_EQ(RKV_OK, step.decode());
      twin.reference().append(at, data.k.data(), data.v.data());
      ASSERT_EQ(twin.reference().select(0, data.q.data()).rows, step.selection.list(0, 0))
          << "position " << at;
    }
  }
}

// A group of equal heads: every head ranks alike, equal pages tie exactly in the sum as well.
TEST(Ties, EqualPagesOfAGroup) {
  for (int heads : {2, 3, 5, 8}) {
    for (int unit : {RKV_UNIT_PAGES, RKV_UNIT_TOKENS}) {
      rkv_cache_config c = make_config(heads, 1, 16, 240, 8, 16);
      c.prompt_budget = 240;
      c.page_size = 4;
      c.top_k = 30;
      c.selection_unit = unit;
      Random random(static_cast<std::uint64_t>(heads));
      Prompt p(c, 240, 32, 1);
      std::vector<double> pattern = normal_values(&random, 6 * 4 * 16, c.kv_dtype);
      for (std::size_t x = 0; x < p.k.data.size(); ++x) p.k.data[x] = pattern[x % pattern.size()];
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0));
      Twin twin(&cache, 0);
      twin.prefill(p);
      StepData data(c, 1, 240);
      StepBuffers step(&cache, 1);
      step.positions[0] = 240;
      step.q.fill(data.q);
      step.k.fill(data.k);
      step.v.fill(data.v);
      ASSERT_EQ(RKV_OK, step.decode());
      twin.reference().append(240, data.k.data(), data.v.data());
      EXPECT_EQ(twin.reference().select(0, data.q.data()).rows, step.selection.list(0, 0));
    }
  }
}

// ---- the comparison sees what is wrong ----------------------------------------------------------

TEST(Comparison, SeesAWrongKeptSet) {
  rkv_ref::Stage1Result r;
  r.window_rows = 1;
  r.score = {9, 1, 5, 5.00005, 2, 0};
  r.pooled = r.score;
  r.kept = {0, 3, 6};
  EXPECT_EQ("", compare_kept({0, 3, 6}, r, 7, 0));
  EXPECT_EQ("", compare_kept({0, 2, 6}, r, 7, 0));  // within 2e-5 of the cut
  EXPECT_NE("", compare_kept({0, 4, 6}, r, 7, 0));
  EXPECT_NE("", compare_kept({2, 3, 6}, r, 7, 0));  // 0 is far above the cut
  EXPECT_NE("", compare_kept({0, 3, 5}, r, 7, 0));  // the window is gone
  EXPECT_NE("", compare_kept({0, 6}, r, 7, 0));
  EXPECT_NE("", compare_kept({0, 6, 3}, r, 7, 0));
  EXPECT_NE("", compare_kept({0, 3, 3}, r, 7, 0));
  r.pooled = {9, 9, 5, 5, 5, 0};  // one plateau at the cut: its own score decides
  r.score = {9, 0, 1, 5, 4, 0};
  r.kept = {0, 1, 3, 6};
  EXPECT_EQ("", compare_kept({0, 1, 3, 6}, r, 7, 0));
  EXPECT_NE("", compare_kept({0, 1, 4, 6}, r, 7, 0));
  EXPECT_NE("", compare_kept({0, 1, 2, 6}, r, 7, 0));
}

TEST(Comparison, SeesAWrongSelection) {
  rkv_ref::Stage2Result r;
  rkv_ref::Stage2Options options;
  options.top_k = 4;
  r.rank = {1, 5, 4.00001, 4, 0};  // five pages of two rows, the last of one
  rkv_ref::select_pages(9, 2, options, &r);
  std::vector<std::string> exchanges;
  const auto verdict = [&](const std::vector<std::int64_t>& rows) {
    return compare_pages(rows, r, 9, 2, options, false, &exchanges);
  };
  EXPECT_EQ("", verdict({2, 3, 4, 5}));
  EXPECT_TRUE(exchanges.empty());
  EXPECT_EQ("", verdict({2, 3, 6, 7}));
  EXPECT_EQ(2u, exchanges.size());
  EXPECT_NE("", verdict({4, 5, 6, 7}));
  EXPECT_NE("", verdict({0, 1, 2, 3}));
  EXPECT_NE("", verdict({2, 3, 4}));
  EXPECT_NE("", verdict({2, 3}));
  EXPECT_NE("", verdict({2, 3, 4, 5, 8}));
  EXPECT_NE("", verdict({2, 3, 5, 6}));
  EXPECT_NE("", verdict({3, 2, 4, 5}));
  EXPECT_NE("", verdict({2, 3, 4, 9}));
  options.tokens_unit = true;
  options.top_k = 3;
  r.rows.clear();
  rkv_ref::select_pages(9, 2, options, &r);
  EXPECT_EQ("", verdict({2, 3, 4}));
  EXPECT_EQ("", verdict({2, 3, 6}));
  EXPECT_NE("", verdict({2, 3, 5}));
  EXPECT_NE("", verdict({2, 4, 5}));
  EXPECT_NE("", verdict({2, 4, 6}));
  EXPECT_NE("", verdict({2, 3, 4, 5}));
}

TEST(Comparison, SeesAWrongOutput) {
  for (int dtype : kDtypes) {
    HostTensor out(dtype, 1, 1, 4);
    rkv_ref::AttentionResult r;
    r.out = {0.1, -2, 30, 0};
    r.lse = 3;
    out.fill(r.out);
    EXPECT_EQ("", compare_output(out, 0, 0, 3, r));
    EXPECT_EQ("", compare_output(out, 0, 0, 3.0001f, r));
    EXPECT_NE("", compare_output(out, 0, 0, 3.001f, r));
    EXPECT_NE("", compare_output(out, 0, 0, NAN, r));
    for (std::size_t d = 0; d < 4; ++d) {
      std::vector<double> wrong = r.out;
      wrong[d] += std::max(0.001, 0.02 * std::fabs(wrong[d]));
      out.fill(wrong);
      EXPECT_NE("", compare_output(out, 0, 0, 3, r)) << dtype << " " << d;
      wrong[d] = NAN;
      out.fill(wrong);
      EXPECT_NE("", compare_output(out, 0, 0, 3, r));
    }
  }
}

}  // namespace
