// The life of a sequence: order of calls, positions, capacity, and what a refused call leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;

rkv_cache_config small_config() {
  rkv_cache_config c = make_config(4, 2, 16, 100, 12, 16);
  c.prompt_budget = 40;
  c.page_size = 3;
  c.top_k = 10;
  return c;
}

// One row for a sequence at a position; the values do not matter.
struct Row {
  StepBuffers step;
  Row(Cache* cache, int seq, std::int64_t position) : step(cache, 1) {
    const StepData data(cache->config(), 3, position);
    step.seq[0] = seq;
    step.positions[0] = position;
    step.q.fill(data.q);
    step.k.fill(data.k);
    step.v.fill(data.v);
  }
};

rkv_status decode(Cache* cache, int seq, std::int64_t position) {
  Row row(cache, seq, position);
  const rkv_status status = row.step.decode();
  EXPECT_TRUE(row.step.sound());
  if (status == RKV_OK) {
    EXPECT_EQ('\0', cache->text()[0]);
  } else {
    EXPECT_NE('\0', cache->text()[0]) << "an error without a text";
    EXPECT_EQ(status, cache->error()->status);
  }
  return status;
}

rkv_status prefill(Cache* cache, int seq, std::int64_t prompt, int layer = 0) {
  const Prompt p(cache->config(), prompt, std::min<std::int64_t>(prompt, 32), 2);
  PromptTensors t(cache->config(), p, Placement());
  return cache->prefill(seq, layer, prompt - p.q.count, prompt, &t.q, &t.kv.k, &t.kv.v);
}

// B33: every entry in the wrong order. B21: COMPACT storage claims no second turn.
TEST(State, B21_B33_WrongOrder) {
  rkv_cache_config c = small_config();
  c.max_sequences = 2;
  Cache cache(c);
  EXPECT_EQ(RKV_BAD_STATE, decode(&cache, 0, 0));
  EXPECT_EQ(RKV_BAD_STATE, prefill(&cache, 0, 50));
  EXPECT_EQ(RKV_BAD_STATE, cache.close(0));
  EXPECT_EQ(RKV_BAD_STATE, cache.rewind(0, 0));
  ASSERT_EQ(RKV_OK, cache.open(0));
  EXPECT_EQ(RKV_BAD_STATE, cache.open(0));
  EXPECT_EQ(RKV_BAD_STATE, decode(&cache, 0, 0));
  EXPECT_EQ(RKV_BAD_STATE, Row(&cache, 0, 0).step.decode_select());
  EXPECT_EQ(RKV_BAD_STATE, Row(&cache, 0, 0).step.attend(0, true));
  EXPECT_EQ(RKV_OK, prefill(&cache, 0, 50)) << cache.text();
  EXPECT_EQ(RKV_BAD_STATE, prefill(&cache, 0, 50));  // COMPACT: once
  EXPECT_EQ(50, cache.stats(0).position);
  EXPECT_EQ(RKV_OK, decode(&cache, 0, 50));
  EXPECT_EQ(RKV_OK, cache.close(0));
  EXPECT_EQ(RKV_BAD_STATE, cache.close(0));
  EXPECT_EQ(RKV_BAD_STATE, decode(&cache, 0, 51));
  for (int seq : {-2, 2, 1000, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.open(seq)) << seq;
    EXPECT_NE(RKV_OK, cache.close(seq)) << seq;
    EXPECT_NE(RKV_OK, prefill(&cache, seq, 10)) << seq;
    EXPECT_EQ(RKV_BAD_STATE, decode(&cache, seq, 10)) << seq;
  }
  ASSERT_EQ(RKV_OK, cache.open(1));
  for (int layer : {-1, 1, 1 << 30}) {
    EXPECT_EQ(RKV_INVALID_ARGUMENT, prefill(&cache, 1, 10, layer)) << layer;
    EXPECT_EQ(RKV_INVALID_ARGUMENT, Row(&cache, 1, 10).step.decode(layer)) << layer;
  }
}

