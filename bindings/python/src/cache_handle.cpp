#include "cache_handle.hpp"

#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace rkv_python {
namespace {

const char* dtype_text(int32_t dtype) {
  switch (dtype) {
    case RKV_DTYPE_F32: return "float32";
    case RKV_DTYPE_F16: return "float16";
    case RKV_DTYPE_BF16: return "bfloat16 or uint16";
    case RKV_DTYPE_E4M3: return "float8_e4m3fn";
    case RKV_DTYPE_E5M2: return "float8_e5m2";
    default: return "float32, float16 or bfloat16";
  }
}

// 0: no type of the library. uint16 carries bfloat16 where that is what the cache holds.
int32_t dtype_of(Element element, int32_t expected) {
  switch (element) {
    case Element::kFloat32: return RKV_DTYPE_F32;
    case Element::kFloat16: return RKV_DTYPE_F16;
    case Element::kBfloat16: return RKV_DTYPE_BF16;
    case Element::kE4m3: return RKV_DTYPE_E4M3;
    case Element::kE5m2: return RKV_DTYPE_E5M2;
    case Element::kUint16: return expected == RKV_DTYPE_BF16 ? RKV_DTYPE_BF16 : 0;
    default: return 0;
  }
}

const char* device_text(int32_t type) { return type == RKV_DEVICE_CPU ? "cpu" : "cuda"; }

}  // namespace

rkv_status CacheHandle::fail(rkv_error* err, rkv_status status, const char* format, ...) const {
  err->status = status;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(err->text, sizeof err->text, format, arguments);
  va_end(arguments);
  return status;
}

// ---- life -----------------------------------------------------------------------------

rkv_status CacheHandle::create(const rkv_cache_config* config, const HeldBuffer* storage,
                               const HeldBuffer* workspace, rkv_error* err) {
  const std::unique_lock lock(mutex_);
  if (cache_ != nullptr || closing_) return fail(err, RKV_BAD_STATE, "the cache was made before");
  device_type_ = config->device_type;
  device_ = config->device;
  kv_heads_ = config->kv_heads;
  q_heads_ = config->q_heads;
  kv_dtype_ = config->kv_dtype;
  query_dtype_ = config->query_dtype != 0 ? config->query_dtype : config->kv_dtype;
  if (storage == nullptr || workspace == nullptr) {
    return rkv_cache_create(config, nullptr, &cache_, err);
  }
  const struct {
    const Array& array;
    const char* name;
  } given[] = {{storage->array, "storage"}, {workspace->array, "workspace"}};
  for (const auto& [array, name] : given) {
    if (!array.present || !array.contiguous()) {
      return fail(err, RKV_INVALID_ARGUMENT, "%s: need a contiguous writable buffer", name);
    }
    if (const rkv_status status = check_device(array, name, err)) return status;
  }
  rkv_buffers buffers{};
  buffers.struct_size = sizeof buffers;
  buffers.storage = storage->array.data;
  buffers.storage_bytes = storage->array.bytes();
  buffers.workspace = workspace->array.data;
  buffers.workspace_bytes = workspace->array.bytes();
  return rkv_cache_create(config, &buffers, &cache_, err);
}

void CacheHandle::close() {
  closing_ = true;
  const std::unique_lock lock(mutex_);
  rkv_cache_destroy(cache_);
  cache_ = nullptr;
}

template <typename Call>
rkv_status CacheHandle::guarded(rkv_error* err, const Call& call) {
  // Looked at before the lock too: a stream of calls must not keep close waiting.
  if (closing_) return fail(err, RKV_BAD_STATE, "the cache is closed");
  const std::shared_lock lock(mutex_);
  if (cache_ == nullptr) return fail(err, RKV_BAD_STATE, "the cache is closed");
  return call();
}

// ---- checks ---------------------------------------------------------------------------

rkv_status CacheHandle::check_device(const Array& array, const char* name, rkv_error* err) const {
  if (array.device_type == device_type_ &&
      (device_type_ == RKV_DEVICE_CPU || array.device == device_)) {
    return RKV_OK;
  }
  return fail(err, RKV_INVALID_ARGUMENT, "%s: is on device %s:%d, need %s:%d", name,
              device_text(array.device_type), array.device, device_text(device_type_), device_);
}

