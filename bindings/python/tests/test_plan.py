"""Plans come from the C library as they are."""

from __future__ import annotations

import pytest

import rkv
from support import options

GOLDEN = [  # L, token budget, new tokens -> cap, prompt budget, page size, channels, top k
    (131072, 256, 256, 1296, 1040, 3, 76, 128),
    (65536, 256, 256, 1509, 1253, 3, 65, 128),
    (32768, 256, 256, 1618, 1362, 3, 61, 128),
    (16384, 256, 256, 1595, 1339, 3, 62, 128),
    (131072, 1024, 1024, 6472, 5448, 3, 61, 512),
    (8192, 512, 128, 2418, 2290, 3, 81, 256),
    (4128, 256, 32, 1212, 1180, 3, 81, 128),
    (1024, 512, 64, 855, 791, 1, 77, 256),
    (512, 512, 64, 512, 448, 1, 128, 256),
]


@pytest.mark.parametrize("golden", GOLDEN)
def test_golden(golden: tuple[int, ...]) -> None:
    total, budget, new, *expected = golden
    plan = rkv.plan(
        total - new,
        **options(
            head_dim=128,
            head_dim_v=0,
            max_prompt_tokens=total,
            max_new_tokens=new,
            token_budget=budget,
        ),
    )
    found = [plan.cap, plan.prompt_budget, plan.page_size, plan.num_channels, plan.top_k]
    assert found == expected
    assert plan.ratio == total / min(budget, total)
    assert plan.rows == min(plan.prompt_budget, total - new) + new


def test_overrides_and_ratio() -> None:
    plan = rkv.plan(300, **options(token_budget=0, compression_ratio=4.0, page_size=2, top_k=10))
    assert (plan.page_size, plan.top_k, plan.token_budget) == (2, 10, 79)


def test_version_and_devices() -> None:
    assert rkv.version() == rkv.__version__
    assert rkv.version().split(".")[0] == str(rkv.abi_version() // 1000)
    assert rkv.device_count() == rkv.device_count("cpu") == 1
