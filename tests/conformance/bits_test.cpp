// Same input, same SIMD target: same bits, whatever batch, chunks, repeats and rewinds.
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/life.hpp"

namespace {

using namespace rkv_test;

// B60: a row of a batch gives the bits of a call of its own; padding rows and the order of rows do
// not matter. B02: per-rank caches (local heads) are just caches.
TEST(Bits, B60_BatchesAndPadding) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(6, 2, 64, 900, 10, 60, dtype);
    const int sequences = 8;
    const std::int64_t lengths[sequences] = {900, 33, 1, 400, 32, 899, 120, 650};
    rkv_sequence_options options[sequences];
    for (int s = 0; s < sequences; ++s) {  // plans of their own
      options[s] = zeroed<rkv_sequence_options>();
      options[s].max_new_tokens = 6 + s % 4;
      options[s].token_budget = 60 - 5 * s;
    }
    std::vector<Trace> alone;
    for (int s = 0; s < sequences; ++s) {
      alone.push_back(life(c, lengths[s], 6, 20 + s, &options[s]));
    }
    c.max_sequences = sequences;
    c.max_rows = 33;
    c.num_threads = 2;
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
    for (int s = 0; s < sequences; ++s) {
      ASSERT_EQ(RKV_OK, cache.open(s, &options[s])) << cache.text();
      const Prompt p(c, lengths[s], std::min<std::int64_t>(lengths[s], 32), 20 + s);
      PromptTensors t(c, p, Placement());
      ASSERT_EQ(RKV_OK,
                cache.prefill(s, 0, lengths[s] - p.q.count, lengths[s], &t.q, &t.kv.k, &t.kv.v))
          << cache.text();
      EXPECT_EQ(alone[s].kept, cache.positions(s));
    }
    Random random(1);
    for (std::int64_t n = 0; n < 6; ++n) {
      // Sequences in random order, -1 rows between them.
      std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7};
      for (int s = sequences - 1; s > 0; --s) std::swap(order[s], order[random.integer(0, s)]);
      while (order.size() < (n == 5 ? 33 : 11)) {
        order.insert(order.begin() + random.integer(0, static_cast<std::int64_t>(order.size())),
                     -1);
      }
      const std::int64_t rows = static_cast<std::int64_t>(order.size());
      StepBuffers step(&cache, rows);
      std::vector<double> q, k, v;
      for (std::int64_t row = 0; row < rows; ++row) {
        const int s = order[row];
        step.seq[row] = s;
        step.positions[row] = s < 0 ? 1 << 30 : lengths[s] + n;
        const StepData data(c, s < 0 ? 999 : 20 + s, s < 0 ? 0 : lengths[s] + n);
        q.insert(q.end(), data.q.begin(), data.q.end());
        k.insert(k.end(), data.k.begin(), data.k.end());
        v.insert(v.end(), data.v.begin(), data.v.end());
      }
      step.q.fill(q);
      step.k.fill(k);
      step.v.fill(v);
      ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
      EXPECT_TRUE(step.sound());
      const std::size_t out_row = static_cast<std::size_t>(6 * 64 * dtype_size(dtype));
      const Bits bits = step.out.bits();
      for (std::int64_t row = 0; row < rows; ++row) {
        const Bits out(bits.begin() + row * out_row, bits.begin() + (row + 1) * out_row);
        if (order[row] < 0) {
          EXPECT_EQ(Bits(out_row, 0), out);
          for (int head = 0; head < 6; ++head) EXPECT_EQ(-INFINITY, step.lse_of(row, head));
          for (int h = 0; h < 2; ++h) EXPECT_TRUE(step.selection.list(row, h).empty());
          continue;
        }
        const Trace& mine = alone[order[row]];
        EXPECT_TRUE(std::equal(out.begin(), out.end(), mine.steps[n].begin()));
        EXPECT_EQ(0, std::memcmp(step.lse() + row * 6, mine.steps[n].data() + out_row, 24));
        for (int h = 0; h < 2; ++h) {
          EXPECT_EQ(mine.selections[2 * n + h], step.selection.list(row, h));
        }
      }
      if (HasFailure()) return;
    }
  }
}

// All rows -1: nothing happens but zeroed outputs. B57 has its paged twin in INDEXED storage.
TEST(Bits, OnlyPaddingRows) {
  rkv_cache_config c = make_config(4, 2, 32, 50, 4, 10);
  c.max_rows = 5;
  Cache cache(c);
  StepBuffers step(&cache, 5);
  std::fill(step.seq.begin(), step.seq.end(), -1);
  std::fill(step.positions.begin(), step.positions.end(), -99);
  ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
  EXPECT_EQ(Bits(5 * 4 * 32 * 4, 0), step.out.bits());
  EXPECT_TRUE(step.sound());
}

