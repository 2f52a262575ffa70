"""Several scenes laid out as one, with nodata between them, so that one training sees them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thonecls.errors import SceneError
from thonecls.scene import Scene, Source

GAP = 32  # pixels of nodata between scenes: more than half of any window that is looked through
Window = tuple[slice, slice]  # rows and columns


@dataclass(frozen=True, eq=False)
class Mosaic:
    """Scenes of the same bands as one source; what lies between them is nodata.

    corners: row and column at which each scene begins. Build one with `lay_out`.
    """

    sources: tuple[Source, ...]
    corners: tuple[tuple[int, int], ...]

    @property
    def bands(self) -> int:
        return self.sources[0].bands

    @property
    def shape(self) -> tuple[int, int]:
        ends = [(rows.stop, columns.stop) for rows, columns in self.windows]
        return max(end[0] for end in ends), max(end[1] for end in ends)

    @property
    def windows(self) -> tuple[Window, ...]:
        """Where each scene lies."""
        return tuple(
            window_at(corner, source.shape)
            for corner, source in zip(self.corners, self.sources, strict=True)
        )

    def read(self, rows: slice, columns: slice) -> Scene:
        """A window; scenes that it does not touch are not read."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        cube = np.zeros((self.bands, *shape), np.float32)
        valid = np.zeros(shape, dtype=bool)
        for source, (down, across) in zip(self.sources, self.windows, strict=True):
            top, left = max(rows.start, down.start), max(columns.start, across.start)
            bottom, right = min(rows.stop, down.stop), min(columns.stop, across.stop)
            if top >= bottom or left >= right:
                continue
            part = source.read(
                slice(top - down.start, bottom - down.start),
                slice(left - across.start, right - across.start),
            )
            here = (
                slice(top - rows.start, bottom - rows.start),
                slice(left - columns.start, right - columns.start),
            )
            cube[:, *here] = part.cube
            valid[here] = part.valid
        return Scene(cube, valid)


def window_at(corner: tuple[int, int], shape: tuple[int, int]) -> Window:
    """The rows and columns of a scene of this shape that begins at a corner.

    >>> window_at((2, 3), (4, 5))
    (slice(2, 6, None), slice(3, 8, None))
    """
    rows, columns = (slice(at, at + n) for at, n in zip(corner, shape, strict=True))
    return rows, columns


def find_corners(shapes: Sequence[tuple[int, int]], gap: int = GAP) -> tuple[tuple[int, int], ...]:
    """Where scenes of these shapes begin: side by side in lines, in their order, about a square.

    >>> find_corners([(10, 10), (20, 10), (10, 10)], gap=5)
    ((0, 0), (0, 15), (25, 0))
    """
    area = sum((rows + gap) * (columns + gap) for rows, columns in shapes)
    width = max(math.isqrt(area), *(columns for _, columns in shapes))
    corners, row, column, deepest = [], 0, 0, 0
    for rows, columns in shapes:
        if column and column + columns > width:
            row, column, deepest = row + deepest + gap, 0, 0
        corners.append((row, column))
        column, deepest = column + columns + gap, max(deepest, rows)
    return tuple(corners)


def lay_out(sources: Sequence[Source]) -> Mosaic:
    """Scenes as one, in their order; all must have the same bands."""
    counts = {source.bands for source in sources}
    if len(counts) != 1:
        raise SceneError(
            f"scenes that are learnt from together have the same bands. Got {sorted(counts)} "
            "instead: choose bands that all of them have"
        )
    return Mosaic(tuple(sources), find_corners([source.shape for source in sources]))


def windows_of(source: Source) -> tuple[Window, ...]:
    """Where the scenes of a mosaic lie; none of a single scene."""
    return source.windows if isinstance(source, Mosaic) else ()
