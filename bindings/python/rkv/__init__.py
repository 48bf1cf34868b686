"""RocketKV KV-cache compression: a typed layer over the C library librkv.

One `Cache` holds the compressed K and V of several sequences. The engine runs its own model and
prefill attention; per layer it hands over the prompt once (`Cache.prefill`), then asks for the
attention output of each decode step (`Cache.decode`)::

    with rkv.Cache(layers=30, q_heads=9, kv_heads=3, head_dim=64, kv_dtype="f32",
                   max_prompt_tokens=4096, max_new_tokens=64, token_budget=256) as cache:
        cache.open(0)
        cache.prefill(0, layer, q, k, v, prompt_tokens=len(k))   # [n,Hq,D] [S,Hkv,D] [S,Hkv,Dv]
        out = cache.decode(layer, [0], [len(k)], q1, k1, v1)     # [1,Hq,D] [1,Hkv,D] -> [1,Hq,Dv]

Arrays are numpy arrays, anything with `__dlpack__` (torch, cupy) or anything with the buffer
protocol; they may be strided and are never copied. bfloat16 is a torch or ml_dtypes array, or
uint16 where the cache's type is "bf16". The GIL is released while the library works.

What the library refuses is raised as a kind of `RkvError` with the library's own text.
"""

from ._arrays import Array, empty_aligned
from ._cache import Cache
from ._errors import (
    AbiMismatchError,
    BadStateError,
    BufferTooSmallError,
    CapacityError,
    CorruptDataError,
    DeviceError,
    InternalError,
    InvalidArgumentError,
    OutOfMemoryError,
    RkvError,
    UnsupportedError,
)
from ._library import abi_version, device_count, memory, plan, version
from ._options import CacheOptions, SequenceOptions
from ._records import AuditResult, Buffers, Memory, Paging, Plan, Selection, SequenceStats

__version__ = version()

__all__ = [
    "AbiMismatchError",
    "Array",
    "AuditResult",
    "BadStateError",
    "BufferTooSmallError",
    "Buffers",
    "Cache",
    "CacheOptions",
    "CapacityError",
    "CorruptDataError",
    "DeviceError",
    "InternalError",
    "InvalidArgumentError",
    "Memory",
    "OutOfMemoryError",
    "Paging",
    "Plan",
    "RkvError",
    "Selection",
    "SequenceOptions",
    "SequenceStats",
    "UnsupportedError",
    "abi_version",
    "device_count",
    "empty_aligned",
    "memory",
    "plan",
    "version",
]
