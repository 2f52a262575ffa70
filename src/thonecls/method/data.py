"""The data of scenes: what a step of training sees of a scene and its labels.

`SceneData` shows the whole scene at every step, as the paper does; `CollageData` shows blocks
of it (see `collage`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from thonecls.errors import LabelError, SceneError
from thonecls.method.collage import WINDOW, Collage, Pool, build_pool
from thonecls.method.config import TrainConfig
from thonecls.method.frozen import average, freeze
from thonecls.method.model import Model, resolve_device
from thonecls.method.net import FreeOCNet
from thonecls.method.procedure import TrainingData
from thonecls.method.sampler import pseudo_batches
from thonecls.scene import (
    BandStatistics,
    Source,
    as_source,
    band_statistics,
    read_all,
    standardize,
)
from thonecls.splits import (
    Labels,
    check_labels,
    check_positives,
    draw_labels,
    positive_mask,
)


class LabelledData(TrainingData[Any, Model], Protocol):
    """The data of a scene, whole or as collages."""

    @property
    def positives(self) -> NDArray[np.int64]:
        """Flat indices in the scene, by which labels are numbered."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the scene."""

    def all_logits(self, net: nn.Module) -> tuple[Tensor, Tensor]:
        """Logits of all positives, and of the unlabeled pixels beside them."""

    def features(self, net: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """What the network's head reads at the positive and unlabeled pixels of a batch."""

    def hold_out(self, generator: torch.Generator) -> tuple[Self, Self]:
        """Without a tenth of its labels, and with those alone."""

    def only(self, positives: NDArray[np.int64]) -> Self:
        """The data with some of its positives, by their number."""


Pixels = tuple[Tensor, Tensor]  # flat indices of positive and of unlabeled ones
ROUNDS = 2  # collages that every positive is judged in
FROZEN = 24  # collages whose mean statistics a model keeps
Indices = NDArray[np.int64]


HELD_OUT = 0.1  # share of the labels, and of the unlabeled, that a validation loss is taken on


def hold_out(count: int, generator: torch.Generator) -> tuple[Indices, Indices]:
    """Indices of those that stay, at least one, and of a tenth that is held out, one if it can be.

    >>> [len(part) for part in hold_out(100, torch.Generator())]
    [90, 10]
    >>> [len(part) for part in hold_out(1, torch.Generator())]
    [1, 0]
    """
    held = min(count - 1, max(1, round(HELD_OUT * count)))
    order = torch.randperm(count, generator=generator).numpy()
    return np.sort(order[held:]), np.sort(order[:held])


def _too_few(kind: str) -> LabelError:
    return LabelError(
        f"vPU sets {kind} pixels apart to choose its epoch by, and needs at least two: give more"
    )


@dataclass(eq=False)
class SceneData:
    """A scene that every step sees whole, with the pixels to learn from."""

    cube: Tensor
    valid: Tensor | None
    labels: Labels
    statistics: BandStatistics
    device: torch.device
    width: float = 1.0

    @staticmethod
    def prepare(
        scene: Source | NDArray[Any],
        labels: Labels | ArrayLike,
        config: TrainConfig,
        generator: torch.Generator,
    ) -> SceneData:
        """Check the labels, draw unlabeled pixels where none are given, measure the bands."""
        source, device = as_source(scene), resolve_device(config.device)
        size = source.shape[0] * source.shape[1]
        if size > config.budget:
            raise SceneError(
                f"a scene of {size:,} pixels is too large to be seen whole at every step: train on "
                "blocks of it ('preset' collage, or config=COLLAGE), or raise the budget, now "
                f"{config.budget:,} pixels",
                options=("preset",),
            )
        whole = read_all(source)
        if not isinstance(labels, Labels):
            mask = positive_mask(labels, source.shape)
            labels = draw_labels(mask, whole.valid, config.unlabeled, _numpy_generator(generator))
        check_labels(labels, whole.valid)
        # In what order labels come does not matter.
        labels = Labels(
            np.sort(labels.positive), np.sort(labels.unlabeled), np.sort(labels.negative)
        )
        statistics = band_statistics(whole)
        cube = torch.from_numpy(standardize(whole, statistics)).to(device)[None]
        valid = None if whole.valid.all() else torch.from_numpy(whole.valid)[None, None].to(device)
        return SceneData(cube, valid, labels, statistics, device, config.width)

    @property
    def pixels(self) -> int:
        """How many a step sees, without those on nodata."""
        return self.cube[0, 0].numel() if self.valid is None else int(self.valid.sum())

    @property
    def shape(self) -> tuple[int, int]:
        return self.cube.shape[2], self.cube.shape[3]

    @property
    def identity(self) -> list[bytes]:
        """Of band statistics and labels."""
        arrays = self.statistics.mean, self.statistics.std, *_parts(self.labels)
        return [array.tobytes() for array in arrays]

    def facts(self) -> dict[str, Any]:
        """What a model remembers of its scene."""
        bands, rows, columns = self.cube.shape[1:]
        return {
            "scene": {"bands": bands, "rows": rows, "columns": columns},
            "positives": self.labels.positive.size,
            "unlabeled": self.labels.unlabeled.size,
        }

    def batches(self, count: int, generator: torch.Generator) -> list[Pixels]:
        """One epoch of pseudo-batches."""
        positive, unlabeled = map(torch.from_numpy, _parts(self.labels))
        return [
            (p.to(self.device), u.to(self.device))
            for p, u in pseudo_batches(positive, unlabeled, count, generator)
        ]

    def all_labels(self) -> list[Pixels]:
        """All pixels to learn from, as one batch."""
        positive, unlabeled = map(torch.from_numpy, _parts(self.labels))
        return [(positive.to(self.device), unlabeled.to(self.device))]

    @property
    def positives(self) -> Indices:
        """Their flat indices in the scene."""
        return self.labels.positive

    def hold_out(self, generator: torch.Generator) -> tuple[SceneData, SceneData]:
        """Without a tenth of the labelled and of the unlabeled pixels, and with those alone."""
        orders = [hold_out(len(part), generator) for part in _parts(self.labels)]
        for kind, (_, apart) in zip(("labelled", "unlabeled"), orders, strict=True):
            if not len(apart):
                raise _too_few(kind)
        kept, held = (
            replace(self, labels=Labels(self.labels.positive[p], self.labels.unlabeled[u]))
            for p, u in zip(*orders, strict=True)
        )
        return kept, held

    def all_logits(self, net: nn.Module) -> Pixels:
        """Logits of all labelled and of all unlabeled pixels, in float64."""
        return _joined([self.logits(net, batch) for batch in self.all_labels()])

    def only(self, positives: Indices) -> SceneData:
        """The same scene with some of its positives, by their number."""
        return replace(self, labels=replace(self.labels, positive=self.positives[positives]))

    def new_net(self, generator: torch.Generator) -> FreeOCNet:
        """A network whose weights depend on `generator` alone."""
        return _new_net(self.cube.shape[1], self.width, self.device, generator)

    def logits(self, net: nn.Module, batch: Pixels) -> Pixels:
        """Logits at the pixels of a batch."""
        return logits_at(net, self.cube, self.valid, batch)

    def features(self, net: nn.Module, batch: Pixels) -> tuple[Tensor, Tensor]:
        """What the head reads at the pixels of a batch: (n_p, width) and (n_u, width)."""
        return features_at(net, self.cube, self.valid, batch)

    def model(self, net: nn.Module, facts: dict[str, Any]) -> Model:
        """The network as it is now, with the statistics of the scene."""
        assert isinstance(net, FreeOCNet)
        frozen = freeze(net, self.cube, self.valid)
        return Model(copy.deepcopy(net).eval(), self.statistics, frozen, facts)


@dataclass(frozen=True, eq=False)
class CollageBatch:
    """A collage to be cut: the seed of its random numbers, and positives by their number.

    judge: as nearly as in the scene: blocks twice as large, of which only the middle counts.
    """

    seed: int
    positives: Indices
    judge: bool = False


@dataclass(eq=False)
class CollageData:
    """A scene that every step sees a collage of; unlabeled are all pixels of its random blocks."""

    pool: Pool
    shape: tuple[int, int]
    bands: int
    block: int
    label_blocks: int
    random_blocks: int
    gain: float
    device: torch.device
    width: float = 1.0
    _held: tuple[CollageBatch, tuple[Tensor, Tensor, Pixels]] | None = field(
        default=None, repr=False
    )

    @staticmethod
    def prepare(
        scene: Source | NDArray[Any],
        labels: Labels | ArrayLike,
        config: TrainConfig,
        generator: torch.Generator,
    ) -> CollageData:
        """Check the labels, and read what blocks are cut from; unlabeled pixels are not asked."""
        source = as_source(scene)
        if isinstance(labels, Labels):
            positive = np.sort(labels.positive)
        else:
            positive = np.flatnonzero(positive_mask(labels, source.shape))
        check_positives(positive, source.shape)
        rng = _numpy_generator(generator)
        block, components = config.block, config.components
        pool = build_pool(source, positive, side=WINDOW * block, components=components, rng=rng)
        blocks = block, config.label_blocks, config.random_blocks, config.gain
        device = resolve_device(config.device)
        return CollageData(pool, source.shape, source.bands, *blocks, device, config.width)

    @property
    def pixels(self) -> int:
        """How many a step sees, but for blocks that fill the canvas."""
        return (self.label_blocks + self.random_blocks) * self.block**2

    @property
    def identity(self) -> list[bytes]:
        """Of band statistics and labels."""
        statistics = self.pool.statistics
        arrays: list[NDArray[Any]] = [statistics.mean, statistics.std, self.pool.labels]
        if statistics.axes is not None:
            arrays.append(statistics.axes)
        return [array.tobytes() for array in arrays]

    def facts(self) -> dict[str, Any]:
        """What a model remembers of its scene."""
        rows, columns = self.shape
        return {
            "scene": {"bands": self.bands, "rows": rows, "columns": columns},
            "positives": len(self.pool.labels),
            "places": len(self.pool.parts),
        }

    def batches(self, count: int, generator: torch.Generator) -> list[CollageBatch]:
        """One epoch: positives come in turn, all of them before any comes again."""
        positives = len(self.pool.labels)
        rounds = -(-count * self.label_blocks // positives)
        orders = [torch.randperm(positives, generator=generator) for _ in range(rounds)]
        seeds = torch.randint(2**62, (count,), generator=generator).tolist()
        shares = torch.cat(orders)[: count * self.label_blocks].view(count, -1).numpy()
        return [CollageBatch(*pair) for pair in zip(seeds, shares, strict=True)]

    def all_labels(self) -> list[CollageBatch]:
        """Every positive `ROUNDS` times, in collages that are the same each time."""
        order, most = np.arange(len(self.pool.labels)), 4 * self.label_blocks
        starts = [(i, r) for r in range(ROUNDS) for i in range(0, len(order), most)]
        return [
            CollageBatch(len(order) * r + i, order[i : i + most], judge=True) for i, r in starts
        ]

    @property
    def positives(self) -> Indices:
        """Their flat indices in the scene."""
        return self.pool.pixels

    def hold_out(self, generator: torch.Generator) -> tuple[CollageData, CollageData]:
        """Without a tenth of the labelled pixels, and with those alone."""
        kept, held = hold_out(len(self.positives), generator)
        if not len(held):
            raise _too_few("labelled")
        return self.only(kept), self.only(held)

    def all_logits(self, net: nn.Module) -> Pixels:
        """Logits of all labelled pixels, and of the unlabeled ones beside them, in float64."""
        return _joined([self.logits(net, batch) for batch in self.all_labels()])

    def only(self, positives: Indices) -> CollageData:
        """The same scene with some of its positives, by their number."""
        return replace(self, pool=self.pool.only(positives), _held=None)

    def new_net(self, generator: torch.Generator) -> FreeOCNet:
        """A network whose weights depend on `generator` alone."""
        return _new_net(self.pool.statistics.channels, self.width, self.device, generator)

    def logits(self, net: nn.Module, batch: CollageBatch) -> Pixels:
        """Logits at the positives of a collage and at all pixels of its random blocks.

        Norms and gates take their statistics over the random blocks alone, which stand for the
        scene: it is with those that the network is to score it.
        """
        return logits_at(net, *self._seen(batch))

    def features(self, net: nn.Module, batch: CollageBatch) -> tuple[Tensor, Tensor]:
        """What the head reads at the same pixels: (n_p, width) and (n_u, width)."""
        return features_at(net, *self._seen(batch))

    def _seen(self, batch: CollageBatch) -> tuple[Tensor, Tensor, Pixels]:
        """The collage of a batch: student and teacher see the same."""
        if self._held is None or self._held[0] is not batch:
            self._held = batch, self._cut(batch)
        return self._held[1]

    def _cut(self, batch: CollageBatch) -> tuple[Tensor, Tensor, Pixels]:
        size, margin = (2 * self.block, self.block // 2) if batch.judge else (self.block, 0)
        cut = self.pool.cut(
            batch.positives,
            self.random_blocks,
            size,
            np.random.default_rng(batch.seed),
            margin=margin,
            gain=0.0 if batch.judge else self.gain,
        )
        positive, unlabeled = (
            torch.from_numpy(part).to(self.device) for part in (cut.positive, cut.unlabeled)
        )
        return *self._canvas(cut), (positive, unlabeled)

    def _canvas(self, cut: Collage) -> tuple[Tensor, Tensor]:
        """Cube and fair pixels as a network takes them: (1, k, H, W) and (1, 1, H, W)."""
        # Only so do the strides say, also of the one canvas, that channels come last.
        cube = torch.from_numpy(cut.cube.transpose(1, 2, 0))[None].permute(0, 3, 1, 2)
        return cube.to(self.device), torch.from_numpy(cut.fair)[None, None].to(self.device)

    def model(
        self, net: nn.Module, facts: dict[str, Any], seeds: Iterable[int] = range(FROZEN)
    ) -> Model:
        """The network as it is now, with the statistics of collages without labels.

        seeds: of these collages, one each.
        """
        assert isinstance(net, FreeOCNet)
        none, blocks = np.empty(0, dtype=np.int64), self.label_blocks + self.random_blocks
        parts = []
        for seed in seeds:
            cut = self.pool.cut(none, blocks, self.block, np.random.default_rng(seed))
            cube, fair = self._canvas(cut)
            parts.append(freeze(net, cube, None if cut.fair.all() else fair))
        return Model(copy.deepcopy(net).eval(), self.pool.statistics, average(parts), facts)


def _joined(logits: list[Pixels]) -> Pixels:
    positive, unlabeled = (torch.cat(parts).double() for parts in zip(*logits, strict=True))
    return positive, unlabeled


def logits_at(
    net: nn.Module, cube: Tensor, valid: Tensor | None, pixels: Pixels
) -> tuple[Tensor, Tensor]:
    """Logits at positive and at unlabeled pixels of a cube (N, C, H, W), and nowhere else."""
    assert isinstance(net, FreeOCNet)
    with _half(cube.device.type):
        logits = net.logits_at(cube, torch.cat(pixels), valid).float()
    positive, unlabeled = logits.split([len(part) for part in pixels])
    return positive, unlabeled


def features_at(
    net: nn.Module, cube: Tensor, valid: Tensor | None, pixels: Pixels
) -> tuple[Tensor, Tensor]:
    """As `logits_at`, but what the head reads there: (n, width) of either kind."""
    assert isinstance(net, FreeOCNet)
    with _half(cube.device.type):
        features = net.features_at(cube, torch.cat(pixels), valid).float()
    positive, unlabeled = features.split([len(part) for part in pixels])
    return positive, unlabeled


def _half(kind: str) -> torch.autocast:
    """On a GPU half precision, elsewhere what the step has asked for."""
    enabled = kind == "cuda" or torch.is_autocast_enabled(kind)
    return torch.autocast(kind, torch.bfloat16, enabled=enabled)


def _new_net(
    channels: int, width: float, device: torch.device, generator: torch.Generator
) -> FreeOCNet:
    """A network whose weights depend on `generator` alone; the global state stays as it was."""
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return FreeOCNet(channels, width=width).to(device)


def _parts(labels: Labels) -> tuple[Indices, Indices]:
    return labels.positive, labels.unlabeled


def _numpy_generator(generator: torch.Generator) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