// A window whose rows are still coming: decode is BAD_STATE until the last call.
TEST(State, DecodeWaitsForTheLastPrefillCall) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  const Prompt p(c, 80, 32, 2);
  HostTensor first(c.kv_dtype, 20, 4, 16), last(c.kv_dtype, 12, 4, 16);
  first.fill(p.q.row(0));
  last.fill(p.q.row(20));
  ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 48, 80, &first, nullptr, nullptr)) << cache.text();
  EXPECT_EQ(RKV_BAD_STATE, decode(&cache, 0, 80));
  // Another S in the same turn, or rows beyond S, are refused; the turn goes on.
  EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.prefill(0, 0, 68, 81, &last, nullptr, nullptr));
  EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.prefill(0, 0, 69, 80, &last, nullptr, nullptr));
  EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.prefill(0, 0, -1, 80, &last, nullptr, nullptr));
  PromptTensors t(c, p, Placement());
  EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.prefill(0, 0, 68, 80, &last, nullptr, nullptr));
  ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 68, 80, &last, &t.kv.k, &t.kv.v)) << cache.text();
  EXPECT_EQ(32, cache.stats(0).window_rows);
  EXPECT_EQ(RKV_OK, decode(&cache, 0, 80));
}

// B18, B28: one step beyond the capacity is an error, never a silent drop; the cache goes on.
TEST(State, B18_B28_BeyondTheCapacity) {
  for (std::int64_t prompt : {1, 39, 40, 41, 100}) {
    rkv_cache_config c = small_config();
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    Twin twin(&cache, 0);
    twin.prefill(Prompt(c, prompt, std::min<std::int64_t>(prompt, 32), 2));
    for (std::int64_t p = prompt; p < prompt + 12 && !HasFailure(); ++p) twin.step(p, 2);
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(RKV_OUT_OF_CAPACITY, decode(&cache, 0, prompt + 12));
      EXPECT_EQ(prompt + 12, cache.stats(0).position);
      EXPECT_EQ(12, cache.stats(0).generated);
    }
    twin.step(prompt + 11, 2);
    twin.step(prompt + 5, 2);
    EXPECT_EQ(prompt + 6, cache.stats(0).position);
  }
}

// A request's own max_new bounds it, below the slot's.
TEST(State, ARequestsOwnLimit) {
  rkv_cache_config c = small_config();
  c.prompt_budget = 0;
  Cache cache(c);
  rkv_sequence_options o = zeroed<rkv_sequence_options>();
  o.max_new_tokens = 3;
  ASSERT_EQ(RKV_OK, cache.open(0, &o)) << cache.text();
  Twin twin(&cache, 0, 0, &o);
  twin.prefill(Prompt(c, 60, 32, 2));
  for (std::int64_t p = 60; p < 63; ++p) twin.step(p, 2);
  EXPECT_EQ(RKV_OUT_OF_CAPACITY, decode(&cache, 0, 63));
}

// A request that does not fit the slot names what it would need; the slot takes another.
TEST(State, ARequestThatDoesNotFit) {
  rkv_cache_config c = make_config(4, 2, 16, 2000, 8, 100);
  Cache cache(c);
  rkv_sequence_options o = zeroed<rkv_sequence_options>();
  o.token_budget = 2000;
  ASSERT_EQ(RKV_OK, cache.open(0, &o)) << cache.text();
  EXPECT_EQ(RKV_OUT_OF_CAPACITY, prefill(&cache, 0, 2000));
  EXPECT_NE('\0', cache.text()[0]);
  EXPECT_EQ(0, cache.stats(0).turn);
  EXPECT_EQ(RKV_OUT_OF_CAPACITY, prefill(&cache, 0, 2001));  // above max_prompt_tokens
  Twin twin(&cache, 0, 0, &o);
  twin.prefill(Prompt(c, 40, 32, 2));  // what fits is taken
  twin.step(40, 2);
}

