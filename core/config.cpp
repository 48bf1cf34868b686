#include "core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

namespace rkv {
namespace {

rkv_status in_range(Failure& failure, const char* argument, int64_t value, int64_t low,
                    int64_t high) {
  if (value >= low && value <= high) return RKV_OK;
  return fail_value(failure, RKV_INVALID_ARGUMENT, argument, value, "it must lie in [%lld, %lld]",
                    static_cast<long long>(low), static_cast<long long>(high));
}

rkv_status read_head_dim(Failure& failure, const char* argument, int32_t value) {
  if (value < 8 || value % 8 != 0) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, argument, value,
                      "it must be a multiple of 8 from 8 to 256");
  }
  if (value > 256) {
    return fail_value(failure, RKV_UNSUPPORTED, argument, value, "this build serves up to 256");
  }
  return RKV_OK;
}

rkv_status read_dtype(Failure& failure, const char* argument, int32_t value, DType& out) {
  if (value == RKV_DTYPE_E4M3 || value == RKV_DTYPE_E5M2) {
    return fail_value(failure, RKV_UNSUPPORTED, argument, value,
                      "8-bit types are not served yet; F32 (1), F16 (2) and BF16 (3) are");
  }
  if (value < RKV_DTYPE_F32 || value > RKV_DTYPE_BF16) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, argument, value,
                      "it must be F32 (1), F16 (2) or BF16 (3)");
  }
  out = static_cast<DType>(value);
  return RKV_OK;
}

rkv_status read_budget(Failure& failure, const char* what, int64_t token_budget, double ratio) {
  char argument[64];
  if (token_budget < 0) {
    std::snprintf(argument, sizeof argument, "%s.token_budget", what);
    return fail_value(failure, RKV_INVALID_ARGUMENT, argument, token_budget,
                      "it must be at least 1, or 0 for not given");
  }
  if (ratio != 0.0 && !(ratio >= 1.0 && std::isfinite(ratio))) {
    std::snprintf(argument, sizeof argument, "%s.compression_ratio", what);
    return fail_real(failure, RKV_INVALID_ARGUMENT, argument, ratio,
                     "it must be finite and at least 1, or 0 for not given");
  }
  if (token_budget > 0 && ratio != 0.0) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "%s.token_budget is %lld and %s.compression_ratio is %g: give one of both", what,
                static_cast<long long>(token_budget), what, ratio);
  }
  return RKV_OK;
}

rkv_status read_place(const rkv_cache_config& in, Failure& failure) {
  if (in.device_type == RKV_DEVICE_CUDA) {
    return fail_value(failure, RKV_UNSUPPORTED, "config.device_type", in.device_type,
                      "this build has no CUDA backend; RKV_DEVICE_CPU (0) is served");
  }
  RKV_TRY(in_range(failure, "config.device_type", in.device_type, RKV_DEVICE_CPU, RKV_DEVICE_CUDA));
  if (in.device != 0) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "config.device", in.device,
                      "the CPU is device 0");
  }
  RKV_TRY(
      in_range(failure, "config.storage", in.storage, RKV_STORAGE_COMPACT, RKV_STORAGE_INDEXED));
  if (in.storage == RKV_STORAGE_INDEXED) {
    return fail_value(failure, RKV_UNSUPPORTED, "config.storage", in.storage,
                      "INDEXED storage is not served yet; COMPACT (0) is");
  }
  for (int i = 0; i < 8; ++i) {
    if (in.reserved[i] != 0) {
      return fail(failure, RKV_UNSUPPORTED, "config.reserved[%d] is %d: it must be 0", i,
                  in.reserved[i]);
    }
  }
  return RKV_OK;
}

