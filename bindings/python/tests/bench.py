#!/usr/bin/env python3
"""What a call from Python costs: prints one line, nanoseconds (medians).

trivial: rkv.device_count. decode: one Cache.decode of one row of a tiny layer, all buffers reused;
always at the prompt's end, so that each call does the same. token: 32 layers of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

import rkv

LAYERS, PROMPT, ROUNDS = 32, 8, 25


def nanoseconds(call: Callable[[], object], repeats: int) -> float:
    """Median over the rounds, per call."""
    found = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(repeats):
            call()
        found.append((time.perf_counter_ns() - begin) / repeats)
    return median(found)


def main() -> None:
    rows = np.linspace(-1, 1, PROMPT * 8, dtype=np.float32).reshape(PROMPT, 1, 8)
    one, out = rows[:1].copy(), np.empty((1, 1, 8), np.float32)
    seq, position = np.zeros(1, np.int32), np.full(1, PROMPT, np.int64)
    with rkv.Cache(
        layers=LAYERS,
        q_heads=1,
        kv_heads=1,
        head_dim=8,
        kv_dtype="f32",
        num_threads=1,
        max_prompt_tokens=PROMPT,
        max_new_tokens=8,
        token_budget=64,
    ) as cache:
        cache.open(0)
        for layer in range(LAYERS):
            cache.prefill(0, layer, rows, rows, rows)

        def decode() -> None:
            cache.decode(0, seq, position, one, one, one, out=out)

        def token() -> None:
            for layer in range(LAYERS):
                cache.decode(layer, seq, position, one, one, one, out=out)

        token()
        trivial = nanoseconds(rkv.device_count, 2000)
        each, all_layers = nanoseconds(decode, 1000), nanoseconds(token, 50)
    print(
        f"calls python: trivial {trivial:.0f} ns, decode {each:.0f} ns, token {all_layers:.0f} ns"
    )


if __name__ == "__main__":
    main()