// B25: rewinds that make no sense change nothing.
TEST(State, B25_Rewinds) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 100, 32, 2));
  for (std::int64_t p = 100; p < 106; ++p) twin.step(p, 2);
  for (std::int64_t bad : {std::int64_t{-1}, std::int64_t{107}, std::int64_t{99}, std::int64_t{0},
                           std::int64_t{50}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(RKV_INVALID_ARGUMENT, cache.rewind(0, bad)) << bad;
    EXPECT_EQ(106, cache.stats(0).position);
    EXPECT_EQ(6, cache.stats(0).generated);
  }
  EXPECT_EQ(RKV_OK, cache.rewind(0, 106));
  EXPECT_EQ(106, cache.stats(0).position);
  EXPECT_EQ(RKV_OK, cache.rewind(0, 103));
  EXPECT_EQ(103, cache.stats(0).position);
  twin.reference().rewind(103);
  EXPECT_EQ(twin.reference().positions(1), cache.positions(0)[1]);
  EXPECT_EQ(RKV_OK, cache.rewind(0, 100));
  EXPECT_EQ(0, cache.stats(0).generated);
  twin.step(100, 2);
}

// B16, B23: positions are the true ones and stand apart from the number of rows.
TEST(State, B16_B23_PositionsAndRowsAreTwoThings) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 100, 32, 2));
  for (std::int64_t p = 100; p < 112; ++p) {
    const rkv_sequence_stats s = cache.stats(0);
    EXPECT_EQ(p, s.position);
    EXPECT_EQ(40 + p - 100, s.kept + s.generated);
    EXPECT_EQ(100, s.prompt);
    EXPECT_EQ(112, s.max_position);
    EXPECT_EQ((s.kept + s.generated + 2) / 3, s.pages);
    twin.step(p, 2);
    const auto positions = cache.positions(0);
    for (int h = 0; h < 2; ++h) {
      EXPECT_EQ(twin.reference().positions(h), positions[h]);
      EXPECT_EQ(p, positions[h].back());
    }
  }
}

TEST(State, RefusedRowsLeaveTheWholeBatchAlone) {
  rkv_cache_config c = small_config();
  c.max_sequences = 3;
  c.max_rows = 8;
  Cache cache(c);
  for (int s = 0; s < 2; ++s) {
    ASSERT_EQ(RKV_OK, cache.open(s));
    ASSERT_EQ(RKV_OK, prefill(&cache, s, 60 + 10 * s));
    ASSERT_EQ(RKV_OK, decode(&cache, s, 60 + 10 * s));
  }
  const auto refused = [&](rkv_status want, std::vector<std::pair<int, std::int64_t>> rows) {
    StepBuffers step(&cache, static_cast<std::int64_t>(rows.size()));
    std::vector<double> q, k, v;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const StepData data(c, 3, rows[r].second);
      step.seq[r] = rows[r].first;
      step.positions[r] = rows[r].second;
      q.insert(q.end(), data.q.begin(), data.q.end());
      k.insert(k.end(), data.k.begin(), data.k.end());
      v.insert(v.end(), data.v.begin(), data.v.end());
    }
    step.q.fill(q);
    step.k.fill(k);
    step.v.fill(v);
    EXPECT_EQ(want, step.decode()) << cache.text();
    EXPECT_EQ(61, cache.stats(0).position);
    EXPECT_EQ(71, cache.stats(1).position);
  };
  refused(RKV_BAD_STATE, {{0, 61}, {1, 72}});                  // a gap
  refused(RKV_BAD_STATE, {{0, 61}, {2, 0}});                   // a closed slot
  refused(RKV_INVALID_ARGUMENT, {{1, 71}, {0, 59}});           // before the prompt's end
  refused(RKV_INVALID_ARGUMENT, {{1, 71}, {0, -1}});           // and below zero
  refused(RKV_INVALID_ARGUMENT, {{0, 61}, {1, 71}, {0, 62}});  // not adjacent
  refused(RKV_INVALID_ARGUMENT, {{0, 61}, {0, 63}});           // not consecutive
  refused(RKV_INVALID_ARGUMENT, {{0, 61}, {0, 61}});
  refused(RKV_INVALID_ARGUMENT, {{0, 62}, {0, 61}});
  refused(RKV_INVALID_ARGUMENT,
          {{0, 61}, {-1, 0}, {0, 62}});  // a padding row between is not adjacent
  refused(RKV_OUT_OF_CAPACITY,           // more rows than max_rows
          {{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {0, 61}});
  EXPECT_EQ(RKV_OK, decode(&cache, 0, 61));
  EXPECT_EQ(RKV_OK, decode(&cache, 1, 71));
}