rkv_status read_shape(const rkv_cache_config& in, Shape& out, Failure& failure) {
  RKV_TRY(in_range(failure, "config.q_heads", in.q_heads, 1, 65536));
  RKV_TRY(in_range(failure, "config.kv_heads", in.kv_heads, 1, 65536));
  if (in.q_heads % in.kv_heads != 0) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "config.q_heads", in.q_heads,
                      "it must be a multiple of config.kv_heads (%d)", in.kv_heads);
  }
  RKV_TRY(read_head_dim(failure, "config.head_dim", in.head_dim));
  if (in.head_dim_v != 0) {
    RKV_TRY(read_head_dim(failure, "config.head_dim_v", in.head_dim_v));
  }
  RKV_TRY(read_dtype(failure, "config.kv_dtype", in.kv_dtype, out.kv));
  out.query = out.kv;
  if (in.query_dtype != 0) {
    RKV_TRY(read_dtype(failure, "config.query_dtype", in.query_dtype, out.query));
  }
  if (in.summary_dtype != 0) {
    DType summary{};
    RKV_TRY(read_dtype(failure, "config.summary_dtype", in.summary_dtype, summary));
    if (summary != out.kv) {
      return fail_value(failure, RKV_INVALID_ARGUMENT, "config.summary_dtype", in.summary_dtype,
                        "it must be 0, config.kv_dtype (%d) or an 8-bit type", in.kv_dtype);
    }
  }
  out.q_heads = in.q_heads;
  out.kv_heads = in.kv_heads;
  out.group = in.q_heads / in.kv_heads;
  out.head_dim = in.head_dim;
  out.head_dim_v = in.head_dim_v == 0 ? in.head_dim : in.head_dim_v;
  return RKV_OK;
}

rkv_status read_limits(const rkv_cache_config& in, Config& out, Failure& failure) {
  RKV_TRY(in_range(failure, "config.layers", in.layers, 1, kMaxLayers));
  RKV_TRY(in_range(failure, "config.max_sequences", in.max_sequences, 0, 1 << 20));
  RKV_TRY(in_range(failure, "config.max_rows", in.max_rows, 0, 1 << 20));
  RKV_TRY(in_range(failure, "config.max_prefills", in.max_prefills, 0, 1 << 20));
  RKV_TRY(in_range(failure, "config.num_threads", in.num_threads, 0, 1024));
  RKV_TRY(in_range(failure, "config.max_prompt_tokens", in.max_prompt_tokens, 1, kMaxPosition));
  RKV_TRY(in_range(failure, "config.max_new_tokens", in.max_new_tokens, 0,
                   kMaxPosition - in.max_prompt_tokens));
  out.layers = in.layers;
  out.max_sequences = std::max(1, in.max_sequences);
  out.max_rows = in.max_rows == 0 ? out.max_sequences : in.max_rows;
  out.max_prefills = std::min(std::max(1, in.max_prefills), out.max_sequences);
  out.threads = in.num_threads != 0
                    ? in.num_threads
                    : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 1024);
  out.max_prompt = in.max_prompt_tokens;
  return RKV_OK;
}

rkv_status read_stages(const rkv_cache_config& in, Config& out, Failure& failure) {
  RKV_TRY(in_range(failure, "config.window_size", in.window_size, 0, 65536));
  RKV_TRY(in_range(failure, "config.kernel_size", in.kernel_size, 0, kMaxPosition));
  if (in.kernel_size != 0 && in.kernel_size % 2 == 0) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "config.kernel_size", in.kernel_size,
                      "it must be odd, or 0 for 63");
  }
  RKV_TRY(in_range(failure, "config.sinks", in.sinks, 0, kMaxPosition));
  RKV_TRY(in_range(failure, "config.recent_tokens", in.recent_tokens, 0, kMaxPosition));
  RKV_TRY(in_range(failure, "config.selection_unit", in.selection_unit, 0, RKV_UNIT_TOKENS));
  RKV_TRY(in_range(failure, "config.stage1_domain", in.stage1_domain, 0, RKV_STAGE1_PREFIX_ONLY));
  RKV_TRY(in_range(failure, "config.selection_domain", in.selection_domain, 0, RKV_SOFTMAX_PAGES));
  RKV_TRY(in_range(failure, "config.pooling", in.pooling, 0, RKV_POOL_AVG));
  RKV_TRY(in_range(failure, "config.temperature", in.temperature, 0, RKV_TEMPERATURE_SQRT_D));
  RKV_TRY(in_range(failure, "config.key_as_query", in.key_as_query, 0, 1));
  if (!(in.softmax_scale >= 0.0F && std::isfinite(in.softmax_scale))) {
    return fail_real(failure, RKV_INVALID_ARGUMENT, "config.softmax_scale", in.softmax_scale,
                     "it must be finite and above 0, or 0 for 1/sqrt(head_dim)");
  }
  if (!(in.logit_softcap >= 0.0F && std::isfinite(in.logit_softcap))) {
    return fail_real(failure, RKV_INVALID_ARGUMENT, "config.logit_softcap", in.logit_softcap,
                     "it must be finite and above 0, or 0 for none");
  }
  out.window = in.window_size == 0 ? 32 : in.window_size;
  out.stage1.kernel = in.kernel_size == 0 ? 63 : in.kernel_size;
  out.stage1.average_pooling = in.pooling == RKV_POOL_AVG;
  out.stage1.prefix_only = in.stage1_domain == RKV_STAGE1_PREFIX_ONLY;
  out.stage1.key_as_query = in.key_as_query != 0;
  out.select.tokens = in.selection_unit == RKV_UNIT_TOKENS;
  out.select.page_softmax = in.selection_domain == RKV_SOFTMAX_PAGES;
  out.select.sqrt_d_temperature = in.temperature == RKV_TEMPERATURE_SQRT_D;
  out.select.sinks = in.sinks;
  out.select.recent = in.recent_tokens;
  out.attention.scale = in.softmax_scale != 0.0F
                            ? in.softmax_scale
                            : static_cast<float>(1.0 / std::sqrt(double{1} * in.head_dim));
  out.attention.softcap = in.logit_softcap;
  for (int32_t layer = 0; layer < kMaxLayers; ++layer) {
    if ((in.dense_layers[layer / 32] >> (layer % 32) & 1U) != 0 && layer >= in.layers) {
      return fail(failure, RKV_INVALID_ARGUMENT,
                  "config.dense_layers has bit %d set: config.layers is %d", layer, in.layers);
    }
  }
  std::memcpy(out.dense_layers, in.dense_layers, sizeof out.dense_layers);
  return RKV_OK;
}

