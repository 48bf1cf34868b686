// The arguments of one call, in memory that a Java object owns and uses again and again: Java fills it
// once, and a step costs one crossing. Holds addresses only; the Java object keeps the buffers alive.
#pragma once

#include "rkv/rkv.h"

namespace rkv_java {

struct Arguments {
  rkv_decode_args rows;
  rkv_tensor q, k, v, out;
  rkv_selection selection;
  rkv_paging paging;
};

// slot: 0 q, 1 k, 2 v, 3 out.
inline rkv_tensor& tensor_in(Arguments& arguments, int32_t slot) {
  rkv_tensor* const tensors[] = {&arguments.q, &arguments.k, &arguments.v, &arguments.out};
  return *tensors[slot];
}

inline const rkv_tensor* present(const rkv_tensor& tensor) {
  return tensor.struct_size != 0 ? &tensor : nullptr;
}
inline const rkv_paging* present(const rkv_paging& paging) {
  return paging.struct_size != 0 ? &paging : nullptr;
}

// Links what was given, for a call on `layer`.
inline const rkv_decode_args* rows_of(Arguments& arguments, int32_t layer) {
  arguments.rows.layer = layer;
  arguments.rows.q = present(arguments.q);
  arguments.rows.k = present(arguments.k);
  arguments.rows.v = present(arguments.v);
  arguments.rows.out = present(arguments.out);
  arguments.rows.paging = present(arguments.paging);
  return &arguments.rows;
}

inline rkv_transfer_args transfer_args(const Arguments& arguments, int32_t seq, int32_t layer,
                                       int32_t head_begin, int32_t head_end) {
  rkv_transfer_args args{};
  args.struct_size = sizeof args;
  args.seq = seq;
  args.layer = layer;
  args.head_begin = head_begin;
  args.head_end = head_end;
  args.k = present(arguments.k);
  args.v = present(arguments.v);
  args.paging = present(arguments.paging);
  return args;
}

}  // namespace rkv_java