rkv_cache_config page_config(int dtype, int page, int unit) {
  rkv_cache_config c = make_config(6, 2, 64, 500, 40, 40, dtype);
  c.page_size = page;
  c.prompt_budget = 100;
  c.top_k = 20;
  c.selection_unit = unit;
  return c;
}

void prefill_plain(Cache* cache, std::int64_t prompt, std::uint64_t seed) {
  const rkv_cache_config& c = cache->config();
  const Prompt p(c, prompt, std::min<std::int64_t>(prompt, 32), seed);
  PromptTensors t(c, p, Placement());
  ASSERT_EQ(RKV_OK, cache->prefill(0, 0, prompt - p.q.count, prompt, &t.q, &t.kv.k, &t.kv.v))
      << cache->text();
}

// B26, B69: a step repeated, drafts rejected, two rewinds in a row: the bits of the straight run.
TEST(Bits, B26_B69_RepeatsAndRewinds) {
  for (int dtype : kDtypes) {
    for (int page : {1, 3, 4}) {
      const rkv_cache_config c = page_config(dtype, page, page % 2);
      const Trace straight = life(c, 500, 20, 6);
      Cache cache(c);
      ASSERT_EQ(RKV_OK, cache.open(0));
      prefill_plain(&cache, 500, 6);
      const auto expect_step = [&](std::int64_t at) {
        Trace one;
        decode_one(&cache, 0, at, 6, &one);
        EXPECT_EQ(straight.steps[at - 500], one.steps[0]) << "position " << at << " page " << page;
        EXPECT_EQ(straight.selections[2 * (at - 500)], one.selections[0]);
        EXPECT_EQ(straight.selections[2 * (at - 500) + 1], one.selections[1]);
        EXPECT_EQ(at + 1, cache.stats(0).position);
      };
      Trace drafts;
      for (std::int64_t at = 500; at < 506; ++at) expect_step(at);
      expect_step(505);  // a retried step
      // Four drafts with huge keys, three of them rejected: no bound may remember them.
      for (std::int64_t at = 506; at < 510; ++at) {
        StepBuffers step(&cache, 1);
        StepData data(c, at == 506 ? 6 : 77, at);
        if (at != 506) {
          for (double& x : data.k) x = rounded(dtype, static_cast<float>(50 * x));
        }
        fill_row(&step, 0, at, data);
        ASSERT_EQ(RKV_OK, step.decode());
      }
      expect_step(507);
      expect_step(508);
      ASSERT_EQ(RKV_OK, cache.rewind(0, 505)) << cache.text();
      ASSERT_EQ(RKV_OK, cache.rewind(0, 502)) << cache.text();
      EXPECT_EQ(502, cache.stats(0).position);
      EXPECT_EQ(2, cache.stats(0).generated);
      for (std::int64_t at = 502; at < 520; ++at) expect_step(at);
      for (std::int64_t at : {515, 510, 504, 500}) expect_step(at);  // lower and lower
      for (std::int64_t at = 501; at < 520; ++at) expect_step(at);
    }
  }
}

// Rows of one sequence in one call give the bits of one call per row.
TEST(Bits, SeveralRowsOfOneSequence) {
  for (int dtype : kDtypes) {
    for (int page : {1, 3, 5}) {
      for (int unit : {RKV_UNIT_PAGES, RKV_UNIT_TOKENS}) {
        rkv_cache_config c = page_config(dtype, page, unit);
        const Trace straight = life(c, 500, 24, 6);
        c.max_rows = 8;
        c.num_threads = 2;
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        prefill_plain(&cache, 500, 6);
        std::int64_t at = 500;
        for (std::int64_t rows : {5, 1, 8, 3, 7}) {
          StepBuffers step(&cache, rows);
          std::vector<double> q, k, v;
          for (std::int64_t r = 0; r < rows; ++r) {
            const StepData data(c, 6, at + r);
            step.seq[r] = 0;
            step.positions[r] = at + r;
            q.insert(q.end(), data.q.begin(), data.q.end());
            k.insert(k.end(), data.k.begin(), data.k.end());
            v.insert(v.end(), data.v.begin(), data.v.end());
          }
          step.q.fill(q);
          step.k.fill(k);
          step.v.fill(v);
          ASSERT_EQ(RKV_OK, step.decode()) << cache.text();
          const Bits bits = step.out.bits();
          const std::size_t row_bytes = bits.size() / static_cast<std::size_t>(rows);
          for (std::int64_t r = 0; r < rows; ++r) {
            const std::size_t n = static_cast<std::size_t>(at + r - 500);
            EXPECT_TRUE(std::equal(bits.begin() + r * row_bytes, bits.begin() + (r + 1) * row_bytes,
                                   straight.steps[n].begin()))
                << "row " << r << " at " << at;
            for (int h = 0; h < 2; ++h) {
              EXPECT_EQ(straight.selections[2 * n + h], step.selection.list(r, h));
            }
          }
          at += rows;
        }
      }
    }
  }
}

