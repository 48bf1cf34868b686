#!/usr/bin/env python3
"""mutate.py RUNNER-COMMAND...: a golden-vector runner must notice a changed value of every kind.

Runs the command with the committed files, which must pass, and then with files of one case in which
one value is changed: each must end with exit status 1 and name the file and the line.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILES = sorted(HERE.glob("*.txt"))
F32_OUTPUT = "5e-05"


def shifted(text: str, tolerance: float) -> str:
    """A real moved by four tolerances."""
    value = float(text)
    return repr(value + 4 * tolerance * max(1.0, abs(value)))


def field(name: str, change):
    """Changes FIELD=VALUE in a line; None where it has no such field."""
    def apply(line: str):
        found = re.search(rf"(?<= ){name}=(\S+)", line)
        if found is None:
            return None
        return line[:found.start(1)] + change(found.group(1)) + line[found.end(1):]
    return apply


def count(text: str) -> str:
    return str(int(text) + 1)


def real(text: str) -> str:
    return "0.5" if text == "nan" else repr(float(text) * 1.001 + 0.001)


def list_without_last(line: str):
    head, text = line.rsplit(" ", 1)
    last = text.split(",")[-1]
    if text == "-":
        return None
    if "-" in last:
        first, end = last.split("-")
        shorter = first if int(end) - 1 == int(first) else f"{first}-{int(end) - 1}"
        return f"{head} {text[:len(text) - len(last)]}{shorter}"
    return f"{head} {text[:-len(last) - 1] or '-'}"


def list_other_first(line: str):
    """The first entry, where it stands alone, is another number; the length stays."""
    head, text = line.rsplit(" ", 1)
    first = text.split(",")[0]
    if not first.isdigit() or first == "0":
        return None
    return f"{head} {int(first) - 1}{text[len(first):]}"


def empty_list(line: str):
    return line[:-1] + "0" if line.endswith(" -") else None


def last_value(line: str):
    words = line.split(" ")
    tolerance = words[4] if words[1] == "out" else words[3]
    if tolerance != F32_OUTPUT or "inf" in words[-1]:
        return None
    return " ".join(words[:-1] + [shifted(words[-1], float(tolerance))])


def coarse_value(line: str):
    """An output of a 16-bit type."""
    words = line.split(" ")
    if words[4] == F32_OUTPUT:
        return None
    return " ".join(words[:-1] + [shifted(words[-1], float(words[4]))])


def infinite(line: str):
    return line.replace("-inf", "-1", 1) if "-inf" in line else None


def other_status(line: str):
    if " ! " not in line:
        return None
    action, expected = line.split(" ! ")
    status, word = expected.split(" ")
    return f"{action} ! {'BAD_STATE' if status != 'BAD_STATE' else 'UNSUPPORTED'} {word}"


def other_word(line: str):
    return line + "_" if " ! " in line else None


def no_error(line: str):
    return line.split(" ! ")[0] if " ! " in line else None


def an_error(line: str):
    return line + " ! BAD_STATE seq" if " ! " not in line else None


# kind, the action whose expectation (or which itself) is changed, start of the line, change
KINDS = [
    ("plan, an integer", "plan", "= fields", field("cap", count)),
    ("plan, a flag", "plan", "= fields", field("raised", lambda x: str(1 - int(x)))),
    ("plan, a real", "plan", "= fields", field("storage_ratio", real)),
    ("memory", "memory", "= fields", field("k_bytes", count)),
    ("stats", "stats", "= fields", field("bytes_read_per_step", count)),
    ("stats, a flag", "stats", "= fields", field("nonfinite", lambda x: str(1 - int(x)))),
    ("audit, a mass", "audit", "= fields", field("mass_mean", real)),
    ("audit, not a number", "audit", "= fields", field("prompt_mass_mean", real)),
    ("kept, one less", "kept", "= kept", list_without_last),
    ("kept, another position", "kept", "= kept", list_other_first),
    ("selection of select", "select", "= selection", list_without_last),
    ("selection of decode", "decode", "= selection", list_other_first),
    ("selection of a padding row", "decode", "= selection", empty_list),
    ("out of attend", "attend", "= out", last_value),
    ("out of decode", "decode", "= out", last_value),
    ("out of a 16-bit type", "decode", "= out", coarse_value),
    ("lse of decode", "decode", "= lse", last_value),
    ("lse of a padding row", "decode", "= lse", infinite),
    ("status", "decode", "decode", other_status),
    ("status of prefill", "prefill", "prefill", other_status),
    ("status of create", "create", "create", other_status),
    ("word", "rewind", "rewind", other_word),
    ("word of export", "export", "export", other_word),
    ("success instead of an error", "open", "open", no_error),
    ("an error instead of success", "decode", "decode", an_error),
    ("an error instead of success of plan", "plan", "plan", an_error),
]


def blocks():
    """(file name, the lines of one case)."""
    for path in FILES:
        block = []
        for line in path.read_text().splitlines()[1:]:
            if line.startswith("case "):
                if block:
                    yield path.name, block
                block = []
            block.append(line)
        yield path.name, block


def mutants(kind):
    """(lines, index of the changed line) of the first case where the kind occurs."""
    _, action, start, change = kind
    for _, lines in blocks():
        current = ""
        for i, line in enumerate(lines):
            if line and line[0] not in "=#":
                current = line.split(" ")[0]
            if current != action or not (line + " ").startswith(start + " "):
                continue
            changed = change(line)
            if changed is not None and changed != line:
                return lines[:i] + [changed] + lines[i + 1:], i
    return None


def run(command, files):
    done = subprocess.run([*command, *map(str, files)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def main() -> int:
    command = sys.argv[1:]
    if not command:
        print(__doc__)
        return 2
    cases = sum(line.startswith("case ") for path in FILES for line in path.open())
    code, output = run(command, FILES)
    if code != 0 or f"golden: {cases} cases, checksum " not in output:
        print(f"the committed files: exit status {code}\n{output}")
        return 1
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, kind in enumerate(KINDS):
            mutant = mutants(kind)
            if mutant is None:
                print(f"{kind[0]}: no case has it")
                missed += 1
                continue
            lines, index = mutant
            path = pathlib.Path(folder) / f"mutant{number:02}.txt"
            path.write_text("\n".join(["rkv-golden 1", *lines]) + "\n")
            code, output = run(command, [path])
            place = f"{path.name}:{index + 2}:"
            if code != 1 or place not in output:
                print(f"{kind[0]}: not noticed at {place} exit status {code}\n    {lines[index]}\n"
                      f"    {output}")
                missed += 1
    print(f"mutate: {len(KINDS) - missed} of {len(KINDS)} changed values noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
