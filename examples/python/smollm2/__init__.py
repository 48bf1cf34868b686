"""SmolLM2-135M-Instruct in numpy: a small inference engine to show librkv at work."""

from .model import WINDOW, KvStore, Prefilled, SmolLM2
from .prompts import Prompt, chat, with_fact, with_question
from .tokenizer import IM_END, Tokenizer
from .weights import Config, Weights, load

__all__ = [
    "IM_END",
    "WINDOW",
    "Config",
    "KvStore",
    "Prefilled",
    "Prompt",
    "SmolLM2",
    "Tokenizer",
    "Weights",
    "chat",
    "load",
    "with_fact",
    "with_question",
]
