#!/usr/bin/env python3
"""The accuracy figures as pictures: plots.py PASSKEY.json KL.json FOLDER

PASSKEY.json becomes heat maps (depth by length, one panel per method), passkey.png for the filler
and story.png for the story; KL.json becomes curves over the budget (one panel per text and prompt).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402


def heat_map(records: list[dict], path: Path) -> None:
    """Share of the keys found; white where full KV does not find any."""
    lengths = sorted({record["length"] for record in records})
    depths = sorted({record["depth"] for record in records})
    names = list(records[0]["margins"])
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(2.9 * columns, 2.5 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for name, axis in zip(names, axes.flat):
        share = np.full((len(depths), len(lengths)), np.nan)
        for row, depth in enumerate(depths):
            for column, length in enumerate(lengths):
                marks = [
                    record["margins"][name] > 0
                    for record in records
                    if record["length"] == length
                    and record["depth"] == depth
                    and (name == "full KV" or record["margins"]["full KV"] > 0)
                ]
                if marks:
                    share[row, column] = np.mean(marks)
        image = axis.imshow(share, cmap="RdYlGn", vmin=0, vmax=1, aspect="auto")
        axis.set_title(name, fontsize=10)
        axis.set_xticks(range(len(lengths)), [f"{length // 1000}K" for length in lengths])
        axis.set_yticks(range(len(depths)), [f"{depth:.0%}" for depth in depths])
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    figure.supxlabel("length of the prompt (tokens)")
    figure.supylabel("depth of the key")
    figure.colorbar(image, ax=axes, label="share of the keys found", shrink=0.7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def curves(records: list[dict], path: Path) -> None:
    """KL over the budget, both logarithmic."""
    prompts = list(dict.fromkeys((record["text"], record["prompt"]) for record in records))
    figure, axes = plt.subplots(
        1,
        len(prompts),
        figsize=(4.2 * len(prompts), 3.6),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for (text, prompt), axis in zip(prompts, axes[0]):
        mine = [
            record for record in records if (record["text"], record["prompt"]) == (text, prompt)
        ]
        for family in dict.fromkeys(record["family"] for record in mine):
            points = [(r["budget"], r["kl"]) for r in mine if r["family"] == family]
            axis.loglog(*zip(*points), marker="o", base=2, label=family)
        axis.set_yscale("log", base=10)
        axis.set_xticks(sorted({record["budget"] for record in mine}))
        axis.xaxis.set_major_formatter("{x:.0f}")
        axis.set_title(f"{text}, {prompt} tokens", fontsize=10)
        axis.set_xlabel("token budget")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("KL(full KV || method), nats")
    axes[0][0].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    passkey, kl, folder = (Path(given) for given in sys.argv[1:4])
    folder.mkdir(parents=True, exist_ok=True)
    records = json.loads(passkey.read_text(encoding="utf-8"))
    for text, name in (("filler", "passkey.png"), ("story", "story.png")):
        heat_map([record for record in records if record["text"] == text], folder / name)
    curves(json.loads(kl.read_text(encoding="utf-8")), folder / "kl.png")


if __name__ == "__main__":
    main()
