#include "heap.h"

namespace {

// The caller's own tensor, const in the args for the library's sake alone.
void place(const rkv_tensor* tensor, void* data) {
  if (tensor != nullptr) const_cast<rkv_tensor*>(tensor)->data = data;
}

}  // namespace

rkv_status rkv_heap_prefill(rkv_cache* cache, const rkv_prefill_args* args, void* q, void* k,
                            void* v, rkv_error* err) {
  if (args != nullptr) {
    place(args->q, q);
    place(args->k, k);
    place(args->v, v);
  }
  return rkv_prefill(cache, args, nullptr, err);
}

rkv_status rkv_heap_decode(rkv_cache* cache, const rkv_decode_args* args, void* q, void* k, void* v,
                           void* out, rkv_error* err) {
  if (args != nullptr) {
    place(args->q, q);
    place(args->k, k);
    place(args->v, v);
    place(args->out, out);
  }
  return rkv_decode(cache, args, nullptr, err);
}
