#!/usr/bin/env python3
"""A real language model answers a question about a long text with a small KV cache.

SmolLM2-135M-Instruct reads a story with one fact hidden in it, once. Then it answers with full KV,
with RocketKV at several budgets, and with other ways of shrinking the cache: all of them settings
of librkv. A table and a picture show what each kept, read, cost and said.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

import rkv
from tqdm import tqdm

import methods
import report
from runner import Result, run
from smollm2 import (
    CHAT_HEAD,
    CHAT_TAIL,
    KvStore,
    Prefilled,
    Prompt,
    SmolLM2,
    WINDOW,
    Tokenizer,
    load,
    with_fact,
)

ROOT = Path(__file__).resolve().parents[2]
STORY = ROOT / "examples" / "data" / "tide_mill.txt"
FACT = "The number on the sluice key is 27590. Remember it. The number on the sluice key is 27590."
QUESTION = "What is the number on the sluice key? The number on the sluice key is"
EXPECT = "27590"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--text", type=Path, metavar="FILE", help="your own text (default: a story with a fact)")
    add("--question", help="what stands at the end of the prompt; the model continues it")
    add("--fact", default="", help="a sentence to hide in the text")
    add("--expect", help="what a right answer holds (without: full KV's answer is right)")
    add(
        "--depth",
        type=float,
        default=0.5,
        help="where the fact goes: 0 first, 1 last (%(default)s)",
    )
    add("--context", type=int, metavar="N", help="tokens of the prompt at most (4000; quick: 1000)")
    add(
        "--budget",
        type=int,
        nargs="+",
        metavar="T",
        help="token budgets (128 256 512; quick: 64 128)",
    )
    add("--max-new", type=int, metavar="N", help="tokens to write (32; quick: 12)")
    add("--quick", action="store_true", help="a short text: seconds instead of minutes")
    add("--chat", action="store_true", help="ask questions about the text in a loop")
    add("--png", type=Path, metavar="FILE", help="the picture (build/quickstart.png)")
    add("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    add("--json", type=Path, metavar="FILE", help="write the table as JSON")
    args = parser.parse_args(given)
    if args.text is None and args.question is None and not args.fact:
        args.fact = FACT
        if not args.chat:
            args.question, args.expect = QUESTION, args.expect or EXPECT
    if args.question is None and not args.chat:
        parser.error("--question is needed with a text or a fact of your own")
    args.text = args.text or STORY
    answered = [args.question, args.expect, args.png, args.markdown, args.json]
    if args.chat and any(value is not None for value in answered):
        parser.error("--chat asks for its questions and writes no files")
    args.context = args.context or (1000 if args.quick else 4000)
    args.budget = sorted(set(args.budget or ([64, 128] if args.quick else [128, 256, 512])))
    args.max_new = args.max_new or (12 if args.quick and not args.chat else 32)
    if args.budget[0] < WINDOW or args.max_new < 3:
        parser.error(f"--budget needs at least {WINDOW}, the window; --max-new at least 3")
    return args


def prefill(model: SmolLM2, ids: list[int], store: KvStore) -> Prefilled:
    """The prompt's own attention: dense, in the engine, once for all methods."""
    total = len(ids) * model.config.layers
    shape = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    with tqdm(total=total, desc=f"prefill, {len(ids)} tokens", bar_format=shape) as bar:
        return model.prefill(ids, store, bar.update)


def compare(
    model: SmolLM2, prompt: Prefilled, others: list[methods.Method], max_new: int
) -> list[Result]:
    """Full KV, then every other method beside it."""
    full = run(model, prompt, methods.full_kv(prompt.tokens, max_new), max_new)
    results = [full]
    for method in tqdm(others, desc="methods", bar_format="{desc} {n}/{total}|{bar}| {elapsed}"):
        results.append(run(model, prompt, method, max_new, full))
    return results


def introduce(args: argparse.Namespace, prompt: Prompt) -> None:
    print(f"text: {args.text.name}, prompt: {len(prompt.ids)} tokens")
    if prompt.fact:
        print(f"fact, at token {prompt.fact.start}: {args.fact}")


def write(path: Path | None, text: str) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def answer(args: argparse.Namespace, model: SmolLM2, tokenizer: Tokenizer) -> None:
    """One prompt, all methods, one table and one picture."""
    text = args.text.read_text(encoding="utf-8")
    tail = "\n\n" + args.question
    prompt = with_fact(tokenizer, text, args.context, args.fact, args.depth, tail=tail)
    introduce(args, prompt)
    print(f"question: {args.question}")
    prefilled = prefill(model, prompt.ids, model.new_store(len(prompt.ids)))
    others = methods.compressed(prefilled.tokens, args.max_new, model.config.head_dim, args.budget)
    results = compare(model, prefilled, others, args.max_new)
    answers = [tokenizer.decode(result.answer) for result in results]
    table = report.rows(results, answers, args.expect)
    print("\n" + report.terminal(table, bool(args.expect)) + "\n")
    png = args.png or ROOT / "build" / "quickstart.png"
    report.picture(results, prompt.fact, png)
    print(f"picture: {png}")
    write(args.markdown, report.markdown(table, bool(args.expect)))
    write(args.json, json.dumps([dataclasses.asdict(row) for row in table], indent=1) + "\n")


def chat(args: argparse.Namespace, model: SmolLM2, tokenizer: Tokenizer) -> None:
    """Questions about the text in a loop.

    The engine keeps full K and V of the text. Each question is the last chunk of a new sequence
    over them, so stage 1 scores the whole text anew with that question's own queries.
    """
    text = args.text.read_text(encoding="utf-8")
    prompt = with_fact(tokenizer, text, args.context, args.fact, args.depth, CHAT_HEAD, tail="\n\n")
    introduce(args, prompt)
    store = model.new_store(model.config.context)
    prefill(model, prompt.ids, store)
    while (question := ask()) is not None:
        ids = tokenizer.encode(question + CHAT_TAIL)
        store.length = len(prompt.ids)
        if store.length + len(ids) + args.max_new > store.capacity:
            print("the question is too long")
            continue
        prefilled = model.prefill(ids, store)
        others = [methods.rocketkv(budget) for budget in args.budget]
        others.append(methods.snapkv(min(args.budget), args.max_new))
        results = compare(model, prefilled, others, args.max_new)
        answers = [tokenizer.decode(result.answer) for result in results]
        print("\n" + report.terminal(report.rows(results, answers, None), False) + "\n")


def ask() -> str | None:
    """The next question; None at the end of the input."""
    while True:
        try:
            question = input("question (end with Ctrl-D): ").strip()
        except EOFError:
            print()
            return None
        if question:
            return question


def main() -> None:
    args = arguments()
    begin = time.perf_counter()
    weights = load()
    model, tokenizer = SmolLM2(weights), Tokenizer(weights)
    if args.context + args.max_new > model.config.context:
        sys.exit(f"the model reads {model.config.context} tokens: give a smaller --context")
    print(f"librkv {rkv.version()}; model read in {time.perf_counter() - begin:.1f} s")
    try:
        (chat if args.chat else answer)(args, model, tokenizer)
    except rkv.RkvError as error:
        sys.exit(f"librkv: {error}")
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
