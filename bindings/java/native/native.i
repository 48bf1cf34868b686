/* The private classes under the Java package: the shared interface plus Arguments, which holds what a
 * call is given. Addresses of buffers, caches and streams are long; a status that is not OK becomes an
 * RkvException with the text of the C library. */
%module Native

%{
#include <algorithm>

#include "arguments.hpp"

using rkv_java::Arguments;

static void throw_rkv(JNIEnv *jenv, rkv_status status, int32_t native_code, const char *text) {
  char plain[sizeof(rkv_error::text)];  // NewStringUTF takes no damaged UTF-8
  size_t length = 0;
  for (; text[length] != 0 && length + 1 < sizeof plain; ++length) {
    plain[length] = (text[length] & 0x80) != 0 ? '?' : text[length];
  }
  plain[length] = 0;
  const jclass type = jenv->FindClass("io/github/librkv/RkvException");
  if (type == nullptr) return;  // that error is pending
  const jmethodID make = jenv->GetMethodID(type, "<init>", "(IILjava/lang/String;)V");
  if (make == nullptr) return;
  const jstring message = jenv->NewStringUTF(plain);
  if (message == nullptr) return;
  const jobject made = jenv->NewObject(type, make, static_cast<jint>(status),
                                       static_cast<jint>(native_code), message);
  if (made != nullptr) jenv->Throw(static_cast<jthrowable>(made));
}
%}

/* ---- everything is private to the package, and freed by the facade alone ---------------------- */

%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) constantsmodifiers="interface"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }
%}
%typemap(javaclassmodifiers) SWIGTYPE "final class"
%typemap(javafinalize) SWIGTYPE ""
%rename("%(lowercamelcase)s", %$isvariable) "";
%rename(NativeConfig) rkv_cache_config;
%rename(NativeOptions) rkv_sequence_options;
%rename(NativePlan) rkv_plan;
%rename(NativeMemory) rkv_memory;
%rename(NativeStats) rkv_sequence_stats;
%rename(NativeAudit) rkv_audit_result;

/* ---- errors and numbers ------------------------------------------------------------------------ */

%typemap(in, numinputs=0) rkv_error *err (rkv_error error) {
  error.struct_size = sizeof error;
  error.native_code = 0;
  error.text[0] = 0;
  $1 = &error;
}
%typemap(argout) rkv_error *err {
  if (result != RKV_OK) {
    throw_rkv(jenv, result, $1->native_code, $1->text);
    return $null;
  }
}
%typemap(in, numinputs=0) int32_t *count (int32_t number = 0) { $1 = &number; }
%typemap(argout) int32_t *count { $result = *$1; }

/* ---- addresses --------------------------------------------------------------------------------- */

%define ADDRESS(TYPE)
%typemap(jni) TYPE "jlong"
%typemap(jtype) TYPE "long"
%typemap(jstype) TYPE "long"
%typemap(javain) TYPE "$javainput"
%typemap(javaout) TYPE { return $jnicall; }
%typemap(in) TYPE { $1 = reinterpret_cast<$1_ltype>($input); }
%typemap(out) TYPE { $result = reinterpret_cast<jlong>($1); }
%enddef
ADDRESS(rkv_cache *)
ADDRESS(const rkv_cache *)
ADDRESS(void *)
ADDRESS(const void *)

/* A direct buffer: the address of its element 0, 0 where it is not direct. */
%typemap(jni) void *direct "jobject"
%typemap(jtype) void *direct "java.nio.Buffer"
%typemap(jstype) void *direct "java.nio.Buffer"
%typemap(javain) void *direct "$javainput"
%typemap(in) void *direct { $1 = jenv->GetDirectBufferAddress($input); }

/* Six extents, six strides, six strides of the scale. */
%typemap(jni) const void *axes "jlongArray"
%typemap(jtype) const void *axes "long[]"
%typemap(jstype) const void *axes "long[]"
%typemap(javain) const void *axes "$javainput"
%typemap(in) const void *axes (jlong numbers[18]) {
  jenv->GetLongArrayRegion($input, 0, 18, numbers);
  if (jenv->ExceptionCheck()) return $null;
  $1 = numbers;
}

