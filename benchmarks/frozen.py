"""On how many collages the statistics of a model must rest.

    python benchmarks/frozen.py [DATA]

A network is trained on collages of a large scene; then the middle of it is mapped with statistics
frozen over few collages and over many, none of which are the same, and the maps are compared.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cyclopts
import numpy as np
import torch

from measure import publish
from thonecls.datasets import load_dataset
from thonecls.method.config import COLLAGE
from thonecls.method.data import CollageData
from thonecls.method.fit import fit_on
from thonecls.scene import FloatArray
from thonecls.splits import resampled_split

MANY, DRAWS = 384, 3  # collages that stand for the whole scene, and draws of fewer
SIDE = 384  # of what is mapped


def main(
    data_root: Path = Path("data"),
    *,
    dataset: str = "sentinel2",
    target: int = 2,
    counts: tuple[int, ...] = (3, 6, 12, 24, 48, 96),
) -> None:
    """Train once, freeze often."""
    data = load_dataset(dataset, data_root)
    labels = resampled_split(data.truth, target, seed=0, valid=data.scene.valid).labels
    config = replace(COLLAGE, members=0)
    generator = torch.Generator().manual_seed(0)
    seen = CollageData.prepare(data.scene, labels, config, generator)
    net = fit_on(seen, config=config, generator=generator).net
    top, left = ((size - SIDE) // 2 for size in data.scene.shape)
    middle = data.scene.read(slice(top, top + SIDE), slice(left, left + SIDE))

    def mapped(first: int, count: int) -> FloatArray:
        return seen.model(net, {}, range(first, first + count)).score(middle)

    whole = mapped(0, MANY)
    table = []
    for count in counts:
        changes = [
            np.abs(mapped(MANY + draw * count, count) - whole)[middle.valid]
            for draw in range(DRAWS)
        ]
        table.append(
            {
                "collages": count,
                "mean change": float(np.mean([change.mean() for change in changes])),
                "of 99 % at most": float(np.max([np.quantile(c, 0.99) for c in changes])),
                "at most": float(np.max([change.max() for change in changes])),
            }
        )
        print(table[-1], flush=True)
    publish("frozen-collages", table)


if __name__ == "__main__":
    cyclopts.run(main)
