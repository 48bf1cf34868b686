"""Forward pass: dense prefill in numpy, and a decode step whose attention somebody else supplies.

Prefill computes the prompt's own attention in full and leaves two things behind, which are all that
librkv needs: K and V of every layer, and the queries of the prompt's last tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .weights import Layer, Weights

QUERY_BLOCK = 64  # prompt rows whose attention is computed at a time
WINDOW = 32  # queries kept for librkv's stage 1

# (layer, q [rows, q_heads, D], k [rows, kv_heads, D], v [rows, kv_heads, D]) -> [rows, q_heads, D]
Attention = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Progress = Callable[[int], object]  # told how many token-layers are done since the last call


class KvStore:
    """Full K and V of one text, all layers, as the engine keeps them: [layers, tokens, Hkv, D]."""

    def __init__(self, layers: int, capacity: int, kv_heads: int, head_dim: int) -> None:
        self.k = np.empty((layers, capacity, kv_heads, head_dim), np.float32)
        self.v = np.empty_like(self.k)
        self.length = 0

    @property
    def capacity(self) -> int:
        return self.k.shape[1]

    def layer(self, index: int, tokens: int) -> tuple[np.ndarray, np.ndarray]:
        """K and V of the first `tokens` tokens, each [tokens, Hkv, D], without a copy."""
        return self.k[index, :tokens], self.v[index, :tokens]


@dataclass(frozen=True)
class Prefilled:
    """What a prefill leaves behind."""

    store: KvStore
    tokens: int  # of the whole text so far
    q_window: np.ndarray  # [layers, w, Hq, D]: queries of its last w tokens, after RoPE
    logits: np.ndarray  # [vocab], of the last token


class SmolLM2:
    """The model; stateless, so one object serves any number of texts."""

    def __init__(self, weights: Weights) -> None:
        self.config = weights.config
        self._layers = weights.layers
        self._embedding = weights.embedding
        self._output_norm = weights.output_norm
        pairs = np.arange(self.config.head_dim // 2, dtype=np.float64)
        self._frequency = self.config.rope_base ** (-2.0 * pairs / self.config.head_dim)

    def new_store(self, capacity: int) -> KvStore:
        c = self.config
        return KvStore(c.layers, capacity, c.kv_heads, c.head_dim)

    def prefill(
        self, ids: list[int], store: KvStore, progress: Progress = lambda done: None
    ) -> Prefilled:
        """Appends `ids` to the text in `store`; every token attends to all tokens before it."""
        start, end = store.length, store.length + len(ids)
        if end > store.capacity:
            raise ValueError(f"{end} tokens do not fit into a store of {store.capacity}")
        w = min(WINDOW, len(ids))
        c = self.config
        q_window = np.empty((c.layers, w, c.q_heads, c.head_dim), np.float32)
        x = self._embedding[ids]
        positions = np.arange(start, end)
        for index, layer in enumerate(self._layers):
            q, k, v = self._qkv(layer, x, positions)
            store.k[index, start:end] = k
            store.v[index, start:end] = v
            q_window[index] = q[-w:]
            heads = causal_attention(q, *store.layer(index, end), progress)
            x = self._rest_of_layer(layer, x, heads)
        store.length = end
        return Prefilled(store, end, q_window, self._logits(x[-1:])[0])

    def decode(self, ids: list[int], positions: list[int], attend: Attention) -> np.ndarray:
        """One token for each of several texts: logits [rows, vocab]."""
        x = self._embedding[ids]
        where = np.asarray(positions)
        for index, layer in enumerate(self._layers):
            q, k, v = self._qkv(layer, x, where)
            x = self._rest_of_layer(layer, x, attend(index, q, k, v))
        return self._logits(x)

    def _qkv(
        self, layer: Layer, x: np.ndarray, positions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys (both after RoPE) and values of `x` [rows, hidden]."""
        c = self.config
        heads = rms_norm(x, layer.attn_norm, c.rms_eps) @ layer.qkv
        heads = heads.reshape(len(x), c.q_heads + 2 * c.kv_heads, c.head_dim)
        turned = self._rope(heads[:, : c.q_heads + c.kv_heads], positions)
        return (
            turned[:, : c.q_heads],
            np.ascontiguousarray(turned[:, c.q_heads :]),
            np.ascontiguousarray(heads[:, c.q_heads + c.kv_heads :]),
        )

    def _rope(self, heads: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Rotary embedding; GGUF rows pair the channels (2i, 2i + 1)."""
        angle = positions[:, None] * self._frequency  # [rows, D / 2], in double
        cos = np.cos(angle).astype(np.float32)[:, None]
        sin = np.sin(angle).astype(np.float32)[:, None]
        even, odd = heads[..., 0::2], heads[..., 1::2]
        out = np.empty(heads.shape, np.float32)
        out[..., 0::2] = even * cos - odd * sin
        out[..., 1::2] = even * sin + odd * cos
        return out

    def _rest_of_layer(self, layer: Layer, x: np.ndarray, heads: np.ndarray) -> np.ndarray:
        """Output projection and feed-forward part; `heads` [rows, q_heads, D]."""
        x = x + heads.reshape(len(x), -1) @ layer.attn_output
        gate_up = rms_norm(x, layer.ffn_norm, self.config.rms_eps) @ layer.gate_up
        gate, up = np.split(gate_up, 2, axis=-1)
        return x + (gate / (1.0 + np.exp(-gate)) * up) @ layer.ffn_down

    def _logits(self, x: np.ndarray) -> np.ndarray:
        return rms_norm(x, self._output_norm, self.config.rms_eps) @ self._embedding.T


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def causal_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, progress: Progress = lambda done: None
) -> np.ndarray:
    """Dense attention of the last len(q) tokens of a text over all of it.

    q [n, Hq, D], k and v [S, Hkv, D], n <= S; returns [n, Hq, D]. The query heads of one KV head
    share a matrix product; a block of queries sees only the keys up to its own end.
    """
    n, q_heads, dim = q.shape
    tokens, kv_heads, _ = k.shape
    group = q_heads // kv_heads
    keys = np.ascontiguousarray(k.transpose(1, 2, 0)) * np.float32(dim**-0.5)  # [Hkv, D, S]
    values = np.ascontiguousarray(v.transpose(1, 0, 2))  # [Hkv, S, D]
    out = np.empty((n, q_heads, dim), np.float32)
    for begin in range(0, n, QUERY_BLOCK):
        rows = min(QUERY_BLOCK, n - begin)
        seen = tokens - n + begin  # keys before the block; inside it the mask is a triangle
        future = np.triu(np.full((rows, rows), -np.inf, np.float32), 1)
        for head in range(kv_heads):
            mine = slice(head * group, (head + 1) * group)
            block = q[begin : begin + rows, mine].transpose(1, 0, 2).reshape(group * rows, dim)
            scores = block @ keys[head, :, : seen + rows]
            scores.reshape(group, rows, -1)[:, :, seen:] += future
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            mixed = scores @ values[head, : seen + rows]
            mixed /= scores.sum(axis=-1, keepdims=True)
            out[begin : begin + rows, mine] = mixed.reshape(group, rows, dim).transpose(1, 0, 2)
        progress(rows)
    return out
