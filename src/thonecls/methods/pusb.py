"""PUSB (Kato 2019): biased labels tell the order of pixels, the class prior where to cut."""

from __future__ import annotations

from dataclasses import replace

import torch

from thonecls.method.config import TrainConfig
from thonecls.method.data import LabelledData
from thonecls.method.loop import run
from thonecls.method.model import Model
from thonecls.method.progress import Control

FURTHEST = 1e-4  # a cut is never nearer to 0 or 1


def train(
    data: LabelledData,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[Model] | None = None,
) -> Model:
    """Train as the settings say; the model maps as large a share of the unlabeled as the prior.

    Where likelier pixels of the class are likelier to be labelled, the probability of a class of
    labelled pixels is not that of the class, but rises with it.
    """
    model = run(data, config=config, generator=generator, control=control)
    assert config.prior is not None
    with torch.no_grad():
        scores = torch.sigmoid(data.all_logits(model.net)[1])
    threshold = float(torch.quantile(scores, 1 - config.prior))
    return replace(model, threshold=min(max(threshold, FURTHEST), 1 - FURTHEST))
