// Section 4 of the algorithm: what a decode step selects and what attention over it gives.
#include "book.hpp"

namespace rkv_golden {
namespace {

struct Run {
  const char* name;
  const char* shape;  // heads, dims, types
  std::int64_t prompt;
  const char* fields;
  int steps;
};

const Run kRuns[] = {
    {"g1-d8", "q_heads=2 kv_heads=2 head_dim=8 kv_dtype=1", 120, "token_budget=32", 4},
    {"g3-d16", "q_heads=3 kv_heads=1 head_dim=16 kv_dtype=1", 150, "token_budget=40", 4},
    {"g4-d8", "q_heads=8 kv_heads=2 head_dim=8 kv_dtype=1", 200, "token_budget=36", 4},
    {"g7-d16", "q_heads=7 kv_heads=1 head_dim=16 kv_dtype=1", 160, "token_budget=30", 4},
    {"g2-d64", "q_heads=2 kv_heads=1 head_dim=64 kv_dtype=1", 300, "token_budget=64", 3},
    {"g1-d128", "q_heads=1 kv_heads=1 head_dim=128 kv_dtype=1", 200, "token_budget=48", 2},
    {"g1-d256", "q_heads=1 kv_heads=1 head_dim=256 kv_dtype=1", 120, "token_budget=24", 1},
    {"g16-d8", "q_heads=16 kv_heads=1 head_dim=8 kv_dtype=1", 150, "token_budget=30", 2},
    {"f16", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=2", 150, "token_budget=40", 3},
    {"bf16", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=3", 150, "token_budget=40", 3},
    {"bf16-g1-d80", "q_heads=1 kv_heads=1 head_dim=80 kv_dtype=3", 150, "token_budget=40", 2},
    {"f32-queries-f16-keys", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=2 query_dtype=1", 150,
     "token_budget=40", 3},
    {"bf16-queries-f32-keys", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1 query_dtype=3", 150,
     "token_budget=40", 3},
    {"f16-queries-bf16-keys", "q_heads=2 kv_heads=2 head_dim=24 kv_dtype=3 query_dtype=2", 150,
     "token_budget=40", 3},
    {"wide-values", "q_heads=4 kv_heads=2 head_dim=16 head_dim_v=24 kv_dtype=1", 150,
     "token_budget=40", 3},
    {"narrow-values", "q_heads=3 kv_heads=1 head_dim=40 head_dim_v=8 kv_dtype=1", 150,
     "token_budget=40", 3},
    {"narrow-values-f16", "q_heads=2 kv_heads=2 head_dim=64 head_dim_v=16 kv_dtype=2", 150,
     "token_budget=40", 2},
    {"tokens", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 200,
     "token_budget=30 selection_unit=1 page_size=4", 4},
    {"tokens-g1", "q_heads=2 kv_heads=2 head_dim=16 kv_dtype=1", 200,
     "token_budget=34 selection_unit=1 page_size=5 top_k=13", 4},
    {"page-softmax", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 selection_domain=1 page_size=4", 4},
    {"sqrt-d", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150, "token_budget=40 temperature=1",
     4},
    {"sqrt-d-page-softmax", "q_heads=6 kv_heads=2 head_dim=8 kv_dtype=1", 150,
     "token_budget=40 temperature=1 selection_domain=1 page_size=7", 4},
    {"recent", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 recent_tokens=6 page_size=4", 5},
    {"recent-is-all", "q_heads=2 kv_heads=1 head_dim=16 kv_dtype=1", 150,
     "token_budget=24 recent_tokens=1000 page_size=3", 3},
    {"sinks", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 sinks=5 page_size=4", 4},
    {"sinks-and-recent-tokens", "q_heads=3 kv_heads=1 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 sinks=3 recent_tokens=5 selection_unit=1 page_size=4", 4},
    {"softcap", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 logit_softcap=1.5", 3},
    {"scale", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 softmax_scale=0.0625", 3},
    {"scale-and-softcap", "q_heads=2 kv_heads=2 head_dim=32 kv_dtype=1", 150,
     "token_budget=40 softmax_scale=0.5 logit_softcap=4", 3},
    {"page-size-1", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 page_size=1", 3},
    {"page-size-7-partial", "q_heads=2 kv_heads=1 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 page_size=7", 8},
    {"page-longer-than-rows", "q_heads=2 kv_heads=1 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 page_size=512", 3},
    {"one-channel", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 num_channels=1 page_size=3", 3},
    {"quest", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 page_size=8 num_channels=16 prompt_budget=1000", 3},
    {"sparq", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 page_size=1 num_channels=4 prompt_budget=1000", 3},
    {"exact-top-k", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 page_size=1 num_channels=16 prompt_budget=1000 top_k=12", 3},
    {"snapkv-alone", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 top_k=100000", 3},
    {"full-kv", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 60,
     "token_budget=40 prompt_budget=1000 top_k=100000", 3},
    {"top-k-1", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 150,
     "token_budget=40 top_k=1 page_size=1", 3},
    {"becomes-sparse", "q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1", 50,
     "token_budget=40 top_k=52 prompt_budget=50 page_size=4", 8},
    {"prompt-of-one", "q_heads=2 kv_heads=1 head_dim=8 kv_dtype=1", 1,
     "token_budget=4 page_size=2 top_k=4", 8},
    {"two-threads", "q_heads=12 kv_heads=4 head_dim=8 kv_dtype=1", 300,
     "token_budget=48 num_threads=2", 3},
};

std::string limits(std::int64_t prompt) {
  return "layers=1 max_prompt_tokens=" + std::to_string(prompt) + " max_new_tokens=12";
}

void one_run(Case& c, const Run& run) {
  c.config(std::string(run.shape) + " " + limits(run.prompt));
  c.config(run.fields);
  c.create();
  c.open(0);
  c.prefill(0, 0, run.prompt);
  for (int i = 0; i < run.steps; ++i) c.decode(0, {{0, run.prompt + i}});
  c.stats(0);
  c.audit(0, {{0, run.prompt + run.steps - 1}});
}

// The two halves of a step, called apart.
void select_and_attend(Case& c) {
  c.config("q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1 " + limits(150));
  c.config("token_budget=40 page_size=3");
  c.create();
  c.open(0);
  c.prefill(0, 0, 150);
  for (std::int64_t p = 150; p < 154; ++p) {
    c.select(0, {{0, p}});
    c.attend(0, {{0, p}});
  }
  c.select(0, {{0, 153}});  // the step once more
  c.attend(0, {{0, 153}});
  c.attend(0, {{0, 153}});
}

// G = 1, all page scores 0: the first pages; a group of two where one head's query is zero.
void zero_query(Case& c, int q_heads, int zero_head) {
  c.config("q_heads=" + std::to_string(q_heads) + " kv_heads=1 head_dim=8 kv_dtype=1 " +
           limits(100));
  c.config("token_budget=24 page_size=3");
  for (int d = 0; d < 8; ++d) c.set(kQ, 100, zero_head, d, 0);
  c.create();
  c.open(0);
  c.prefill(0, 0, 100);
  c.decode(0, {{0, 100}});
  c.decode(0, {{0, 101}});
}

// A key of the prompt and one of a step are not finite: their pages score -inf, their rows weigh 0.
void nonfinite(Case& c, double value, int page_size, std::int64_t recent) {
  c.config("q_heads=4 kv_heads=2 head_dim=16 kv_dtype=1 " + limits(60));
  c.config("token_budget=30 prompt_budget=60 num_channels=16 page_size=" +
           std::to_string(page_size) + " recent_tokens=" + std::to_string(recent));
  c.set(kK, 20, 0, 5, value);
  c.set(kK, 61, 1, 2, value);
  c.create();
  c.open(0);
  c.prefill(0, 0, 60);
  for (std::int64_t p = 60; p < 64; ++p) c.decode(0, {{0, p}});
  c.stats(0);
}

// Every row of a step is not finite: nothing is left to attend to.
void nothing_left(Case& c) {
  c.config("q_heads=2 kv_heads=1 head_dim=8 kv_dtype=1 " + limits(3));
  c.config("token_budget=100");
  for (std::int64_t p = 0; p < 4; ++p) c.set(kK, p, 0, 0, std::numeric_limits<double>::quiet_NaN());
  c.create();
  c.open(0);
  c.prefill(0, 0, 3);
  c.decode(0, {{0, 3}});
  c.stats(0);
}

}  // namespace

void add_stage2(Book& book) {
  for (const Run& run : kRuns) {
    book.add(std::string("stage2-") + run.name, [&](Case& c) { one_run(c, run); });
  }
  book.add("stage2-select-and-attend", select_and_attend);
  book.add("stage2-zero-query", [](Case& c) { zero_query(c, 1, 0); });
  book.add("stage2-zero-query-of-one-head", [](Case& c) { zero_query(c, 2, 1); });
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  book.add("stage2-nan", [&](Case& c) { nonfinite(c, nan, 1, 0); });
  book.add("stage2-inf", [&](Case& c) { nonfinite(c, inf, 3, 0); });
  book.add("stage2-negative-inf", [&](Case& c) { nonfinite(c, -inf, 3, 0); });
  book.add("stage2-nan-recent", [&](Case& c) { nonfinite(c, nan, 1, 3); });
  book.add("stage2-nothing-left", nothing_left);
}

}  // namespace rkv_golden
