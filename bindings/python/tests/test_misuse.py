"""Misuse is an exception with a text that helps; never a crash, and the cache stays as it was."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import rkv
from rkv import _errors
from support import DV, HKV, HQ, SMALL, D, Exporter, Prompt, options, prefilled

S = 150


@pytest.fixture(scope="module")
def prompt() -> Prompt:
    return Prompt(S)


@pytest.fixture
def cache(prompt: Prompt) -> Any:
    with prefilled(prompt) as made:
        yield made


def test_errors_by_kind() -> None:
    kinds = {
        rkv.InvalidArgumentError: (1, ValueError),
        rkv.UnsupportedError: (2, NotImplementedError),
        rkv.CapacityError: (3, Exception),
        rkv.BufferTooSmallError: (4, ValueError),
        rkv.BadStateError: (5, RuntimeError),
        rkv.DeviceError: (6, RuntimeError),
        rkv.AbiMismatchError: (7, ImportError),
        rkv.CorruptDataError: (8, ValueError),
        rkv.OutOfMemoryError: (9, MemoryError),
        rkv.InternalError: (10, RuntimeError),
    }
    for kind, (status, base) in kinds.items():
        error = _errors.make_error(status, 42, "the text")
        assert type(error) is kind and isinstance(error, (rkv.RkvError, base))
        assert (error.status, error.native_code, str(error)) == (status, 42, "the text")
    unknown = _errors.make_error(99, 0, "later")
    assert type(unknown) is rkv.RkvError and unknown.status == 99


# ---- closing ------------------------------------------------------------------------------------


def test_use_after_close(prompt: Prompt) -> None:
    cache = prefilled(prompt)
    cache.close()
    cache.close()
    assert cache.closed
    q, k, v = prompt.row(0)
    calls: list[Any] = [
        lambda: cache.open(1),
        lambda: cache.close_sequence(0),
        lambda: cache.rewind(0, S),
        lambda: cache.fork(0, 1),
        lambda: cache.export(0, 0),
        lambda: cache.import_(0, 0, b"bytes"),
        lambda: cache.prefill(0, 0, prompt.q, prompt.k, prompt.v),
        lambda: cache.decode(0, [0], [S], q, k, v),
        lambda: cache.decode_select(0, [0], [S], q, k, v),
        lambda: cache.attend(0, [0], [S], q),
        lambda: cache.audit(0, [0], [S], q),
        lambda: cache.stats(0, 0),
        lambda: cache.kept_positions(0, 0),
        cache.__enter__,
    ]
    for call in calls:
        with pytest.raises(rkv.BadStateError, match="the cache is closed"):
            call()


def decode_until_refused(
    cache: rkv.Cache, prompt: Prompt, running: threading.Event, errors: list[Exception]
) -> None:
    try:
        while True:
            cache.decode(0, [0], [S], *prompt.row(0))
            running.set()
    except Exception as error:  # any other would fail the test below
        errors.append(error)


def test_close_during_a_call_of_another_thread(prompt: Prompt) -> None:
    for _ in range(30):
        cache = prefilled(prompt)
        running = threading.Event()
        errors: list[Exception] = []
        thread = threading.Thread(
            target=decode_until_refused, args=(cache, prompt, running, errors)
        )
        thread.start()
        assert running.wait(10)
        cache.close()
        thread.join(10)
        assert not thread.is_alive()
        assert [type(error) for error in errors] == [rkv.BadStateError]


def test_two_threads_on_one_cache() -> None:
    """One of two long calls that meet is refused, by the library and not by the GIL."""
    prompt = Prompt(4000)
    with rkv.Cache(**options(max_prompt_tokens=4000, max_sequences=2)) as cache:
        cache.open(0)
        cache.open(1)
        refused: list[str] = []
        start = threading.Barrier(2)

        def work(seq: int) -> None:
            start.wait()
            for _ in range(20):
                try:
                    cache.prefill(seq, 0, prompt.q, prompt.k, prompt.v)
                    cache.close_sequence(seq)
                    cache.open(seq)
                except rkv.BadStateError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=work, args=(seq,)) for seq in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert any("in use" in text for text in refused)


def test_gil_is_released() -> None:
    """Another thread gets to run Python, although this one never has to give way."""
    prompt = Prompt(2000)
    ticks = [0]
    started, done = threading.Event(), threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1
            started.set()
            time.sleep(0)

    thread = threading.Thread(target=tick)
    interval = sys.getswitchinterval()
    with rkv.Cache(**options(max_prompt_tokens=2000)) as cache:
        cache.open(0)
        thread.start()
        assert started.wait(10)
        sys.setswitchinterval(1000)  # seconds
        try:
            before = ticks[0]
            for _ in range(50):
                cache.prefill(0, 0, prompt.q, prompt.k, prompt.v)
                cache.close_sequence(0)
                cache.open(0)
            during = ticks[0] - before
        finally:
            sys.setswitchinterval(interval)
            done.set()
            thread.join()
    assert during > 0


# ---- values -------------------------------------------------------------------------------------


def refuse(kind: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_wrong_dtype(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    wrong = rkv.InvalidArgumentError
    refuse(wrong, "q: 'd'.*need float32", lambda: cache.decode(0, [0], [S], q.astype("f8"), k, v))
    refuse(
        wrong, "k: uint16.*need float32", lambda: cache.decode(0, [0], [S], q, k.astype("u2"), v)
    )
    refuse(wrong, r"v\.dtype", lambda: cache.decode(0, [0], [S], q, k, v.astype("f2")))
    refuse(wrong, "q: '>f'", lambda: cache.decode(0, [0], [S], q.astype(">f4"), k, v))
    ids = np.zeros(1, np.int64)
    refuse(wrong, "seq: int64", lambda: cache.decode(0, ids, [S], q, k, v))
    refuse(wrong, "positions: int32", lambda: cache.decode(0, [0], ids.astype("i4"), q, k, v))
    lse = np.zeros((1, HQ))
    refuse(wrong, "lse: 'd'", lambda: cache.decode(0, [0], [S], q, k, v, lse=lse))
    status = np.zeros(1, np.int64)
    refuse(
        wrong,
        "row_status: int64",
        lambda: cache.decode(0, [0], [S], q, k, v, row_status=status),
    )
    refuse(TypeError, "v: .*str", lambda: cache.decode(0, [0], [S], q, k, "text"))  # type: ignore
    refuse(TypeError, "seq: .*float", lambda: cache.decode(0, [0.5], [S], q, k, v))  # type: ignore
    assert cache.stats(0, 0).generated == 0


def test_wrong_shape(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    wrong = rkv.InvalidArgumentError
    refuse(wrong, r"q\.", lambda: cache.decode(0, [0], [S], q[:, :-1], k, v))
    refuse(wrong, r"k\.", lambda: cache.decode(0, [0], [S], q, k[..., :-1], v))
    refuse(wrong, r"v\.", lambda: cache.decode(0, [0], [S], q, k, v[0]))
    refuse(wrong, r"positions: int64 \[2\]", lambda: cache.decode(0, [0], [S, S], q, k, v))
    refuse(
        wrong, r"seq: int32 \[1, 1\]", lambda: cache.decode(0, np.zeros((1, 1), "i4"), [S], q, k, v)
    )
    two = np.zeros((4,), np.int32)[::2]
    refuse(wrong, "with gaps", lambda: cache.decode(0, two, [S, S], q, k, v))
    skewed = np.frombuffer(bytes(9), np.int64, count=1, offset=1)
    refuse(wrong, "misaligned", lambda: cache.decode(0, [0], skewed, q, k, v))
    out = np.zeros((1, HQ, DV + 1), np.float32)
    refuse(wrong, r"out\.", lambda: cache.decode(0, [0], [S], q, k, v, out=out))
    lse = np.zeros((1, HQ + 1), np.float32)
    refuse(wrong, "lse: float32", lambda: cache.decode(0, [0], [S], q, k, v, lse=lse))
    deep = np.zeros((1,) * 7, np.float32)
    refuse(wrong, "q: 7 axes", lambda: cache.decode(0, [0], [S], deep, k, v))
    assert cache.stats(0, 0).generated == 0


def test_outputs_must_be_writable_and_apart(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    out = np.zeros((1, HQ, DV), np.float32)
    out.flags.writeable = False
    wrong = rkv.InvalidArgumentError
    refuse(wrong, "out: no writable", lambda: cache.decode(0, [0], [S], q, k, v, out=out))
    constant = bytes(4 * HQ * DV)
    refuse(wrong, "out: no writable", lambda: cache.decode(0, [0], [S], q, k, v, out=constant))

    same = np.lib.stride_tricks.as_strided(np.zeros(1, "f4"), (1, HQ, DV), (0, 0, 0))
    refuse(wrong, r"out\.strides", lambda: cache.decode(0, [0], [S], q, k, v, out=same))


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="numpy exports no DLPack 1.0"
)
def test_read_only_dlpack_is_no_output(cache: rkv.Cache, prompt: Prompt) -> None:
    class ReadOnly(Exporter):
        def __dlpack__(self, **keywords: Any) -> Any:
            return self.source.__dlpack__(max_version=(1, 0))

    q, k, v = prompt.row(0)
    out = np.zeros((1, HQ, DV), np.float32)
    cache.decode(0, [0], [S], q, k, v, out=ReadOnly(out))
    assert out.any()
    out.flags.writeable = False
    with pytest.raises(rkv.InvalidArgumentError, match="out: read-only"):
        cache.decode(0, [0], [S], q, k, v, out=ReadOnly(out))


def test_odd_strides(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    packed = np.zeros(HKV * D, np.dtype([("value", "f4"), ("tag", "u1")]))
    odd = packed["value"].reshape(1, HKV, D)
    refuse(
        rkv.InvalidArgumentError,
        "k: stride of axis 2 is 5 bytes",
        lambda: cache.decode(0, [0], [S], q, odd, v),
    )


def test_dlpack_that_fails(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)

    class Tracked(Exporter):
        def __dlpack__(self, **keywords: Any) -> Any:
            raise BufferError("requires gradient")

    class Junk(Exporter):
        def __dlpack__(self, **keywords: Any) -> Any:
            return "no capsule"

    with pytest.raises(rkv.InvalidArgumentError, match="k: its __dlpack__ failed") as caught:
        cache.decode(0, [0], [S], q, Tracked(k), v)
    assert "requires gradient" in repr(caught.value.__cause__)
    wrong = rkv.InvalidArgumentError
    refuse(wrong, "k: .*no DLPack capsule", lambda: cache.decode(0, [0], [S], q, Junk(k), v))

    def elsewhere(tensor: Any) -> None:
        tensor.device_type = 2

    far = Exporter(k, elsewhere)
    refuse(wrong, "k: is on device cuda:0, need cpu", lambda: cache.decode(0, [0], [S], q, far, v))


def test_missing_arrays(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    wrong = rkv.InvalidArgumentError
    refuse(wrong, "k", lambda: cache.decode(0, [0], [S], q, None, v))
    refuse(wrong, "prompt_tokens", lambda: cache.prefill(0, 0, q, None, None))
    empty: Any = None
    refuse(wrong, "positions: None", lambda: cache.decode(0, [0], empty, q, k, v))


def test_selection_that_does_not_fit(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    need = cache.memory.selection_capacity
    counts = np.zeros((1, HKV), np.int32)
    short = rkv.Selection(np.zeros((1, HKV, need - 1), np.int32), counts)
    refuse(
        rkv.BufferTooSmallError,
        str(need),
        lambda: cache.decode_select(0, [0], [S], q, k, v, selection=short),
    )
    narrow = rkv.Selection(np.zeros((1, HKV - 1, need), np.int32), counts)
    refuse(
        rkv.InvalidArgumentError,
        r"selection\.indices: int32 \[1, 1, ",
        lambda: cache.decode_select(0, [0], [S], q, k, v, selection=narrow),
    )
    no_counts = rkv.Selection(np.zeros((1, HKV, need), np.int32), np.zeros((0, HKV), np.int32))
    refuse(
        rkv.InvalidArgumentError,
        r"selection\.counts: int32 \[0, 2\]",
        lambda: cache.decode_select(0, [0], [S], q, k, v, selection=no_counts),
    )
    space: Any = "somewhere"
    refuse(rkv.InvalidArgumentError, "space", lambda: cache.new_selection(1, space))


def test_short_buffers() -> None:
    need = rkv.memory(**SMALL)

    def make(storage: int, workspace: int) -> None:
        rkv.Cache(
            buffers=rkv.Buffers(
                rkv.empty_aligned(storage, need.alignment),
                rkv.empty_aligned(workspace, need.alignment),
            ),
            **SMALL,
        )

    too_small = rkv.BufferTooSmallError
    refuse(too_small, "workspace", lambda: make(need.storage_bytes, need.workspace_bytes - 1))
    refuse(too_small, "storage", lambda: make(need.storage_bytes - 1, need.workspace_bytes))
    constant = bytes(need.storage_bytes)
    refuse(rkv.InvalidArgumentError, "writable", lambda: rkv.Buffers(constant, constant))
    gaps = np.zeros((2 * need.storage_bytes,), np.uint8)[::2]
    buffers = rkv.Buffers(gaps, gaps)
    refuse(rkv.InvalidArgumentError, "contiguous", lambda: rkv.Cache(buffers=buffers, **SMALL))


def test_empty_batch(cache: rkv.Cache) -> None:
    q, k, v = (np.zeros((0, *a.shape[1:]), np.float32) for a in Prompt(1).row(0))
    before = cache.stats(0, 0)
    assert cache.decode(0, [], [], q, k, v).shape == (0, HQ, DV)
    ids, positions = np.zeros(0, np.int32), np.zeros(0, np.int64)
    assert np.asarray(cache.decode_select(0, ids, positions, q, k, v).counts).shape == (0, HKV)
    assert cache.stats(0, 0) == before


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"layers": 0}, rkv.InvalidArgumentError, "layers"),
        ({"layers": 2**31}, rkv.InvalidArgumentError, "layers: 2147483648"),
        ({"layers": -(2**200)}, rkv.InvalidArgumentError, "layers"),
        ({"layers": 1.0}, TypeError, "layers"),
        ({"head_dim": 12}, rkv.InvalidArgumentError, "head_dim"),
        ({"head_dim": 2**31 - 8}, rkv.UnsupportedError, "head_dim"),
        ({"q_heads": 3}, rkv.InvalidArgumentError, "q_heads"),
        ({"max_prompt_tokens": 2**62}, rkv.InvalidArgumentError, "max_prompt_tokens"),
        ({"compression_ratio": float("nan"), "token_budget": 0}, rkv.InvalidArgumentError, "ratio"),
        ({"compression_ratio": 4.0}, rkv.InvalidArgumentError, "token_budget"),
        ({"softmax_scale": 1e300}, rkv.InvalidArgumentError, "softmax_scale"),
        ({"softmax_scale": "wide"}, TypeError, "softmax_scale"),
        ({"kernel_size": 4}, rkv.InvalidArgumentError, "kernel_size"),
        ({"kv_dtype": "f64"}, rkv.InvalidArgumentError, "kv_dtype: 'f64'"),
        ({"kv_dtype": ["f32"]}, rkv.InvalidArgumentError, "kv_dtype"),
        ({"kv_dtype": "e4m3"}, rkv.UnsupportedError, "kv_dtype"),
        ({"storage": "indexed"}, rkv.UnsupportedError, "storage"),
        ({"device_type": "cuda"}, rkv.UnsupportedError, "device_type"),
        ({"dense_layers": [256]}, rkv.InvalidArgumentError, "dense_layers: 256"),
        ({"dense_layers": [5]}, rkv.InvalidArgumentError, "dense_layers"),
        ({"page_sise": 3}, TypeError, "page_sise"),
    ],
)
def test_absurd_options(changes: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        rkv.Cache(**options(**changes))


def test_more_memory_than_there_is() -> None:
    huge = options(
        layers=256,
        q_heads=256,
        kv_heads=256,
        head_dim=256,
        max_sequences=1 << 20,
        max_prompt_tokens=1 << 30,
    )
    with pytest.raises((rkv.OutOfMemoryError, rkv.InvalidArgumentError), match="bytes|sequences"):
        rkv.Cache(**huge)


def test_absurd_calls(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    wrong = rkv.InvalidArgumentError
    refuse(wrong, "seq: 4294967296", lambda: cache.open(2**32))
    refuse(wrong, "seq", lambda: cache.open(-1))
    refuse(rkv.BadStateError, "seq", lambda: cache.open(0))
    refuse(wrong, "seq", lambda: cache.decode(0, [2**40], [S], q, k, v))
    refuse(wrong, "layer", lambda: cache.decode(7, [0], [S], q, k, v))
    refuse(rkv.BadStateError, "position", lambda: cache.decode(0, [0], [S + 1], q, k, v))
    refuse(wrong, "position", lambda: cache.decode(0, [0], [S - 1], q, k, v))
    refuse(rkv.CapacityError, "position", lambda: steps(cache, prompt, 17))
    refuse(wrong, "position", lambda: cache.rewind(0, 10**15))
    refuse(wrong, "stream", lambda: cache.rewind(0, S, stream=2**70))
    refuse(rkv.BadStateError, "prefill", lambda: cache.prefill(0, 0, prompt.q, prompt.k, prompt.v))
    cache.close_sequence(0)
    cache.open(0)
    refuse(
        rkv.CapacityError,
        "prompt_tokens",
        lambda: cache.prefill(0, 0, prompt.q, prompt.k, prompt.v, prompt_tokens=401),
    )


def steps(cache: rkv.Cache, prompt: Prompt, count: int) -> None:
    for step in range(count):
        cache.decode(0, [0], [S + step], *prompt.row(0))


def test_what_is_not_served_yet_says_so(prompt: Prompt) -> None:
    with prefilled(prompt, max_sequences=2) as cache:
        refuse(rkv.UnsupportedError, "fork", lambda: cache.fork(0, 1))
        refuse(rkv.UnsupportedError, "export", lambda: cache.export(0, 0))
        cache.open(1)
        refuse(rkv.UnsupportedError, "import", lambda: cache.import_(1, 0, b"bytes"))
        paging = rkv.Paging(16, block_table=np.zeros((1, 4), np.int32))
        refuse(
            rkv.UnsupportedError,
            "paging",
            lambda: cache.prefill(
                1, 0, prompt.q, prompt.k, prompt.v, prompt_tokens=S, paging=paging
            ),
        )
        wrong = rkv.Paging(16, block_table=np.zeros((1, 4), np.int64))
        refuse(
            rkv.InvalidArgumentError,
            "block_table: int64",
            lambda: cache.prefill(
                1, 0, prompt.q, prompt.k, prompt.v, prompt_tokens=S, paging=wrong
            ),
        )
