/* The private extension module of the Python package: the shared interface plus CacheHandle, whose
 * methods take arrays by the buffer protocol or DLPack. Every call releases the GIL (-threads). */
%module(package="rkv._swig") native

%begin %{
#define PY_SSIZE_T_CLEAN
#include "unlocked.hpp"
%}

%{
#include <cfloat>

#include "array.hpp"
#include "cache_handle.hpp"

using namespace rkv_python;

static rkv_transfer_args transfer_args(int32_t seq, int32_t layer, int32_t begin, int32_t end) {
  rkv_transfer_args args{};
  args.struct_size = sizeof args;
  args.seq = seq;
  args.layer = layer;
  args.head_begin = begin;
  args.head_end = end;
  return args;
}
%}

/* ---- errors: a status that is not OK becomes the exception of its kind ----------------------- */

%typemap(in, numinputs=0) rkv_error *err (rkv_error error) {
  error = rkv_error();
  error.struct_size = sizeof error;
  $1 = &error;
}
%typemap(out) rkv_status { $result = SWIG_Py_Void(); }
%typemap(argout) rkv_error *err {
  if (result != RKV_OK) {
    Py_CLEAR($result);
    rkv_python::raise(result, $1->native_code, $1->text);
    SWIG_fail;
  }
}

/* ---- numbers: out of range is an InvalidArgumentError that names the argument ---------------- */

%typemap(in) int32_t (int64_t number) {
  if (!rkv_python::to_integer($input, "$1_name", INT32_MIN, INT32_MAX, &number)) SWIG_fail;
  $1 = static_cast<$1_ltype>(number);
}
%typemap(in) int64_t {
  int64_t number = 0;
  if (!rkv_python::to_integer($input, "$1_name", INT64_MIN, INT64_MAX, &number)) SWIG_fail;
  $1 = number;
}
%typemap(in) double {
  double number = 0;
  if (!rkv_python::to_double($input, "$1_name", DBL_MAX, &number)) SWIG_fail;
  $1 = number;
}
%typemap(in) float {
  double number = 0;
  if (!rkv_python::to_double($input, "$1_name", FLT_MAX, &number)) SWIG_fail;
  $1 = static_cast<float>(number);
}
%typemap(in) void *stream {
  $1 = PyLong_AsVoidPtr($input);
  if (PyErr_Occurred() != nullptr) {
    rkv_python::raise_argument("stream", "need the handle as an integer");
    SWIG_fail;
  }
}
%typemap(in, numinputs=0) int32_t *count (int32_t number = 0), int64_t *count (int64_t number = 0),
    int64_t *bytes (int64_t number = 0) {
  $1 = &number;
}
%typemap(argout) int32_t *count, int64_t *count, int64_t *bytes {
  Py_XDECREF($result);
  $result = PyLong_FromLongLong(*$1);
}

/* ---- arrays: views for the length of the call ------------------------------------------------- */

/* Arguments of CacheHandle's methods (arg1 is the cache). */
%typemap(in) const Array & (Array view) {
  if (!view.acquire($input, "$1_name", false, arg1->on_cpu())) SWIG_fail;
  $1 = &view;
}
%typemap(in) const Array &out (Array view), const Array &lse (Array view),
    const Array &row_status (Array view) {
  if (!view.acquire($input, "$1_name", true, arg1->on_cpu())) SWIG_fail;
  $1 = &view;
}
/* Arguments of what a call is made of, before any cache. */
%typemap(in) Array &block_table (Array view), Array &k_blocks (Array view),
    Array &v_blocks (Array view) {
  if (!view.acquire($input, "$1_name", false, false)) SWIG_fail;
  $1 = &view;
}
%typemap(in) Array & (Array view) {
  if (!view.acquire($input, "$1_name", true, false)) SWIG_fail;
  $1 = &view;
}

%include "rkv.i"

/* ---- what the arguments of a call are made of ------------------------------------------------- */

