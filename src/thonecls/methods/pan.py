"""PAN (Hu 2021): a game of a classifier and a discriminator of positive from unlabeled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from thonecls.errors import ConfigError
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.data import LabelledData
from thonecls.method.loop import run
from thonecls.method.losses import pan_coupling, pan_value, pan_value_reference
from thonecls.method.model import Model
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.taylor import positive_loss

GAMES = {"pan": pan_value, "pan-reference": pan_value_reference}
FIXED = {"loss": "bce", "beta": 0.0, "ema": False, "warmup": 0}  # it has no use for others
BOUND = 0.01  # eps in the logarithms of PAN's coupling, which has no bound without it


def train(data: LabelledData, *, method: str = "pan", **how: Any) -> Model:
    """Train the pair on a scene by one of `GAMES`; how: as for `run`."""
    procedure = Procedure[Any](name=method, step_losses=partial(_game_losses, GAMES[method]))
    model: Model = run(Game(data), procedure=procedure, **how)
    return model


train_reference = partial(train, method="pan-reference")


class Players(nn.Module):
    """PAN's two networks: the classifier, and the discriminator of positive from unlabeled."""

    def __init__(self, classifier: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.classifier, self.discriminator = classifier, discriminator


@dataclass(frozen=True, eq=False)
class Game:
    """A scene as the data of PAN: what is trained is a pair, and the classifier is the model."""

    scene: LabelledData

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


def check(method: str, config: TrainConfig) -> None:
    """Refuse settings that PAN has no use for."""
    for name, value in FIXED.items():
        if getattr(config, name) != value:
            raise ConfigError(
                f"{method} is a game of two networks, without a teacher, a warm-up or another "
                f"loss: leave {name!r} as it is"
            )


def _game_losses(
    value: Callable[..., Tensor], state: State, game: Game, batch: Any, config: TrainConfig
) -> StepLosses:
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
    return StepLosses(loss, part, loss.detach() - part, torch.zeros_like(part), share)
