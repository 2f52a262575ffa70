"""PU Extra Trees, plain Python (tests/reference_trees.py) against `thonecls.images.trees`.

    python benchmarks/trees.py [--trees 10]

Both grow forests of as many trees on the same samples and are scored, in % of right answers, on
the same unseen ones. A plain tree and one of our forests take turns; the seconds are of the
processor, from medians. Our accuracy is over as many seeds; its std is the noise of a forest.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from numpy.typing import NDArray

from measure import publish
from thonecls.images.trees import PUExtraTreesClassifier

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference_trees as reference

SIZES = ((100, 2_000, 25), (1_000, 20_000, 100))  # positives, unlabeled samples, features
PRIOR = 0.3
UNSEEN = 4_000
TOLD = 10  # features that tell the class, by this much
SHIFT = 1.0


def draw(truth: NDArray[np.bool_], features: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Features of samples of a class: normal, and shifted where they tell it."""
    x = rng.normal(size=(truth.size, features))
    x[truth, :TOLD] += SHIFT
    return x.astype(np.float32)


def clocked(seconds: list[float], work: Callable[[], Any]) -> Any:
    """What `work` gives; its processor time goes to a list."""
    started = time.process_time()
    result = work()
    seconds.append(time.process_time() - started)
    return result


def compare(positives: int, unlabeled: int, features: int, trees: int) -> dict[str, Any]:
    """One row of the table."""
    rng = np.random.default_rng(0)
    labels = np.arange(positives + unlabeled) < positives
    x = draw(labels | (rng.random(labels.size) < PRIOR), features, rng)
    answer = rng.random(UNSEEN) < PRIOR
    unseen = draw(answer, features, rng)

    rows, marks, setting = x.tolist(), labels.tolist(), reference.Setting(PRIOR)
    source, plain, accuracies = random.Random(0), [], []
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for seed in range(trees):
        grow = partial(reference.fit, rows, marks, setting, source, trees=1)
        plain += clocked(times["plain"], grow)
        ours = PUExtraTreesClassifier(PRIOR, n_estimators=trees, random_state=seed)
        clocked(times["ours"], partial(ours.fit, x, labels))
        accuracies.append(np.mean(ours.predict(unseen) == answer))
    said = [reference.predict(plain, row) for row in unseen.tolist()]
    forest = {
        "plain": trees * statistics.median(times["plain"]),
        "ours": statistics.median(times["ours"]),
    }
    return {
        "samples": f"{positives}+{unlabeled}",
        "features": features,
        "trees": trees,
        "plain s": forest["plain"],
        "ours s": forest["ours"],
        "ratio": forest["plain"] / forest["ours"],
        "plain %": 100 * float(np.mean(said == answer)),
        "ours %": 100 * float(np.mean(accuracies)),
        "std": 100 * float(np.std(accuracies, ddof=1)),
    }


def main(*, trees: int = 10) -> None:
    """Measure all sizes."""
    publish("trees", [compare(*size, trees) for size in SIZES])


if __name__ == "__main__":
    cyclopts.run(main)
