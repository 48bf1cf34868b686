// Calls that fail: status and the word that the text must hold, by hand from the API's rules.
#include "book.hpp"

namespace rkv_golden {
namespace {

const char* const kGood =
    "layers=2 q_heads=4 kv_heads=2 head_dim=16 head_dim_v=16 kv_dtype=1 max_prompt_tokens=100 "
    "max_new_tokens=8 token_budget=40";

const char* const kInvalid = "INVALID_ARGUMENT";
const char* const kUnsupported = "UNSUPPORTED";
const char* const kCapacity = "OUT_OF_CAPACITY";
const char* const kState = "BAD_STATE";

struct Bad {
  const char* fields;
  const char* status;
  const char* word;
};

const Bad kShapes[] = {
    {"q_heads=0", kInvalid, "q_heads"},       {"q_heads=-4", kInvalid, "q_heads"},
    {"q_heads=5", kInvalid, "q_heads"},       {"kv_heads=0", kInvalid, "kv_heads"},
    {"kv_heads=-1", kInvalid, "kv_heads"},    {"kv_heads=3", kInvalid, "kv_heads"},
    {"head_dim=0", kInvalid, "head_dim"},     {"head_dim=12", kInvalid, "head_dim"},
    {"head_dim=-8", kInvalid, "head_dim"},    {"head_dim=512", kUnsupported, "head_dim"},
    {"head_dim_v=4", kInvalid, "head_dim_v"}, {"head_dim_v=512", kUnsupported, "head_dim_v"},
    {"layers=0", kInvalid, "layers"},         {"layers=257", kInvalid, "layers"},
};

const Bad kTypes[] = {
    {"kv_dtype=0", kInvalid, "kv_dtype"},
    {"kv_dtype=6", kInvalid, "kv_dtype"},
    {"kv_dtype=4", kUnsupported, "kv_dtype"},
    {"kv_dtype=5", kUnsupported, "kv_dtype"},
    {"query_dtype=9", kInvalid, "query_dtype"},
    {"query_dtype=4", kUnsupported, "query_dtype"},
    {"summary_dtype=4", kUnsupported, "summary_dtype"},
    {"summary_dtype=5", kUnsupported, "summary_dtype"},
    {"summary_dtype=2", kInvalid, "summary_dtype"},
    {"summary_dtype=7", kInvalid, "summary_dtype"},
};

const Bad kPlaces[] = {
    {"device_type=1", kUnsupported, "device_type"},
    {"device_type=2", kInvalid, "device_type"},
    {"device=1", kInvalid, "device"},
    {"storage=1", kUnsupported, "storage"},
    {"storage=2", kInvalid, "storage"},
};

const Bad kLimits[] = {
    {"max_sequences=-1", kInvalid, "max_sequences"},
    {"max_rows=-1", kInvalid, "max_rows"},
    {"max_prefills=-1", kInvalid, "max_prefills"},
    {"num_threads=-1", kInvalid, "num_threads"},
    {"max_prompt_tokens=0", kInvalid, "max_prompt_tokens"},
    {"max_prompt_tokens=-5", kInvalid, "max_prompt_tokens"},
    {"max_prompt_tokens=2147483648", kInvalid, "max_prompt_tokens"},
    {"max_new_tokens=-1", kInvalid, "max_new_tokens"},
    {"max_new_tokens=2147483647", kInvalid, "max_new_tokens"},
};

const Bad kBudgets[] = {
    {"token_budget=0", kInvalid, "token_budget"},
    {"token_budget=-1", kInvalid, "token_budget"},
    {"compression_ratio=4", kInvalid, "compression_ratio"},
    {"token_budget=0 compression_ratio=0.5", kInvalid, "compression_ratio"},
    {"token_budget=0 compression_ratio=-2", kInvalid, "compression_ratio"},
    {"token_budget=0 compression_ratio=nan", kInvalid, "compression_ratio"},
    {"token_budget=0 compression_ratio=inf", kInvalid, "compression_ratio"},
    {"prompt_budget=-1", kInvalid, "prompt_budget"},
    {"prompt_budget=31", kInvalid, "prompt_budget"},
    {"prompt_budget=34 sinks=3", kInvalid, "prompt_budget"},
    {"top_k=-1", kInvalid, "top_k"},
    {"page_size=-1", kInvalid, "page_size"},
    {"num_channels=-1", kInvalid, "num_channels"},
    {"num_channels=17", kInvalid, "num_channels"},
};

const Bad kStages[] = {
    {"window_size=-1", kInvalid, "window_size"},
    {"kernel_size=4", kInvalid, "kernel_size"},
    {"kernel_size=-3", kInvalid, "kernel_size"},
    {"sinks=-1", kInvalid, "sinks"},
    {"recent_tokens=-1", kInvalid, "recent_tokens"},
    {"selection_unit=2", kInvalid, "selection_unit"},
    {"stage1_domain=2", kInvalid, "stage1_domain"},
    {"selection_domain=-1", kInvalid, "selection_domain"},
    {"pooling=2", kInvalid, "pooling"},
    {"temperature=2", kInvalid, "temperature"},
    {"key_as_query=2", kInvalid, "key_as_query"},
    {"softmax_scale=-1", kInvalid, "softmax_scale"},
    {"softmax_scale=nan", kInvalid, "softmax_scale"},
    {"softmax_scale=inf", kInvalid, "softmax_scale"},
    {"logit_softcap=-1", kInvalid, "logit_softcap"},
    {"logit_softcap=nan", kInvalid, "logit_softcap"},
};

template <std::size_t N>
void configs(Book& book, const char* name, const Bad (&list)[N]) {
  book.add(std::string("errors-config-") + name, [&](Case& c) {
    c.config(kGood);
    for (const Bad& bad : list) c.bad_config(bad.fields, bad.status, bad.word);
    c.create();  // what was wrong has left no trace
    c.open(0);
    c.prefill(0, 0, 10);
    c.kept(0);
  });
}

void dense_layer_beyond(Case& c) {
  c.config(kGood);
  c.config("dense_layers=1,2");
  c.fails("memory", kInvalid, "dense_layers");
  c.fails("create", kInvalid, "dense_layers");
}

// Valid sizes that no machine can give, and sizes beyond 2^62 bytes.
void too_large(Case& c) {
  c.config(
      "layers=256 q_heads=64 kv_heads=64 head_dim=128 kv_dtype=1 max_prompt_tokens=2000000000 "
      "max_new_tokens=8 token_budget=2000000000 prompt_budget=2000000000 num_threads=1");
  c.fails("create", "OUT_OF_MEMORY", "buffers");
  c.config("kv_heads=65536 q_heads=65536 max_sequences=100000");
  c.fails("memory", kInvalid, "max_prompt_tokens");
  c.fails("create", kInvalid, "max_prompt_tokens");
}

void plans(Case& c) {
  c.config("head_dim=64 token_budget=40 max_new_tokens=8");
  c.plan(100);
  c.fails("plan 0", kInvalid, "prompt_tokens");
  c.fails("plan 2147483648", kInvalid, "prompt_tokens");
  c.fails("plan 2147483640", kInvalid, "max_new_tokens");  // together beyond 2^31
  const Bad bad[] = {{"max_new_tokens=-1", kInvalid, "max_new_tokens"},
                     {"token_budget=-1", kInvalid, "token_budget"},
                     {"compression_ratio=0.5", kInvalid, "compression_ratio"},
                     {"compression_ratio=nan", kInvalid, "compression_ratio"},
                     {"compression_ratio=-1", kInvalid, "compression_ratio"},
                     {"token_budget=10 compression_ratio=4", kInvalid, "compression_ratio"}};
  for (const Bad& b : bad) {
    c.options(b.fields);
    c.fails("plan 100", b.status, b.word);
  }
  c.options();
  c.plan(100);
  c.config("token_budget=0");
  c.fails("plan 100", kInvalid, "token_budget");
}

void opens(Case& c) {
  c.config(kGood);
  c.config("max_sequences=2");
  c.create();
  c.options();
  c.fails("open 2 1", kInvalid, "seq");
  c.fails("open -1 1", kInvalid, "seq");
  c.open(1);
  c.fails("open 1 1", kState, "seq");
  const Bad bad[] = {{"max_new_tokens=-1", kInvalid, "max_new_tokens"},
                     {"token_budget=-1", kInvalid, "token_budget"},
                     {"compression_ratio=0.5", kInvalid, "compression_ratio"},
                     {"token_budget=10 compression_ratio=4", kInvalid, "compression_ratio"}};
  for (const Bad& b : bad) {
    c.options(b.fields);
    c.fails("open 0 1", b.status, b.word);
  }
  c.options();
  c.fails("close 0", kState, "seq");
  c.fails("close 7", kInvalid, "seq");
  c.close(1);
  c.fails("close 1", kState, "seq");
  c.open(0);
}

void not_open(Case& c) {
  c.config(kGood);
  c.config("max_sequences=2");
  c.create();
  c.fails("prefill 0 0 50 0 50", kState, "seq");
  c.fails("prefill 2 0 50 0 50", kInvalid, "seq");
  c.fails("kept 0 0", kState, "seq");
  c.fails("kept 2 0", kInvalid, "seq");
  c.fails("stats 1 0", kState, "seq");
  c.fails("stats 2 0", kInvalid, "seq");
  c.fails("rewind 0 5", kState, "seq");
  c.fails("decode 0 0:50", kState, "seq");
  c.fails("select 0 1:50", kState, "seq");
  c.fails("audit 0 0:50", kState, "seq");
  c.fails("decode 0 5:50", kState, "seq");
  c.fails("decode 0 -2:50", kState, "seq");
}

void not_prefilled(Case& c) {
  c.config(kGood);
  c.create();
  c.open(0);
  c.fails("kept 0 0", kState, "layer");
  c.fails("rewind 0 0", kState, "seq");
  c.fails("decode 0 0:0", kState, "seq");
  c.fails("audit 0 0:0", kState, "seq");
  c.prefill(0, 1, 60);
  c.fails("decode 0 0:60", kState, "seq");
  c.fails("kept 0 0", kState, "layer");
  c.kept(0, 1);
}

void layers(Case& c) {
  c.config(kGood);
  c.create();
  c.open(0);
  c.fails("prefill 0 2 50 0 50", kInvalid, "layer");
  c.fails("prefill 0 -1 50 0 50", kInvalid, "layer");
  c.prefill(0, 0, 50);
  c.fails("kept 0 2", kInvalid, "layer");
  c.fails("stats 0 2", kInvalid, "layer");
  c.fails("decode 2 0:50", kInvalid, "layer");
  c.fails("select -1 0:50", kInvalid, "layer");
  c.fails("audit 2 0:50", kInvalid, "layer");
}

void prefills(Case& c) {
  c.config(kGood);
  c.config("max_sequences=3 max_prefills=1 prompt_budget=40");
  c.create();
  c.open(0);
  c.open(1);
  c.fails("prefill 0 0 101 0 101", kCapacity, "prompt_tokens");
  c.fails("prefill 0 0 80 81 81", kInvalid, "start");
  c.fails("prefill 0 0 80 80 80", kInvalid, "q");  // something has to go, by nobody's query
  c.prefill(0, 0, 80, 50, 60);
  c.fails("prefill 0 0 81 60 81", kInvalid, "prompt_tokens");  // the first call said 80
  c.fails("prefill 0 1 90 60 90", kInvalid, "prompt_tokens");
  c.fails("prefill 1 0 80 50 60", kCapacity, "max_prefills");
  c.fails("kept 0 0", kState, "layer");
  c.fails("decode 0 0:80", kState, "seq");
  c.prefill(0, 0, 80, 60, 80);
  c.fails("prefill 0 0 80 0 80", kState, "prefilled");
  c.kept(0);
  c.prefill(1, 0, 80, 50, 60);  // there is room again
}

// A request may ask for what fits the slots, and no more.
void slots(Case& c) {
  c.config(kGood);
  c.create();
  c.options("token_budget=1000 max_new_tokens=100");
  c.open(0);
  c.fails("prefill 0 0 100 0 100", kCapacity, "slot");
  c.options();
  c.close(0);
  c.open(0);
  c.prefill(0, 0, 100);
  c.kept(0);
}

void rows(Case& c) {
  c.config(kGood);
  c.config("max_sequences=3 max_rows=4 max_new_tokens=6");
  c.create();
  c.open(0);
  c.open(1);
  c.prefill(0, 0, 60);
  c.prefill(1, 0, 90);
  c.fails("decode 0 0:60 0:61 0:62 0:63 0:64", kCapacity, "rows");
  c.fails("decode 0 0:61", kState, "positions");
  c.fails("decode 0 0:59", kInvalid, "positions");
  c.fails("decode 0 0:0", kInvalid, "positions");
  c.fails("decode 0 0:60 1:90 0:61", kInvalid, "seq");
  c.fails("decode 0 0:60 0:60", kInvalid, "positions");
  c.fails("decode 0 0:61 0:60", kInvalid, "positions");
  c.fails("decode 0 0:60 2:5", kState, "seq");
  c.fails("audit 0 0:60", kState, "positions");  // not stored yet
  c.decode(0, {{0, 60}, {0, 61}, {0, 62}, {0, 63}});
  c.decode(0, {{0, 64}, {0, 65}});
  c.fails("decode 0 0:66", kCapacity, "positions");
  c.fails("decode 0 0:64 0:65 0:66", kCapacity, "positions");
  c.fails("attend 0 0:66", kState, "positions");
  c.fails("rewind 0 59", kInvalid, "position");
  c.fails("rewind 0 67", kInvalid, "position");
  c.fails("rewind 3 60", kInvalid, "seq");
  c.stats(0);
  c.rewind(0, 66);
}

// The rest of the API: not served yet, in every language with the same words.
void unsupported(Case& c) {
  c.config(kGood);
  c.config("max_sequences=2");
  c.create();
  c.open(0);
  c.fails("import 0 0", kUnsupported, "rkv_sequence_import");
  c.prefill(0, 0, 50);
  c.fails("fork 0 1", kUnsupported, "rkv_sequence_fork");
  c.fails("export 0 0", kUnsupported, "rkv_sequence_export");
  c.fails("fork 1 0", kState, "seq");
  c.fails("export 1 0", kState, "seq");
  c.fails("import 1 0", kState, "seq");
  c.fails("fork 9 1", kInvalid, "seq");
  c.decode(0, {{0, 50}});
}

}  // namespace

void add_errors(Book& book) {
  configs(book, "shapes", kShapes);
  configs(book, "types", kTypes);
  configs(book, "places", kPlaces);
  configs(book, "limits", kLimits);
  configs(book, "budgets", kBudgets);
  configs(book, "stages", kStages);
  book.add("errors-dense-layer-beyond", dense_layer_beyond);
  book.add("errors-too-large", too_large);
  book.add("errors-plans", plans);
  book.add("errors-opens", opens);
  book.add("errors-not-open", not_open);
  book.add("errors-not-prefilled", not_prefilled);
  book.add("errors-layers", layers);
  book.add("errors-prefills", prefills);
  book.add("errors-slots", slots);
  book.add("errors-rows", rows);
  book.add("errors-unsupported", unsupported);
}

}  // namespace rkv_golden
