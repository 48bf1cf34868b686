"""Small caches, random prompts and a slow attention for the tests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import rkv

Floats = npt.NDArray[np.float32]
HQ, HKV, D, DV = 4, 2, 16, 8
SMALL: rkv.CacheOptions = {
    "layers": 1,
    "q_heads": HQ,
    "kv_heads": HKV,
    "head_dim": D,
    "head_dim_v": DV,
    "kv_dtype": "f32",
    "max_prompt_tokens": 400,
    "max_new_tokens": 16,
    "token_budget": 64,
    "num_threads": 1,
}


def options(**changes: Any) -> rkv.CacheOptions:
    """The small cache with some options changed."""
    return {**SMALL, **changes}  # type: ignore[typeddict-item]


def random(rows: int, heads: int, channels: int, seed: int = 0) -> Floats:
    """Normal values, [rows, heads, channels]."""
    return np.random.default_rng(seed).normal(size=(rows, heads, channels)).astype(np.float32)


class Prompt:
    """Q, K and V of S tokens and of some decode rows after them."""

    def __init__(self, tokens: int, new: int = 4, seed: int = 1) -> None:
        self.tokens = tokens
        self.all_q = random(tokens + new, HQ, D, seed)
        self.all_k = random(tokens + new, HKV, D, seed + 1)
        self.all_v = random(tokens + new, HKV, DV, seed + 2)
        self.q, self.k, self.v = (a[:tokens] for a in (self.all_q, self.all_k, self.all_v))

    def row(self, index: int) -> tuple[Floats, Floats, Floats]:
        """Q, K and V of the decode row at that distance after the prompt."""
        at = slice(self.tokens + index, self.tokens + index + 1)
        return self.all_q[at], self.all_k[at], self.all_v[at]

    def attention(
        self, index: int, kept: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.float64]:
        """Exact attention of a decode row over positions [HKV, n] (all up to it), in double."""
        last = self.tokens + index
        out = np.empty((HQ, DV))
        for head in range(HQ):
            group = head // (HQ // HKV)
            rows = np.arange(last + 1) if kept is None else kept[group]
            logits = self.all_k[rows, group].astype(np.float64) @ self.all_q[last, head]
            weights = np.exp(logits / np.sqrt(D) - (logits / np.sqrt(D)).max())
            out[head] = weights @ self.all_v[rows, group] / weights.sum()
        return out


def prefilled(prompt: Prompt, **changes: Any) -> rkv.Cache:
    """A cache that holds the prompt in slot 0."""
    cache = rkv.Cache(**options(**changes))
    cache.open(0)
    cache.prefill(0, 0, prompt.q, prompt.k, prompt.v)
    return cache


def to_bf16(values: Floats) -> npt.NDArray[np.uint16]:
    """Rounded to nearest even, as bits."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


class _DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Change = Callable[[_DlTensor], None]


class Exporter:
    """A foreign array: it has `__dlpack__` alone, and `change` may edit what that gives."""

    def __init__(self, source: npt.NDArray[Any], change: Change | None = None) -> None:
        self.source = source
        self.change = change
        self.alive: list[Any] = []  # capsules that the library still holds would stay here

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def __len__(self) -> int:
        return len(self.source)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        if keywords:  # as libraries before DLPack 1.0
            raise TypeError("unexpected keyword")
        capsule = self.source.__dlpack__()
        if self.change is not None:
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype = ctypes.c_void_p
            pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
            address = pointer(capsule, b"dltensor")
            self.change(_DlTensor.from_address(address))
        return capsule


def as_bfloat(tensor: _DlTensor) -> None:
    """Makes an export of uint16 one of bfloat16."""
    tensor.code = 4
