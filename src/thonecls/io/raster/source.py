"""A scene in a file, window by window, with the bands in use; and its bands for a model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy
from numpy.typing import NDArray
from pyproj import CRS
from pyproj.exceptions import CRSError

from thonecls.errors import FileError, ModelError, SceneError
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import Band, BandChoice, dropped_words
from thonecls.io.raster.files import LazyFile, RasterHeader, sample_windows
from thonecls.io.raster.gdal import (
    check_netcdf3,
    data_file,
    folder_header,
    gdal_header,
    open_gdal,
    subdataset_name,
)
from thonecls.io.raster.hdf5 import hdf5_header
from thonecls.io.raster.products import find_product
from thonecls.scene import Bands, BoolArray, Scene, read_all

HELD = 2**26  # numbers of a scene that is kept in memory at the most: 256 MiB


@dataclass(frozen=True, eq=False)
class RasterSource:
    """A scene in a file, read part by part; it can be pickled, and opens anew where it arrives.

    layers: the bands in use; dropped: words on those left out; nodata: a raw value that means
    "missing" besides the one that the file declares; picks, blended: see `blend`; held: see `hold`.
    Build one with `open_raster`. product: words on the product that the scene is of, where it is a
    known one.
    """

    path: Path
    grid: Grid
    layers: tuple[Band, ...]
    dropped: tuple[str, ...]
    nodata: float | None
    file: LazyFile
    picks: tuple[tuple[int, int, float], ...] | None = None
    blended: tuple[float, ...] | None = None
    held: Scene | None = None
    product: tuple[str, ...] = ()

    @property
    def bands(self) -> int:
        return len(self.layers if self.picks is None else self.picks)

    @property
    def shape(self) -> tuple[int, int]:
        return self.grid.shape

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.layers)

    @property
    def wavelengths(self) -> tuple[float, ...] | None:
        """In nm; None unless the file names all of them."""
        return self.blended or _all(band.wavelength for band in self.layers)

    @property
    def fwhm(self) -> tuple[float, ...] | None:
        """Widths at half maximum in nm; None unless the file names all of them."""
        return _all(band.fwhm for band in self.layers)

    def hold(self) -> RasterSource:
        """The same scene read once and kept in memory, if it is small enough; not when pickled."""
        rows, columns = self.shape
        if self.held is not None or self.bands * rows * columns > HELD:
            return self
        return replace(self, held=read_all(self))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held": None}

    def read(self, rows: slice, columns: slice) -> Scene:
        """A window; a pixel is valid where no band in use is nodata, NaN or infinite."""
        if self.held is not None:
            part = self.held.read(rows, columns)
            if part.shape == self.shape:
                return self.held
            # Laid out as a file gives it: sums are then the same to the last bit.
            return Scene(np.array(part.cube, order="K"), np.array(part.valid, order="K"))
        scene = self._scene(self.layers, rows, columns)
        if self.picks is None:
            return scene
        cube = np.empty((len(self.picks), *scene.shape), np.float32)
        for i, (first, second, weight) in enumerate(self.picks):
            cube[i] = (1 - weight) * scene.cube[first] + weight * scene.cube[second]
        return Scene(cube, scene.valid)

    def blend(
        self, picks: Sequence[tuple[int, int, float]], wavelengths: tuple[float, ...] | None
    ) -> RasterSource:
        """The same scene with bands that lie between two of its own: first, second, weight.

        wavelengths: of the bands that are made. Without one to be made, as by `take`.
        """
        if all(weight == 0 for _, _, weight in picks):
            return self.take([first for first, _, _ in picks])
        used = sorted({band for first, second, _ in picks for band in (first, second)})
        place = {band: i for i, band in enumerate(used)}
        moved = tuple((place[first], place[second], weight) for first, second, weight in picks)
        return replace(self.take(used), picks=moved, blended=wavelengths)

    def preview(self, positions: Sequence[int], side: int) -> Scene:
        """Some bands of the whole scene, thinned until no side is over `side` pixels."""
        step = max(1, -(-max(self.shape) // side))
        return self.thinned(positions, slice(0, self.shape[0]), slice(0, self.shape[1]), step)

    def thinned(self, positions: Sequence[int], rows: slice, columns: slice, step: int) -> Scene:
        """Some bands of a window, of every step-th row and column."""
        if self.picks is not None:
            positions = [self.picks[i][0] for i in positions]
        return self._scene([self.layers[i] for i in positions], rows, columns, step)

    def take(self, positions: Sequence[int]) -> RasterSource:
        """The same scene with these bands, counted from 0, in this order."""
        layers = tuple(self.layers[i] for i in positions)
        rest = {b.number: "not used by the model" for b in self.layers if b not in layers}
        words = dropped_words(self.layers, rest)
        return replace(self, layers=layers, dropped=self.dropped + words, held=None)

    def without(self, bad: Mapping[int, str]) -> RasterSource:
        """The same scene without the bands of these numbers; the reasons go to `dropped`."""
        words = dropped_words(
            self.layers, {b.number: bad[b.number] for b in self.layers if b.number in bad}
        )
        layers = tuple(band for band in self.layers if band.number not in bad)
        _check_count(layers, self.path, self.dropped + words)
        return replace(self, layers=layers, dropped=self.dropped + words, held=None)

    def missing(self, rows: slice, columns: slice) -> tuple[NDArray[Any], BoolArray]:
        """Raw values of a window and, band by band, where they are missing: (C, H, W) each."""
        raw, mask = self.file.read([b.number for b in self.layers], rows, columns)
        missing = np.stack([self._missing(*pair) for pair in zip(self.layers, raw, strict=True)])
        return raw, missing if mask is None else missing | ~mask

    def _scene(self, layers: Sequence[Band], rows: slice, columns: slice, step: int = 1) -> Scene:
        raw, mask = self.file.read([b.number for b in layers], rows, columns, step)
        valid = np.ones(raw.shape[1:], dtype=bool) if mask is None else mask
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found not finite
            cube = raw.astype(np.float32, copy=False)
            for i, band in enumerate(layers):
                valid &= ~self._missing(band, raw[i])
                if band.scale != 1 or band.offset != 0:
                    cube[i] = cube[i] * np.float32(band.scale) + np.float32(band.offset)
                valid &= np.isfinite(cube[i])
        cube[:, ~valid] = 0
        return Scene(cube, valid)

    def _missing(self, band: Band, raw: NDArray[Any]) -> BoolArray:
        missing = np.zeros(raw.shape, dtype=bool) if raw.dtype.kind in "iub" else ~np.isfinite(raw)
        for value in (band.nodata, self.nodata):
            if value is not None:
                with np.errstate(over="ignore"):  # a fill such as -1e39 in a float32 file
                    missing |= raw == value
        return missing


def open_raster(
    path: str | os.PathLike[str],
    *,
    bands: BandChoice | None = None,
    nodata: float | None = None,
    variable: str | None = None,
    axis: Bands | None = None,
    flagged: bool = False,
) -> RasterSource:
    """A scene in a file that GDAL reads, in HDF5 or NetCDF, or in a folder of single-band files.

    Nothing but the header is read. An ENVI scene is named by its data file or its .hdr, a product
    of several files by its folder or its metadata.
    nodata: a raw value that means "missing", besides the one that the file declares;
    variable: the cube to take where a file holds several; axis: where HDF5 keeps its bands, when
    no list of wavelengths tells; flagged: use also the pixels that a product's quality layers flag.
    """
    path = Path(path).absolute()  # a worker may run in another folder
    product = find_product(path, variable, flagged)
    if product is None:
        file, grid, layers = _header(path, variable, axis)
    else:
        file, grid, layers = product.header
    _check_grid(grid, path)
    kept, dropped = (bands or BandChoice()).split(layers)
    _check_count(kept, path, dropped)
    words = () if product is None else product.words
    return RasterSource(path, grid, kept, dropped, nodata, file, product=words)


def _header(path: Path, variable: str | None, axis: Bands | None) -> RasterHeader:
    """What a path holds, from its headers alone."""
    if path.is_dir():
        return folder_header(path)
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    path = data_file(path)
    if h5py.is_hdf5(path):
        return hdf5_header(path, variable, axis)
    check_netcdf3(path)
    with open_gdal(str(path), path) as dataset:
        parts = dataset.count == 0 or variable is not None
        name = subdataset_name(path, dataset.subdatasets, variable) if parts else str(path)
    return gdal_header(path, name)


def _check_grid(grid: Grid, path: Path) -> None:
    """Refuse a georeference that leads nowhere."""
    a, b, _, d, e, _ = grid.transform[:6]
    if not (np.isfinite(grid.transform[:6]).all() and a * e - b * d):
        raise SceneError(
            f"the pixels of {path} have no size, by its georeference {grid.transform[:6]}: "
            "georeference it again"
        )
    try:
        if grid.crs is not None:
            CRS.from_wkt(grid.crs)
    except CRSError as error:
        raise SceneError(
            f"the CRS of {path} is not one that PROJ knows ({error}): assign it again (in QGIS by "
            "Assign projection)"
        ) from error


def _all(values: Iterable[float | None]) -> tuple[float, ...] | None:
    known = list(values)
    return None if None in known else tuple(value for value in known if value is not None)


def _check_count(layers: Sequence[Band], path: Path, dropped: Sequence[str]) -> None:
    if len(layers) < 2:
        left_out = f" (left out: {'; '.join(dropped)})" if dropped else ""
        raise SceneError(
            f"a scene needs at least 2 bands; {path} gives {len(layers)}{left_out}: choose other "
            "bands or another file"
        )


FARTHEST = 10.0  # nm by which a matched band may be off at most
FILLED = 30.0  # nm to the neighbours, on both sides, that a missing band is interpolated from

Pick = tuple[int, int, float]  # two bands of a scene, from 0, and the weight of the second


def match_bands(
    wavelengths: Sequence[float] | None,
    source: RasterSource,
    *,
    bands: int | None = None,
    tolerance: float | None = None,
    whose: str = "the model",
) -> tuple[tuple[Pick, ...], str]:
    """The scene's bands that stand for a model's, for `RasterSource.blend`, and a message.

    wavelengths: the model's, in nm, or None with the number of its `bands`. Each gets its own
    band of the scene, the nearest within the tolerance: half the spacing there, at most 10 nm. One
    that has none is interpolated, if the scene has bands within 30 nm on both sides of it. whose:
    in messages, where they are not a model's.
    """
    count = len(wavelengths) if wavelengths is not None else bands or 0
    counts = f"{whose} has {count} bands, the scene {source.bands}"
    if wavelengths is None or source.wavelengths is None:
        if count == source.bands:
            every = tuple((band, band, 0.0) for band in range(count))
            return every, f"{counts}; matched by position, for wavelengths are unknown"
        unknown = f"{whose}'s" if wavelengths is None else "the scene's"
        raise ModelError(
            f"{counts}, and {unknown} wavelengths are unknown: give the same bands in the same "
            "order (choose them by number), or files that name their wavelengths"
        )
    wanted, found = np.asarray(wavelengths), np.asarray(source.wavelengths)
    away = np.abs(wanted[:, None] - found)
    limit = _tolerances(found) if tolerance is None else np.full(len(found), tolerance)
    cost = np.where(away <= limit, away**2, 1e9)  # squares: neighbours do not swap partners
    rows, chosen = scipy.optimize.linear_sum_assignment(cost)
    fits = cost[rows, chosen] < 1e9
    picks = {
        int(row): (int(band), int(band), 0.0)
        for row, band in zip(rows[fits], chosen[fits], strict=True)
    }
    filled = {i: _between(wanted[i], found) for i in range(count) if i not in picks}
    lost = [wanted[i] for i, pick in filled.items() if pick is None]
    if lost or not picks:
        few = ", ".join(f"{w:.1f}" for w in lost[:4]) + (", ..." if len(lost) > 4 else "")
        raise ModelError(
            f"{counts}; {len(lost)} of {whose}'s have none of their own within "
            f"{np.median(limit):.1f} nm, nor bands within {FILLED:.0f} nm on both sides to be "
            f"interpolated from: {few} nm. Use a scene with these bands"
        )
    picks |= {i: pick for i, pick in filled.items() if pick is not None}
    words = f"{counts}; matched within {away[rows[fits], chosen[fits]].max():.1f} nm"
    if filled:
        named = ", ".join(f"{wanted[i]:.1f}" for i in list(filled)[:4])
        more = f" and {len(filled) - 4} more" if len(filled) > 4 else ""
        words += f"; {named}{more} nm interpolated from their neighbours"
    return tuple(picks[i] for i in range(count)), words


def _between(wavelength: float, found: NDArray[np.float64]) -> Pick | None:
    """The nearest bands below and above a wavelength, both near enough, and the second's weight."""
    below, above = np.flatnonzero(found <= wavelength), np.flatnonzero(found > wavelength)
    if not (below.size and above.size):
        return None
    low, high = int(below[found[below].argmax()]), int(above[found[above].argmin()])
    if max(wavelength - found[low], found[high] - wavelength) > FILLED:
        return None
    return low, high, float((wavelength - found[low]) / (found[high] - found[low]))


