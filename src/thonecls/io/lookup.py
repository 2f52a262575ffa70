"""From the geometry of a sensor to that of a map, by a geometry lookup table (GLT)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy
from numpy.typing import NDArray

from thonecls.errors import FileError
from thonecls.io.drivers import open_raster_as
from thonecls.io.grid import Grid
from thonecls.scene import BoolArray, FloatArray

Pixels = NDArray[np.int64]  # flat indices, -1 for none
GEOMETRY = "geometry.tif"  # the table beside a map
GAP = 2.0  # pixels of a map beside one that shows a pixel of the sensor, which show it too
NONE = -1  # in a table: a pixel of the map that shows no pixel of the sensor


@dataclass(frozen=True)
class Lookup:
    """Which pixel of a sensor's image each pixel of a map shows.

    path: of the file that holds the table; shape: of the sensor's image; grid: of the map; names:
    of the table's arrays of columns and of rows in an HDF5 file, None for a raster of flat indices;
    places: whether these are of the x and y of each pixel of the image instead. It can be pickled:
    the table itself is read when it is first needed.
    """

    path: Path
    shape: tuple[int, int]
    grid: Grid
    names: tuple[str, str] | None = None
    places: bool = False

    @property
    def table(self) -> NDArray[np.int32]:
        """Flat indices into the sensor's image, as large as the map; `NONE` where there is none."""
        return _table(self, self.path.stat().st_mtime_ns)

    def to_sensor(self, mask: BoolArray) -> BoolArray:
        """The pixels of the sensor that a mask of the map shows."""
        found = np.zeros(self.shape, dtype=bool)
        shown = self.table[mask]
        found.flat[shown[shown >= 0]] = True
        return found

    def on_sensor(self, layer: FloatArray) -> FloatArray:
        """A layer of the map, carried back; NaN at pixels of the sensor that no map shows."""
        found = np.full(self.shape, np.nan, np.float32)
        shown = self.table >= 0
        found.flat[self.table[shown]] = layer[shown]
        return found

    def to_map(self, pixels: Pixels) -> Pixels:
        """A pixel of the map for each of the sensor, by flat indices; -1 where no map shows it."""
        table = self.table.ravel()
        places = np.flatnonzero(np.isin(table, pixels))
        shown, first = np.unique(table[places], return_index=True)
        found = np.full(pixels.shape, NONE, np.int64)
        if shown.size:
            at = np.minimum(np.searchsorted(shown, pixels), shown.size - 1)
            known = shown[at] == pixels
            found[known] = places[first[at[known]]]
        return found


@lru_cache(maxsize=2)
def _table(lookup: Lookup, changed: int) -> NDArray[np.int32]:
    """The table of a file; changed: its time, so that a new one is not taken for the old."""
    try:
        table = _read_raster(lookup) if lookup.names is None else _read_glt(lookup)
    except (OSError, KeyError, ValueError) as error:
        raise FileError(
            f"cannot read the lookup table of {lookup.path} ({error}): copy the file again"
        ) from error
    if table.shape != lookup.grid.shape or table.max(initial=NONE) >= np.prod(lookup.shape):
        raise FileError(
            f"the lookup table of {lookup.path} is not one of an image of {lookup.shape}: copy the "
            "file again"
        )
    table.setflags(write=False)
    return table


def _read_raster(lookup: Lookup) -> NDArray[np.int32]:
    with open_raster_as(lookup.path, ["GTiff"]) as file:
        return np.asarray(file.read(1), dtype=np.int32)


def _read_glt(lookup: Lookup) -> NDArray[np.int32]:
    """A GLT counts from 1; 0 is nothing, and a negative number a pixel that fills a gap."""
    assert lookup.names is not None
    rows, columns = lookup.shape
    with h5py.File(lookup.path, "r") as tree:
        if lookup.places:
            return _from_places(lookup, *(tree[name][:] for name in lookup.names))
        x, y = (_whole(tree[name]) for name in lookup.names)
    inside = (x >= 1) & (x <= columns) & (y >= 1) & (y <= rows)  # fills such as 9999 are outside
    return np.where(inside, (y - 1) * columns + x - 1, NONE).astype(np.int32)


def _from_places(lookup: Lookup, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int32]:
    """A table from the place of each pixel; the gaps between them are filled by the nearest."""
    at = lookup.grid.to_pixels(np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float64))
    rows, columns = lookup.grid.shape
    inside = ((at >= 0) & (at < [columns, rows])).all(axis=1)  # NaN is not
    across, down = at[inside].astype(np.int64).T
    table = np.full((rows, columns), NONE, np.int32)
    table[down, across] = np.flatnonzero(inside)
    away, nearest = scipy.ndimage.distance_transform_edt(table == NONE, return_indices=True)
    return np.where(away < GAP, table[tuple(nearest)], NONE)


def _whole(array: Any) -> Pixels:
    values = array[:]
    if values.dtype.kind == "f":
        values = np.nan_to_num(values, nan=0, posinf=0, neginf=0)
    return np.asarray(np.abs(values.astype(np.int64)))
