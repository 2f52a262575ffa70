"""Where the stopping rule of the fast preset ends training on the Houston 2018 crop.

    python benchmarks/settle.py FOLDER_OF_HOUSTON_DATASET_MAT

Trains each class on for 30 epochs without stopping, and compares F1 where the rule would have
stopped with the best and the last epoch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cyclopts
import numpy as np
import torch
from numpy.typing import NDArray

from measure import publish
from thonecls.datasets import houston_crop
from thonecls.method.config import FAST
from thonecls.method.fit import fit
from thonecls.method.loop import has_settled
from thonecls.method.model import Model
from thonecls.method.progress import Progress
from thonecls.metrics import evaluate
from thonecls.splits import paper_split


def main(
    data_root: Path, *, targets: tuple[int, ...] = (5, 12, 2, 9), epochs: int = 30, seed: int = 0
) -> None:
    """Train every class and print where the rule stops."""
    data = houston_crop(data_root)
    scene, truth = data.scene, data.truth
    table = []
    for target in targets:
        split = paper_split(truth, target)
        f1: list[float] = []
        share: list[float] = []

        def record(
            progress: Progress[Model],
            target: int = target,
            test: NDArray[np.bool_] = split.test,
            f1: list[float] = f1,
            share: list[float] = share,
        ) -> None:
            probability = progress.snapshot().score(scene)
            f1.append(evaluate(probability, truth == target, test).f1)
            share.append(progress.metrics.share)

        fit(
            scene,
            split.labels,
            config=replace(FAST, epochs=epochs, settle=0.0),
            generator=torch.Generator().manual_seed(seed),
            on_epoch=record,
        )
        ends = (e for e in range(1, epochs + 1) if has_settled(share[:e], FAST.settle))
        stop = next(ends, epochs)
        table.append(
            {
                "class": target,
                "stops after": stop,
                "F1 there": f1[stop - 1],
                "best F1": max(f1),
                "last F1": f1[-1],
            }
        )
    publish("settle", table)


if __name__ == "__main__":
    cyclopts.run(main)
