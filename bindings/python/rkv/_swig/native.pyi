"""What the facade uses of the generated module. Arrays are anything `Array` in `rkv._arrays`;
None is an absent argument."""

from typing import Any

RKV_ABI_VERSION: int
RKV_DEVICE_CPU: int
RKV_DEVICE_CUDA: int
RKV_DTYPE_F32: int
RKV_DTYPE_F16: int
RKV_DTYPE_BF16: int
RKV_DTYPE_E4M3: int
RKV_DTYPE_E5M2: int
RKV_STORAGE_COMPACT: int
RKV_STORAGE_INDEXED: int
RKV_UNIT_PAGES: int
RKV_UNIT_TOKENS: int
RKV_STAGE1_ALL: int
RKV_STAGE1_PREFIX_ONLY: int
RKV_SOFTMAX_TOKENS: int
RKV_SOFTMAX_PAGES: int
RKV_POOL_MAX: int
RKV_POOL_AVG: int
RKV_TEMPERATURE_SPARQ: int
RKV_TEMPERATURE_SQRT_D: int
RKV_SPACE_LIVE_ROW: int
RKV_SPACE_POSITION: int
RKV_SPACE_SLOT: int

class rkv_cache_config:
    q_heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int
    def set_dense_layer(self, layer: int) -> None: ...

class rkv_sequence_options:
    max_new_tokens: int
    token_budget: int
    compression_ratio: float

class rkv_plan:
    raised: int
    dense: int
    page_size: int
    num_channels: int
    cap: int
    prompt_budget: int
    rows: int
    pages: int
    top_k: int
    token_budget: int
    ratio: float
    split: float
    storage_ratio: float
    traffic_ratio: float

class rkv_memory:
    alignment: int
    storage_bytes: int
    workspace_bytes: int
    selection_capacity: int
    k_bytes: int
    v_bytes: int
    summary_bytes: int
    index_bytes: int
    window_bytes: int
    table_bytes: int

class rkv_sequence_stats:
    turn: int
    window_rows: int
    fault: int
    nonfinite: int
    saturated: int
    position: int
    max_position: int
    prompt: int
    kept: int
    generated: int
    pages: int
    k_bytes: int
    v_bytes: int
    summary_bytes: int
    index_bytes: int
    full_kv_bytes: int
    bytes_read_per_step: int

class rkv_audit_result:
    rows: int
    mass_mean: float
    mass_min: float
    prompt_mass_mean: float
    error_mean: float
    error_max: float

def rkv_abi_version() -> int: ...
def rkv_version_string() -> str: ...
def rkv_status_name(status: int) -> str: ...
def rkv_device_count(device_type: int) -> int: ...
def rkv_plan_make(
    config: rkv_cache_config,
    options: rkv_sequence_options | None,
    prompt_tokens: int,
    plan: rkv_plan,
) -> None: ...
def rkv_cache_memory(config: rkv_cache_config, memory: rkv_memory) -> None: ...

class HeldBuffer:
    def __init__(self, buffer: Any) -> None: ...

class SelectionView:
    def __init__(self, indices: Any, counts: Any, space: int) -> None: ...

class PagingView:
    def __init__(
        self, block_tokens: int, block_table: Any, k_blocks: Any, v_blocks: Any
    ) -> None: ...

class CacheHandle:
    def create(
        self, config: rkv_cache_config, storage: HeldBuffer | None, workspace: HeldBuffer | None
    ) -> None: ...
    def close(self) -> None: ...
    def closed(self) -> bool: ...
    def open_sequence(self, seq: int, options: rkv_sequence_options) -> None: ...
    def close_sequence(self, seq: int, stream: int) -> None: ...
    def rewind(self, seq: int, position: int, stream: int) -> None: ...
    def fork(self, seq: int, copy: int, stream: int) -> None: ...
    def export_heads(
        self,
        seq: int,
        layer: int,
        head_begin: int,
        head_end: int,
        k: Any,
        v: Any,
        paging: PagingView | None,
        out: Any,
        stream: int,
    ) -> int: ...
    def import_heads(
        self,
        seq: int,
        layer: int,
        head_begin: int,
        head_end: int,
        k: Any,
        v: Any,
        paging: PagingView | None,
        data: Any,
        stream: int,
    ) -> None: ...
    def prefill(
        self,
        seq: int,
        layer: int,
        start: int,
        prompt_tokens: int,
        q: Any,
        k: Any,
        v: Any,
        paging: PagingView | None,
        stream: int,
    ) -> None: ...
    def decode_select(
        self,
        layer: int,
        attend_only: int,
        seq: Any,
        positions: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        row_status: Any,
        selection: SelectionView | None,
        paging: PagingView | None,
        stream: int,
    ) -> None: ...
    def attend(
        self,
        layer: int,
        attend_only: int,
        seq: Any,
        positions: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        row_status: Any,
        selection: SelectionView | None,
        paging: PagingView | None,
        stream: int,
    ) -> None: ...
    def decode(
        self,
        layer: int,
        attend_only: int,
        seq: Any,
        positions: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        row_status: Any,
        selection: SelectionView | None,
        paging: PagingView | None,
        stream: int,
    ) -> None: ...
    def audit(
        self,
        layer: int,
        attend_only: int,
        seq: Any,
        positions: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        row_status: Any,
        selection: SelectionView | None,
        paging: PagingView | None,
        stream: int,
        result: rkv_audit_result,
    ) -> None: ...
    def stats(
        self, seq: int, layer: int, stream: int, plan: rkv_plan | None, stats: rkv_sequence_stats
    ) -> None: ...
    def kept_positions(self, seq: int, layer: int, stream: int, out: Any) -> int: ...