/* Letting go of an array needs the GIL. */
%nothread HeldBuffer::~HeldBuffer;
%nothread SelectionView::~SelectionView;
%nothread PagingView::~PagingView;

class HeldBuffer {
 public:
  explicit HeldBuffer(Array &buffer);
};

class SelectionView {
 public:
  SelectionView(Array &indices, Array &counts, int32_t space);
};

class PagingView {
 public:
  PagingView(int64_t block_tokens, Array &block_table, Array &k_blocks, Array &v_blocks);
};

/* ---- the cache -------------------------------------------------------------------------------- */

%define RKV_ROW_PARAMETERS
int32_t layer, int32_t attend_only, const Array &seq, const Array &positions, const Array &q,
const Array &k, const Array &v, const Array &out, const Array &lse, const Array &row_status,
const SelectionView *selection, const PagingView *paging
%enddef

%{
#define RKV_ROWS \
  RowArgs{layer, attend_only, seq, positions, q, k, v, out, lse, row_status, selection, paging}
%}

class CacheHandle {
 public:
  CacheHandle();
  ~CacheHandle();
  rkv_status create(const rkv_cache_config *config, const HeldBuffer *storage,
                    const HeldBuffer *workspace, rkv_error *err);
  void close();
  bool closed() const;
  rkv_status open_sequence(int32_t seq, const rkv_sequence_options *options, rkv_error *err);
  rkv_status close_sequence(int32_t seq, void *stream, rkv_error *err);
  rkv_status rewind(int32_t seq, int64_t position, void *stream, rkv_error *err);
  rkv_status fork(int32_t seq, int32_t copy, void *stream, rkv_error *err);
  rkv_status stats(int32_t seq, int32_t layer, void *stream, rkv_plan *plan,
                   rkv_sequence_stats *stats, rkv_error *err);
  rkv_status kept_positions(int32_t seq, int32_t layer, void *stream, const Array &out,
                            int64_t *count, rkv_error *err);
};

%extend CacheHandle {
  rkv_status export_heads(int32_t seq, int32_t layer, int32_t head_begin, int32_t head_end,
                          const Array &k, const Array &v, const PagingView *paging,
                          const Array &out, void *stream, int64_t *bytes, rkv_error *err) {
    return $self->transfer_out(transfer_args(seq, layer, head_begin, head_end), k, v, paging, out,
                               bytes, stream, err);
  }
  rkv_status import_heads(int32_t seq, int32_t layer, int32_t head_begin, int32_t head_end,
                          const Array &k, const Array &v, const PagingView *paging,
                          const Array &data, void *stream, rkv_error *err) {
    return $self->transfer_in(transfer_args(seq, layer, head_begin, head_end), k, v, paging, data,
                              stream, err);
  }
  rkv_status prefill(int32_t seq, int32_t layer, int64_t start, int64_t prompt_tokens,
                     const Array &q, const Array &k, const Array &v, const PagingView *paging,
                     void *stream, rkv_error *err) {
    rkv_prefill_args args{};
    args.struct_size = sizeof args;
    args.seq = seq;
    args.layer = layer;
    args.start = start;
    args.prompt_tokens = prompt_tokens;
    return $self->prefill(args, q, k, v, paging, stream, err);
  }
  rkv_status decode_select(RKV_ROW_PARAMETERS, void *stream, rkv_error *err) {
    return $self->select(RKV_ROWS, stream, err);
  }
  rkv_status attend(RKV_ROW_PARAMETERS, void *stream, rkv_error *err) {
    return $self->attend(RKV_ROWS, stream, err);
  }
  rkv_status decode(RKV_ROW_PARAMETERS, void *stream, rkv_error *err) {
    return $self->decode(RKV_ROWS, stream, err);
  }
  rkv_status audit(RKV_ROW_PARAMETERS, void *stream, rkv_audit_result *result, rkv_error *err) {
    return $self->audit(RKV_ROWS, result, stream, err);
  }
}
