"""The model's tokenizer, rebuilt from the lists in the GGUF file."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer as HfTokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

from .weights import Weights

SPECIAL = 3  # token_type of control tokens in GGUF
IM_START, IM_END = 1, 2  # <|im_start|>; <|im_end|>, which is also the end of a text


class Tokenizer:
    """Text to ids and back. Every digit is a token of its own."""

    def __init__(self, weights: Weights) -> None:
        vocab = {token: index for index, token in enumerate(weights.tokens)}
        merges = [tuple(merge.split(" ")) for merge in weights.merges]
        self._tokenizer = HfTokenizer(BPE(vocab, merges))
        self._tokenizer.pre_tokenizer = Sequence(
            [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        )
        self._tokenizer.decoder = ByteLevelDecoder()
        self._tokenizer.add_special_tokens(
            [
                AddedToken(token, special=True, normalized=False)
                for token, kind in zip(weights.tokens, weights.token_types)
                if kind == SPECIAL
            ]
        )

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).ids

    def decode(self, ids: list[int], keep_special: bool = False) -> str:
        """The text; marks like <|im_end|> are left out unless they are to be kept."""
        return self._tokenizer.decode(ids, skip_special_tokens=not keep_special)
