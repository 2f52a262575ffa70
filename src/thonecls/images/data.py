"""The data of images and tables: items one by one, and the model that scores them."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from thonecls.errors import LabelError
from thonecls.images.networks import StagedNet, scale
from thonecls.images.views import view_of
from thonecls.method.data import hold_out
from thonecls.method.taylor import at_least_float32

CHUNK = 500  # items scored at once
SAMPLED = 100  # unlabeled items by which data are known


class ItemBatch(NamedTuple):
    """What a step sees: places among the positive and among the unlabeled items.

    seed: of what the step itself draws, so that an interrupted training repeats it; view: which of
    the views of its images that the seed decides, None for the images as they are.
    """

    positive: Tensor
    unlabeled: Tensor
    seed: int
    view: int | None = None


class Rows:
    """Some rows of an array of items, as float32 tensors when they are asked for.

    items: (n, ...) uint8 images, which are scaled to -1..1, or float32; it may lie on disk.
    """

    def __init__(self, items: NDArray[Any], places: NDArray[np.int64] | None = None) -> None:
        self.items = items
        self.places = np.arange(len(items)) if places is None else places

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Tensor | NDArray[np.int64] | slice, device: torch.device) -> Tensor:
        """The rows of these numbers."""
        places = self.places[rows.cpu().numpy() if isinstance(rows, Tensor) else rows]
        taken = self.items[places]
        if taken.dtype == np.uint8:
            return scale(torch.from_numpy(taken).to(device))
        return torch.from_numpy(np.ascontiguousarray(taken, dtype=np.float32)).to(device)


@dataclass(frozen=True, eq=False)
class ItemModel:
    """A trained network for items.

    training: the facts of its training, ready for JSON; ceiling: what probabilities are divided
    by, 1 but for methods that leave their scale open.
    """

    net: StagedNet
    training: dict[str, Any]
    device: torch.device
    ceiling: float = 1.0

    def score(self, items: NDArray[Any] | Rows) -> NDArray[np.float32]:
        """Probability of the positive class, (n,): for items as the network was trained on."""
        probability = torch.sigmoid(self.logits(items)) / self.ceiling
        return probability.clamp(max=1).float().numpy()

    def logits(self, items: NDArray[Any] | Rows) -> Tensor:
        """Logits of items, (n,) float64 on the CPU."""
        rows = items if isinstance(items, Rows) else Rows(items)
        return item_logits(self.net, rows, self.device).cpu().double()


@torch.no_grad()
def item_logits(net: nn.Module, rows: Rows, device: torch.device) -> Tensor:
    """Logits of all rows, without a gradient."""
    parts = [
        net(rows.take(slice(start, start + CHUNK), device)) for start in range(0, len(rows), CHUNK)
    ]
    return torch.cat(parts) if parts else torch.zeros(0, device=device)


@dataclass(eq=False)
class ImageData:
    """Positive and unlabeled items, and batches of so many of either at a step.

    make: gives a new network, its weights drawn by torch's global random state.
    """

    positive: Rows
    unlabeled: Rows
    make: Callable[[], StagedNet]
    sizes: tuple[int, int]
    device: torch.device

    def __post_init__(self) -> None:
        if len(self.positive) == 0:
            raise LabelError("no item is labelled positive: label some, ideally a hundred or more")
        if len(self.unlabeled) == 0:
            raise LabelError("at least 2 unlabeled items are needed. Got 0 instead")

    @property
    def pixels(self) -> int:
        """Items that a step sees."""
        return sum(self.counts)

    @property
    def counts(self) -> tuple[int, int]:
        """How many positive and unlabeled items a step sees: no more than there are."""
        return (
            min(self.sizes[0], len(self.positive)),
            min(self.sizes[1], len(self.unlabeled)),
        )

    @cached_property
    def identity(self) -> list[bytes]:
        """Of the places of the items, and of the positive ones themselves."""
        digest = hashlib.sha256(self.positive.items[self.positive.places].tobytes())
        return [
            self.positive.places.tobytes(),
            self.unlabeled.places.tobytes(),
            digest.digest(),
            self.unlabeled.items[self.unlabeled.places[:SAMPLED]].tobytes(),
            repr((self.unlabeled.items.shape, self.sizes)).encode(),
        ]

    def facts(self) -> dict[str, Any]:
        """What a model remembers of its items."""
        return {
            "shape": list(self.positive.items.shape[1:]),
            "positives": len(self.positive),
            "unlabeled": len(self.unlabeled),
            "batch": list(self.counts),
        }

    def batches(self, count: int, generator: torch.Generator) -> list[ItemBatch]:
        """One epoch; either kind is shuffled and cut into batches, the rest of a round left out."""
        of_positive, of_unlabeled = (
            _rounds(len(rows), size, count, generator)
            for rows, size in zip((self.positive, self.unlabeled), self.counts, strict=True)
        )
        seeds = torch.randint(2**62, (count,), generator=generator).tolist()
        return [
            ItemBatch(p, u, seed)
            for p, u, seed in zip(of_positive, of_unlabeled, seeds, strict=True)
        ]

    def new_net(self, generator: torch.Generator) -> StagedNet:
        """A network whose weights depend on `generator` alone; the global state stays as it was."""
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return self.make().to(self.device)

    def hold_out(self, generator: torch.Generator) -> tuple[ImageData, ImageData]:
        """Without a tenth of the positive and of the unlabeled items, and with those alone."""
        rows = self.positive, self.unlabeled
        orders = [hold_out(len(part), generator) for part in rows]
        if not all(len(held) for _, held in orders) or len(orders[1][0]) < 2:
            raise LabelError(
                "vPU sets items apart to choose its epoch by: at least 2 labelled positives and 3 "
                f"unlabeled items are needed. Got {len(rows[0])} and {len(rows[1])} instead"
            )
        kept, held = (
            replace(
                self,
                positive=Rows(rows[0].items, rows[0].places[of_positive]),
                unlabeled=Rows(rows[1].items, rows[1].places[of_unlabeled]),
            )
            for of_positive, of_unlabeled in zip(*orders, strict=True)
        )
        return kept, held

    def all_logits(self, net: nn.Module) -> tuple[Tensor, Tensor]:
        """Logits of all positive and of all unlabeled items."""
        positive, unlabeled = (
            item_logits(net, rows, self.device) for rows in (self.positive, self.unlabeled)
        )
        return positive, unlabeled

    def inputs(self, batch: ItemBatch) -> tuple[Tensor, Tensor]:
        """The items of a batch, in the view that it asks for; rows of a table have no views."""
        positive = self.positive.take(batch.positive, self.device)
        unlabeled = self.unlabeled.take(batch.unlabeled, self.device)
        if batch.view is None or positive.ndim != 4:
            return positive, unlabeled
        random = torch.Generator().manual_seed(batch.seed + batch.view)
        seen = view_of(torch.cat([positive, unlabeled]), random)
        return seen[: len(positive)], seen[len(positive) :]

    def logits(self, net: nn.Module, batch: ItemBatch) -> tuple[Tensor, Tensor]:
        """Logits of the items of a batch."""
        logits: Tensor = net(torch.cat(self.inputs(batch)))
        positive, unlabeled = logits.split([len(batch.positive), len(batch.unlabeled)])
        return positive, unlabeled

    def features(self, net: nn.Module, batch: ItemBatch) -> tuple[Tensor, Tensor]:
        """What the network's last stage reads of the items of a batch: (n, width) of either.

        In float32 also inside autocast.
        """
        assert isinstance(net, StagedNet)
        features = at_least_float32(
            net.features(torch.cat(self.inputs(batch)), len(net.stages) - 1)
        )
        positive, unlabeled = features.split([len(batch.positive), len(batch.unlabeled)])
        return positive, unlabeled

    def model(self, net: nn.Module, facts: dict[str, Any]) -> ItemModel:
        """The network as it is now."""
        assert isinstance(net, StagedNet)
        return ItemModel(copy.deepcopy(net).eval(), facts, self.device)


def _rounds(there: int, size: int, count: int, generator: torch.Generator) -> list[Tensor]:
    """`count` batches of `size` distinct items: shuffled, cut, shuffled again when used up."""
    batches: list[Tensor] = []
    while len(batches) < count:
        order = torch.randperm(there, generator=generator)
        batches += order[: there // size * size].split(size)
    return batches[:count]
