"""Pixels that a product's own quality layers flag as of no use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thonecls.io.raster.files import Format, LazyFile, RasterHeader
from thonecls.scene import BoolArray


class Product(NamedTuple):
    """What the headers of a product say, and words on how it is read."""

    header: RasterHeader
    words: tuple[str, ...]


@dataclass(frozen=True)
class Flag:
    """A band of a quality layer, and the values, or the bits, by which it flags a pixel."""

    number: int
    values: tuple[int, ...] = ()
    bits: int = 0

    def raised(self, raw: NDArray[Any]) -> BoolArray:
        """Where the flag is up."""
        if self.bits:
            return np.asarray(raw & self.bits != 0)
        return np.isin(raw, self.values)


@dataclass(frozen=True)
class Flagged:
    """A cube whose quality layers, on its own pixels, flag what is of no use."""

    cube: Format
    layers: tuple[tuple[Format, tuple[Flag, ...]], ...]

    @property
    def path(self) -> Path:
        return self.cube.path

    def open(self) -> Any:
        return self.cube.open(), [layer.open() for layer, _ in self.layers]

    def read(
        self, opened: Any, numbers: Sequence[int], rows: slice, columns: slice, step: int
    ) -> tuple[NDArray[Any], BoolArray | None]:
        file, beside = opened
        raw, mask = self.cube.read(file, numbers, rows, columns, step)
        valid = np.ones(raw.shape[1:], dtype=bool) if mask is None else mask.copy()
        for quality, (layer, flags) in zip(beside, self.layers, strict=True):
            bands, _ = layer.read(quality, [f.number for f in flags], rows, columns, step)
            for flag, band in zip(flags, bands, strict=True):
                valid &= ~flag.raised(band)
        return raw, valid


def flagged_file(cube: Format, layers: Sequence[tuple[Format, tuple[Flag, ...]]]) -> LazyFile:
    """The file of a cube, with what its quality layers flag taken out."""
    return LazyFile(Flagged(cube, tuple(layers)) if layers else cube)
