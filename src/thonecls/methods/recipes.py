"""How steps on images and tables are made, where that is more than a loss of logits.

The constants are those of the methods' papers or of their published code, for CIFAR-10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, softplus

from thonecls.images.data import ItemBatch, ItemGround, item_logits
from thonecls.images.networks import StagedNet
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import Recipe, Terms
from thonecls.method.losses import dist_pu, mixup_term, positive_loss, variational
from thonecls.method.teacher import ema_update_, ramped_decay

BETAS = (0.5, 0.99)  # of Adam, in vPU's and P3MIX's experiments and in the paper's on images
USUAL_BETAS = (0.9, 0.999)


def adam(
    net: nn.Module, config: TrainConfig, betas: tuple[float, float] = BETAS
) -> torch.optim.Optimizer:
    """The optimiser of one network on images."""
    return torch.optim.Adam(
        net.parameters(), lr=config.rate, betas=betas, weight_decay=config.weight_decay
    )


def halved(config: TrainConfig, epoch: int, *, times: int) -> float:
    """Half the rate after every 20 epochs, so many times at most.

    >>> [halved(TrainConfig(rate=1.0), epoch, times=2) for epoch in (0, 19, 20, 45, 90)]
    [1.0, 1.0, 0.5, 0.25, 0.25]
    """
    return config.rate * 0.5 ** min(epoch // 20, times)


def cosine(config: TrainConfig, epoch: int, *, floor: float) -> float:
    """Down to `floor` of the rate over the epochs, as half a cosine.

    >>> [round(cosine(TrainConfig(rate=1.0, epochs=4), e, floor=0.5), 3) for e in range(4)]
    [1.0, 0.927, 0.75, 0.573]
    """
    return config.rate * (floor + (1 - floor) * (1 + math.cos(math.pi * epoch / config.epochs)) / 2)


PLAIN: Recipe[ItemBatch] = Recipe(name="adam", optimizer=adam, rate=partial(halved, times=2))


def vpu(mix: float) -> Recipe[ItemBatch]:
    """vPU (Chen 2020): the variational loss, and MixUp of unlabeled with positive items.

    mix: weight of the latter; 0.03 suits CIFAR-10, 0.3 Fashion-MNIST and STL-10.
    """

    def terms(state: State, ground: ItemGround, batch: ItemBatch, config: TrainConfig) -> Terms:
        random = torch.Generator().manual_seed(batch.seed)
        x_p, x_u = ground.inputs(batch)
        g = _beta(0.3, random)
        pairs = torch.randint(len(x_p), (len(x_u),), generator=random)
        if len(x_p) >= len(x_u):
            pairs = torch.randperm(len(x_p), generator=random)[: len(x_u)]
        mixed = torch.lerp(x_p[pairs.to(x_p.device)], x_u, g)
        logits = state.student(torch.cat([x_p, x_u, mixed]))
        positive, unlabeled, of_mixed = logits.split([len(x_p), len(x_u), len(x_u)])
        regular = mixup_term(g, unlabeled, logsigmoid(of_mixed)).mean()
        loss = variational(positive, unlabeled) + mix * regular
        return _terms(loss, positive, unlabeled, mix * regular)

    return Recipe(name=f"vpu {mix}", terms=terms, optimizer=adam, rate=partial(halved, times=2))


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
    def first(self) -> Recipe[ItemBatch]:
        """The warm-up."""
        return Recipe(
            name=f"first {self}",
            terms=self._distribution,
            optimizer=partial(adam, betas=USUAL_BETAS),
            rate=partial(cosine, floor=0.0),
        )

    @property
    def second(self) -> Recipe[ItemBatch]:
        """From the network of the first."""
        return Recipe(
            name=f"second {self}",
            terms=self._pseudo_labels,
            optimizer=partial(adam, betas=USUAL_BETAS),
            rate=partial(cosine, floor=0.7),
            begin=_remember_scores,
        )

    def growing(self, epoch: int, epochs: int) -> float:
        """Weight of the unlabeled items' entropy in an epoch of the second phase.

        >>> [round(DistPU().growing(e, 60), 8) for e in (15, 30, 45, 60)]
        [0.00030448, 0.00117157, 0.00246927, 0.004]
        """
        return (1 - math.cos(epoch / epochs * math.pi / 2)) * self.entropy[1]

    def _distribution(
        self, state: State, ground: ItemGround, batch: ItemBatch, config: TrainConfig
    ) -> Terms:
        positive, unlabeled = ground.logits(state.student, batch)
        assert config.prior is not None
        loss = dist_pu(positive, unlabeled, config.prior)
        extra = self.entropy[0] * entropy(unlabeled).mean()
        return _terms(loss + extra, positive, unlabeled, extra)

    def _pseudo_labels(
        self, state: State, ground: ItemGround, batch: ItemBatch, config: TrainConfig
    ) -> Terms:
        random = torch.Generator().manual_seed(batch.seed)
        inputs, scores = torch.cat(ground.inputs(batch)), state.memory["scores"]
        count = len(batch.positive)
        targets = torch.cat([scores.new_ones(count), scores[batch.unlabeled]]).to(inputs.device)
        partner = torch.randperm(len(inputs), generator=random).to(inputs.device)
        g = _beta(self.beta, random)
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
        return _terms(loss + extra, positive, unlabeled, extra)


def _remember_scores(state: State, ground: ItemGround, config: TrainConfig) -> None:
    """Every unlabeled item's pseudo-label, at first the score by the network that starts."""
    if "scores" not in state.memory:
        logits = item_logits(state.student, ground.unlabeled, ground.device)
        state.memory["scores"] = torch.sigmoid(logits).cpu()


