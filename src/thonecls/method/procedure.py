"""How steps of training are made: what a step sees, its loss, the optimiser and the rate.

What is trained on is a `TrainingData`; where a method departs from Algorithm 1, its `Procedure`
says how.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from thonecls.errors import ConfigError
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.losses import SHARED, find_loss
from thonecls.method.taylor import positive_loss
from thonecls.method.teacher import CONSISTENCIES

B = TypeVar("B")
M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
Logits = tuple[Tensor, Tensor]  # of the positive and of the unlabeled items of a batch


class TrainingData(Protocol[B, M_co]):
    """What networks are trained on: items with labels, and what a step sees of them.

    pixels: items that a step sees; identity: bytes that tell these data from others.
    """

    @property
    def pixels(self) -> int: ...

    @property
    def identity(self) -> list[bytes]: ...

    def batches(self, count: int, generator: torch.Generator) -> list[B]:
        """One epoch."""

    def new_net(self, generator: torch.Generator) -> nn.Module:
        """A network whose weights depend on `generator` alone."""

    def logits(self, net: nn.Module, batch: B) -> Logits:
        """What the network says of a batch."""

    def facts(self) -> dict[str, Any]:
        """What a model remembers of where it was trained, ready for JSON."""

    def model(self, net: nn.Module, facts: dict[str, Any]) -> M_co:
        """The network as it is now, ready for use."""


class StepLosses(NamedTuple):
    """The parts of one step's loss, as scalars; only `loss` carries a gradient."""

    loss: Tensor
    positive: Tensor
    unlabeled: Tensor
    consistency: Tensor
    share: Tensor


def new_optimizer(net: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser of one network: SGD as in the paper's scenes, or AdamW."""
    if config.optimizer == "adam":
        # Fused, where networks are small and calls would cost more than what they do.
        fused = all(p.device.type == "cpu" for p in net.parameters()) or None
        return torch.optim.AdamW(
            net.parameters(), lr=config.rate, weight_decay=config.weight_decay, fused=fused
        )
    return torch.optim.SGD(
        net.parameters(),
        lr=config.rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


def scheduled_rate(config: TrainConfig, epoch: int) -> float:
    """The learning rate of the 0-based epoch.

    >>> config = TrainConfig(epochs=4, rate=1.0, schedule="cosine")
    >>> [round(scheduled_rate(config, epoch), 3) for epoch in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    if config.schedule == "cosine":
        return config.rate * (1 + math.cos(math.pi * epoch / config.epochs)) / 2
    return config.rate * config.rate_decay**epoch


def check_prior(config: TrainConfig) -> None:
    """Refuse settings whose loss needs a class prior that is not given."""
    for name in {config.loss, config.warmup_loss} if config.warmup else {config.loss}:
        if config.prior is None and "prior" in inspect.signature(find_loss(name)).parameters:
            raise ConfigError(
                f"the loss '{name}' needs the class prior, the share of the class among all "
                "pixels or items: set 'prior' (of a scene, `thonecls prior` estimates it, and "
                "'estimate_prior' sets it)",
                options=("estimate_prior",),
            )


def objective(
    student: nn.Module,
    teacher: nn.Module,
    logits_of: Callable[[nn.Module], Logits],
    config: TrainConfig,
) -> StepLosses:
    """The student's loss on one batch, Eq. 20: PU loss + beta * consistency.

    The teacher is not evaluated at all when beta is 0.
    """
    target = None
    if config.beta:
        with torch.no_grad():  # before the student, whose pass keeps memory for its gradient
            target = logits_of(teacher)
    positive, unlabeled = logits_of(student)
    loss = find_loss(config.loss)
    pu = loss(positive, unlabeled, **_shared(loss, config))
    of_positive = positive_loss(positive.detach())
    rest = pu.detach() - of_positive
    if target is None:
        share = torch.sigmoid(unlabeled.detach()).mean()
        return StepLosses(pu, of_positive, rest, torch.zeros_like(rest), share)
    logits = torch.cat([positive, unlabeled])
    consistency = CONSISTENCIES[config.consistency](logits, torch.cat(target))
    total = pu + config.beta * consistency
    share = torch.sigmoid(target[1]).mean()
    return StepLosses(total, of_positive, rest, consistency.detach(), share)


def _shared(loss: Callable[..., Tensor], config: TrainConfig) -> dict[str, Any]:
    """Those few settings of training that a loss takes by name; its own options are its own."""
    taken = inspect.signature(loss).parameters
    return {name: getattr(config, name) for name in SHARED if name in taken}


def pu_step_losses(
    state: State, data: TrainingData[B, Any], batch: B, config: TrainConfig
) -> StepLosses:
    """The loss of a step by the settings alone."""
    now = replace(config, loss=config.warmup_loss) if state.epoch < config.warmup else config
    return objective(state.student, state.teacher, lambda net: data.logits(net, batch), now)


@dataclass(frozen=True)
class Procedure(Generic[B]):
    """How steps are made; the defaults are Algorithm 1.

    name: tells it from other procedures; on_epoch_start: called before every epoch; whatever it
    or `step_losses` must remember goes into `State.memory`, which checkpoints keep.
    validation_loss: taken after every epoch; the result is then the network of the epoch where it
    was least.
    """

    name: str = ""
    step_losses: Callable[[State, Any, B, TrainConfig], StepLosses] = pu_step_losses
    optimizer: Callable[[nn.Module, TrainConfig], torch.optim.Optimizer] = new_optimizer
    rate: Callable[[TrainConfig, int], float] = scheduled_rate
    on_epoch_start: Callable[[State, Any, TrainConfig], None] | None = None
    validation_loss: Callable[[nn.Module, Any], float] | None = None
