// Section 1 of the algorithm: sizes from one number.
#include <stdexcept>

#include "book.hpp"
#include "conformance/golden_plans.hpp"
#include "fields.hpp"

namespace rkv_golden {
namespace {

const char* const kBase = "head_dim=128 max_new_tokens=64 token_budget=256";

// The values that the algorithm names are held against the reference once more.
void golden_plans(Case& c) {
  c.config("head_dim=128");
  for (const auto& g : rkv_test::kGoldenPlans) {
    rkv_ref::PlanInput in;
    in.head_dim = 128;
    in.prompt_tokens = g.length - g.max_new;
    in.max_new = g.max_new;
    in.token_budget = g.budget;
    const rkv_ref::Plan p = rkv_ref::make_plan(in);
    if (p.cap != g.cap || p.prompt_budget != g.prompt_budget || p.page_size != g.page_size ||
        p.num_channels != g.num_channels || p.top_k != g.top_k) {
      throw std::runtime_error("the reference misses a golden plan");
    }
    c.config("token_budget=" + std::to_string(g.budget) +
             " max_new_tokens=" + std::to_string(g.max_new));
    c.plan(g.length - g.max_new);
  }
}

void golden_splits(Case& c) {
  c.config("head_dim=128 max_new_tokens=64");
  for (const auto& g : rkv_test::kGoldenSplits) {
    c.config("compression_ratio=" + real_text(g.ratio));
    c.plan(409600 * 4 - 64);
  }
}

void snapped_floors(Case& c) {
  c.config("head_dim=128 max_new_tokens=100 compression_ratio=1.1");
  c.plan(1000);  // 1100 / 1.1 is 1000
  c.config("compression_ratio=1024 max_new_tokens=1024");
  for (std::int64_t p = 20; p <= 30; p += 2) c.plan((std::int64_t{1} << p) - 1024);
  c.config("compression_ratio=32 max_new_tokens=32");  // a fifth power
  for (std::int64_t n = 100; n <= 100000; n *= 10) c.plan(32 * n - 32);
}

void sweep(Book& book, const std::string& name, const std::string& base,
           const std::vector<std::string>& changes, const std::vector<std::int64_t>& prompts) {
  book.add(name, [&](Case& c) {
    c.config(base);
    for (const std::string& change : changes) {
      if (!change.empty()) c.config(change);
      for (std::int64_t prompt : prompts) c.plan(prompt);
    }
  });
}

// One override, alone or with others, over the plan's own values; the README of the package names
// these combinations after the methods that they give.
void overrides(Book& book) {
  const std::vector<std::int64_t> prompts = {1, 100, 4064, 131008};
  const std::pair<const char*, const char*> kinds[] = {
      {"prompt-budget", "prompt_budget=512"},
      {"prompt-budget-beyond-prompt", "prompt_budget=1000000"},
      {"prompt-budget-least", "prompt_budget=32"},
      {"page-size-recomputes-channels", "page_size=5"},
      {"page-size-long", "page_size=4096"},
      {"channels", "num_channels=17"},
      {"page-size-and-channels", "page_size=4 num_channels=96"},
      {"top-k", "top_k=1000"},
      {"quest", "page_size=16 num_channels=128"},
      {"sparq", "page_size=1 num_channels=32"},
      {"exact-top-k", "page_size=1 num_channels=128 top_k=128"},
      {"snapkv-alone", "top_k=1000000"},
      {"stage-2-alone", "prompt_budget=131072"},
      {"full-kv", "prompt_budget=131072 top_k=1000000"},
      {"all-by-hand", "prompt_budget=700 page_size=2 num_channels=40 top_k=90"},
      {"window", "window_size=200"},
      {"window-one", "window_size=1"},
      {"sinks", "sinks=600"},
      {"window-and-sinks", "window_size=64 sinks=4"},
  };
  for (const auto& [name, fields] : kinds) {
    sweep(book, std::string("plan-") + name, kBase, {fields}, prompts);
  }
}

void options(Case& c) {
  c.config(kBase);
  for (const char* o :
       {"", "max_new_tokens=8", "token_budget=32", "token_budget=100000", "compression_ratio=50",
        "max_new_tokens=1000 compression_ratio=4", "max_new_tokens=2 token_budget=7", ""}) {
    c.options(o);
    c.plan(100);
    c.plan(8192);
  }
}

void options_over_ratio(Case& c) {
  c.config("head_dim=64 max_new_tokens=32 compression_ratio=20");
  for (const char* o : {"token_budget=100", "compression_ratio=2", "max_new_tokens=500", ""}) {
    c.options(o);
    c.plan(5000);
  }
}

}  // namespace

void add_plans(Book& book) {
  book.add("plan-golden", golden_plans);
  book.add("plan-splits", golden_splits);
  book.add("plan-snapped-floors", snapped_floors);
  const std::vector<std::int64_t> lengths = {1,    2,    31,    32,     33,     100,      500,
                                             1000, 4097, 27599, 131072, 999983, 100000000};
  for (const char* ratio : {"1", "1.5", "3", "10", "33.3", "64", "256", "1000", "12345.678"}) {
    sweep(book, std::string("plan-ratio-") + ratio,
          std::string("head_dim=128 max_new_tokens=64 compression_ratio=") + ratio, {""}, lengths);
  }
  for (const char* budget : {"1", "2", "7", "64", "256", "1024", "100000", "4000000000"}) {
    sweep(book, std::string("plan-budget-") + budget,
          std::string("head_dim=128 max_new_tokens=64 token_budget=") + budget, {""}, lengths);
  }
  sweep(book, "plan-head-dims", kBase,
        {"head_dim=8", "head_dim=64", "head_dim=80", "head_dim=96", "head_dim=192", "head_dim=256"},
        {1000, 30000, 131008});
  sweep(book, "plan-new-tokens", kBase,
        {"max_new_tokens=0", "max_new_tokens=1", "max_new_tokens=5000", "max_new_tokens=1000000"},
        {1, 300, 10000});
  sweep(book, "plan-longest", "head_dim=128 max_new_tokens=64 token_budget=256",
        {"", "token_budget=1", "token_budget=1000000000"}, {2147483647 - 64});
  overrides(book);
  book.add("plan-options", options);
  book.add("plan-options-over-ratio", options_over_ratio);
}

}  // namespace rkv_golden
