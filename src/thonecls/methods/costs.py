"""What training and mapping cost, before they begin: seconds and bytes."""

from __future__ import annotations

import os
from typing import NamedTuple

from thonecls.method.config import TrainConfig

# Measured on two cores of a server (benchmarks/step.py, benchmarks/scale.py).
TRAINING = 45e-6  # seconds of one core, for a pixel in a step of student and teacher
SCORING = 14e-6  # seconds of one core, for a pixel that is mapped
SETTLED = 0.3  # of the epochs that a preset allows are needed before training settles
ALONE = 0.75  # of a step's time is left without a teacher
STARTED = 0.6e9  # bytes of a process before it works
BYTES = 4600  # of memory for a pixel that a step sees
HELD = 2**21  # pixels of a scene that are held for collages, as components
TILE = 1.5e9  # bytes that mapping takes at most
# The density ratio, measured on two cores of a server, where labels lie all over; else it takes
# less than that.
FITTED = 12.0  # seconds for a fit, more from a large file
RATIO_BASE, RATIO_BAND = 38e-6, 0.75e-6  # seconds of one core for a pixel, and for each component
# By a small network on single spectra, measured likewise.
SPECTRA_FITTED = 10.0  # seconds of one core, at most
SPECTRA_BASE, SPECTRA_BAND = 4e-6, 0.06e-6  # seconds of one core for a pixel, and for each band
COMPONENTS = 60  # that a pixel has at most


class Networks(NamedTuple):
    """What a method trains and looks through, beside what the settings of the loop tell.

    trained: networks in a row, each for all epochs; watched: trainings of one network in whose
    steps another one looks at the same pixels, without a gradient.
    """

    trained: int = 1
    watched: float = 0.0


# By method, where there is more than the one network; the rest is in the settings ('beta').
NETWORKS = {
    "pan": Networks(watched=1.0),  # the player whose turn it is not
    "pan-reference": Networks(watched=1.0),
    "ncpu": Networks(watched=1.0),  # the average that gives labels
    "pul-cpbf": Networks(watched=1.0),  # the network with which the warm-up ended
    "pubn": Networks(trained=2, watched=1.0),  # the first weighs what the second sees
    "dist-pu-full": Networks(watched=0.5),  # pseudo-labels, in the second half
    "p3mix-e": Networks(watched=1.0),  # early learning's average
}


class Cost(NamedTuple):
    """Seconds and bytes."""

    seconds: float
    memory: float


def usable_cores() -> int:
    """Cores that this process may compute on: no more than OMP_NUM_THREADS, which torch obeys."""
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(allowed, int(told)) if told.isdecimal() and int(told) else allowed


def on_cores(cores: int) -> str:
    """So many, in words.

    >>> on_cores(1), on_cores(2)
    ('1 core', '2 cores')
    """
    return f"{cores} core{'' if cores == 1 else 's'}"


def pixels_of_step(config: TrainConfig, pixels: int) -> int:
    """How many pixels a step sees of a scene of so many."""
    return config.block**2 * (config.label_blocks + config.random_blocks) or pixels


def work_of_epoch(config: TrainConfig, pixels: int, method: str = "") -> float:
    """Pixels times steps of an epoch, less where the network is narrower or alone."""
    trained, watched = NETWORKS.get(method, Networks())
    share = 1.0 if config.beta else ALONE + (1 - ALONE) * watched / trained
    return config.batches * pixels_of_step(config, pixels) * config.width**2 * share


def training_cost(
    config: TrainConfig, pixels: int, threads: int, rate: float = TRAINING, *, method: str = ""
) -> Cost:
    """Of training on a scene of so many pixels; rate: seconds of a core for a pixel in a step.

    method: by name, of which `NETWORKS` knows what the settings do not tell.
    """
    epochs = config.epochs * (SETTLED if config.settle else 1) * max(1, config.members)
    epochs *= NETWORKS.get(method, Networks()).trained
    seconds = rate * epochs * work_of_epoch(config, pixels, method) / threads
    held = 4 * config.components * min(pixels, HELD) if config.block else 0
    return Cost(seconds, STARTED + BYTES * config.width * pixels_of_step(config, pixels) + held)


def mapping_cost(pixels: int, threads: int, models: int = 1) -> Cost:
    """Of mapping a scene of so many pixels."""
    return Cost(SCORING * pixels * models / threads, STARTED + min(TILE, BYTES * pixels))


class Costs(NamedTuple):
    """Of training and of mapping, and in words what it depends on."""

    training: Cost
    mapping: Cost
    how: str


def network_costs(
    method: str, config: TrainConfig, pixels: int, bands: int, threads: int, folds: int = 0
) -> Costs:
    """Of training a method's network on a scene, with folds by which the map is judged."""
    training = training_cost(config, pixels, threads, method=method)
    how = "on blocks of the scene" if config.block else "on the whole scene"
    return Costs(training, mapping_cost(pixels, threads), f"{how}; {judging(training, folds)}")


def ratio_costs(
    method: str, config: TrainConfig, pixels: int, bands: int, threads: int, folds: int = 0
) -> Costs:
    """Of fitting and of mapping by the density ratio."""
    a_pixel = RATIO_BASE + RATIO_BAND * min(bands, COMPONENTS)
    mapping = Cost(a_pixel * pixels / threads, STARTED + 0.6e9)
    return Costs(Cost(FITTED, STARTED + 0.4e9), mapping, "by the density ratio")


def spectra_costs(
    method: str, config: TrainConfig, pixels: int, bands: int, threads: int, folds: int = 0
) -> Costs:
    """Of learning and of mapping by a small network or by trees on single spectra."""
    mapping = Cost((SPECTRA_BASE + SPECTRA_BAND * bands) * pixels / threads, STARTED)
    training = Cost(SPECTRA_FITTED, STARTED)
    return Costs(training, mapping, f"on single spectra; {judging(training, folds)}")


def judging(training: Cost, folds: int) -> str:
    """What it takes besides to judge a network's map, in words.

    >>> judging(Cost(200.0, 1e9), 3)
    '10 min more to judge the map by labels left out (none with 0 folds)'
    >>> judging(Cost(200.0, 1e9), 0)
    'nothing to judge the map (3 folds would)'
    """
    if not folds:
        return "nothing to judge the map (3 folds would)"
    more = in_words(folds * training.seconds)
    return f"{more} more to judge the map by labels left out (none with 0 folds)"


def in_words(seconds: float) -> str:
    """A duration as people say it.

    >>> in_words(0.2), in_words(42), in_words(600), in_words(3 * 3600)
    ('1 s', '42 s', '10 min', '3.0 h')
    """
    if seconds < 90:
        return f"{max(1, seconds):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