@dataclass(frozen=True)
class P3Mix:
    """P3MIX (Li 2022): unlabeled items near the boundary are mixed with positives near it.

    relabel: whether unlabeled items that the network is sure of count as positive (form C);
    early: weight of keeping to what an average of the network learnt early (form E). bound: an
    unlabeled item is marginal while its probability lies between 1 - bound and bound; pool:
    positives to mix with, those of the highest entropy; start: the first epoch that chooses
    partners; stages: of the network before features are mixed.
    """

    relabel: bool
    bound: float
    early: float
    pool: int = 100
    start: int = 10
    stages: int = 4
    entropy: float = 0.1
    clamp: float = 1e-4

    @property
    def recipe(self) -> Recipe[ItemBatch]:
        """For the loop."""
        return Recipe(
            name=f"p3mix {self}",
            terms=self._terms,
            optimizer=adam,
            rate=partial(halved, times=5),
            begin=self._begin,
        )

    def _begin(self, state: State, ground: ItemGround, config: TrainConfig) -> None:
        """Choose the pool, and move the average once an epoch."""
        if state.epoch:
            ema_update_(state.teacher, state.student, ramped_decay(state.epoch - 1, 0.997))
        uncertainty = entropy(item_logits(state.student, ground.positive, ground.device))
        pool = torch.topk(uncertainty, min(self.pool, len(uncertainty))).indices
        state.memory["pool"] = pool.cpu()

    def _terms(
        self, state: State, ground: ItemGround, batch: ItemBatch, config: TrainConfig
    ) -> Terms:
        student, teacher = state.student, state.teacher
        assert isinstance(student, StagedNet)
        random = torch.Generator().manual_seed(batch.seed)
        x_p, x_u = ground.inputs(batch)
        inputs, count = torch.cat([x_p, x_u]), len(x_p)
        stages = min(self.stages, len(student.stages) - 1)
        features = student.features(inputs, stages)
        with torch.no_grad():
            logits = student.logits(features, stages)
            probability = torch.sigmoid(logits[count:])
            targets = torch.cat([torch.ones_like(logits[:count]), torch.zeros_like(probability)])
            if self.relabel:
                targets[count:] = (probability >= self.bound).to(targets.dtype)
            early = torch.sigmoid(teacher(inputs)) if self.early else targets
        partner = torch.randperm(len(inputs), generator=random).to(inputs.device)
        others, of_others, early_others = features[partner], targets[partner], early[partner]
        if state.epoch >= self.start:
            marginal = ((probability > 1 - self.bound) & (probability < self.bound)).nonzero()[:, 0]
            drawn = torch.randint(len(state.memory["pool"]), (len(marginal),), generator=random)
            chosen = ground.positive.take(state.memory["pool"][drawn], ground.device)
            at = marginal + count
            others = others.index_copy(0, at, student.features(chosen, stages))
            of_others = of_others.index_fill(0, at, 1.0)
            early_others = early_others.index_fill(0, at, 1.0)
        g = _beta(1.0, random)
        g = max(g, 1 - g)
        mixed = student.logits(torch.lerp(others, features, g), stages)
        wanted = torch.lerp(of_others, targets, g)
        q = torch.sigmoid(mixed).clamp(self.clamp, 1 - self.clamp)
        cross = -(wanted * q.log() + (1 - wanted) * (1 - q).log())
        extra = self.entropy * -(q * q.log() + (1 - q) * (1 - q).log()).mean()
        if self.early:
            t = torch.lerp(early_others, early, g)
            extra = extra + self.early * torch.log1p(-(t * q + (1 - t) * (1 - q))).mean()
        loss = cross[:count].mean() + cross[count:].mean() + extra
        return _terms(loss, logits[:count], logits[count:], extra)


P3MIX = {
    "p3mix-e": P3Mix(False, bound=0.85, early=1.0),
    "p3mix-c": P3Mix(True, bound=0.80, early=0.0),
}


def entropy(logits: Tensor) -> Tensor:
    """Entropy of each Bernoulli, its logit held within 10 of zero.

    >>> [round(value, 3) for value in entropy(torch.tensor([0.0, 100.0])).tolist()]
    [0.693, 0.0]
    """
    z = logits.clamp(-10, 10)
    return softplus(z) - z * torch.sigmoid(z)


def _beta(shape: float, random: torch.Generator) -> float:
    """One number under Beta(shape, shape), by the generator given."""
    seed = int(torch.randint(2**62, (), generator=random))
    return float(np.random.default_rng(seed).beta(shape, shape))


def _terms(loss: Tensor, positive: Tensor, unlabeled: Tensor, extra: Tensor) -> Terms:
    """The loss with its parts; what it has beside the PU loss stands as consistency."""
    part = positive_loss(positive.detach())
    rest, share = loss.detach() - extra.detach() - part, torch.sigmoid(unlabeled.detach()).mean()
    return Terms(loss, part, rest, extra.detach(), share)
