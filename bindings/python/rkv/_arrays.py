"""What may be passed as an array, and the arrays that the facade makes itself."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from ._errors import InvalidArgumentError


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of another library: torch, cupy, jax."""

    def __dlpack__(self) -> Any: ...

    def __len__(self) -> int: ...


Buffer: TypeAlias = "bytes | bytearray | memoryview[Any] | array.array[Any]"
Array: TypeAlias = "npt.NDArray[Any] | SupportsDLPack | Buffer"
Ids: TypeAlias = "Array | Sequence[int]"
AnyArray = TypeVar("AnyArray", bound="Array")


def as_ids(name: str, values: Ids, typecode: str) -> Array:
    """A list or tuple as int32 ("i") or int64 ("q"); an array is left alone."""
    if isinstance(values, (list, tuple)):
        try:
            return array.array(typecode, values)
        except OverflowError as error:
            raise InvalidArgumentError(f"{name}: {error}") from None
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    return values  # type: ignore[return-value]  # other sequences fail in the extension


def empty_like(source: Array, shape: tuple[int, int, int]) -> Any:
    """An uninitialised array of the library, element type and device of `source`."""
    if isinstance(source, np.ndarray):
        return np.empty(shape, source.dtype)
    if hasattr(source, "new_empty"):  # torch
        return source.new_empty(shape)
    made: Any = source
    if hasattr(made, "__array_namespace__"):  # cupy and others of the array API
        return made.__array_namespace__().empty(shape, dtype=made.dtype, device=made.device)
    raise InvalidArgumentError(f"out: needed where q is a {type(source).__name__}")


def empty_aligned(nbytes: int, alignment: int) -> npt.NDArray[np.uint8]:
    """An uninitialised buffer for `storage` or `workspace` whose address fits `alignment`."""
    block = np.empty(nbytes + alignment, np.uint8)
    skip = -block.ctypes.data % alignment
    return block[skip : skip + nbytes]
