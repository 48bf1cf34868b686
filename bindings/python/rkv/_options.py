"""Options of a cache as keyword arguments, under the names of rkv_cache_config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Literal, TypeAlias, TypedDict

from ._errors import InvalidArgumentError
from ._swig import native

Device: TypeAlias = Literal["cpu", "cuda"]
KvDtype: TypeAlias = Literal["f32", "f16", "bf16", "e4m3", "e5m2"]


class CacheOptions(TypedDict, total=False):
    """All options; what is left out, or 0, is the library's default."""

    device_type: Device  # "cpu"
    device: int
    layers: int
    q_heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int  # 0: head_dim
    kv_dtype: KvDtype
    dtype: KvDtype  # another name of kv_dtype
    query_dtype: KvDtype  # of q and the output; left out: kv_dtype
    summary_dtype: KvDtype  # left out: kv_dtype
    storage: Literal["compact", "indexed"]
    max_sequences: int  # 0: 1
    max_rows: int  # rows of a decode call; 0: max_sequences
    max_prefills: int  # prompts that are in several calls at one time; 0: 1
    num_threads: int  # 0: all
    max_prompt_tokens: int
    max_new_tokens: int
    token_budget: int  # this,
    compression_ratio: float  # or this
    prompt_budget: int  # this and the next three: 0: from the plan
    top_k: int
    page_size: int
    num_channels: int
    window_size: int  # 0: 32
    kernel_size: int  # 0: 63
    sinks: int
    recent_tokens: int
    selection_unit: Literal["pages", "tokens"]
    stage1_domain: Literal["all", "prefix_only"]
    selection_domain: Literal["tokens", "pages"]
    pooling: Literal["max", "avg"]
    temperature: Literal["sparq", "sqrt_d"]
    key_as_query: bool
    softmax_scale: float  # 0: 1 / sqrt(head_dim)
    logit_softcap: float  # 0: off
    dense_layers: Iterable[int]  # layers that keep and attend to everything


class SequenceOptions(TypedDict, total=False):
    """What one request asks for; what is left out, or 0, is the cache's own."""

    max_new_tokens: int
    token_budget: int  # this,
    compression_ratio: float  # or this


DEVICES = {"cpu": native.RKV_DEVICE_CPU, "cuda": native.RKV_DEVICE_CUDA}
DTYPES = {
    "f32": native.RKV_DTYPE_F32,
    "f16": native.RKV_DTYPE_F16,
    "bf16": native.RKV_DTYPE_BF16,
    "e4m3": native.RKV_DTYPE_E4M3,
    "e5m2": native.RKV_DTYPE_E5M2,
}
_ENUMS: dict[str, dict[str, int]] = {
    "device_type": DEVICES,
    "kv_dtype": DTYPES,
    "query_dtype": DTYPES,
    "summary_dtype": DTYPES,
    "storage": {"compact": native.RKV_STORAGE_COMPACT, "indexed": native.RKV_STORAGE_INDEXED},
    "selection_unit": {"pages": native.RKV_UNIT_PAGES, "tokens": native.RKV_UNIT_TOKENS},
    "stage1_domain": {
        "all": native.RKV_STAGE1_ALL,
        "prefix_only": native.RKV_STAGE1_PREFIX_ONLY,
    },
    "selection_domain": {
        "tokens": native.RKV_SOFTMAX_TOKENS,
        "pages": native.RKV_SOFTMAX_PAGES,
    },
    "pooling": {"max": native.RKV_POOL_MAX, "avg": native.RKV_POOL_AVG},
    "temperature": {
        "sparq": native.RKV_TEMPERATURE_SPARQ,
        "sqrt_d": native.RKV_TEMPERATURE_SQRT_D,
    },
}


def enum_value(name: str, values: Mapping[str, int], given: str | int) -> int:
    """The constant behind a word. A number goes through: the library judges it."""
    if isinstance(given, int):
        return given
    try:
        return values[given]
    except (KeyError, TypeError):
        words = ", ".join(repr(word) for word in values)
        raise InvalidArgumentError(f"{name}: {given!r}, need one of {words}") from None


def make_config(options: CacheOptions) -> native.rkv_cache_config:
    """The struct behind the options. Only words and names are checked here, numbers by the C."""
    config = native.rkv_cache_config()
    given: dict[str, Any] = dict(options)
    unknown = given.keys() - CacheOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}")
    if "dtype" in given:
        if "kv_dtype" in given:
            raise TypeError("dtype and kv_dtype are the same option: give one")
        given["kv_dtype"] = given.pop("dtype")
    try:
        dense = [index(layer) for layer in given.pop("dense_layers", ())]
    except TypeError as error:
        raise TypeError(f"dense_layers: need layer numbers, {error}") from None
    for layer in dense:
        config.set_dense_layer(layer)
    for name, value in given.items():
        if name in _ENUMS:
            value = enum_value(name, _ENUMS[name], value)
        setattr(config, name, value)
    return config


def make_sequence_options(given: SequenceOptions) -> native.rkv_sequence_options:
    """The struct behind one request's options."""
    unknown = given.keys() - SequenceOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}")
    options = native.rkv_sequence_options()
    for name, value in given.items():
        setattr(options, name, value)
    return options
