"""The golden vectors, and that a changed value is seen."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).with_name("golden.py")
FILES = sorted((Path(__file__).parents[3] / "tests" / "golden").glob("*.txt"))


def run(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUNNER), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_files() -> None:
    assert FILES
    result = run(*FILES)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"golden: [1-9]\d* cases, checksum [0-9a-f]{16}\n", result.stdout)


@pytest.mark.parametrize("kind", ["fields", "kept", "selection", "out", "lse", "!"])
def test_a_changed_value_is_seen(kind: str, tmp_path: Path) -> None:
    for file in FILES:
        lines = file.read_text(encoding="utf-8").split("\n")
        for index, line in enumerate(lines):
            if kind == "!" and " ! " in line:
                lines[index] = line.rsplit(" ", 1)[0] + " no_such_word"
            elif line.startswith(f"= {kind} ") and re.search(r"[1-8]$", line):
                lines[index] = line[:-1] + ("9" if kind in ("fields", "kept", "selection") else "9e3")
            else:
                continue
            changed = tmp_path / file.name
            changed.write_text("\n".join(lines), encoding="utf-8")
            result = run(changed)
            assert result.returncode == 1
            assert f"{file.name}:{index + 1}: " in result.stderr
            return
    pytest.fail(f"no line of the kind {kind}")
