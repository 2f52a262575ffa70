"""Many scenes at once: a model of all tiles of a cut scene beside the model of the whole scene.

    python benchmarks/scenes.py [--classes 10 14] [--cuts 2 3] [--seeds 2]
    python benchmarks/scenes.py --render

Indian Pines is cut into 2 × 2 and 3 × 3 tiles. The labels are the same, scattered over the class;
tiles without a label serve as unlabeled. The tiles are told where they lie, as georeferenced files
tell it ("placed"), or not ("apart": each is then a scene of its own, mapped alone). F1 is that of
all tiles together. Each cell is a line in benchmarks/records/reports/scenes.jsonl; what is recorded
is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from published import RECORDS, insert
from thonecls.datasets import Dataset, indian_pines
from thonecls.metrics import evaluate
from thonecls.mosaic import Place, Window, lay_out
from thonecls.ratio.model import fit_ratio
from thonecls.splits import BoolArray, resampled_split
from thonecls.version import commit

FILE = RECORDS / "reports" / "scenes.jsonl"
WHOLE, PLACED, APART = "whole", "placed", "apart"


def cut(shape: tuple[int, int], count: int) -> list[Window]:
    """A scene in count × count tiles of about the same size."""
    down, across = (np.linspace(0, length, count + 1).astype(int).tolist() for length in shape)
    rows, columns = (list(itertools.starmap(slice, itertools.pairwise(e))) for e in (down, across))
    return list(itertools.product(rows, columns))


def measure(data: Dataset, target: int, cuts: int, laid: str, seed: int) -> dict[str, Any]:
    """F1 in percent, of the map from so many tiles a side; and where labels are seen to lie."""
    split = resampled_split(data.truth, target, seed=seed)
    mask: BoolArray = np.zeros(data.scene.shape, dtype=bool)
    mask.flat[split.labels.positive] = True
    if laid == WHOLE:
        model = fit_ratio(data.scene, mask, seed=seed)
        probability = model.score(data.scene)
    else:
        tiles = cut(mask.shape, cuts)
        places = [Place(0, rows.start, columns.start) for rows, columns in tiles]
        sources = [data.scene.read(*tile) for tile in tiles]
        mosaic = lay_out(sources, places if laid == PLACED else None)
        marked: BoolArray = np.zeros(mosaic.shape, dtype=bool)
        for tile, window in zip(tiles, mosaic.windows, strict=True):
            marked[window] = mask[tile]
        model = fit_ratio(mosaic, marked, seed=seed)
        together = model.score(mosaic) if laid == PLACED else None
        probability = np.full(mask.shape, np.nan, np.float32)
        for tile, source, window in zip(tiles, sources, mosaic.windows, strict=True):
            probability[tile] = model.score(source) if together is None else together[window]
    scores = evaluate(probability, data.truth == target, split.test, threshold=model.threshold)
    return {"f1": round(scores.f1, 2), "coverage": model.training["coverage"]}


def read() -> list[dict[str, Any]]:
    """All records."""
    if not FILE.exists():
        return []
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def run(classes: list[int], cuts: list[int], seeds: int) -> None:
    """Measure what is not recorded."""
    known = [record["task"] for record in read()]
    data = indian_pines()
    kinds = [(1, WHOLE), *((n, PLACED) for n in cuts), *((n, APART) for n in cuts)]
    for (count, laid), target, seed in itertools.product(kinds, classes, range(seeds)):
        task = {"target": target, "cuts": count, "laid": laid, "seed": seed}
        if task in known:
            continue
        found = measure(data, target, count, laid, seed)
        with FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"task": task, "commit": commit(), **found}) + "\n")
        print(*task.values(), found, flush=True)


def table(records: list[dict[str, Any]], names: dict[int, str]) -> str:
    """F1 by class and cut, in Markdown."""
    lines = [
        "| class | scenes | F1 | against the whole | labels lie in |",
        "|---|---|---|---|---|",
    ]
    whole: dict[int, float] = {}
    order = {WHOLE: 0, PLACED: 1, APART: 2}
    cells: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
    for record in records:
        task = record["task"]
        cells.setdefault((task["target"], order[task["laid"]], task["cuts"]), []).append(record)
    for (target, kind, count), found in sorted(cells.items()):
        mean = fmean(record["f1"] for record in found)
        whole.setdefault(target, mean)
        words = {0: "1", 1: f"{count**2}, placed", 2: f"{count**2}, apart"}[kind]
        each = ", ".join(f"{record['f1']:.1f}" for record in found)
        lie = ", ".join(record["coverage"] for record in found)
        against = "" if kind == 0 else f"{mean - whole[target]:+.1f}"
        lines.append(f"| {names[target]} | {words} | {mean:.1f} ({each}) | {against} | {lie} |")
    ran = f"Mean F1 (of each seed). {len(records)} cells are run"
    return "\n".join([*lines, "", f"{ran}; `python benchmarks/scenes.py`."])


def main() -> None:
    """Measure, and put the table into the docs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 14])
    parser.add_argument("--cuts", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--render", action="store_true", help="only put the table into the docs")
    asked = parser.parse_args()
    if not asked.render:
        run(asked.classes, asked.cuts, asked.seeds)
    text = table(read(), dict(indian_pines().classes))
    insert(Path("docs/adr/0021-many-scenes.md"), "scenes", text)
    print(text)


if __name__ == "__main__":
    main()
