"""Every kind of array gives the same bits, and none is copied."""

from __future__ import annotations

import array
import sys
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rkv
from support import DV, HQ, SMALL, D, Exporter, Prompt, as_bfloat, options, prefilled, to_bf16

S = 150


def answer(cache: rkv.Cache, q: Any, k: Any, v: Any, row: tuple[Any, Any, Any]) -> bytes:
    """Prefill and one step through arrays of one kind."""
    cache.open(0)
    cache.prefill(0, 0, q, k, v, prompt_tokens=S)
    return np.asarray(cache.decode(0, [0], [S], *row)).tobytes()


@pytest.fixture(scope="module")
def prompt() -> Prompt:
    return Prompt(S)


@pytest.fixture(scope="module")
def expected(prompt: Prompt) -> bytes:
    with rkv.Cache(**SMALL) as cache:
        return answer(cache, prompt.q, prompt.k, prompt.v, prompt.row(0))


def head_major(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a.transpose(1, 0, 2)).transpose(1, 0, 2)


def channel_major(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a.transpose(1, 2, 0)).transpose(2, 0, 1)


def every_second(a: np.ndarray) -> np.ndarray:
    wide = np.zeros((*a.shape[:2], 2 * a.shape[2]), a.dtype)
    wide[:, :, ::2] = a
    return wide[:, :, ::2]


def backwards(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]


def read_only(a: np.ndarray) -> np.ndarray:
    view = a.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize(
    "layout", [head_major, channel_major, every_second, backwards, read_only, memoryview, Exporter]
)
def test_layouts(layout: Any, prompt: Prompt, expected: bytes) -> None:
    with rkv.Cache(**SMALL) as cache:
        q, k, v = (layout(a) for a in (prompt.q, prompt.k, prompt.v))
        row = prompt.row(0)
        out = np.empty((1, HQ, DV), np.float32)
        cache.open(0)
        cache.prefill(0, 0, q, k, v)
        assert cache.decode(0, [0], [S], *(layout(a) for a in row), out=out) is out
        assert out.tobytes() == expected


def test_interleaved_rows(prompt: Prompt, expected: bytes) -> None:
    both = np.concatenate([prompt.k, prompt.v], axis=2)
    with rkv.Cache(**SMALL) as cache:
        assert answer(cache, prompt.q, both[..., :D], both[..., D:], prompt.row(0)) == expected


def test_strided_output(prompt: Prompt, expected: bytes) -> None:
    with rkv.Cache(**SMALL) as cache:
        cache.open(0)
        cache.prefill(0, 0, prompt.q, prompt.k, prompt.v)
        block = np.full((1, DV, HQ), np.nan, np.float32)
        out = cache.decode(0, [0], [S], *prompt.row(0), out=block.transpose(0, 2, 1))
        assert np.ascontiguousarray(out).tobytes() == expected
        exported = Exporter(np.empty((1, HQ, DV), np.float32))
        cache.decode(0, [0], [S], *prompt.row(0), out=exported)
        assert exported.source.tobytes() == expected


