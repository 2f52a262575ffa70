"""Training on images and on tables: from positive and unlabeled items to an `ItemModel`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from thonecls.errors import ConfigError, LabelError
from thonecls.images.data import ImageData, ItemBatch, ItemModel, Rows, item_logits
from thonecls.images.networks import StagedNet
from thonecls.images.steps import PLAIN, adam, halved
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.losses import LOSSES
from thonecls.method.model import resolve_device
from thonecls.method.procedure import Procedure, TrainingData, check_prior, objective
from thonecls.method.progress import Control, Progress, moved
from thonecls.methods import vpu
from thonecls.methods.cpbf import CPBF, with_fence
from thonecls.methods.dist_pu import DistPU
from thonecls.methods.lbe import LBE, with_propensity
from thonecls.methods.ncpu import NcPU, twins
from thonecls.methods.p3mix import P3MIX
from thonecls.methods.views import VIEWS

MIX = 0.3  # weight of vPU's MixUp

# The paper's settings on CIFAR-10, where it states them, and else those of vPU, whose network,
# rate and number of epochs it took.
IMAGE = TrainConfig(
    epochs=50,
    batches=30,
    order=1,
    ema=False,
    beta=0.0,
    rate=3e-5,
    rate_decay=1.0,
    weight_decay=0.0,
    clip=1e9,
)


Phase = tuple[TrainConfig, Procedure[ItemBatch]]


@dataclass(frozen=True)
class Training:
    """What a method trains with, beside what all do.

    change: of `IMAGE`; sizes: positive and unlabeled items of a step, or, as one number, items of
    both kinds as they are to each other; procedure: how steps are made; phases: settings and
    procedures that follow each other, where there are several; data: what is made of the items,
    where that is another.
    """

    change: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[int, int] | int = (500, 500)
    procedure: Procedure[ItemBatch] = PLAIN
    phases: Callable[[TrainConfig], list[Phase]] | None = None
    data: Callable[[ImageData], TrainingData[Any, ItemModel]] | None = None


_P3MIX: dict[str, Any] = {"epochs": 200, "batches": 20, "rate": 5e-5, "weight_decay": 1e-6}
TRAININGS = {
    "taylor": Training(),
    "t-honecls": Training({"ema": True, "beta": 0.5}),
    # Ten times the rate of the others: no image is seen twice, so that it is not memorised.
    "t-honecls-views": Training({"ema": True, "beta": 0.5, "rate": 3e-4}, procedure=VIEWS),
    **{name: Training({"loss": name}) for name in LOSSES if name not in ("taylor", "vpu")},
    "tce": Training({"loss": "tce", "order": 6}),
    "oc": Training({"loss": "oc", "warmup": 20, "warmup_loss": "oc-warmup"}),
    "vpu": Training({"loss": "variational"}),
    "dist-pu": Training(
        {"loss": "dist-pu", "epochs": 60, "batches": 180, "rate": 5e-4, "weight_decay": 5e-3},
        sizes=256,
        phases=DistPU().phases,
    ),
    **{
        name: Training({"loss": "bce", **_P3MIX}, sizes=(512, 512), procedure=p3mix.procedure)
        for name, p3mix in P3MIX.items()
    },
    # Two views of each image, as above, and so the same rate.
    "ncpu": Training(
        {"loss": "bce", "ema": True, "warmup": 5, "rate": 3e-4},
        procedure=replace(
            NcPU(two_views=True).procedure, optimizer=adam, rate=partial(halved, times=2)
        ),
        data=twins,
    ),
    "lbe": Training(
        {"loss": "bce", "warmup": 2},
        procedure=replace(LBE, optimizer=adam, rate=partial(halved, times=2)),
        data=with_propensity,
    ),
    "pul-cpbf": Training(
        {"loss": "nnpu", "warmup": 5},
        procedure=replace(CPBF, optimizer=adam, rate=partial(halved, times=2)),
        data=with_fence,
    ),
}


def item_settings(method: str, **change: Any) -> TrainConfig:
    """The settings of a method; `change` overrides them."""
    if method not in TRAININGS:
        raise ConfigError(
            f"there is no method {method!r} for items: take one of {', '.join(TRAININGS)}"
        )
    return replace(IMAGE, **{**TRAININGS[method].change, **change})


def fit_items(
    method: str,
    positive: Rows,
    unlabeled: Rows,
    make: Callable[[], StagedNet],
    *,
    config: TrainConfig,
    generator: torch.Generator,
    sizes: tuple[int, int] | None = None,
    mix: float = MIX,
    held_out: tuple[Rows, Rows] | None = None,
    control: Control[ItemModel] | None = None,
) -> ItemModel:
    """Train a network on items by one of `TRAININGS`.

    make: a new network; config: as `item_settings` gives it; sizes: positive and unlabeled items
    of a step, else those of the method; mix: weight of vPU's MixUp; held_out: positive and
    unlabeled items that are not learnt from: the result is the network of the epoch whose PU loss
    on them is least (vPU holds out its own); the rest as for `thonecls.fit`. Dist-PU runs its
    epochs twice, once for each phase.
    """
    check_prior(config)
    item_settings(method)  # refuses one that is not known
    training, control = TRAININGS[method], control or Control()
    on_step, checkpoint = control.on_step, control.checkpoint
    stops = False

    def on_step_all(progress: Progress[ItemModel]) -> bool:
        nonlocal stops
        stops = stops or bool(on_step is not None and on_step(progress))
        return stops

    chosen = sizes or _sizes(training.sizes, len(positive), len(unlabeled))
    data = ImageData(positive, unlabeled, make, chosen, resolve_device(config.device))
    if method == "vpu":
        return vpu.train(
            data,
            config=config,
            generator=generator,
            control=control,
            procedure=vpu.mixing(mix),
        )
    if len(unlabeled) < 2:
        raise LabelError(f"at least 2 unlabeled items are needed. Got {len(unlabeled)} instead")
    phases = training.phases(config) if training.phases else [(config, training.procedure)]
    if held_out is not None:
        validation = partial(_validation_loss, held_out, config, data.device)
        phases = [(own, replace(step, validation_loss=validation)) for own, step in phases]
    seen = training.data(data) if training.data else data
    models: list[ItemModel] = []
    for number, (settings, procedure) in enumerate(phases):
        # Progress is told of all phases together.
        span = number * config.epochs, len(phases) * config.epochs
        model = run(
            seen,
            config=settings,
            generator=generator,
            procedure=procedure,
            start=models[-1].net if models else None,
            control=replace(
                control,
                on_epoch=moved(control.on_epoch, *span),
                on_step=moved(on_step_all, *span),
                checkpoint=checkpoint and checkpoint.with_name(f"{checkpoint.name}{number or ''}"),
            ),
        )
        models.append(model)
        if stops or not model.training["finished"]:
            break
    return _joined(models, len(phases))


@torch.no_grad()
def _validation_loss(
    held_out: tuple[Rows, Rows],
    config: TrainConfig,
    device: torch.device,
    net: nn.Module,
    _: object,
) -> float:
    """The PU loss of a network on items that it has not seen."""

    def logits_of(net: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        positive, unlabeled = (item_logits(net, rows, device) for rows in held_out)
        return positive, unlabeled

    return float(objective(net, net, logits_of, replace(config, beta=0.0)).loss)


def _joined(models: list[ItemModel], phases: int) -> ItemModel:
    """The last of those phases that were run, with the history of them all."""
    trainings = [model.training for model in models]
    history = {
        name: [value for training in trainings for value in training["history"][name]]
        for name in trainings[0]["history"]
    }
    seconds = round(sum(training["seconds"] for training in trainings), 3)
    finished = len(models) == phases and trainings[-1]["finished"]
    joined = {"history": history, "seconds": seconds, "finished": finished}
    return replace(models[-1], training={**trainings[-1], **joined})


def _sizes(sizes: tuple[int, int] | int, positive: int, unlabeled: int) -> tuple[int, int]:
    """Items of a step: as given, or so many of both kinds in proportion.

    >>> _sizes(256, 900, 45_000)
    (5, 251)
    """
    if isinstance(sizes, tuple):
        return sizes
    of_positive = min(max(1, round(sizes * positive / (positive + unlabeled))), sizes - 1)
    return of_positive, sizes - of_positive