// select + attend is decode, bit for bit; select alone appends once, attend never does.
TEST(Bits, SelectThenAttendIsDecode) {
  for (int i = 0; i < scaled(40) && !HasFailure(); ++i) {
    Random random(700 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 1000, 2e7);
    random_stage1_options(&random, &c);
    random_stage2_options(&random, &c);
    c.key_as_query = 0;
    const std::int64_t prompt = c.max_prompt_tokens;
    const std::int64_t steps = std::min<std::int64_t>(6, c.max_new_tokens);
    const Trace fused = life(c, prompt, steps, 5);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    prefill_plain(&cache, prompt, 5);
    Trace split;
    split.kept = cache.positions(0);
    for (std::int64_t at = prompt; at < prompt + steps; ++at) {
      StepBuffers step(&cache, 1);
      fill_row(&step, 0, at, StepData(c, 5, at));
      ASSERT_EQ(RKV_OK, step.decode_select()) << cache.text();
      EXPECT_EQ(at + 1, cache.stats(0).position);
      ASSERT_EQ(RKV_OK, step.attend()) << cache.text();
      EXPECT_EQ(at + 1, cache.stats(0).position);
      EXPECT_TRUE(step.sound());
      record(step, c.kv_heads, &split);
    }
    EXPECT_TRUE(fused == split) << describe(c);
  }
}

// The outputs do not depend on whether the caller asks for selection and log-sum-exp.
TEST(Bits, NullableOutputsDoNotMatter) {
  const rkv_cache_config c = page_config(RKV_DTYPE_BF16, 3, RKV_UNIT_PAGES);
  const Trace straight = life(c, 500, 10, 6);
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  prefill_plain(&cache, 500, 6);
  for (std::int64_t at = 500; at < 510; ++at) {
    StepBuffers step(&cache, 1);
    fill_row(&step, 0, at, StepData(c, 6, at));
    rkv_decode_args args = step.args(0);
    args.lse = nullptr;
    args.selection = nullptr;
    ASSERT_EQ(RKV_OK, rkv_decode(cache.get(), &args, nullptr, cache.error())) << cache.text();
    const Bits out = step.out.bits();
    EXPECT_TRUE(std::equal(out.begin(), out.end(), straight.steps[at - 500].begin()));
  }
}

// A slot closed and opened again starts anew, in buffers of the last one.
TEST(Bits, AReopenedSlotStartsAnew) {
  const rkv_cache_config c = page_config(RKV_DTYPE_F16, 3, RKV_UNIT_PAGES);
  const Trace fresh = life(c, 400, 8, 2);
  Cache cache(c);
  for (std::int64_t prompt : {500, 37, 400}) {
    ASSERT_EQ(RKV_OK, cache.open(0));
    EXPECT_EQ(0, cache.stats(0).turn);
    prefill_plain(&cache, prompt, 2);
    Trace trace;
    trace.kept = cache.positions(0);
    for (std::int64_t at = prompt; at < prompt + 8; ++at) decode_one(&cache, 0, at, 2, &trace);
    if (prompt == 400) {
      EXPECT_TRUE(fresh == trace);
    }
    ASSERT_EQ(RKV_OK, cache.close(0)) << cache.text();
  }
}

// B02: KV heads split over ranks give what one process gives, bit for bit.
TEST(Bits, B02_HeadsSplitOverRanks) {
  const rkv_cache_config all = page_config(RKV_DTYPE_F16, 3, RKV_UNIT_PAGES);
  const Prompt p(all, 500, 32, 6);
  Cache whole(all);
  ASSERT_EQ(RKV_OK, whole.open(0));
  prefill_plain(&whole, 500, 6);
  for (int rank = 0; rank < 2; ++rank) {
    rkv_cache_config c = all;
    c.q_heads = 3;
    c.kv_heads = 1;
    Cache local(c);
    ASSERT_EQ(RKV_OK, local.open(0));
    EXPECT_EQ(whole.memory().k_bytes, 2 * local.memory().k_bytes);
    Prompt mine(c, 500, 32, 1);
    for (std::int64_t i = 0; i < 32; ++i) {
      std::copy_n(p.q.row(i) + rank * 192, 192, mine.q.row(i));
    }
    for (std::int64_t j = 0; j < 500; ++j) {
      std::copy_n(p.k.row(j) + rank * 64, 64, mine.k.row(j));
      std::copy_n(p.v.row(j) + rank * 64, 64, mine.v.row(j));
    }
    PromptTensors t(c, mine, Placement());
    ASSERT_EQ(RKV_OK, local.prefill(0, 0, 468, 500, &t.q, &t.kv.k, &t.kv.v));
    EXPECT_EQ(whole.positions(0)[rank], local.positions(0)[0]);
  }
}

}  // namespace
