"""Functions of the library that need no cache, and the check that it is the right library."""

from __future__ import annotations

from typing import Unpack

from ._errors import AbiMismatchError
from ._options import (
    DEVICES,
    CacheOptions,
    Device,
    SequenceOptions,
    enum_value,
    make_config,
    make_sequence_options,
)
from ._records import Memory, Plan
from ._swig import native


def version() -> str:
    """Version of the C library that was loaded."""
    return native.rkv_version_string()


def abi_version() -> int:
    """ABI version of the C library: major * 1000 + minor."""
    return native.rkv_abi_version()


def device_count(device_type: Device = "cpu") -> int:
    """Devices of that type that the library can use here."""
    return native.rkv_device_count(enum_value("device_type", DEVICES, device_type))


def read_plan(source: native.rkv_plan) -> Plan:
    """The record of a filled struct."""
    return Plan(
        dense=bool(source.dense),
        raised=bool(source.raised),
        cap=source.cap,
        prompt_budget=source.prompt_budget,
        page_size=source.page_size,
        num_channels=source.num_channels,
        top_k=source.top_k,
        token_budget=source.token_budget,
        rows=source.rows,
        pages=source.pages,
        ratio=source.ratio,
        split=source.split,
        storage_ratio=source.storage_ratio,
        traffic_ratio=source.traffic_ratio,
    )


def read_memory(source: native.rkv_memory) -> Memory:
    """The record of a filled struct."""
    return Memory(
        alignment=source.alignment,
        storage_bytes=source.storage_bytes,
        workspace_bytes=source.workspace_bytes,
        selection_capacity=source.selection_capacity,
        k_bytes=source.k_bytes,
        v_bytes=source.v_bytes,
        summary_bytes=source.summary_bytes,
        index_bytes=source.index_bytes,
        window_bytes=source.window_bytes,
        table_bytes=source.table_bytes,
    )


def plan(
    prompt_tokens: int,
    *,
    sequence: SequenceOptions | None = None,
    **options: Unpack[CacheOptions],
) -> Plan:
    """The plan that a cache of these options makes for a prompt of that length.

    `sequence` is what one request asks for, as in `Cache.open`.
    """
    result = native.rkv_plan()
    own = None if sequence is None else make_sequence_options(sequence)
    native.rkv_plan_make(make_config(options), own, prompt_tokens, result)
    return read_plan(result)


def memory(**options: Unpack[CacheOptions]) -> Memory:
    """The memory that a cache of these options needs; touches no device."""
    result = native.rkv_memory()
    native.rkv_cache_memory(make_config(options), result)
    return read_memory(result)


def check_abi() -> None:
    """Another librkv of the same file name may have been in the process first."""
    if abi_version() != native.RKV_ABI_VERSION:
        raise AbiMismatchError(
            f"librkv: ABI version {abi_version()} is loaded, need {native.RKV_ABI_VERSION}"
        )


check_abi()
