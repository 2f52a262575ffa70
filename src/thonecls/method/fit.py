"""Training on a scene: from a cube and a few positive pixels to a `Model`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from thonecls.method.config import CHECKPOINT_SECONDS, PAPER, TrainConfig
from thonecls.method.data import CollageData, LabelledData, SceneData
from thonecls.method.loop import run
from thonecls.method.members import fold_checkpoint, join, loss_on
from thonecls.method.model import Model
from thonecls.method.procedure import Procedure, check_prior
from thonecls.method.progress import Control, Progress, moved
from thonecls.scene import Source
from thonecls.splits import Labels, fold_labels

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
    checkpoint_every: float = CHECKPOINT_SECONDS,
    resume: bool = False,
) -> Model:
    """Train on one scene and return a `Model`: the teacher, or the student where there is none.

    scene: a scene, a source, or a (C, H, W) array; labels: `Labels`, or positives as an (H, W)
    mask or (n, 2) row/column pairs. Every step sees a collage of the scene's blocks, or, where
    `config.block` is 0, the whole scene. With `config.members` so many networks are trained, each
    without a part of the labels, and the model is all of them. The same generator state gives the
    same bits on the same machine. `on_epoch` and `on_step` report progress; when `on_step` returns
    True, training ends there with a usable model. With a `checkpoint` path the state is kept there
    every so many seconds and at the end; with `resume`, training goes on from it if it exists, to
    the same bits.
    """
    return fit_on(
        prepare(scene, labels, config, generator),
        config=config,
        generator=generator,
        control=Control(on_epoch, on_step, checkpoint, checkpoint_every, resume),
    )


def fit_on(
    data: LabelledData,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[Model] | None = None,
) -> Model:
    """As `fit`, on data that are prepared."""
    control = control or Control()
    if not config.members or len(data.positives) < 2 * config.members:
        return run(data, config=config, generator=generator, control=control)
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    fold = fold_labels(data.positives, data.shape, config.members, rng)
    seeds = torch.randint(2**62, (config.members,), generator=generator).tolist()
    models: list[Model] = []
    epochs = config.members * config.epochs
    for number, seed in enumerate(seeds):
        kept, held = (data.only(np.flatnonzero(part)) for part in (fold != number, fold == number))
        models.append(
            run(
                kept,
                config=config,
                generator=torch.Generator().manual_seed(seed),
                control=replace(
                    control,
                    on_epoch=moved(control.on_epoch, number * config.epochs, epochs),
                    on_step=moved(control.on_step, number * config.epochs, epochs),
                    checkpoint=fold_checkpoint(control.checkpoint, number),
                ),
                procedure=Procedure(name="held out", validation_loss=partial(loss_on, held)),
            )
        )
        if not models[-1].training["finished"]:
            break
    return join(data, models, fold)


def prepare(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    config: TrainConfig,
    generator: torch.Generator,
) -> LabelledData:
    """The data for a training with these settings."""
    check_prior(config)
    kind = CollageData if config.block else SceneData
    return kind.prepare(scene, labels, config, generator)
