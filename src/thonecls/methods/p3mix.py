"""P3MIX (Li 2022) on images; the constants are those of its published code, for CIFAR-10."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from thonecls.images.data import ImageData, ItemBatch, item_logits
from thonecls.images.networks import StagedNet
from thonecls.images.steps import adam, beta_draw, entropy, halved, with_parts
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
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

    def _choose_pool(self, state: State, data: ImageData, config: TrainConfig) -> None:
        """Choose the pool, and move the average once an epoch."""
        if state.epoch:
            ema_update_(state.teacher, state.student, ramped_decay(state.epoch - 1, 0.997))
        uncertainty = entropy(item_logits(state.student, data.positive, data.device))
        pool = torch.topk(uncertainty, min(self.pool, len(uncertainty))).indices
        state.memory["pool"] = pool.cpu()

    def _step_losses(
        self, state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
    ) -> StepLosses:
        student, teacher = state.student, state.teacher
        assert isinstance(student, StagedNet)
        random = torch.Generator().manual_seed(batch.seed)
        x_p, x_u = data.inputs(batch)
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
            chosen = data.positive.take(state.memory["pool"][drawn], data.device)
            at = marginal + count
            others = others.index_copy(0, at, student.features(chosen, stages))
            of_others = of_others.index_fill(0, at, 1.0)
            early_others = early_others.index_fill(0, at, 1.0)
        g = beta_draw(1.0, random)
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
        return with_parts(loss, logits[:count], logits[count:], extra)


P3MIX = {
    "p3mix-e": P3Mix(False, bound=0.85, early=1.0),
    "p3mix-c": P3Mix(True, bound=0.80, early=0.0),
}
