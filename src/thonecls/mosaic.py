"""Several scenes laid out as one, with nodata between them, so that one training sees them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from thonecls.errors import SceneError
from thonecls.scene import Scene, Source

GAP = 32  # pixels of nodata between sites: more than half of any window that is looked through
SPARSE = 4  # times the area of its scenes that the rectangle of a site covers at most
Window = tuple[slice, slice]  # rows and columns


class Place(NamedTuple):
    """Where a scene begins: the number of a grid that scenes may share, and a pixel of it."""

    grid: int
    row: int
    column: int


@dataclass(frozen=True, eq=False)
class Mosaic:
    """Scenes of the same bands as one source; what lies between them is nodata.

    corners: row and column at which each scene begins; shape: rows and columns of all. Scenes that
    lie beside each other on the ground do so here: they are a site. Build one with `lay_out`.
    """

    sources: tuple[Source, ...]
    corners: tuple[tuple[int, int], ...]
    shape: tuple[int, int]

    @property
    def bands(self) -> int:
        return self.sources[0].bands

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

    def near(self, window: Window, halo: int) -> Mosaic:
        """The same with those scenes alone that a window with this halo touches."""
        near = [max(apart(window, other)) < halo for other in self.windows]
        kept = [number for number, one in enumerate(near) if one]
        return replace(
            self,
            sources=tuple(self.sources[number] for number in kept),
            corners=tuple(self.corners[number] for number in kept),
        )

    @cached_property
    def sites(self) -> list[list[int]]:
        """The scenes of each site, by number."""
        return find_sites(self.windows)

    def site_of(self, number: int) -> tuple[Mosaic, tuple[int, int]] | None:
        """The site of a scene as a mosaic of its own, and where the scene begins in it.

        None of a scene that lies alone.
        """
        site = next(site for site in self.sites if number in site)
        if len(site) == 1:
            return None
        down, across = around([self.windows[one] for one in site])
        corners = [
            (self.corners[one][0] - down.start, self.corners[one][1] - across.start) for one in site
        ]
        alone = Mosaic(
            tuple(self.sources[one] for one in site),
            tuple(corners),
            (down.stop - down.start, across.stop - across.start),
        )
        return alone, corners[site.index(number)]


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


def apart(one: Window, other: Window) -> tuple[int, int]:
    """Rows and columns between two windows: 0 where they touch, less where they share some.

    >>> apart(window_at((0, 0), (4, 4)), window_at((4, 6), (4, 4)))
    (0, 2)
    """
    rows, columns = (
        max(a.start - b.stop, b.start - a.stop) for a, b in zip(one, other, strict=True)
    )
    return rows, columns


def around(windows: Sequence[Window]) -> Window:
    """The rectangle about some windows."""
    rows, columns = (
        slice(min(window[axis].start for window in windows), max(w[axis].stop for w in windows))
        for axis in (0, 1)
    )
    return rows, columns


def _distances(windows: Sequence[Window]) -> NDArray[np.int64]:
    """The larger part of `apart`, of each window to each other: (n, n)."""
    ends = np.array([[(s.start, s.stop) for s in window] for window in windows])
    before = ends[:, None, :, 0] - ends[None, :, :, 1]
    return np.asarray(np.maximum(before, before.transpose(1, 0, 2)).max(axis=2))


def find_sites(windows: Sequence[Window]) -> list[list[int]]:
    """Scenes, by number, that lie less than `GAP` pixels from each other, and so on: site by site.

    >>> one, beside, far = (window_at((0, left), (9, 9)) for left in (0, 9, 90))
    >>> find_sites([one, far, beside])
    [[0, 2], [1]]
    """
    _, site = scipy.sparse.csgraph.connected_components(_distances(windows) < GAP)
    return [np.flatnonzero(site == number).tolist() for number in range(int(site.max()) + 1)]


def group(places: Sequence[Place | None], shapes: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Scenes, by number, that lie beside each other on the ground, less than `GAP` pixels apart.

    Scenes that overlap are dates of one place, or flight lines, and are never of one group; nor are
    scenes so far spread that most of their rectangle would be nodata (`SPARSE`).
    """
    windows = [
        window_at((0, 0) if p is None else p[1:], s) for p, s in zip(places, shapes, strict=True)
    ]
    known = np.array([-1 - number if p is None else p.grid for number, p in enumerate(places)])
    distance = np.where(known[:, None] == known, _distances(windows), GAP)
    overlap = distance < 0
    group_of = np.arange(len(places))
    for one, other in np.argwhere(np.triu(distance < GAP, 1) & ~overlap).tolist():
        mine, its = (np.flatnonzero(group_of == group_of[number]) for number in (one, other))
        if group_of[one] == group_of[other] or overlap[np.ix_(mine, its)].any():
            continue
        both = [*mine.tolist(), *its.tolist()]
        down, across = around([windows[number] for number in both])
        covered = sum(math.prod(shapes[number]) for number in both)
        if (down.stop - down.start) * (across.stop - across.start) <= SPARSE * covered:
            group_of[its] = group_of[one]
    return [np.flatnonzero(group_of == number).tolist() for number in np.unique(group_of)]


def lay_out(sources: Sequence[Source], places: Sequence[Place | None] | None = None) -> Mosaic:
    """Scenes as one; all must have the same bands.

    places: where each lies on the ground, None where that is not known. Those beside each other are
    laid out as they lie there, the others side by side in their order.
    """
    counts = {source.bands for source in sources}
    if len(counts) != 1:
        raise SceneError(
            f"scenes that are learnt from together have the same bands. Got {sorted(counts)} "
            "instead: choose bands that all of them have"
        )
    shapes = [source.shape for source in sources]
    places = [None] * len(sources) if places is None else places
    groups = group(places, shapes)
    inside: list[tuple[int, int]] = [(0, 0)] * len(sources)
    sizes = []
    for numbers in groups:
        at = [places[n] or Place(-1, 0, 0) for n in numbers]
        top, left = min(place.row for place in at), min(place.column for place in at)
        for number, place in zip(numbers, at, strict=True):
            inside[number] = place.row - top, place.column - left
        down, across = around([window_at(inside[n], shapes[n]) for n in numbers])
        sizes.append((down.stop, across.stop))
    corners = list(inside)
    for numbers, (row, column) in zip(groups, find_corners(sizes), strict=True):
        for number in numbers:
            corners[number] = inside[number][0] + row, inside[number][1] + column
    down, across = around([window_at(c, s) for c, s in zip(corners, shapes, strict=True)])
    return Mosaic(tuple(sources), tuple(corners), (down.stop, across.stop))


def sites_of(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Where the sites of a mosaic of scenes in these windows lie; none where there is but one."""
    sites = find_sites(windows) if windows else []
    return tuple(around([windows[n] for n in site]) for site in sites) if len(sites) > 1 else ()


def windows_of(source: Source) -> tuple[Window, ...]:
    """Where the sites of a mosaic lie; none of a single scene, nor of scenes that make up one."""
    return sites_of(source.windows) if isinstance(source, Mosaic) else ()
