// Stage 2 and attention that a second thread takes part in: the bits of the first one alone.
#include "core/cpu/shared.hpp"

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/store_fixture.hpp"

namespace rkv_test {
namespace {

using rkv::cpu::Claims;

// Every part of every piece of work is taken once, by whichever thread, and never after the piece
// is closed.
TEST(Shared, ClaimsGiveEachPartOnce) {
  constexpr int64_t kPieces = 3000;
  Claims claims;
  std::atomic<int64_t> piece{-1};  // that is open
  std::atomic<int64_t> done{0};    // parts that the others did
  std::atomic<int64_t> helped{0};
  std::atomic<bool> stopping{false};
  std::vector<std::atomic<int>> taken(64);
  const auto help = [&] {
    while (!stopping) {
      for (Claims::Claim c = claims.claim(3); !c.empty(); c = claims.claim(3)) {
        EXPECT_GE(piece, 0);
        EXPECT_LE(c.end, piece % 64);
        for (int64_t i = c.first; i < c.end; ++i) ++taken[static_cast<size_t>(i)];
        helped += c.end - c.first;
        done += c.end - c.first;
      }
      std::this_thread::yield();
    }
  };
  std::thread helpers[] = {std::thread(help), std::thread(help)};
  // On one core a helper may come late.
  for (int64_t p = 0; p < kPieces || (helped == 0 && p < 1000 * kPieces); ++p) {
    const int64_t parts = p % 64;
    piece = p;
    done = 0;
    int64_t limit = 1;
    claims.open(parts, limit);
    if (p % 8 == 0) std::this_thread::yield();
    int64_t own = 0;
    // A limit that moves, as where results wait for their turn.
    while (own + done < parts) {
      const Claims::Claim c = claims.claim(3);
      EXPECT_LE(c.end, std::min(limit, parts));
      for (int64_t i = c.first; i < c.end; ++i) ++taken[static_cast<size_t>(i)];
      own += c.end - c.first;
      claims.allow(++limit);
    }
    claims.close();
    piece = -1;
    for (int64_t i = 0; i < 64; ++i) {
      ASSERT_EQ(taken[static_cast<size_t>(i)].exchange(0), i < parts ? 1 : 0) << i << " of " << p;
    }
  }
  stopping = true;
  for (std::thread& helper : helpers) helper.join();
  EXPECT_GT(helped, 0);
}

// What a thread needs for itself.
struct Scratch {
  Scratch(const rkv::Shape& shape, int64_t pages, int64_t slot_count) : slots(slot_count) {
    const auto carve = [&](rkv::cpu::Arena& arena) {
      q = arena.take<float>(rkv::cpu::query_stride(shape) * shape.group);
      select = rkv::cpu::carve_select(arena, shape, pages);
      attend = rkv::cpu::carve_attend(arena, shape);
      chunk = rkv::cpu::carve_partial(arena, shape);
      sum = rkv::cpu::carve_partial(arena, shape);
      for (rkv::cpu::ChunkSlot& slot : slots) slot.result = rkv::cpu::carve_partial(arena, shape);
    };
    rkv::cpu::Arena measure(nullptr);
    carve(measure);
    memory = std::make_unique<GuardedMemory>(measure.used(), 64);
    rkv::cpu::Arena arena(reinterpret_cast<std::byte*>(memory->data()));
    carve(arena);
  }
  std::unique_ptr<GuardedMemory> memory;
  std::vector<rkv::cpu::ChunkSlot> slots;
  float* q = nullptr;
  rkv::cpu::SelectScratch select;
  rkv::cpu::AttendScratch attend;
  rkv::cpu::Partial chunk, sum;
};

class SharedTest : public ::testing::TestWithParam<rkv::cpu::Target> {
 protected:
  size_t target() const { return GetParam().index; }
};

std::vector<float> floats_of(const rkv::Shape& shape, const rkv::cpu::Partial& sum) {
  std::vector<float> all;
  for (int32_t g = 0; g < shape.group; ++g) {
    all.push_back(sum.top[g]);
    all.push_back(sum.total[g]);
    const float* out = sum.out + g * rkv::cpu::value_stride(shape);
    if (std::isfinite(sum.top[g])) all.insert(all.end(), out, out + shape.head_dim_v);
  }
  return all;
}

TEST_P(SharedTest, SameBitsAsAlone) {
  Random random(77);
  rkv::cpu::Pool pool(2);  // its worker hears the calls, but no job of it is open
  int64_t helps = 0;
  for (int i = 0; i < scaled(60) || (helps == 0 && i < 3000); ++i) {
    const rkv::Shape shape = make_shape(1, static_cast<int32_t>(random.integer(1, 5)), 32, 32,
                                        random.pick(kTypes), rkv::DType::kF32);
    const int64_t page_size = random.integer(1, 4);
    const int64_t live = random.integer(2, 3000);
    const int64_t pages = (live + page_size - 1) / page_size;
    TestStore store(shape, live, page_size);
    store.randomise(random, live);
    if (i % 5 == 0) store.set(0, random.integer(0, live - 1), 3, HUGE_VAL);
    store.summarise(live, target());
    // Few slots, so that threads have to wait for the owner too.
    Scratch own(shape, pages, random.integer(1, 20));
    Scratch other(shape, 0, 0);
    for (int64_t d = 0; d < rkv::cpu::query_stride(shape) * shape.group; ++d) {
      own.q[d] = static_cast<float>(random.normal());
    }
    rkv::SelectOptions options;
    rkv::cpu::SelectArgs select;
    select.shape = &shape;
    select.store = &store.get();
    select.options = &options;
    select.live = live;
    select.page_size = page_size;
    select.channels = random.integer(1, 32);
    select.top_k = random.integer(1, live - 1);
    select.tail_is_current = true;
    select.q = own.q;
    std::vector<int32_t> list(static_cast<size_t>(live + page_size)), shared_list = list;
    bool nonfinite = false, shared_nonfinite = false;
    const int64_t count =
        rkv::cpu::select_rows(select, own.select, list.data(), &nonfinite, target());
    rkv::cpu::AttendArgs attend;
    attend.shape = &shape;
    attend.store = &store.get();
    attend.list = random.integer(0, 3) == 0 ? nullptr : list.data();
    attend.count = attend.fetched = attend.list == nullptr ? live : count;
    attend.q = own.q;
    nonfinite |= rkv::cpu::attend_rows(attend, own.attend, own.chunk, own.sum, target());
    const std::vector<float> alone = floats_of(shape, own.sum);

    rkv::cpu::Shared shared;
    shared.attend.use(own.slots.data(), static_cast<int64_t>(own.slots.size()));
    std::atomic<bool> finished{false};
    std::thread helper([&] {
      while (!finished) {
        if (shared.select.help(2, target())) ++helps;
        if (shared.attend.help(other.attend, 2, target())) ++helps;
        std::this_thread::yield();
      }
    });
    for (int repeat = 0; repeat < 10; ++repeat) {
      shared_nonfinite = false;
      ASSERT_EQ(count, shared.select.select(select, own.select, pool, shared_list.data(),
                                            &shared_nonfinite, target()));
      ASSERT_EQ(0, std::memcmp(list.data(), shared_list.data(),
                               static_cast<size_t>(count) * sizeof(int32_t)));
      shared_nonfinite |=
          shared.attend.attend(attend, own.attend, pool, own.chunk, own.sum, target());
      const std::vector<float> together = floats_of(shape, own.sum);
      ASSERT_EQ(alone.size(), together.size());
      ASSERT_EQ(0, std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)));
      ASSERT_EQ(nonfinite, shared_nonfinite);
    }
    finished = true;
    helper.join();
    EXPECT_TRUE(own.memory->intact() && other.memory->intact());
  }
  EXPECT_GT(helps, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, SharedTest, ::testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rkv_test
