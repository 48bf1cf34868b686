"""Prompts: a text with one fact hidden in it and a question at its end, or a chat."""

from __future__ import annotations

from dataclasses import dataclass

from .tokenizer import Tokenizer

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


@dataclass(frozen=True)
class Prompt:
    """Token ids of a prompt, and where the fact lies in it."""

    ids: list[int]
    fact: range  # positions of the fact's tokens; empty where none was put in


def with_fact(
    tokenizer: Tokenizer, text: str, question: str, fact: str, depth: float, tokens: int
) -> Prompt:
    """The text, cut so that all fits into `tokens`, the fact at `depth` (0 to 1), the question.

    The fact goes behind the last sentence that ends before that depth. Without a fact ("") the
    text stays as it is.
    """
    tail = tokenizer.encode("\n\n" + question)
    fact_ids = tokenizer.encode(" " + fact) if fact else []
    text = cut(tokenizer, text.strip(), tokens - len(tail) - len(fact_ids))
    at = sentence_end(text, int(len(text) * depth))
    before, after = tokenizer.encode(text[:at]), tokenizer.encode(text[at:])
    begin = len(before)
    return Prompt(before + fact_ids + after + tail, range(begin, begin + len(fact_ids)))


def with_question(tokenizer: Tokenizer, text: str, question: str, tokens: int) -> Prompt:
    """The text, cut so that all fits into `tokens`, and the question."""
    return with_fact(tokenizer, text, question, "", 0.0, tokens)


def chat(text: str) -> tuple[str, str]:
    """A chat about a text: what comes before each question, and what comes behind it (ChatML)."""
    before = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{text}\n\n"
    return before, "<|im_end|>\n<|im_start|>assistant\n"


def cut(tokenizer: Tokenizer, text: str, tokens: int) -> str:
    """The longest run of whole sentences from the start of `text` within so many tokens."""
    ids = tokenizer.encode(text)
    if len(ids) <= tokens:
        return text
    if tokens < 1:
        raise SystemExit("the context is too short for the question alone")
    text = tokenizer.decode(ids[:tokens])
    return text[: sentence_end(text, len(text)) or len(text)]


def sentence_end(text: str, limit: int) -> int:
    """Where the last sentence that ends before `limit` ends; 0 if there is none."""
    return max(text.rfind(stop, 0, limit) + 1 for stop in (". ", ".\n", "? ", "! "))