%include "rkv.i"

/* ---- the cache: its life is guarded by CacheState ----------------------------------------------- */

%inline %{
static void *address_of(void *direct) { return direct; }

static int32_t compiled_abi_version() { return RKV_ABI_VERSION; }

static void cache_destroy(rkv_cache *cache) { rkv_cache_destroy(cache); }

static rkv_status sequence_open(rkv_cache *cache, int32_t seq, const rkv_sequence_options *options,
                                rkv_error *err) {
  return rkv_sequence_open(cache, seq, options, err);
}
static rkv_status sequence_close(rkv_cache *cache, int32_t seq, void *stream, rkv_error *err) {
  return rkv_sequence_close(cache, seq, stream, err);
}
static rkv_status sequence_rewind(rkv_cache *cache, int32_t seq, int64_t position, void *stream,
                                  rkv_error *err) {
  return rkv_sequence_rewind(cache, seq, position, stream, err);
}
static rkv_status sequence_fork(rkv_cache *cache, int32_t seq, int32_t copy, void *stream,
                                rkv_error *err) {
  return rkv_sequence_fork(cache, seq, copy, stream, err);
}
static rkv_status stats(const rkv_cache *cache, int32_t seq, int32_t layer, void *stream,
                        rkv_plan *plan, rkv_sequence_stats *stats, rkv_error *err) {
  stats->plan = plan;
  const rkv_status status = rkv_stats(cache, seq, layer, stream, stats, err);
  stats->plan = nullptr;
  return status;
}
%}

/* A number that comes back beside the status is written to `number`, a long in Java's memory. */
%inline %{
static rkv_status cache_create(const rkv_cache_config *config, void *storage, int64_t storage_bytes,
                               void *workspace, int64_t workspace_bytes, void *number,
                               rkv_error *err) {
  rkv_buffers buffers{};
  buffers.struct_size = sizeof buffers;
  buffers.storage = storage;
  buffers.storage_bytes = storage_bytes;
  buffers.workspace = workspace;
  buffers.workspace_bytes = workspace_bytes;
  const bool own = storage_bytes < 0;
  return rkv_cache_create(config, own ? nullptr : &buffers, static_cast<rkv_cache **>(number), err);
}
static rkv_status kept_positions(const rkv_cache *cache, int32_t seq, int32_t layer, void *stream,
                                 void *out, int64_t capacity, void *number, rkv_error *err) {
  return rkv_kept_positions(cache, seq, layer, stream, static_cast<int64_t *>(out), capacity,
                            static_cast<int64_t *>(number), err);
}
%}

/* ---- what a call is given ----------------------------------------------------------------------- */

%nodefaultctor Arguments;
%nodefaultdtor Arguments;
struct Arguments {};

