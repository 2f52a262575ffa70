"""Render what the benchmarks recorded: the tables of README and docs, and a figure.

    python benchmarks/render.py

Each table stands between two marks in its file; one whose records are missing is left as it is.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from published import RECORDS, SPEED, insert
from thonecls.benchmark import Cell, Record, Results, read_results
from thonecls.benchmark.paper import in_tables
from thonecls.benchmark.plan import changed
from thonecls.datasets import indian_pines
from thonecls.method.collage import WINDOW, build_pool
from thonecls.method.config import COLLAGE
from thonecls.methods import IMAGE_METHODS
from thonecls.methods.catalogue import as_markdown
from thonecls.report.plots import CLASS, FALSE, false_colour, save_figure
from thonecls.scene import Scene
from thonecls.splits import paper_split

NAMES = {2: "2, Corn-notill", 11: "11, Soybean-mintill"}
SCORES = ("f1", "precision", "recall", "auc")
COLLAPSE: dict[str, dict[str, Any]] = {"taylor": {}, "variational": {"loss": "variational"}}
BENCHMARKS = {  # by the page that shows them
    **dict.fromkeys(
        (
            "start",
            "step",
            "checkpoint",
            "precision",
            "scoring",
            "scale",
            "schedule",
            "mapping",
            "training-scale",
            "fitting-scale",
        ),
        "docs/speed.md",
    ),
    "frozen-collages": "docs/adr/0013-collage.md",
    "emit": "docs/products.md",
    "priors": "docs/methods.md",
    **dict.fromkeys(("images", "trees"), "docs/images.md"),
}


def table(results: Results) -> str:
    """Paper and ours side by side, in Markdown: a row for every class and preset."""
    shown: list[Record] = []
    lines = [
        "| class | schedule | F1 | precision | recall | AUC | seeds (n) | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target, name in NAMES.items():
        paper = in_tables("indian-pines", target, "t-honecls", "f1")
        assert paper is not None
        figure = f"{paper.mean:.2f} ({paper.std:.2f})"
        lines.append(f"| {name} | the paper | {figure} | | | | (n = 5) | |")
        for preset in ("paper", "fast"):
            runs = seeds_of(results, Cell("indian-pines", target), {"preset": preset})
            if runs:
                lines.append(_row(preset, runs))
            shown += runs
    return "\n".join([*lines, "", _counted(shown)])


def seeds_of(results: Results, cell: Cell, change: dict[str, Any]) -> list[Record]:
    """The records of a cell, changed, for as many seeds as there are."""
    cells = (changed(cell, {**change, "seed": seed}) for seed in range(10))
    return [record for cell in cells if (record := results.find(cell)) is not None]


def _row(preset: str, runs: list[Record]) -> str:
    cells = [_mean(r.facts["scores"][name] for r in runs) for name in SCORES]
    steps = statistics.mean(
        len(r.facts["curves"]["loss"]) * r.facts["config"]["batches"] for r in runs
    )
    seeds = ", ".join(str(r.cell.seed) for r in runs)
    return (
        f"| | ours, `{preset}` | **{cells[0]}** | {' | '.join(cells[1:])} "
        f"| {seeds} (n = {len(runs)}) | {steps:.0f} |"
    )


def _counted(records: list[Record]) -> str:
    """Whose figures they are, and of how many cells: `insert` goes by it."""
    versions = sorted({record.facts["versions"]["thonecls"] for record in records})
    return f"Version {', '.join(versions)}. {len(records)} cells are run."


def _mean(values: Iterable[float]) -> str:
    known = list(values)
    spread = f" ({statistics.stdev(known):.2f})" if len(known) > 1 else ""
    return f"{statistics.mean(known):.2f}{spread}"


def bench_table(name: str) -> str:
    """What a benchmark published, in Markdown, with the machine below."""
    record = json.loads((SPEED / f"{name}.json").read_text("utf-8"))
    columns = list(record["rows"][0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in record["rows"]:
        lines.append("| " + " | ".join(_cell(row[column]) for column in columns) + " |")
    facts = ", ".join(
        f"{key} {record[key]}"
        for key in ("version", "commit", "machine", "threads", "torch", "date")
    )
    return "\n".join([*lines, "", f"({facts})"])


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def draw_collapse(results: Results, path: Path) -> None:
    """Positive loss, total loss and F1 by epoch, for both losses: the paper's Fig. 2."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    figure.suptitle("Indian Pines, Corn-notill, 100 positives: the same loop with either loss")
    axes = figure.subplots(1, 3)
    for loss, label, colour in (
        ("variational", "variational loss", FALSE),
        ("taylor", "Taylor variational loss, order 2", CLASS),
    ):
        curves = seeds_of(results, Cell("indian-pines", 2), COLLAPSE[loss])[0].facts["curves"]
        for axis, name in zip(axes, ("positive", "loss", "f1"), strict=True):
            values = curves[name]
            axis.plot(range(1, len(values) + 1), values, color=colour, label=label, linewidth=1.6)
    for axis, name in zip(
        axes, ("positive loss", "total loss", "F1 of the teacher, percent"), strict=True
    ):
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("epoch")
        axis.grid(alpha=0.3)
    axes[2].legend(fontsize=8, loc="center right")
    save_figure(figure, path)


