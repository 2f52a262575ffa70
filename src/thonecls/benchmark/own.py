"""Records of methods and scenes of one's own, which the catalogues do not have."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.benchmark.plan import Cell, Protocol
from thonecls.benchmark.run import stamp
from thonecls.datasets import Dataset
from thonecls.errors import ConfigError
from thonecls.files import write_atomically
from thonecls.metrics import evaluate, evaluate_pu
from thonecls.scene import Scene
from thonecls.splits import PROTOCOLS, Labels

Score = Callable[[Scene, Labels, int], NDArray[np.float32]]
UNLABELED = 4000  # pixels that every method is given, as in the paper


def own_record(
    score: Score,
    data: Dataset,
    target: int,
    *,
    method: str,
    protocol: Protocol = "resampled",
    seed: int = 0,
    positives: int = Cell.positives,
) -> dict[str, Any]:
    """Run a method on a class and score it as `thonecls benchmark` does; the line of a record file.

    score: called with scene, labels and seed, gives an (H, W) map from 0 to 1, NaN on nodata, above
    0.5 where the class is; any method of the catalogue is one. data: its name and the target are
    the cell's; so labels of a scene that thonecls has are those that every other method got.
    """
    seeded = {} if protocol == "paper" else {"seed": seed}
    split = PROTOCOLS[protocol](
        data.truth,
        target,
        positives=positives,
        unlabeled=UNLABELED,
        valid=data.scene.valid,
        **seeded,
    )
    began = time.perf_counter()
    probability = score(data.scene, split.labels, seed)
    seconds = time.perf_counter() - began
    if probability.shape != data.truth.shape:
        raise ConfigError(
            f"a method gives a map of the scene's shape, {data.truth.shape}. "
            f"Got {probability.shape} instead"
        )
    of_class = data.truth == target
    unlabeled = probability.flat[split.labels.unlabeled]
    cell = {"dataset": data.name, "target": target, "method": method, "protocol": protocol}
    counts = {"positives": positives} if positives != Cell.positives else {}
    return {
        "cell": {**cell, "seed": seed, **counts},
        "scores": asdict(evaluate(probability, of_class, split.test)),
        "pu": asdict(evaluate_pu(probability[split.test & of_class], unlabeled)),
        "pixels": int(of_class.size),
        "training_seconds": round(seconds, 3),
        "seconds": round(seconds, 1),
        **stamp(),
    }


def write_records(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    *,
    methods: Iterable[Mapping[str, Any]] = (),
    scenes: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Write a record file: cards of methods and scenes that thonecls lacks, then records."""
    lines = [{"method": card} for card in methods] + [{"scene": card} for card in scenes]
    text = "\n".join(json.dumps(line) for line in [*lines, *records])
    write_atomically(path, f"{text}\n".encode())
