"""Several networks of one scene, each without a part of the labels, as one model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from thonecls.method.data import LabelledData
from thonecls.method.model import Model
from thonecls.method.taylor import variational

Scores = NDArray[np.float64]


FURTHEST = 0.02  # a cut is never nearer to 0 or 1


def fold_checkpoint(path: Path | None, number: int) -> Path | None:
    """Where the training of one of several networks is kept."""
    return None if path is None else path.with_stem(f"{path.stem}-fold-{number}")


def checkpoints(path: Path) -> list[Path]:
    """The checkpoint of a training that is there, and those of its folds."""
    return [*path.parent.glob(path.name), *path.parent.glob(f"{path.stem}-fold-*{path.suffix}")]


@torch.no_grad()
def loss_on(held: LabelledData, net: nn.Module, data: LabelledData) -> float:
    """The variational loss of a network on labels it has not seen, and unlabeled pixels."""
    return variational(*held.all_logits(net)).item()


@torch.no_grad()
def join(data: LabelledData, models: list[Model], fold: NDArray[np.int64]) -> Model:
    """One model of all networks, with the cut that the labels left out tell.

    Each label is scored by the network that has not seen it. Those scores against the unlabeled
    pixels' say how much of the scene the class covers; the cut marks that much.
    """
    from thonecls.priors import bbe  # brings scikit-learn, which a single network does not need

    nets = [model.net for model in models]
    parts = [
        data.only(np.flatnonzero(fold == number)).all_logits(net) for number, net in enumerate(nets)
    ]
    positive, unlabeled = (
        torch.sigmoid(torch.cat(part)).numpy() for part in zip(*parts, strict=True)
    )
    prevalence = min(1.0, bbe(positive, unlabeled))
    together = torch.stack([torch.sigmoid(data.all_logits(net)[1]) for net in nets]).mean(0)
    threshold = float(np.quantile(together.numpy(), 1 - prevalence))
    threshold = min(max(threshold, FURTHEST), 1 - FURTHEST)
    facts = [model.training for model in models]
    first = facts[0]
    history = {
        name: [value for fact in facts for value in fact["history"][name]]
        for name in first["history"]
    }
    return replace(
        models[0],
        members=tuple((model.net, model.frozen) for model in models[1:]),
        threshold=threshold,
        training={
            **first,
            "positives": len(data.positives),
            "seconds": round(sum(fact["seconds"] for fact in facts), 3),
            "history": history,
            "epochs_by_fold": [len(fact["history"]["loss"]) for fact in facts],
            "selected_by_fold": [fact.get("selected_epoch") for fact in facts],
            "finished": len(models) == int(fold.max()) + 1 and all(f["finished"] for f in facts),
            "prevalence": prevalence,
        },
    )
