"""SmolLM2-135M-Instruct in numpy: a small inference engine to show librkv at work."""

from .model import WINDOW, KvStore, Prefilled, SmolLM2
from .prompts import CHAT_HEAD, CHAT_TAIL, Prompt, with_fact
from .tokenizer import IM_END, Tokenizer
from .weights import Config, Weights, load

__all__ = [
    "CHAT_HEAD",
    "CHAT_TAIL",
    "IM_END",
    "WINDOW",
    "Config",
    "KvStore",
    "Prefilled",
    "Prompt",
    "SmolLM2",
    "Tokenizer",
    "Weights",
    "load",
    "with_fact",
]
