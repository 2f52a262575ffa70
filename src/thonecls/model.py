"""A trained model: weights, band statistics and what it was trained with; scored and saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from thonecls import store
from thonecls.errors import ConfigError, ModelError
from thonecls.frozen import HALO, STRIDE, FrozenNet
from thonecls.net import WIDTHS, FreeOCNet
from thonecls.scene import BandStatistics, Source, as_source, standardize

MEMORY = 1.8e9  # bytes that a tile with its halo may take while it is scored


@dataclass(frozen=True, eq=False)
class Model:
    """The teacher network with all it needs to map a scene.

    frozen: what norms and gates saw of the training scene (see `frozen.freeze`);
    training: JSON-ready facts about how it came to be (config, history, versions, counts);
    ceiling: what counts as certain: probabilities are divided by it, and cut at 1.
    """

    net: FreeOCNet
    statistics: BandStatistics
    frozen: dict[str, Tensor]
    training: dict[str, Any] = field(default_factory=dict)
    ceiling: float = 1.0

    @property
    def bands(self) -> int:
        return len(self.statistics.mean)

    def score(
        self, cube: Source | NDArray[Any], *, device: str = "auto", tile: int | None = None
    ) -> NDArray[np.float32]:
        """Probability of the target class, (H, W) float32, NaN on nodata.

        cube: a scene, a source, or a (C, H, W) array, with the bands that the model was trained
        on. The tile's side bounds the memory, and does not change the result.
        """
        source = as_source(cube)
        probability = np.empty(source.shape, dtype=np.float32)
        for rows, columns, part in self.score_windows(source, device=device, tile=tile):
            probability[rows, columns] = part
        return probability

    def score_windows(
        self, source: Source, *, device: str = "auto", tile: int | None = None
    ) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Score a scene of any size window by window: rows, columns and their probabilities.

        Each window is read with a halo as wide as the network looks, so the result is exact, and
        only one window is held at a time.
        """
        if source.bands != self.bands:
            raise ModelError(
                f"the model was trained on {self.bands} bands, the scene has {source.bands}: "
                "give it the same bands, in the same order"
            )
        net = FrozenNet(self.net, self.frozen, resolve_device(device))
        return self._score_windows(net, source, tile or _default_tile(source.bands))

    def _score_windows(
        self, net: FrozenNet, source: Source, tile: int
    ) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        shape = source.shape
        for rows in _tiles(shape[0], tile):
            for columns in _tiles(shape[1], tile):
                around = [_with_halo(*part) for part in ((rows, shape[0]), (columns, shape[1]))]
                scene = source.read(*around)
                inputs = torch.from_numpy(standardize(scene, self.statistics)).to(net.device)
                with torch.inference_mode():
                    probability = torch.sigmoid(net(inputs[None])).cpu().numpy()
                if self.ceiling != 1:
                    probability = np.minimum(probability / np.float32(self.ceiling), 1)
                probability[~scene.valid] = np.nan
                inner = tuple(
                    slice(part.start - wide.start, part.stop - wide.start)
                    for part, wide in zip((rows, columns), around, strict=True)
                )
                yield rows, columns, probability[inner]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all. It holds no code."""
        tensors = {
            **store.prefixed("net.", self.net.state_dict()),
            **store.prefixed("frozen.", self.frozen),
            "bands.mean": torch.from_numpy(self.statistics.mean),
            "bands.std": torch.from_numpy(self.statistics.std),
        }
        about = {
            "net": self.net.settings,
            "training": self.training,
            "ceiling": self.ceiling,
        }
        store.save(Path(path), "model", about, tensors)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Read what `save` wrote; refuse a damaged file and one of another version."""
        about, tensors = store.load(Path(path), "model")
        net = FreeOCNet(**about["net"])
        net.load_state_dict(store.part(tensors, "net."))
        bands = store.part(tensors, "bands.")
        statistics = BandStatistics(bands["mean"].numpy(), bands["std"].numpy())
        frozen = store.part(tensors, "frozen.")
        ceiling = about.get("ceiling", 1.0)  # older files know of none
        return Model(net.eval(), statistics, frozen, about["training"], ceiling)


def resolve_device(name: str) -> torch.device:
    """The torch device of a name; "auto" takes CUDA, then MPS, then the CPU."""
    if name != "auto":
        try:
            device = torch.device(name)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ConfigError(
                f"the device {name!r} cannot be used here: take auto, cpu, cuda or mps"
            ) from error
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _default_tile(bands: int) -> int:
    """The side of a tile that keeps to `MEMORY`: two copies of the cube, and the features."""
    a_pixel = 4 * (2 * bands + 4 * WIDTHS[0])
    return max(STRIDE * 8, int((MEMORY / a_pixel) ** 0.5) - 2 * HALO)


def _tiles(length: int, tile: int) -> list[slice]:
    """Cuts of an axis at multiples of the network's stride."""
    step = max(1, -(-tile // STRIDE)) * STRIDE
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _with_halo(part: slice, length: int) -> slice:
    return slice(max(0, part.start - HALO), min(length, part.stop + HALO))
