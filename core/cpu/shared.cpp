#include "core/cpu/shared.hpp"

#include <algorithm>

#include "core/cpu/backoff.hpp"

namespace rkv::cpu {

void Claims::open(int64_t parts, int64_t limit) noexcept {
  // After close(), whose acquire keeps these two from being seen with the number before.
  parts_.store(parts, std::memory_order_relaxed);
  limit_.store(limit, std::memory_order_relaxed);
  // The next number, and no part taken.
  taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Claims::allow(int64_t limit) noexcept { limit_.store(limit, std::memory_order_release); }

void Claims::close() noexcept { taken_.fetch_or(kClosed, std::memory_order_acq_rel); }

// Several parts, so that a thread can fetch the next one ahead; fewer towards the end, so that all
// are done at about the same time.
Claims::Claim Claims::claim(int64_t threads) noexcept {
  uint64_t before = taken_.load(std::memory_order_acquire);
  for (;;) {
    const auto first = static_cast<int64_t>(before & kClosed);
    const int64_t parts = parts_.load(std::memory_order_relaxed);
    const int64_t end = std::min(parts, limit_.load(std::memory_order_acquire));
    if (first >= end) return {};
    const int64_t some = std::clamp<int64_t>((parts - first) / (2 * threads), 1, 4);
    const int64_t count = std::min(some, end - first);
    // Were the parts or the limit another piece's than `before`, this would fail.
    if (taken_.compare_exchange_weak(before, before + static_cast<uint64_t>(count),
                                     std::memory_order_acq_rel, std::memory_order_acquire)) {
      return {first, first + count};
    }
  }
}

int64_t SharedSelect::select(const SelectArgs& args, const SelectScratch& scratch, Pool& pool,
                             int32_t* out, bool* nonfinite, size_t target) noexcept {
  const int64_t threads = pool.threads();
  const int64_t blocks = score_blocks(args);
  start_select(args, scratch, target);
  args_ = args;
  scratch_ = scratch;
  done_.store(0, std::memory_order_relaxed);
  blocks_.open(blocks, blocks);
  if (blocks > 1) pool.call_helpers();
  int64_t own = 0;
  // What may be fetched early: all that follows while no other thread took a block, and `last` is
  // the end of the last claim.
  int64_t last = 0;
  bool alone = true;
  for (Claims::Claim c = blocks_.claim(threads); !c.empty(); c = blocks_.claim(threads)) {
    alone = alone && c.first == last;
    last = c.end;
    score_pages(args, scratch, {c.first, c.end, alone ? blocks : c.end, !alone}, target);
    own += c.end - c.first;
  }
  score_loose_pages(args, scratch, target);
  Backoff backoff;
  while (own + done_.load(std::memory_order_acquire) < blocks) backoff.wait();
  blocks_.close();
  return finish_select(args, scratch, out, nonfinite, target);
}

bool SharedSelect::help(int64_t threads, size_t target) noexcept {
  bool helped = false;
  for (Claims::Claim c = blocks_.claim(threads); !c.empty(); c = blocks_.claim(threads)) {
    helped = true;
    const SelectArgs args = args_;  // the members share a line with what every claim writes
    const SelectScratch scratch = scratch_;
    score_pages(args, scratch, {c.first, c.end, c.end, true}, target);
    done_.fetch_add(c.end - c.first, std::memory_order_release);
  }
  return helped;
}

void SharedAttend::use(ChunkSlot* slots, int64_t count) noexcept {
  slots_ = slots;
  slot_count_ = count;
}

bool SharedAttend::attend(const AttendArgs& args, const AttendScratch& scratch, Pool& pool,
                          const Partial& chunk, const Partial& sum, size_t target) noexcept {
  const int64_t chunks = (args.count + kChunkRows - 1) / kChunkRows;
  args_ = args;
  nonfinite_.store(false, std::memory_order_relaxed);
  chunks_.open(chunks, slot_count_);
  if (chunks > 1) pool.call_helpers();
  clear_partial(*args.shape, sum);
  bool nonfinite = false;
  int64_t merged = 0;
  const auto merge = [&](const Partial& result) {
    merge_partial(*args.shape, result, sum, target);
    if (++merged + slot_count_ <= chunks) chunks_.allow(merged + slot_count_);
  };
  AttendArgs own = args;
  int64_t last = 0;  // as in select
  bool alone = true;
  Backoff backoff;
  while (merged < chunks) {
    ChunkSlot& next = slots_[merged % slot_count_];
    if (next.ready.load(std::memory_order_acquire)) {
      next.ready.store(false, std::memory_order_relaxed);
      merge(next.result);
      backoff.reset();
      continue;
    }
    const Claims::Claim c = chunks_.claim(pool.threads());
    if (c.empty()) {
      backoff.wait();  // another thread is at work on `next`
      continue;
    }
    alone = alone && c.first == last;
    last = c.end;
    own.fetched = alone ? args.count : std::min(args.count, c.end * kChunkRows);
    for (int64_t i = c.first; i < c.end; ++i) {
      ChunkSlot& slot = slots_[i % slot_count_];
      const bool in_turn = i == merged;
      const bool cold = i == 0 || (i == c.first && !alone);
      nonfinite |= attend_chunk(own, i, cold, scratch, in_turn ? chunk : slot.result, target);
      if (in_turn) {
        merge(chunk);
      } else {
        slot.ready.store(true, std::memory_order_relaxed);
      }
    }
  }
  chunks_.close();
  return nonfinite || nonfinite_.load(std::memory_order_relaxed);
}

bool SharedAttend::help(const AttendScratch& scratch, int64_t threads, size_t target) noexcept {
  bool helped = false;
  for (Claims::Claim c = chunks_.claim(threads); !c.empty(); c = chunks_.claim(threads)) {
    helped = true;
    AttendArgs args = args_;
    args.fetched = std::min(args.count, c.end * kChunkRows);
    for (int64_t i = c.first; i < c.end; ++i) {
      ChunkSlot& slot = slots_[i % slot_count_];
      if (attend_chunk(args, i, i == c.first, scratch, slot.result, target)) {
        nonfinite_.store(true, std::memory_order_relaxed);
      }
      slot.ready.store(true, std::memory_order_release);
    }
  }
  return helped;
}

}  // namespace rkv::cpu
