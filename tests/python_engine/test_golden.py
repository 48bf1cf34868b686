"""Full KV through librkv gives the greedy tokens of an independent fp32 implementation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import rkv

import methods
from runner import Decoder, compress, new_cache
from smollm2 import SmolLM2, Tokenizer

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "smollm2-greedy.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))
CLOSE = 0.02  # a step whose two best logits are closer than this may choose the other one


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_full_kv_is_greedy_generation(model: SmolLM2, case: dict) -> None:
    """Each step is fed the golden tokens, so one close step cannot hide the ones behind it."""
    prompt, greedy, margins = case["prompt"], case["greedy"], case["margin"]
    prefilled = model.prefill(prompt, model.new_store(len(prompt)))
    method = methods.full_kv(len(prompt), len(greedy))
    with new_cache(model.config, len(prompt), method, len(greedy)) as cache:
        compress(cache, 0, prefilled)
        decoder = Decoder(model, cache, len(prompt))
        logits = [prefilled.logits]
        for step, token in enumerate(greedy[:-1], start=1):
            logits.append(decoder.step({0: token}, step)[0])
    assert len(logits) == len(greedy) >= 55
    wrong = [
        (step, int(row.argmax()), token, margin)
        for step, (row, token, margin) in enumerate(zip(logits, greedy, margins))
        if row.argmax() != token and margin >= CLOSE
    ]
    assert wrong == []
    measured = [float(np.diff(np.sort(row)[-2:])[0]) for row in logits]
    assert np.abs(np.array(measured) - margins).max() < 5e-3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_token_ids_survive_a_round_trip(tokenizer: Tokenizer, case: dict) -> None:
    """Digits one by one, ChatML's marks as one token each."""
    text = tokenizer.decode(case["prompt"], keep_special=True)
    assert tokenizer.encode(text) == case["prompt"]


def test_library_is_the_built_one() -> None:
    assert rkv.device_count("cpu") == 1
