/* For callers that may pass an address only as an argument and not inside a struct: Java's heap arrays
 * under Linker.Option.critical(true) (JDK 22 and later), whose address holds for the call alone.
 * Exported by the shim library; the address goes into the tensor of the same name, which carries dtype,
 * shape and strides, and the call is the C library's. */
#ifndef RKV_JAVA_HEAP_H
#define RKV_JAVA_HEAP_H
#include <rkv/rkv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rkv_prefill with q, k and v at these addresses; the args' tensors are written. */
RKV_API rkv_status rkv_heap_prefill(rkv_cache *cache, const rkv_prefill_args *args, void *q,
                                    void *k, void *v, rkv_error *err);

/* rkv_decode with q, k, v and out at these addresses; the args' tensors are written. */
RKV_API rkv_status rkv_heap_decode(rkv_cache *cache, const rkv_decode_args *args, void *q, void *k,
                                   void *v, void *out, rkv_error *err);

#ifdef __cplusplus
}
#endif
#endif
