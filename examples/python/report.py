"""What came out: a table for the terminal, for Markdown and as JSON, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from runner import Result

SHOWN_CHARACTERS = 44  # of an answer
SHOWN_COLUMNS = 400  # of the picture; each is a run of positions
COLUMNS = [
    "method",
    "answer",
    "found",
    "KV held",
    "of full",
    "read per step",
    "attention per step",
    "of full",
    "KL",
]


@dataclass(frozen=True)
class Row:
    """One method in figures."""

    method: str
    answer: str  # first line
    found: bool  # holds what was expected; without that: is full KV's answer
    kv_bytes: int
    kv_share: float
    bytes_read: int
    micros: float
    micros_share: float
    kl: float | None  # nats, mean over the steps

    def cells(self) -> list[str]:
        answer = self.answer
        if len(answer) > SHOWN_CHARACTERS:
            answer = answer[: SHOWN_CHARACTERS - 3] + "..."
        return [
            self.method,
            answer,
            "yes" if self.found else "no",
            f"{self.kv_bytes / 1e6:.1f} MB",
            f"{self.kv_share:.1%}",
            f"{self.bytes_read / 1e6:.2f} MB",
            f"{self.micros:,.0f} us",
            f"{self.micros_share:.0%}",
            "-" if self.kl is None else f"{self.kl:.4f}",
        ]


def rows(results: list[Result], answers: list[str], expect: str | None) -> list[Row]:
    """The table's rows; the first result is full KV. `answers` are the answers as text."""
    first_lines = [answer.strip().split("\n")[0].strip() for answer in answers]
    full = results[0]
    return [
        Row(
            method=result.name,
            answer=line,
            found=expect in line if expect else line == first_lines[0],
            kv_bytes=result.kv_bytes,
            kv_share=result.kv_bytes / result.full_kv_bytes,
            bytes_read=result.bytes_read,
            micros=result.micros,
            micros_share=result.micros / full.micros,
            kl=result.kl,
        )
        for result, line in zip(results, first_lines)
    ]


def header(expected: bool) -> list[str]:
    """Names of the columns; nothing can be found where nothing is expected."""
    return [name if expected or name != "found" else "as full KV" for name in COLUMNS]


def terminal(table: list[Row], expected: bool) -> str:
    """Columns under each other; text to the left, figures to the right."""
    lines = [header(expected), *(row.cells() for row in table)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def markdown(table: list[Row], expected: bool) -> str:
    """The same as a Markdown table."""
    lines = [header(expected), ["---"] * 3 + ["---:"] * (len(COLUMNS) - 3)]
    lines += [[cell.replace("|", "\\|") for cell in row.cells()] for row in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def picture(results: list[Result], fact: range, path: Path) -> None:
    """For every method: which positions each layer kept, and what it attended to in one step."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tokens = results[0].kept.shape[1]
    figure, axes = plt.subplots(
        len(results),
        2,
        figsize=(13, 1.05 * len(results) + 1.3),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for result, (left, right) in zip(results, axes):
        for axis, share in ((left, result.kept), (right, result.attended)):
            axis.imshow(
                in_columns(share),
                aspect="auto",
                cmap="Blues",
                vmin=0.0,
                vmax=1.2,  # full shares are blue, not nearly black
                interpolation="nearest",
                extent=(0, tokens, len(share), 0),
            )
            if fact:
                axis.axvspan(fact.start, fact.stop, color="tab:red", alpha=0.2)
                axis.plot([(fact.start + fact.stop) / 2], [0], "v", color="tab:red", clip_on=False)
            axis.set_yticks([0, len(share)])
        left.set_ylabel(result.name, rotation=0, ha="right", va="center")
    axes[0][0].set_title("kept (share of the KV heads)")
    axes[0][1].set_title("attended to while the answer begins (share of the KV heads)")
    for axis in axes[-1]:
        axis.set_xlabel("position in the prompt (tokens)" + ("; red: the fact" if fact else ""))
    axes[0][0].annotate("layer", (0, 1), (-8, 8), "axes fraction", "offset points", ha="right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def in_columns(share: np.ndarray) -> np.ndarray:
    """[layers, tokens] to at most SHOWN_COLUMNS columns: the largest share in each run."""
    tokens = share.shape[1]
    starts = np.unique(
        np.linspace(0, tokens, min(tokens, SHOWN_COLUMNS), endpoint=False, dtype=int)
    )
    return np.maximum.reduceat(share, starts, axis=1)
