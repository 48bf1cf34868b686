#!/usr/bin/env python3
"""Runs what the README shows: tests/readme.py PREFIX PYTHON

PREFIX: where the library is installed. PYTHON: an interpreter in which the package `rkv` is.
C and Python blocks are run as they stand; shell blocks line by line, but for lines that are parts of
tests/run.sh themselves. Blocks of the other languages are those of the bindings' own READMEs, which
the parts of tests/run.sh with the languages' names run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Line of a shell block -> the part of tests/run.sh that runs it.
ELSEWHERE = {
    "examples/quickstart.sh": "quickstart",
    "tests/run.sh": "deps",
    "cmake/deps.sh": "deps",
    "cmake --preset release": "build",
    "cmake --build --preset release": "build",
    "pip install .": "python",
}
BINDINGS = ("rust", "java", "go")


def main(prefix: Path, python: str) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    parts = (ROOT / "tests" / "run.sh").read_text()
    library = str(prefix / "lib")
    env = os.environ | {
        "PREFIX": str(prefix),
        "PKG_CONFIG_PATH": f"{library}/pkgconfig",
        "LD_LIBRARY_PATH": library,
    }
    shell: list[str] = []
    ran = dict.fromkeys(("c", "python", "sh", *BINDINGS), 0)
    with tempfile.TemporaryDirectory() as scratch:
        for language, text in blocks:
            if language == "c":
                source = Path(scratch, "readme.c")
                source.write_text(text)
                flags = subprocess.check_output(
                    ["pkg-config", "--cflags", "--libs", "rkv"], env=env, text=True
                ).split()
                compiler = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror"]
                program = f"{scratch}/readme"
                subprocess.run([*compiler, "-o", program, str(source), *flags], check=True)
                subprocess.run([program], env=env, check=True)
            elif language == "python":
                subprocess.run([python, "-c", text], check=True)
            elif language == "sh":
                for line in text.splitlines():
                    if line not in ELSEWHERE:
                        shell.append(line)
                    elif f"part {ELSEWHERE[line]}" not in parts:
                        sys.exit(f"no part of tests/run.sh runs: {line}")
            elif language in BINDINGS:
                own = (ROOT / "bindings" / language / "README.md").read_text()
                if text != re.search(rf"^```{language}\n(.*?)^```$", own, re.M | re.S)[1]:
                    sys.exit(f"the {language} block is not that of bindings/{language}/README.md")
                if f"part {language} " not in parts:
                    sys.exit(f"no part of tests/run.sh runs {language}")
            else:
                continue
            ran[language] += 1
        subprocess.run(["bash", "-euc", "\n".join(shell)], cwd=ROOT, env=env, check=True)
    (ROOT / "minimal").unlink(missing_ok=True)
    print(f"README: {ran}")
    if min(ran.values()) == 0:
        sys.exit("a language has no block: the README's form has changed")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
