// Entry points that need no cache: versions, devices, plans, sizes.
#include <algorithm>

#include "capi/src/barrier.hpp"
#include "capi/src/structs.hpp"
#include "core/layout.hpp"
#include "core/plan.hpp"

namespace {

using rkv::Config;
using rkv::Failure;
using rkv::Request;

// A plan depends on few fields: those that only size a cache may be 0 here.
rkv_cache_config complete_for_plan(rkv_cache_config config, int64_t prompt) {
  if (config.layers == 0) config.layers = 1;
  if (config.kv_heads == 0) config.kv_heads = std::max(1, config.q_heads);
  if (config.q_heads == 0) config.q_heads = config.kv_heads;
  if (config.kv_dtype == 0) config.kv_dtype = RKV_DTYPE_F32;
  if (config.max_prompt_tokens == 0) config.max_prompt_tokens = std::max<int64_t>(1, prompt);
  return config;
}

rkv_status make_plan(const rkv_cache_config* config, const rkv_sequence_options* options,
                     int64_t prompt, rkv_plan* plan, Failure& failure) {
  rkv_cache_config asked{};
  RKV_TRY(rkv::capi::read_struct(config, "config", asked, failure));
  RKV_TRY(rkv::capi::check_output(plan, "plan", failure));
  if (prompt < 1 || prompt > rkv::kMaxPosition) {
    return rkv::fail_value(failure, RKV_INVALID_ARGUMENT, "prompt_tokens", prompt,
                           "it must lie in [1, %lld]", static_cast<long long>(rkv::kMaxPosition));
  }
  Config read;
  RKV_TRY(rkv::read_config(complete_for_plan(asked, prompt), read, failure));
  Request request = read.request;
  if (options != nullptr) {
    rkv_sequence_options more{};
    RKV_TRY(rkv::capi::read_struct(options, "options", more, failure));
    RKV_TRY(rkv::read_request(more, read, request, failure));
  }
  if (request.max_new > rkv::kMaxPosition - prompt) {
    return rkv::fail_value(failure, RKV_INVALID_ARGUMENT, "prompt_tokens", prompt,
                           "with max_new_tokens = %lld it must stay within %lld",
                           static_cast<long long>(request.max_new),
                           static_cast<long long>(rkv::kMaxPosition));
  }
  rkv_plan result{};
  rkv::fill_plan(rkv::make_plan(read, request, prompt), result);
  rkv::capi::write_struct(result, plan);
  return RKV_OK;
}

rkv_status measure(const rkv_cache_config* config, rkv_memory* memory, Failure& failure) {
  rkv_cache_config asked{};
  RKV_TRY(rkv::capi::read_struct(config, "config", asked, failure));
  RKV_TRY(rkv::capi::check_output(memory, "memory", failure));
  Config read;
  rkv::Layout layout;
  RKV_TRY(rkv::read_config(asked, read, failure));
  RKV_TRY(rkv::make_layout(read, layout, failure));
  rkv_memory result{};
  result.alignment = rkv::kAlignment;
  result.storage_bytes = layout.storage_bytes;
  result.workspace_bytes = layout.workspace_bytes;
  result.selection_capacity = layout.selection;
  result.k_bytes = layout.k_bytes;
  result.v_bytes = layout.v_bytes;
  result.summary_bytes = layout.summary_bytes;
  result.index_bytes = layout.index_bytes;
  result.window_bytes = layout.window_bytes;
  result.table_bytes = layout.table_bytes;
  rkv::capi::write_struct(result, memory);
  return RKV_OK;
}

}  // namespace

int32_t rkv_abi_version(void) { return RKV_ABI_VERSION; }

const char* rkv_version_string(void) { return RKV_VERSION_STRING; }

const char* rkv_status_name(rkv_status status) {
  static constexpr const char* kNames[] = {
      "OK",        "INVALID_ARGUMENT", "UNSUPPORTED",  "OUT_OF_CAPACITY", "BUFFER_TOO_SMALL",
      "BAD_STATE", "DEVICE_ERROR",     "ABI_MISMATCH", "CORRUPT_DATA",    "OUT_OF_MEMORY",
      "INTERNAL"};
  return status >= RKV_OK && status <= RKV_INTERNAL ? kNames[status] : "UNKNOWN";
}

rkv_status rkv_device_count(int32_t device_type, int32_t* count, rkv_error* err) {
  return rkv::capi::guarded(err, [&](Failure& failure) {
    if (count == nullptr) return rkv::fail_null(failure, "count", "the result goes there");
    if (device_type != RKV_DEVICE_CPU && device_type != RKV_DEVICE_CUDA) {
      return rkv::fail_value(failure, RKV_INVALID_ARGUMENT, "device_type", device_type,
                             "it must be RKV_DEVICE_CPU (0) or RKV_DEVICE_CUDA (1)");
    }
    *count = device_type == RKV_DEVICE_CPU ? 1 : 0;
    return rkv_status{RKV_OK};
  });
}

rkv_status rkv_plan_make(const rkv_cache_config* config, const rkv_sequence_options* options,
                         int64_t prompt_tokens, rkv_plan* plan, rkv_error* err) {
  return rkv::capi::guarded(err, [&](Failure& failure) {
    return make_plan(config, options, prompt_tokens, plan, failure);
  });
}

rkv_status rkv_cache_memory(const rkv_cache_config* config, rkv_memory* memory, rkv_error* err) {
  return rkv::capi::guarded(err,
                            [&](Failure& failure) { return measure(config, memory, failure); });
}
