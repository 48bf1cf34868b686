#include "replica.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

namespace rkv_bench {
namespace {

std::atomic<uint64_t> sink{0};

// Steps 1 and 2 of stage 2 for one KV head.
std::vector<int32_t> chosen_channels(const Prompt& prompt, int query, int64_t head, int32_t count) {
  std::vector<double> strength(kHeadDim), direction(kHeadDim);
  const int64_t first = (int64_t{query} * kQueryHeads + head * kGroup) * kHeadDim;
  for (int64_t i = 0; i < int64_t{kGroup} * kHeadDim; ++i) {
    const double q = to_float(prompt.step_q.data(), first + i, prompt.dtype);
    strength[static_cast<size_t>(i % kHeadDim)] += std::fabs(q);
    direction[static_cast<size_t>(i % kHeadDim)] += q;
  }
  std::vector<int32_t> order(kHeadDim);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return strength[static_cast<size_t>(a)] > strength[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  std::sort(order.begin(), order.end());
  for (int32_t& d : order) {
    if (direction[static_cast<size_t>(d)] > 0) d += kHeadDim;
  }
  return order;
}

}  // namespace

Replica::Replica(Session& session)
    : store_(session.store()),
      element_(element_bytes(session.setup().dtype)),
      page_size_(session.plan().page_size),
      live_(session.live()) {
  const int64_t blocks_read = rkv::flushed_pages(live_, page_size_);
  const int64_t loose = (live_ + page_size_ - 1) / page_size_ - blocks_read;
  for (int query = 0; query < kQueries; ++query) {
    const std::vector<std::vector<int32_t>> lists = session.selection(query);
    std::vector<Head> heads;
    for (int64_t h = 0; h < kKvHeads; ++h) {
      Head head;
      head.rows = lists[static_cast<size_t>(h)];
      head.channels = chosen_channels(session.prompt(), query, h, session.plan().num_channels);
      if (query == 0) {
        bytes_ += element_ *
                  (static_cast<int64_t>(head.channels.size()) * blocks_read + loose * 2 * kHeadDim +
                   static_cast<int64_t>(head.rows.size()) * 2 * kHeadDim);
      }
      heads.push_back(std::move(head));
    }
    steps_.push_back(std::move(heads));
  }
}

uint64_t Replica::read_head(const Head& head, int64_t index) const {
  const int64_t flushed = rkv::flushed_pages(live_, page_size_);
  const int64_t pages = (live_ + page_size_ - 1) / page_size_;
  const int64_t row_bytes = 2 * kHeadDim * element_;
  const int64_t page_bytes = 2 * kHeadDim * element_;
  const int64_t block_bytes = page_bytes * rkv::kPageBlock;
  const std::byte* kv = store_.kv + index * store_.rows * row_bytes;
  const std::byte* block = store_.pages + index * store_.blocks * block_bytes;
  uint64_t sum = 0;
  for (int64_t page = 0; page < flushed; page += rkv::kPageBlock) {
    const int64_t span = std::min(rkv::kPageBlock, flushed - page) * element_;
    sum ^= read_rows(block, head.channels.data(), static_cast<int64_t>(head.channels.size()),
                     rkv::kPageBlock * element_, (span + 63) / 64 * 64);
    block += block_bytes;
  }
  // The tail holds complete pages; the newest rows of a page that is not complete stand for it.
  const int64_t complete = live_ / page_size_;
  const std::byte* tail = store_.tail + index * rkv::kTailPages * page_bytes;
  sum ^= read_span(tail, (complete - flushed) * page_bytes);
  if (complete < pages) {
    sum ^= read_rows(kv + complete * page_size_ * row_bytes, nullptr, live_ - complete * page_size_,
                     row_bytes, kHeadDim * element_);
  }
  return sum ^ read_rows(kv, head.rows.data(), static_cast<int64_t>(head.rows.size()), row_bytes,
                         row_bytes);
}

void Replica::read(int i, Streamer& streamer) const {
  const std::vector<Head>& heads = steps_[static_cast<size_t>(i % kQueries)];
  streamer.pool().run(kKvHeads,
                      [&](int64_t h, int) { sink += read_head(heads[static_cast<size_t>(h)], h); });
}

}  // namespace rkv_bench
