"""LBE (Gong 2021), for scenes and for images: which positives are labelled is learnt, too."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.losses import bce, lbe
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.taylor import positive_loss
from thonecls.methods.heads import TwoHeadedData, TwoHeads


def with_propensity(data: Any) -> TwoHeadedData[Any]:
    """The data with networks whose second head gives the propensity, by its logit."""
    return TwoHeadedData(data, partial(nn.Linear, out_features=1))


def _step_losses(
    state: State, data: TwoHeadedData[Any], batch: Any, config: TrainConfig
) -> StepLosses:
    """A step of EM; while warming up, the classifier alone, with unlabeled as negatives."""
    student = state.student
    assert isinstance(student, TwoHeads)
    features = data.features(student, batch)
    positive, unlabeled = (student.readout(part) for part in features)
    if state.epoch < config.warmup:
        loss = bce(positive, unlabeled)
    else:
        propensity = (student.second(part)[:, 0] for part in features)
        loss = lbe(positive, unlabeled, *propensity)
    part, share = positive_loss(positive.detach()), torch.sigmoid(unlabeled.detach()).mean()
    return StepLosses(loss, part, loss.detach() - part, torch.zeros_like(part), share)


LBE: Procedure[Any] = Procedure(name="lbe", step_losses=_step_losses)


def train(data: Any, **how: Any) -> Any:
    """Train on a scene; how: as for `run`."""
    return run(with_propensity(data), procedure=LBE, **how)
