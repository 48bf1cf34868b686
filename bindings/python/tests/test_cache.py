"""What a cache answers, against a slow attention and against itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import rkv
from support import DV, HKV, HQ, SMALL, Prompt, options, prefilled


def test_full_budget_is_dense_attention() -> None:
    prompt = Prompt(200)
    with prefilled(prompt, token_budget=1000) as cache:
        assert cache.stats(0, 0).plan.dense
        for step in range(3):
            out = cache.decode(0, [0], [200 + step], *prompt.row(step))
            assert out.shape == (1, HQ, DV) and out.dtype == np.float32
            np.testing.assert_allclose(out[0], prompt.attention(step), atol=5e-5)


def test_attend_without_selection_is_attention_over_the_kept_rows() -> None:
    prompt = Prompt(300)
    with prefilled(prompt) as cache:
        cache.decode(0, [0], [300], *prompt.row(0))
        kept = cache.kept_positions(0, 0)
        stats = cache.stats(0, 0)
        assert kept.dtype == np.int64 and kept.shape == (HKV, stats.kept + stats.generated)
        assert stats.kept < 300
        assert (np.diff(kept, axis=1) > 0).all() and (kept[:, -1] == 300).all()
        lse = np.empty((1, HQ), np.float32)
        out = cache.attend(0, [0], [300], prompt.row(0)[0], lse=lse)
        np.testing.assert_allclose(out[0], prompt.attention(0, kept), atol=5e-5)
        logits = prompt.all_k[kept[0], 0].astype(np.float64) @ prompt.row(0)[0][0, 0] / 4
        assert lse[0, 0] == pytest.approx(np.log(np.exp(logits).sum()), abs=1e-4)


def test_select_and_attend_give_the_bits_of_decode() -> None:
    prompt = Prompt(300)
    with prefilled(prompt) as one, prefilled(prompt) as other:
        q, k, v = prompt.row(0)
        selected = one.new_selection(1)
        fused = one.decode(0, [0], [300], q, k, v, selection=selected)
        selection = other.decode_select(0, [0], [300], q, k, v)
        split = other.attend(0, [0], [300], q, selection=selection)
        assert fused.tobytes() == split.tobytes()
        counts = np.asarray(selection.counts)
        assert (counts > 0).all() and (counts < one.stats(0, 0).kept).all()
        for head in range(HKV):
            chosen = np.asarray(selection.indices)[0, head]
            assert (np.diff(chosen[: counts[0, head]]) > 0).all()
            assert (chosen[counts[0, head] :] == -1).all()
            assert chosen.tobytes() == np.asarray(selected.indices)[0, head].tobytes()
        rows = np.stack([other.kept_positions(0, 0)[h][chosen_rows(selection, h)] for h in (0, 1)])
        np.testing.assert_allclose(fused[0], prompt.attention(0, rows), atol=5e-5)


def chosen_rows(selection: rkv.Selection, head: int) -> np.ndarray:
    """Live rows of the first row's selection."""
    count = np.asarray(selection.counts)[0, head]
    return np.asarray(selection.indices)[0, head, :count]


def test_a_batch_gives_what_each_row_gives_alone() -> None:
    prompts = [Prompt(120, seed=5), Prompt(250, seed=9)]
    with rkv.Cache(**options(max_sequences=3)) as cache:
        for seq, prompt in zip((2, 0), prompts):
            cache.open(seq)
            cache.prefill(seq, 0, prompt.q, prompt.k, prompt.v)
        rows = [np.concatenate(parts) for parts in zip(*(p.row(0) for p in prompts))]
        q, k, v = (np.concatenate([part, part[:1]]) for part in rows)
        out = cache.decode(0, [2, 0, -1], [120, 250, 0], q, k, v)
    assert not out[2].any()
    for row, prompt in enumerate(prompts):
        with prefilled(prompt) as alone:
            single = alone.decode(0, [0], [prompt.tokens], *prompt.row(0))
        assert single.tobytes() == out[row : row + 1].tobytes()


def test_chunks_keep_what_one_call_keeps() -> None:
    prompt = Prompt(300)
    with prefilled(prompt) as whole, rkv.Cache(**SMALL) as chunked:
        chunked.open(0)
        for start, stop in ((0, 280), (280, 299), (299, 300)):
            q, k, v = (a[start:stop] for a in (prompt.q, prompt.k, prompt.v))
            if stop == 300:
                k, v = prompt.k, prompt.v
            chunked.prefill(0, 0, q, k, v, start=start, prompt_tokens=300)
        assert (whole.kept_positions(0, 0) == chunked.kept_positions(0, 0)).all()


