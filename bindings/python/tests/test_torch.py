"""torch's CPU tensors, by DLPack; skipped where torch is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rkv
from support import DV, HQ, SMALL, Prompt, options, prefilled

torch: Any = pytest.importorskip("torch")
S = 150


def test_float32_is_the_same_as_numpy() -> None:
    prompt = Prompt(S)
    with prefilled(prompt) as numpy_cache, rkv.Cache(**SMALL) as cache:
        expected = numpy_cache.decode(0, [0], [S], *prompt.row(0))
        cache.open(0)
        cache.prefill(0, 0, *(torch.from_numpy(a) for a in (prompt.q, prompt.k, prompt.v)))
        q, k, v = (torch.from_numpy(a) for a in prompt.row(0))
        seq, positions = torch.tensor([0], dtype=torch.int32), torch.tensor([S])
        out = cache.decode(0, seq, positions, q, k, v)
        assert isinstance(out, torch.Tensor) and tuple(out.shape) == (1, HQ, DV)
        assert out.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_and_strides(dtype: str) -> None:
    prompt = Prompt(S)
    kind = getattr(torch, dtype)
    kv_dtype: Any = {"bfloat16": "bf16", "float16": "f16"}[dtype]

    def head_major(values: Any) -> Any:  # [1, heads, rows, channels], as transformers keeps it
        return torch.from_numpy(values).to(kind).permute(1, 0, 2).contiguous().permute(1, 0, 2)

    with rkv.Cache(**options(kv_dtype=kv_dtype, token_budget=1000)) as cache:
        cache.open(0)
        cache.prefill(0, 0, *(head_major(a) for a in (prompt.q, prompt.k, prompt.v)))
        out = cache.decode(0, [0], [S], *(head_major(a) for a in prompt.row(0)))
        assert out.dtype == kind
        np.testing.assert_allclose(out.float().numpy()[0], prompt.attention(0), atol=0.03)


def test_gradients_are_refused() -> None:
    prompt = Prompt(S)
    q, k, v = (torch.from_numpy(a) for a in prompt.row(0))
    with prefilled(prompt) as cache:
        with pytest.raises(rkv.InvalidArgumentError, match="q: ") as caught:
            cache.decode(0, [0], [S], q.clone().requires_grad_(), k, v)
        assert "grad" in repr(caught.value.__cause__)
        assert cache.stats(0, 0).generated == 0
