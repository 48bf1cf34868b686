// Entry points of the two stages.
#include "capi/src/barrier.hpp"
#include "capi/src/structs.hpp"

using rkv::Cache;
using rkv::DecodeCall;
using rkv::Failure;
using rkv::PrefillCall;
using rkv::capi::exclusive;
using rkv::capi::read_struct;

namespace {

// A nested tensor at full size; null stays null.
rkv_status read_nested(const rkv_tensor* in, const char* name, rkv_tensor& copy,
                       const rkv_tensor*& out, Failure& failure) {
  if (in == nullptr) return RKV_OK;
  RKV_TRY(read_struct(in, name, copy, failure));
  out = &copy;
  return RKV_OK;
}

// The public arguments with their nested structs, at full size, for the length of one call.
struct DecodeArguments {
  rkv_tensor q, k, v, out;
  rkv_selection selection;
  DecodeCall call;

  rkv_status read(const rkv_decode_args* args, Failure& failure) {
    RKV_TRY(read_struct(args, "args", call.args, failure));
    RKV_TRY(read_nested(call.args.q, "args.q", q, call.q, failure));
    RKV_TRY(read_nested(call.args.k, "args.k", k, call.k, failure));
    RKV_TRY(read_nested(call.args.v, "args.v", v, call.v, failure));
    RKV_TRY(read_nested(call.args.out, "args.out", out, call.out, failure));
    if (call.args.selection != nullptr) {
      RKV_TRY(read_struct(call.args.selection, "args.selection", selection, failure));
      call.selection = &selection;
    }
    return RKV_OK;
  }
};

rkv_status step(rkv_cache* cache, Cache::Step kind, const rkv_decode_args* args, rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    DecodeArguments arguments;
    RKV_TRY(arguments.read(args, failure));
    return self.decode(kind, arguments.call, failure);
  });
}

}  // namespace

rkv_status rkv_prefill(rkv_cache* cache, const rkv_prefill_args* args, void* /*stream*/,
                       rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    PrefillCall call;
    rkv_tensor q, k, v;
    RKV_TRY(read_struct(args, "args", call.args, failure));
    RKV_TRY(read_nested(call.args.q, "args.q", q, call.q, failure));
    RKV_TRY(read_nested(call.args.k, "args.k", k, call.k, failure));
    RKV_TRY(read_nested(call.args.v, "args.v", v, call.v, failure));
    return self.prefill(call, failure);
  });
}

rkv_status rkv_decode_select(rkv_cache* cache, const rkv_decode_args* args, void* /*stream*/,
                             rkv_error* err) {
  return step(cache, Cache::Step::kSelect, args, err);
}

rkv_status rkv_attend(rkv_cache* cache, const rkv_decode_args* args, void* /*stream*/,
                      rkv_error* err) {
  return step(cache, Cache::Step::kAttend, args, err);
}

rkv_status rkv_decode(rkv_cache* cache, const rkv_decode_args* args, void* /*stream*/,
                      rkv_error* err) {
  return step(cache, Cache::Step::kDecode, args, err);
}

rkv_status rkv_audit(rkv_cache* cache, const rkv_decode_args* args, rkv_audit_result* result,
                     void* /*stream*/, rkv_error* err) {
  return exclusive(cache, err, [&](Cache& self, Failure& failure) {
    RKV_TRY(rkv::capi::check_output(result, "result", failure));
    DecodeArguments arguments;
    RKV_TRY(arguments.read(args, failure));
    rkv_audit_result value{};
    RKV_TRY(self.audit(arguments.call, value, failure));
    rkv::capi::write_struct(value, result);
    return rkv_status{RKV_OK};
  });
}
