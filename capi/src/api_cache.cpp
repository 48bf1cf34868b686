// Entry points around a cache's life: create, sequences, what they hold.
#include "capi/src/barrier.hpp"
#include "capi/src/structs.hpp"

using rkv::Cache;
using rkv::Failure;
using rkv::capi::exclusive;
using rkv::capi::guarded;
using rkv::capi::read_struct;
using rkv::capi::shared;

rkv_status rkv_cache_create(const rkv_cache_config* config, const rkv_buffers* buffers,
                            rkv_cache** cache, rkv_error* err) {
  return guarded(err, [&](Failure& failure) {
    if (cache == nullptr) return rkv::fail_null(failure, "cache", "the new cache goes there");
    rkv_cache_config asked{};
    RKV_TRY(read_struct(config, "config", asked, failure));
    rkv_buffers given{};
    if (buffers != nullptr) {
      RKV_TRY(read_struct(buffers, "buffers", given, failure));
      if (given.reserved != 0) {
        return rkv::fail_value(failure, RKV_UNSUPPORTED, "buffers.reserved", given.reserved,
                               "it must be 0");
      }
    }
    rkv::Config read;
    RKV_TRY(rkv::read_config(asked, read, failure));
    auto handle = std::make_unique<rkv_cache>();
    RKV_TRY(Cache::create(read, buffers == nullptr ? nullptr : &given, handle->cache, failure));
    *cache = handle.release();
    return rkv_status{RKV_OK};
  });
}

void rkv_cache_destroy(rkv_cache* cache) { delete cache; }

rkv_status rkv_sequence_open(rkv_cache* cache, int32_t seq, const rkv_sequence_options* options,
                             rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    rkv_sequence_options given{};
    if (options != nullptr) RKV_TRY(read_struct(options, "options", given, failure));
    return self.open(seq, given, failure);
  });
}

rkv_status rkv_sequence_close(rkv_cache* cache, int32_t seq, void* /*stream*/, rkv_error* err) {
  return exclusive(cache, err,
                   [&](Cache& self, Failure& failure) { return self.close(seq, failure); });
}

rkv_status rkv_sequence_rewind(rkv_cache* cache, int32_t seq, int64_t position, void* /*stream*/,
                               rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    return self.rewind(seq, position, failure);
  });
}

rkv_status rkv_sequence_fork(rkv_cache* cache, int32_t seq, int32_t copy, void* /*stream*/,
                             rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    RKV_TRY(self.check_open(seq, failure));
    return rkv::fail_value(failure, RKV_UNSUPPORTED, "copy", copy,
                           "rkv_sequence_fork is not served yet (seq is %d)", seq);
  });
}

rkv_status rkv_sequence_export(rkv_cache* cache, const rkv_transfer_args* args, void* /*out*/,
                               int64_t /*capacity*/, int64_t* /*bytes*/, void* /*stream*/,
                               rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    rkv_transfer_args given{};
    RKV_TRY(read_struct(args, "args", given, failure));
    RKV_TRY(self.check_open(given.seq, failure));
    return rkv::fail_value(failure, RKV_UNSUPPORTED, "args.layer", given.layer,
                           "rkv_sequence_export is not served yet (args.seq is %d)", given.seq);
  });
}

rkv_status rkv_sequence_import(rkv_cache* cache, const rkv_transfer_args* args, const void* /*in*/,
                               int64_t bytes, void* /*stream*/, rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    rkv_transfer_args given{};
    RKV_TRY(read_struct(args, "args", given, failure));
    RKV_TRY(self.check_open(given.seq, failure));
    return rkv::fail_value(failure, RKV_UNSUPPORTED, "bytes", bytes,
                           "rkv_sequence_import is not served yet (args.seq is %d)", given.seq);
  });
}

rkv_status rkv_stats(const rkv_cache* cache, int32_t seq, int32_t layer, void* /*stream*/,
                     rkv_sequence_stats* stats, rkv_error* err) {
  return shared(cache, err, [&](const Cache& self, Failure& failure) {
    RKV_TRY(rkv::capi::check_output(stats, "stats", failure));
    constexpr size_t kPlanEnd = offsetof(rkv_sequence_stats, plan) + sizeof(rkv_plan*);
    rkv_plan* plan = stats->struct_size >= kPlanEnd ? stats->plan : nullptr;
    if (plan != nullptr) RKV_TRY(rkv::capi::check_output(plan, "stats.plan", failure));
    rkv_sequence_stats result{};
    rkv_plan result_plan{};
    RKV_TRY(self.stats(seq, layer, result, &result_plan, failure));
    if (plan != nullptr) rkv::capi::write_struct(result_plan, plan);
    result.plan = plan;
    rkv::capi::write_struct(result, stats);
    return rkv_status{RKV_OK};
  });
}

rkv_status rkv_kept_positions(const rkv_cache* cache, int32_t seq, int32_t layer, void* /*stream*/,
                              int64_t* out, int64_t capacity, int64_t* count, rkv_error* err) {
  return shared(cache, err, [&](const Cache& self, Failure& failure) {
    if (count == nullptr) return rkv::fail_null(failure, "count", "the result goes there");
    int64_t rows = 0;
    const rkv_status status = self.kept_positions(seq, layer, out, capacity, rows, failure);
    if (status == RKV_OK || status == RKV_BUFFER_TOO_SMALL) *count = rows;
    return status;
  });
}
