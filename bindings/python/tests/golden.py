#!/usr/bin/env python3
"""The golden vectors through the package rkv: golden.py FILE...

Reads the files in the order given, makes each action's call and compares; the format is that of
tests/golden/README.md. Ends with "golden: N cases, checksum X", or prints
"FILE:LINE: what differs" and exits with 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import rkv
from rkv._swig import native

ERRORS: dict[str, type[rkv.RkvError]] = {
    "INVALID_ARGUMENT": rkv.InvalidArgumentError,
    "UNSUPPORTED": rkv.UnsupportedError,
    "OUT_OF_CAPACITY": rkv.CapacityError,
    "BUFFER_TOO_SMALL": rkv.BufferTooSmallError,
    "BAD_STATE": rkv.BadStateError,
    "DEVICE_ERROR": rkv.DeviceError,
    "ABI_MISMATCH": rkv.AbiMismatchError,
    "CORRUPT_DATA": rkv.CorruptDataError,
    "OUT_OF_MEMORY": rkv.OutOfMemoryError,
    "INTERNAL": rkv.InternalError,
}
REALS = {"compression_ratio", "softmax_scale", "logit_softcap"}
TENSORS = {"q": 0, "k": 1, "v": 2}
STORED = {  # type of the arrays; BF16 as its bits
    native.RKV_DTYPE_F32: np.dtype(np.float32),
    native.RKV_DTYPE_F16: np.dtype(np.float16),
    native.RKV_DTYPE_BF16: np.dtype(np.uint16),
}
FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


class Different(Exception):
    """The library's answer is not the golden one."""


def generated(seed: int, layer: int, tensor: int, index: npt.NDArray[np.uint64]) -> Any:
    """The generator's values, float32, at these indices."""
    with np.errstate(over="ignore"):
        z = np.uint64((((seed * 256 + layer) * 4 + tensor) << 40) % 2**64) + index
        z += np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(56)).astype(np.float32) - 128) / 64


def read_list(text: str) -> list[int]:
    """Members of a list like 0-3,7,9-12."""
    members: list[int] = []
    for part in text.split(",") if text != "-" else []:
        first, _, last = part.partition("-")
        members.extend(range(int(first), int(last or first) + 1))
    return members


def near(got: float, want: float, tolerance: float) -> bool:
    """Whether a real is right."""
    if math.isnan(got) or math.isnan(want) or math.isinf(got) or math.isinf(want):
        return got == want or (math.isnan(got) and math.isnan(want))
    return abs(got - want) <= tolerance * max(1.0, abs(want))