%extend Arguments {
  static int64_t bytes() { return sizeof(Arguments); }

  /* The memory is Java's and zero. */
  void init() { $self->rows.struct_size = sizeof $self->rows; }

  void set_rows(int32_t rows, void *seq, void *positions) {
    $self->rows.rows = rows;
    $self->rows.seq = static_cast<const int32_t *>(seq);
    $self->rows.positions = static_cast<const int64_t *>(positions);
  }
  void set_attend_only(int32_t attend_only) { $self->rows.attend_only = attend_only; }
  void set_lse(void *lse) { $self->rows.lse = static_cast<float *>(lse); }
  void set_row_status(void *status) { $self->rows.row_status = static_cast<int32_t *>(status); }

  /* slot: q, k, v, out. */
  void set_tensor(int32_t slot, int32_t dtype, void *data, int32_t ndim, const void *axes,
                  void *scale) {
    rkv_tensor &tensor = rkv_java::tensor_in(*$self, slot);
    tensor.struct_size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.data = data;
    tensor.ndim = ndim;
    const jlong *numbers = static_cast<const jlong *>(axes);
    std::copy_n(numbers, 6, tensor.shape);
    std::copy_n(numbers + 6, 6, tensor.strides);
    tensor.scale = static_cast<const float *>(scale);
    std::copy_n(numbers + 12, 6, tensor.scale_strides);
  }
  void clear_tensor(int32_t slot) { rkv_java::tensor_in(*$self, slot).struct_size = 0; }

  void set_selection(int32_t space, void *indices, void *counts, int64_t capacity) {
    $self->selection.struct_size = sizeof $self->selection;
    $self->selection.space = space;
    $self->selection.indices = static_cast<int32_t *>(indices);
    $self->selection.counts = static_cast<int32_t *>(counts);
    $self->selection.capacity = capacity;
    $self->rows.selection = &$self->selection;
  }
  void clear_selection() { $self->rows.selection = nullptr; }

  void set_paging(int64_t block_tokens, int64_t max_blocks, int64_t row_stride, void *block_table,
                  void *k_blocks, void *v_blocks) {
    $self->paging.struct_size = sizeof $self->paging;
    $self->paging.block_tokens = block_tokens;
    $self->paging.max_blocks = max_blocks;
    $self->paging.row_stride = row_stride;
    $self->paging.block_table = static_cast<const int32_t *>(block_table);
    $self->paging.k_blocks = static_cast<const void *const *>(k_blocks);
    $self->paging.v_blocks = static_cast<const void *const *>(v_blocks);
  }
  void clear_paging() { $self->paging.struct_size = 0; }

  rkv_status decode_select(rkv_cache *cache, int32_t layer, void *stream, rkv_error *err) {
    return rkv_decode_select(cache, rkv_java::rows_of(*$self, layer), stream, err);
  }
  rkv_status attend(rkv_cache *cache, int32_t layer, void *stream, rkv_error *err) {
    return rkv_attend(cache, rkv_java::rows_of(*$self, layer), stream, err);
  }
  rkv_status decode(rkv_cache *cache, int32_t layer, void *stream, rkv_error *err) {
    return rkv_decode(cache, rkv_java::rows_of(*$self, layer), stream, err);
  }
  rkv_status audit(rkv_cache *cache, int32_t layer, rkv_audit_result *audit_result, void *stream,
                   rkv_error *err) {
    return rkv_audit(cache, rkv_java::rows_of(*$self, layer), audit_result, stream, err);
  }

  rkv_status prefill(rkv_cache *cache, int32_t seq, int32_t layer, int64_t start,
                     int64_t prompt_tokens, void *stream, rkv_error *err) {
    rkv_prefill_args args{};
    args.struct_size = sizeof args;
    args.seq = seq;
    args.layer = layer;
    args.start = start;
    args.prompt_tokens = prompt_tokens;
    args.q = rkv_java::present($self->q);
    args.k = rkv_java::present($self->k);
    args.v = rkv_java::present($self->v);
    args.paging = rkv_java::present($self->paging);
    return rkv_prefill(cache, &args, stream, err);
  }
  rkv_status export_heads(rkv_cache *cache, int32_t seq, int32_t layer, int32_t head_begin,
                          int32_t head_end, void *bytes_out, int64_t capacity, void *number,
                          void *stream, rkv_error *err) {
    const rkv_transfer_args args =
        rkv_java::transfer_args(*$self, seq, layer, head_begin, head_end);
    return rkv_sequence_export(cache, &args, bytes_out, capacity, static_cast<int64_t *>(number),
                               stream, err);
  }
  rkv_status import_heads(rkv_cache *cache, int32_t seq, int32_t layer, int32_t head_begin,
                          int32_t head_end, void *bytes_in, int64_t length, void *stream,
                          rkv_error *err) {
    const rkv_transfer_args args =
        rkv_java::transfer_args(*$self, seq, layer, head_begin, head_end);
    return rkv_sequence_import(cache, &args, bytes_in, length, stream, err);
  }
}