rkv_status read_sizes(const rkv_cache_config& in, Config& out, Failure& failure) {
  RKV_TRY(read_budget(failure, "config", in.token_budget, in.compression_ratio));
  if (in.token_budget == 0 && in.compression_ratio == 0.0) {
    return fail(failure, RKV_INVALID_ARGUMENT,
                "config.token_budget and config.compression_ratio are 0: give one of both");
  }
  RKV_TRY(in_range(failure, "config.prompt_budget", in.prompt_budget, 0, INT64_MAX));
  const int64_t least = int64_t{out.window} + in.sinks;
  if (in.prompt_budget != 0 && in.prompt_budget < least) {
    return fail_value(failure, RKV_INVALID_ARGUMENT, "config.prompt_budget", in.prompt_budget,
                      "it must be at least window_size + sinks = %lld, or 0 for the plan's",
                      static_cast<long long>(least));
  }
  RKV_TRY(in_range(failure, "config.top_k", in.top_k, 0, INT64_MAX));
  RKV_TRY(in_range(failure, "config.page_size", in.page_size, 0, kMaxPosition));
  RKV_TRY(in_range(failure, "config.num_channels", in.num_channels, 0, in.head_dim));
  out.request = {in.token_budget, in.compression_ratio, in.max_new_tokens};
  // Nothing is longer than the largest position: larger sizes by hand mean "all" and stay exact.
  out.prompt_budget = std::min(in.prompt_budget, kMaxPosition);
  out.top_k = std::min(in.top_k, kMaxPosition);
  out.page_size = in.page_size;
  out.channels = in.num_channels;
  return RKV_OK;
}

}  // namespace

rkv_status read_config(const rkv_cache_config& in, Config& out, Failure& failure) {
  Config config;
  RKV_TRY(read_place(in, failure));
  RKV_TRY(read_shape(in, config.shape, failure));
  RKV_TRY(read_limits(in, config, failure));
  RKV_TRY(read_stages(in, config, failure));
  RKV_TRY(read_sizes(in, config, failure));
  out = config;
  return RKV_OK;
}

rkv_status read_request(const rkv_sequence_options& in, const Config& config, Request& out,
                        Failure& failure) {
  if (in.reserved != 0) {
    return fail_value(failure, RKV_UNSUPPORTED, "options.reserved", in.reserved, "it must be 0");
  }
  RKV_TRY(in_range(failure, "options.max_new_tokens", in.max_new_tokens, 0, kMaxPosition));
  RKV_TRY(read_budget(failure, "options", in.token_budget, in.compression_ratio));
  Request request = config.request;
  if (in.max_new_tokens != 0) request.max_new = in.max_new_tokens;
  if (in.token_budget != 0 || in.compression_ratio != 0.0) {
    request.token_budget = in.token_budget;
    request.ratio = in.compression_ratio;
  }
  out = request;
  return RKV_OK;
}

}  // namespace rkv