// columns 0: one axis. An absent array passes.
rkv_status CacheHandle::check_plain(const Array& array, const char* name, Element element,
                                    int64_t rows, int64_t columns, rkv_error* err) const {
  if (!array.present) return RKV_OK;
  const bool shaped = columns == 0
                          ? array.ndim == 1 && array.shape[0] == rows
                          : array.ndim == 2 && array.shape[0] == rows && array.shape[1] == columns;
  if (array.element != element || !shaped || !array.packed()) {
    char need[48];
    std::snprintf(need, sizeof need, columns == 0 ? "[%lld]" : "[%lld, %lld]",
                  static_cast<long long>(rows), static_cast<long long>(columns));
    return fail(err, RKV_INVALID_ARGUMENT, "%s: %s%s, need a contiguous %s %s", name,
                array.describe().text, array.packed() ? "" : " with gaps or misaligned",
                element_text(element), need);
  }
  return check_device(array, name, err);
}

rkv_status CacheHandle::fill_tensor(const Array& array, const char* name, int32_t dtype,
                                    rkv_tensor* tensor, rkv_error* err) const {
  const int32_t own = dtype_of(array.element, dtype);
  if (own == 0) {
    return fail(err, RKV_INVALID_ARGUMENT, "%s: %s, need %s", name, array.describe().text,
                dtype_text(dtype));
  }
  tensor->struct_size = sizeof *tensor;
  tensor->dtype = own;
  tensor->data = array.data;
  tensor->ndim = array.ndim;
  for (int axis = 0; axis < array.ndim; ++axis) {
    tensor->shape[axis] = array.shape[axis];
    tensor->strides[axis] = array.strides[axis];
  }
  return check_device(array, name, err);
}

rkv_status CacheHandle::fill_paging(const PagingView& view, int64_t rows, rkv_paging* paging,
                                    rkv_error* err) const {
  const struct {
    const Array& array;
    const char* name;
    int32_t item_size;
  } tables[] = {{view.block_table, "block_table", 4},
                {view.k_blocks, "k_blocks", 8},
                {view.v_blocks, "v_blocks", 8}};
  const Array* first = nullptr;
  for (const auto& [array, name, item_size] : tables) {
    if (!array.present) continue;
    const bool integer =
        item_size == 4 ? array.element == Element::kInt32
                       : array.element == Element::kInt64 || array.element == Element::kUint64;
    if (!integer || array.ndim != 2 || array.shape[0] < rows ||
        (array.shape[1] > 1 && array.strides[1] != 1)) {
      return fail(err, RKV_INVALID_ARGUMENT,
                  "%s: %s, need %s [%lld, max_blocks] with adjacent columns", name,
                  array.describe().text, item_size == 4 ? "int32" : "uint64",
                  static_cast<long long>(rows));
    }
    if (first != nullptr &&
        (array.shape[1] != first->shape[1] || array.strides[0] != first->strides[0])) {
      return fail(err, RKV_INVALID_ARGUMENT,
                  "%s: shape or row stride differs from the other table's", name);
    }
    if (const rkv_status status = check_device(array, name, err)) return status;
    first = &array;
  }
  paging->struct_size = sizeof *paging;
  paging->block_tokens = view.block_tokens;
  if (first != nullptr) {
    paging->max_blocks = first->shape[1];
    paging->row_stride = first->strides[0];
  }
  paging->block_table = static_cast<const int32_t*>(view.block_table.data);
  paging->k_blocks = static_cast<const void* const*>(view.k_blocks.data);
  paging->v_blocks = static_cast<const void* const*>(view.v_blocks.data);
  return RKV_OK;
}

rkv_status CacheHandle::fill_selection(const SelectionView& view, int64_t rows,
                                       rkv_selection* selection, rkv_error* err) const {
  const Array &indices = view.indices, &counts = view.counts;
  if (indices.element != Element::kInt32 || indices.ndim != 3 || !indices.packed() ||
      indices.shape[0] < rows || indices.shape[1] != kv_heads_) {
    return fail(err, RKV_INVALID_ARGUMENT,
                "selection.indices: %s, need a contiguous int32 [%lld, %d, capacity]",
                indices.describe().text, static_cast<long long>(rows), kv_heads_);
  }
  if (counts.element != Element::kInt32 || counts.ndim != 2 || !counts.packed() ||
      counts.shape[0] < rows || counts.shape[1] != kv_heads_) {
    return fail(err, RKV_INVALID_ARGUMENT,
                "selection.counts: %s, need a contiguous int32 [%lld, %d]", counts.describe().text,
                static_cast<long long>(rows), kv_heads_);
  }
  if (const rkv_status status = check_device(indices, "selection.indices", err)) return status;
  if (const rkv_status status = check_device(counts, "selection.counts", err)) return status;
  selection->struct_size = sizeof *selection;
  selection->space = view.space;
  selection->indices = static_cast<int32_t*>(indices.data);
  selection->counts = static_cast<int32_t*>(counts.data);
  selection->capacity = indices.shape[2];
  return RKV_OK;
}

