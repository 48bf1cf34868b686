"""What somebody new does wrong: an error with the argument's name, or it works; never a crash."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any, cast

import numpy as np
import pytest

import rkv
from support import SMALL, Prompt, prefilled

S = 150


@pytest.fixture(scope="module")
def prompt() -> Prompt:
    return Prompt(S)


@pytest.fixture
def cache(prompt: Prompt) -> Any:
    with prefilled(prompt) as made:
        yield made


def test_a_daemon_thread_in_a_call_does_not_abort_the_exit() -> None:
    program = """
import threading, time
import numpy as np
import rkv
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((2000, heads, 64), dtype=np.float32) for heads in (8, 2, 2))
cache = rkv.Cache(layers=1, q_heads=8, kv_heads=2, head_dim=64, kv_dtype="f32",
                  max_prompt_tokens=2000, max_new_tokens=64, token_budget=256)
def work():
    while True:
        cache.open(0)
        cache.prefill(0, 0, q, k, v)
        cache.close_sequence(0)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(4):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
        assert (result.returncode, result.stderr) == (0, b"")


def test_a_forked_child_closes_what_it_inherited() -> None:
    with prefilled(Prompt(S), num_threads=3):
        child = os.fork()
        if child == 0:
            try:
                own = prefilled(Prompt(S), num_threads=3)
                own.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_a_cache_is_not_copied(cache: rkv.Cache) -> None:
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(cache)
    assert not cache.closed


def test_records_of_arrays_do_not_change(cache: rkv.Cache) -> None:
    selection = cache.new_selection(1)
    for field in ("indices", "counts", "space"):
        with pytest.raises(AttributeError):
            setattr(selection, field, selection.counts)


def test_a_constructor_that_refuses_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeError):
        rkv.Cache(1)  # type: ignore[misc]
    rkv.Cache.__new__(rkv.Cache).__del__()
    assert capfd.readouterr().err == ""


def test_arguments_of_another_kind_are_named(cache: rkv.Cache, prompt: Prompt) -> None:
    q, k, v = prompt.row(0)
    any_: Any = cast(Any, 5)
    for name, call in {
        "buffers": lambda: rkv.Cache(buffers=any_, **SMALL),
        "dense_layers": lambda: rkv.Cache(**(SMALL | {"dense_layers": 1})),  # type: ignore[typeddict-item]
        "paging": lambda: cache.decode(0, [0], [S], q, k, v, paging=any_),
        "selection": lambda: cache.decode(0, [0], [S], q, k, v, selection=any_),
        "seq": lambda: cache.decode(0, any_, [S], q, k, v),
        "q": lambda: cache.decode(0, [0], [S], any_, k, v),
        "k": lambda: cache.prefill(0, 0, q, any_, v),
    }.items():
        with pytest.raises(TypeError, match=f"^{name}: "):
            call()
    for name, call in {
        "k": lambda: cache.prefill(0, 0, q, np.float32(1), v),  # type: ignore[arg-type]
        "rows": lambda: cache.new_selection(-1),
        "nbytes": lambda: rkv.empty_aligned(-1, 64),
        "alignment": lambda: rkv.empty_aligned(10, 0),
    }.items():
        with pytest.raises(rkv.InvalidArgumentError, match=f"^{name}: "):
            call()
    cache.close()
    with pytest.raises(rkv.BadStateError):
        cache.new_selection(1)


def test_storage_and_workspace_apart() -> None:
    need = rkv.memory(**SMALL)
    both = rkv.empty_aligned(need.storage_bytes + need.workspace_bytes, need.alignment)
    with pytest.raises(rkv.InvalidArgumentError, match="overlap"):
        rkv.Cache(buffers=rkv.Buffers(both, both), **SMALL)
