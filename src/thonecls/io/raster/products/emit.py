"""EMIT: NetCDF in the geometry of the sensor, with a geometry lookup table (GLT)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from pyproj import CRS

from thonecls.errors import FileError
from thonecls.io.grid import Grid
from thonecls.io.lookup import Lookup
from thonecls.io.raster.files import Format
from thonecls.io.raster.hdf5 import Hdf5, hdf5_header
from thonecls.io.raster.products.quality import Flag, Product, flagged_file

GLT = ("location/glt_x", "location/glt_y")
PLACES = ("location/lon", "location/lat")
LON_LAT = CRS.from_epsg(4326).to_wkt()
MOST = 20  # pixels of a map for one of the sensor: a flight along a diagonal has about three
# In the file of masks, by their names: their order is not the same in all versions.
FLAGS = ("cloud flag", "cirrus flag", "spacecraft flag", "dilated cloud flag", "spectf-cloud flag")
# What is delivered with an image: its masks, uncertainties and angles.
COMPANION = re.compile(r"EMIT_(L2A_(MASK|RFLUNCERT)|L1B_OBS)_.+\.nc", re.I)


def emit_product(path: Path, variable: str | None, flagged: bool) -> Product | None:
    """An image with a GLT in it, as EMIT has it; the masks of L2A are looked for beside it.

    Parts that were cut from such a file may have no GLT: then the place of each pixel tells where
    it goes.
    """
    with h5py.File(path, "r") as tree:
        if all(name in tree for name in GLT):
            places, on_map, how = False, _map_grid(tree, path), "the GLT"
        elif all(name in tree for name in PLACES):
            places, on_map = True, _grid_of_places(tree, path)
            how = "longitude and latitude of each pixel, as it has no GLT"
        else:
            return None
    file, grid, bands = hdf5_header(path, variable, None)
    arrays = PLACES if places else GLT
    grid = Grid(grid.shape, lookup=Lookup(path, grid.shape, on_map, arrays, places))
    words = [f"EMIT, in the geometry of the sensor: its maps are laid on Earth by {how}"]
    mask = _mask_file(path)
    if mask is not None and not flagged:
        layer, flags, names = _flags(mask, grid.shape)
        file = flagged_file(file.format, [(layer, flags)])
        words.append(f"no data where {mask.name} flags: {', '.join(names)}")
    return Product((file, grid, bands), tuple(words))


def _map_grid(tree: Any, path: Path) -> Grid:
    shape = tree[GLT[0]].shape
    place = np.ravel(tree.attrs.get("geotransform", ()))
    if len(shape) != 2 or tree[GLT[1]].shape != shape or place.size != 6:
        raise FileError(
            f"{path} holds a lookup table without its place on Earth (the attribute geotransform): "
            "get the whole file again"
        )
    left, across, turn, top, tilt, down = (float(value) for value in place)
    crs = tree.attrs.get("spatial_ref")
    text = crs.decode() if isinstance(crs, bytes) else crs
    return Grid(shape, (across, turn, left, tilt, down, top), None if text is None else str(text))


def _grid_of_places(tree: Any, path: Path) -> Grid:
    """A grid in degrees about all pixels, of squares as large as they are in the middle."""
    x, y = (tree[name][:].astype(np.float64) for name in PLACES)
    if x.shape != y.shape or x.ndim != 2:
        raise FileError(
            f"{path} has places of the shapes {x.shape} and {y.shape}, where one of each pixel is "
            "expected: get the whole file again"
        )
    known = (np.abs(x) <= 180) & (np.abs(y) <= 90)  # fills and NaN are not
    if not known.any():
        raise FileError(f"{path} tells the place of no pixel: get the whole file again")
    down, across = (
        np.hypot(np.diff(x, axis=i), np.diff(y, axis=i))[
            known.take(range(1, n), i) & known.take(range(n - 1), i)
        ]
        for i, n in enumerate(x.shape)
    )
    size = min((float(np.median(part)) for part in (down, across) if part.size), default=0.0)
    x, y = x[known], y[known]
    spans = (float(np.ptp(y)), float(np.ptp(x)))
    if not size > 0 or (spans[0] / size + 1) * (spans[1] / size + 1) > MOST * known.size:
        raise FileError(
            f"the places of pixels in {path} lie too far apart for one image: get the whole file "
            "again"
        )
    left, top = float(x.min()) - size / 2, float(y.max()) + size / 2
    shape = int(spans[0] / size + 0.5) + 1, int(spans[1] / size + 0.5) + 1
    return Grid(shape, (size, 0.0, left, 0.0, -size, top), LON_LAT)


def _mask_file(path: Path) -> Path | None:
    """The masks that are delivered with reflectance; the two are versioned apart."""
    found = re.fullmatch(r"EMIT_L2A_RFL_\d+_(.+\.nc)", path.name)
    if not found:
        return None
    beside = sorted(path.parent.glob("EMIT_L2A_MASK_*.nc"), reverse=True)
    fitting = [mask for mask in beside if mask.name.split("_", 4)[-1] == found[1]]
    return fitting[0] if fitting and h5py.is_hdf5(fitting[0]) else None


def _flags(mask: Path, shape: tuple[int, int]) -> tuple[Format, tuple[Flag, ...], list[str]]:
    try:
        with h5py.File(mask, "r") as tree:
            size = tree["mask"].shape
            told = tree["sensor_band_parameters/mask_bands"][:]
        names = [n.decode() if isinstance(n, bytes) else str(n) for n in np.ravel(told)]
        if size != (*shape, len(names)):
            raise ValueError(f"its mask is {size}, the image {shape}")
    except (OSError, KeyError, ValueError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot read {mask} ({error}): get it again, or move it elsewhere"
        ) from error
    used = [(i, name) for i, name in enumerate(names, 1) if name.strip().lower() in FLAGS]
    flags = tuple(Flag(number, values=(1,)) for number, _ in used)
    return Hdf5(mask, "mask", 2), flags, [name.strip().lower() for _, name in used]