// ---- sequences ------------------------------------------------------------------------

rkv_status CacheHandle::open_sequence(int32_t seq, const rkv_sequence_options* options,
                                      rkv_error* err) {
  return guarded(err, [&] { return rkv_sequence_open(cache_, seq, options, err); });
}

rkv_status CacheHandle::close_sequence(int32_t seq, void* stream, rkv_error* err) {
  return guarded(err, [&] { return rkv_sequence_close(cache_, seq, stream, err); });
}

rkv_status CacheHandle::rewind(int32_t seq, int64_t position, void* stream, rkv_error* err) {
  return guarded(err, [&] { return rkv_sequence_rewind(cache_, seq, position, stream, err); });
}

rkv_status CacheHandle::fork(int32_t seq, int32_t copy, void* stream, rkv_error* err) {
  return guarded(err, [&] { return rkv_sequence_fork(cache_, seq, copy, stream, err); });
}

template <typename Args>
rkv_status CacheHandle::fill_store(const Array& k, const Array& v, const PagingView* paging,
                                   int64_t rows, Tensors* tensors, Args* args,
                                   rkv_error* err) const {
  if (k.present) {
    if (const rkv_status status = fill_tensor(k, "k", kv_dtype_, &tensors->k, err)) return status;
    args->k = &tensors->k;
  }
  if (v.present) {
    if (const rkv_status status = fill_tensor(v, "v", kv_dtype_, &tensors->v, err)) return status;
    args->v = &tensors->v;
  }
  if (paging != nullptr) {
    if (const rkv_status status = fill_paging(*paging, rows, &tensors->paging, err)) return status;
    args->paging = &tensors->paging;
  }
  return RKV_OK;
}

rkv_status CacheHandle::transfer_out(const rkv_transfer_args& given, const Array& k, const Array& v,
                                     const PagingView* paging, const Array& out, int64_t* bytes,
                                     void* stream, rkv_error* err) {
  return guarded(err, [&]() -> rkv_status {
    if (!out.contiguous()) {
      return fail(err, RKV_INVALID_ARGUMENT, "out: need a contiguous buffer");
    }
    Tensors tensors;
    rkv_transfer_args args = given;
    if (const rkv_status status = fill_store(k, v, paging, 1, &tensors, &args, err)) return status;
    return rkv_sequence_export(cache_, &args, out.data, out.present ? out.bytes() : 0, bytes,
                               stream, err);
  });
}

rkv_status CacheHandle::transfer_in(const rkv_transfer_args& given, const Array& k, const Array& v,
                                    const PagingView* paging, const Array& data, void* stream,
                                    rkv_error* err) {
  return guarded(err, [&]() -> rkv_status {
    if (!data.contiguous()) {
      return fail(err, RKV_INVALID_ARGUMENT, "data: need a contiguous buffer");
    }
    Tensors tensors;
    rkv_transfer_args args = given;
    if (const rkv_status status = fill_store(k, v, paging, 1, &tensors, &args, err)) return status;
    return rkv_sequence_import(cache_, &args, data.data, data.present ? data.bytes() : 0, stream,
                               err);
  });
}

// ---- the two stages -------------------------------------------------------------------

rkv_status CacheHandle::prefill(const rkv_prefill_args& given, const Array& q, const Array& k,
                                const Array& v, const PagingView* paging, void* stream,
                                rkv_error* err) {
  return guarded(err, [&]() -> rkv_status {
    Tensors tensors;
    rkv_prefill_args args = given;
    if (q.present) {
      if (const rkv_status status = fill_tensor(q, "q", query_dtype_, &tensors.q, err)) {
        return status;
      }
      args.q = &tensors.q;
    }
    if (const rkv_status status = fill_store(k, v, paging, 1, &tensors, &args, err)) return status;
    return rkv_prefill(cache_, &args, stream, err);
  });
}

