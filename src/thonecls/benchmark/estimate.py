"""How long a cell will take and how much memory it needs, before it is run."""

from __future__ import annotations

import statistics

from thonecls.benchmark.plan import Cell, config_of, methods_for
from thonecls.benchmark.records import Record, Results
from thonecls.benchmark.targets import is_images, pixels_of
from thonecls.images import image_spec
from thonecls.method.config import TrainConfig
from thonecls.methods.costs import STARTED, TRAINING, Cost, training_cost, work_of_epoch

SPECTRAL = 60.0  # seconds that a method without a network takes at most, roughly
TREES = 0.2e-6  # seconds of one core for a value of an image in the trees
# By network (benchmarks/images.py): seconds of one core for an image in a step, and bytes.
PER_IMAGE = {"cifar": (4.1e-3, 1.2e6), "stl": (2.7e-3, 0.9e6), "table": (0.1e-3, 0.1e6)}
SEEN = 1000  # images in a step
# Passes over a step's images and phases, where a method has more than one of either.
PASSES = {"vpu": 1.5, "t-honecls": 1.3, "dist-pu": 0.75, "p3mix-e": 1.7, "p3mix-c": 1.4}


def estimate(cell: Cell, threads: int, results: Results) -> Cost:
    """What a cell will need; on a scene by what earlier ones have needed."""
    if is_images(cell.dataset):
        return _of_images(cell, threads)
    pixels = pixels_of(cell.dataset)
    if not methods_for(cell.dataset)[cell.method].network:
        return Cost(SPECTRAL, STARTED + 12.0 * pixels * 200)
    rates = [rate for r in results.records.values() if (rate := _rate(r)) is not None]
    rate = statistics.median(rates) if rates else TRAINING
    return training_cost(config_of(cell, prior=0.5), pixels, threads, rate)


def _of_images(cell: Cell, threads: int) -> Cost:
    spec, config = image_spec(cell.dataset), config_of(cell, prior=0.5)
    if not methods_for(cell.dataset)[cell.method].network:
        values = config.unlabeled * spec.shape[0] * spec.shape[1] * spec.shape[2]
        return Cost(TREES * values / threads, STARTED + 4.0 * values)
    seconds, held = PER_IMAGE[spec.network]
    images = config.epochs * config.batches * SEEN * PASSES.get(cell.method, 1.0)
    return Cost(seconds * images / threads, STARTED + held * SEEN)


def _rate(record: Record) -> float | None:
    """Seconds of one core for a pixel in a step, from a cell on a scene that is done."""
    facts = record.facts
    epochs = len(facts.get("curves", {}).get("loss", ()))
    if not (record.done and epochs and facts.get("pixels")):
        return None
    work = epochs * work_of_epoch(TrainConfig(**facts["config"]), facts["pixels"])
    return float(facts["training_seconds"] * facts["machine"]["threads"] / work)
