// Prefill in pieces: any chunking, prefix hits, sequences in turn. The kept set is the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

// B22, B31: any chunking keeps the same set; earlier calls may be left out, a repeat overwrites.
TEST(Chunks, B22_B31_ChunkedPrefill) {
  for (int dtype : kDtypes) {
    for (std::int64_t prompt : {40, 513, 543, 545, 1100}) {
      rkv_cache_config c = make_config(4, 2, 32, 1100, 4, 30, dtype);
      const Prompt whole(c, prompt, prompt, 8);
      std::vector<std::vector<std::int64_t>> expected;
      for (std::int64_t chunk : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{7},
                                 std::int64_t{31}, std::int64_t{32}, std::int64_t{33},
                                 std::int64_t{512}, std::int64_t{-1}, std::int64_t{-2}}) {
        Cache cache(c);
        ASSERT_EQ(RKV_OK, cache.open(0));
        HostTensor k(c.kv_dtype, prompt, 2, 32), v(c.kv_dtype, prompt, 2, 32);
        k.fill(whole.k.data);
        v.fill(whole.v.data);
        const auto feed = [&](std::int64_t start, std::int64_t n, bool poison) {
          HostTensor q(c.kv_dtype, n, 4, 32, Layout::kPaddedRows);
          std::vector<double> values(whole.q.row(start), whole.q.row(start + n));
          if (poison) std::fill(values.begin(), values.end(), 77.0);
          q.fill(values);
          const bool last = start + n == prompt;
          ASSERT_EQ(RKV_OK, cache.prefill(0, 0, start, prompt, &q, last ? &k : nullptr,
                                          last ? &v : nullptr))
              << cache.text();
        };
        if (chunk == 0) {
          feed(0, prompt, false);
        } else if (chunk == -1) {  // only the last 50 rows, in two calls
          const std::int64_t start = std::max<std::int64_t>(0, prompt - 50);
          feed(start, 11, false);
          feed(start + 11, prompt - start - 11, false);
        } else if (chunk == -2) {  // a row given twice: the later one counts
          const std::int64_t start = std::max<std::int64_t>(0, prompt - 32);
          feed(start, 20, true);
          feed(start, 20, false);
          feed(start + 20, prompt - start - 20, false);
        } else {
          for (std::int64_t at = 0; at < prompt; at += chunk) {
            feed(at, std::min(chunk, prompt - at), false);
          }
        }
        if (expected.empty()) expected = cache.positions(0);
        EXPECT_EQ(expected, cache.positions(0)) << "S " << prompt << " chunk " << chunk;
        EXPECT_EQ(std::min<std::int64_t>(32, prompt), cache.stats(0).window_rows);
      }
    }
  }
}

// A window with a hole counts only the unbroken run that ends at S, as after a prefix hit.
TEST(Chunks, TheWindowIsTheUnbrokenRun) {
  rkv_cache_config c = make_config(4, 2, 32, 600, 4, 30);
  const Prompt p(c, 600, 32, 8);
  std::vector<std::vector<std::int64_t>> expected;
  for (int with_older_rows = 0; with_older_rows < 2; ++with_older_rows) {
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    HostTensor k(c.kv_dtype, 600, 2, 32), v(c.kv_dtype, 600, 2, 32);
    k.fill(p.k.data);
    v.fill(p.v.data);
    HostTensor older(c.kv_dtype, 10, 4, 32), last(c.kv_dtype, 7, 4, 32);
    older.fill(p.q.row(5));  // positions 573..582; 583..592 are never given
    last.fill(p.q.row(25));  // positions 593..599
    if (with_older_rows == 1) {
      ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 573, 600, &older, nullptr, nullptr)) << cache.text();
    }
    ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 593, 600, &last, &k, &v)) << cache.text();
    EXPECT_EQ(7, cache.stats(0).window_rows);
    if (expected.empty()) expected = cache.positions(0);
    EXPECT_EQ(expected, cache.positions(0));
  }
  rkv_ref::Sequence reference(reference_config(c));
  rkv_ref::Rows seven(0, p.q.width);
  for (int i = 25; i < 32; ++i) seven.append(p.q.row(i));
  const auto stages = reference.prefill(seven, p.k, p.v);
  for (int h = 0; h < 2; ++h) EXPECT_EQ("", compare_kept(expected[h], stages[h], 600, 0));
}

// B10: sequences prefilled in pieces, call by call in turn, keep what each keeps alone.
TEST(Chunks, B10_InterleavedPrefills) {
  rkv_cache_config c = make_config(4, 2, 32, 400, 4, 30, RKV_DTYPE_F16);
  c.layers = 2;
  c.max_sequences = 3;
  c.max_prefills = 3;
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
  const std::int64_t lengths[] = {400, 350, 300};
  std::vector<Prompt> prompts;
  for (int s = 0; s < 3; ++s) {
    ASSERT_EQ(RKV_OK, cache.open(s));
    prompts.emplace_back(c, lengths[s], 32, 40 + s);
  }
  for (std::int64_t part = 0; part < 4; ++part) {
    for (int s : {2, 0, 1}) {
      for (int layer : {1, 0}) {
        HostTensor q(c.kv_dtype, 8, 4, 32), k(c.kv_dtype, lengths[s], 2, 32),
            v(c.kv_dtype, lengths[s], 2, 32);
        q.fill(prompts[s].q.row(8 * part));
        k.fill(prompts[s].k.data);
        v.fill(prompts[s].v.data);
        ASSERT_EQ(RKV_OK, cache.prefill(s, layer, lengths[s] - 32 + 8 * part, lengths[s], &q,
                                        part == 3 ? &k : nullptr, part == 3 ? &v : nullptr))
            << cache.text();
      }
    }
  }
  for (int s = 0; s < 3; ++s) {
    for (int layer : {0, 1}) {
      Cache alone(c);
      ASSERT_EQ(RKV_OK, alone.open(0));
      PromptTensors t(c, prompts[s], Placement());
      ASSERT_EQ(RKV_OK,
                alone.prefill(0, layer, lengths[s] - 32, lengths[s], &t.q, &t.kv.k, &t.kv.v));
      EXPECT_EQ(alone.positions(0, layer), cache.positions(s, layer));
    }
  }
}

}  // namespace