template <typename Call>
rkv_status CacheHandle::with_rows(const RowArgs& given, rkv_error* err, const Call& call) {
  return guarded(err, [&]() -> rkv_status {
    if (!given.seq.present) return fail(err, RKV_INVALID_ARGUMENT, "seq: None, need int32 [rows]");
    if (!given.positions.present) {
      return fail(err, RKV_INVALID_ARGUMENT, "positions: None, need int64 [rows]");
    }
    const int64_t rows = given.seq.ndim == 1 ? given.seq.shape[0] : 0;
    if (rows > INT32_MAX) {
      return fail(err, RKV_INVALID_ARGUMENT, "seq: %lld rows", static_cast<long long>(rows));
    }
    rkv_status status = check_plain(given.seq, "seq", Element::kInt32, rows, 0, err);
    if (status == RKV_OK) {
      status = check_plain(given.positions, "positions", Element::kInt64, rows, 0, err);
    }
    if (status == RKV_OK) {
      status = check_plain(given.lse, "lse", Element::kFloat32, rows, q_heads_, err);
    }
    if (status == RKV_OK) {
      status = check_plain(given.row_status, "row_status", Element::kInt32, rows, 0, err);
    }
    if (status != RKV_OK) return status;

    Tensors tensors;
    rkv_decode_args args{};
    args.struct_size = sizeof args;
    args.layer = given.layer;
    args.rows = static_cast<int32_t>(rows);
    args.attend_only = given.attend_only;
    args.seq = static_cast<const int32_t*>(given.seq.data);
    args.positions = static_cast<const int64_t*>(given.positions.data);
    args.lse = static_cast<float*>(given.lse.data);
    args.row_status = static_cast<int32_t*>(given.row_status.data);
    if (given.q.present) {
      if ((status = fill_tensor(given.q, "q", query_dtype_, &tensors.q, err))) return status;
      args.q = &tensors.q;
    }
    if (given.out.present) {
      if ((status = fill_tensor(given.out, "out", query_dtype_, &tensors.out, err))) return status;
      args.out = &tensors.out;
    }
    if ((status = fill_store(given.k, given.v, given.paging, rows, &tensors, &args, err))) {
      return status;
    }
    if (given.selection != nullptr) {
      if ((status = fill_selection(*given.selection, rows, &tensors.selection, err))) return status;
      args.selection = &tensors.selection;
    }
    return call(args);
  });
}

rkv_status CacheHandle::select(const RowArgs& rows, void* stream, rkv_error* err) {
  return with_rows(rows, err, [&](const rkv_decode_args& args) {
    return rkv_decode_select(cache_, &args, stream, err);
  });
}

rkv_status CacheHandle::attend(const RowArgs& rows, void* stream, rkv_error* err) {
  return with_rows(rows, err, [&](const rkv_decode_args& args) {
    return rkv_attend(cache_, &args, stream, err);
  });
}

rkv_status CacheHandle::decode(const RowArgs& rows, void* stream, rkv_error* err) {
  return with_rows(rows, err, [&](const rkv_decode_args& args) {
    return rkv_decode(cache_, &args, stream, err);
  });
}

rkv_status CacheHandle::audit(const RowArgs& rows, rkv_audit_result* result, void* stream,
                              rkv_error* err) {
  return with_rows(rows, err, [&](const rkv_decode_args& args) {
    return rkv_audit(cache_, &args, result, stream, err);
  });
}

// ---- reports --------------------------------------------------------------------------

rkv_status CacheHandle::stats(int32_t seq, int32_t layer, void* stream, rkv_plan* plan,
                              rkv_sequence_stats* stats, rkv_error* err) {
  return guarded(err, [&] {
    stats->plan = plan;
    const rkv_status status = rkv_stats(cache_, seq, layer, stream, stats, err);
    stats->plan = nullptr;
    return status;
  });
}

rkv_status CacheHandle::kept_positions(int32_t seq, int32_t layer, void* stream, const Array& out,
                                       int64_t* count, rkv_error* err) {
  return guarded(err, [&]() -> rkv_status {
    if (out.present && (out.element != Element::kInt64 || !out.packed())) {
      return fail(err, RKV_INVALID_ARGUMENT, "out: need a contiguous int64 array");
    }
    return rkv_kept_positions(cache_, seq, layer, stream, static_cast<int64_t*>(out.data),
                              out.present ? out.size() : 0, count, err);
  });
}

}  // namespace rkv_python
