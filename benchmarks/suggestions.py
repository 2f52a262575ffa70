"""What answers to suggestions are worth, with the truth in place of a person.

    python benchmarks/suggestions.py --data-root SCENES [--seeds 1]
    python benchmarks/suggestions.py --render

Labels from a half or from a plot; then twenty answers, in two rounds of ten, or twenty answers at
random pixels of a known class. Full coverage is the same number of labels scattered over the
class. All are tested on what the mechanism tests on, without the answered pixels. The person is
asked about pixels whose class the truth knows. Each cell is a line in
benchmarks/records/reports/suggestions.jsonl.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from published import RECORDS, insert
from reproduce import PARTS
from thonecls.datasets import Dataset, load_dataset
from thonecls.errors import LabelError
from thonecls.metrics import evaluate
from thonecls.ratio.model import fit_ratio
from thonecls.splits import PROTOCOLS
from thonecls.trust import lattice, spectral_components
from thonecls.trust.suggestions import suggest
from thonecls.version import commit
from thonecls.workflow.crossfit import spread_out
from thonecls.workflow.spectra import read_lattice

FILE = RECORDS / "reports" / "suggestions.jsonl"
ANSWERS, ROUNDS = 20, 2
MECHANISMS = ("half", "plot")


class Mapper:
    """A person with the truth: labels, and what was answered so far."""

    def __init__(self, data: Dataset, target: int, labels: NDArray[np.int64], seed: int) -> None:
        self.data, self.seed = data, seed
        self.of_class = (data.truth == target).ravel()
        self.positive = np.zeros(data.truth.size, dtype=bool)
        self.positive[labels] = True
        self.answers, self.negatives = np.zeros_like(self.positive), np.zeros_like(self.positive)

    def answer(self, pixels: NDArray[np.int64]) -> None:
        """Say of each whether it is the class."""
        yes = pixels[self.of_class[pixels] & ~self.positive[pixels]]
        self.answers[yes] = self.positive[yes] = True
        self.negatives[pixels[~self.of_class[pixels]]] = True

    def map(self) -> NDArray[np.float32]:
        """Probabilities by all that is known."""
        shape = self.data.truth.shape
        model = fit_ratio(
            self.data.scene,
            self.positive.reshape(shape),
            seed=self.seed,
            negatives=self.negatives.reshape(shape),
            answers=self.answers.reshape(shape),
        )
        return model.score(self.data.scene)


def measure(data: Dataset, target: int, protocol: str, seed: int) -> dict[str, Any]:
    """F1 before, after suggestions, after random answers, and with labels from all over."""
    valid, shape = data.scene.valid, data.truth.shape
    split = PROTOCOLS[protocol](data.truth, target, seed=seed, valid=valid)
    labels = split.labels.positive
    rows, columns = lattice(shape)
    pixels = spread_out(shape)
    looked_at = read_lattice(data.scene, rows, columns)
    found = spectral_components(looked_at.cube[:, looked_at.valid].T)
    components = np.full((pixels.size, found.shape[1]), np.nan)
    components[looked_at.valid.ravel()] = found
    places = np.stack(np.divmod(pixels, shape[1]), axis=1).astype(np.float64)
    known = (data.truth.ravel() != 0) & valid.ravel()
    rng = np.random.default_rng(seed)

    def score(mapper: Mapper, probability: NDArray[np.float32]) -> float:
        tested = split.test & ~(mapper.positive | mapper.negatives).reshape(shape)
        return evaluate(probability, data.truth == target, tested).f1

    person = Mapper(data, target, labels, seed)
    probability = person.map()
    before, asked = score(person, probability), 0
    for _ in range(ROUNDS):
        at = np.flatnonzero(person.positive | person.negatives)
        told = np.where(known[pixels], probability.ravel()[pixels], np.nan)
        known_places = np.stack(np.divmod(at, shape[1]), axis=1).astype(np.float64)
        chosen = suggest(told, places, components, known_places, ANSWERS // ROUNDS, rng)
        person.answer(pixels[chosen])
        asked += chosen.size
        probability = person.map()
    after = score(person, probability)
    other = Mapper(data, target, labels, seed)
    other.answer(rng.choice(np.flatnonzero(known & ~other.positive), ANSWERS, replace=False))
    at_random = score(other, other.map())
    scattered = PROTOCOLS["resampled"](data.truth, target, seed=seed, valid=valid).labels.positive
    everywhere = Mapper(data, target, scattered, seed)
    model = fit_ratio(data.scene, everywhere.positive.reshape(shape), seed=seed, coverage="all")
    return {
        "before": before,
        "suggested": after,
        "random": at_random,
        "full": score(everywhere, model.score(data.scene)),
        "asked": asked,
        "yes": int(person.answers.sum()),
        "yes_random": int(other.answers.sum()),
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
    for protocol in protocols:
        for scene, target in PARTS["tuning-scattered"].study.places:
            for seed in range(seeds):
                task = {"scene": scene, "target": target, "protocol": protocol, "seed": seed}
                if task in known:
                    continue
                data = scenes.setdefault(scene, load_dataset(scene, root))
                try:
                    found = measure(data, target, protocol, seed)
                except LabelError as error:  # no such split
                    found = {"failed": str(error)}
                with FILE.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"task": task, "commit": commit(), **found}) + "\n")
                print(*task.values(), found, flush=True)


def table(records: list[dict[str, Any]]) -> str:
    """Means by mechanism, in Markdown."""
    lines = [
        "| labels | maps | before | 20 suggestions | 20 at random | full coverage | gap closed | "
        "by random | yes of 20 | yes at random |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = ("before", "suggested", "random", "full", "yes", "yes_random")
    for name, protocols in (*((one, (one,)) for one in MECHANISMS), ("both", MECHANISMS)):
        here = [record for record in records if record["task"]["protocol"] in protocols]
        if not here:
            continue
        mean = {key: fmean(record[key] for record in here) for key in names}
        gap = max(mean["full"] - mean["before"], 1e-9)
        closed = [100 * (mean[key] - mean["before"]) / gap for key in ("suggested", "random")]
        cells = [f"{mean[key]:.1f}" for key in names[:4]]
        cells += [f"{part:.0f} %" for part in closed] + [f"{mean[n]:.1f}" for n in names[4:]]
        lines.append(f"| {name} | {len(here)} | {' | '.join(cells)} |")
    seeds = 1 + max(record["task"]["seed"] for record in records)
    ran = f"Mean F1. {len(records)} cells are run, seeds 0 to {seeds - 1}"
    return "\n".join([*lines, "", f"{ran}; `python benchmarks/suggestions.py`."])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("protocols", nargs="*", help="half, plot; else both")
    parser.add_argument("--render", action="store_true", help="only put the table into the docs")
    options = parser.parse_args()
    if not options.render:
        run(options.data_root, options.seeds, options.protocols or MECHANISMS)
    done = [record for record in read() if "failed" not in record]
    insert(Path("docs/results.md"), "suggestions", table(done))
    print(table(done))


if __name__ == "__main__":
    main()
