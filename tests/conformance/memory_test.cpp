// Bytes: what the query says, what a sequence uses, and sizes that no 32-bit number holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

rkv_error g_error = zeroed<rkv_error>();

rkv_memory query(const rkv_cache_config& c, rkv_status want = RKV_OK) {
  rkv_memory m = zeroed<rkv_memory>();
  EXPECT_EQ(want, rkv_cache_memory(&c, &m, &g_error)) << g_error.text;
  return m;
}

// B04: the total is the sum of the items, for any config; one layout routine, no drift.
TEST(Memory, B04_TheTotalIsTheSumOfTheItems) {
  for (int i = 0; i < scaled(300); ++i) {
    Random random(60 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 5000, 1e9);
    random_stage1_options(&random, &c);
    random_stage2_options(&random, &c);
    c.layers = static_cast<int>(random.integer(1, 40));
    c.max_sequences = static_cast<int>(random.integer(1, 20));
    c.max_prefills = static_cast<int>(random.integer(1, 3));
    const rkv_memory m = query(c);
    EXPECT_EQ(m.storage_bytes, m.k_bytes + m.v_bytes + m.summary_bytes + m.index_bytes +
                                   m.window_bytes + m.table_bytes)
        << describe(c);
    EXPECT_GT(m.alignment, 0);
    EXPECT_EQ(0, m.alignment & (m.alignment - 1));
    if (HasFailure()) break;
  }
}

// B01: random configs run in guarded buffers of exactly the size asked for (Cache checks both),
// several sequences and layers at once, to the last row.
TEST(Memory, B01_BuffersOfExactlyTheSizeAskedFor) {
  for (int i = 0; i < scaled(60) && !HasFailure(); ++i) {
    Random random(90 + static_cast<std::uint64_t>(i));
    rkv_cache_config c = random_shape(&random, 800, 8e6);
    random_stage1_options(&random, &c);
    random_stage2_options(&random, &c);
    c.max_new_tokens = random.integer(1, 8);
    c.layers = static_cast<int>(random.integer(1, 3));
    c.max_sequences = static_cast<int>(random.integer(1, 3));
    SCOPED_TRACE(describe(c) + " i=" + std::to_string(i));
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
    for (int s = 0; s < c.max_sequences; ++s) {
      ASSERT_EQ(RKV_OK, cache.open(s));
      const std::int64_t prompt =
          s == 0 ? c.max_prompt_tokens : random.integer(1, c.max_prompt_tokens);
      for (int layer = 0; layer < c.layers && !HasFailure(); ++layer) {
        Twin twin(&cache, s, layer);
        twin.prefill(Prompt(c, prompt, std::min<std::int64_t>(prompt, 64), i));
        for (std::int64_t p = prompt; p < prompt + c.max_new_tokens && !HasFailure(); ++p) {
          twin.step(p, i);
        }
      }
    }
  }
}

TEST(Memory, BuffersThatAreTooSmallOrAskew) {
  const rkv_cache_config c = make_config(4, 2, 16, 100, 8, 16);
  const rkv_memory m = query(c);
  GuardedMemory storage(m.storage_bytes + m.alignment, m.alignment);
  GuardedMemory workspace(m.workspace_bytes + m.alignment, m.alignment);
  const auto refused = [&](std::int64_t less_storage, std::int64_t less_workspace,
                           std::int64_t shift, rkv_status want) {
    rkv_buffers b = zeroed<rkv_buffers>();
    b.storage = storage.data() + shift;
    b.storage_bytes = m.storage_bytes - less_storage;
    b.workspace = workspace.data();
    b.workspace_bytes = m.workspace_bytes - less_workspace;
    rkv_cache* cache = nullptr;
    EXPECT_EQ(want, rkv_cache_create(&c, &b, &cache, &g_error)) << g_error.text;
    if (want == RKV_OK) {
      rkv_cache_destroy(cache);
    } else {
      EXPECT_EQ(nullptr, cache);
      EXPECT_NE('\0', g_error.text[0]);
    }
  };
  refused(0, 0, 0, RKV_OK);
  refused(1, 0, 0, RKV_BUFFER_TOO_SMALL);
  refused(0, 1, 0, RKV_BUFFER_TOO_SMALL);
  refused(m.storage_bytes, 0, 0, RKV_BUFFER_TOO_SMALL);
  refused(m.storage_bytes + 1, 0, 0, RKV_BUFFER_TOO_SMALL);
  if (m.alignment > 1) refused(0, 0, 1, RKV_INVALID_ARGUMENT);
}

// B19: bytes follow the KV heads, not the query heads. B02: and the local ones of a rank.
TEST(Memory, B02_B19_BytesFollowTheLocalKvHeads) {
  const rkv_memory grouped = query(make_config(32, 8, 128, 10000, 100, 256, RKV_DTYPE_F16));
  const rkv_memory plain = query(make_config(8, 8, 128, 10000, 100, 256, RKV_DTYPE_F16));
  EXPECT_EQ(plain.k_bytes, grouped.k_bytes);
  EXPECT_EQ(plain.v_bytes, grouped.v_bytes);
  EXPECT_EQ(plain.summary_bytes, grouped.summary_bytes);
  EXPECT_EQ(plain.index_bytes, grouped.index_bytes);
  for (int ranks : {2, 4, 8}) {
    const rkv_memory rank =
        query(make_config(32 / ranks, 8 / ranks, 128, 10000, 100, 256, RKV_DTYPE_F16));
    EXPECT_EQ(grouped.k_bytes, ranks * rank.k_bytes);
    EXPECT_EQ(grouped.v_bytes, ranks * rank.v_bytes);
    EXPECT_EQ(grouped.summary_bytes, ranks * rank.summary_bytes);
  }
}

