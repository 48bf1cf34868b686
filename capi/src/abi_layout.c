/* The binary layout of every public struct, as callers compiled against it: a size or offset that
 * moves is an ABI break and fails the build here. Fields may only be added at a struct's end. */
#include <rkv/rkv.h>

_Static_assert(sizeof(void*) == 8, "the layout below is that of 64-bit targets");

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define FIELD(type, field, offset) \
  _Static_assert(offsetof(type, field) == (offset), #type "." #field)

SIZE(rkv_error, 256);
FIELD(rkv_error, struct_size, 0);
FIELD(rkv_error, status, 4);
FIELD(rkv_error, native_code, 8);
FIELD(rkv_error, reserved, 12);
FIELD(rkv_error, text, 16);

SIZE(rkv_tensor, 208);
FIELD(rkv_tensor, struct_size, 0);
FIELD(rkv_tensor, dtype, 4);
FIELD(rkv_tensor, data, 8);
FIELD(rkv_tensor, ndim, 16);
FIELD(rkv_tensor, reserved0, 20);
FIELD(rkv_tensor, shape, 24);
FIELD(rkv_tensor, strides, 72);
FIELD(rkv_tensor, scale, 120);
FIELD(rkv_tensor, scale_strides, 128);
FIELD(rkv_tensor, reserved, 176);

SIZE(rkv_cache_config, 232);
FIELD(rkv_cache_config, struct_size, 0);
FIELD(rkv_cache_config, device_type, 4);
FIELD(rkv_cache_config, device, 8);
FIELD(rkv_cache_config, layers, 12);
FIELD(rkv_cache_config, q_heads, 16);
FIELD(rkv_cache_config, kv_heads, 20);
FIELD(rkv_cache_config, head_dim, 24);
FIELD(rkv_cache_config, head_dim_v, 28);
FIELD(rkv_cache_config, kv_dtype, 32);
FIELD(rkv_cache_config, query_dtype, 36);
FIELD(rkv_cache_config, summary_dtype, 40);
FIELD(rkv_cache_config, storage, 44);
FIELD(rkv_cache_config, max_sequences, 48);
FIELD(rkv_cache_config, max_rows, 52);
FIELD(rkv_cache_config, max_prefills, 56);
FIELD(rkv_cache_config, num_threads, 60);
FIELD(rkv_cache_config, max_prompt_tokens, 64);
FIELD(rkv_cache_config, max_new_tokens, 72);
FIELD(rkv_cache_config, token_budget, 80);
FIELD(rkv_cache_config, compression_ratio, 88);
FIELD(rkv_cache_config, prompt_budget, 96);
FIELD(rkv_cache_config, top_k, 104);
FIELD(rkv_cache_config, page_size, 112);
FIELD(rkv_cache_config, num_channels, 116);
FIELD(rkv_cache_config, window_size, 120);
FIELD(rkv_cache_config, kernel_size, 124);
FIELD(rkv_cache_config, sinks, 128);
FIELD(rkv_cache_config, recent_tokens, 132);
FIELD(rkv_cache_config, selection_unit, 136);
FIELD(rkv_cache_config, stage1_domain, 140);
FIELD(rkv_cache_config, selection_domain, 144);
FIELD(rkv_cache_config, pooling, 148);
FIELD(rkv_cache_config, temperature, 152);
FIELD(rkv_cache_config, key_as_query, 156);
FIELD(rkv_cache_config, softmax_scale, 160);
FIELD(rkv_cache_config, logit_softcap, 164);
FIELD(rkv_cache_config, dense_layers, 168);
FIELD(rkv_cache_config, reserved, 200);

SIZE(rkv_sequence_options, 32);
FIELD(rkv_sequence_options, struct_size, 0);
FIELD(rkv_sequence_options, reserved, 4);
FIELD(rkv_sequence_options, max_new_tokens, 8);
FIELD(rkv_sequence_options, token_budget, 16);
FIELD(rkv_sequence_options, compression_ratio, 24);

SIZE(rkv_plan, 104);
FIELD(rkv_plan, struct_size, 0);
FIELD(rkv_plan, raised, 4);
FIELD(rkv_plan, dense, 8);
FIELD(rkv_plan, page_size, 12);
FIELD(rkv_plan, num_channels, 16);
FIELD(rkv_plan, reserved, 20);
FIELD(rkv_plan, cap, 24);
FIELD(rkv_plan, prompt_budget, 32);
FIELD(rkv_plan, rows, 40);
FIELD(rkv_plan, pages, 48);
FIELD(rkv_plan, top_k, 56);
FIELD(rkv_plan, token_budget, 64);
FIELD(rkv_plan, ratio, 72);
FIELD(rkv_plan, split, 80);
FIELD(rkv_plan, storage_ratio, 88);
FIELD(rkv_plan, traffic_ratio, 96);

SIZE(rkv_memory, 88);
FIELD(rkv_memory, struct_size, 0);
FIELD(rkv_memory, reserved, 4);
FIELD(rkv_memory, alignment, 8);
FIELD(rkv_memory, storage_bytes, 16);
FIELD(rkv_memory, workspace_bytes, 24);
FIELD(rkv_memory, selection_capacity, 32);
FIELD(rkv_memory, k_bytes, 40);
FIELD(rkv_memory, v_bytes, 48);
FIELD(rkv_memory, summary_bytes, 56);
FIELD(rkv_memory, index_bytes, 64);
FIELD(rkv_memory, window_bytes, 72);
FIELD(rkv_memory, table_bytes, 80);

SIZE(rkv_buffers, 40);
FIELD(rkv_buffers, struct_size, 0);
FIELD(rkv_buffers, reserved, 4);
FIELD(rkv_buffers, storage, 8);
FIELD(rkv_buffers, storage_bytes, 16);
FIELD(rkv_buffers, workspace, 24);
FIELD(rkv_buffers, workspace_bytes, 32);

SIZE(rkv_paging, 56);
FIELD(rkv_paging, struct_size, 0);
FIELD(rkv_paging, reserved, 4);
FIELD(rkv_paging, block_tokens, 8);
FIELD(rkv_paging, max_blocks, 16);
FIELD(rkv_paging, row_stride, 24);
FIELD(rkv_paging, block_table, 32);
FIELD(rkv_paging, k_blocks, 40);
FIELD(rkv_paging, v_blocks, 48);

SIZE(rkv_prefill_args, 64);
FIELD(rkv_prefill_args, struct_size, 0);
FIELD(rkv_prefill_args, seq, 4);
FIELD(rkv_prefill_args, layer, 8);
FIELD(rkv_prefill_args, reserved, 12);
FIELD(rkv_prefill_args, start, 16);
FIELD(rkv_prefill_args, prompt_tokens, 24);
FIELD(rkv_prefill_args, q, 32);
FIELD(rkv_prefill_args, k, 40);
FIELD(rkv_prefill_args, v, 48);
FIELD(rkv_prefill_args, paging, 56);

SIZE(rkv_selection, 32);
FIELD(rkv_selection, struct_size, 0);
FIELD(rkv_selection, space, 4);
FIELD(rkv_selection, indices, 8);
FIELD(rkv_selection, counts, 16);
FIELD(rkv_selection, capacity, 24);

SIZE(rkv_decode_args, 96);
FIELD(rkv_decode_args, struct_size, 0);
FIELD(rkv_decode_args, layer, 4);
FIELD(rkv_decode_args, rows, 8);
FIELD(rkv_decode_args, attend_only, 12);
FIELD(rkv_decode_args, seq, 16);
FIELD(rkv_decode_args, positions, 24);
FIELD(rkv_decode_args, q, 32);
FIELD(rkv_decode_args, k, 40);
FIELD(rkv_decode_args, v, 48);
FIELD(rkv_decode_args, paging, 56);
FIELD(rkv_decode_args, selection, 64);
FIELD(rkv_decode_args, out, 72);
FIELD(rkv_decode_args, lse, 80);
FIELD(rkv_decode_args, row_status, 88);

SIZE(rkv_transfer_args, 48);
FIELD(rkv_transfer_args, struct_size, 0);
FIELD(rkv_transfer_args, seq, 4);
FIELD(rkv_transfer_args, layer, 8);
FIELD(rkv_transfer_args, head_begin, 12);
FIELD(rkv_transfer_args, head_end, 16);
FIELD(rkv_transfer_args, reserved, 20);
FIELD(rkv_transfer_args, k, 24);
FIELD(rkv_transfer_args, v, 32);
FIELD(rkv_transfer_args, paging, 40);

SIZE(rkv_sequence_stats, 128);
FIELD(rkv_sequence_stats, struct_size, 0);
FIELD(rkv_sequence_stats, turn, 4);
FIELD(rkv_sequence_stats, window_rows, 8);
FIELD(rkv_sequence_stats, fault, 12);
FIELD(rkv_sequence_stats, nonfinite, 16);
FIELD(rkv_sequence_stats, saturated, 20);
FIELD(rkv_sequence_stats, position, 24);
FIELD(rkv_sequence_stats, max_position, 32);
FIELD(rkv_sequence_stats, prompt, 40);
FIELD(rkv_sequence_stats, kept, 48);
FIELD(rkv_sequence_stats, generated, 56);
FIELD(rkv_sequence_stats, pages, 64);
FIELD(rkv_sequence_stats, k_bytes, 72);
FIELD(rkv_sequence_stats, v_bytes, 80);
FIELD(rkv_sequence_stats, summary_bytes, 88);
FIELD(rkv_sequence_stats, index_bytes, 96);
FIELD(rkv_sequence_stats, full_kv_bytes, 104);
FIELD(rkv_sequence_stats, bytes_read_per_step, 112);
FIELD(rkv_sequence_stats, plan, 120);

SIZE(rkv_audit_result, 48);
FIELD(rkv_audit_result, struct_size, 0);
FIELD(rkv_audit_result, rows, 4);
FIELD(rkv_audit_result, mass_mean, 8);
FIELD(rkv_audit_result, mass_min, 16);
FIELD(rkv_audit_result, prompt_mass_mean, 24);
FIELD(rkv_audit_result, error_mean, 32);
FIELD(rkv_audit_result, error_max, 40);
