"""Many caches, one after the other: nothing is left of them, however they end."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import rkv
from support import SMALL, Prompt, options


def kib(name: str) -> int:
    """VmRSS, VmSize or VmHWM of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_ten_thousand_lives_in_bounded_memory() -> None:
    prompt = Prompt(40)
    small = options(max_prompt_tokens=40, max_new_tokens=4, num_threads=2)

    def live(count: int) -> None:
        for _ in range(count):
            with rkv.Cache(**small) as cache:
                cache.open(0)
                cache.prefill(0, 0, prompt.q, prompt.k, prompt.v)

    live(500)
    before, running = kib("VmHWM"), threads()
    live(10_000)
    assert kib("VmHWM") - before < 8 * 1024
    assert threads() == running


def test_garbage_collection_closes_what_was_left_open() -> None:
    wide = options(layers=32, kv_heads=4, head_dim=128, max_prompt_tokens=40_000)
    each = rkv.memory(**wide).storage_bytes // 1024
    before = kib("VmSize")
    for index in range(60):
        cache = rkv.Cache(**wide)
        loop: list[Any] = [cache]
        loop.append(loop)  # only the collector finds it
        del cache, loop
        if index % 4 == 0:
            gc.collect()
    assert kib("VmSize") - before < 8 * each


def test_failed_creations_leave_nothing() -> None:
    need = rkv.memory(**SMALL)
    workspace = bytearray(10)
    buffers = rkv.Buffers(rkv.empty_aligned(need.storage_bytes, need.alignment), workspace)
    for _ in range(100):
        with pytest.raises(rkv.RkvError):
            rkv.Cache(buffers=buffers, **SMALL)
    del buffers
    workspace.extend(b"no export of it is left")
