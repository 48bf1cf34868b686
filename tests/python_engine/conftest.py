"""The engine of the examples, read once for all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

from smollm2 import SmolLM2, Tokenizer, Weights, load  # noqa: E402


@pytest.fixture(scope="session")
def weights() -> Weights:
    return load()


@pytest.fixture(scope="session")
def model(weights: Weights) -> SmolLM2:
    return SmolLM2(weights)


@pytest.fixture(scope="session")
def tokenizer(weights: Weights) -> Tokenizer:
    return Tokenizer(weights)
