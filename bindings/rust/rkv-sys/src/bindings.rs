// Made from rkv.h by bindgen (cargo xtask bindings). Do not edit.

pub const RKV_ABI_VERSION: i32 = 1;
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_status(pub i32);
pub const RKV_OK: rkv_status = rkv_status(0);
pub const RKV_INVALID_ARGUMENT: rkv_status = rkv_status(1);
pub const RKV_UNSUPPORTED: rkv_status = rkv_status(2);
pub const RKV_OUT_OF_CAPACITY: rkv_status = rkv_status(3);
pub const RKV_BUFFER_TOO_SMALL: rkv_status = rkv_status(4);
pub const RKV_BAD_STATE: rkv_status = rkv_status(5);
pub const RKV_DEVICE_ERROR: rkv_status = rkv_status(6);
pub const RKV_ABI_MISMATCH: rkv_status = rkv_status(7);
pub const RKV_CORRUPT_DATA: rkv_status = rkv_status(8);
pub const RKV_OUT_OF_MEMORY: rkv_status = rkv_status(9);
pub const RKV_INTERNAL: rkv_status = rkv_status(10);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_device(pub i32);
pub const RKV_DEVICE_CPU: rkv_device = rkv_device(0);
pub const RKV_DEVICE_CUDA: rkv_device = rkv_device(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_dtype(pub i32);
pub const RKV_DTYPE_F32: rkv_dtype = rkv_dtype(1);
pub const RKV_DTYPE_F16: rkv_dtype = rkv_dtype(2);
pub const RKV_DTYPE_BF16: rkv_dtype = rkv_dtype(3);
pub const RKV_DTYPE_E4M3: rkv_dtype = rkv_dtype(4);
pub const RKV_DTYPE_E5M2: rkv_dtype = rkv_dtype(5);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_storage(pub i32);
pub const RKV_STORAGE_COMPACT: rkv_storage = rkv_storage(0);
pub const RKV_STORAGE_INDEXED: rkv_storage = rkv_storage(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_unit(pub i32);
pub const RKV_UNIT_PAGES: rkv_unit = rkv_unit(0);
pub const RKV_UNIT_TOKENS: rkv_unit = rkv_unit(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_stage1(pub i32);
pub const RKV_STAGE1_ALL: rkv_stage1 = rkv_stage1(0);
pub const RKV_STAGE1_PREFIX_ONLY: rkv_stage1 = rkv_stage1(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_softmax(pub i32);
pub const RKV_SOFTMAX_TOKENS: rkv_softmax = rkv_softmax(0);
pub const RKV_SOFTMAX_PAGES: rkv_softmax = rkv_softmax(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_pool(pub i32);
pub const RKV_POOL_MAX: rkv_pool = rkv_pool(0);
pub const RKV_POOL_AVG: rkv_pool = rkv_pool(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_temperature(pub i32);
pub const RKV_TEMPERATURE_SPARQ: rkv_temperature = rkv_temperature(0);
pub const RKV_TEMPERATURE_SQRT_D: rkv_temperature = rkv_temperature(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct rkv_space(pub i32);
pub const RKV_SPACE_LIVE_ROW: rkv_space = rkv_space(0);
pub const RKV_SPACE_POSITION: rkv_space = rkv_space(1);
pub const RKV_SPACE_SLOT: rkv_space = rkv_space(2);
#[repr(C)]
#[derive(Debug)]
pub struct rkv_cache {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_error {
    pub struct_size: u32,
    pub status: rkv_status,
    pub native_code: i32,
    pub reserved: i32,
    pub text: [::std::os::raw::c_char; 240usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_error"][::std::mem::size_of::<rkv_error>() - 256usize];
    ["Alignment of rkv_error"][::std::mem::align_of::<rkv_error>() - 4usize];
    [
        "Offset of field: rkv_error::struct_size",
    ][::std::mem::offset_of!(rkv_error, struct_size) - 0usize];
    [
        "Offset of field: rkv_error::status",
    ][::std::mem::offset_of!(rkv_error, status) - 4usize];
    [
        "Offset of field: rkv_error::native_code",
    ][::std::mem::offset_of!(rkv_error, native_code) - 8usize];
    [
        "Offset of field: rkv_error::reserved",
    ][::std::mem::offset_of!(rkv_error, reserved) - 12usize];
    [
        "Offset of field: rkv_error::text",
    ][::std::mem::offset_of!(rkv_error, text) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_tensor {
    pub struct_size: u32,
    pub dtype: i32,
    pub data: *mut ::std::os::raw::c_void,
    pub ndim: i32,
    pub reserved0: i32,
    pub shape: [i64; 6usize],
    pub strides: [i64; 6usize],
    pub scale: *const f32,
    pub scale_strides: [i64; 6usize],
    pub reserved: [i64; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_tensor"][::std::mem::size_of::<rkv_tensor>() - 208usize];
    ["Alignment of rkv_tensor"][::std::mem::align_of::<rkv_tensor>() - 8usize];
    [
        "Offset of field: rkv_tensor::struct_size",
    ][::std::mem::offset_of!(rkv_tensor, struct_size) - 0usize];
    [
        "Offset of field: rkv_tensor::dtype",
    ][::std::mem::offset_of!(rkv_tensor, dtype) - 4usize];
    [
        "Offset of field: rkv_tensor::data",
    ][::std::mem::offset_of!(rkv_tensor, data) - 8usize];
    [
        "Offset of field: rkv_tensor::ndim",
    ][::std::mem::offset_of!(rkv_tensor, ndim) - 16usize];
    [
        "Offset of field: rkv_tensor::reserved0",
    ][::std::mem::offset_of!(rkv_tensor, reserved0) - 20usize];
    [
        "Offset of field: rkv_tensor::shape",
    ][::std::mem::offset_of!(rkv_tensor, shape) - 24usize];
    [
        "Offset of field: rkv_tensor::strides",
    ][::std::mem::offset_of!(rkv_tensor, strides) - 72usize];
    [
        "Offset of field: rkv_tensor::scale",
    ][::std::mem::offset_of!(rkv_tensor, scale) - 120usize];
    [
        "Offset of field: rkv_tensor::scale_strides",
    ][::std::mem::offset_of!(rkv_tensor, scale_strides) - 128usize];
    [
        "Offset of field: rkv_tensor::reserved",
    ][::std::mem::offset_of!(rkv_tensor, reserved) - 176usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_cache_config {
    pub struct_size: u32,
    pub device_type: i32,
    pub device: i32,
    pub layers: i32,
    pub q_heads: i32,
    pub kv_heads: i32,
    pub head_dim: i32,
    pub head_dim_v: i32,
    pub kv_dtype: i32,
    pub query_dtype: i32,
    pub summary_dtype: i32,
    pub storage: i32,
    pub max_sequences: i32,
    pub max_rows: i32,
    pub max_prefills: i32,
    pub num_threads: i32,
    pub max_prompt_tokens: i64,
    pub max_new_tokens: i64,
    pub token_budget: i64,
    pub compression_ratio: f64,
    pub prompt_budget: i64,
    pub top_k: i64,
    pub page_size: i32,
    pub num_channels: i32,
    pub window_size: i32,
    pub kernel_size: i32,
    pub sinks: i32,
    pub recent_tokens: i32,
    pub selection_unit: i32,
    pub stage1_domain: i32,
    pub selection_domain: i32,
    pub pooling: i32,
    pub temperature: i32,
    pub key_as_query: i32,
    pub softmax_scale: f32,
    pub logit_softcap: f32,
    pub dense_layers: [u32; 8usize],
    pub reserved: [i32; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_cache_config"][::std::mem::size_of::<rkv_cache_config>() - 232usize];
    [
        "Alignment of rkv_cache_config",
    ][::std::mem::align_of::<rkv_cache_config>() - 8usize];
    [
        "Offset of field: rkv_cache_config::struct_size",
    ][::std::mem::offset_of!(rkv_cache_config, struct_size) - 0usize];
    [
        "Offset of field: rkv_cache_config::device_type",
    ][::std::mem::offset_of!(rkv_cache_config, device_type) - 4usize];
    [
        "Offset of field: rkv_cache_config::device",
    ][::std::mem::offset_of!(rkv_cache_config, device) - 8usize];
    [
        "Offset of field: rkv_cache_config::layers",
    ][::std::mem::offset_of!(rkv_cache_config, layers) - 12usize];
    [
        "Offset of field: rkv_cache_config::q_heads",
    ][::std::mem::offset_of!(rkv_cache_config, q_heads) - 16usize];
    [
        "Offset of field: rkv_cache_config::kv_heads",
    ][::std::mem::offset_of!(rkv_cache_config, kv_heads) - 20usize];
    [
        "Offset of field: rkv_cache_config::head_dim",
    ][::std::mem::offset_of!(rkv_cache_config, head_dim) - 24usize];
    [
        "Offset of field: rkv_cache_config::head_dim_v",
    ][::std::mem::offset_of!(rkv_cache_config, head_dim_v) - 28usize];
    [
        "Offset of field: rkv_cache_config::kv_dtype",
    ][::std::mem::offset_of!(rkv_cache_config, kv_dtype) - 32usize];
    [
        "Offset of field: rkv_cache_config::query_dtype",
    ][::std::mem::offset_of!(rkv_cache_config, query_dtype) - 36usize];
    [
        "Offset of field: rkv_cache_config::summary_dtype",
    ][::std::mem::offset_of!(rkv_cache_config, summary_dtype) - 40usize];
    [
        "Offset of field: rkv_cache_config::storage",
    ][::std::mem::offset_of!(rkv_cache_config, storage) - 44usize];
    [
        "Offset of field: rkv_cache_config::max_sequences",
    ][::std::mem::offset_of!(rkv_cache_config, max_sequences) - 48usize];
    [
        "Offset of field: rkv_cache_config::max_rows",
    ][::std::mem::offset_of!(rkv_cache_config, max_rows) - 52usize];
    [
        "Offset of field: rkv_cache_config::max_prefills",
    ][::std::mem::offset_of!(rkv_cache_config, max_prefills) - 56usize];
    [
        "Offset of field: rkv_cache_config::num_threads",
    ][::std::mem::offset_of!(rkv_cache_config, num_threads) - 60usize];
    [
        "Offset of field: rkv_cache_config::max_prompt_tokens",
    ][::std::mem::offset_of!(rkv_cache_config, max_prompt_tokens) - 64usize];
    [
        "Offset of field: rkv_cache_config::max_new_tokens",
    ][::std::mem::offset_of!(rkv_cache_config, max_new_tokens) - 72usize];
    [
        "Offset of field: rkv_cache_config::token_budget",
    ][::std::mem::offset_of!(rkv_cache_config, token_budget) - 80usize];
    [
        "Offset of field: rkv_cache_config::compression_ratio",
    ][::std::mem::offset_of!(rkv_cache_config, compression_ratio) - 88usize];
    [
        "Offset of field: rkv_cache_config::prompt_budget",
    ][::std::mem::offset_of!(rkv_cache_config, prompt_budget) - 96usize];
    [
        "Offset of field: rkv_cache_config::top_k",
    ][::std::mem::offset_of!(rkv_cache_config, top_k) - 104usize];
    [
        "Offset of field: rkv_cache_config::page_size",
    ][::std::mem::offset_of!(rkv_cache_config, page_size) - 112usize];
    [
        "Offset of field: rkv_cache_config::num_channels",
    ][::std::mem::offset_of!(rkv_cache_config, num_channels) - 116usize];
    [
        "Offset of field: rkv_cache_config::window_size",
    ][::std::mem::offset_of!(rkv_cache_config, window_size) - 120usize];
    [
        "Offset of field: rkv_cache_config::kernel_size",
    ][::std::mem::offset_of!(rkv_cache_config, kernel_size) - 124usize];
    [
        "Offset of field: rkv_cache_config::sinks",
    ][::std::mem::offset_of!(rkv_cache_config, sinks) - 128usize];
    [
        "Offset of field: rkv_cache_config::recent_tokens",
    ][::std::mem::offset_of!(rkv_cache_config, recent_tokens) - 132usize];
    [
        "Offset of field: rkv_cache_config::selection_unit",
    ][::std::mem::offset_of!(rkv_cache_config, selection_unit) - 136usize];
    [
        "Offset of field: rkv_cache_config::stage1_domain",
    ][::std::mem::offset_of!(rkv_cache_config, stage1_domain) - 140usize];
    [
        "Offset of field: rkv_cache_config::selection_domain",
    ][::std::mem::offset_of!(rkv_cache_config, selection_domain) - 144usize];
    [
        "Offset of field: rkv_cache_config::pooling",
    ][::std::mem::offset_of!(rkv_cache_config, pooling) - 148usize];
    [
        "Offset of field: rkv_cache_config::temperature",
    ][::std::mem::offset_of!(rkv_cache_config, temperature) - 152usize];
    [
        "Offset of field: rkv_cache_config::key_as_query",
    ][::std::mem::offset_of!(rkv_cache_config, key_as_query) - 156usize];
    [
        "Offset of field: rkv_cache_config::softmax_scale",
    ][::std::mem::offset_of!(rkv_cache_config, softmax_scale) - 160usize];
    [
        "Offset of field: rkv_cache_config::logit_softcap",
    ][::std::mem::offset_of!(rkv_cache_config, logit_softcap) - 164usize];
    [
        "Offset of field: rkv_cache_config::dense_layers",
    ][::std::mem::offset_of!(rkv_cache_config, dense_layers) - 168usize];
    [
        "Offset of field: rkv_cache_config::reserved",
    ][::std::mem::offset_of!(rkv_cache_config, reserved) - 200usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_sequence_options {
    pub struct_size: u32,
    pub reserved: i32,
    pub max_new_tokens: i64,
    pub token_budget: i64,
    pub compression_ratio: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of rkv_sequence_options",
    ][::std::mem::size_of::<rkv_sequence_options>() - 32usize];
    [
        "Alignment of rkv_sequence_options",
    ][::std::mem::align_of::<rkv_sequence_options>() - 8usize];
    [
        "Offset of field: rkv_sequence_options::struct_size",
    ][::std::mem::offset_of!(rkv_sequence_options, struct_size) - 0usize];
    [
        "Offset of field: rkv_sequence_options::reserved",
    ][::std::mem::offset_of!(rkv_sequence_options, reserved) - 4usize];
    [
        "Offset of field: rkv_sequence_options::max_new_tokens",
    ][::std::mem::offset_of!(rkv_sequence_options, max_new_tokens) - 8usize];
    [
        "Offset of field: rkv_sequence_options::token_budget",
    ][::std::mem::offset_of!(rkv_sequence_options, token_budget) - 16usize];
    [
        "Offset of field: rkv_sequence_options::compression_ratio",
    ][::std::mem::offset_of!(rkv_sequence_options, compression_ratio) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_plan {
    pub struct_size: u32,
    pub raised: i32,
    pub dense: i32,
    pub page_size: i32,
    pub num_channels: i32,
    pub reserved: i32,
    pub cap: i64,
    pub prompt_budget: i64,
    pub rows: i64,
    pub pages: i64,
    pub top_k: i64,
    pub token_budget: i64,
    pub ratio: f64,
    pub split: f64,
    pub storage_ratio: f64,
    pub traffic_ratio: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_plan"][::std::mem::size_of::<rkv_plan>() - 104usize];
    ["Alignment of rkv_plan"][::std::mem::align_of::<rkv_plan>() - 8usize];
    [
        "Offset of field: rkv_plan::struct_size",
    ][::std::mem::offset_of!(rkv_plan, struct_size) - 0usize];
    [
        "Offset of field: rkv_plan::raised",
    ][::std::mem::offset_of!(rkv_plan, raised) - 4usize];
    [
        "Offset of field: rkv_plan::dense",
    ][::std::mem::offset_of!(rkv_plan, dense) - 8usize];
    [
        "Offset of field: rkv_plan::page_size",
    ][::std::mem::offset_of!(rkv_plan, page_size) - 12usize];
    [
        "Offset of field: rkv_plan::num_channels",
    ][::std::mem::offset_of!(rkv_plan, num_channels) - 16usize];
    [
        "Offset of field: rkv_plan::reserved",
    ][::std::mem::offset_of!(rkv_plan, reserved) - 20usize];
    ["Offset of field: rkv_plan::cap"][::std::mem::offset_of!(rkv_plan, cap) - 24usize];
    [
        "Offset of field: rkv_plan::prompt_budget",
    ][::std::mem::offset_of!(rkv_plan, prompt_budget) - 32usize];
    [
        "Offset of field: rkv_plan::rows",
    ][::std::mem::offset_of!(rkv_plan, rows) - 40usize];
    [
        "Offset of field: rkv_plan::pages",
    ][::std::mem::offset_of!(rkv_plan, pages) - 48usize];
    [
        "Offset of field: rkv_plan::top_k",
    ][::std::mem::offset_of!(rkv_plan, top_k) - 56usize];
    [
        "Offset of field: rkv_plan::token_budget",
    ][::std::mem::offset_of!(rkv_plan, token_budget) - 64usize];
    [
        "Offset of field: rkv_plan::ratio",
    ][::std::mem::offset_of!(rkv_plan, ratio) - 72usize];
    [
        "Offset of field: rkv_plan::split",
    ][::std::mem::offset_of!(rkv_plan, split) - 80usize];
    [
        "Offset of field: rkv_plan::storage_ratio",
    ][::std::mem::offset_of!(rkv_plan, storage_ratio) - 88usize];
    [
        "Offset of field: rkv_plan::traffic_ratio",
    ][::std::mem::offset_of!(rkv_plan, traffic_ratio) - 96usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_memory {
    pub struct_size: u32,
    pub reserved: i32,
    pub alignment: i64,
    pub storage_bytes: i64,
    pub workspace_bytes: i64,
    pub selection_capacity: i64,
    pub k_bytes: i64,
    pub v_bytes: i64,
    pub summary_bytes: i64,
    pub index_bytes: i64,
    pub window_bytes: i64,
    pub table_bytes: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_memory"][::std::mem::size_of::<rkv_memory>() - 88usize];
    ["Alignment of rkv_memory"][::std::mem::align_of::<rkv_memory>() - 8usize];
    [
        "Offset of field: rkv_memory::struct_size",
    ][::std::mem::offset_of!(rkv_memory, struct_size) - 0usize];
    [
        "Offset of field: rkv_memory::reserved",
    ][::std::mem::offset_of!(rkv_memory, reserved) - 4usize];
    [
        "Offset of field: rkv_memory::alignment",
    ][::std::mem::offset_of!(rkv_memory, alignment) - 8usize];
    [
        "Offset of field: rkv_memory::storage_bytes",
    ][::std::mem::offset_of!(rkv_memory, storage_bytes) - 16usize];
    [
        "Offset of field: rkv_memory::workspace_bytes",
    ][::std::mem::offset_of!(rkv_memory, workspace_bytes) - 24usize];
    [
        "Offset of field: rkv_memory::selection_capacity",
    ][::std::mem::offset_of!(rkv_memory, selection_capacity) - 32usize];
    [
        "Offset of field: rkv_memory::k_bytes",
    ][::std::mem::offset_of!(rkv_memory, k_bytes) - 40usize];
    [
        "Offset of field: rkv_memory::v_bytes",
    ][::std::mem::offset_of!(rkv_memory, v_bytes) - 48usize];
    [
        "Offset of field: rkv_memory::summary_bytes",
    ][::std::mem::offset_of!(rkv_memory, summary_bytes) - 56usize];
    [
        "Offset of field: rkv_memory::index_bytes",
    ][::std::mem::offset_of!(rkv_memory, index_bytes) - 64usize];
    [
        "Offset of field: rkv_memory::window_bytes",
    ][::std::mem::offset_of!(rkv_memory, window_bytes) - 72usize];
    [
        "Offset of field: rkv_memory::table_bytes",
    ][::std::mem::offset_of!(rkv_memory, table_bytes) - 80usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_buffers {
    pub struct_size: u32,
    pub reserved: i32,
    pub storage: *mut ::std::os::raw::c_void,
    pub storage_bytes: i64,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_buffers"][::std::mem::size_of::<rkv_buffers>() - 40usize];
    ["Alignment of rkv_buffers"][::std::mem::align_of::<rkv_buffers>() - 8usize];
    [
        "Offset of field: rkv_buffers::struct_size",
    ][::std::mem::offset_of!(rkv_buffers, struct_size) - 0usize];
    [
        "Offset of field: rkv_buffers::reserved",
    ][::std::mem::offset_of!(rkv_buffers, reserved) - 4usize];
    [
        "Offset of field: rkv_buffers::storage",
    ][::std::mem::offset_of!(rkv_buffers, storage) - 8usize];
    [
        "Offset of field: rkv_buffers::storage_bytes",
    ][::std::mem::offset_of!(rkv_buffers, storage_bytes) - 16usize];
    [
        "Offset of field: rkv_buffers::workspace",
    ][::std::mem::offset_of!(rkv_buffers, workspace) - 24usize];
    [
        "Offset of field: rkv_buffers::workspace_bytes",
    ][::std::mem::offset_of!(rkv_buffers, workspace_bytes) - 32usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_paging {
    pub struct_size: u32,
    pub reserved: i32,
    pub block_tokens: i64,
    pub max_blocks: i64,
    pub row_stride: i64,
    pub block_table: *const i32,
    pub k_blocks: *const *const ::std::os::raw::c_void,
    pub v_blocks: *const *const ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_paging"][::std::mem::size_of::<rkv_paging>() - 56usize];
    ["Alignment of rkv_paging"][::std::mem::align_of::<rkv_paging>() - 8usize];
    [
        "Offset of field: rkv_paging::struct_size",
    ][::std::mem::offset_of!(rkv_paging, struct_size) - 0usize];
    [
        "Offset of field: rkv_paging::reserved",
    ][::std::mem::offset_of!(rkv_paging, reserved) - 4usize];
    [
        "Offset of field: rkv_paging::block_tokens",
    ][::std::mem::offset_of!(rkv_paging, block_tokens) - 8usize];
    [
        "Offset of field: rkv_paging::max_blocks",
    ][::std::mem::offset_of!(rkv_paging, max_blocks) - 16usize];
    [
        "Offset of field: rkv_paging::row_stride",
    ][::std::mem::offset_of!(rkv_paging, row_stride) - 24usize];
    [
        "Offset of field: rkv_paging::block_table",
    ][::std::mem::offset_of!(rkv_paging, block_table) - 32usize];
    [
        "Offset of field: rkv_paging::k_blocks",
    ][::std::mem::offset_of!(rkv_paging, k_blocks) - 40usize];
    [
        "Offset of field: rkv_paging::v_blocks",
    ][::std::mem::offset_of!(rkv_paging, v_blocks) - 48usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_prefill_args {
    pub struct_size: u32,
    pub seq: i32,
    pub layer: i32,
    pub reserved: i32,
    pub start: i64,
    pub prompt_tokens: i64,
    pub q: *const rkv_tensor,
    pub k: *const rkv_tensor,
    pub v: *const rkv_tensor,
    pub paging: *const rkv_paging,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_prefill_args"][::std::mem::size_of::<rkv_prefill_args>() - 64usize];
    [
        "Alignment of rkv_prefill_args",
    ][::std::mem::align_of::<rkv_prefill_args>() - 8usize];
    [
        "Offset of field: rkv_prefill_args::struct_size",
    ][::std::mem::offset_of!(rkv_prefill_args, struct_size) - 0usize];
    [
        "Offset of field: rkv_prefill_args::seq",
    ][::std::mem::offset_of!(rkv_prefill_args, seq) - 4usize];
    [
        "Offset of field: rkv_prefill_args::layer",
    ][::std::mem::offset_of!(rkv_prefill_args, layer) - 8usize];
    [
        "Offset of field: rkv_prefill_args::reserved",
    ][::std::mem::offset_of!(rkv_prefill_args, reserved) - 12usize];
    [
        "Offset of field: rkv_prefill_args::start",
    ][::std::mem::offset_of!(rkv_prefill_args, start) - 16usize];
    [
        "Offset of field: rkv_prefill_args::prompt_tokens",
    ][::std::mem::offset_of!(rkv_prefill_args, prompt_tokens) - 24usize];
    [
        "Offset of field: rkv_prefill_args::q",
    ][::std::mem::offset_of!(rkv_prefill_args, q) - 32usize];
    [
        "Offset of field: rkv_prefill_args::k",
    ][::std::mem::offset_of!(rkv_prefill_args, k) - 40usize];
    [
        "Offset of field: rkv_prefill_args::v",
    ][::std::mem::offset_of!(rkv_prefill_args, v) - 48usize];
    [
        "Offset of field: rkv_prefill_args::paging",
    ][::std::mem::offset_of!(rkv_prefill_args, paging) - 56usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_selection {
    pub struct_size: u32,
    pub space: i32,
    pub indices: *mut i32,
    pub counts: *mut i32,
    pub capacity: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_selection"][::std::mem::size_of::<rkv_selection>() - 32usize];
    ["Alignment of rkv_selection"][::std::mem::align_of::<rkv_selection>() - 8usize];
    [
        "Offset of field: rkv_selection::struct_size",
    ][::std::mem::offset_of!(rkv_selection, struct_size) - 0usize];
    [
        "Offset of field: rkv_selection::space",
    ][::std::mem::offset_of!(rkv_selection, space) - 4usize];
    [
        "Offset of field: rkv_selection::indices",
    ][::std::mem::offset_of!(rkv_selection, indices) - 8usize];
    [
        "Offset of field: rkv_selection::counts",
    ][::std::mem::offset_of!(rkv_selection, counts) - 16usize];
    [
        "Offset of field: rkv_selection::capacity",
    ][::std::mem::offset_of!(rkv_selection, capacity) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_decode_args {
    pub struct_size: u32,
    pub layer: i32,
    pub rows: i32,
    pub attend_only: i32,
    pub seq: *const i32,
    pub positions: *const i64,
    pub q: *const rkv_tensor,
    pub k: *const rkv_tensor,
    pub v: *const rkv_tensor,
    pub paging: *const rkv_paging,
    pub selection: *const rkv_selection,
    pub out: *const rkv_tensor,
    pub lse: *mut f32,
    pub row_status: *mut i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_decode_args"][::std::mem::size_of::<rkv_decode_args>() - 96usize];
    ["Alignment of rkv_decode_args"][::std::mem::align_of::<rkv_decode_args>() - 8usize];
    [
        "Offset of field: rkv_decode_args::struct_size",
    ][::std::mem::offset_of!(rkv_decode_args, struct_size) - 0usize];
    [
        "Offset of field: rkv_decode_args::layer",
    ][::std::mem::offset_of!(rkv_decode_args, layer) - 4usize];
    [
        "Offset of field: rkv_decode_args::rows",
    ][::std::mem::offset_of!(rkv_decode_args, rows) - 8usize];
    [
        "Offset of field: rkv_decode_args::attend_only",
    ][::std::mem::offset_of!(rkv_decode_args, attend_only) - 12usize];
    [
        "Offset of field: rkv_decode_args::seq",
    ][::std::mem::offset_of!(rkv_decode_args, seq) - 16usize];
    [
        "Offset of field: rkv_decode_args::positions",
    ][::std::mem::offset_of!(rkv_decode_args, positions) - 24usize];
    [
        "Offset of field: rkv_decode_args::q",
    ][::std::mem::offset_of!(rkv_decode_args, q) - 32usize];
    [
        "Offset of field: rkv_decode_args::k",
    ][::std::mem::offset_of!(rkv_decode_args, k) - 40usize];
    [
        "Offset of field: rkv_decode_args::v",
    ][::std::mem::offset_of!(rkv_decode_args, v) - 48usize];
    [
        "Offset of field: rkv_decode_args::paging",
    ][::std::mem::offset_of!(rkv_decode_args, paging) - 56usize];
    [
        "Offset of field: rkv_decode_args::selection",
    ][::std::mem::offset_of!(rkv_decode_args, selection) - 64usize];
    [
        "Offset of field: rkv_decode_args::out",
    ][::std::mem::offset_of!(rkv_decode_args, out) - 72usize];
    [
        "Offset of field: rkv_decode_args::lse",
    ][::std::mem::offset_of!(rkv_decode_args, lse) - 80usize];
    [
        "Offset of field: rkv_decode_args::row_status",
    ][::std::mem::offset_of!(rkv_decode_args, row_status) - 88usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_transfer_args {
    pub struct_size: u32,
    pub seq: i32,
    pub layer: i32,
    pub head_begin: i32,
    pub head_end: i32,
    pub reserved: i32,
    pub k: *const rkv_tensor,
    pub v: *const rkv_tensor,
    pub paging: *const rkv_paging,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_transfer_args"][::std::mem::size_of::<rkv_transfer_args>() - 48usize];
    [
        "Alignment of rkv_transfer_args",
    ][::std::mem::align_of::<rkv_transfer_args>() - 8usize];
    [
        "Offset of field: rkv_transfer_args::struct_size",
    ][::std::mem::offset_of!(rkv_transfer_args, struct_size) - 0usize];
    [
        "Offset of field: rkv_transfer_args::seq",
    ][::std::mem::offset_of!(rkv_transfer_args, seq) - 4usize];
    [
        "Offset of field: rkv_transfer_args::layer",
    ][::std::mem::offset_of!(rkv_transfer_args, layer) - 8usize];
    [
        "Offset of field: rkv_transfer_args::head_begin",
    ][::std::mem::offset_of!(rkv_transfer_args, head_begin) - 12usize];
    [
        "Offset of field: rkv_transfer_args::head_end",
    ][::std::mem::offset_of!(rkv_transfer_args, head_end) - 16usize];
    [
        "Offset of field: rkv_transfer_args::reserved",
    ][::std::mem::offset_of!(rkv_transfer_args, reserved) - 20usize];
    [
        "Offset of field: rkv_transfer_args::k",
    ][::std::mem::offset_of!(rkv_transfer_args, k) - 24usize];
    [
        "Offset of field: rkv_transfer_args::v",
    ][::std::mem::offset_of!(rkv_transfer_args, v) - 32usize];
    [
        "Offset of field: rkv_transfer_args::paging",
    ][::std::mem::offset_of!(rkv_transfer_args, paging) - 40usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_sequence_stats {
    pub struct_size: u32,
    pub turn: i32,
    pub window_rows: i32,
    pub fault: i32,
    pub nonfinite: i32,
    pub saturated: i32,
    pub position: i64,
    pub max_position: i64,
    pub prompt: i64,
    pub kept: i64,
    pub generated: i64,
    pub pages: i64,
    pub k_bytes: i64,
    pub v_bytes: i64,
    pub summary_bytes: i64,
    pub index_bytes: i64,
    pub full_kv_bytes: i64,
    pub bytes_read_per_step: i64,
    pub plan: *mut rkv_plan,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of rkv_sequence_stats",
    ][::std::mem::size_of::<rkv_sequence_stats>() - 128usize];
    [
        "Alignment of rkv_sequence_stats",
    ][::std::mem::align_of::<rkv_sequence_stats>() - 8usize];
    [
        "Offset of field: rkv_sequence_stats::struct_size",
    ][::std::mem::offset_of!(rkv_sequence_stats, struct_size) - 0usize];
    [
        "Offset of field: rkv_sequence_stats::turn",
    ][::std::mem::offset_of!(rkv_sequence_stats, turn) - 4usize];
    [
        "Offset of field: rkv_sequence_stats::window_rows",
    ][::std::mem::offset_of!(rkv_sequence_stats, window_rows) - 8usize];
    [
        "Offset of field: rkv_sequence_stats::fault",
    ][::std::mem::offset_of!(rkv_sequence_stats, fault) - 12usize];
    [
        "Offset of field: rkv_sequence_stats::nonfinite",
    ][::std::mem::offset_of!(rkv_sequence_stats, nonfinite) - 16usize];
    [
        "Offset of field: rkv_sequence_stats::saturated",
    ][::std::mem::offset_of!(rkv_sequence_stats, saturated) - 20usize];
    [
        "Offset of field: rkv_sequence_stats::position",
    ][::std::mem::offset_of!(rkv_sequence_stats, position) - 24usize];
    [
        "Offset of field: rkv_sequence_stats::max_position",
    ][::std::mem::offset_of!(rkv_sequence_stats, max_position) - 32usize];
    [
        "Offset of field: rkv_sequence_stats::prompt",
    ][::std::mem::offset_of!(rkv_sequence_stats, prompt) - 40usize];
    [
        "Offset of field: rkv_sequence_stats::kept",
    ][::std::mem::offset_of!(rkv_sequence_stats, kept) - 48usize];
    [
        "Offset of field: rkv_sequence_stats::generated",
    ][::std::mem::offset_of!(rkv_sequence_stats, generated) - 56usize];
    [
        "Offset of field: rkv_sequence_stats::pages",
    ][::std::mem::offset_of!(rkv_sequence_stats, pages) - 64usize];
    [
        "Offset of field: rkv_sequence_stats::k_bytes",
    ][::std::mem::offset_of!(rkv_sequence_stats, k_bytes) - 72usize];
    [
        "Offset of field: rkv_sequence_stats::v_bytes",
    ][::std::mem::offset_of!(rkv_sequence_stats, v_bytes) - 80usize];
    [
        "Offset of field: rkv_sequence_stats::summary_bytes",
    ][::std::mem::offset_of!(rkv_sequence_stats, summary_bytes) - 88usize];
    [
        "Offset of field: rkv_sequence_stats::index_bytes",
    ][::std::mem::offset_of!(rkv_sequence_stats, index_bytes) - 96usize];
    [
        "Offset of field: rkv_sequence_stats::full_kv_bytes",
    ][::std::mem::offset_of!(rkv_sequence_stats, full_kv_bytes) - 104usize];
    [
        "Offset of field: rkv_sequence_stats::bytes_read_per_step",
    ][::std::mem::offset_of!(rkv_sequence_stats, bytes_read_per_step) - 112usize];
    [
        "Offset of field: rkv_sequence_stats::plan",
    ][::std::mem::offset_of!(rkv_sequence_stats, plan) - 120usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rkv_audit_result {
    pub struct_size: u32,
    pub rows: i32,
    pub mass_mean: f64,
    pub mass_min: f64,
    pub prompt_mass_mean: f64,
    pub error_mean: f64,
    pub error_max: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rkv_audit_result"][::std::mem::size_of::<rkv_audit_result>() - 48usize];
    [
        "Alignment of rkv_audit_result",
    ][::std::mem::align_of::<rkv_audit_result>() - 8usize];
    [
        "Offset of field: rkv_audit_result::struct_size",
    ][::std::mem::offset_of!(rkv_audit_result, struct_size) - 0usize];
    [
        "Offset of field: rkv_audit_result::rows",
    ][::std::mem::offset_of!(rkv_audit_result, rows) - 4usize];
    [
        "Offset of field: rkv_audit_result::mass_mean",
    ][::std::mem::offset_of!(rkv_audit_result, mass_mean) - 8usize];
    [
        "Offset of field: rkv_audit_result::mass_min",
    ][::std::mem::offset_of!(rkv_audit_result, mass_min) - 16usize];
    [
        "Offset of field: rkv_audit_result::prompt_mass_mean",
    ][::std::mem::offset_of!(rkv_audit_result, prompt_mass_mean) - 24usize];
    [
        "Offset of field: rkv_audit_result::error_mean",
    ][::std::mem::offset_of!(rkv_audit_result, error_mean) - 32usize];
    [
        "Offset of field: rkv_audit_result::error_max",
    ][::std::mem::offset_of!(rkv_audit_result, error_max) - 40usize];
};
unsafe extern "C" {
    pub fn rkv_abi_version() -> i32;
}
unsafe extern "C" {
    pub fn rkv_version_string() -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn rkv_status_name(status: rkv_status) -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn rkv_device_count(
        device_type: i32,
        count: *mut i32,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_plan_make(
        config: *const rkv_cache_config,
        options: *const rkv_sequence_options,
        prompt_tokens: i64,
        plan: *mut rkv_plan,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_cache_memory(
        config: *const rkv_cache_config,
        memory: *mut rkv_memory,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_cache_create(
        config: *const rkv_cache_config,
        buffers: *const rkv_buffers,
        cache: *mut *mut rkv_cache,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_cache_destroy(cache: *mut rkv_cache);
}
unsafe extern "C" {
    pub fn rkv_sequence_open(
        cache: *mut rkv_cache,
        seq: i32,
        options: *const rkv_sequence_options,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_sequence_close(
        cache: *mut rkv_cache,
        seq: i32,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_sequence_rewind(
        cache: *mut rkv_cache,
        seq: i32,
        position: i64,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_sequence_fork(
        cache: *mut rkv_cache,
        seq: i32,
        copy: i32,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_sequence_export(
        cache: *mut rkv_cache,
        args: *const rkv_transfer_args,
        out: *mut ::std::os::raw::c_void,
        capacity: i64,
        bytes: *mut i64,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_sequence_import(
        cache: *mut rkv_cache,
        args: *const rkv_transfer_args,
        in_: *const ::std::os::raw::c_void,
        bytes: i64,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_prefill(
        cache: *mut rkv_cache,
        args: *const rkv_prefill_args,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_decode_select(
        cache: *mut rkv_cache,
        args: *const rkv_decode_args,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_attend(
        cache: *mut rkv_cache,
        args: *const rkv_decode_args,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_decode(
        cache: *mut rkv_cache,
        args: *const rkv_decode_args,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_stats(
        cache: *const rkv_cache,
        seq: i32,
        layer: i32,
        stream: *mut ::std::os::raw::c_void,
        stats: *mut rkv_sequence_stats,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_kept_positions(
        cache: *const rkv_cache,
        seq: i32,
        layer: i32,
        stream: *mut ::std::os::raw::c_void,
        out: *mut i64,
        capacity: i64,
        count: *mut i64,
        err: *mut rkv_error,
    ) -> rkv_status;
}
unsafe extern "C" {
    pub fn rkv_audit(
        cache: *mut rkv_cache,
        args: *const rkv_decode_args,
        result: *mut rkv_audit_result,
        stream: *mut ::std::os::raw::c_void,
        err: *mut rkv_error,
    ) -> rkv_status;
}