def draw_collage(path: Path) -> None:
    """One canvas of Indian Pines in false colour, blocks around labels framed."""
    data, block = indian_pines(), COLLAGE.block
    shown = Scene(data.scene.cube[list(data.rgb)], data.scene.valid)
    rng = np.random.default_rng(1)
    positive = paper_split(data.truth, 2).labels.positive
    pool = build_pool(shown, positive, side=WINDOW * block, components=0, rng=rng)
    chosen = rng.choice(len(pool.labels), COLLAGE.label_blocks, replace=False)
    cut = pool.cut(chosen, COLLAGE.random_blocks, block, rng)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    whole, canvas = figure.subplots(1, 2)
    whole.imshow(false_colour(shown))
    rows, columns = np.divmod(pool.pixels[chosen], shown.shape[1])
    whole.scatter(columns, rows, s=16, c=CLASS, edgecolors="white", linewidths=0.6)
    whole.set_title("The scene, with the positives of one step", fontsize=10)
    canvas.imshow(false_colour(Scene(cut.cube, np.ones(cut.fair.shape, dtype=bool))))
    for pixel in cut.positive.tolist():
        row, column = divmod(pixel, cut.fair.shape[1])
        corner = column // block * block - 0.5, row // block * block - 0.5
        canvas.add_patch(Rectangle(corner, block, block, fill=False, ec="white", linewidth=1.6))
        canvas.scatter([column], [row], s=16, c=CLASS, edgecolors="white", linewidths=0.6)
    canvas.set_title("What the step sees: blocks around them, and from anywhere", fontsize=10)
    for axis in (whole, canvas):
        axis.set_xticks([])
        axis.set_yticks([])
    save_figure(figure, path)


def main() -> None:
    """Every table and figure that has records; the others stay as they are."""
    recorded = read_results(RECORDS)
    methods, images = (Path(f"docs/{page}.md") for page in ("methods", "images"))
    insert(methods, "methods", as_markdown())
    insert(images, "image-methods", as_markdown(IMAGE_METHODS))
    for name, page in BENCHMARKS.items():
        if (SPEED / f"{name}.json").exists():
            insert(Path(page), name, bench_table(name))
    insert(Path("README.md"), "training", table(recorded))
    draw_collage(Path("docs/figures/collage.png"))
    if all(seeds_of(recorded, Cell("indian-pines", 2), change) for change in COLLAPSE.values()):
        draw_collapse(recorded, Path("docs/figures/collapse.png"))


if __name__ == "__main__":
    main()
