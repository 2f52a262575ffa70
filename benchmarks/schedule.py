"""How soon the presets reach their F1: seconds and score of PAPER and FAST, with a plot.

    python benchmarks/schedule.py [--seeds 3] [--data-root DATA] [--recorded]

Trains what `thonecls benchmark` has not recorded yet (the paper's schedule takes about half an
hour a seed on two cores; --recorded leaves that out) and measures a training step of either kind,
in turns, at each scene's size. Seconds are steps times seconds a step, so that trainings recorded
on a busy machine do not count against either side. Writes docs/figures/schedule.png.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np
from matplotlib.figure import Figure

from measure import interleaved, publish
from published import RECORDS, WORK
from render import seeds_of
from step import sides
from thonecls.benchmark import Cell, Record, read_results, run_cells
from thonecls.benchmark.plan import changed
from thonecls.datasets import data_root as resolve_root
from thonecls.datasets import is_present, load_dataset
from thonecls.report.plots import CLASS, FALSE, save_figure

CASES = [("indian-pines", 2), ("indian-pines", 11), ("potsdam-south", 4)]
PRESETS = ("fast", "paper")
FIGURE = Path("docs/figures/schedule.png")
Found = dict[str, list[Record]]


def train_missing(dataset: str, target: int, seeds: int, root: Path) -> None:
    """Train all seeds of both presets that have no record."""
    base = Cell(dataset, target)
    cells = [changed(base, {"preset": p, "seed": s}) for p in PRESETS for s in range(seeds)]
    run_cells(cells, WORK, records=RECORDS, root=root)


def steps(record: Record) -> int:
    """Training steps of a whole run."""
    return len(record.facts["curves"]["f1"]) * int(record.facts["config"]["batches"])


def row(name: str, found: Found, step: dict[str, float]) -> dict[str, Any]:
    """One scene's figures: both presets, and the time of PAPER with the plain step."""
    f1 = {preset: [r.facts["scores"]["f1"] for r in runs] for preset, runs in found.items()}
    mean = {preset: statistics.mean(values) for preset, values in f1.items()}
    seconds = {
        p: statistics.mean(steps(r) for r in runs) * step["ours"] for p, runs in found.items()
    }
    plain = statistics.mean(steps(r) for r in found["paper"]) * step["plain"]
    return {
        "scene": name,
        "PAPER F1": mean["paper"],
        "n": len(f1["paper"]),
        "FAST F1": mean["fast"],
        "n ": len(f1["fast"]),
        "FAST - PAPER": mean["fast"] - mean["paper"],
        "PAPER plain s": plain,
        "PAPER s": seconds["paper"],
        "FAST s": seconds["fast"],
        "plain PAPER / FAST": plain / seconds["fast"],
    }


def draw(cases: dict[str, tuple[Found, dict[str, float]]]) -> None:
    """F1 by seconds of training, one panel a scene, one line a seed."""
    figure = Figure(figsize=(4.4 * len(cases), 3.8), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(cases), sharey=True))
    for axis, (name, (found, step)) in zip(axes, cases.items(), strict=True):
        for preset, side, colour, style, label in (
            ("paper", "plain", "#888888", "-", "PAPER, plain step"),
            ("paper", "ours", FALSE, "-", "PAPER"),
            ("fast", "ours", CLASS, "-", "FAST"),
        ):
            for i, record in enumerate(found[preset]):
                f1 = record.facts["curves"]["f1"]
                clock = steps(record) / len(f1) * step[side] * np.arange(1, len(f1) + 1)
                axis.plot(
                    clock, f1, style, color=colour, linewidth=1.1, alpha=0.85,
                    label=label if i == 0 else None,
                )  # fmt: skip
                axis.plot(clock[-1:], f1[-1:], "o", color=colour, markersize=4)
        axis.set_xscale("log")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("seconds of training, two cores")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("F1 of the teacher, percent")
    axes[0].set_ylim(40, 100)
    axes[0].legend(fontsize=8, loc="lower right")
    save_figure(figure, FIGURE)


def main(
    *,
    seeds: int = 3,
    data_root: Annotated[
        Path | None, cyclopts.Parameter(help="Folder with EnMAP Potsdam; left out without it.")
    ] = None,
    recorded: Annotated[
        bool, cyclopts.Parameter(help="Train nothing; show what has been recorded.")
    ] = False,
    rounds: int = 5,
) -> None:
    """Train what is missing, time the steps, print the table, draw the figure."""
    table = []
    drawn = {}
    timed: dict[str, dict[str, float]] = defaultdict(dict)
    root = resolve_root(data_root)
    for scene, target in CASES:
        if not is_present(scene, root):
            continue
        if not recorded:
            train_missing(scene, target, seeds, root)
        results = read_results(RECORDS)
        cell = Cell(scene, target)
        found = {p: seeds_of(results, cell, {"preset": p})[:seeds] for p in PRESETS}
        if not all(found.values()):
            continue
        data = load_dataset(scene, root)
        if not timed[scene]:
            both = sides(data.scene.bands, *data.scene.shape)
            timed[scene] = interleaved(both, rounds)
        name = f"{scene} {target}, {data.classes[target]}"
        table.append(row(name, found, timed[scene]))
        drawn[name] = (found, timed[scene])
    if not table:
        raise SystemExit("nothing is recorded yet: leave out --recorded")
    publish("schedule", table)
    draw(drawn)


if __name__ == "__main__":
    cyclopts.run(main)