// attend_only: a layer that reads its owner's rows of this step.
TEST(State, AttendOnlyNeitherDropsNorAppends) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  Twin twin(&cache, 0);
  twin.prefill(Prompt(c, 100, 32, 2));
  for (std::int64_t p = 100; p < 105; ++p) twin.step(p, 2);
  for (std::int64_t p : {104, 102, 100}) {
    Row row(&cache, 0, p);
    rkv_decode_args args = row.step.args(0);
    args.attend_only = 1;
    args.k = args.v = nullptr;
    ASSERT_EQ(RKV_OK, rkv_decode(cache.get(), &args, nullptr, cache.error())) << cache.text();
    EXPECT_EQ(105, cache.stats(0).position);
    // The reference sees the rows up to p alone.
    rkv_ref::Sequence then = twin.reference();
    then.rewind(p + 1);
    const StepData data(c, 3, p);
    for (int h = 0; h < 2; ++h) {
      const auto rows = row.step.selection.list(0, h);
      EXPECT_EQ("", compare_selection(rows, then, h, data.q.data())) << p;
      const auto heads = then.attend(h, data.q.data(), rows);
      for (int g = 0; g < 2; ++g) {
        EXPECT_EQ("", compare_output(row.step.out, 0, 2 * h + g, row.step.lse_of(0, 2 * h + g),
                                     heads[static_cast<std::size_t>(g)]));
      }
    }
  }
  Row row(&cache, 0, 105);
  rkv_decode_args args = row.step.args(0);
  args.attend_only = 1;
  EXPECT_EQ(RKV_BAD_STATE, rkv_decode(cache.get(), &args, nullptr, cache.error()));
}

// B20, B76: tensors that do not fit the config are refused by name, before anything is written.
TEST(State, B20_B76_TensorsThatDoNotFit) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  const Prompt p(c, 60, 32, 2);
  PromptTensors t(c, p, Placement());
  const auto refused = [&](rkv_tensor* tensor, auto change, rkv_status want) {
    const rkv_tensor saved = *tensor;
    change(tensor);
    EXPECT_EQ(want, cache.prefill(0, 0, 28, 60, &t.q, &t.kv.k, &t.kv.v)) << cache.text();
    EXPECT_NE('\0', cache.text()[0]);
    EXPECT_EQ(0, cache.stats(0).turn);
    *tensor = saved;
  };
  const rkv_status bad = RKV_INVALID_ARGUMENT;
  for (rkv_tensor* tensor : {t.q.raw(), t.kv.k.raw(), t.kv.v.raw()}) {
    refused(tensor, [](rkv_tensor* x) { x->shape[1] += 1; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->shape[2] -= 8; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->ndim = 2; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->ndim = 7; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->data = nullptr; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->dtype = 0; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->dtype = RKV_DTYPE_F16; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->struct_size = 0; }, bad);
    refused(tensor, [](rkv_tensor* x) { x->reserved[2] = 1; }, RKV_UNSUPPORTED);
    static const float scale = 1;
    refused(tensor, [](rkv_tensor* x) { x->scale = &scale; }, RKV_UNSUPPORTED);
  }
  refused(t.kv.k.raw(), [](rkv_tensor* x) { x->shape[0] = 59; }, bad);
  refused(t.kv.v.raw(), [](rkv_tensor* x) { x->shape[0] = 61; }, bad);
  ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 28, 60, &t.q, &t.kv.k, &t.kv.v)) << cache.text();

  Row row(&cache, 0, 60);
  const auto refuse_step = [&](rkv_tensor* tensor, auto change) {
    const rkv_tensor saved = *tensor;
    change(tensor);
    EXPECT_EQ(bad, row.step.decode()) << cache.text();
    EXPECT_EQ(60, cache.stats(0).position);
    *tensor = saved;
  };
  for (rkv_tensor* x : {row.step.q.raw(), row.step.k.raw(), row.step.v.raw(), row.step.out.raw()}) {
    refuse_step(x, [](rkv_tensor* y) { y->shape[0] = 2; });
    refuse_step(x, [](rkv_tensor* y) { y->shape[1] += 1; });
    refuse_step(x, [](rkv_tensor* y) { y->shape[2] += 8; });
    refuse_step(x, [](rkv_tensor* y) { y->data = nullptr; });
    refuse_step(x, [](rkv_tensor* y) { y->dtype = RKV_DTYPE_BF16; });
  }
  EXPECT_EQ(RKV_OK, row.step.decode()) << cache.text();
}

