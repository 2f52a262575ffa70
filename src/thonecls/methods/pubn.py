"""PUbN (Hsieh 2019): PU learning from positives, unlabeled pixels and negatives of some kinds.

A first network tells the kinds that are labelled, positive or negative, from the rest. A second one
is the classifier: labelled pixels stand for their kinds, the unlabeled for all others, as far as
the first network says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thonecls.errors import TrainingError
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.data import LabelledData, SceneData
from thonecls.method.loop import run
from thonecls.method.losses import pubn, pubn_kinds, pubn_weight
from thonecls.method.members import fold_checkpoint
from thonecls.method.model import Model
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.progress import Control, Progress, moved
from thonecls.method.taylor import positive_loss

TAU = 0.7  # of the pixels of no labelled kind lie below the cut, and count as they are
MOST = 0.9  # of what the class leaves of the scene: more of it no negatives stand for
LEAST = 1e-3  # of a probability that is divided by, and of what negatives stand for


@dataclass(frozen=True, eq=False)
class BiasedData:
    """A scene with the negatives that are known in it; all of them are in every batch."""

    data: LabelledData
    negative: Tensor | None = None

    @property
    def pixels(self) -> int:
        return self.data.pixels

    @property
    def identity(self) -> list[bytes]:
        known = [] if self.negative is None else [self.negative.cpu().numpy().tobytes()]
        return [*self.data.identity, *known]

    def batches(self, count: int, generator: torch.Generator) -> list[Any]:
        return self.data.batches(count, generator)

    def new_net(self, generator: torch.Generator) -> nn.Module:
        return self.data.new_net(generator)

    def logits(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        return self.data.logits(net, batch)

    def all_three(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the positive, the unlabeled and the negative pixels of a batch."""
        if self.negative is None:
            positive, unlabeled = self.data.logits(net, batch)
            return positive, unlabeled, positive[:0]
        positive, others = batch
        known, unlabeled = self.data.logits(net, (torch.cat([positive, self.negative]), others))
        return known[: len(positive)], unlabeled, known[len(positive) :]

    def facts(self) -> dict[str, Any]:
        return self.data.facts()

    def model(self, net: nn.Module, facts: dict[str, Any]) -> Model:
        return self.data.model(net, facts)


def train(
    data: LabelledData,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[Model] | None = None,
) -> Model:
    """Train both networks on a scene, each for all epochs; the second is the model."""
    control = control or Control()
    assert config.prior is not None
    biased, known = BiasedData(data), 0.0
    if isinstance(data, SceneData) and data.labels.negative.size:
        biased = BiasedData(data, torch.from_numpy(np.sort(data.labels.negative)).to(data.device))
        known = stood_for(data, config.prior)

    asked, stops = control.on_step, False

    def on_step(progress: Progress[Model]) -> bool:
        nonlocal stops
        stops = stops or bool(asked is not None and asked(progress))
        return stops

    def trained(number: int, procedure: Procedure[Any]) -> Model:
        model: Model = run(
            biased,
            config=config,
            generator=generator,
            procedure=procedure,
            control=replace(
                control,
                on_epoch=moved(control.on_epoch, number * config.epochs, 2 * config.epochs),
                on_step=moved(on_step, number * config.epochs, 2 * config.epochs),
                checkpoint=fold_checkpoint(control.checkpoint, number),
            ),
        )
        return model

    first = trained(0, Procedure(name=f"pubn kinds {known}", step_losses=_kinds(known)))
    if stops or not first.training["finished"]:
        if known:  # what it has learnt so far is to tell both kinds of labels from the rest
            raise TrainingError(
                "pubn was stopped before it began to tell the class from what is not: say 'resume' "
                "to go on",
                options=("resume",),
            )
        return replace(first, training={**first.training, "finished": False})
    with torch.no_grad():
        sigma = torch.sigmoid(data.all_logits(first.net)[1])
    cut = float(torch.quantile(sigma, TAU * (1 - config.prior - known)))
    second = trained(
        1,
        Procedure(name=f"pubn {known} {cut}", step_losses=_classes(first.net, cut, known)),
    )
    history = {
        name: [*values, *second.training["history"][name]]
        for name, values in first.training["history"].items()
    }
    seconds = round(first.training["seconds"] + second.training["seconds"], 3)
    facts = {**second.training, "history": history, "seconds": seconds, "known_share": known}
    return replace(second, training=facts)


def stood_for(data: SceneData, prior: float) -> float:
    """The share of the scene that is of the kinds of its known negatives, by BBE of spectra."""
    from thonecls.priors import estimate_priors  # brings scikit-learn

    spectra = data.cube[0].flatten(1)
    negative, unlabeled = (
        spectra[:, torch.from_numpy(pixels).to(data.device)].T.cpu().numpy()
        for pixels in (data.labels.negative, data.labels.unlabeled)
    )
    (found,) = estimate_priors(["bbe"], negative, unlabeled, seed=0, interval=False)
    return float(min(max(found.value, LEAST), MOST * (1 - prior)))


def _kinds(known: float) -> Callable[..., StepLosses]:
    """Steps of the first network: nnPU, both kinds of labels together against the unlabeled."""

    def step_losses(state: State, data: BiasedData, batch: Any, config: TrainConfig) -> StepLosses:
        positive, unlabeled, negative = data.all_three(state.student, batch)
        assert config.prior is not None
        loss = pubn_kinds(positive, unlabeled, negative, config.prior, known)
        return _told(loss, positive, unlabeled)

    return step_losses


def _classes(kinds: nn.Module, cut: float, known: float) -> Callable[..., StepLosses]:
    """Steps of the second network, weighed by what the first says of the same pixels."""

    def step_losses(state: State, data: BiasedData, batch: Any, config: TrainConfig) -> StepLosses:
        with torch.no_grad():
            of_p, of_u, of_n = (
                torch.sigmoid(z).clamp(min=LEAST) for z in data.all_three(kinds, batch)
            )
        weights = (
            pubn_weight(of_p, cut, labelled=True),
            pubn_weight(of_u, cut, labelled=False),
            pubn_weight(of_n, cut, labelled=True),
        )
        positive, unlabeled, negative = data.all_three(state.student, batch)
        assert config.prior is not None
        loss = pubn(positive, unlabeled, negative, weights, config.prior, known)
        return _told(loss, positive, unlabeled)

    return step_losses


def _told(loss: Tensor, positive: Tensor, unlabeled: Tensor) -> StepLosses:
    part, share = positive_loss(positive.detach()), torch.sigmoid(unlabeled.detach()).mean()
    return StepLosses(loss, part, loss.detach() - part, torch.zeros_like(part), share)
