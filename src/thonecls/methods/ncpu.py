"""NcPU (Zhao 2026), for scenes and for images: features of a class align, also where labels err.

A twin of two networks, the second an average of the first. Unlabeled pixels or items count as
negatives, but those that the prototypes of either class in the twin's features call positive, and
more surely than is usual. These labels are given anew at every step, so that one given in error is
taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize

from thonecls.errors import ConfigError
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.taylor import positive_loss
from thonecls.methods.heads import TwoHeadedData, TwoHeads
from thonecls.methods.views import two_views

LEAST = 1e-6  # under the root of a pair's loss, whose slope has no bound at 0
MEMORY = "ncpu"  # in the memory: the prototypes, (2, width), and the threshold below them


def predictor(width: int) -> nn.Module:
    """The head that foretells the twin's features."""
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def twins(data: Any) -> TwoHeadedData[Any]:
    """The data with networks that have a predictor."""
    return TwoHeadedData(data, predictor)


def pair_loss(predicted: Tensor, features: Tensor) -> Tensor:
    """Mean of 2 √(1 - cos) over pairs of rows, (n, width) each.

    Its gradient is largest where a pair agrees: pairs that are no pair, which disagree, move the
    network less than under the usual 2 (1 - cos), where it is they that move it most.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> round(pair_loss(x, torch.tensor([[0.0, 2.0], [-3.0, 0.0]])).item(), 4)  # 1 + √2
    2.4142
    """
    cosine = (normalize(predicted, dim=1) * normalize(features, dim=1)).sum(1)
    return 2 * (1 - cosine).clamp(min=LEAST).sqrt().mean()


def partners(kind: Tensor) -> Tensor:
    """For each row the number of another of its kind, half their number further on.

    >>> partners(torch.tensor([1, 1, 0, 1, 1, 0])).tolist()
    [3, 4, 5, 0, 1, 2]
    """
    found = torch.empty_like(kind)
    for one in kind.unique():
        rows = (kind == one).nonzero()[:, 0]
        found[rows] = rows.roll(-(len(rows) // 2))
    return found


def prototype_probability(features: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """How surely rows belong to the second of two prototypes, by their cosines: (n,).

    >>> rows = torch.tensor([[3.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    >>> p = prototype_probability(rows, torch.eye(2), 0.5)
    >>> [round(value, 4) for value in p.tolist()]  # 1 / (1 + e²), its rest, a half
    [0.1192, 0.8808, 0.5]
    """
    with torch.autocast(features.device.type, enabled=False):
        cosines = normalize(features, dim=1) @ normalize(prototypes, dim=1).T
    return torch.sigmoid((cosines[:, 1] - cosines[:, 0]) / temperature)


@dataclass(frozen=True)
class NcPU:
    """How steps are made; the first epochs, `warmup` of the settings, take unlabeled as negatives.

    align: weight of the pairs' loss; momentum: of prototypes and threshold; temperature: of the
    prototypes' probability; two_views: whether either twin sees another view of an image.
    """

    align: float = 1.0
    momentum: float = 0.99
    temperature: float = 0.1
    two_views: bool = False

    @property
    def procedure(self) -> Procedure[Any]:
        """For the loop, with the settings' own optimiser and rate."""
        return Procedure(name=f"ncpu {self}", step_losses=self._step_losses)

    def _step_losses(
        self, state: State, data: TwoHeadedData[Any], batch: Any, config: TrainConfig
    ) -> StepLosses:
        student, teacher = state.student, state.teacher
        assert isinstance(student, TwoHeads)
        assert isinstance(teacher, TwoHeads)
        seen, shown = two_views(batch) if self.two_views else (batch, batch)
        with torch.no_grad():
            target = torch.cat(data.features(teacher, shown))
        features = data.features(student, seen)
        count = len(features[0])
        positive, unlabeled = (student.readout(part) for part in features)
        with torch.no_grad():
            kind = self._labels_(state, target, count, state.epoch < config.warmup)
        aligned = pair_loss(student.second(torch.cat(features)), target[partners(kind)])
        signed = torch.where(kind[count:] == 1, unlabeled, -unlabeled)
        loss = positive_loss(positive) - logsigmoid(signed).mean()
        extra = self.align * aligned
        part = positive_loss(positive.detach())
        with torch.no_grad():
            share = torch.sigmoid(teacher.readout(target[count:])).mean()
        return StepLosses(loss + extra, part, loss.detach() - part, extra.detach(), share)

    def _labels_(self, state: State, target: Tensor, count: int, first: bool) -> Tensor:
        """The class of every row, 1 or 0; the first `count` rows are labelled.

        The others are negatives, as long as they are not surely positive. Moves prototypes, by the
        sure rows of either class, and threshold, which are remembered.
        """
        unit = normalize(target, dim=1)
        known = torch.zeros(len(target), dtype=torch.int64, device=target.device)
        known[:count] = 1
        sure = torch.ones_like(known, dtype=torch.bool)
        kept = state.memory.get(MEMORY)
        if kept is not None and not first:
            prototypes = kept[:2].to(target.device)
            p = prototype_probability(target[count:], prototypes, self.temperature)
            surety = torch.maximum(p, 1 - p)
            threshold = kept[2, 0].to(target.device).lerp(surety.mean(), 1 - self.momentum)
            known[count:] = (p > 0.5).to(known.dtype)
            sure[count:] = surety >= threshold
            kept[2] = threshold.cpu()
        means = torch.stack([(unit * (sure & (known == c))[:, None]).sum(0) for c in (0, 1)]).cpu()
        if kept is None:
            # The threshold begins at the least that it can be.
            kept = torch.cat([normalize(means, dim=1), torch.full_like(means[:1], 0.5)])
        elif first:
            kept[:2] = normalize(means, dim=1)
        else:
            kept[:2] = normalize(kept[:2].lerp(normalize(means, dim=1), 1 - self.momentum), dim=1)
        state.memory[MEMORY] = kept
        return known * sure


def train(data: Any, **how: Any) -> Any:
    """Train the twins on a scene; how: as for `run`."""
    return run(twins(data), procedure=NcPU().procedure, **how)


def check(_: str, config: TrainConfig) -> None:
    """Refuse settings that NcPU has no use for."""
    if not config.ema or config.beta:
        raise ConfigError(
            "ncpu aligns its network with an average of it, in its own way: leave 'ema' and 'beta' "
            "as they are"
        )
