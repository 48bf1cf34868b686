// Row 11: bytes of a sequence against the formula.
#include <algorithm>

#include "bench.hpp"
#include "session.hpp"

namespace rkv_bench {

void run_memory_rows(const Run& run, Prompt& prompt) {
  Row used{"11", "memory in use over the formula, ", "x", Better::kLower, {}, {}, {}, {}, 0, ""};
  const int64_t length = std::min<int64_t>(prompt.tokens, 131072);
  used.what += length_name(length) + " " + dtype_name(prompt.dtype);
  for (const int64_t budget : kBudgets) {
    Session session({prompt.dtype, length, budget, run.threads});
    session.open();
    session.prefill(prompt);
    session.fill(prompt);
    session.fill_last(prompt);
    const rkv_sequence_stats stats = session.stats();
    const rkv_plan& plan = session.plan();
    const int64_t pages = (plan.cap + plan.page_size - 1) / plan.page_size;
    const int64_t formula =
        (plan.cap * 2 * kHeadDim + 2 * kHeadDim * pages) * kKvHeads * element_bytes(prompt.dtype) +
        plan.cap * kKvHeads * static_cast<int64_t>(sizeof(int32_t));
    const int64_t bytes = stats.k_bytes + stats.v_bytes + stats.summary_bytes + stats.index_bytes;
    const rkv_memory& memory = session.memory();
    used.points.push_back((used.points.empty() ? "t = " : "") + std::to_string(budget));
    used.values.push_back(static_cast<double>(bytes) / static_cast<double>(formula));
    used.floors.push_back(1.02);
    used.goals.push_back(1.0);
    const std::string name = length_name(length) + ", t = " + std::to_string(budget);
    run.report->detail(name + ", live rows", static_cast<double>(stats.kept + stats.generated), "");
    run.report->detail(name + ", bytes in use", static_cast<double>(bytes) / 1e6, "MB");
    run.report->detail(name + ", slot over the formula (any prompt up to this length)",
                       static_cast<double>(memory.storage_bytes - memory.window_bytes) /
                           static_cast<double>(formula),
                       "x");
    run.report->detail(name + ", full KV over bytes in use",
                       static_cast<double>(stats.full_kv_bytes) / static_cast<double>(bytes), "x");
  }
  run.report->rows.push_back(used);
}

}  // namespace rkv_bench
