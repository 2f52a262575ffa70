"""Whether reports can be believed: what they say of maps whose truth is known.

    python benchmarks/trust.py --data-root SCENES [--seeds 3]
    python benchmarks/trust.py --render

Every class of the tuning scenes and of the paper, with scattered labels, from a half and from a
plot. Each cell is a line in benchmarks/records/reports/trust.jsonl; a killed run goes on where it
stood. Truth is that of all pixels with a known class that no label shows, wherever they lie: the
report speaks of the whole scene, not of the part that a protocol tests on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from published import RECORDS, insert
from reproduce import IP, PARTS
from thonecls.datasets import Dataset, load_dataset
from thonecls.errors import LabelError
from thonecls.io.grid import Grid
from thonecls.metrics import find_degenerate
from thonecls.ratio.model import crossfit_ratio
from thonecls.report.report import judge
from thonecls.splits import PROTOCOLS
from thonecls.trust import Estimate, outward
from thonecls.version import commit
from thonecls.workflow.crossfit import gather_evidence, spread_out
from thonecls.workflow.report import judge_evidence

FILE = RECORDS / "reports" / "trust.jsonl"
MECHANISMS = {"resampled": "scattered", "half": "half", "plot": "plot"}
PLACES = (*PARTS["tuning-scattered"].study.places, *IP)
WALL_TO_WALL = 0.95  # of the pixels have a known class: only there prevalence is known
FOLDS = 3
GOOD, HIGH = 80, 90  # F1


def tasks(seeds: int, protocols: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Scene, class, mechanism and seed."""
    for protocol in protocols:
        for scene, target in PLACES:
            for seed in range(seeds):
                yield {"scene": scene, "target": target, "protocol": protocol, "seed": seed}


def measure(data: Dataset, target: int, protocol: str, seed: int) -> dict[str, Any]:
    """What the report says of a map, and what is true of it."""
    valid = data.scene.valid
    split = PROTOCOLS[protocol](data.truth, target, seed=seed, valid=valid)
    positives = np.zeros(data.truth.shape, dtype=bool)
    positives.flat[split.labels.positive] = True
    model, left_out = crossfit_ratio(data.scene, positives, seed=seed, folds=FOLDS)
    probability = model.score(data.scene)
    mapped = probability > model.threshold
    evidence, opinions = gather_evidence(
        data.scene,
        positives,
        left_out,
        probability.flat[spread_out(data.truth.shape)][None],
        method="density-ratio",
        seed=seed,
    )
    run = {
        "method": "density-ratio",
        "threshold": model.threshold,
        "mapped_share": float(mapped[valid].mean()),
        "coverage": model.training["coverage"],
        "opinions": opinions,
    }
    if message := find_degenerate(probability, left_out.pixels, model.threshold):
        run["warning"] = message
    trust = judge_evidence(run, evidence, Grid(data.truth.shape))
    told: dict[str, Estimate] = {}
    if trust.held_out is not None and not trust.vague:
        told = {"recall": trust.held_out.recall, "precision": trust.held_out.precision}
        prevalence = trust.prevalence
        if (data.truth[valid] != 0).mean() > WALL_TO_WALL:
            told["prevalence"] = Estimate("", prevalence.value, prevalence.low, prevalence.high)
    known = (data.truth != 0) & valid & ~positives
    of_class = (data.truth == target)[known]
    found = mapped[known]
    hits = float((of_class & found).sum())
    recall, precision = hits / max(1, of_class.sum()), hits / max(1, found.sum())
    tested = split.test & valid
    there = (data.truth == target)[tested]
    f1_there = 2 * (there & mapped[tested]).sum() / max(1, there.sum() + mapped[tested].sum())
    return {
        "coverage": model.training["coverage"],
        "verdict": judge(trust).level,
        "cautions": [caution.name for caution in trust.cautions],
        "agreement": [round(opinion.agreement, 3) for opinion in trust.opinions],
        "left_out": round(float(np.nanmean(left_out.probability > model.threshold)), 4),
        "prevalences": {e.name: round(e.value, 4) for e in trust.prevalence.estimates},
        "mapped": run["mapped_share"],
        "unlike": None if trust.places is None else trust.places.unlike,
        "truth": {
            "recall": recall,
            "precision": precision,
            "prevalence": float(of_class.mean()),
            "f1": 200 * hits / max(1, of_class.sum() + found.sum()),
            "f1_tested": 100 * float(f1_there),
        },
        "told": {name: [part.value, part.low, part.high] for name, part in told.items()},
    }


def read() -> list[dict[str, Any]]:
    """All records."""
    if not FILE.exists():
        return []
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def run(root: Path | None, seeds: int, protocols: Sequence[str]) -> None:
    """Measure what is not recorded."""
    known = [record["task"] for record in read()]
    scenes: dict[str, Dataset] = {}
    for task in tasks(seeds, protocols):
        if task in known:
            continue
        data = scenes.setdefault(task["scene"], load_dataset(task["scene"], root))
        try:
            found = measure(data, task["target"], task["protocol"], task["seed"])
        except LabelError as error:  # no such split
            found = {"failed": str(error)}
        with FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"task": task, "commit": commit(), **found}) + "\n")
        print(*task.values(), found.get("verdict"), found.get("truth"), flush=True)


def table(records: list[dict[str, Any]]) -> str:
    """Verdicts against F1, and how often intervals hold, in Markdown."""
    lines = [
        "| labels | maps | good | of which F1 < 80 | check | poor | F1 > 90 | of which poor |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for protocol, name in (*MECHANISMS.items(), ("", "all")):
        here = [r for r in records if protocol in ("", r["task"]["protocol"])]
        by = {word: [r for r in here if r["verdict"] == word] for word in ("good", "check", "poor")}
        wrong = sum(r["truth"]["f1_tested"] < GOOD for r in by["good"])
        high = [r for r in here if r["truth"]["f1_tested"] > HIGH]
        poor = sum(r["verdict"] == "poor" for r in high)
        counts = [len(here), len(by["good"]), wrong, len(by["check"]), len(by["poor"])]
        lines.append(f"| {name} | {' | '.join(map(str, [*counts, len(high), poor]))} |")
    lines += ["", "| interval of | given for | holds the truth |", "|---|---|---|"]
    for name in ("recall", "precision", "prevalence"):
        told = [(r["told"][name], r["truth"][name]) for r in records if name in r["told"]]
        held = 0
        for (_, low, high), true in told:
            first, last = outward(low, high)  # as the report shows it
            held += first <= true <= last
        share = f"{100 * held / len(told):.0f} %" if told else "–"
        lines.append(f"| {name} | {len(told)} maps | {share} |")
    seeds = 1 + max(record["task"]["seed"] for record in records)
    ran = f"{len(records)} cells are run, seeds 0 to {seeds - 1}; `python benchmarks/trust.py`."
    lines += ["", ran]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("protocols", nargs="*", help="resampled, half, plot; else all")
    parser.add_argument("--render", action="store_true", help="only put the table into the docs")
    options = parser.parse_args()
    if not options.render:
        run(options.data_root, options.seeds, options.protocols or list(MECHANISMS))
    done = [record for record in read() if "failed" not in record]
    insert(Path("docs/results.md"), "trust", table(done))
    print(table(done))


if __name__ == "__main__":
    main()
