"""The engine against itself and against formulas written out: no librkv here but in the runner."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runner import head_share, kl_divergence
from smollm2 import SmolLM2, Tokenizer
from smollm2.model import causal_attention

TEXT = (
    "The sea rises twice a day whether anyone asks it to or not, and if you close a gate behind it "
    "at the right moment, the water cannot go back out. You are left with a pond. " * 3
)


def naive_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One query and one head at a time, in double precision."""
    n, q_heads, dim = q.shape
    tokens, kv_heads, _ = k.shape
    out = np.empty(q.shape)
    for row in range(n):
        seen = tokens - n + row + 1
        for head in range(q_heads):
            mine = head * kv_heads // q_heads
            logits = k[:seen, mine].astype(float) @ q[row, head].astype(float) / math.sqrt(dim)
            weights = np.exp(logits - logits.max())
            out[row, head] = weights @ v[:seen, mine] / weights.sum()
    return out


@pytest.mark.parametrize(("n", "tokens"), [(1, 1), (1, 90), (64, 64), (65, 70), (150, 150)])
def test_attention_is_the_formula(n: int, tokens: int) -> None:
    rng = np.random.default_rng(tokens)
    q = rng.standard_normal((n, 6, 16)).astype(np.float32)
    k = rng.standard_normal((tokens, 2, 16)).astype(np.float32)
    v = rng.standard_normal((tokens, 2, 16)).astype(np.float32)
    told = []
    out = causal_attention(q, k, v, told.append)
    np.testing.assert_allclose(out, naive_attention(q, k, v), atol=1e-5)
    assert sum(told) == n


def test_chunks_and_steps_are_one_prefill(model: SmolLM2, tokenizer: Tokenizer) -> None:
    """A text in one piece, in two, and with its last tokens as decode steps."""
    ids = tokenizer.encode(TEXT)
    whole = model.prefill(ids, model.new_store(len(ids)))

    store = model.new_store(len(ids))
    model.prefill(ids[:70], store)
    parts = model.prefill(ids[70:], store)
    assert parts.tokens == whole.tokens == len(ids)
    np.testing.assert_allclose(parts.logits, whole.logits, atol=2e-3)
    np.testing.assert_allclose(store.k, whole.store.k, atol=2e-3)
    np.testing.assert_allclose(parts.q_window, whole.q_window, atol=2e-3)

    steps = model.new_store(len(ids))
    model.prefill(ids[:-3], steps)

    def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        if layer == 0:
            steps.length += 1
        steps.k[layer, steps.length - 1], steps.v[layer, steps.length - 1] = k[0], v[0]
        return causal_attention(q, *steps.layer(layer, steps.length))

    for position in range(len(ids) - 3, len(ids)):
        logits = model.decode([ids[position]], [position], attend)
    np.testing.assert_allclose(logits[0], whole.logits, atol=2e-3)


def test_a_full_store_is_refused(model: SmolLM2) -> None:
    with pytest.raises(ValueError, match="5 tokens do not fit into a store of 4"):
        model.prefill([1, 2, 3, 4, 5], model.new_store(4))


def test_kl_divergence() -> None:
    p, q = np.log(np.array([0.5, 0.25, 0.25])), np.log(np.array([0.25, 0.5, 0.25]))
    assert kl_divergence(p, p + 7) == pytest.approx(0, abs=1e-12)
    assert kl_divergence(p, q) == pytest.approx(0.25 * math.log(2))


def test_share_of_the_heads() -> None:
    share = head_share([np.array([0, 2]), np.array([2, 3, 9])], 4)
    assert share.tolist() == [0.5, 0.0, 1.0, 0.5]