TEST(State, ListsThatAreTooSmall) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  ASSERT_EQ(RKV_OK, prefill(&cache, 0, 100));
  std::vector<std::int64_t> list(80, -5);
  std::int64_t count = 0;
  EXPECT_EQ(RKV_BUFFER_TOO_SMALL,
            rkv_kept_positions(cache.get(), 0, 0, nullptr, list.data(), 79, &count, cache.error()));
  EXPECT_EQ(list, std::vector<std::int64_t>(80, -5));
  EXPECT_EQ(RKV_OK,
            rkv_kept_positions(cache.get(), 0, 0, nullptr, list.data(), 80, &count, cache.error()));
  EXPECT_EQ(40, count);
  Row row(&cache, 0, 100);
  row.step.selection.get()->capacity -= 1;
  EXPECT_EQ(RKV_BUFFER_TOO_SMALL, row.step.decode());
  EXPECT_EQ(100, cache.stats(0).position);
  row.step.selection.get()->capacity += 1;
  row.step.selection.get()->space = 3;
  EXPECT_EQ(RKV_INVALID_ARGUMENT, row.step.decode());
  EXPECT_EQ(100, cache.stats(0).position);
}

// A selection of the caller's own that points nowhere. B40 for live rows.
TEST(State, B40_SelectionsThatPointNowhere) {
  rkv_cache_config c = small_config();
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  ASSERT_EQ(RKV_OK, prefill(&cache, 0, 100));
  ASSERT_EQ(RKV_OK, decode(&cache, 0, 100));
  for (int bad : {-1, -7, 41, 1000, INT32_MAX, INT32_MIN}) {
    Row row(&cache, 0, 100);
    rkv_selection* s = row.step.selection.get();
    std::fill_n(s->indices, 2 * s->capacity, -1);
    s->counts[0] = 2;
    s->counts[1] = 2;
    s->indices[0] = 1, s->indices[1] = 2;
    s->indices[s->capacity] = 0, s->indices[s->capacity + 1] = bad;
    EXPECT_EQ(RKV_INVALID_ARGUMENT, row.step.attend()) << bad;
    s->indices[s->capacity + 1] = 40;
    EXPECT_EQ(RKV_OK, row.step.attend()) << cache.text();
    s->counts[0] = static_cast<std::int32_t>(s->capacity) + 1;
    EXPECT_EQ(RKV_INVALID_ARGUMENT, row.step.attend());
    s->counts[0] = -1;
    EXPECT_EQ(RKV_INVALID_ARGUMENT, row.step.attend());
  }
}

