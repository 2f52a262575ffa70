"""Methods on FreeOCNet: settings of the one training loop, and those that need more than that."""

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
from thonecls.method.procedure import Control, Procedure
from thonecls.methods import ncpu, pan, pubn, pusb, vpu
from thonecls.methods.dist_pu import DistPU
from thonecls.methods.lbe import LBE, with_propensity
from thonecls.methods.ncpu import NcPU, twins
from thonecls.methods.p3mix import P3MIX
from thonecls.scene import Source
from thonecls.splits import Labels


def _run(
    procedure: Procedure[Any],
    wrap: Callable[[LabelledData], Any] | None = None,
) -> Callable[..., Model]:
    """A training by a procedure, on the data or on what is made of them."""

    def train_on(data: LabelledData, **how: Any) -> Model:
        model: Model = run(wrap(data) if wrap else data, procedure=procedure, **how)
        return model

    return train_on


# What trains in another way than `fit_on`, called with data and the rest of `train`.
TRAINERS: dict[str, Callable[..., Model]] = {
    "vpu": vpu.train,
    "t-honecls-selected": vpu.train_selected,
    "pusb": pusb.train,
    "pubn": pubn.train,
    "ncpu": _run(NcPU().procedure, twins),
    "lbe": _run(LBE, with_propensity),
    "dist-pu-full": _run(DistPU().on_scenes),
    **{name: _run(p3mix.on_scenes) for name, p3mix in P3MIX.items()},
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
