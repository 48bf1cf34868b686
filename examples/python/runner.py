"""Runs one method: the prompt into a cache of librkv, then an answer, token by token.

Two sequences share the cache. Sequence 0 writes the method's own greedy answer. Sequence 1 is fed
full KV's answer instead, so that its logits can be compared with full KV's step by step.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import rkv

from methods import Method
from smollm2 import IM_END, Config, Prefilled, SmolLM2

OWN, FORCED = 0, 1  # the two sequences
SHOWN_STEP = 1  # decode step whose selections are kept for the picture: it writes the answer


@dataclass
class Result:
    """What came out of one method."""

    name: str
    answer: list[int]
    logits: list[np.ndarray]  # of sequence 0 before each token of its answer
    plan: rkv.Plan
    kv_bytes: int  # held for one sequence, all layers, summaries included
    full_kv_bytes: int
    bytes_read: int  # one decode step, all layers
    micros: float  # one decode step's calls of librkv, all layers: the median
    kl: float | None  # mean KL(full KV || method) in nats; None for full KV itself
    kept: np.ndarray  # [layers, prompt]: share of the KV heads that kept the position
    attended: np.ndarray  # [layers, prompt]: share of them that attended to it in one step


def run(
    model: SmolLM2, prompt: Prefilled, method: Method, max_new: int, full: Result | None = None
) -> Result:
    """Answers with one method; `full` is full KV's result, or None to make that one."""
    config = model.config
    sequences = [OWN] if full is None else [OWN, FORCED]
    with new_cache(config, prompt.tokens, method, max_new, len(sequences)) as cache:
        for sequence in sequences:
            compress(cache, sequence, prompt)
        decoder = Decoder(model, cache, prompt.tokens)
        answer, logits, steps = decoder.answer(prompt.logits, max_new, full)
        stats = [cache.stats(OWN, layer) for layer in range(config.layers)]
        held = sum(s.k_bytes + s.v_bytes + s.summary_bytes + s.index_bytes for s in stats)
        kept = [cache.kept_positions(OWN, layer) for layer in range(config.layers)]
        return Result(
            name=method.name,
            answer=answer,
            logits=logits,
            plan=stats[0].plan,
            kv_bytes=held,
            full_kv_bytes=sum(s.full_kv_bytes for s in stats),
            bytes_read=sum(s.bytes_read_per_step for s in stats),
            micros=decoder.micros(),
            kl=float(np.mean(steps)) if steps else None,
            kept=np.stack([head_share(rows, prompt.tokens) for rows in kept]),
            attended=decoder.attended,
        )


def new_cache(
    config: Config, prompt_tokens: int, method: Method, max_new: int, sequences: int = 1
) -> rkv.Cache:
    """A cache for so many sequences of one length, each decoded in a call of its own."""
    return rkv.Cache(
        layers=config.layers,
        q_heads=config.q_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        kv_dtype="f32",
        max_sequences=sequences,
        max_rows=1,
        max_prompt_tokens=prompt_tokens,
        max_new_tokens=max_new,
        **method.options,
    )


def compress(cache: rkv.Cache, sequence: int, prompt: Prefilled) -> None:
    """Stage 1 of every layer, from the engine's own K and V and the prompt's last queries."""
    cache.open(sequence)
    tokens = prompt.tokens
    for layer, queries in enumerate(prompt.q_window):
        k, v = prompt.store.layer(layer, tokens)
        start = tokens - len(queries)
        cache.prefill(sequence, layer, queries, k, v, start=start, prompt_tokens=tokens)


class Decoder:
    """Decode steps through librkv, with their times and one step's selections."""

    def __init__(self, model: SmolLM2, cache: rkv.Cache, prompt_tokens: int) -> None:
        self._model = model
        self._cache = cache
        self._prompt_tokens = prompt_tokens
        self._seconds: list[float] = []
        self.attended = np.zeros((model.config.layers, prompt_tokens), np.float32)

    def answer(
        self, logits: np.ndarray, max_new: int, full: Result | None
    ) -> tuple[list[int], list[np.ndarray], list[float]]:
        """Greedy tokens from the prompt's logits on, the logits before each, KL of each step."""
        answer, before, steps = [int(logits.argmax())], [logits], []
        forced = full.answer if full else []
        for step in range(1, max_new):
            rows = {}
            if len(answer) == step and answer[-1] != IM_END:
                rows[OWN] = answer[-1]
            if len(forced) > step:
                rows[FORCED] = forced[step - 1]
            if not rows:
                break
            result = dict(zip(rows, self.step(rows, step)))
            if OWN in rows:
                before.append(result[OWN])
                answer.append(int(result[OWN].argmax()))
            if FORCED in rows:
                steps.append(kl_divergence(full.logits[step], result[FORCED]))
        return answer, before, steps

    def micros(self) -> float:
        """Median over the steps; the first one warms the cache's memory up."""
        return float(np.median(self._seconds[1:] or self._seconds or [np.nan])) * 1e6

    def step(self, rows: dict[int, int], step: int) -> np.ndarray:
        """One token of each sequence in `rows` (sequence: token); logits [len(rows), vocab].

        Every sequence has a call of its own, so that the time is that of one sequence.
        """
        position = self._prompt_tokens + step - 1
        seconds = dict.fromkeys(rows, 0.0)

        def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            out = np.empty_like(q)
            for row, sequence in enumerate(rows):
                one = slice(row, row + 1)
                begin = time.perf_counter()
                self._cache.decode(
                    layer, [sequence], [position], q[one], k[one], v[one], out=out[one]
                )
                seconds[sequence] += time.perf_counter() - begin
                if step == SHOWN_STEP and row == len(rows) - 1:
                    self._keep_selection(layer, sequence, position, q[one], k[one], v[one])
            return out

        logits = self._model.decode(list(rows.values()), [position] * len(rows), attend)
        self._seconds.extend(seconds.values())
        return logits

    def _keep_selection(self, layer: int, sequence: int, position: int, *qkv: np.ndarray) -> None:
        """Asks what the step attended to; the same position again repeats the step."""
        selection = self._cache.new_selection(1, space="position")
        self._cache.decode_select(layer, [sequence], [position], *qkv, selection=selection)
        chosen = [
            indices[:count] for indices, count in zip(selection.indices[0], selection.counts[0])
        ]
        self.attended[layer] = head_share(chosen, self._prompt_tokens)


def head_share(positions: list[np.ndarray] | np.ndarray, tokens: int) -> np.ndarray:
    """[tokens]: share of the KV heads whose list of positions holds each position."""
    share = np.zeros(tokens, np.float32)
    for mine in positions:
        share[mine[mine < tokens]] += 1.0 / len(positions)
    return share


def kl_divergence(reference: np.ndarray, other: np.ndarray) -> float:
    """KL(reference || other) in nats, from logits [vocab]."""
    p, q = log_softmax(reference), log_softmax(other)
    return float(np.sum(np.exp(p) * (p - q)))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
