"""Dist-PU (Zhao 2022), for images and for scenes, in two phases; constants as for CIFAR-10."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from thonecls.images.data import ImageData, ItemBatch, item_logits
from thonecls.images.steps import (
    USUAL_BETAS,
    adam,
    beta_draw,
    cosine,
    entropy,
    step_generator,
    with_parts,
)
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.losses import dist_pu
from thonecls.method.procedure import Procedure, StepLosses, pu_step_losses, scheduled_rate
from thonecls.method.teacher import ema_update_

# The second phase, relative to the first.
SECOND_RATE, SECOND_DECAY = 0.1, 0.2


@dataclass(frozen=True)
class DistPU:
    """Dist-PU (Zhao 2022), in two phases: the label distribution, then also MixUp of pseudo-labels.

    The weights are of the entropies of the unlabeled items (in the first phase, and at the end of
    the second) and of the mixed ones, and of the cross-entropy of the mixed ones.
    """

    entropy: tuple[float, float] = (2e-3, 4e-3)
    mixed_entropy: float = 0.04
    mixed: float = 5.0
    beta: float = 6.0

    @property
    def first(self) -> Procedure[ItemBatch]:
        """The warm-up."""
        return Procedure(
            name=f"first {self}",
            step_losses=self._distribution,
            optimizer=partial(adam, betas=USUAL_BETAS),
            rate=partial(cosine, floor=0.0),
        )

    @property
    def second(self) -> Procedure[ItemBatch]:
        """From the network of the first."""
        return Procedure(
            name=f"second {self}",
            step_losses=self._pseudo_labels,
            optimizer=partial(adam, betas=USUAL_BETAS),
            rate=partial(cosine, floor=0.7),
            on_epoch_start=_remember_scores,
        )

    def phases(self, config: TrainConfig) -> list[tuple[TrainConfig, Procedure[ItemBatch]]]:
        """Both, with their settings."""
        second = replace(
            config,
            rate=config.rate * SECOND_RATE,
            weight_decay=config.weight_decay * SECOND_DECAY,
        )
        return [(config, self.first), (second, self.second)]

    @property
    def on_scenes(self) -> Procedure[Any]:
        """Both in one training on a scene, half of the epochs each, with its own optimiser."""
        return Procedure(
            name=f"on scenes {self}",
            step_losses=self._scene_losses,
            rate=_two_rates,
            on_epoch_start=_copy_student,
        )

    def growing(self, epoch: int, epochs: int) -> float:
        """Weight of the unlabeled items' entropy in an epoch of the second phase.

        >>> [round(DistPU().growing(e, 60), 8) for e in (15, 30, 45, 60)]
        [0.00030448, 0.00117157, 0.00246927, 0.004]
        """
        return (1 - math.cos(epoch / epochs * math.pi / 2)) * self.entropy[1]

    def _distribution(self, state: State, data: Any, batch: Any, config: TrainConfig) -> StepLosses:
        positive, unlabeled = data.logits(state.student, batch)
        assert config.prior is not None
        loss = dist_pu(positive, unlabeled, config.prior)
        extra = self.entropy[0] * entropy(unlabeled).mean()
        return with_parts(loss + extra, positive, unlabeled, extra)

    def _scene_losses(self, state: State, data: Any, batch: Any, config: TrainConfig) -> StepLosses:
        """The same on pixels: what is mixed are the features that the head, which is linear, reads.

        So logits are mixed. Pseudo-labels are scores by the network as it was when the epoch began.
        """
        if state.epoch < config.warmup:
            return pu_step_losses(state, data, batch, config)
        if _first(state.epoch, config):
            return self._distribution(state, data, batch, config)
        random = step_generator(state)
        positive, unlabeled = data.logits(state.student, batch)
        with torch.no_grad():
            scores = torch.sigmoid(data.logits(state.teacher, batch)[1])
        logits = torch.cat([positive, unlabeled])
        targets = torch.cat([torch.ones_like(positive), scores])
        partner = torch.randperm(len(logits), generator=random).to(logits.device)
        g = beta_draw(self.beta, random)
        mixed = torch.lerp(logits[partner], logits, g)
        half = config.epochs // 2
        growing = self.growing(state.epoch - half, config.epochs - half)
        return self._mixed(
            positive, unlabeled, mixed, (targets, targets[partner], g), config, growing
        )

    def _mixed(
        self,
        positive: Tensor,
        unlabeled: Tensor,
        mixed: Tensor,
        targets: tuple[Tensor, Tensor, float],
        config: TrainConfig,
        growing: float,
    ) -> StepLosses:
        """The loss of the second phase; targets: of either part of a mixture, and its weight."""
        first, second, g = targets
        assert config.prior is not None
        loss = dist_pu(positive, unlabeled, config.prior)
        cross = g * binary_cross_entropy_with_logits(mixed, first)
        cross = cross + (1 - g) * binary_cross_entropy_with_logits(mixed, second)
        extra = (
            growing * entropy(unlabeled).mean()
            + self.mixed_entropy * entropy(mixed).mean()
            + self.mixed * cross
        )
        return with_parts(loss + extra, positive, unlabeled, extra)

    def _pseudo_labels(
        self, state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
    ) -> StepLosses:
        random = torch.Generator().manual_seed(batch.seed)
        inputs, scores = torch.cat(data.inputs(batch)), state.memory["scores"]
        count = len(batch.positive)
        targets = torch.cat([scores.new_ones(count), scores[batch.unlabeled]]).to(inputs.device)
        partner = torch.randperm(len(inputs), generator=random).to(inputs.device)
        g = beta_draw(self.beta, random)
        mixed = torch.lerp(inputs[partner], inputs, g)
        logits, of_mixed = state.student(torch.cat([inputs, mixed])).split(len(inputs))
        positive, unlabeled = logits[:count], logits[count:]
        scores[batch.unlabeled] = torch.sigmoid(unlabeled.detach()).cpu()
        growing = self.growing(state.epoch, config.epochs)
        pair = targets, targets[partner], g
        return self._mixed(positive, unlabeled, of_mixed, pair, config, growing)


def _remember_scores(state: State, data: ImageData, config: TrainConfig) -> None:
    """Every unlabeled item's pseudo-label, at first the score by the network that starts."""
    if "scores" not in state.memory:
        logits = item_logits(state.student, data.unlabeled, data.device)
        state.memory["scores"] = torch.sigmoid(logits).cpu()


def _first(epoch: int, config: TrainConfig) -> bool:
    """Whether a training on a scene is in its first phase."""
    return epoch < config.epochs // 2


def _two_rates(config: TrainConfig, epoch: int) -> float:
    """The rate of the settings, in the second phase a tenth of it.

    >>> [_two_rates(TrainConfig(epochs=2, rate=1.0, rate_decay=1.0), e) for e in (0, 1)]
    [1.0, 0.1]
    """
    return scheduled_rate(config, epoch) * (1 if _first(epoch, config) else SECOND_RATE)


def _copy_student(state: State, data: object, config: TrainConfig) -> None:
    """Keep the network as it is when an epoch of the second phase begins."""
    if not _first(state.epoch, config):
        ema_update_(state.teacher, state.student, 0.0)


def train(data: Any, **how: Any) -> Any:
    """Train on a scene; how: as for `run`."""
    return run(data, procedure=DistPU().on_scenes, **how)