// B01: 16-bit K and V take half the bytes, and so do their summaries.
TEST(Memory, B01_BytesFollowTheType) {
  const rkv_memory wide = query(make_config(8, 2, 64, 5000, 100, 256, RKV_DTYPE_F32));
  for (int dtype : {RKV_DTYPE_F16, RKV_DTYPE_BF16}) {
    const rkv_memory half = query(make_config(8, 2, 64, 5000, 100, 256, dtype));
    EXPECT_EQ(wide.k_bytes, 2 * half.k_bytes);
    EXPECT_EQ(wide.v_bytes, 2 * half.v_bytes);
    EXPECT_EQ(wide.summary_bytes, 2 * half.summary_bytes);
  }
}

// What a sequence really uses: within 1.02 of the formula (cap * (D + Dv) + 2 D pages) * Hkv.
TEST(Memory, StatsCountTheBytesInUse) {
  for (int dtype : kDtypes) {
    rkv_cache_config c = make_config(8, 2, 64, 6000, 64, 128, dtype);
    c.head_dim_v = 48;
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    twin.prefill(Prompt(c, 6000, 32, 3));
    for (std::int64_t p = 6000; p < 6064 && !HasFailure(); ++p) twin.step(p, 3);
    const rkv_sequence_stats s = cache.stats(0);
    const double size = static_cast<double>(dtype_size(dtype));
    const double rows = static_cast<double>(s.kept + s.generated);
    const double pages = static_cast<double>(s.pages);
    EXPECT_EQ(s.pages, static_cast<std::int64_t>(std::ceil(
                           rows / static_cast<double>(twin.reference().plan().page_size))));
    const double need = (rows * (64 + 48) + 2 * 64 * pages) * 2 * size;
    const double used = static_cast<double>(s.k_bytes + s.v_bytes + s.summary_bytes);
    EXPECT_GE(used, need);
    EXPECT_LE(used, 1.02 * need);
    EXPECT_EQ(s.full_kv_bytes, 6064 * (64 + 48) * 2 * dtype_size(dtype));
    const std::int64_t selected =
        (twin.reference().plan().top_k + twin.reference().plan().page_size - 1) /
        twin.reference().plan().page_size * twin.reference().plan().page_size;
    EXPECT_EQ(s.bytes_read_per_step,
              2 * (twin.reference().plan().num_channels * s.pages + selected * (64 + 48)) *
                  dtype_size(dtype));
  }
}

// B71, B83: sizes far beyond 32 bits are exact, and what 64 bits cannot hold is refused.
TEST(Memory, B71_B83_HugeSizes) {
  rkv_cache_config c = make_config(128, 128, 256, 1 << 24, 1 << 10, 1 << 26, RKV_DTYPE_BF16);
  c.layers = 64;
  c.max_sequences = 16;
  const std::int64_t rows = (std::int64_t{1} << 24) + (1 << 10);
  const std::int64_t slots = 64 * 16;
  const rkv_memory m = query(c);
  EXPECT_GE(m.k_bytes, rows * 128 * 256 * 2 * slots);
  EXPECT_LE(static_cast<double>(m.k_bytes),
            1.01 * static_cast<double>(rows) * 128 * 256 * 2 * static_cast<double>(slots));
  EXPECT_GE(m.storage_bytes, m.k_bytes + m.v_bytes);
  for (std::int64_t prompt : {std::int64_t{1} << 31, std::int64_t{1} << 40, INT64_MAX}) {
    rkv_cache_config big = make_config(8, 8, 128, prompt, 16, 256);
    query(big, RKV_INVALID_ARGUMENT);
    EXPECT_NE('\0', g_error.text[0]);
    big = make_config(8, 8, 128, 1000, prompt, 256);
    query(big, RKV_INVALID_ARGUMENT);
  }
  c.q_heads = c.kv_heads = 1 << 20;
  c.layers = 256;
  c.max_sequences = 1 << 20;
  rkv_memory wrapped = zeroed<rkv_memory>();
  EXPECT_NE(RKV_OK, rkv_cache_memory(&c, &wrapped, &g_error)) << "2^80 bytes: no wrap";
  EXPECT_NE('\0', g_error.text[0]);
}

// With buffers NULL the library allocates and frees; the bits are the same.
TEST(Memory, OwnBuffers) {
  const rkv_cache_config c = make_config(4, 2, 32, 300, 8, 30, RKV_DTYPE_F16);
  Cache cache(c, false);
  ASSERT_EQ(RKV_OK, cache.status()) << cache.text();
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 300, 32, 3));
  for (std::int64_t p = 300; p < 308 && !HasFailure(); ++p) twin.step(p, 3);
}

}  // namespace
