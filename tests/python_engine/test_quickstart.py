"""The quickstart, as a user runs it: the short form, from the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLES
from smollm2 import Tokenizer, with_fact

FACT = "The colour of the boat is green."
QUESTION = "What is the colour of the boat?"


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """Table rows by method."""
    out = tmp_path_factory.mktemp("quickstart")
    files = ["--json", out / "t.json", "--markdown", out / "t.md", "--png", out / "t.png"]
    subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py", "--quick", *files], check=True, timeout=500
    )
    assert (out / "t.png").read_bytes().startswith(b"\x89PNG")
    table = json.loads((out / "t.json").read_text(encoding="utf-8"))
    assert len((out / "t.md").read_text(encoding="utf-8").splitlines()) == len(table) + 2
    return {row["method"]: row for row in table}


def test_full_kv_finds_the_fact(quick: dict[str, dict]) -> None:
    assert quick["full KV"]["found"]
    assert "27590" in quick["full KV"]["answer"]


def test_rocketkv_finds_it_with_less(quick: dict[str, dict]) -> None:
    full, small = quick["full KV"], quick["RocketKV t=128"]
    assert small["found"]
    assert small["kv_bytes"] < 0.75 * full["kv_bytes"]
    assert small["bytes_read"] < 0.2 * full["bytes_read"]


def test_recent_tokens_alone_do_not(quick: dict[str, dict]) -> None:
    """Else the question would not need the fact, and the rows above would show nothing."""
    [row] = [row for name, row in quick.items() if name.startswith("sinks + recent")]
    assert not row["found"]


def test_kl_orders_the_methods(quick: dict[str, dict]) -> None:
    small, smaller = quick["RocketKV t=128"]["kl"], quick["RocketKV t=64"]["kl"]
    [recent] = [row["kl"] for name, row in quick.items() if name.startswith("sinks + recent")]
    [exact] = [row["kl"] for name, row in quick.items() if name.startswith("exact top-k")]
    assert 0 < small < smaller < recent
    assert 0 < exact < smaller


def test_chat_answers_each_question() -> None:
    """The end of the input ends the chat; every question has a table of its own."""
    run = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py", "--quick", "--chat", "--budget", "256"],
        input="What is the number on the sluice key?\n\nWho is the keeper of the mill?\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    answers = re.findall(r"^(full KV|RocketKV t=256|SnapKV t=256)  +(.*?)  ", run.stdout, re.M)
    assert [method for method, _ in answers] == ["full KV", "RocketKV t=256", "SnapKV t=256"] * 2
    assert "27590" in answers[0][1] and answers[1][1] == answers[0][1]
    assert "27590" not in answers[3][1]


@pytest.mark.parametrize("depth", [0.0, 0.3, 1.0])
def test_the_fact_is_where_the_prompt_says(tokenizer: Tokenizer, depth: float) -> None:
    text = "One cat sat. Two dogs ran! Three birds flew? Four fish swam.\n\nFive mice hid. " * 9
    prompt = with_fact(tokenizer, text, 150, FACT, depth, tail="\n\n" + QUESTION)
    assert len(prompt.ids) <= 150
    ids = prompt.ids[prompt.fact.start : prompt.fact.stop]
    assert tokenizer.decode(ids) == " " + FACT
    whole = tokenizer.decode(prompt.ids)
    assert whole.endswith("\n\n" + QUESTION)
    before = tokenizer.decode(prompt.ids[: prompt.fact.start])
    assert before == "" or before[-1] in ".!?"
    assert abs(len(before) / len(whole.replace(FACT, "")) - depth) < 0.2


def test_a_text_is_cut_between_sentences(tokenizer: Tokenizer) -> None:
    text = "The mill stands by the creek. " * 40
    prompt = with_fact(tokenizer, text, 60, tail="\n\nWhere?")
    assert 45 < len(prompt.ids) <= 60
    assert len(prompt.fact) == 0
    assert tokenizer.decode(prompt.ids).endswith("by the creek.\n\nWhere?")
