"""Methods on FreeOCNet: settings of the one training loop, and the two that need more than that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from numpy.typing import ArrayLike

from thonecls.method.config import TrainConfig
from thonecls.method.fit import LabelledData, fit_on, prepare
from thonecls.method.loop import run
from thonecls.method.model import Model
from thonecls.method.procedure import Control
from thonecls.methods import ncpu, pan, vpu
from thonecls.scene import Source
from thonecls.splits import Labels


def _twin(data: LabelledData, **how: Any) -> Model:
    """NcPU: the data's networks come as twins; how: as for `run`."""
    procedure = ncpu.NcPU().procedure
    model: Model = run(ncpu.TwinData(data), procedure=procedure, **how)
    return model


# What trains in another way than `fit_on`, called with data and the rest of `train`.
TRAINERS: dict[str, Callable[..., Model]] = {
    "vpu": vpu.train,
    "ncpu": _twin,
    **{game: partial(pan.train, game) for game in pan.GAMES},
}


def train(
    method: str,
    scene: Source,
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[Model] | None = None,
) -> Model:
    """Train by a method of the catalogue; config: as its `configure` gives it; else as `fit`."""
    if method in pan.GAMES:
        pan.check(method, config)  # before the scene is read
    if method == "ncpu":
        ncpu.check(config)
    data = prepare(scene, labels, config, generator)
    train_on = TRAINERS.get(method, fit_on)
    return train_on(data, config=config, generator=generator, control=control)
