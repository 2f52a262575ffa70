"""A scene as the page looks at it: windows, spectra and a sample, without holding it whole."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError, SceneError
from thonecls.files import writing_array
from thonecls.io.arrays import read_array
from thonecls.io.inputs import SceneInput
from thonecls.io.options import SceneOptions
from thonecls.io.raster import BandChoice, RasterSource, open_raster
from thonecls.io.raster.files import LazyFile
from thonecls.io.raster.source import HELD
from thonecls.scene import ArraySource, FloatArray, Scene
from thonecls.studio.laid import LaidSource
from thonecls.studio.refusals import NothingThereError, NotReadyError
from thonecls.workflow.options import scene_stamp
from thonecls.workflow.spectra import sample_spectra

TILE = 256  # pixels a side
SAMPLE = 2**16  # pixels that stand for the scene
WINDOWS, SIDE = 8, 32  # down and across, and pixels of each, in which a large scene is looked at
PART = 512  # pixels a side that are thinned at a time: GDAL's cache must hold all bands of it
HANDLES = 3  # open files, so that tiles do not wait for each other
CACHED = 2**26  # bytes of tiles
Window = tuple[slice, slice]
AnySource = RasterSource | ArraySource | LaidSource


@dataclass(frozen=True)
class BandFact:
    """A band of the file; wavelength in nm; why: the reason where it is not used."""

    number: int
    name: str
    wavelength: float | None
    used: bool
    why: str | None


class _StoppedError(Exception):
    """Somebody asked for an end."""


class Cache:
    """The things that were asked for last, up to so many bytes."""

    def __init__(self, most: int = CACHED) -> None:
        self.most, self._size = most, 0
        self._kept: OrderedDict[Any, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], bytes]) -> bytes:
        """What is kept under a key, made where nothing is."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._size += len(made)
            while self._size > self.most:
                self._size -= len(self._kept.popitem(last=False)[1])
        return made


