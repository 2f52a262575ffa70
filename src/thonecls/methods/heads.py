"""Networks with a second head, for methods that learn more than a logit; the rest as without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from thonecls.method.procedure import TrainingData

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


class Readable(TrainingData[Any, M_co], Protocol[M_co]):
    """Data that also give what the last layer of a network reads."""

    def features(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """Of the positive and of the unlabeled pixels or items of a batch: (n, width) each."""


class TwoHeads(nn.Module):
    """A network, and a second head that reads what its last layer reads."""

    def __init__(self, net: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.net, self.head = net, head

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.net(inputs)
        return logits

    def second(self, features: Tensor) -> Tensor:
        """What the second head makes of features (n, width), in float32 also inside autocast."""
        with torch.autocast(features.device.type, enabled=False):
            made: Tensor = self.head(features)
        return made

    def readout(self, features: Tensor) -> Tensor:
        """Logits (n,) of features (n, width), by the network itself."""
        net: Any = self.net
        logits: Tensor = net.readout(features)
        return logits


@dataclass(frozen=True, eq=False)
class TwoHeadedData(Generic[M]):
    """A scene or images whose networks have a second head; the network without it is the model.

    head: makes one for so many features.
    """

    data: Readable[M]
    head: Callable[[int], nn.Module]

    @property
    def pixels(self) -> int:
        return self.data.pixels

    @property
    def identity(self) -> list[bytes]:
        return self.data.identity

    def batches(self, count: int, generator: torch.Generator) -> list[Any]:
        return self.data.batches(count, generator)

    def new_net(self, generator: torch.Generator) -> TwoHeads:
        net = self.data.new_net(generator)
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            head = self.head(width_of(net))
        return TwoHeads(net, head.to(next(net.parameters()).device))

    def logits(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        return self.data.logits(_within(net), batch)

    def features(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        return self.data.features(_within(net), batch)

    def facts(self) -> dict[str, Any]:
        return self.data.facts()

    def model(self, net: nn.Module, facts: dict[str, Any]) -> M:
        return self.data.model(_within(net), facts)


def _within(net: nn.Module) -> nn.Module:
    assert isinstance(net, TwoHeads)
    return net.net


def width_of(net: nn.Module) -> int:
    """How many features the last layer of a network reads."""
    layers = [m for m in net.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    return layers[-1].weight.shape[1]
