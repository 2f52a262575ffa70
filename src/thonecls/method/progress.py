"""What is told of a training while it runs and afterwards, and how it is steered."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch

from thonecls.method.checkpoint import State
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig
from thonecls.method.procedure import B, M, M_co, Procedure, TrainingData
from thonecls.version import __version__, commit

T = TypeVar("T")


class EpochMetrics(NamedTuple):
    """Means over an epoch's steps.

    share: the mean probability of the unlabeled items, by the teacher where it is evaluated;
    gradient_norm: before clipping.
    """

    loss: float
    positive: float
    unlabeled: float
    consistency: float
    share: float
    gradient_norm: float


@dataclass(frozen=True)
class Progress(Generic[M_co]):
    """Where training stands: epoch and step count from 1; metrics are means since the epoch began.

    Every step sees so many `pixels`, all of a scene within the budget; snapshot() gives the model
    as it is now.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    metrics: EpochMetrics
    pixels: int
    snapshot: Callable[[], M_co]

    @property
    def figures(self) -> EpochMetrics:
        """The metrics, by their name in earlier versions."""
        return self.metrics


def moved(
    told: Callable[[Progress[M]], T] | None, before: int, epochs: int
) -> Callable[[Progress[M]], T] | None:
    """Tell of one of several trainings as after so many epochs, of so many in all."""
    if told is None:
        return None
    return lambda progress: told(replace(progress, epoch=before + progress.epoch, epochs=epochs))


@dataclass(frozen=True)
class Control(Generic[M]):
    """How a training is watched and kept.

    `on_epoch` and `on_step` report progress; when `on_step` returns True, training ends there with
    a usable model. With a `checkpoint` path the state is kept there every so many seconds and at
    the end; with `resume`, training goes on from it if it exists, to the same bits.
    """

    on_epoch: Callable[[Progress[M]], None] | None = None
    on_step: Callable[[Progress[M]], bool | None] | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = CHECKPOINT_SECONDS
    resume: bool = False


def fingerprint(
    config: TrainConfig, data: TrainingData[B, Any], procedure: Procedure[B], start: State
) -> str:
    """Tells one training from another: settings, data, procedure, network and random numbers."""
    digest = hashlib.sha256(json.dumps(asdict(config)).encode())
    shapes = {name: list(value.shape) for name, value in start.student.state_dict().items()}
    digest.update(json.dumps([procedure.name, shapes]).encode())
    digest.update(start.shuffle.numpy().tobytes())
    for piece in data.identity:
        digest.update(piece)
    return digest.hexdigest()


def history_of(state: State) -> dict[str, list[float]]:
    """Every figure by epoch."""
    columns = (
        zip(*state.history, strict=True) if state.history else [[]] * len(EpochMetrics._fields)
    )
    return {name: list(column) for name, column in zip(EpochMetrics._fields, columns, strict=True)}


def training_facts(config: TrainConfig, data: TrainingData[Any, Any]) -> dict[str, Any]:
    """What a model remembers of its training, ready for JSON."""
    return {
        "config": asdict(config),
        **data.facts(),
        "versions": {"thonecls": __version__, "commit": commit(), "torch": torch.__version__},
        "python": platform.python_version(),
    }
