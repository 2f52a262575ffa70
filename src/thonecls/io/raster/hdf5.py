"""Cubes in HDF5 files, NetCDF 4 and NEON's among them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyproj
from numpy.typing import NDArray

from thonecls.errors import FileError, SceneError, ThoneclsError
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import VECTORS, Band, in_nanometres
from thonecls.io.raster.files import LazyFile, RasterHeader, choose_cube
from thonecls.scene import Bands, BoolArray
from thonecls.schema import MOST_BANDS

# Chunks that were unpacked are kept until the next lines are read; h5py itself keeps next to none.
LEAST, CACHE = 2**20, 3 * 2**27  # bytes


@dataclass(frozen=True)
class Hdf5:
    """A 3-D array in an HDF5 file, whose bands may lie on any axis."""

    path: Path
    variable: str
    axis: int

    def open(self) -> Any:
        with h5py.File(self.path, "r") as file:
            room = _row_of_chunks(file[self.variable], self.axis)
        room = min(max(room, LEAST), CACHE)
        # The array, not the file: what is kept goes with it.
        return h5py.File(self.path, "r", rdcc_nbytes=room, rdcc_nslots=10007)[self.variable]

    def read(
        self, cube: Any, numbers: Sequence[int], rows: slice, columns: slice, step: int
    ) -> tuple[NDArray[Any], BoolArray | None]:
        first = min(numbers) - 1
        index = [slice(part.start, part.stop, step) for part in (rows, columns)]
        index.insert(self.axis, slice(first, max(numbers)))
        block = np.moveaxis(cube[tuple(index)], self.axis, 0)
        return np.ascontiguousarray(block[[n - 1 - first for n in numbers]]), None


def _row_of_chunks(cube: Any, axis: int) -> int:
    """Bytes of the chunks that one line of pixels lies in, unpacked, with all of their bands.

    And of two more: a cache that is just too small keeps nothing of a line for the next.
    """
    if cube.chunks is None:
        return 0
    rows = 0 if axis else 1
    counts = [-(-n // size) for n, size in zip(cube.shape, cube.chunks, strict=True)]
    needed = math.prod(count for i, count in enumerate(counts) if i != rows) + 2
    return int(needed * math.prod(cube.chunks) * cube.dtype.itemsize)


def hdf5_header(path: Path, variable: str | None, axis: Bands | None) -> RasterHeader:
    """A cube in an HDF5 file, NetCDF 4 among them; GDAL would take its first axis for the bands."""
    with hdf5_errors(path), h5py.File(path, "r") as tree:
        arrays = _datasets(tree)
        cubes = {key: a for key, a in arrays.items() if a.ndim == 3 and a.dtype.kind in "iuf"}
        fitting = {k: a for k, a in cubes.items() if _vector(arrays, a, VECTORS["wavelength"])[0]}
        if variable is None and len(fitting) == 1:  # beside it NEON has pictures in colour
            cubes = fitting
        name = choose_cube(path, {key: a.shape for key, a in cubes.items()}, variable)
        if cubes[name].is_virtual or cubes[name].external:
            raise FileError(f"{name} in {path} is a description of data in other files: give those")
        found = {key: _vector(arrays, cubes[name], names) for key, names in VECTORS.items()}
        known, unit = {key: v for key, (v, _) in found.items()}, found["wavelength"][1]
        count = len(known["wavelength"])
        where = _band_axis(path, name, cubes[name].shape, axis, count)
        bands = in_nanometres(_described(cubes[name], where, known), unit)
        bands = _without_windows(cubes[name].parent, bands)
        grid = _cf_grid(tree, cubes[name], where)
        if grid == Grid(grid.shape):
            grid = _envi_grid(arrays, name, grid.shape)
        return LazyFile(Hdf5(path, name, where)), grid, bands


@contextmanager
def hdf5_errors(path: Path) -> Iterator[None]:
    """What h5py makes of a damaged file, and odd attributes come to, as an error with a step."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError) as e:
        if isinstance(e, ThoneclsError):
            raise
        raise FileError(f"cannot open {path} ({e}): it must be a whole HDF5 file") from e


