// Rows 6 and 8: the step taken apart. The same kernels in the same order as the library's own step, one
// item per KV head, with a clock between the parts.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "bench.hpp"
#include "core/cpu/attend.hpp"
#include "core/cpu/summaries.hpp"
#include "core/cpu/target.hpp"
#include "pieces.hpp"
#include "sampling.hpp"
#include "session.hpp"

namespace rkv_bench {
namespace {

using Times = std::array<double, kPieces>;

class PiecewiseStep {
 public:
  PiecewiseStep(Session& session, int threads)
      : session_(session), store_(session.store()), target_(rkv::cpu::resolve_target().index) {
    shape_.q_heads = kQueryHeads;
    shape_.kv_heads = kKvHeads;
    shape_.group = kGroup;
    shape_.head_dim = shape_.head_dim_v = kHeadDim;
    shape_.kv = shape_.query = static_cast<rkv::DType>(session.setup().dtype);
    attention_.scale = 1.0F / std::sqrt(static_cast<float>(kHeadDim));
    workers_.resize(static_cast<size_t>(threads));
    rkv::cpu::Arena measured(nullptr);
    carve(measured);
    memory_ = HugeBuffer(measured.used());
    rkv::cpu::Arena arena(memory_.data());
    carve(arena);
  }

  // Live rows after the append.
  void run(int64_t live, int query, rkv::cpu::Pool& pool) {
    for (Worker& worker : workers_) worker.times.fill(0);
    pool.run(kKvHeads, [&](int64_t head, int thread) {
      run_head(live, query, static_cast<int32_t>(head), workers_[static_cast<size_t>(thread)]);
    });
  }

  // Seconds per piece of the last run, over all threads.
  Times times() const {
    Times sum{};
    for (const Worker& worker : workers_) {
      for (size_t i = 0; i < kPieces; ++i) sum[i] += worker.times[i];
    }
    return sum;
  }

 private:
  struct Worker {
    float* q = nullptr;
    int32_t* list = nullptr;
    rkv::cpu::SelectScratch select;
    rkv::cpu::AttendScratch attend;
    rkv::cpu::Partial chunk, sum;
    alignas(64) Times times{};
  };

  void carve(rkv::cpu::Arena& arena) {
    for (Worker& worker : workers_) {
      worker.q = arena.take<float>(rkv::cpu::query_stride(shape_) * kGroup);
      worker.list = arena.take<int32_t>(session_.memory().selection_capacity);
      worker.select = rkv::cpu::carve_select(arena, shape_, session_.plan().pages);
      worker.attend = rkv::cpu::carve_attend(arena, shape_);
      worker.chunk = rkv::cpu::carve_partial(arena, shape_);
      worker.sum = rkv::cpu::carve_partial(arena, shape_);
    }
  }

  rkv::View view(const std::byte* data, int64_t heads) const {
    rkv::View view;
    view.data = const_cast<std::byte*>(data);
    view.dtype = shape_.kv;
    view.row = heads * kHeadDim;
    view.head = kHeadDim;
    view.channel = 1;
    return view;
  }

  void run_head(int64_t live, int query, int32_t head, Worker& worker) {
    const rkv_plan& plan = session_.plan();
    const Prompt& prompt = session_.prompt();
    const int64_t row = query % kQueries;
    const double start = seconds_now();
    rkv::cpu::append_row(shape_, store_, head, view(prompt.step_k.data(), kKvHeads),
                         view(prompt.step_v.data(), kKvHeads), row, live, plan.page_size, target_);
    const double appended = seconds_now();
    rkv::cpu::load_query(shape_, view(prompt.step_q.data(), kQueryHeads), row, head, worker.q,
                         target_);
    const double loaded = seconds_now();
    rkv::cpu::SelectArgs select;
    select.shape = &shape_;
    select.store = &store_;
    select.options = &options_;
    select.scale = attention_.scale;
    select.head = head;
    select.live = live;
    select.page_size = plan.page_size;
    select.channels = plan.num_channels;
    select.top_k = plan.top_k;
    select.tail_is_current = true;
    select.q = worker.q;
    const int64_t count = timed_select(select, worker.select, worker.list, worker.times.data());
    const double selected = seconds_now();
    rkv::cpu::AttendArgs attend;
    attend.shape = &shape_;
    attend.store = &store_;
    attend.options = attention_;
    attend.head = head;
    attend.list = worker.list;
    attend.count = attend.fetched = count;
    attend.q = worker.q;
    rkv::cpu::attend_rows(attend, worker.attend, worker.chunk, worker.sum, target_);
    const double attended = seconds_now();
    rkv::cpu::store_result(shape_, worker.sum, view(out_.data(), kQueryHeads), 0, head, nullptr,
                           target_);
    worker.times[kAppend] += appended - start;
    worker.times[kQuery] += loaded - appended;
    worker.times[kAttend] += attended - selected;
    worker.times[kStore] += seconds_now() - attended;
  }

