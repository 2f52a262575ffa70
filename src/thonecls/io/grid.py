"""Where the pixels of a scene lie on Earth: shape, affine transform and CRS as one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from pyproj import CRS

from thonecls.mosaic import Place, Window, sites_of, window_at

if TYPE_CHECKING:
    from thonecls.io.lookup import Lookup

OFF = 0.05  # pixels by which scenes of one grid may be off it


class Part(NamedTuple):
    """A scene of a mosaic: its name, its grid, and the row and column at which it begins."""

    name: str
    grid: Grid
    row: int
    column: int

    @property
    def window(self) -> Window:
        """The rows and columns of the mosaic that are its own."""
        return window_at((self.row, self.column), self.grid.shape)


@dataclass(frozen=True, init=False)
class Grid:
    """Where the pixels of a scene lie on Earth, compared by value.

    shape: rows and columns; transform: from column and row, of the upper left corner of a pixel, to
    x and y, given as an `Affine` or as its six numbers; crs: as WKT, None if unknown. lookup: of a
    scene in the geometry of its sensor, whose pixels no transform brings to Earth: how it is laid
    on a map, `on_map`; parts: the scenes of a mosaic, of which each has its own grid, none of a
    single scene.

    >>> Grid((2, 3)).footprint.bounds
    (0.0, 0.0, 3.0, 2.0)
    """

    shape: tuple[int, int]
    transform: Affine
    crs: str | None
    lookup: Lookup | None
    parts: tuple[Part, ...]

    def __init__(
        self,
        shape: tuple[int, int],
        transform: Affine | Sequence[float] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
        crs: str | None = None,
        lookup: Lookup | None = None,
        parts: tuple[Part, ...] = (),
    ) -> None:
        object.__setattr__(self, "shape", shape)  # the fields are frozen
        object.__setattr__(self, "transform", Affine(*tuple(transform)[:6]))
        object.__setattr__(self, "crs", crs)
        object.__setattr__(self, "lookup", lookup)
        object.__setattr__(self, "parts", parts)

    @property
    def on_map(self) -> Grid:
        """The grid in which maps of the scene are written: its own, unless there is a lookup."""
        return self if self.lookup is None else self.lookup.grid

    @property
    def georeferenced(self) -> bool:
        """Whether it is known where its pixels lie; of a mosaic, those of all its scenes."""
        if self.parts:
            return all(part.grid.on_map.georeferenced for part in self.parts)
        return self.crs is not None

    @property
    def windows(self) -> tuple[Window, ...]:
        """Where the scenes of a mosaic lie in it; none of a single scene."""
        return tuple(part.window for part in self.parts)

    @property
    def sites(self) -> tuple[Window, ...]:
        """Where the sites of a mosaic lie (see `thonecls.mosaic`); none where there is but one."""
        return sites_of(self.windows)

    @property
    def north_up(self) -> bool:
        """Whether rows run south and columns east; of a mosaic, in all its scenes."""
        if self.parts:
            return all(part.grid.north_up for part in self.parts)
        a, b, _, d, e, _ = self.transform[:6]
        return self.georeferenced and b == d == 0 and a > 0 and e < 0

    @property
    def crs_name(self) -> str:
        """EPSG:32633 where there is such a code, else the name; "no CRS" without one."""
        return "no CRS" if self.crs is None else crs_name(CRS.from_wkt(self.crs))

    @property
    def footprint(self) -> shapely.Polygon:
        """The scene's outline, in its CRS."""
        a, b, c, d, e, f = self.transform[:6]
        rows, columns = self.shape
        corners = [(0, 0), (columns, 0), (columns, rows), (0, rows)]
        return shapely.Polygon([(a * x + b * y + c, d * x + e * y + f) for x, y in corners])

    def to_pixels(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Column and row, with fractions, of (n, 2) coordinates in the scene's CRS."""
        a, b, c, d, e, f = self.transform[:6]
        x, y = (xy - [c, f]).T
        determinant = a * e - b * d
        pixels = np.column_stack([e * x - b * y, a * y - d * x]) / determinant
        # Nearer to an edge than floats of this size can tell is on the edge.
        coarse = np.spacing(np.abs(xy).max(axis=1, initial=max(abs(c), abs(f)), keepdims=True))
        noise = 4 * coarse * max(abs(a) + abs(b), abs(d) + abs(e)) / abs(determinant)
        edges = np.rint(pixels)
        return np.asarray(np.where(np.abs(pixels - edges) <= noise, edges, pixels))

    def describe(self) -> str:
        """Size, pixels and extent, in words."""
        if self.lookup is not None:
            rows, columns = self.shape
            image = f"{rows} rows × {columns} columns in the geometry of the sensor"
            return f"{image}; its map {self.lookup.grid.describe()}"
        a, b, _, d, e, _ = self.transform[:6]
        size = f"{math.hypot(a, d):.7g} × {math.hypot(b, e):.7g}"
        rows, columns = self.shape
        span = extent(self.footprint)
        return f"{rows} rows × {columns} columns of {size}, {span} ({self.crs_name})"


def places_of(grids: Sequence[Grid]) -> list[Place | None]:
    """Where scenes lie on grids of pixels that they share; None where that is not known.

    Scenes share a grid if they have the same CRS and pixels, and one begins a whole number of
    pixels from the other.
    """
    firsts: list[Grid] = []
    found: list[Place | None] = []
    for grid in grids:
        if grid.crs is None or grid.lookup is not None:
            found.append(None)
            continue
        places = (_place_on(first, number, grid) for number, first in enumerate(firsts))
        place = next((place for place in places if place is not None), None)
        if place is None:
            place = Place(len(firsts), 0, 0)
            firsts.append(grid)
        found.append(place)
    return found


def _place_on(first: Grid, number: int, grid: Grid) -> Place | None:
    """Where a scene begins on the pixels of another; None if it does not lie on them."""
    if first.crs != grid.crs:
        return None
    rows, columns = grid.shape
    a, b, c, d, e, f = grid.transform[:6]
    corners = np.array([(0, 0), (columns, 0), (0, rows), (columns, rows)])
    xy = np.column_stack([corners @ [a, b] + c, corners @ [d, e] + f])
    offsets = first.to_pixels(xy) - corners
    column, row = np.rint(offsets[0]).astype(int).tolist()
    return Place(number, row, column) if np.abs(offsets - (column, row)).max() <= OFF else None


def crs_name(crs: CRS) -> str:
    """EPSG:32633 where there is such a code, else the name."""
    return ":".join(crs.to_authority() or (crs.name,))


def extent(shapes: NDArray[Any] | shapely.Geometry) -> str:
    """The span of x and y, in words."""
    left, low, right, high = shapely.total_bounds(shapes)
    return f"x {left:.10g} to {right:.10g}, y {low:.10g} to {high:.10g}"
