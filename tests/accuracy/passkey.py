#!/usr/bin/env python3
"""Does the answer survive? A pass key in repeated filler, with many lengths, depths and keys.

    passkey.py [--full] [--json FILE]

Counts, per method, the prompts whose key the model still writes (every token of it, greedily).
The controls must fail: a test in which any compression succeeds would show nothing. Exit 1 if a
count is out of its bounds. `--full`: longer prompts and more methods, for the heat map.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from forced import forced_logits, margins, prefill_behind
from tqdm import tqdm

import methods as m
from smollm2 import SmolLM2, Tokenizer, load

HEADER = (
    "There is an important info hidden inside a lot of irrelevant text. " "Find it and memorize it."
)
FILLER = (
    " The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)
NEEDLE = " The pass key is {key}. Remember it. {key} is the pass key."
QUESTION = " What is the pass key? The pass key is"
KEYS = ["52445", "90317"]
DEPTHS = [0.9, 0.7, 0.5, 0.3, 0.1]  # descending: each prompt shares the most with the one before
MAX_NEW = 32  # what the caches are planned for; the key itself is six tokens


def build(tokenizer: Tokenizer, tokens: int, depth: float, key: str) -> list[int]:
    """A prompt of at most `tokens` tokens; the needle stands between two repeats of the filler."""
    fixed = HEADER + NEEDLE.format(key=key) + QUESTION
    repeats = (tokens - len(tokenizer.encode(fixed))) // len(tokenizer.encode(FILLER))
    before = round(repeats * depth)
    text = HEADER + FILLER * before + NEEDLE.format(key=key) + FILLER * (repeats - before)
    return tokenizer.encode(text + QUESTION)


def tested(full: bool, prompt: int, head_dim: int) -> list[m.Method]:
    """Full KV, what is claimed, the controls; with `full` also the rest, for the picture."""
    found = [
        m.full_kv(prompt, MAX_NEW),
        m.rocketkv(128),
        m.rocketkv(256),
        m.Method("kernel 1 t=128", m.rocketkv(128).options | {"kernel_size": 1}),
        m.snapkv(64, MAX_NEW),
    ]
    if full:
        found += [
            m.rocketkv(64),
            m.snapkv(128, MAX_NEW),
            m.quest(128, prompt, head_dim),
            m.sparq(128, prompt, head_dim),
            m.sinks_and_recent(128, prompt),
            m.exact_top_k(128, prompt, head_dim),
        ]
    return found


def bounds(prompts: int) -> dict[str, tuple[int, int]]:
    """Fewest and most prompts that a method may solve, of those that full KV solves."""
    few, most = prompts // 10, prompts - prompts // 20
    return {
        "RocketKV t=128": (most, prompts),
        "RocketKV t=256": (most, prompts),
        "kernel 1 t=128": (0, few),
        "SnapKV t=64": (0, few),
    }


def measure(full: bool) -> list[dict]:
    """One record per prompt: its length, depth and key, and every method's margin in logits."""
    weights = load()
    model, tokenizer = SmolLM2(weights), Tokenizer(weights)
    lengths = [1000, 2000, 4000, 8000] if full else [1000, 2000]
    cases = [
        (length, depth, key)
        for length in lengths
        for depth in DEPTHS
        for key in (KEYS if length <= 2000 else KEYS[:1])
    ]
    records, store, ids = [], None, []
    for length, depth, key in tqdm(cases, desc="prompts"):
        previous, ids = ids, build(tokenizer, length, depth, key)
        # What both texts begin with need not be computed again.
        common = next((at for at, (a, b) in enumerate(zip(previous, ids)) if a != b), 0)
        store = store or model.new_store(0)
        prompt = prefill_behind(model, store, common, ids)
        store = prompt.store
        answer = tokenizer.encode(" " + key)
        methods = tested(full, prompt.tokens, model.config.head_dim)
        found = margins(forced_logits(model, prompt, methods, answer, MAX_NEW), answer)
        by_name = {method.name: float(margin) for method, margin in zip(methods, found)}
        records.append({"length": length, "depth": depth, "key": key, "margins": by_name})
    return records


def judge(records: list[dict]) -> bool:
    """Prints solved / tried per method and length; True if every count is within its bounds."""
    lengths = sorted({record["length"] for record in records})
    short = [record for record in records if record["length"] <= 2000]
    good = all(record["margins"]["full KV"] > 0 for record in short)
    print(f"{'method':24}" + "".join(f"{length:>9}" for length in lengths) + "    in all")
    tried = [record for record in records if record["margins"]["full KV"] > 0]
    limits = bounds(sum(record["length"] <= 2000 for record in tried))
    for name in records[0]["margins"]:
        of = records if name == "full KV" else tried
        counts = []
        for chosen in [[length] for length in lengths] + [lengths]:
            marks = [r["margins"][name] > 0 for r in of if r["length"] in chosen]
            counts.append(f"{sum(marks)}/{len(marks)}")
        line = f"{name:24}" + "".join(f"{count:>9}" for count in counts[:-1]) + f"{counts[-1]:>10}"
        if name in limits:
            least, most = limits[name]
            solved = sum(r["margins"][name] > 0 for r in tried if r["length"] <= 2000)
            line += f"   {solved} up to 2000, need {least} to {most}"
            if not least <= solved <= most:
                line += ": FAILED"
                good = False
        print(line)
    if any(record["margins"]["full KV"] <= 0 for record in short):
        print("full KV must solve every prompt up to 2000 tokens: FAILED")
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="up to 8000 tokens, more methods")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every prompt's margins")
    args = parser.parse_args()
    begin = time.perf_counter()
    records = measure(args.full)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    good = judge(records)
    print(f"{time.perf_counter() - begin:.0f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
