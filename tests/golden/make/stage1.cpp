// Section 2 of the algorithm: which prompt tokens are kept.
#include <cmath>
#include <limits>

#include "book.hpp"

namespace rkv_golden {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

struct Prompt {
  const char* name;
  int q_heads, kv_heads, head_dim, dtype;  // dtype: 1 F32, 2 F16, 3 BF16
  std::int64_t tokens;
  const char* fields;  // budget and options
};

std::string shape(const Prompt& p) {
  return "layers=1 q_heads=" + std::to_string(p.q_heads) +
         " kv_heads=" + std::to_string(p.kv_heads) + " head_dim=" + std::to_string(p.head_dim) +
         " kv_dtype=" + std::to_string(p.dtype) + " max_prompt_tokens=" + std::to_string(p.tokens) +
         " max_new_tokens=8";
}

// The whole prompt in one call.
const Prompt kPrompts[] = {
    {"g1-d8", 2, 2, 8, 1, 300, "token_budget=40"},
    {"g3-d16", 3, 1, 16, 1, 257, "token_budget=64"},
    {"g4-d64", 8, 2, 64, 1, 700, "token_budget=96"},
    {"g7-d128", 7, 1, 128, 1, 500, "token_budget=128"},
    {"g1-d128-f16", 1, 1, 128, 2, 900, "token_budget=64"},
    {"g3-d80-bf16", 6, 2, 80, 3, 400, "token_budget=50"},
    {"g4-d96-f16", 4, 1, 96, 2, 333, "token_budget=33"},
    {"g7-d40-bf16", 7, 1, 40, 3, 1000, "token_budget=100"},
    {"g2-d256", 2, 1, 256, 1, 260, "token_budget=32"},
    {"g16-d24", 16, 1, 24, 1, 200, "token_budget=48"},
    {"f32-queries-bf16-keys", 4, 2, 32, 3, 350, "query_dtype=1 token_budget=50"},
    {"f16-queries-f32-keys", 2, 1, 32, 1, 350, "query_dtype=2 token_budget=50"},
    {"long", 4, 1, 64, 1, 1500, "token_budget=128 num_threads=2"},
    {"three-threads", 6, 3, 16, 1, 1200, "token_budget=64 num_threads=3"},
    {"ratio", 4, 2, 16, 1, 600, "compression_ratio=12"},
    {"one-token", 2, 1, 8, 1, 1, "token_budget=16"},
    {"within-window", 2, 1, 8, 1, 20, "token_budget=4"},
    {"window-and-one", 2, 1, 8, 1, 33, "token_budget=4 prompt_budget=32"},
    {"all-kept", 4, 2, 16, 1, 100, "token_budget=400"},
    {"budget-is-window", 4, 2, 16, 1, 200, "token_budget=20 prompt_budget=32"},
    {"budget-is-window-and-sinks", 2, 2, 16, 1, 200, "token_budget=20 prompt_budget=36 sinks=4"},
    {"window-1", 4, 2, 16, 1, 200, "token_budget=30 window_size=1"},
    {"window-8", 4, 2, 16, 1, 200, "token_budget=30 window_size=8"},
    {"window-100", 2, 1, 16, 1, 400, "token_budget=30 window_size=100"},
    {"kernel-1", 4, 2, 16, 1, 300, "token_budget=30 kernel_size=1"},
    {"kernel-5", 4, 2, 16, 1, 300, "token_budget=30 kernel_size=5"},
    {"kernel-31", 4, 2, 16, 1, 500, "token_budget=50 kernel_size=31"},
    {"kernel-beyond-prompt", 2, 1, 16, 1, 120, "token_budget=20 kernel_size=1001"},
    {"average-5", 4, 2, 16, 1, 300, "token_budget=30 pooling=1 kernel_size=5"},
    {"average-7-g1", 2, 2, 32, 1, 420, "token_budget=40 pooling=1 kernel_size=7"},
    {"prefix-only", 4, 2, 16, 1, 300, "token_budget=40 stage1_domain=1 kernel_size=7"},
    {"prefix-only-average", 3, 1, 24, 1, 280,
     "token_budget=40 stage1_domain=1 pooling=1 kernel_size=5"},
    {"sinks-4", 4, 2, 16, 1, 300, "token_budget=40 sinks=4 kernel_size=9"},
    {"sinks-50", 4, 1, 16, 1, 300, "token_budget=64 sinks=50 kernel_size=9"},
    {"softcap", 4, 2, 16, 1, 300, "token_budget=40 logit_softcap=2 kernel_size=5"},
    {"scale", 4, 2, 16, 1, 300, "token_budget=40 softmax_scale=0.5 kernel_size=5"},
    {"scale-and-softcap", 2, 1, 64, 2, 300, "token_budget=40 softmax_scale=0.25 logit_softcap=5"},
    {"prompt-budget", 4, 2, 16, 1, 300, "token_budget=40 prompt_budget=150 kernel_size=3"},
};

void one_prompt(Case& c, const Prompt& p) {
  c.config(shape(p));
  c.config(p.fields);
  c.create();
  c.open(0);
  c.prefill(0, 0, p.tokens);
  c.kept(0);
  c.stats(0);
}

const Prompt kChunked = {"", 4, 2, 16, 1, 300, "token_budget=40 kernel_size=9"};

// calls: (start, end) of each prefill.
void chunks(Book& book, const char* name, const Prompt& p,
            const std::vector<std::pair<std::int64_t, std::int64_t>>& calls) {
  book.add(std::string("chunks-") + name, [&](Case& c) {
    c.config(shape(p));
    c.config(p.fields);
    c.create();
    c.open(0);
    for (const auto& [start, end] : calls) c.prefill(0, 0, p.tokens, start, end);
    c.kept(0);
    c.stats(0);
  });
}

void chunked(Book& book) {
  chunks(book, "whole", kChunked, {{0, 100}, {100, 200}, {200, 280}, {280, 290}, {290, 300}});
  chunks(book, "last-alone", kChunked, {{280, 300}});
  chunks(book, "single-row", kChunked, {{299, 300}});
  chunks(book, "row-by-row", kChunked, {{297, 298}, {298, 299}, {299, 300}});
  chunks(book, "overlapping", kChunked, {{260, 290}, {280, 295}, {290, 300}});
  chunks(book, "gap-shortens-window", kChunked, {{270, 285}, {290, 300}});
  chunks(book, "only-before-window", kChunked, {{0, 268}, {268, 300}});
  Prompt kept = kChunked;
  kept.fields = "token_budget=1000";
  chunks(book, "no-queries-all-kept", kept, {{300, 300}});
  chunks(book, "no-queries-from-start", kept, {{0, 100}, {100, 300}});
  Prompt keys = kChunked;
  keys.fields = "token_budget=40 key_as_query=1 kernel_size=9";
  chunks(book, "key-as-query", keys, {{300, 300}});
  chunks(book, "key-as-query-ignores-queries", keys, {{0, 300}});
  keys.fields =
      "token_budget=40 key_as_query=1 window_size=10 kernel_size=5 logit_softcap=3 sinks=2";
  chunks(book, "key-as-query-softcap", keys, {{200, 300}});
}

// Two prompts whose window rows wait side by side, two layers each, in any order.
void interleaved(Case& c) {
  c.config(
      "layers=2 q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1 max_sequences=3 max_prefills=2 "
      "max_prompt_tokens=250 max_new_tokens=8 token_budget=40 kernel_size=9");
  c.create();
  c.open(0);
  c.open(2);
  c.prefill(0, 1, 250, 200, 240);
  c.prefill(2, 0, 180, 150, 170);
  c.prefill(0, 0, 250, 230, 245);
  c.prefill(2, 0, 180, 170, 180);
  c.prefill(0, 1, 250, 240, 250);
  c.prefill(2, 1, 180, 0, 180);
  c.prefill(0, 0, 250, 245, 250);
  for (int seq : {0, 2}) {
    for (int layer : {0, 1}) {
      c.kept(seq, layer);
      c.stats(seq, layer);
    }
  }
}

void nonfinite(Book& book, const char* name, const char* fields,
               const std::vector<std::pair<std::int64_t, double>>& elements) {
  book.add(std::string("nonfinite-") + name, [&](Case& c) {
    c.config(
        "layers=1 q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1 max_prompt_tokens=200 "
        "max_new_tokens=8 kernel_size=5");
    c.config(fields);
    for (const auto& [position, value] : elements) c.set(kK, position, 1, position % 16, value);
    c.create();
    c.open(0);
    c.prefill(0, 0, 200);
    c.kept(0);
    c.stats(0);
  });
}

// Keys near the largest F16 number: scores stay finite.
void large_f16(Case& c) {
  c.config(
      "layers=1 q_heads=4 kv_heads=2 head_dim=16 kv_dtype=2 max_prompt_tokens=200 "
      "max_new_tokens=8 token_budget=40 kernel_size=1");
  for (std::int64_t p : {10, 60, 150, 199}) c.set(kK, p, p % 2, 3, p == 60 ? -65504 : 65504);
  c.create();
  c.open(0);
  c.prefill(0, 0, 200);
  c.kept(0);
  c.stats(0);
}

// A zero query: every key has the same score, so the lower positions stay.
void equal_scores(Case& c) {
  c.config(
      "layers=1 q_heads=1 kv_heads=1 head_dim=8 kv_dtype=1 max_prompt_tokens=60 "
      "max_new_tokens=4 token_budget=10 prompt_budget=20 window_size=2 kernel_size=3");
  for (std::int64_t p : {58, 59}) {
    for (int d = 0; d < 8; ++d) c.set(kQ, p, 0, d, 0);
  }
  c.allow_ties();
  c.create();
  c.open(0);
  c.prefill(0, 0, 60);
  c.kept(0);
  c.stats(0);
}

}  // namespace

void add_stage1(Book& book) {
  for (const Prompt& p : kPrompts) {
    book.add(std::string("stage1-") + p.name, [&](Case& c) { one_prompt(c, p); });
  }
  chunked(book);
  book.add("chunks-interleaved", interleaved);
  nonfinite(book, "nan", "token_budget=40", {{50, kNan}});
  nonfinite(book, "infinities", "token_budget=40", {{20, kInf}, {90, -kInf}, {91, kInf}});
  nonfinite(book, "in-window", "token_budget=40", {{180, kNan}, {199, kInf}});
  nonfinite(book, "sink", "token_budget=40 sinks=4", {{2, kInf}, {7, kNan}});
  nonfinite(book, "softcap", "token_budget=40 logit_softcap=10", {{40, kInf}});
  nonfinite(book, "prefix-only", "token_budget=40 stage1_domain=1", {{40, -kInf}, {185, kNan}});
  nonfinite(book, "average", "token_budget=40 pooling=1", {{40, kNan}, {120, kInf}});
  nonfinite(book, "all-kept", "token_budget=400", {{40, kNan}});
  book.add("stage1-large-f16", large_f16);
  book.add("stage1-equal-scores", equal_scores);
}

}  // namespace rkv_golden