def _datasets(tree: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item

    tree.visititems(visit)
    return found


def _vector(arrays: Mapping[str, Any], cube: Any, names: Sequence[str]) -> tuple[list[float], str]:
    """A number for each band, from the cube's attributes or an array of that name; its unit."""
    for key, value in cube.attrs.items():
        if key.lower() in names and np.ndim(value) == 1 and len(value) in cube.shape:
            return [float(v) for v in value], ""
    for key, array in arrays.items():
        last = key.rsplit("/", 1)[-1].lower()
        if last in names and array.ndim == 1 and len(array) in cube.shape:
            units = [_text(v) for k, v in array.attrs.items() if k.lower() in ("units", "unit")]
            return [float(v) for v in array[:]], units[0] if units else ""
    return [], ""


def _band_axis(
    path: Path, name: str, shape: tuple[int, ...], axis: Bands | None, count: int
) -> int:
    """Which axis holds the bands: as told, or as long as the wavelengths, or clearly the first."""
    if axis is not None:
        return 0 if axis == "first" else 2
    fitting = [i for i, length in enumerate(shape) if length == count]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and shape[0] < min(shape[1:]):
        return 0
    raise SceneError(
        f"cannot tell which axis of {name} {shape} in {path} holds the bands: say 'bands_axis' "
        "first or 'bands_axis' last",
        options=("bands_axis",),
    )


def _described(cube: Any, where: int, known: Mapping[str, list[float]]) -> list[Band]:
    """Bands from the attributes of an HDF5 array, as NetCDF and NEON write them."""
    attributes = {
        key.lower(): np.ravel(value)[0] for key, value in cube.attrs.items() if np.size(value)
    }
    scale = float(attributes.get("scale_factor", 1)) or 1.0
    fills = [attributes.get(k) for k in ("_fillvalue", "missing_value", "data_ignore_value")]
    fill = next((float(value) for value in fills if value is not None), None)
    count = cube.shape[where]
    if count > MOST_BANDS:
        raise SceneError(
            f"a scene has at most {MOST_BANDS:,} bands; {cube.name} has {count:,}: say which axis "
            "holds the bands ('bands_axis'), or cut those of one image from it",
            options=("bands_axis",),
        )
    each = {key: v if len(v) == count else [None] * count for key, v in known.items()}
    return [
        Band(
            number=i + 1,
            name=f"band {i + 1}",
            wavelength=each["wavelength"][i],
            fwhm=each["fwhm"][i],
            scale=scale if scale < 100 else 1 / scale,  # NEON's 10000 is to be divided by
            offset=float(attributes.get("add_offset", 0)),
            nodata=fill,
            bad=each["bbl"][i] == 0,
        )
        for i in range(count)
    ]


def _without_windows(group: Any, bands: tuple[Band, ...]) -> tuple[Band, ...]:
    """Mark the bands in windows of absorption that NEON names on the group of its cube."""
    for key, window in group.attrs.items():
        if not (key.lower().startswith("band_window_") and np.size(window) == 2):
            continue
        low, high = sorted(float(value) for value in np.ravel(window))
        why = f"in a window of absorption, {low:.0f}-{high:.0f} nm, by the file"
        bands = tuple(
            replace(band, bad=True, why=why) if low <= (band.wavelength or 0) <= high else band
            for band in bands
        )
    return bands


def _cf_grid(tree: Any, cube: Any, where: int) -> Grid:
    """The grid of evenly spaced coordinates along rows and columns, where NetCDF has them."""
    axes = [i for i in range(3) if i != where]
    shape = cube.shape[axes[0]], cube.shape[axes[1]]
    mapping = tree.get(_text(cube.attrs.get("grid_mapping", "")) or "crs")
    about = dict(mapping.attrs) if mapping is not None else {}
    crs = next((_text(about[key]) for key in ("crs_wkt", "spatial_ref") if key in about), None)
    lines, unit = [], ""
    for i in axes:
        scale = cube.dims[i][0] if len(cube.dims[i]) else None
        values = np.zeros(2) if scale is None or len(scale) < 2 else scale[:].astype(float)
        step = float(values[-1] - values[0]) / (len(values) - 1)
        if step == 0 or not np.allclose(np.diff(values), step, rtol=1e-3):
            return _mapped_grid(shape, about, crs)
        lines.append((step, float(values[0]) - step / 2))
        if scale is not None:
            named = scale.name.rsplit("/", 1)[-1].lower() in ("lon", "longitude")
            unit = _text(scale.attrs.get("units", "degrees" if named else ""))
    (down, top), (along, left) = lines
    if crs is None and unit.startswith("degree"):
        crs = pyproj.CRS.from_epsg(4326).to_wkt()
    return Grid(shape, (along, 0.0, left, 0.0, down, top), crs)


def _mapped_grid(shape: tuple[int, int], about: Mapping[str, Any], crs: str | None) -> Grid:
    """The grid by GDAL's six numbers, where a grid mapping has them."""
    numbers = _text(about.get("GeoTransform", "")).split()
    if len(numbers) != 6:
        return Grid(shape)
    left, across, turn, top, tilt, down = map(float, numbers)
    return Grid(shape, (across, turn, left, tilt, down, top), crs)


def _envi_grid(arrays: Mapping[str, Any], cube: str, shape: tuple[int, int]) -> Grid:
    """The grid by ENVI's map info in an array of that name, as NEON keeps it beside its cube.

    UTM, 1, 1, 325000, 4103000, 1, 1, 11, North, WGS-84, units=Meters: the pixel, counted from 1,
    whose upper left corner has the coordinates that follow, and the size of pixels. The CRS is that
    of the EPSG code beside it, else of its WKT.
    """
    group = cube.split("/", 1)[0]
    beside = {
        key.rsplit("/", 1)[-1].lower().replace(" ", "_"): array
        for key, array in arrays.items()
        if key.split("/", 1)[0] == group and array.size == 1
    }
    if "map_info" not in beside:
        return Grid(shape)
    words = [word.strip() for word in _text(beside["map_info"][()]).strip("{}").split(",")]
    turned = [word.partition("=")[2] for word in words if word.lower().startswith("rotation")]
    if len(words) < 7 or any(float(angle) for angle in turned):
        return Grid(shape)
    column, row, x, y, along, down = map(float, words[1:7])
    transform = (along, 0.0, x - (column - 1) * along, 0.0, -down, y + (row - 1) * down)
    for name, prefix in (("epsg_code", "EPSG:"), ("coordinate_system_string", "")):
        if name in beside:
            try:
                crs = pyproj.CRS.from_user_input(f"{prefix}{_text(beside[name][()]).strip()}")
            except pyproj.exceptions.CRSError:
                continue
            return Grid(shape, transform, crs.to_wkt())
    return Grid(shape, transform)


def _text(value: Any) -> str:
    value = np.ravel(value)[0] if isinstance(value, np.ndarray) else value
    return value.decode() if isinstance(value, bytes) else str(value)
