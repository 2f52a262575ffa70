"""How long a cell will take and how much memory it needs, before it is run."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.results import Record, Results
from thonecls.methods import METHODS
from thonecls.train import TrainConfig

# Measured on two cores of a server (benchmarks/step.py), until the machine's own records tell.
CORE_SECONDS = 45e-6  # of one core, for a pixel in a step of student and teacher
SPECTRAL = 60.0  # seconds that a method without a network takes at most, roughly
SETTLED = 0.3  # of the epochs that a preset allows are needed before training settles
STARTED = 0.6e9  # bytes of a process before it trains
BYTES = 4600  # of memory for a pixel that a step sees
ALONE = 0.75  # of a step's time is left without a teacher


class Estimate(NamedTuple):
    """Seconds and bytes."""

    seconds: float
    memory: float


def estimate(cell: Cell, pixels: int, threads: int, results: Results) -> Estimate:
    """What a cell on a scene of so many pixels will need, by what earlier ones have needed."""
    if not METHODS[cell.method].network:
        return Estimate(SPECTRAL, STARTED + 12.0 * pixels * 200)
    config = config_of(cell, prior=0.5)
    rates = [rate for r in results.records.values() if (rate := _rate(r)) is not None]
    rate = statistics.median(rates) if rates else CORE_SECONDS
    epochs = config.epochs * (SETTLED if config.settle else 1)
    work = epochs * _work_of_epoch(config, pixels)
    seen = min(pixels, config.budget)
    return Estimate(rate * work / threads, STARTED + BYTES * config.width * seen)


def _work_of_epoch(config: TrainConfig, pixels: int) -> float:
    """Pixels times steps, less where the network is narrower or alone."""
    teacher = 1.0 if config.beta else ALONE
    return config.batches * min(pixels, config.budget) * config.width**2 * teacher


def _rate(record: Record) -> float | None:
    """Seconds of one core for a pixel in a step, from a cell that is done."""
    facts = record.facts
    epochs = len(facts.get("curves", {}).get("loss", ()))
    if not (record.done and epochs and facts.get("pixels")):
        return None
    work = epochs * _work_of_epoch(TrainConfig(**facts["config"]), facts["pixels"])
    return float(facts["training_seconds"] * facts["machine"]["threads"] / work)