@pytest.mark.parametrize("kind", ["uint16", "ml_dtypes", "dlpack"])
def test_bfloat16(kind: str, prompt: Prompt) -> None:
    wrap: Any = {
        "uint16": lambda a: a,
        "ml_dtypes": lambda a: a.view(ml_dtypes.bfloat16),
        "dlpack": lambda a: Exporter(a, as_bfloat),
    }[kind]
    q, k, v = (to_bf16(a) for a in (prompt.q, prompt.k, prompt.v))
    row = [to_bf16(a) for a in prompt.row(0)]
    with rkv.Cache(**options(kv_dtype="bf16", token_budget=1000)) as cache:
        cache.open(0)
        cache.prefill(0, 0, wrap(q), wrap(k), wrap(v))
        out = np.empty((1, HQ, DV), np.uint16)
        cache.decode(0, [0], [S], *(wrap(a) for a in row), out=wrap(out))
        if kind != "dlpack":
            made = cache.decode(0, [0], [S], *(wrap(a) for a in row))
            assert made.dtype == wrap(out).dtype and made.tobytes() == out.tobytes()
    values = (out.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(values[0], prompt.attention(0), atol=0.03)


def test_float16_with_float32_queries(prompt: Prompt) -> None:
    with rkv.Cache(**options(kv_dtype="f16", query_dtype="f32", token_budget=1000)) as cache:
        cache.open(0)
        k, v = prompt.k.astype(np.float16), prompt.v.astype(np.float16)
        cache.prefill(0, 0, prompt.q, k, v)
        q1, k1, v1 = prompt.row(0)
        out = cache.decode(0, [0], [S], q1, k1.astype(np.float16), v1.astype(np.float16))
        assert out.dtype == np.float32
        np.testing.assert_allclose(out[0], prompt.attention(0), atol=5e-3)


def test_dtype_is_another_name_of_kv_dtype() -> None:
    with_alias = options(dtype="bf16")
    del with_alias["kv_dtype"]
    assert rkv.memory(**with_alias) == rkv.memory(**options(kv_dtype="bf16"))
    with pytest.raises(TypeError, match="give one"):
        rkv.memory(**options(dtype="bf16"))


def test_dlpack_offset_and_missing_strides(prompt: Prompt, expected: bytes) -> None:
    skip = prompt.k.strides[0] * 3

    def later(tensor: Any) -> None:  # the same data, reached by an offset from an earlier address
        tensor.data -= skip
        tensor.byte_offset = skip
        tensor.strides = None

    with rkv.Cache(**SMALL) as cache:
        k = Exporter(prompt.k, later)
        assert answer(cache, prompt.q, k, prompt.v, prompt.row(0)) == expected


@pytest.mark.parametrize("kind", ["list", "tuple", "array", "memoryview", "numpy", "dlpack"])
def test_ids_and_positions(kind: str, prompt: Prompt, expected: bytes) -> None:
    seq: Any = [0]
    positions: Any = [S]
    if kind == "tuple":
        seq, positions = (0,), (S,)
    elif kind != "list":
        seq, positions = array.array("i", [0]), array.array("q", [S])
    if kind == "memoryview":
        seq, positions = memoryview(seq), memoryview(positions)
    elif kind in ("numpy", "dlpack"):
        seq, positions = np.array([0], np.int32), np.array([S], np.int64)
    if kind == "dlpack":
        seq, positions = Exporter(seq), Exporter(positions)
    with prefilled(prompt) as cache:
        assert cache.decode(0, seq, positions, *prompt.row(0)).tobytes() == expected


def test_output_of_foreign_arrays() -> None:
    class Torchlike(Exporter):
        def new_empty(self, shape: tuple[int, ...]) -> Torchlike:
            return Torchlike(np.empty(shape, self.source.dtype))

    class Space:
        @staticmethod
        def empty(shape: tuple[int, ...], dtype: Any, device: str) -> Exporter:
            assert device == "cpu"
            return Exporter(np.empty(shape, dtype))

    class Cupylike(Exporter):
        dtype = np.dtype(np.float32)
        device = "cpu"

        def __array_namespace__(self) -> type[Space]:
            return Space

    prompt = Prompt(S)
    with prefilled(prompt) as cache:
        q, k, v = prompt.row(0)
        plain = cache.decode(0, [0], [S], q, k, v)
        made = cache.decode(0, [0], [S], Torchlike(q), k, v)
        assert isinstance(made, Torchlike) and made.source.tobytes() == plain.tobytes()
        other: Any = cache.decode(0, [0], [S], Cupylike(q), k, v)
        assert isinstance(other, Exporter) and other.source.tobytes() == plain.tobytes()
        with pytest.raises(rkv.InvalidArgumentError, match="out: needed where q is a memoryview"):
            cache.decode(0, [0], [S], memoryview(q.data), k, v)


def test_nothing_is_copied_and_nothing_is_held() -> None:
    prompt = Prompt(400)
    big = prompt.k.nbytes + prompt.v.nbytes + prompt.q.nbytes
    arrays: list[Any] = [prompt.q, prompt.k, prompt.v, Exporter(prompt.k)]
    with rkv.Cache(**SMALL) as cache:
        cache.open(0)
        before = [sys.getrefcount(a) for a in arrays]
        tracemalloc.start()
        cache.prefill(0, 0, arrays[0], arrays[3], arrays[2])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < big / 4
        assert before == [sys.getrefcount(a) for a in arrays]
        growing = bytearray(prompt.row(0)[0].tobytes())
        with memoryview(growing).cast("f", (1, HQ, D)) as q:
            cache.decode(0, [0], [400], q, *prompt.row(0)[1:], out=np.empty((1, HQ, DV), "f4"))
        growing.extend(b"an export that was still held would forbid this")


def test_library_sees_the_memory_itself() -> None:
    """The step's row is read where it lies: changing it changes the next answer."""
    prompt = Prompt(S)
    with prefilled(prompt, token_budget=1000) as cache:
        q, k, v = (a.copy() for a in prompt.row(0))
        out = np.empty((1, HQ, DV), np.float32)
        first = cache.decode(0, [0], [S], q, k, v, out=out).copy()
        v += 1
        cache.decode(0, [0], [S], q, k, v, out=out)
        assert (out > first).all()
