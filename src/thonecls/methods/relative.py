"""What vPU needs beside its loss, for scenes and for items alike: a part held out, and a scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.method.loop import Progress

HELD_OUT = 0.1  # share of both kinds of pixels or items by which the epoch is selected
LEAST = 1e-30  # a ceiling is never 0

M = TypeVar("M", bound=Any)  # a model: a dataclass with `training` and `ceiling`
T = TypeVar("T")
Order = NDArray[np.int64]


def hold_out(count: int, generator: torch.Generator) -> tuple[Order, Order]:
    """Indices of those that stay, at least one, and of a tenth that is held out, one if it can be.

    >>> [len(part) for part in hold_out(100, torch.Generator())]
    [90, 10]
    >>> [len(part) for part in hold_out(1, torch.Generator())]
    [1, 0]
    """
    held = min(count - 1, max(1, round(HELD_OUT * count)))
    order = torch.randperm(count, generator=generator).numpy()
    return np.sort(order[held:]), np.sort(order[:held])


class Relative(Generic[M]):
    """Makes probabilities relative to their largest among the unlabeled.

    The variational loss leaves their scale open. largest: of a model; it is asked for once for
    every epoch that is selected.
    """

    def __init__(self, largest: Callable[[M], float]) -> None:
        self.largest = largest
        self.known: dict[int, float] = {}

    def __call__(self, model: M) -> M:
        epoch = model.training.get("selected_epoch", 0)
        if epoch == 0 or epoch not in self.known:  # 0: within the first, nothing is selected yet
            self.known[epoch] = max(self.largest(model), LEAST)
        scaled: M = replace(model, ceiling=self.known[epoch])
        return scaled

    def told(
        self, callback: Callable[[Progress[M]], T] | None
    ) -> Callable[[Progress[M]], T] | None:
        """Tell of progress with models made so."""
        if callback is None:
            return None
        return lambda progress: callback(
            replace(progress, snapshot=lambda: self(progress.snapshot()))
        )
