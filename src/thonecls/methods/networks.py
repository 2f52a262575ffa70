"""Methods on FreeOCNet: settings of the one training loop, and the two that need more than that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike

from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig
from thonecls.method.fit import OnEpoch, OnStep, fit_on, prepare
from thonecls.method.model import Model
from thonecls.methods import pan, vpu
from thonecls.scene import Source
from thonecls.splits import Labels

# What trains in another way than `fit_on`, called with data and the rest of `train`.
TRAINERS: dict[str, Callable[..., Model]] = {
    "vpu": vpu.train,
    **{game: partial(pan.train, game) for game in pan.GAMES},
}


def train(
    method: str,
    scene: Source,
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    resume: bool = False,
) -> Model:
    """Train by a method of the catalogue; config: as its `configure` gives it; else as `fit`."""
    if method in pan.GAMES:
        pan.check(method, config)  # before the scene is read
    how: dict[str, Any] = {
        "config": config,
        "generator": generator,
        "on_epoch": on_epoch,
        "on_step": on_step,
        "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every,
        "resume": resume,
    }
    data = prepare(scene, labels, config, generator)
    return TRAINERS.get(method, fit_on)(data, **how)
