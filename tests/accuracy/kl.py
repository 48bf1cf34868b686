#!/usr/bin/env python3
"""How far is the next token's distribution from full KV's? Mean KL over 128 steps of a text.

    kl.py [--json FILE]

Every method is fed the text's own tokens behind a prompt of 4,096 (8,000 too, where the text is
long enough). Two texts: the manual pages inside Python and the story of the quickstart. From a
budget of 512 up RocketKV must be nearer to full KV than SnapKV at the same budget, and at 1024 its
mean KL at most .06. Exit 1 if not.
"""

from __future__ import annotations

import argparse
import json
import pydoc_data.topics
import sys
import time
from pathlib import Path

import numpy as np
from forced import ROOT, forced_logits
from tqdm import tqdm

import methods as m
from runner import log_softmax
from smollm2 import SmolLM2, Tokenizer, load

STEPS = 128
PROMPTS = [4096, 8000]
BUDGETS = [128, 256, 512, 1024]
FAMILIES = ["RocketKV", "SnapKV", "sinks + recent", "exact top-k"]
LARGEST_KL = 0.06  # of RocketKV at the largest budget, mean over the texts


def texts() -> dict[str, str]:
    """Two texts of different kinds: reference manual and narrative.

    The manual repeats whole sections. A model with all K and V copies such a section word for word,
    which tells nothing about the other tokens: each paragraph is taken once.
    """
    topics = pydoc_data.topics.topics
    paragraphs = "\n\n".join(topics[name] for name in sorted(topics)).split("\n\n")
    story = ROOT / "examples" / "data" / "tide_mill.txt"
    return {
        "manual": "\n\n".join(dict.fromkeys(paragraphs)),
        "story": story.read_text(encoding="utf-8"),
    }


def compared(prompt: int, head_dim: int) -> dict[str, list[m.Method]]:
    """Per family one method for each budget."""
    make = {
        "RocketKV": m.rocketkv,
        "SnapKV": lambda t: m.snapkv(t, STEPS),
        "sinks + recent": lambda t: m.sinks_and_recent(t, prompt),
        "exact top-k": lambda t: m.exact_top_k(t, prompt, head_dim),
    }
    return {family: [make[family](budget) for budget in BUDGETS] for family in FAMILIES}


def mean_kl(reference: np.ndarray, other: np.ndarray) -> float:
    """KL(reference || other) in nats, mean over the steps; logits [steps, vocab]."""
    total = 0.0
    for p, q in zip(reference, other):
        p, q = log_softmax(p), log_softmax(q)
        total += float(np.sum(np.exp(p) * (p - q)))
    return total / len(reference)


def measure() -> list[dict]:
    """One record per text, prompt, family and budget."""
    weights = load()
    model, tokenizer = SmolLM2(weights), Tokenizer(weights)
    records = []
    for name, text in texts().items():
        ids = tokenizer.encode(text[:60_000])
        for tokens in PROMPTS:
            if len(ids) < tokens + STEPS:
                continue
            store = model.new_store(tokens)
            with tqdm(total=tokens * model.config.layers, desc=f"{name} {tokens}") as bar:
                prompt = model.prefill(ids[:tokens], store, bar.update)
            following = ids[tokens : tokens + STEPS]
            whole = [m.full_kv(tokens, STEPS)]
            full = forced_logits(model, prompt, whole, following, STEPS)[:, 0]
            for family, methods in compared(tokens, model.config.head_dim).items():
                logits = forced_logits(model, prompt, methods, following, STEPS)
                for column, budget in enumerate(BUDGETS):
                    record = {"text": name, "prompt": tokens, "family": family, "budget": budget}
                    record["kl"] = mean_kl(full[1:], logits[1:, column])
                    records.append(record)
    return records


def judge(records: list[dict]) -> bool:
    """Prints the table; True if RocketKV keeps its promises."""
    prompts = list(dict.fromkeys((r["text"], r["prompt"]) for r in records))
    kl = {(r["text"], r["prompt"], r["family"], r["budget"]): r["kl"] for r in records}
    print(f"{'text, prompt':18}{'budget':>8}" + "".join(f"{family:>16}" for family in FAMILIES))
    good = True
    for text, tokens in prompts:
        for budget in BUDGETS:
            row = [kl[text, tokens, family, budget] for family in FAMILIES]
            line = f"{text + ' ' + str(tokens):18}{budget:8}" + "".join(f"{x:16.4f}" for x in row)
            if budget >= 512 and row[0] >= row[1]:
                line += "   RocketKV above SnapKV: FAILED"
                good = False
            print(line)
    mean = float(np.mean([kl[(*prompt, "RocketKV", BUDGETS[-1])] for prompt in prompts]))
    print(f"RocketKV t={BUDGETS[-1]}: mean KL {mean:.4f}, need at most {LARGEST_KL}")
    if mean > LARGEST_KL:
        print("FAILED")
        good = False
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure")
    args = parser.parse_args()
    begin = time.perf_counter()
    records = measure()
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    good = judge(records)
    print(f"{time.perf_counter() - begin:.0f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