def _tolerances(wavelengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the spacing around each band; the median of a few gaps, for detectors may overlap."""
    order = np.argsort(wavelengths)
    gaps = np.diff(wavelengths[order])
    limits = np.full(len(wavelengths), FARTHEST)
    for i, band in enumerate(order):
        if len(near := gaps[max(0, i - 2) : i + 2]):
            limits[band] = min(FARTHEST, float(np.median(near)) / 2)
    return limits


WATER = ((1350.0, 1430.0), (1800.0, 1950.0))  # nm; where water vapour leaves next to no light
NOISE = 2450.0  # nm; beyond it sensors see mostly noise


def find_bad_bands(source: RasterSource) -> dict[int, str]:
    """Bands better left out, by number, with the reason; see `RasterSource.without`.

    Those without light by their wavelength, and those that are constant or nodata throughout a
    sample of windows.
    """
    bad = {band.number: why for band in source.layers if (why := _without_light(band.wavelength))}
    least, most = np.full((2, source.bands), np.nan)
    for rows, columns in sample_windows(source.shape):
        raw, missing = source.missing(rows, columns)
        for i in range(source.bands):
            if (values := raw[i][~missing[i]]).size:
                least[i] = np.fmin(least[i], values.min())
                most[i] = np.fmax(most[i], values.max())
    if np.isnan(least).all():  # nothing but nodata was looked at: that says nothing of a band
        return bad
    for band, low, high in zip(source.layers, least, most, strict=True):
        if np.isnan(low):
            bad[band.number] = "nodata wherever it was looked at"
        elif low == high:
            bad[band.number] = f"constant: {low:g} wherever it was looked at"
    return dict(sorted(bad.items()))


def _without_light(wavelength: float | None) -> str | None:
    if wavelength is None or wavelength <= NOISE:
        for low, high in WATER:
            if low <= (wavelength or 0) <= high:
                return f"absorbed by water vapour ({low:g}-{high:g} nm)"
        return None
    return f"mostly noise (over {NOISE:g} nm)"
