// Sequences from open to close: drafts, retries, rewind, padding rows, batches, reused slots.
#include "book.hpp"

namespace rkv_golden {
namespace {

const char* const kSmall = "q_heads=4 kv_heads=2 head_dim=8 kv_dtype=1";

void start(Case& c, const std::string& fields) {
  c.config(std::string(kSmall) + " layers=1 max_prompt_tokens=120 max_new_tokens=16");
  c.config(fields);
  c.create();
}

// Four rows in one call, two of them rejected; the same bits as one row a call.
void drafts(Case& c) {
  start(c, "token_budget=32 max_rows=5 page_size=3");
  c.open(0);
  c.prefill(0, 0, 120);
  c.decode(0, {{0, 120}, {0, 121}, {0, 122}, {0, 123}});
  c.stats(0);
  c.decode(0, {{0, 122}, {0, 123}, {0, 124}, {0, 125}, {0, 126}});
  c.stats(0);
  c.decode(0, {{0, 120}});  // back to the first generated row
  c.stats(0);
  c.kept(0);
}

// The same with the two halves apart.
void drafts_in_halves(Case& c) {
  start(c, "token_budget=32 max_rows=4 page_size=3 num_threads=2");
  c.open(0);
  c.prefill(0, 0, 110);
  c.select(0, {{0, 110}, {0, 111}, {0, 112}, {0, 113}});
  c.attend(0, {{0, 110}, {0, 111}, {0, 112}, {0, 113}});
  c.select(0, {{0, 111}, {0, 112}});
  c.attend(0, {{0, 111}, {0, 112}});
  c.stats(0);
}

// One step again and again changes nothing.
void retries(Case& c) {
  start(c, "token_budget=32 page_size=4");
  c.open(0);
  c.prefill(0, 0, 100);
  for (std::int64_t p : {100, 100, 101, 101, 100, 101, 102}) c.decode(0, {{0, p}});
  c.stats(0);
}

void rewinds(Case& c) {
  start(c, "token_budget=32 page_size=4");
  c.open(0);
  c.prefill(0, 0, 100);
  for (std::int64_t p = 100; p < 107; ++p) c.decode(0, {{0, p}});
  c.rewind(0, 103);
  c.stats(0);
  c.kept(0);
  c.decode(0, {{0, 103}});
  c.rewind(0, 104);  // the length itself: nothing to drop
  c.stats(0);
  c.rewind(0, 100);  // the prompt's end
  c.stats(0);
  c.kept(0);
  c.decode(0, {{0, 100}});
}

// Layers of different length; a shorter one stays.
void rewind_over_layers(Case& c) {
  start(c, "layers=3 token_budget=24");
  c.open(0);
  for (int layer = 0; layer < 3; ++layer) c.prefill(0, layer, 60);
  c.decode(0, {{0, 60}});
  c.decode(0, {{0, 61}});
  c.decode(0, {{0, 62}});
  c.decode(1, {{0, 60}});
  c.rewind(0, 61);
  for (int layer = 0; layer < 3; ++layer) c.stats(0, layer);
  c.decode(1, {{0, 61}});
  c.decode(2, {{0, 60}});
  c.stats(0, 1);
  c.stats(0, 2);
}

void padding(Case& c) {
  start(c, "token_budget=32 max_sequences=3 max_rows=6");
  c.open(0);
  c.open(1);
  c.prefill(0, 0, 100);
  c.prefill(1, 0, 70);
  c.decode(0, {{-1, 0}, {0, 100}, {-1, 0}, {1, 70}, {1, 71}, {-1, 0}});
  c.decode(0, {{-1, 0}});
  c.select(0, {{1, 72}, {-1, 0}, {0, 101}});
  c.attend(0, {{1, 72}, {-1, 0}, {0, 101}});
  c.audit(0, {{-1, 0}});
  c.audit(0, {{-1, 0}, {1, 72}, {0, 101}});
}

// Slots in any order, closed and opened again while others go on.
void batches(Case& c) {
  start(c, "token_budget=32 max_sequences=4 max_rows=8");
  for (int seq : {3, 0, 2}) c.open(seq);
  c.prefill(3, 0, 120);
  c.prefill(0, 0, 40);
  c.prefill(2, 0, 90);
  c.decode(0, {{2, 90}, {0, 40}, {0, 41}, {0, 42}, {3, 120}});
  c.close(0);
  c.open(0);
  c.stats(0);
  c.decode(0, {{3, 121}, {2, 91}});
  c.prefill(0, 0, 77);
  c.kept(0);
  c.decode(0, {{0, 77}, {3, 122}, {2, 92}, {2, 93}});
  c.close(2);
  c.close(3);
  c.decode(0, {{0, 78}});
  c.stats(0);
}

// To the last position that the request allows.
void to_the_end(Case& c) {
  start(c, "token_budget=20 max_new_tokens=9 page_size=2");
  c.open(0);
  c.prefill(0, 0, 50);
  for (std::int64_t p = 50; p < 59; ++p) c.decode(0, {{0, p}});
  c.fails("decode 0 0:59", "OUT_OF_CAPACITY", "positions");
  c.stats(0);
  c.kept(0);
  c.decode(0, {{0, 58}});
}

// A prompt of no token leaves the sequence as it was.
void empty_prompt(Case& c) {
  start(c, "token_budget=32");
  c.open(0);
  c.prefill(0, 0, 0);
  c.stats(0);
  c.prefill(0, 0, 30);
  c.kept(0);
  c.stats(0);
}

// Rows of earlier steps, as they were then.
void audit_of_earlier_rows(Case& c) {
  start(c, "token_budget=24 max_rows=3 page_size=3");
  c.open(0);
  c.prefill(0, 0, 110);
  for (std::int64_t p = 110; p < 116; ++p) c.decode(0, {{0, p}});
  c.audit(0, {{0, 115}});
  c.audit(0, {{0, 110}});
  c.audit(0, {{0, 112}, {0, 113}, {0, 114}});
  c.stats(0);  // an audit appends nothing
}

// A failed call changes nothing: the steps around it give what they would without it.
void failures_between(Case& c) {
  start(c, "token_budget=32 max_sequences=2 max_rows=4");
  c.open(0);
  c.prefill(0, 0, 100);
  c.decode(0, {{0, 100}});
  c.fails("decode 0 0:101 1:5", "BAD_STATE", "seq");
  c.fails("decode 0 0:101 0:103", "INVALID_ARGUMENT", "positions");
  c.fails("decode 0 0:102", "BAD_STATE", "positions");
  c.fails("decode 0 0:99", "INVALID_ARGUMENT", "positions");
  c.fails("select 0 0:101 0:102 0:103 0:104 0:105", "OUT_OF_CAPACITY", "rows");
  c.fails("rewind 0 99", "INVALID_ARGUMENT", "position");
  c.fails("prefill 0 0 100 0 100", "BAD_STATE", "prefilled");
  c.stats(0);
  c.decode(0, {{0, 101}});
  c.kept(0);
}

}  // namespace

void add_lives(Book& book) {
  book.add("lives-drafts", drafts);
  book.add("lives-drafts-in-halves", drafts_in_halves);
  book.add("lives-retries", retries);
  book.add("lives-rewinds", rewinds);
  book.add("lives-rewind-over-layers", rewind_over_layers);
  book.add("lives-padding", padding);
  book.add("lives-batches", batches);
  book.add("lives-to-the-end", to_the_end);
  book.add("lives-empty-prompt", empty_prompt);
  book.add("lives-audit-of-earlier-rows", audit_of_earlier_rows);
  book.add("lives-failures-between", failures_between);
}

}  // namespace rkv_golden