  Session& session_;
  rkv::LayerStore store_;
  size_t target_;
  rkv::Shape shape_;
  rkv::AttentionOptions attention_;
  rkv::SelectOptions options_;
  HugeBuffer memory_, out_{int64_t{kQueryHeads} * kHeadDim * 4};
  std::vector<Worker> workers_;
};

}  // namespace

void run_piece_rows(const Run& run, Prompt& prompt) {
  Streamer& streamer = *run.streamer;
  const int64_t length = prompt.tokens >= 131072 ? 131072 : 32768;
  const std::string name = length_name(length) + " " + dtype_name(prompt.dtype);
  Row select{"6", "channels, softmax and top-k, share of the step, " + name,
             "%", Better::kLower,
             {},  {},
             {},  {},
             0,   ""};
  Row append{
      "8", "append, share of the t = 256 step, " + name, "%", Better::kLower, {}, {}, {6}, {3}, 0,
      ""};
  for (const int64_t budget : kBudgets) {
    Session session({prompt.dtype, length, budget, run.threads});
    session.open();
    session.prefill(prompt);
    session.fill(prompt);
    PiecewiseStep step(session, run.threads);
    // Every place within a flush of the tail once, so that the mean of the appends is that of many.
    const int64_t places = rkv::kTailPages * session.plan().page_size;
    const int64_t first = session.live() - places + 1;
    std::array<Series, kPieces> pieces;
    Series walls, shares;
    double append_sum = 0, worked_sum = 0;
    for (int64_t i = -1; i < places; ++i) {
      streamer.evict();
      const double start = seconds_now();
      step.run(first + std::max<int64_t>(i, 0), static_cast<int>(i + 1), streamer.pool());
      const double wall = seconds_now() - start;
      if (i < 0) continue;
      const Times times = step.times();
      const double threads = run.threads;
      for (size_t p = 0; p < kPieces; ++p) pieces[p].seconds.push_back(times[p] / threads);
      walls.seconds.push_back(wall);
      // Of the time that the threads worked: one that the system held up would shrink every share.
      const double worked = std::accumulate(times.begin(), times.end(), 0.0) / threads;
      shares.seconds.push_back((times[kChannels] + times[kSoftmax] + times[kTopK]) / threads /
                               worked);
      append_sum += times[kAppend] / threads;
      worked_sum += worked;
    }
    const std::string at = name + ", t = " + std::to_string(budget);
    for (size_t p = 0; p < kPieces; ++p) {
      run.report->detail(at + ", piece: " + kPieceNames[p], pieces[p].median() * 1e6, "us");
    }
    run.report->detail(at + ", piece: append, mean of a flush",
                       append_sum / static_cast<double>(places) * 1e6, "us");
    run.report->detail(at + ", step in pieces", walls.median() * 1e6, "us");
    select.points.push_back((select.points.empty() ? "t = " : "") + std::to_string(budget));
    select.values.push_back(100 * shares.median());
    select.floors.push_back(25);
    select.goals.push_back(12);
    if (budget == 256) append.values = {100 * append_sum / worked_sum};
  }
  run.report->rows.push_back(select);
  run.report->rows.push_back(append);
}

}  // namespace rkv_bench
