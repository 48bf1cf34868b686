"""Counts test cases in JUnit files: prints "PASSED FAILED" for a folder of a part of tests/run.sh.

ctest.xml has one entry per executable or script. An executable that wrote GoogleTest's own file
beside it (NAME.xml) counts with its cases instead; if ctest calls it failed although every case
passed (a leak, a crash at exit), that is one failed case more.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def case_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def case_skipped(case: ElementTree.Element) -> bool:
    return case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")


def count_cases(path: Path) -> tuple[int, int]:
    passed = failed = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case_failed(case):
            failed += 1
        elif not case_skipped(case):
            passed += 1
    return passed, failed


def count_ctest(path: Path) -> tuple[int, int]:
    passed = failed = 0
    for entry in ElementTree.parse(path).getroot().iter("testcase"):
        # "Not run" is what ctest calls an executable that was not built.
        entry_failed = case_failed(entry) or case_skipped(entry)
        cases = path.with_name(f"{entry.get('name')}.xml")
        good, bad = count_cases(cases) if cases.exists() else (0, 0)
        if entry_failed:
            bad = max(bad, 1)
        elif not cases.exists():
            good = 1
        passed += good
        failed += bad
    return passed, failed


def main() -> None:
    folder = Path(sys.argv[1])
    ctest = folder / "ctest.xml"
    if ctest.exists():
        passed, failed = count_ctest(ctest)
    else:
        counts = [count_cases(path) for path in sorted(folder.glob("*.xml"))]
        passed, failed = (sum(column) for column in zip(*counts)) if counts else (0, 0)
    print(passed, failed)


if __name__ == "__main__":
    main()