class Runner:
    """One case after the other, and the checksum over all."""

    def __init__(self) -> None:
        self.cases = 0
        self.checksum = FNV_START
        self.cache: rkv.Cache | None = None
        self.begin()

    def begin(self) -> None:
        """A new case."""
        if self.cache is not None:
            self.cache.close()
        self.cache = None
        self.config: dict[str, Any] = {}
        self.options: dict[str, Any] | None = None
        self.seeds: dict[int, int] = {}
        self.elements: list[tuple[str, int, int, int, float]] = []
        self.selection: rkv.Selection | None = None
        self.forget()

    def forget(self) -> None:
        """What the last action left for its expectations."""
        self.fields: Any = None
        self.kept: npt.NDArray[np.int64] | None = None
        self.selected = False
        self.out: npt.NDArray[Any] | None = None
        self.lse: npt.NDArray[np.float32] | None = None

    def add(self, array: npt.NDArray[Any]) -> None:
        """Adds bytes to the checksum."""
        value = self.checksum
        for byte in np.ascontiguousarray(array).tobytes():
            value = ((value ^ byte) * FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
        self.checksum = value

    # ---- tensors ------------------------------------------------------------------------------

    def dtype(self, tensor: str) -> int:
        """RKV_DTYPE_* of q, k, v or out."""
        kv = self.config["kv_dtype"]
        return kv if tensor in "kv" else self.config.get("query_dtype") or kv

    def shape(self, tensor: str) -> tuple[int, int]:
        """Heads and channels."""
        heads = self.config["kv_heads" if tensor in "kv" else "q_heads"]
        channels = self.config["head_dim"]
        if tensor in ("v", "out"):
            channels = self.config.get("head_dim_v") or channels
        return heads, channels

    def rows(self, tensor: str, layer: int, rows: list[tuple[int, int]]) -> npt.NDArray[Any]:
        """[rows, heads, channels] of these (sequence, position)."""
        heads, channels = self.shape(tensor)
        one = np.arange(heads * channels, dtype=np.uint64).reshape(heads, channels)
        values = np.empty((len(rows), heads, channels), np.float32)
        for row, (seq, position) in enumerate(rows):
            at = 0 if seq == -1 else position
            seed = self.seeds.get(seq, 0)
            first = np.uint64(at * heads * channels % 2**64)
            with np.errstate(over="ignore"):
                values[row] = generated(seed, layer, TENSORS[tensor], one + first)
            for name, where, head, channel, value in self.elements:
                if name == tensor and where == at:
                    values[row, head, channel] = value
        return self.stored(values, self.dtype(tensor))

    @staticmethod
    def stored(values: npt.NDArray[np.float32], dtype: int) -> npt.NDArray[Any]:
        """Float32 values that the type holds, in that type."""
        if dtype == native.RKV_DTYPE_BF16:
            return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return values.astype(STORED[dtype])

    def run_of(self, tensor: str, layer: int, seq: int, begin: int, end: int) -> npt.NDArray[Any]:
        """Rows of one sequence."""
        return self.rows(tensor, layer, [(seq, position) for position in range(begin, end)])

    # ---- actions ------------------------------------------------------------------------------

    def act(self, words: list[str]) -> None:
        """One call."""
        name, rest = words[0], words[1:]
        self.forget()
        if name == "plan":
            self.fields = rkv.plan(int(rest[0]), sequence=self.options, **self.config)
            return
        if name == "memory":
            self.fields = rkv.memory(**self.config)
            return
        if name == "create":
            made = rkv.Cache(**self.config)
            if self.cache is not None:
                self.cache.close()
            self.cache = made
            return
        if self.cache is None:
            raise Different(f"{name} without a cache")
        cache = self.cache
        if name == "open":
            cache.open(int(rest[0]), **(self.options or {}))
            self.seeds[int(rest[0])] = int(rest[1])
        elif name == "prefill":
            seq, layer, prompt, start, end = map(int, rest)
            q = self.run_of("q", layer, seq, start, end) if end > start else None
            whole = [self.run_of(t, layer, seq, 0, end) if end == prompt else None for t in "kv"]
            cache.prefill(seq, layer, q, *whole, start=start, prompt_tokens=prompt)
        elif name == "kept":
            self.kept = cache.kept_positions(int(rest[0]), int(rest[1]))
            self.add(self.kept)
        elif name == "stats":
            self.fields = cache.stats(int(rest[0]), int(rest[1]))
        elif name in ("select", "attend", "decode", "audit"):
            self.act_on_rows(cache, name, int(rest[0]), rest[1:])
        elif name == "rewind":
            cache.rewind(int(rest[0]), int(rest[1]))
        elif name == "close":
            cache.close_sequence(int(rest[0]))
        elif name == "fork":
            cache.fork(int(rest[0]), int(rest[1]))
        elif name == "export":
            cache.export(int(rest[0]), int(rest[1]))
        elif name == "import":
            cache.import_(int(rest[0]), int(rest[1]), bytes(16))
        else:
            raise Different(f"no directive {name}")

    def act_on_rows(self, cache: rkv.Cache, name: str, layer: int, words: list[str]) -> None:
        """select, attend, decode, audit."""
        rows = [(int(seq), int(at)) for seq, at in (word.split(":") for word in words)]
        seq, positions = [row[0] for row in rows], [row[1] for row in rows]
        q = self.rows("q", layer, rows)
        new = [self.rows(tensor, layer, rows) for tensor in "kv"]
        if name == "audit":
            self.fields = cache.audit(layer, seq, positions, q)
            return
        if name != "attend":
            self.selection = cache.new_selection(len(rows))
        selection = self.selection
        assert selection is not None
        if name != "select":
            heads, channels = self.shape("out")
            nothing = np.full((len(rows), heads, channels), np.nan, np.float32)
            out = self.stored(nothing, self.dtype("out"))
            lse = np.full((len(rows), heads), np.nan, np.float32)
        if name == "select":
            cache.decode_select(layer, seq, positions, q, *new, selection=selection)
        elif name == "attend":
            cache.attend(layer, seq, positions, q, selection=selection, out=out, lse=lse)
        else:
            cache.decode(layer, seq, positions, q, *new, selection=selection, out=out, lse=lse)
        if name != "attend":
            self.selected = True
            for indices, counts in zip(selection.indices, selection.counts):
                for mine, count in zip(indices, counts):
                    self.add(np.array([count], np.int32))
                    self.add(mine[:count])
        if name != "select":
            self.out, self.lse = out, lse
            self.add(out)
            self.add(lse)

    # ---- expectations -------------------------------------------------------------------------

    def check(self, words: list[str]) -> None:
        """One line that starts with =."""
        what, rest = words[0], words[1:]
        if what == "fields" and self.fields is not None:
            tolerance = float(rest[0])
            for word in rest[1:]:
                field, _, want = word.partition("=")
                got = getattr(self.fields, field)
                if not near(float(got), float(want), tolerance):
                    raise Different(f"{field} is {got}, expected {want}")
        elif what == "kept" and self.kept is not None:
            self.compare(self.kept[int(rest[0])], rest[1])
        elif what == "selection" and self.selected:
            assert self.selection is not None
            row, head = int(rest[0]), int(rest[1])
            count = self.selection.counts[row, head]
            self.compare(self.selection.indices[row, head][:count], rest[2])
        elif what == "out" and self.out is not None:
            values = self.out[int(rest[0]), int(rest[1])]
            if values.dtype == np.uint16:
                values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
            self.compare_reals(values, rest[3:], float(rest[2]))
        elif what == "lse" and self.lse is not None:
            self.compare_reals(self.lse[int(rest[0])], rest[2:], float(rest[1]))
        else:
            raise Different(f"= {what} does not belong to the action before")

    @staticmethod
    def compare(got: npt.NDArray[Any], text: str) -> None:
        """A list of integers."""
        want = read_list(text)
        if got.tolist() != want:
            raise Different(f"is {got.tolist()}, expected {want}")

    @staticmethod
    def compare_reals(got: npt.NDArray[Any], words: list[str], tolerance: float) -> None:
        """All values of a row."""
        if len(got) != len(words):
            raise Different(f"{len(got)} values, expected {len(words)}")
        for index, (value, want) in enumerate(zip(got, words)):
            if not near(float(value), float(want), tolerance):
                raise Different(f"value {index} is {value}, expected {want}")

    # ---- files --------------------------------------------------------------------------------

    def assign(self, words: list[str], fields: dict[str, Any]) -> None:
        """FIELD=VALUE words."""
        for word in words:
            field, _, text = word.partition("=")
            if field == "dense_layers":
                fields[field] = [int(layer) for layer in text.split(",")]
            else:
                fields[field] = float(text) if field in REALS else int(text)

    def line(self, words: list[str]) -> None:
        """One directive."""
        if words[0] == "case":
            self.begin()
            self.cases += 1
        elif words[0] == "config":
            self.assign(words[1:], self.config)
        elif words[0] == "options":
            options: dict[str, Any] = {}
            self.assign(words[1:], options)
            self.options = options if words[1:] else None
        elif words[0] == "set":
            _, tensor, position, head, channel, value = words
            self.elements.append((tensor, int(position), int(head), int(channel), float(value)))
        elif words[0] == "=":
            self.check(words[1:])
        elif "!" in words:
            at = words.index("!")
            self.fails(lambda: self.act(words[:at]), words[at + 1], words[at + 2])
        else:
            try:
                self.act(words)
            except rkv.RkvError as error:
                raise Different(f"{words[0]}: {type(error).__name__}: {error}") from error

    def fails(self, call: Callable[[], None], status: str, word: str) -> None:
        """The call must fail in this way."""
        try:
            call()
        except rkv.RkvError as error:
            if type(error) is not ERRORS[status]:
                raise Different(f"{type(error).__name__} ({error}), expected {status}") from error
            if word not in str(error):
                raise Different(f"the text {str(error)!r} lacks {word}") from error
            self.add(np.array([getattr(native, f"RKV_{status}")], np.int32))
            return
        raise Different(f"succeeds, expected {status}")

    def file(self, path: str) -> None:
        """All lines of a file."""
        with open(path, encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                words = text.split()
                try:
                    if number == 1 and words != ["rkv-golden", "1"]:
                        raise Different("the first line must be rkv-golden 1")
                    if number > 1 and words and not words[0].startswith("#"):
                        self.line(words)
                except Different as difference:
                    sys.exit(f"{path}:{number}: {difference}")


def main() -> None:
    runner = Runner()
    for path in sys.argv[1:]:
        runner.file(path)
    runner.begin()
    print(f"golden: {runner.cases} cases, checksum {runner.checksum:016x}")


if __name__ == "__main__":
    main()
