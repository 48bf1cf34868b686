#!/usr/bin/env python3
"""Does the answer survive? A pass key in repeated filler, with many lengths, depths and keys.

    passkey.py [--full] [--json FILE]

Counts, per method, the prompts whose key the model still writes (every token of it, greedily).
The controls must fail: a test in which any compression succeeds would show nothing. Exit 1 if a
count is out of its bounds. `--full`: longer prompts, a number in the quickstart's story, and more
methods, for the heat maps; these are shown and have no bounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from forced import ROOT, forced_logits, margins, prefill_behind
from tqdm import tqdm

import methods as m
from smollm2 import SmolLM2, Tokenizer, load, with_fact

HEADER = (
    "There is an important info hidden inside a lot of irrelevant text. " "Find it and memorize it."
)
FILLER = (
    " The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)
NEEDLE = " The pass key is {key}. Remember it. {key} is the pass key."
QUESTION = " What is the pass key? The pass key is"
STORY = ROOT / "examples" / "data" / "tide_mill.txt"
STORY_FACT = "The number on the sluice key is {key}."
STORY_TAIL = "\n\nWhat is the number on the sluice key? The number on the sluice key is"
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


def build_in_story(tokenizer: Tokenizer, tokens: int, depth: float, key: str) -> list[int]:
    """The quickstart's prompt with another number."""
    sentence = STORY_FACT.format(key=key)
    fact = f"{sentence} Remember it. {sentence}"
    text = STORY.read_text(encoding="utf-8")
    return with_fact(tokenizer, text, tokens, fact, depth, tail=STORY_TAIL).ids


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
    """Fewest and most prompts that a method may solve; full KV must solve them all."""
    few, most = prompts // 10, prompts - prompts // 20
    return {
        "full KV": (prompts, prompts),
        "RocketKV t=128": (most, prompts),
        "RocketKV t=256": (most, prompts),
        "kernel 1 t=128": (0, few),
        "SnapKV t=64": (0, few),
    }


def measure(full: bool) -> list[dict]:
    """One record per prompt: what it is made of, and every method's margin in logits."""
    weights = load()
    model, tokenizer = SmolLM2(weights), Tokenizer(weights)
    lengths = {"filler": [1000, 2000]}
    if full:
        lengths = {"filler": [1000, 2000, 4000, 8000], "story": [1000, 2000, 4000]}
    makers = {"filler": build, "story": build_in_story}
    cases = [
        (text, length, depth, key)
        for text in lengths
        for length in lengths[text]
        for depth in DEPTHS
        for key in (KEYS if length <= 2000 else KEYS[:1])
    ]
    records, store, ids = [], model.new_store(0), []
    for text, length, depth, key in tqdm(cases, desc="prompts"):
        previous, ids = ids, makers[text](tokenizer, length, depth, key)
        # What both texts begin with need not be computed again.
        common = next((at for at, (a, b) in enumerate(zip(previous, ids)) if a != b), 0)
        prompt = prefill_behind(model, store, common, ids)
        store = prompt.store
        answer = tokenizer.encode(" " + key)
        methods = tested(full, prompt.tokens, model.config.head_dim)
        found = margins(forced_logits(model, prompt, methods, answer, MAX_NEW), answer)
        by_name = {method.name: float(margin) for method, margin in zip(methods, found)}
        record = {"text": text, "length": length, "depth": depth, "key": key}
        records.append(record | {"margins": by_name})
    return records


def show(records: list[dict], limits: dict[str, tuple[int, int]]) -> bool:
    """Prints solved / tried per method and length; True if every count is within its limits.

    Limits are for prompts up to 2,000 tokens.
    """
    good = True
    lengths = sorted({record["length"] for record in records})
    heading = f"{records[0]['text']:24}" + "".join(f"{length:>9}" for length in lengths)
    print(heading + "    in all")
    for name in records[0]["margins"]:
        # What full KV does not solve says nothing about the others.
        tried = [r for r in records if name == "full KV" or r["margins"]["full KV"] > 0]
        solved = [r["length"] for r in tried if r["margins"][name] > 0]
        line = f"{name:24}"
        for length in lengths:
            count = f"{solved.count(length)}/{sum(r['length'] == length for r in tried)}"
            line += f"{count:>9}"
        line += f"{f'{len(solved)}/{len(tried)}':>10}"
        if name in limits:
            least, most = limits[name]
            short = sum(length <= 2000 for length in solved)
            line += f"   {short} up to 2000, need {least} to {most}"
            if not least <= short <= most:
                line += ": FAILED"
                good = False
        print(line)
    return good


def judge(records: list[dict]) -> bool:
    """Prints the tables; True if every count is within its bounds."""
    filler = [record for record in records if record["text"] == "filler"]
    prompts = sum(record["length"] <= 2000 for record in filler)
    good = show(filler, bounds(prompts))
    story = [record for record in records if record["text"] == "story"]
    if story:
        show(story, {})
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
