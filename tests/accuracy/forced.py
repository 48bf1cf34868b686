"""Several methods side by side on one prompt, all fed the same tokens.

A greedy answer is right exactly if each of its tokens is the best one when fed the tokens before
it; so feeding the right answer to all methods at once tells which of them would have written it,
and one pass of the model through its weights serves them all.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "python"))

from methods import Method  # noqa: E402
from runner import compress, new_cache  # noqa: E402
from smollm2 import KvStore, Prefilled, SmolLM2  # noqa: E402


def forced_logits(
    model: SmolLM2, prompt: Prefilled, methods: list[Method], tokens: list[int], max_new: int
) -> np.ndarray:
    """Logits [tokens, methods, vocab] before each of `tokens`, which follow the prompt.

    The first come from the prefill and are the same for all methods. The caches are planned for
    `max_new` tokens.
    """
    logits = [np.broadcast_to(prompt.logits, (len(methods), len(prompt.logits)))]
    with ExitStack() as stack:
        caches = [
            stack.enter_context(new_cache(model.config, prompt.tokens, method, max_new))
            for method in methods
        ]
        for cache in caches:
            compress(cache, 0, prompt)
        for step, token in enumerate(tokens[:-1]):
            position = prompt.tokens + step

            def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
                out = np.empty_like(q)
                for row, cache in enumerate(caches):
                    one = slice(row, row + 1)
                    cache.decode(layer, [0], [position], q[one], k[one], v[one], out=out[one])
                return out

            rows = len(methods)
            logits.append(model.decode([token] * rows, [position] * rows, attend))
    return np.stack(logits)


def margins(logits: np.ndarray, tokens: list[int]) -> np.ndarray:
    """[methods]: by how much the right token beats the best other one, at the worst step."""
    steps = np.arange(len(tokens))
    right = logits[steps, :, tokens].copy()  # [tokens, methods]
    others = logits.copy()
    others[steps, :, tokens] = -np.inf
    return (right - others.max(axis=-1)).min(axis=0)


def prefill_behind(model: SmolLM2, shared: KvStore, common: int, ids: list[int]) -> Prefilled:
    """Prefill of `ids`, whose first `common` tokens are also the first of `shared`'s text."""
    store = model.new_store(len(ids))
    store.k[:, :common] = shared.k[:, :common]
    store.v[:, :common] = shared.v[:, :common]
    store.length = common
    return model.prefill(ids[common:], store)
