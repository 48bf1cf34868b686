"""The golden vectors, and that a changed value of any kind is seen."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RUNNER = [sys.executable, str(Path(__file__).with_name("golden.py"))]
GOLDEN = Path(__file__).parents[3] / "tests" / "golden"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_files() -> None:
    files = sorted(map(str, GOLDEN.glob("*.txt")))
    assert files
    result = run(*RUNNER, *files)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"golden: [1-9]\d* cases, checksum [0-9a-f]{16}\n", result.stdout)


def test_changed_values_are_seen() -> None:
    result = run(sys.executable, str(GOLDEN / "mutate.py"), *RUNNER)
    assert result.returncode == 0, result.stdout + result.stderr
