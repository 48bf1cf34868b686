"""The package as it was installed: typed, self-contained, true to its stub."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import rkv
from rkv._swig import native

PACKAGE = Path(rkv.__file__).parent
SWIG = PACKAGE / "_swig"


def test_versions_agree() -> None:
    assert importlib.metadata.version("rkv") == rkv.version()


def test_stub_names_what_the_extension_has() -> None:
    stub = ast.parse((SWIG / "native.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert isinstance(getattr(native, node.target.id), int)
        elif isinstance(node, ast.FunctionDef):
            assert callable(getattr(native, node.name))
        elif isinstance(node, ast.ClassDef):
            real = getattr(native, node.name)
            for member in node.body:
                if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                    assert isinstance(getattr(real, member.target.id), property)
                elif isinstance(member, ast.FunctionDef):
                    assert callable(getattr(real, member.name))


def test_every_option_is_a_field_of_the_config() -> None:
    fields = {n for n in dir(native.rkv_cache_config) if not n.startswith("_")}
    options = set(rkv.CacheOptions.__annotations__) - {"dtype", "dense_layers"}
    assert options == fields - {"this", "thisown", "set_dense_layer"}


@pytest.mark.parametrize("record", ["plan", "memory", "sequence_stats", "audit_result"])
def test_records_have_every_field(record: str) -> None:
    struct = getattr(native, f"rkv_{record}")
    fields = {n for n in dir(struct) if not n.startswith("_")} - {"this", "thisown"}
    words = "".join(part.capitalize() for part in record.split("_"))
    names = set(getattr(rkv, words.replace("Plan", "Plan")).__dataclass_fields__)
    assert fields == names - {"plan"}


def test_library_lies_beside_the_extension() -> None:
    assert sorted(p.name for p in SWIG.glob("*.so*")) == ["_native.abi3.so", "librkv.so.0"]
    maps = Path("/proc/self/maps").read_text()
    assert str(SWIG / "librkv.so.0") in maps
    system = (
        "libc.so.6",
        "libm.so.6",
        "ld-linux",
        "libpthread.so.0",
        "libdl.so.2",
        "librkv.so.0",
        "libgcc_s.so.1",
    )  # the unwinder, part of every system
    for library in SWIG.glob("*.so*"):
        listing = subprocess.run(
            ["ldd", library], capture_output=True, text=True, check=True
        ).stdout
        needed = [line.split()[0] for line in listing.splitlines()]
        for name in needed:
            assert name.startswith(("linux-", "linux_")) or any(s in name for s in system), name


def test_strictly_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(
        "import numpy as np\n"
        "import rkv\n"
        "with rkv.Cache(layers=1, q_heads=2, kv_heads=1, head_dim=8, kv_dtype='f32',\n"
        "               max_prompt_tokens=9, token_budget=8) as cache:\n"
        "    a = np.zeros((1, 2, 8), np.float32)\n"
        "    b: np.ndarray[tuple[int, int, int], np.dtype[np.float32]] = cache.decode(\n"
        "        0, [0], np.zeros(1, np.int64), a, a, a)\n"
        "    n: int = cache.stats(0, 0).plan.top_k\n"
        "    cache.open(0, token_budget='many')  # error: arg-type\n"
        "    rkv.Cache(page_sise=3)  # error: call-arg\n"
    )
    cache = f"--cache-dir={tmp_path / 'cache'}"
    command = [sys.executable, "-m", "mypy", "--strict", cache]
    package = subprocess.run([*command, "-p", "rkv"], capture_output=True, text=True, check=False)
    assert package.returncode == 0, package.stdout
    used = subprocess.run([*command, str(user)], capture_output=True, text=True, check=False)
    errors = [line for line in used.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, used.stdout
    assert "[arg-type]" in errors[0] and ":9:" in errors[0]
    assert "[call-arg]" in errors[1] and ":10:" in errors[1]
