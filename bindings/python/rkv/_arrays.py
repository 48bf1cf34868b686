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

    @property
    def shape(self) -> Any: ...


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


def axis_length(name: str, array: Array) -> int:
    """Length of the first axis."""
    shape = getattr(array, "shape", None)
    if shape is None:
        try:
            shape = memoryview(array).shape  # type: ignore[arg-type]  # or it fails
        except TypeError:
            raise TypeError(
                f"{name}: {type(array)!r} has neither the buffer protocol nor __dlpack__"
            ) from None
    if not shape:
        raise InvalidArgumentError(f"{name}: no axis, need at least one")
    return int(shape[0])


def empty_like(source: Array, shape: tuple[int, int, int]) -> Any:
    """An uninitialised array of the library, element type and device of `source`."""
    if isinstance(source, np.ndarray):
        return np.empty(shape, source.dtype)
    if hasattr(source, "new_empty"):  # torch
        return source.new_empty(shape)
    made: Any = source
    if hasattr(made, "__array_namespace__"):  # cupy and others of the array API
        return made.__array_namespace__().empty(shape, dtype=made.dtype, device=made.device)
    axis_length("q", source)  # an argument that is no array is the error then
    raise InvalidArgumentError(f"out: needed where q is a {type(source).__name__}")


def empty_aligned(nbytes: int, alignment: int) -> npt.NDArray[np.uint8]:
    """An uninitialised buffer for `storage` or `workspace` whose address fits `alignment`."""
    if nbytes < 0:
        raise InvalidArgumentError(f"nbytes: {nbytes}, need at least 0")
    if alignment < 1 or alignment & (alignment - 1):
        raise InvalidArgumentError(f"alignment: {alignment}, need a power of two")
    block = np.empty(nbytes + alignment, np.uint8)
    skip = -block.ctypes.data % alignment
    return block[skip : skip + nbytes]
