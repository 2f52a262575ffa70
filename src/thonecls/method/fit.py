"""Training on a scene: from a cube and a few positive pixels to a `Model`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from thonecls.method.config import CHECKPOINT_SECONDS, PAPER, TrainConfig
from thonecls.method.data import CollageData, SceneData
from thonecls.method.loop import run
from thonecls.method.losses import variational
from thonecls.method.model import Model, resolve_device
from thonecls.method.procedure import Control, Procedure, Progress, TrainingData, check_prior
from thonecls.scene import Source
from thonecls.splits import Labels, fold_labels

OnEpoch = Callable[[Progress[Model]], None]
OnStep = Callable[[Progress[Model]], bool | None]
Scores = NDArray[np.float64]
T = TypeVar("T")
FURTHEST = 0.02  # a cut is never nearer to 0 or 1


class LabelledData(TrainingData[Any, Model], Protocol):
    """The data of a scene, whole or as collages."""

    @property
    def positives(self) -> NDArray[np.int64]:
        """Flat indices in the scene, by which labels are numbered."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the scene."""

    def all_logits(self, net: nn.Module) -> tuple[Tensor, Tensor]:
        """Logits of all positives, and of the unlabeled pixels beside them."""

    def features(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """What the network's head reads at the positive and unlabeled pixels of a batch."""

    def hold_out(self, generator: torch.Generator) -> tuple[Self, Self]:
        """Without a tenth of its labels, and with those alone."""

    def only(self, positives: NDArray[np.int64]) -> Self:
        """The data with some of its positives, by their number."""


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
    for number, seed in enumerate(seeds):
        kept, held = (data.only(np.flatnonzero(part)) for part in (fold != number, fold == number))
        models.append(
            run(
                kept,
                config=config,
                generator=torch.Generator().manual_seed(seed),
                control=replace(
                    control,
                    on_epoch=_later(control.on_epoch, number, config),
                    on_step=_later(control.on_step, number, config),
                    checkpoint=fold_checkpoint(control.checkpoint, number),
                ),
                procedure=Procedure(name="held out", validation_loss=partial(loss_on, held)),
            )
        )
        if not models[-1].training["finished"]:
            break
    return _join(data, models, fold)


def fold_checkpoint(path: Path | None, number: int) -> Path | None:
    """Where the training of one of several networks is kept."""
    return None if path is None else path.with_stem(f"{path.stem}-fold-{number}")


def checkpoints(path: Path) -> list[Path]:
    """The checkpoint of a training that is there, and those of its folds."""
    return [*path.parent.glob(path.name), *path.parent.glob(f"{path.stem}-fold-*{path.suffix}")]


def _later(
    callback: Callable[[Progress[Model]], T] | None, number: int, config: TrainConfig
) -> Callable[[Progress[Model]], T] | None:
    """Tell of the progress of one network as of a part of the whole."""
    if callback is None:
        return None
    return lambda progress: callback(
        replace(
            progress,
            epoch=number * config.epochs + progress.epoch,
            epochs=config.members * config.epochs,
        )
    )


@torch.no_grad()
def loss_on(held: LabelledData, net: nn.Module, data: LabelledData) -> float:
    """The variational loss of a network on labels it has not seen, and unlabeled pixels."""
    return variational(*held.all_logits(net)).item()


@torch.no_grad()
def _join(data: LabelledData, models: list[Model], fold: NDArray[np.int64]) -> Model:
    """One model of all networks, with the cut that the labels left out tell.

    Each label is scored by the network that has not seen it. Those scores against the unlabeled
    pixels' say how much of the scene the class covers; the cut marks that much.
    """
    from thonecls.priors import bbe  # brings scikit-learn, which a single network does not need

    nets = [model.net for model in models]
    parts = [
        data.only(np.flatnonzero(fold == number)).all_logits(net) for number, net in enumerate(nets)
    ]
    positive, unlabeled = (
        torch.sigmoid(torch.cat(part)).numpy() for part in zip(*parts, strict=True)
    )
    prevalence = min(1.0, bbe(positive, unlabeled))
    together = torch.stack([torch.sigmoid(data.all_logits(net)[1]) for net in nets]).mean(0)
    threshold = float(np.quantile(together.numpy(), 1 - prevalence))
    threshold = min(max(threshold, FURTHEST), 1 - FURTHEST)
    facts = [model.training for model in models]
    first = facts[0]
    history = {
        name: [value for fact in facts for value in fact["history"][name]]
        for name in first["history"]
    }
    return replace(
        models[0],
        members=tuple((model.net, model.frozen) for model in models[1:]),
        threshold=threshold,
        training={
            **first,
            "positives": len(data.positives),
            "seconds": round(sum(fact["seconds"] for fact in facts), 3),
            "history": history,
            "epochs_by_fold": [len(fact["history"]["loss"]) for fact in facts],
            "selected_by_fold": [fact.get("selected_epoch") for fact in facts],
            "finished": len(models) == int(fold.max()) + 1 and all(f["finished"] for f in facts),
            "prevalence": prevalence,
        },
    )


def prepare(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    config: TrainConfig,
    generator: torch.Generator,
) -> LabelledData:
    """The data for a training with these settings."""
    check_prior(config)
    device = resolve_device(config.device)
    if config.block:
        return CollageData.prepare(
            scene,
            labels,
            block=config.block,
            label_blocks=config.label_blocks,
            random_blocks=config.random_blocks,
            gain=config.gain,
            components=config.components,
            device=device,
            width=config.width,
            generator=generator,
        )
    return SceneData.prepare(
        scene,
        labels,
        unlabeled=config.unlabeled,
        budget=config.budget,
        device=device,
        width=config.width,
        generator=generator,
    )
