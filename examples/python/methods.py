"""Each way of shrinking the KV cache is a setting of the same library.

`t` is the token budget: how many tokens' worth of K and V a decode step may read. The baselines
get the same traffic as RocketKV at that budget.
"""

from __future__ import annotations

from dataclasses import dataclass

from rkv import CacheOptions

from smollm2 import WINDOW

SINKS = 4


@dataclass(frozen=True)
class Method:
    """A name for the table, and the options of `rkv.Cache` that make it."""

    name: str
    options: CacheOptions


def everything(prompt: int) -> int:
    """A prompt budget that keeps all tokens; the library wants room for the window at least."""
    return max(prompt, WINDOW)


def full_kv(prompt: int, max_new: int) -> Method:
    """Everything is kept and attended to: what the others are compared with."""
    rows = prompt + max_new
    options = CacheOptions(token_budget=rows, prompt_budget=everything(prompt), top_k=rows)
    return Method("full KV", options)


def rocketkv(t: int) -> Method:
    """Both stages; every size follows from the budget."""
    return Method(f"RocketKV t={t}", CacheOptions(token_budget=t))


def snapkv(t: int, max_new: int) -> Method:
    """Stage 1 alone: t tokens of the prompt are kept, and all that is kept is attended to."""
    options = CacheOptions(token_budget=t, prompt_budget=t, top_k=t + max_new)
    return Method(f"SnapKV t={t}", options)


def quest(t: int, prompt: int, head_dim: int) -> Method:
    """Stage 2 alone with long pages and all channels: half the traffic scores, half attends."""
    options = CacheOptions(
        token_budget=t,
        prompt_budget=everything(prompt),
        page_size=max(1, prompt // t),
        num_channels=head_dim,
        top_k=max(1, t // 2),
    )
    return Method(f"Quest t={t}", options)


def sparq(t: int, prompt: int, head_dim: int) -> Method:
    """Stage 2 alone with single tokens and few channels: half scores, half attends."""
    options = CacheOptions(
        token_budget=t,
        prompt_budget=everything(prompt),
        page_size=1,
        num_channels=min(head_dim, max(1, round(head_dim * t / prompt))),
        top_k=max(1, t // 2),
    )
    return Method(f"SparQ t={t}", options)


def sinks_and_recent(t: int, prompt: int) -> Method:
    """A sliding window and the first tokens: they are forced, and leave room for no others."""
    options = CacheOptions(
        token_budget=t,
        prompt_budget=everything(prompt),
        page_size=1,
        num_channels=1,
        top_k=t,
        sinks=SINKS,
        recent_tokens=t - SINKS,
        selection_unit="tokens",
    )
    return Method(f"sinks + recent t={t}", options)


def exact_top_k(t: int, prompt: int, head_dim: int) -> Method:
    """The t tokens of the largest exact scores: reads every key, shows what t could give."""
    options = CacheOptions(
        token_budget=t,
        prompt_budget=everything(prompt),
        page_size=1,
        num_channels=head_dim,
        top_k=t,
    )
    return Method(f"exact top-k t={t}", options)


def compressed(prompt: int, max_new: int, head_dim: int, budgets: list[int]) -> list[Method]:
    """RocketKV at every budget, then the baselines at the smallest of them."""
    t = min(budgets)
    return [
        *(rocketkv(budget) for budget in budgets),
        snapkv(t, max_new),
        quest(t, prompt, head_dim),
        sparq(t, prompt, head_dim),
        sinks_and_recent(t, prompt),
        exact_top_k(t, prompt, head_dim),
    ]
