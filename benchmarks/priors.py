"""Class priors of Indian Pines by every estimator, and what they take.

    python benchmarks/priors.py [--rounds 3]

From the 100 positive and 4000 unlabeled spectra of the paper's split. KM1 and KM2 are found
together; the seconds of either are those of both, by the clock, the median of the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import cyclopts

from measure import publish
from thonecls.datasets import indian_pines
from thonecls.methods import label_spectra
from thonecls.priors import estimate_priors
from thonecls.splits import paper_split

TARGETS = (2, 11)
TOGETHER = (("km1", "km2"), ("bbe",))


def compare(target: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for every estimator."""
    data = indian_pines()
    spectra = label_spectra(data.scene, paper_split(data.truth, target).labels)
    for names in TOGETHER:
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            for interval in seconds:
                began = time.perf_counter()
                priors = estimate_priors(names, *spectra, interval=interval)
                seconds[interval].append(time.perf_counter() - began)
        for prior in priors:
            yield {
                "class": target,
                "true share": float((data.truth == target).mean()),
                "estimator": prior.name,
                "estimate": prior.value,
                "90 % interval": f"{prior.low:.3f} to {prior.high:.3f}",
                "s": statistics.median(seconds[True]),
                "s without interval": statistics.median(seconds[False]),
            }


def main(*, rounds: int = 3) -> None:
    """Measure every estimator on both classes."""
    publish("priors", [row for target in TARGETS for row in compare(target, rounds)])


if __name__ == "__main__":
    cyclopts.run(main)
