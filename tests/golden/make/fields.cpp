#include "fields.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace rkv_golden {
namespace {

template <class Struct>
struct Access {
  std::function<void(Struct&, const std::string&)> set;
  std::function<std::string(const Struct&)> get;
};

template <class Struct, class T>
Access<Struct> access(T Struct::* member) {
  return {[member](Struct& s, const std::string& text) {
            if constexpr (std::is_integral_v<T>) {
              s.*member = static_cast<T>(std::stoll(text));
            } else {
              s.*member = static_cast<T>(std::stod(text));
            }
          },
          [member](const Struct& s) {
            if constexpr (std::is_integral_v<T>) {
              return std::to_string(s.*member);
            } else {
              return real_text(static_cast<double>(s.*member));
            }
          }};
}

Access<rkv_cache_config> layer_bits() {
  return {[](rkv_cache_config& c, const std::string& text) {
            std::istringstream in(text);
            for (std::string layer; std::getline(in, layer, ',');) {
              const int bit = std::stoi(layer);
              c.dense_layers[bit / 32] |= 1u << (bit % 32);
            }
          },
          [](const rkv_cache_config&) -> std::string { throw std::invalid_argument("bits"); }};
}

#define MEMBER(type, name) {#name, access(&type::name)}

const std::map<std::string, Access<rkv_cache_config>>& config_fields() {
  static const std::map<std::string, Access<rkv_cache_config>> fields = {
      MEMBER(rkv_cache_config, device_type),
      MEMBER(rkv_cache_config, device),
      MEMBER(rkv_cache_config, layers),
      MEMBER(rkv_cache_config, q_heads),
      MEMBER(rkv_cache_config, kv_heads),
      MEMBER(rkv_cache_config, head_dim),
      MEMBER(rkv_cache_config, head_dim_v),
      MEMBER(rkv_cache_config, kv_dtype),
      MEMBER(rkv_cache_config, query_dtype),
      MEMBER(rkv_cache_config, summary_dtype),
      MEMBER(rkv_cache_config, storage),
      MEMBER(rkv_cache_config, max_sequences),
      MEMBER(rkv_cache_config, max_rows),
      MEMBER(rkv_cache_config, max_prefills),
      MEMBER(rkv_cache_config, num_threads),
      MEMBER(rkv_cache_config, max_prompt_tokens),
      MEMBER(rkv_cache_config, max_new_tokens),
      MEMBER(rkv_cache_config, token_budget),
      MEMBER(rkv_cache_config, compression_ratio),
      MEMBER(rkv_cache_config, prompt_budget),
      MEMBER(rkv_cache_config, top_k),
      MEMBER(rkv_cache_config, page_size),
      MEMBER(rkv_cache_config, num_channels),
      MEMBER(rkv_cache_config, window_size),
      MEMBER(rkv_cache_config, kernel_size),
      MEMBER(rkv_cache_config, sinks),
      MEMBER(rkv_cache_config, recent_tokens),
      MEMBER(rkv_cache_config, selection_unit),
      MEMBER(rkv_cache_config, stage1_domain),
      MEMBER(rkv_cache_config, selection_domain),
      MEMBER(rkv_cache_config, pooling),
      MEMBER(rkv_cache_config, temperature),
      MEMBER(rkv_cache_config, key_as_query),
      MEMBER(rkv_cache_config, softmax_scale),
      MEMBER(rkv_cache_config, logit_softcap),
      {"dense_layers", layer_bits()},
  };
  return fields;
}

const std::map<std::string, Access<rkv_sequence_options>>& options_fields() {
  static const std::map<std::string, Access<rkv_sequence_options>> fields = {
      MEMBER(rkv_sequence_options, max_new_tokens),
      MEMBER(rkv_sequence_options, token_budget),
      MEMBER(rkv_sequence_options, compression_ratio),
  };
  return fields;
}

template <class Struct>
void set_all(Struct& object, const std::map<std::string, Access<Struct>>& fields,
             const std::string& text) {
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const std::size_t equals = word.find('=');
    const auto field = fields.find(word.substr(0, equals));
    if (equals == std::string::npos || field == fields.end()) throw std::invalid_argument(word);
    field->second.set(object, word.substr(equals + 1));
  }
}

}  // namespace

void set_fields(rkv_cache_config& config, const std::string& text) {
  set_all(config, config_fields(), text);
}
void set_fields(rkv_sequence_options& options, const std::string& text) {
  set_all(options, options_fields(), text);
}

std::string field_text(const rkv_cache_config& config, const std::string& name) {
  return name + "=" + config_fields().at(name).get(config);
}

std::string real_text(double x, int digits) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char text[40];
  for (int n = 1; n <= digits; ++n) {
    std::snprintf(text, sizeof text, "%.*g", n, x);
    if (std::stod(text) == x) break;
  }
  return std::stod(text) == 0 ? "0" : text;
}

}  // namespace rkv_golden
