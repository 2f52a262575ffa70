"""vPU (Chen 2020), for scenes and for images: a part held out chooses the epoch, and a scale.

The MixUp term is taken on the logits of pixels, in closed form (the loss `vpu`), or on images that
are mixed (`mixing`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.losses import mixup_term
from thonecls.method.procedure import Procedure, StepLosses, TrainingData
from thonecls.method.progress import Control, Progress
from thonecls.method.taylor import variational

if TYPE_CHECKING:
    from thonecls.images.data import ImageData, ItemBatch

LEAST = 1e-30  # a ceiling is never 0

M = TypeVar("M", bound=Any)  # a model: a dataclass with `training` and `ceiling`
M_co = TypeVar("M_co", covariant=True)
T = TypeVar("T")


class Divisible(TrainingData[Any, M_co], Protocol[M_co]):
    """Data of which a part can be held out."""

    def hold_out(self, generator: torch.Generator) -> tuple[Self, Self]:
        """Without a tenth of its labels, and with those alone."""

    def all_logits(self, net: nn.Module) -> tuple[Tensor, Tensor]:
        """Of all labelled and of all unlabeled pixels or items."""


def train(
    data: Divisible[M],
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[M] | None = None,
    procedure: Procedure[Any] | None = None,
) -> M:
    """Train as `run` does, but for a tenth of the data, on which the loss chooses the epoch.

    procedure: of the steps, by default as the settings say.
    """
    control = control or Control()
    kept, held = data.hold_out(generator)
    relative: Relative[M] = Relative(partial(_largest, kept))
    steps = procedure or Procedure(name="vpu")
    model = run(
        kept,
        config=config,
        generator=generator,
        control=replace(
            control,
            on_epoch=relative.told(control.on_epoch),
            on_step=relative.told(control.on_step),
        ),
        procedure=replace(steps, validation_loss=partial(_validation_loss, held)),
    )
    return relative(model)


def train_selected(
    data: Divisible[M],
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[M] | None = None,
) -> M:
    """Train as the settings say, and take the epoch as vPU does, by a tenth that is held out."""
    kept, held = data.hold_out(generator)
    procedure: Procedure[Any] = Procedure(
        name="selected", validation_loss=partial(_validation_loss, held)
    )
    return run(kept, config=config, generator=generator, control=control, procedure=procedure)


@torch.no_grad()
def _validation_loss(held: Divisible[Any], net: nn.Module, _: object) -> float:
    """The variational loss of a network on what it has not seen."""
    return float(variational(*held.all_logits(net)))


@torch.no_grad()
def _largest(kept: Divisible[M], model: M) -> float:
    """The largest probability among the unlabeled."""
    return float(torch.sigmoid(kept.all_logits(model.net)[1].double().max()))


def mixing(weight: float) -> Procedure[ItemBatch]:
    """Steps on images: the variational loss, and MixUp of unlabeled with positive items.

    weight: of the latter; 0.03 suits CIFAR-10, 0.3 Fashion-MNIST and STL-10.
    """
    from thonecls.images.steps import adam, beta_draw, halved, with_parts  # not for scenes

    def step_losses(
        state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
    ) -> StepLosses:
        random = torch.Generator().manual_seed(batch.seed)
        x_p, x_u = data.inputs(batch)
        g = beta_draw(0.3, random)
        pairs = torch.randint(len(x_p), (len(x_u),), generator=random)
        if len(x_p) >= len(x_u):
            pairs = torch.randperm(len(x_p), generator=random)[: len(x_u)]
        mixed = torch.lerp(x_p[pairs.to(x_p.device)], x_u, g)
        logits = state.student(torch.cat([x_p, x_u, mixed]))
        positive, unlabeled, of_mixed = logits.split([len(x_p), len(x_u), len(x_u)])
        regular = mixup_term(g, unlabeled, logsigmoid(of_mixed)).mean()
        loss = variational(positive, unlabeled) + weight * regular
        return with_parts(loss, positive, unlabeled, weight * regular)

    return Procedure(
        name=f"vpu {weight}",
        step_losses=step_losses,
        optimizer=adam,
        rate=partial(halved, times=2),
    )


class Relative(Generic[M]):
    """Makes probabilities relative to their largest among the unlabeled.

    The variational loss leaves their scale open. largest: of a model; it is asked for once for
    every epoch that is selected.
    """

    def __init__(self, largest: Callable[[M], float]) -> None:
        self.largest = largest
        self.known: dict[int, float] = {}

    def __call__(self, model: M) -> M:
        epoch = model.training.get("selected_epoch", 0)
        if epoch == 0 or epoch not in self.known:  # 0: within the first, nothing is selected yet
            self.known[epoch] = max(self.largest(model), LEAST)
        scaled: M = replace(model, ceiling=self.known[epoch])
        return scaled

    def told(
        self, callback: Callable[[Progress[M]], T] | None
    ) -> Callable[[Progress[M]], T] | None:
        """Tell of progress with models made so."""
        if callback is None:
            return None
        return lambda progress: callback(
            replace(progress, snapshot=lambda: self(progress.snapshot()))
        )
