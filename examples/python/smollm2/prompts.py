"""Prompts: a text with one fact hidden in it, between what comes before and behind."""

from __future__ import annotations

from dataclasses import dataclass

from .tokenizer import Tokenizer

# ChatML, with the model's own system turn. In a chat about a text this stands before the text, and
# CHAT_TAIL behind each question.
CHAT_HEAD = (
    "<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n"
)
CHAT_TAIL = "<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class Prompt:
    """Token ids of a prompt, and where the fact lies in it."""

    ids: list[int]
    fact: range  # positions of the fact's tokens; empty where none was put in


def with_fact(
    tokenizer: Tokenizer,
    text: str,
    tokens: int,
    fact: str = "",
    depth: float = 0.5,
    head: str = "",
    tail: str = "",
) -> Prompt:
    """`head`, the text with the fact in it, `tail`; the text is cut so that `tokens` hold it all.

    The fact goes behind the last sentence that ends before `depth` (0 to 1) of the text.
    """
    head_ids, tail_ids = tokenizer.encode(head), tokenizer.encode(tail)
    fact_ids = tokenizer.encode(" " + fact) if fact else []
    room = tokens - len(head_ids) - len(fact_ids) - len(tail_ids)
    text = cut(tokenizer, text.strip(), room)
    at = sentence_end(text, int(len(text) * depth))
    before = head_ids + tokenizer.encode(text[:at])
    place = range(len(before), len(before) + len(fact_ids))
    return Prompt(before + fact_ids + tokenizer.encode(text[at:]) + tail_ids, place)


def cut(tokenizer: Tokenizer, text: str, tokens: int) -> str:
    """The longest run of whole sentences from the start of `text` within so many tokens."""
    if tokens < 1:
        raise SystemExit("the context is too short for the question alone")
    ids = tokenizer.encode(text)
    if len(ids) <= tokens:
        return text
    text = tokenizer.decode(ids[:tokens])
    return text[: sentence_end(text, len(text)) or len(text)]


def sentence_end(text: str, limit: int) -> int:
    """Where the last sentence that ends before `limit` ends; 0 if there is none."""
    return max(text.rfind(stop, 0, limit) + 1 for stop in (". ", ".\n", "? ", "?\n", "! ", "!\n"))
