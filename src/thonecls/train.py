"""Training on a scene: from a cube and a few positive pixels to a `Model`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self

import torch
from numpy.typing import ArrayLike, NDArray

from thonecls.checkpoint import EVERY
from thonecls.config import PAPER, TrainConfig
from thonecls.ground import CollageGround, Cut, SceneGround
from thonecls.loop import Ground, Progress, check_prior, run
from thonecls.model import Model, resolve_device
from thonecls.scene import Source
from thonecls.splits import Labels


class LabelGround(Ground[Any, Model], Protocol):
    """The ground of a scene, whole or as collages, whose labels can be parted."""

    def all_labels(self) -> list[Any]:
        """Batches that hold every positive once."""

    def split(self, cut: Cut) -> tuple[Self, Self]:
        """The ground with some of its labels, and with the others."""


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
    mask or (n, 2) row/column pairs. Every step sees a collage of the scene's blocks, or, where
    `config.block` is 0, the whole scene. The same generator state gives the same bits on the same
    machine. `on_epoch` and `on_step` report progress; when `on_step` returns True, training ends
    there with a usable model. With a `checkpoint` path the state is kept there every so many
    seconds and at the end; with `resume`, training goes on from it if it exists, to the same bits.
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
) -> LabelGround:
    """The ground for a training with these settings."""
    check_prior(config)
    device = resolve_device(config.device)
    if config.block:
        return CollageGround.prepare(
            scene,
            labels,
            block=config.block,
            label_blocks=config.label_blocks,
            random_blocks=config.random_blocks,
            components=config.components,
            device=device,
            width=config.width,
            generator=generator,
        )
    return SceneGround.prepare(
        scene,
        labels,
        unlabeled=config.unlabeled,
        budget=config.budget,
        device=device,
        width=config.width,
        generator=generator,
    )
