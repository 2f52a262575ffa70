"""Methods on FreeOCNet: settings of the one training loop, and the two that need more than that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from thonecls.errors import ConfigError, LabelError
from thonecls.method.checkpoint import State
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig
from thonecls.method.data import SceneGround
from thonecls.method.fit import LabelGround, OnEpoch, OnStep, fit_on, loss_on, prepare
from thonecls.method.loop import Recipe, Terms, run
from thonecls.method.losses import (
    pan_coupling,
    pan_value,
    pan_value_reference,
    positive_loss,
)
from thonecls.method.model import Model
from thonecls.methods.relative import Relative, hold_out
from thonecls.methods.settings import SETTINGS as SETTINGS
from thonecls.methods.settings import settings as settings
from thonecls.scene import Source
from thonecls.splits import Labels

GAMES = {"pan": pan_value, "pan-reference": pan_value_reference}
BOUND = 0.01  # eps in the logarithms of PAN's coupling, which has no bound without it


def train(
    method: str,
    scene: Source,
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    resume: bool = False,
) -> Model:
    """Train by one of `SETTINGS`; config: as `settings` gives it; the rest as for `fit`."""
    if method in GAMES:
        _check_game(method, config)  # before the scene is read
    ground = prepare(scene, labels, config, generator)
    how: dict[str, Any] = {
        "config": config,
        "generator": generator,
        "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every,
        "resume": resume,
    }
    if method == "vpu":
        ground, held = _hold_out(ground, generator)
        relative: Relative[Model] = Relative(partial(_largest, ground))
        model = run(
            ground,
            recipe=Recipe(name="vpu", judge=partial(loss_on, held)),
            on_epoch=relative.told(on_epoch),
            on_step=relative.told(on_step),
            **how,
        )
        return relative(model)
    if method in GAMES:
        recipe = Recipe(name=method, terms=partial(_game_terms, GAMES[method]))
        return run(Game(ground), recipe=recipe, on_epoch=on_epoch, on_step=on_step, **how)
    return fit_on(ground, on_epoch=on_epoch, on_step=on_step, **how)


@torch.no_grad()
def _largest(ground: LabelGround, model: Model) -> float:
    """The largest probability among the unlabeled pixels."""
    logits = [ground.logits(model.net, batch)[1] for batch in ground.all_labels()]
    return torch.sigmoid(torch.cat(logits).double().max()).item()


def _hold_out(ground: LabelGround, generator: torch.Generator) -> tuple[LabelGround, LabelGround]:
    """The ground without a tenth of its labels, at least one of each kind, and with those alone."""
    kinds = {"labelled": len(ground.positives)}
    if isinstance(ground, SceneGround):
        kinds["unlabeled"] = ground.labels.unlabeled.size
    orders = {kind: hold_out(count, generator) for kind, count in kinds.items()}
    for kind, (_, held) in orders.items():
        if not len(held):
            raise LabelError(
                f"vPU sets {kind} pixels apart to choose its epoch by, and needs at least two: "
                "give more"
            )
    parts = [ground.only(order) for order in orders["labelled"]]
    for part, order in zip(parts, orders.get("unlabeled", ()), strict=False):
        assert isinstance(part, SceneGround)
        part.labels = replace(part.labels, unlabeled=part.labels.unlabeled[order])
    return parts[0], parts[1]


class Players(nn.Module):
    """PAN's two networks: the classifier, and the discriminator of positive from unlabeled."""

    def __init__(self, classifier: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.classifier, self.discriminator = classifier, discriminator


@dataclass(frozen=True, eq=False)
class Game:
    """A scene as the ground of PAN: what is trained is a pair, and the classifier is the model."""

    scene: LabelGround

    @property
    def pixels(self) -> int:
        return self.scene.pixels

    @property
    def identity(self) -> list[bytes]:
        return self.scene.identity

    def batches(self, count: int, generator: torch.Generator) -> list[Any]:
        return self.scene.batches(count, generator)

    def new_net(self, generator: torch.Generator) -> Players:
        return Players(self.scene.new_net(generator), self.scene.new_net(generator))

    def logits(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        assert isinstance(net, Players)
        return self.scene.logits(net.classifier, batch)

    def facts(self) -> dict[str, Any]:
        return self.scene.facts()

    def model(self, net: nn.Module, facts: dict[str, Any]) -> Model:
        assert isinstance(net, Players)
        return self.scene.model(net.classifier, facts)


def _check_game(method: str, config: TrainConfig) -> None:
    """Refuse settings that PAN has no use for."""
    plain = replace(config, **SETTINGS[method], warmup=0)
    for name in ("loss", "beta", "ema", "warmup"):
        if getattr(config, name) != getattr(plain, name):
            raise ConfigError(
                f"{method} is a game of two networks, without a teacher, a warm-up or another "
                f"loss: leave {name!r} as it is"
            )


def _game_terms(
    value: Callable[..., Tensor], state: State, game: Game, batch: Any, config: TrainConfig
) -> Terms:
    """A step of PAN; its networks take turns by epochs: D raises the game's value, C lowers it.

    C sees of it only the coupling: its weight would be a factor on the learning rate, and is left
    out for C, as Adam would leave it out.
    """
    players = state.student
    assert isinstance(players, Players)
    if state.epoch % 2 == 0:
        with torch.no_grad():
            of_c = game.logits(players, batch)
        of_d = game.scene.logits(players.discriminator, batch)
        loss = -value(*of_d, of_c[1], eps=BOUND)
    else:
        with torch.no_grad():
            of_d = game.scene.logits(players.discriminator, batch)
        of_c = game.logits(players, batch)
        loss = pan_coupling(of_d[1], of_c[1], BOUND)
    positive, unlabeled = of_c[0].detach(), of_c[1].detach()
    part = positive_loss(positive)
    share = torch.sigmoid(unlabeled).mean()
    return Terms(loss, part, loss.detach() - part, torch.zeros_like(part), share)