// B33: random calls against a model of the state machine; every status as predicted.
TEST(State, B33_Fuzz) {
  rkv_cache_config c = small_config();
  c.max_sequences = 3;
  struct Slot {
    bool open = false;
    std::int64_t prompt = -1, length = 0;
  };
  Slot slots[3];
  Cache cache(c);
  Random random(11);
  for (int i = 0; i < scaled(6000) && !HasFailure(); ++i) {
    const int seq = static_cast<int>(random.integer(0, 2));
    Slot& slot = slots[seq];
    const bool ready = slot.open && slot.prompt >= 0;
    rkv_status want = RKV_OK, got = RKV_OK;
    const int call = static_cast<int>(random.integer(0, 9));
    const std::int64_t prompt = random.integer(1, 104);
    const std::int64_t position = slot.length + random.integer(-6, 1) + random.coin();
    switch (call) {
      case 0:
        got = cache.open(seq);
        want = slot.open ? RKV_BAD_STATE : RKV_OK;
        if (want == RKV_OK) slot = Slot{true, -1, 0};
        break;
      case 1:
        if (random.coin()) continue;
        got = cache.close(seq);
        want = slot.open ? RKV_OK : RKV_BAD_STATE;
        slot = Slot();
        break;
      case 2:
        got = prefill(&cache, seq, prompt);
        want = !slot.open || slot.prompt >= 0 ? RKV_BAD_STATE
               : prompt > 100                 ? RKV_OUT_OF_CAPACITY
                                              : RKV_OK;
        if (prompt > 100 && got == RKV_OUT_OF_CAPACITY) want = got;  // either error may come first
        if (want == RKV_OK) slot.prompt = slot.length = prompt;
        break;
      case 3:
        got = cache.rewind(seq, position);
        want = !slot.open ? RKV_BAD_STATE
               : !ready   ? got == RKV_INVALID_ARGUMENT ? got : RKV_BAD_STATE
               : position < slot.prompt || position > slot.length ? RKV_INVALID_ARGUMENT
                                                                  : RKV_OK;
        if (!ready && position == 0 && slot.open) want = got;  // nothing to drop
        if (want == RKV_OK && ready) slot.length = position;
        break;
      default:
        got = decode(&cache, seq, position);
        want = !ready                         ? RKV_BAD_STATE
               : position < slot.prompt       ? RKV_INVALID_ARGUMENT
               : position >= slot.prompt + 12 ? RKV_OUT_OF_CAPACITY
               : position > slot.length       ? RKV_BAD_STATE
                                              : RKV_OK;
        if (position >= slot.prompt + 12 && position > slot.length && got == RKV_BAD_STATE)
          want = got;
        if (want == RKV_OK) slot.length = position + 1;
        break;
    }
    EXPECT_EQ(want, got) << "call " << call << " seq " << seq << " position " << position << " S "
                         << slot.prompt << " length " << slot.length << ": " << cache.text();
    if (slot.open && slot.prompt >= 0) {
      EXPECT_EQ(slot.length, cache.stats(seq).position);
    }
  }
}

// What waits for later is refused with a text that names it. B70: 8-bit summaries.
TEST(State, B70_NothingAskedForIsIgnored) {
  const auto unsupported = [](auto change, const char* name) {
    rkv_cache_config c = small_config();
    change(&c);
    Cache cache(c);
    EXPECT_EQ(RKV_UNSUPPORTED, cache.status()) << name;
    EXPECT_NE(std::string::npos, std::string(cache.text()).find(name)) << cache.text();
  };
  unsupported([](rkv_cache_config* c) { c->storage = RKV_STORAGE_INDEXED; }, "storage");
  unsupported([](rkv_cache_config* c) { c->summary_dtype = RKV_DTYPE_E4M3; }, "summary_dtype");
  unsupported([](rkv_cache_config* c) { c->summary_dtype = RKV_DTYPE_E5M2; }, "summary_dtype");
  unsupported([](rkv_cache_config* c) { c->kv_dtype = RKV_DTYPE_E4M3; }, "kv_dtype");
  unsupported([](rkv_cache_config* c) { c->device_type = RKV_DEVICE_CUDA; }, "device");
  unsupported([](rkv_cache_config* c) { c->reserved[7] = 1; }, "reserved");
}

}  // namespace
