"""How long a cell will take and how much memory it needs, before it is run."""

from __future__ import annotations

import statistics

from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.results import Record, Results
from thonecls.config import TrainConfig
from thonecls.costs import STARTED, TRAINING, Cost, training_cost, work_of_epoch
from thonecls.methods import METHODS

SPECTRAL = 60.0  # seconds that a method without a network takes at most, roughly


def estimate(cell: Cell, pixels: int, threads: int, results: Results) -> Cost:
    """What a cell on a scene of so many pixels will need, by what earlier ones have needed."""
    if not METHODS[cell.method].network:
        return Cost(SPECTRAL, STARTED + 12.0 * pixels * 200)
    rates = [rate for r in results.records.values() if (rate := _rate(r)) is not None]
    rate = statistics.median(rates) if rates else TRAINING
    return training_cost(config_of(cell, prior=0.5), pixels, threads, rate)


def _rate(record: Record) -> float | None:
    """Seconds of one core for a pixel in a step, from a cell that is done."""
    facts = record.facts
    epochs = len(facts.get("curves", {}).get("loss", ()))
    if not (record.done and epochs and facts.get("pixels")):
        return None
    work = epochs * work_of_epoch(TrainConfig(**facts["config"]), facts["pixels"])
    return float(facts["training_seconds"] * facts["machine"]["threads"] / work)