class SceneView:
    """Windows and spectra of a scene that is open; folder: for what is made of it once."""

    def __init__(self, opened: SceneInput, options: SceneOptions, folder: Path) -> None:
        source = opened.source
        if not isinstance(source, RasterSource | ArraySource):
            raise SceneError(f"{opened.path} is no scene that can be shown: give a file")
        self.opened, self.folder = opened, folder
        every, self.bands = _every_band(source, options)
        self.source, self.every = (_on_map(one, opened) for one in (source, every))
        self.shape = self.source.shape
        self.used = [i for i, band in enumerate(self.bands) if band.used]
        self.zooms = 1 + max(0, int(np.ceil(np.log2(max(self.shape) / TILE))))
        self._sources: queue.LifoQueue[tuple[Any, Any]] = queue.LifoQueue()
        for _ in range(HANDLES):
            self._sources.put((_own_handle(source), _own_handle(self.every)))
        self.step = 1
        while source.bands * np.prod(-(-np.array(self.shape) // self.step)) > HELD:
            self.step *= 2
        stamp = json.dumps([scene_stamp(opened), asdict(options), self.step])
        self._kept = folder / f"overview-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}"
        self._overview: Scene | None = None
        self.done = 0.0
        self.background = self._look()
        if not self.background.size:
            raise SceneError(
                f"{opened.path} has no valid pixel: check its 'nodata' value", options=("nodata",)
            )
        self.nodata_share = 0.0
        if self.step == 1:
            self.make_overview(lambda: False)

    @property
    def ready(self) -> bool:
        """Whether coarse tiles come at once."""
        return self._overview is not None

    # Reading

    def window(self, z: int, x: int, y: int) -> tuple[slice, slice, int]:
        """Rows and columns of a tile, and how many pixels of the scene one of its own is wide."""
        if not 0 <= z < self.zooms:
            raise NothingThereError(f"there is no zoom {z}: the scene has 0 to {self.zooms - 1}")
        factor = 2 ** (self.zooms - 1 - z)
        rows, columns = (
            slice(at * TILE * factor, min((at + 1) * TILE * factor, length))
            for at, length in ((y, self.shape[0]), (x, self.shape[1]))
        )
        if min(x, y) < 0 or rows.start >= rows.stop or columns.start >= columns.stop:
            raise NothingThereError(f"there is no tile {z}/{x}/{y}: it lies outside the scene")
        return rows, columns, factor

    def read(self, rows: slice, columns: slice, factor: int, bands: Sequence[int]) -> Scene:
        """A window, thinned; bands: positions among those in use."""
        if self._overview is not None and factor >= self.step:
            thin = factor // self.step
            at = tuple(
                slice(p.start // self.step, -(-p.stop // self.step)) for p in (rows, columns)
            )
            part = self._overview.read(*at)
            kept = part.cube if len(bands) == part.bands else part.cube[list(bands)]
            return Scene(kept[:, ::thin, ::thin], part.valid[::thin, ::thin])
        if factor >= self.step:
            raise NotReadyError("an overview of the scene is being made: ask again")
        with self._handle() as (source, _):
            return _thinned(source, bands, rows, columns, factor)

    def read_any(self, rows: slice, columns: slice, factor: int, positions: Sequence[int]) -> Scene:
        """The same of bands of the file, in use or not."""
        if all(self.bands[at].used for at in positions):
            return self.read(rows, columns, factor, [self.used.index(at) for at in positions])
        with self._handle() as (_, every):
            return _thinned(every, positions, rows, columns, factor)

    def sample_any(self, at: int) -> FloatArray:
        """Some values of a band of the file that is not in use; a 0 where it has none."""
        step = max(1, int(np.sqrt(self.shape[0] * self.shape[1] / SAMPLE)))
        with self._handle() as (_, every):
            part = _thinned(every, [at], slice(0, self.shape[0]), slice(0, self.shape[1]), step)
        return part.cube[0][part.valid] if part.valid.any() else np.zeros(1, np.float32)

    def position(self, number: int) -> int:
        """Of a band of the file, by its number."""
        for i, band in enumerate(self.bands):
            if band.number == number:
                return i
        raise ConfigError(f"there is no band {number}: the scene has 1-{self.bands[-1].number}")

    def read_tile(self, z: int, x: int, y: int) -> Scene:
        """All bands in use of a tile."""
        return self.read(*self.window(z, x, y), range(len(self.used)))

    def spectrum(self, row: int, column: int) -> tuple[list[float | None], bool]:
        """The values of a pixel in every band of the file, None where missing; whether it is valid.

        Valid: in all bands that are in use.
        """
        self.check_pixel(row, column)
        values = self._values(row, column)
        known = np.isfinite(values)
        listed = [float(v) if k else None for v, k in zip(values, known, strict=True)]
        return listed, bool(known[self.used].all())

    def _values(self, row: int, column: int) -> FloatArray:
        """A pixel in every band, NaN where missing; from memory where all of it is held."""
        whole = self._overview if self.step == 1 and len(self.used) == len(self.bands) else None
        if whole is not None and whole.valid[row, column]:
            return np.asarray(whole.cube[:, row, column])
        with self._handle() as (_, every):
            return _values_at(every, row, column)

    def spectra(self, pixels: NDArray[np.int64]) -> FloatArray:
        """Spectra of single pixels in every band, NaN where missing: (n, C)."""
        found = np.empty((len(pixels), len(self.bands)), np.float32)
        rows, columns = np.divmod(pixels, self.shape[1])
        for i, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            found[i] = self._values(row, column)
        return found

    def check_pixel(self, row: int, column: int) -> None:
        """Refuse a pixel outside the scene."""
        if not (0 <= row < self.shape[0] and 0 <= column < self.shape[1]):
            raise NothingThereError(
                f"there is no pixel {row}, {column}: the scene has {self.shape[0]} rows and "
                f"{self.shape[1]} columns"
            )

    @contextmanager
    def _handle(self) -> Iterator[tuple[Any, Any]]:
        handle = self._sources.get()
        try:
            yield handle
        finally:
            self._sources.put(handle)

    # What is made once

    def make_overview(self, stop: Callable[[], bool]) -> bool:
        """Thin the scene until it can be held, once; whether it is done. stop: asked on the way."""
        cube, valid = (self._kept.with_suffix(f".{kind}.npy") for kind in ("cube", "valid"))
        if self.step > 1 and cube.exists() and valid.exists():
            arrays = read_array(cube, axes=3), np.asarray(read_array(valid, axes=2), dtype=bool)
            if arrays[0].shape[0] == len(self.used):
                self._take(Scene(*arrays))
                return True
        height, width = (-(-length // self.step) for length in self.shape)
        shape = len(self.used), height, width
        if self.step == 1:
            held = Scene(np.empty(shape, np.float32), np.empty(shape[1:], bool))
            self._thin(held.cube, held.valid, stop)
            self._take(held)
            return True
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("overview-*.npy"):
            old.unlink()
        try:
            with ExitStack() as stack:
                kept = stack.enter_context(writing_array(cube, np.float32, shape))
                mask = stack.enter_context(writing_array(valid, np.bool_, shape[1:]))
                self._thin(kept, mask, stop)
        except _StoppedError:  # half of it is not kept
            return False
        self._take(Scene(read_array(cube, axes=3), np.asarray(read_array(valid, axes=2))))
        return True

    def _thin(self, cube: FloatArray, valid: NDArray[np.bool_], stop: Callable[[], bool]) -> None:
        """Fill arrays with every step-th row and column of the scene."""
        source, step = _own_handle(self.source), self.step
        side = max(PART // step, 1) * step
        for top in range(0, self.shape[0], side):
            for left in range(0, self.shape[1], side):
                if stop():
                    raise _StoppedError
                window = slice(top, top + side), slice(left, left + side)
                rows, columns = _within(window, self.shape)
                part = _thinned(source, range(len(self.used)), rows, columns, step)
                at = tuple(
                    slice(start // step, start // step + length)
                    for start, length in zip((top, left), part.shape, strict=True)
                )
                cube[:, *at], valid[at] = part.cube, part.valid
            self.done = rows.stop / self.shape[0]

    def _take(self, overview: Scene) -> None:
        self._overview, self.done = overview, 1.0
        self.nodata_share = float(1 - overview.valid.mean())
        thin = max(1, int(np.ceil(np.sqrt(overview.valid.size / SAMPLE))))
        part = Scene(overview.cube[:, ::thin, ::thin], overview.valid[::thin, ::thin])
        spectra = np.asarray(part.cube[:, part.valid].T, dtype=np.float32)
        if len(spectra) >= min(500, len(self.background)):
            self.background = np.ascontiguousarray(spectra)

    def _look(self) -> FloatArray:
        """Spectra of pixels in windows all over the scene, in the bands in use: (n, C)."""
        source = self.opened.source
        starts = [
            np.unique(np.linspace(0, max(0, length - SIDE), WINDOWS).astype(int)).tolist()
            for length in source.shape
        ]
        found = []
        for row in starts[0]:
            for column in starts[1]:
                window = slice(row, row + SIDE), slice(column, column + SIDE)
                part = source.read(*_within(window, source.shape))
                found.append(part.cube[:, part.valid].T)
        spectra = np.concatenate(found)
        if len(spectra) < 500:
            spectra = sample_spectra(source, SAMPLE, np.random.default_rng(0))
        return np.ascontiguousarray(spectra, dtype=np.float32)


def _every_band(
    source: RasterSource | ArraySource, options: SceneOptions
) -> tuple[RasterSource | ArraySource, tuple[BandFact, ...]]:
    """The scene with all bands of its file, and what is known of each."""
    if isinstance(source, ArraySource):
        every = replace(source, keep=None)
        kept = set(range(every.bands) if source.keep is None else source.keep)
        return every, tuple(
            BandFact(i + 1, f"band {i + 1}", None, i in kept, None if i in kept else "left out")
            for i in range(every.bands)
        )
    whole = open_raster(
        source.path,
        bands=BandChoice(bad=True),
        nodata=options.nodata,
        variable=options.variable,
        axis=options.bands_axis,
        flagged=options.keep_flagged,
    )
    used = {band.number for band in source.layers}
    facts = []
    for band in whole.layers:
        why = band.why if band.bad else "left out"
        kept_ = band.number in used
        facts.append(
            BandFact(band.number, band.name, band.wavelength, kept_, None if kept_ else why)
        )
    return whole, tuple(facts)


def _on_map(source: RasterSource | ArraySource, opened: SceneInput) -> AnySource:
    """The scene as it lies on its map, where it is in the geometry of its sensor."""
    lookup = opened.grid.lookup
    if lookup is None or not isinstance(source, RasterSource):
        return source
    return LaidSource(source, lookup)


def _own_handle(source: Any) -> Any:
    """The same scene with a file handle of its own."""
    if isinstance(source, LaidSource):
        return source.with_source(_own_handle(source.source))
    if isinstance(source, RasterSource):
        return replace(source, file=LazyFile(source.file.format))
    return source


def _thinned(
    source: AnySource,
    bands: Sequence[int],
    rows: slice,
    columns: slice,
    step: int,
) -> Scene:
    return source.thinned(bands, rows, columns, step)


def _within(window: Window, shape: tuple[int, int]) -> Window:
    rows, columns = (
        slice(part.start, min(part.stop, length))
        for part, length in zip(window, shape, strict=True)
    )
    return rows, columns


def _values_at(source: AnySource, row: int, column: int) -> FloatArray:
    """A pixel in all bands, NaN where missing: (C,)."""
    if isinstance(source, LaidSource):
        at = source.pixel(row, column)
        if at is None:
            return np.full(source.bands, np.nan, np.float32)
        return _values_at(source.source, *at)
    rows, columns = slice(row, row + 1), slice(column, column + 1)
    if isinstance(source, RasterSource):
        raw, missing = source.missing(rows, columns)
        scales = np.array([band.scale for band in source.layers])
        offsets = np.array([band.offset for band in source.layers])
        values = raw[:, 0, 0].astype(np.float64) * scales + offsets
        values[missing[:, 0, 0]] = np.nan
    else:
        values = np.array(source.array[:, row, column], dtype=np.float64)
        if source.nodata is not None:
            values[values == source.nodata] = np.nan
    with np.errstate(over="ignore"):
        found: FloatArray = values.astype(np.float32)
    found[~np.isfinite(found)] = np.nan
    return found
