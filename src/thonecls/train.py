"""Training on a scene: from a cube and a few positive pixels to a `Model`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike, NDArray

from thonecls.checkpoint import EVERY
from thonecls.config import PAPER, TrainConfig
from thonecls.ground import SceneGround
from thonecls.loop import Progress, check_prior, run
from thonecls.model import Model, resolve_device
from thonecls.scene import Source
from thonecls.splits import Labels

OnEpoch = Callable[[Progress[Model]], None]
OnStep = Callable[[Progress[Model]], bool | None]


def fit(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig = PAPER,
    generator: torch.Generator,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = EVERY,
    resume: bool = False,
) -> Model:
    """Train the network on one scene and return its teacher (without one, itself) as a `Model`.

    scene: a scene, a source, or a (C, H, W) array; labels: `Labels`, or positives as an (H, W)
    mask or (n, 2) row/column pairs. A scene of more than `config.budget` pixels is trained on
    sheets of its windows, one a step, with unlabeled pixels drawn from them. The same generator
    state gives the same bits on the same machine. `on_epoch` and `on_step` report progress; when
    `on_step` returns True, training ends there with a usable model. With a `checkpoint` path the
    state is kept there every so many seconds and at the end; with `resume`, training goes on from
    it if it exists, to the same bits.
    """
    return run(
        prepare(scene, labels, config, generator),
        config=config,
        generator=generator,
        on_epoch=on_epoch,
        on_step=on_step,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )


def prepare(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    config: TrainConfig,
    generator: torch.Generator,
) -> SceneGround:
    """The ground for a training with these settings."""
    check_prior(config)
    return SceneGround.prepare(
        scene,
        labels,
        unlabeled=config.unlabeled,
        budget=config.budget,
        batches=config.batches,
        device=resolve_device(config.device),
        width=config.width,
        generator=generator,
    )
