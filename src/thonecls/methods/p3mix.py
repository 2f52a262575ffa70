"""P3MIX (Li 2022), for images and for scenes; the constants are those of its code, for CIFAR-10."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from thonecls.images.data import ImageData, ItemBatch, item_logits
from thonecls.images.networks import StagedNet
from thonecls.images.steps import adam, beta_draw, entropy, halved, step_generator, with_parts
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.teacher import ema_update_, ramped_decay


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
    def procedure(self) -> Procedure[ItemBatch]:
        """For the loop."""
        return Procedure(
            name=f"p3mix {self}",
            step_losses=self._step_losses,
            optimizer=adam,
            rate=partial(halved, times=5),
            on_epoch_start=self._choose_pool,
        )

    @property
    def on_scenes(self) -> Procedure[Any]:
        """For the loop, on scenes, with the settings' own optimiser and rate."""
        return Procedure(
            name=f"p3mix on scenes {self}",
            step_losses=self._scene_losses,
            on_epoch_start=_move_average,
        )

    def _choose_pool(self, state: State, data: ImageData, config: TrainConfig) -> None:
        """Choose the pool, and move the average once an epoch."""
        _move_average(state, data, config)
        uncertainty = entropy(item_logits(state.student, data.positive, data.device))
        pool = torch.topk(uncertainty, min(self.pool, len(uncertainty))).indices
        state.memory["pool"] = pool.cpu()

    def _step_losses(
        self, state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
    ) -> StepLosses:
        student = state.student
        assert isinstance(student, StagedNet)
        random = torch.Generator().manual_seed(batch.seed)
        x_p, x_u = data.inputs(batch)
        inputs = torch.cat([x_p, x_u])
        stages = min(self.stages, len(student.stages) - 1)
        features = student.features(inputs, stages)
        with torch.no_grad():
            logits = student.logits(features, stages).split([len(x_p), len(x_u)])
            early = torch.sigmoid(state.teacher(inputs)) if self.early else None

        pool = state.memory["pool"]

        def mix(partner: Tensor, at: Tensor, drawn: Tensor, g: float) -> Tensor:
            others = features[partner]
            if state.epoch >= self.start:
                chosen = data.positive.take(pool[drawn], data.device)
                others = others.index_copy(0, at, student.features(chosen, stages))
            return student.logits(torch.lerp(others, features, g), stages)

        return self._losses(state.epoch, (logits[0], logits[1]), early, (len(pool), mix), random)

    def _scene_losses(self, state: State, data: Any, batch: Any, config: TrainConfig) -> StepLosses:
        """The same on pixels: what is mixed are the features that the head, which is linear, reads.

        So logits are mixed. The pool is that half of the step's positives which is least sure.
        """
        random = step_generator(state)
        positive, unlabeled = data.logits(state.student, batch)
        logits, early = torch.cat([positive, unlabeled]), None
        if self.early:
            with torch.no_grad():
                early = torch.sigmoid(torch.cat(data.logits(state.teacher, batch)))
        pool = torch.topk(entropy(positive.detach()), -(-len(positive) // 2)).indices

        def mix(partner: Tensor, at: Tensor, drawn: Tensor, g: float) -> Tensor:
            others = logits[partner].index_copy(0, at, positive[pool[drawn.to(pool.device)]])
            return torch.lerp(others, logits, g)

        plain = positive.detach(), unlabeled.detach()
        return self._losses(state.epoch, plain, early, (len(pool), mix), random)

    def _losses(
        self,
        epoch: int,
        logits: tuple[Tensor, Tensor],
        early: Tensor | None,
        mixing: tuple[int, Callable[[Tensor, Tensor, Tensor, float], Tensor]],
        random: torch.Generator,
    ) -> StepLosses:
        """The loss of a step from logits without a gradient, and from those of mixtures.

        early: probabilities by the average of the network, of all rows. mixing: the size of the
        pool, and what gives the logits of rows mixed with their partners, some of which, by row,
        with members of the pool, by number.
        """
        pool, mix = mixing
        positive, unlabeled = logits
        count, probability = len(positive), torch.sigmoid(unlabeled)
        targets = torch.cat([torch.ones_like(positive), torch.zeros_like(probability)])
        if self.relabel:
            targets[count:] = (probability >= self.bound).to(targets.dtype)
        early = targets if early is None else early
        partner = torch.randperm(len(targets), generator=random).to(targets.device)
        of_others, early_others = targets[partner], early[partner]
        at = drawn = partner[:0]
        if epoch >= self.start:
            marginal = (probability > 1 - self.bound) & (probability < self.bound)
            at = marginal.nonzero()[:, 0] + count
            drawn = torch.randint(pool, (len(at),), generator=random)
            of_others = of_others.index_fill(0, at, 1.0)
            early_others = early_others.index_fill(0, at, 1.0)
        g = beta_draw(1.0, random)
        g = max(g, 1 - g)
        mixed = mix(partner, at, drawn, g)
        wanted = torch.lerp(of_others, targets, g)
        q = torch.sigmoid(mixed).clamp(self.clamp, 1 - self.clamp)
        cross = -(wanted * q.log() + (1 - wanted) * (1 - q).log())
        extra = self.entropy * -(q * q.log() + (1 - q) * (1 - q).log()).mean()
        if self.early:
            t = torch.lerp(early_others, early, g)
            extra = extra + self.early * torch.log1p(-(t * q + (1 - t) * (1 - q))).mean()
        loss = cross[:count].mean() + cross[count:].mean() + extra
        return with_parts(loss, positive, unlabeled, extra)


def _move_average(state: State, _: object, config: TrainConfig) -> None:
    """Move the average of the network, once an epoch."""
    if state.epoch:
        ema_update_(state.teacher, state.student, ramped_decay(state.epoch - 1, 0.997))


P3MIX = {
    "p3mix-e": P3Mix(False, bound=0.85, early=1.0),
    "p3mix-c": P3Mix(True, bound=0.80, early=0.0),
}


def train(data: Any, *, method: str, **how: Any) -> Any:
    """Train on a scene by one of `P3MIX`; how: as for `run`."""
    return run(data, procedure=P3MIX[method].on_scenes, **how)


train_e, train_c = partial(train, method="p3mix-e"), partial(train, method="p3mix-c")
