// Options of layers, of sequences, and combinations: prompt and steps from end to end.
#include "book.hpp"

namespace rkv_golden {
namespace {

const char* const kSmall = "q_heads=4 kv_heads=2 head_dim=8 kv_dtype=1";

void steps(Case& c, int seq, int layer, std::int64_t first, int count) {
  for (int i = 0; i < count; ++i) c.decode(layer, {{seq, first + i}});
}

// Layers 0 and 2 keep and attend to everything.
void dense_layers(Case& c) {
  c.config(std::string(kSmall) +
           " layers=4 dense_layers=0,2 max_prompt_tokens=90 "
           "max_new_tokens=6 token_budget=24");
  c.create();
  c.open(0);
  for (int layer = 3; layer >= 0; --layer) {
    c.prefill(0, layer, 90);
    c.kept(0, layer);
  }
  for (int layer = 0; layer < 4; ++layer) {
    steps(c, 0, layer, 90, 2);
    c.stats(0, layer);
    c.audit(layer, {{0, 91}});
  }
}

// Bits beyond the first word of the mask, and layers that are left out.
void many_layers(Case& c) {
  c.config(std::string(kSmall) +
           " layers=256 dense_layers=33,255 max_prompt_tokens=60 "
           "max_new_tokens=4 token_budget=20");
  c.create();
  c.open(0);
  for (int layer : {32, 33, 254, 255}) {
    c.prefill(0, layer, 60);
    c.decode(layer, {{0, 60}});
    c.kept(0, layer);
    c.stats(0, layer);
  }
  c.stats(0, 0);
}

// Sequences of one cache with sizes of their own, in one call.
void own_sizes(Case& c) {
  c.config(std::string(kSmall) +
           " layers=1 max_sequences=4 max_prompt_tokens=160 "
           "max_new_tokens=16 token_budget=64 sinks=2");
  c.create();
  c.options();
  c.open(0);
  c.options("token_budget=20 max_new_tokens=4");
  c.open(1);
  c.options("compression_ratio=5");
  c.open(2);
  c.options("max_new_tokens=3");
  c.open(3);
  const std::int64_t prompts[] = {160, 120, 150, 40};
  for (int seq = 0; seq < 4; ++seq) {
    c.prefill(seq, 0, prompts[seq]);
    c.kept(seq);
  }
  for (std::int64_t i = 0; i < 3; ++i) {
    c.decode(0, {{0, 160 + i}, {1, 120 + i}, {2, 150 + i}, {3, 40 + i}});
  }
  for (int seq = 0; seq < 4; ++seq) c.stats(seq);
}

// Everything at once, in each type.
void everything(Case& c, int dtype) {
  c.config("layers=2 q_heads=6 kv_heads=2 head_dim=16 head_dim_v=8 kv_dtype=" +
           std::to_string(dtype));
  c.config(
      "max_prompt_tokens=220 max_new_tokens=8 token_budget=44 window_size=16 kernel_size=7 "
      "sinks=3 recent_tokens=4 selection_unit=1 page_size=3 num_channels=6 softmax_scale=0.3 "
      "logit_softcap=6 stage1_domain=1 selection_domain=1 temperature=1 num_threads=2");
  c.create();
  c.open(0);
  for (int layer = 0; layer < 2; ++layer) {
    c.prefill(0, layer, 220, 100, 215);
    c.prefill(0, layer, 220, 215, 220);
    c.kept(0, layer);
    steps(c, 0, layer, 220, 2);
    c.kept(0, layer);
    c.stats(0, layer);
  }
}

// Prompts of every short length go through one slot.
void short_prompts(Case& c) {
  c.config(std::string(kSmall) +
           " layers=1 max_prompt_tokens=70 max_new_tokens=4 token_budget=16 "
           "window_size=8 kernel_size=3");
  c.create();
  for (std::int64_t prompt : {1, 2, 7, 8, 9, 13, 20, 33, 70}) {
    c.open(0);
    c.prefill(0, 0, prompt);
    c.kept(0);
    c.decode(0, {{0, prompt}});
    c.stats(0);
    c.close(0);
  }
}

// What a cache holds where nothing is left to choose: all rows of all slots.
void memory_of_full_kv(Case& c) {
  c.config(
      "layers=3 q_heads=4 kv_heads=2 head_dim=16 head_dim_v=8 kv_dtype=2 query_dtype=1 "
      "max_sequences=5 max_prefills=2 max_prompt_tokens=100 max_new_tokens=28 "
      "token_budget=1000 prompt_budget=1000 top_k=1000");
  const int rows = 5 * 3 * 2 * 128;  // slots, layers, KV heads, tokens
  c.memory("k_bytes=" + std::to_string(rows * 16 * 2) + " v_bytes=" + std::to_string(rows * 8 * 2) +
           " summary_bytes=0 selection_capacity=128 window_bytes=" +
           std::to_string(2 * 3 * 32 * 4 * 16 * 4));
  c.config("kv_dtype=1 query_dtype=2");
  c.memory("k_bytes=" + std::to_string(rows * 16 * 4) + " v_bytes=" + std::to_string(rows * 8 * 4) +
           " window_bytes=" + std::to_string(2 * 3 * 32 * 4 * 16 * 2));
  c.config("key_as_query=1");
  c.memory("window_bytes=0");
  c.config("max_sequences=0 max_prefills=0");
  c.memory("k_bytes=" + std::to_string(rows / 5 * 16 * 4) + " selection_capacity=128");
  c.create();
}

// Dense layers hold max_prompt_tokens + max_new_tokens rows and no summaries.
void memory_of_dense_layers(Case& c) {
  c.config(
      "layers=2 dense_layers=0,1 q_heads=2 kv_heads=2 head_dim=8 kv_dtype=3 "
      "max_prompt_tokens=1000 max_new_tokens=24 token_budget=64");
  c.memory("k_bytes=" + std::to_string(2 * 2 * 1024 * 8 * 2) + " v_bytes=" +
           std::to_string(2 * 2 * 1024 * 8 * 2) + " summary_bytes=0 selection_capacity=1024");
}

}  // namespace

void add_options(Book& book) {
  book.add("options-dense-layers", dense_layers);
  book.add("options-many-layers", many_layers);
  book.add("options-own-sizes", own_sizes);
  book.add("options-everything-f32", [](Case& c) { everything(c, 1); });
  book.add("options-everything-f16", [](Case& c) { everything(c, 2); });
  book.add("options-everything-bf16", [](Case& c) { everything(c, 3); });
  book.add("options-short-prompts", short_prompts);
  book.add("options-memory-full-kv", memory_of_full_kv);
  book.add("options-memory-dense-layers", memory_of_dense_layers);
}

}  // namespace rkv_golden
