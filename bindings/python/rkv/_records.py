"""Plain records: what the library reports, and what is passed by reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ._arrays import Array
from ._options import enum_value
from ._swig import native

Space: TypeAlias = Literal["live_row", "position", "slot"]
SPACES = {
    "live_row": native.RKV_SPACE_LIVE_ROW,
    "position": native.RKV_SPACE_POSITION,
    "slot": native.RKV_SPACE_SLOT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All the sizes that follow from one budget; made by the library alone."""

    dense: bool  # nothing is summarised, scored or selected
    raised: bool  # cap was raised so that window, sinks and new tokens fit
    cap: int  # kept and new tokens together
    prompt_budget: int  # kept tokens of the prompt
    page_size: int
    num_channels: int
    top_k: int  # tokens selected a step
    token_budget: int
    rows: int  # live rows at most
    pages: int
    ratio: float
    split: float  # exponent of the ratio that stage 1 takes
    storage_ratio: float
    traffic_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes that a cache needs, and what `storage_bytes` is made of."""

    alignment: int
    storage_bytes: int
    workspace_bytes: int
    selection_capacity: int  # in token rows
    k_bytes: int
    v_bytes: int
    summary_bytes: int
    index_bytes: int
    window_bytes: int
    table_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStats:
    """State of one layer of one sequence."""

    turn: int  # 0 before the first prefill
    prompt: int  # tokens of the last turn's prompt
    position: int  # the next append
    max_position: int  # exclusive
    kept: int
    generated: int
    pages: int
    window_rows: int
    fault: int
    nonfinite: bool
    saturated: bool
    k_bytes: int
    v_bytes: int
    summary_bytes: int
    index_bytes: int
    full_kv_bytes: int
    bytes_read_per_step: int
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """How much attention mass the selections of some rows caught, and the error of the output."""

    rows: int
    mass_mean: float
    mass_min: float
    prompt_mass_mean: float  # NaN where the prompt is not there any more
    error_mean: float
    error_max: float


@dataclass(frozen=True, slots=True)
class Buffers:
    """The caller's own memory for a cache: writable, contiguous, as large as `memory` says.

    It must not be freed or used before the cache is closed. Caches whose calls never overlap may
    share a workspace.
    """

    storage: Array
    workspace: Array
    storage_view: native.HeldBuffer = field(init=False, repr=False, compare=False)
    workspace_view: native.HeldBuffer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage_view", native.HeldBuffer(self.storage))
        object.__setattr__(self, "workspace_view", native.HeldBuffer(self.workspace))


@dataclass(frozen=True, slots=True)
class Selection:
    """Token rows chosen for each row and KV head: ascending, padded with -1.

    `indices` is a contiguous int32 array [rows, kv_heads, capacity], `counts` a contiguous int32
    array [rows, kv_heads]; both are the caller's, and in the memory of the cache's device.
    """

    indices: Array
    counts: Array
    space: Space = "live_row"
    view: native.SelectionView = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        space = enum_value("space", SPACES, self.space)
        view = native.SelectionView(self.indices, self.counts, space)
        object.__setattr__(self, "view", view)


@dataclass(frozen=True, slots=True)
class Paging:
    """Where the blocks of a paged K and V lie.

    Either `block_table`, int32 [rows, max_blocks] with a negative entry for an absent block, or
    the addresses `k_blocks` and `v_blocks`, uint64 in that shape. A prefill has one row.
    """

    block_tokens: int
    block_table: Array | None = None
    k_blocks: Array | None = None
    v_blocks: Array | None = None
    view: native.PagingView = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        view = native.PagingView(self.block_tokens, self.block_table, self.k_blocks, self.v_blocks)
        object.__setattr__(self, "view", view)


def selection_view(selection: Selection | None) -> native.SelectionView | None:
    """What a call takes of it."""
    if selection is None:
        return None
    if not isinstance(selection, Selection):
        raise TypeError(f"selection: {type(selection)!r}, need an rkv.Selection")
    return selection.view


def paging_view(paging: Paging | None) -> native.PagingView | None:
    """What a call takes of it."""
    if paging is None:
        return None
    if not isinstance(paging, Paging):
        raise TypeError(f"paging: {type(paging)!r}, need an rkv.Paging")
    return paging.view
