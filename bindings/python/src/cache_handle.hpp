// A cache as Python holds it: views become the structs of the C API, and close is safe at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>

#include "array.hpp"
#include "rkv/rkv.h"

namespace rkv_python {

// The three hold what they were made from, so the C side may keep its pointer.
class HeldBuffer {
 public:
  explicit HeldBuffer(Array& writable) { array.swap(writable); }
  Array array;
};

class SelectionView {
 public:
  SelectionView(Array& writable_indices, Array& writable_counts, int32_t selection_space)
      : space(selection_space) {
    indices.swap(writable_indices);
    counts.swap(writable_counts);
  }
  Array indices, counts;  // int32 [rows, Hkv, capacity], [rows, Hkv]
  int32_t space;
};

class PagingView {
 public:
  PagingView(int64_t tokens, Array& table, Array& k_addresses, Array& v_addresses)
      : block_tokens(tokens) {
    block_table.swap(table);
    k_blocks.swap(k_addresses);
    v_blocks.swap(v_addresses);
  }
  int64_t block_tokens;
  Array block_table, k_blocks, v_blocks;  // int32, 64-bit and 64-bit [rows, max_blocks]
};

// The arguments that the calls with rows share; absent arrays are NULL in C.
struct RowArgs {
  int32_t layer;
  int32_t attend_only;
  const Array &seq, &positions, &q, &k, &v, &out, &lse, &row_status;
  const SelectionView* selection;
  const PagingView* paging;
};

// Every call may come from any thread, without the GIL. The library itself refuses two calls at
// once; the lock here only keeps the cache alive until the calls in flight have returned.
class CacheHandle {
 public:
  CacheHandle() = default;
  ~CacheHandle() { close(); }
  CacheHandle(const CacheHandle&) = delete;
  CacheHandle& operator=(const CacheHandle&) = delete;

  rkv_status create(const rkv_cache_config* config, const HeldBuffer* storage,
                    const HeldBuffer* workspace, rkv_error* err);
  void close();  // waits for the calls in flight; again is nothing
  bool closed() const { return closing_; }
  bool on_cpu() const { return device_type_ == RKV_DEVICE_CPU; }

  rkv_status open_sequence(int32_t seq, const rkv_sequence_options* options, rkv_error* err);
  rkv_status close_sequence(int32_t seq, void* stream, rkv_error* err);
  rkv_status rewind(int32_t seq, int64_t position, void* stream, rkv_error* err);
  rkv_status fork(int32_t seq, int32_t copy, void* stream, rkv_error* err);
  rkv_status transfer_out(const rkv_transfer_args& given, const Array& k, const Array& v,
                          const PagingView* paging, const Array& out, int64_t* bytes, void* stream,
                          rkv_error* err);
  rkv_status transfer_in(const rkv_transfer_args& given, const Array& k, const Array& v,
                         const PagingView* paging, const Array& data, void* stream, rkv_error* err);
  rkv_status prefill(const rkv_prefill_args& given, const Array& q, const Array& k, const Array& v,
                     const PagingView* paging, void* stream, rkv_error* err);
  rkv_status select(const RowArgs& rows, void* stream, rkv_error* err);
  rkv_status attend(const RowArgs& rows, void* stream, rkv_error* err);
  rkv_status decode(const RowArgs& rows, void* stream, rkv_error* err);
  rkv_status audit(const RowArgs& rows, rkv_audit_result* result, void* stream, rkv_error* err);
  rkv_status stats(int32_t seq, int32_t layer, void* stream, rkv_plan* plan,
                   rkv_sequence_stats* stats, rkv_error* err);
  rkv_status kept_positions(int32_t seq, int32_t layer, void* stream, const Array& out,
                            int64_t* count, rkv_error* err);

 private:
  struct Tensors {  // what the arrays of one call become
    rkv_tensor q{}, k{}, v{}, out{};
    rkv_paging paging{};
    rkv_selection selection{};
  };
  template <typename Call>
  rkv_status guarded(rkv_error* err, const Call& call);
  template <typename Call>
  rkv_status with_rows(const RowArgs& rows, rkv_error* err, const Call& call);
  rkv_status fail(rkv_error* err, rkv_status status, const char* format, ...) const
      __attribute__((format(printf, 4, 5)));
  // The checks of what the C side sees as a bare pointer: element type, shape, device.
  rkv_status check_device(const Array& array, const char* name, rkv_error* err) const;
  rkv_status check_plain(const Array& array, const char* name, Element element, int64_t rows,
                         int64_t columns, rkv_error* err) const;
  rkv_status fill_tensor(const Array& array, const char* name, int32_t dtype, rkv_tensor* tensor,
                         rkv_error* err) const;
  rkv_status fill_paging(const PagingView& view, int64_t rows, rkv_paging* paging,
                         rkv_error* err) const;
  rkv_status fill_selection(const SelectionView& view, int64_t rows, rkv_selection* selection,
                            rkv_error* err) const;

  template <typename Args>
  rkv_status fill_store(const Array& k, const Array& v, const PagingView* paging, int64_t rows,
                        Tensors* tensors, Args* args, rkv_error* err) const;

  std::shared_mutex mutex_;  // shared by calls, exclusive for close
  std::atomic<bool> closing_{false};
  rkv_cache* cache_ = nullptr;
  int32_t device_type_ = 0, device_ = 0, kv_heads_ = 0, q_heads_ = 0;
  int32_t kv_dtype_ = 0, query_dtype_ = 0;
};

}  // namespace rkv_python
