"""A scene in the geometry of its sensor as it lies on its map, where people see and label it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError
from thonecls.io.lookup import Lookup
from thonecls.io.raster import RasterSource
from thonecls.scene import Scene

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LaidSource:
    """A scene read by windows of its map; source: in the sensor's geometry."""

    source: RasterSource
    lookup: Lookup

    @property
    def shape(self) -> tuple[int, int]:
        return self.lookup.grid.shape

    @property
    def bands(self) -> int:
        return self.source.bands

    def thinned(self, positions: Sequence[int], rows: slice, columns: slice, step: int) -> Scene:
        """Some bands of a window of the map, of every step-th row and column."""
        pixels = self.lookup.table[rows, columns][::step, ::step]
        shown = pixels >= 0
        cube = np.zeros((len(positions), *pixels.shape), np.float32)
        if not shown.any():
            return Scene(cube, shown)
        down, across = np.divmod(pixels[shown], self.lookup.shape[1])
        top, left = int(down.min()), int(across.min())
        window = slice(top, int(down.max()) + 1), slice(left, int(across.max()) + 1)
        part = self.source.thinned(positions, *window, step)
        down, across = (down - top) // step, (across - left) // step
        cube[:, shown] = part.cube[:, down, across]
        valid = np.zeros(pixels.shape, dtype=bool)
        valid[shown] = part.valid[down, across]
        return Scene(cube, valid)

    def pixel(self, row: int, column: int) -> tuple[int, int] | None:
        """Row and column of the sensor's pixel that the map shows at a place; None for none."""
        found = int(self.lookup.table[row, column])
        return None if found < 0 else divmod(found, self.lookup.shape[1])

    def with_source(self, source: RasterSource) -> LaidSource:
        """The same with other bands, or another handle of the file."""
        return replace(self, source=source)


def whole_pixels(lookup: Lookup | None, pixels: IntArray) -> IntArray:
    """Pixels of a map with all others that show the same pixels of the sensor.

    Were one of them of the class and another not, nothing could be learnt from the pixel they show.
    """
    if lookup is None:
        return pixels
    table = lookup.table.ravel()
    wanted = np.unique(table[pixels])
    found = np.flatnonzero(np.isin(table, wanted[wanted >= 0]))
    if pixels.size and not found.size:
        raise LabelError("the sensor saw nothing here: label where the scene is shown")
    return found


def to_scene(lookup: Lookup | None, pixels: IntArray) -> IntArray:
    """The scene's own pixels that those of the map show."""
    if lookup is None:
        return pixels
    found = np.unique(lookup.table.ravel()[pixels])
    return found[found >= 0].astype(np.int64)


def to_map(lookup: Lookup | None, pixels: IntArray) -> IntArray:
    """All pixels of the map that show these of the scene."""
    return pixels if lookup is None else np.flatnonzero(np.isin(lookup.table.ravel(), pixels))
