"""Dist-PU (Zhao 2022) on images, in two phases; the constants are published, for CIFAR-10."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from thonecls.images.data import ImageData, ItemBatch, item_logits
from thonecls.images.steps import USUAL_BETAS, adam, beta_draw, cosine, entropy, with_parts
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.losses import dist_pu
from thonecls.method.procedure import Procedure, StepLosses

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

    def growing(self, epoch: int, epochs: int) -> float:
        """Weight of the unlabeled items' entropy in an epoch of the second phase.

        >>> [round(DistPU().growing(e, 60), 8) for e in (15, 30, 45, 60)]
        [0.00030448, 0.00117157, 0.00246927, 0.004]
        """
        return (1 - math.cos(epoch / epochs * math.pi / 2)) * self.entropy[1]

    def _distribution(
        self, state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
    ) -> StepLosses:
        positive, unlabeled = data.logits(state.student, batch)
        assert config.prior is not None
        loss = dist_pu(positive, unlabeled, config.prior)
        extra = self.entropy[0] * entropy(unlabeled).mean()
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
        assert config.prior is not None
        loss = dist_pu(positive, unlabeled, config.prior)
        cross = g * binary_cross_entropy_with_logits(of_mixed, targets)
        cross = cross + (1 - g) * binary_cross_entropy_with_logits(of_mixed, targets[partner])
        extra = (
            self.growing(state.epoch, config.epochs) * entropy(unlabeled).mean()
            + self.mixed_entropy * entropy(of_mixed).mean()
            + self.mixed * cross
        )
        scores[batch.unlabeled] = torch.sigmoid(unlabeled.detach()).cpu()
        return with_parts(loss + extra, positive, unlabeled, extra)


def _remember_scores(state: State, data: ImageData, config: TrainConfig) -> None:
    """Every unlabeled item's pseudo-label, at first the score by the network that starts."""
    if "scores" not in state.memory:
        logits = item_logits(state.student, data.unlabeled, data.device)
        state.memory["scores"] = torch.sigmoid(logits).cpu()