def test_rewind_and_repeat() -> None:
    prompt = Prompt(300)
    with prefilled(prompt) as cache:
        first = cache.decode(0, [0], [300], *prompt.row(0))
        cache.decode(0, [0], [301], *prompt.row(1))
        assert cache.stats(0, 0).position == 302
        again = cache.decode(0, [0], [300], *prompt.row(0))
        assert first.tobytes() == again.tobytes()
        cache.rewind(0, 300)
        assert cache.stats(0, 0).generated == 0
        cache.close_sequence(0)
        cache.open(0)
        assert cache.stats(0, 0).turn == 0


def test_stats_and_memory() -> None:
    prompt = Prompt(300)
    with prefilled(prompt) as cache:
        stats = cache.stats(0, 0)
        assert stats.prompt == stats.position == 300
        assert stats.max_position == 316
        assert stats.kept == stats.plan.prompt_budget
        assert stats.window_rows == 32
        assert stats.full_kv_bytes == 300 * HKV * (16 + DV) * 4
        assert not stats.nonfinite and not stats.saturated and stats.fault == 0
        assert stats.plan == rkv.plan(300, **SMALL)
        assert cache.memory == rkv.memory(**SMALL)
        with pytest.raises(dataclasses.FrozenInstanceError):
            stats.plan.cap = 0  # type: ignore[misc]


def test_options_of_one_request() -> None:
    prompt = Prompt(300)
    with rkv.Cache(**options(max_sequences=2)) as cache:
        cache.open(0, token_budget=32, max_new_tokens=4)
        cache.open(1, compression_ratio=8.0)
        for seq in (0, 1):
            cache.prefill(seq, 0, prompt.q, prompt.k, prompt.v)
        plan = rkv.plan(300, **options(token_budget=32, max_new_tokens=4))
        assert cache.stats(0, 0).plan == plan
        assert cache.stats(1, 0).plan.ratio == pytest.approx(316 / (316 // 8))


def test_dense_layers() -> None:
    prompt = Prompt(300)
    with rkv.Cache(**options(layers=2, dense_layers=[1])) as cache:
        cache.open(0)
        for layer in (0, 1):
            cache.prefill(0, layer, prompt.q, prompt.k, prompt.v)
        assert cache.stats(0, 0).kept < 300
        assert cache.stats(0, 1).kept == 300


def test_padding_rows_alone() -> None:
    with rkv.Cache(**options(max_rows=2)) as cache:
        q, k, v = (np.ones((2, *a.shape[1:]), np.float32) for a in Prompt(1).row(0))
        lse = np.zeros((2, HQ), np.float32)
        out = cache.decode(0, [-1, -1], [0, 0], q, k, v, lse=lse)
        assert not out.any() and (lse == -np.inf).all()


def test_caller_owned_buffers() -> None:
    prompt = Prompt(300)
    need = rkv.memory(**SMALL)
    storage = rkv.empty_aligned(need.storage_bytes, need.alignment)
    workspace = rkv.empty_aligned(need.workspace_bytes, need.alignment)
    buffers = rkv.Buffers(storage, workspace)
    with rkv.Cache(buffers=buffers, **SMALL) as cache, prefilled(prompt) as other:
        cache.open(0)
        cache.prefill(0, 0, prompt.q, prompt.k, prompt.v)
        mine = cache.decode(0, [0], [300], *prompt.row(0))
        assert mine.tobytes() == other.decode(0, [0], [300], *prompt.row(0)).tobytes()
    with rkv.Cache(buffers=buffers, **SMALL) as cache:
        cache.open(0)
        assert cache.stats(0, 0).turn == 0


def test_audit_of_a_dense_sequence() -> None:
    prompt = Prompt(200)
    with prefilled(prompt, token_budget=1000) as cache:
        cache.decode(0, [0], [200], *prompt.row(0))
        result = cache.audit(0, [0], [200], prompt.row(0)[0])
        assert result.rows == 1
        assert result.mass_mean == pytest.approx(1.0)
        assert result.error_max == pytest.approx(0.0, abs=1e-5)
        assert np.isnan(result.prompt_mass_mean)
