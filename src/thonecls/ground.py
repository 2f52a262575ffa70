"""The ground of scenes: a cube, its labels, and what a step sees of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from thonecls.frozen import average, freeze
from thonecls.model import Model
from thonecls.net import FreeOCNet
from thonecls.sampler import pseudo_batches
from thonecls.scene import (
    BandStatistics,
    Source,
    as_source,
    pooled_statistics,
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
from thonecls.windows import Sheet, cut_sheets, whole

Pixels = tuple[Tensor, Tensor]  # flat indices of positive and of unlabeled ones
Batch = tuple[int, Pixels]  # which sheet a step sees, and the pseudo-batch inside it


@dataclass(eq=False)
class SceneGround:
    """A scene in one sheet, or in several where it is over the budget, ready for the network."""

    source: Source
    sheets: list[Sheet]
    statistics: BandStatistics
    device: torch.device
    width: float = 1.0
    _held: tuple[int, tuple[Tensor, Tensor | None]] | None = field(default=None, repr=False)

    @staticmethod
    def prepare(
        scene: Source | NDArray[Any],
        labels: Labels | ArrayLike,
        *,
        unlabeled: int,
        budget: int,
        batches: int,
        device: torch.device,
        width: float,
        generator: torch.Generator,
    ) -> SceneGround:
        """Check the labels, draw unlabeled pixels where none are given, measure the bands."""
        source = as_source(scene)
        sheets = _sheets(source, labels, unlabeled, budget, batches, generator)
        statistics = pooled_statistics(sheet.read(source) for sheet in sheets)
        return SceneGround(source, sheets, statistics, device, width)

    @property
    def pixels(self) -> int:
        """How many a step sees."""
        sheet = self.sheets[0]
        return len(sheet.origins) * sheet.size[0] * sheet.size[1]

    @property
    def identity(self) -> list[bytes]:
        """Of band statistics, windows and labels."""
        parts = [self.statistics.mean.tobytes(), self.statistics.std.tobytes()]
        for sheet in self.sheets:
            parts += [sheet.origins.tobytes()]
            parts += [sheet.labels.positive.tobytes(), sheet.labels.unlabeled.tobytes()]
        return parts

    def facts(self) -> dict[str, Any]:
        """What a model remembers of its scene."""
        source, sheets = self.source, self.sheets
        return {
            "scene": {"bands": source.bands, "rows": source.shape[0], "columns": source.shape[1]},
            "windows": sum(len(sheet.origins) for sheet in sheets),
            "window": list(sheets[0].size),
            "positives": sum(sheet.labels.positive.size for sheet in sheets),
            "unlabeled": sum(sheet.labels.unlabeled.size for sheet in sheets),
        }

    def batches(self, count: int, generator: torch.Generator) -> list[Batch]:
        """One epoch of pseudo-batches."""
        if len(self.sheets) > 1:
            order = torch.randperm(len(self.sheets), generator=generator).tolist()
            return [self.whole_batch(i, self.sheets[i].labels) for i in order]
        labels = self.sheets[0].labels
        parts = torch.from_numpy(labels.positive), torch.from_numpy(labels.unlabeled)
        return [
            (0, (p.to(self.device), u.to(self.device)))
            for p, u in pseudo_batches(*parts, count, generator)
        ]

    def whole_batch(self, index: int, labels: Labels) -> Batch:
        """All of some labels of one sheet."""
        positive, unlabeled = torch.from_numpy(labels.positive), torch.from_numpy(labels.unlabeled)
        return index, (positive.to(self.device), unlabeled.to(self.device))

    def new_net(self, generator: torch.Generator) -> FreeOCNet:
        """A network whose weights depend on `generator` alone; the global state stays as it was."""
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return FreeOCNet(self.source.bands, width=self.width).to(self.device)

    def logits(self, net: nn.Module, batch: Batch) -> Pixels:
        """Logits at the pixels of a batch."""
        index, pixels = batch
        return logits_at(net, *self.inputs(index), pixels)

    def inputs(self, index: int) -> tuple[Tensor, Tensor | None]:
        """A sheet's z-scored windows (N, C, H, W), and which pixels are valid; one is held."""
        if self._held is None or self._held[0] != index:
            self._held = None  # let the last one go before the next is read
            self._held = index, self._read(self.sheets[index])
        return self._held[1]

    def _read(self, sheet: Sheet) -> tuple[Tensor, Tensor | None]:
        scene, (rows, columns) = sheet.read(self.source), sheet.size
        stacked = torch.from_numpy(standardize(scene, self.statistics)).to(self.device)
        cube = stacked.view(scene.bands, -1, rows, columns).transpose(0, 1).contiguous()
        if scene.valid.all():
            return cube, None
        return cube, torch.from_numpy(scene.valid).to(self.device).view(-1, 1, rows, columns)

    def model(self, net: nn.Module, facts: dict[str, Any]) -> Model:
        """The network as it is now, with the statistics of this ground."""
        assert isinstance(net, FreeOCNet)
        parts = [freeze(net, *self.inputs(i)) for i in range(len(self.sheets))]
        frozen = parts[0] if len(parts) == 1 else average(parts)
        return Model(copy.deepcopy(net).eval(), self.statistics, frozen, facts)


def logits_at(
    net: nn.Module, cube: Tensor, valid: Tensor | None, pixels: Pixels
) -> tuple[Tensor, Tensor]:
    """Logits at positive and at unlabeled pixels of a cube (N, C, H, W), and nowhere else."""
    assert isinstance(net, FreeOCNet)
    with torch.autocast(cube.device.type, torch.bfloat16, enabled=cube.device.type == "cuda"):
        logits = net.logits_at(cube, torch.cat(pixels), valid).float()
    positive, unlabeled = logits.split([len(part) for part in pixels])
    return positive, unlabeled


def _sheets(
    source: Source,
    labels: Labels | ArrayLike,
    unlabeled: int,
    budget: int,
    batches: int,
    generator: torch.Generator,
) -> list[Sheet]:
    """The whole scene, or sheets of windows where it is over the budget."""
    if isinstance(labels, Labels):
        check_positives(labels.positive, source.shape)
    if source.shape[0] * source.shape[1] > budget:
        if isinstance(labels, Labels):
            positive, unlabeled = labels.positive, len(labels.unlabeled)
        else:
            positive = np.flatnonzero(positive_mask(labels, source.shape))
            check_positives(positive, source.shape)
        return cut_sheets(
            source,
            positive,
            unlabeled=unlabeled,
            budget=budget,
            count=batches,
            rng=_numpy_generator(generator),
        )
    valid = read_all(source).valid
    if not isinstance(labels, Labels):
        mask = positive_mask(labels, source.shape)
        labels = draw_labels(mask, valid, unlabeled, _numpy_generator(generator))
    check_labels(labels, valid)
    return whole(source, labels)


def _numpy_generator(generator: torch.Generator) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
