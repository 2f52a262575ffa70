"""Map, probability and further layers from windows in any order, to be resumed or cleared away."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError, FileError, SceneError
from thonecls.files import check_writable, write_atomically
from thonecls.io.grid import Grid
from thonecls.maps.cogs import BLOCK, Cog, disk_errors, tag_texts, write_cogs
from thonecls.maps.styles import write_categories, write_layer_qml, write_qml
from thonecls.report.plots import CLASS, NODATA, QUIET
from thonecls.scene import NO_DATA, BoolArray, FloatArray

PROBABILITY, MAP = "probability.tif", "map.tif"
PERCENT = 0.01  # declared as GDAL scale, so that QGIS shows 0..1, and others a percentage


ABOUT = "about.json"  # in a hidden folder: what its windows come from


class Unfinished:
    """One layer on its way to whole files in `folder`, its windows in a hidden folder there.

    name: of the hidden folder; writers into one folder at a time need different ones. origin: what
    the values come from, by name; what comes from elsewhere is not gone on with. room: bytes that a
    pixel takes up to.
    """

    def __init__(
        self,
        folder: Path,
        grid: Grid,
        name: str,
        *,
        origin: Mapping[str, Any],
        room: int,
        resume: bool,
    ) -> None:
        self.folder, self.grid, self.resume = folder, grid, resume
        self._part = folder / f".{name}.part"
        about = {"grid": [grid.shape, grid.transform[:6], grid.crs], **origin}
        self._about: dict[str, Any] = json.loads(json.dumps(about, default=str))
        self._room = room
        self._made = self._finished = False
        self._scores: _Scores | None = None

    def open(self) -> None:
        """Make the hidden folder, or take up what an earlier one of the same origin left."""
        check_writable(self.folder)
        self._made = not self.folder.exists()
        try:
            with disk_errors(self.folder):
                known = self.resume and self._known()
                if not known:
                    shutil.rmtree(self._part, ignore_errors=True)
                self._part.mkdir(parents=True, exist_ok=True)
                self._check_space()
                self._scores = _Scores(self._part / "scores", self.grid.shape)
                if not known:  # last: without it, what was begun is not taken up
                    write_atomically(self._part / ABOUT, json.dumps(self._about).encode())
        except BaseException:
            if not self.resume:
                self._clean()
            raise

    def _known(self) -> bool:
        """Whether something can be taken up; an error where it comes from elsewhere."""
        if not (self._part / ABOUT).is_file():
            return False
        found = json.loads((self._part / ABOUT).read_text("utf-8"))
        old = found if isinstance(found, dict) else {}
        differ = [k for k in sorted({*old, *self._about}) if old.get(k) != self._about.get(k)]
        if differ:
            raise FileError(
                f"{self.folder} holds an unfinished map with other {', '.join(differ)}: repeat the "
                "command that began it, choose another folder, or begin again without 'resume'",
                options=("resume",),
            )
        return True

    def write(self, rows: slice, columns: slice, values: FloatArray) -> None:
        """A window, (H, W) float32, NaN on nodata; a later one replaces an earlier."""
        assert self._scores is not None
        with disk_errors(self.folder):
            self._scores.write(rows, columns, values)

    def done(self, rows: slice, columns: slice) -> bool:
        """Whether every pixel of a window has been written, now or before a resume."""
        assert self._scores is not None
        return not bool(self._scores.read(rows, columns)[1].any())

    def blocks(self) -> Iterator[tuple[slice, slice, FloatArray]]:
        """The whole layer as the map shows it, block by block; an error where a pixel is missing.

        That is one which was never written. Of a scene in the geometry of its sensor, only those
        rows are read which a block shows.
        """
        for rows, columns in _blocks(self.grid.on_map.shape):
            values, unwritten = self._shown(rows, columns)
            if unwritten.any():
                raise SceneError(
                    f"rows {rows.start}-{rows.stop} of the map have pixels that were never "
                    "written: write every window, NaN where there is no data"
                )
            yield rows, columns, values

    def _shown(self, rows: slice, columns: slice) -> tuple[FloatArray, BoolArray]:
        """Values of a window of the map, NaN where it shows nothing; what was never written."""
        assert self._scores is not None
        if self.grid.lookup is None:
            return self._scores.read(rows, columns)
        pixels = self.grid.lookup.table[rows, columns]
        values = np.full(pixels.shape, np.nan, np.float32)
        unwritten = np.zeros(pixels.shape, dtype=bool)
        shown = pixels >= 0
        if shown.any():
            down, across = np.divmod(pixels[shown], self.grid.shape[1])
            top, left = int(down.min()), int(across.min())
            window = slice(top, int(down.max()) + 1), slice(left, int(across.max()) + 1)
            part, missing = self._scores.read(*window)
            values[shown] = part[down - top, across - left]
            unwritten[shown] = missing[down - top, across - left]
        return values, unwritten

    def finish(self, make: Callable[[Path], None]) -> None:
        """Have all files made in a hidden folder, once; only `close` is left to do."""
        if self._finished:
            return
        with disk_errors(self.folder):
            made = self._part / "whole"
            shutil.rmtree(made, ignore_errors=True)  # of a finish that was cut short
            made.mkdir()
            make(made)
        self._finished = True

    def close(self, make: Callable[[Path], None] | None) -> None:
        """Finish, and give all files their place; None after an error."""
        assert self._scores is not None
        whole = False
        try:
            if make is not None:
                self.finish(make)
                with disk_errors(self.folder):
                    self._publish(self._part / "whole")
                whole = True
        finally:
            self._scores.close()
            if whole or not self.resume:
                self._clean()

    def _publish(self, made: Path) -> None:
        # Hidden is what GDAL may leave beside a raster on its way to a COG.
        paths = sorted(path for path in made.iterdir() if not path.name.startswith("."))
        for raster in (path.name for path in paths if path.suffix == ".tif"):
            for ending in (".aux.xml", ".ovr", ".msk"):  # what viewers left beside an older map
                (self.folder / f"{raster}{ending}").unlink(missing_ok=True)
        for path in paths:  # old ones first: at no time are old and new side by side
            (self.folder / path.name).unlink(missing_ok=True)
        for path in paths:
            path.replace(self.folder / path.name)

    def _clean(self) -> None:
        shutil.rmtree(self._part, ignore_errors=True)
        if self._made and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _check_space(self) -> None:
        shapes = self.grid.shape, self.grid.on_map.shape
        pixels = max(rows * columns for rows, columns in shapes)
        needed, free = pixels * self._room, shutil.disk_usage(self._part).free
        if needed > free:
            raise FileError(
                f"a map of {pixels:,} pixels takes up to {needed / 1e9:.1f} GB while it is made; "
                f"{self.folder} has {free / 1e9:.1f} GB left: free some, or choose another folder"
            )


class _Scores:
    """Values in a file, row after row, that knows which of them were written."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self.shape = shape
        size = shape[0] * shape[1] * 4
        whole = path.is_file() and path.stat().st_size == size
        if not whole:
            with path.open("wb") as file:
                file.truncate(size)  # zeros that take no room until they are written
        self.file: BinaryIO = path.open("r+b")

    def write(self, rows: slice, columns: slice, values: FloatArray) -> None:
        # A zero is written as -0.0, whose bits are not all 0 as those of an unwritten pixel are.
        kept = np.where(values == 0, np.float32(-0.0), values).astype("<f4")
        inside = [
            0 <= part.start < part.stop <= n
            for part, n in zip((rows, columns), self.shape, strict=True)
        ]
        if not all(inside) or kept.shape != (rows.stop - rows.start, columns.stop - columns.start):
            raise SceneError(
                f"a window of {kept.shape} pixels does not fit rows {rows.start}-{rows.stop}, "
                f"columns {columns.start}-{columns.stop} of a map of {self.shape}"
            )
        for row, line in zip(range(rows.start, rows.stop), kept, strict=True):
            self.file.seek(4 * (row * self.shape[1] + columns.start))
            self.file.write(line.tobytes())
        self.file.flush()

    def read(self, rows: slice, columns: slice) -> tuple[FloatArray, BoolArray]:
        """Values of a window, and which of its pixels were never written."""
        lines, length = [], 4 * (columns.stop - columns.start)
        for row in range(rows.start, rows.stop):
            self.file.seek(4 * (row * self.shape[1] + columns.start))
            lines.append(np.frombuffer(self.file.read(length), dtype="<f4"))
        values = np.stack(lines)
        return values + np.float32(0), values.view("<u4") == 0

    def close(self) -> None:
        with suppress(OSError):  # a full disk again; what counts was flushed
            self.file.close()


class WindowWriter:
    """Takes windows in any order; a kind of it says how the files are made of them, by `_make`."""

    def __init__(self, work: Unfinished) -> None:
        self._work = work

    def __enter__(self) -> Self:
        self._work.open()
        return self

    def write(self, rows: slice, columns: slice, values: FloatArray) -> None:
        """A window, (H, W) float32, NaN on nodata; a later one replaces an earlier."""
        self._work.write(rows, columns, values)

    def done(self, rows: slice, columns: slice) -> bool:
        """Whether every pixel of a window has been written, now or before a resume."""
        return self._work.done(rows, columns)

    def finish(self) -> None:
        """Make the files, out of sight: with several writers, before any is left."""
        self._work.finish(self._make)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._work.close(self._make if kind is None else None)

    def _make(self, folder: Path) -> None:
        """All files, in a folder of their own."""
        raise NotImplementedError


def _blocks(shape: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    for row in range(0, shape[0], BLOCK):
        for column in range(0, shape[1], BLOCK):
            yield (
                slice(row, min(row + BLOCK, shape[0])),
                slice(column, min(column + BLOCK, shape[1])),
            )


class MapWriter(WindowWriter):
    """Takes windows of probability in any order; leaves whole maps in `folder`, or nothing.

    probability.tif: percents as uint8 with the scale 0.01, or float32 with `floats`; rounding
    never crosses the threshold, so `probability > threshold` is the map. map.tif: 1 the class,
    0 other. Nodata is 255 (NaN in float32). Both are COGs in the scene's own geometry, with
    `tags` and a QGIS style beside each. The memory does not depend on the size of the scene.

    threshold: may be set until the writer is left. resume: keep what was written when an error
    ends the work, and go on from what an earlier writer left; `done` tells which windows can be
    skipped. One of another grid, other tags or another origin is refused. origin: what tells these
    windows from others, by name, besides what the files are to say (the tags).

    >>> with MapWriter(folder, grid, threshold=0.5) as writer:  # doctest: +SKIP
    ...     for window in model.score_windows(source):
    ...         writer.write(*window)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        grid: Grid,
        *,
        threshold: float = 0.5,
        tags: Mapping[str, Any] | None = None,
        floats: bool = False,
        label: str = "class",
        origin: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        self.folder, self.grid, self.threshold = Path(folder), grid, threshold
        self.tags, self.floats, self.label = tag_texts(tags), floats, label
        room = 16 if floats else 9
        super().__init__(
            Unfinished(
                self.folder,
                grid,
                "map",
                origin={**self.tags, **(origin or {})},
                room=room,
                resume=resume,
            )
        )

    def _make(self, folder: Path) -> None:
        """Both rasters and what lies beside them, in a folder of their own."""
        probability = Cog(
            folder / PROBABILITY,
            self._encode,
            f"probability of {self.label}",
            scale=1.0 if self.floats else PERCENT,
            floats=self.floats,
        )
        classes = Cog(
            folder / MAP,
            self._classify,
            f"1 {self.label}, 0 other",
            colours={0: QUIET, 1: CLASS, NO_DATA: NODATA},
        )
        own = tag_texts({"threshold": str(self.threshold), "label": self.label})
        write_cogs([probability, classes], self.grid.on_map, self._work.blocks(), self.tags | own)
        write_qml(probability.path, "probability", label=self.label)
        write_qml(classes.path, "classes", label=self.label)
        write_categories(folder / f"{MAP}.aux.xml", ("other", self.label))

    def _classify(self, values: FloatArray) -> NDArray[Any]:
        return np.where(np.isnan(values), NO_DATA, values > self.threshold).astype(np.uint8)

    def _encode(self, values: FloatArray) -> NDArray[Any]:
        """Whole percents, on the same side of the threshold as the value itself."""
        if self.floats:
            return values
        steps = np.arange(101) * PERCENT
        below = np.searchsorted(steps, self.threshold, side="right") - 1  # last step not over it
        percent = np.rint(np.clip(np.nan_to_num(values), 0, 1) * 100)
        over = values > self.threshold
        percent = np.where(over, np.maximum(percent, below + 1), np.minimum(percent, below))
        return np.where(np.isnan(values), NO_DATA, percent).astype(np.uint8)


ROOM = 7  # bytes a pixel: 4 of the value, the rest for two rasters and overviews


class LayerWriter(WindowWriter):
    """Takes windows of one layer in any order; leaves NAME.tif and NAME.qml, or nothing.

    NAME.tif: a COG in the scene's own geometry, uint8 in steps of `scale`, which it declares, so
    that QGIS shows the values: 0 to 254 steps, beyond them the nearest; nodata is 255. limit: the
    style makes values over it stand out. tags, origin, resume, `done`: as of `MapWriter`, beside
    which any number of layers can be written into the same folder.

    >>> with LayerWriter(folder, grid, "novelty", scale=0.05, limit=1) as writer:  # doctest: +SKIP
    ...     writer.write(rows, columns, novelty.score(cube))
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        grid: Grid,
        name: str,
        *,
        scale: float,
        description: str = "",
        limit: float | None = None,
        tags: Mapping[str, Any] | None = None,
        origin: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        _check_name(name)
        top = scale * (NO_DATA - 1)
        if not (np.isfinite(top) and top > 0):
            raise ConfigError(f"a layer's scale is a number over 0; {name} got {scale:g}")
        if limit is not None and not 0 < limit < top - scale:
            raise ConfigError(
                f"a layer's limit lies within its range, 0 to {top:g}; {name} got {limit:g}: "
                "choose a larger scale"
            )
        self.folder, self.grid, self.name = Path(folder), grid, name
        self.scale, self.limit, self.description = scale, limit, description or name
        self.tags = tag_texts(tags)
        super().__init__(
            Unfinished(
                self.folder,
                grid,
                name,
                origin={**self.tags, **(origin or {})},
                room=ROOM,
                resume=resume,
            )
        )

    def _make(self, folder: Path) -> None:
        path = folder / f"{self.name}.tif"
        cog = Cog(path, self._encode, self.description, scale=self.scale)
        write_cogs([cog], self.grid.on_map, self._work.blocks(), self.tags)
        write_layer_qml(path, scale=self.scale, limit=self.limit, description=self.description)

    def _encode(self, values: FloatArray) -> NDArray[np.uint8]:
        """Whole steps of the scale, nearest to the values."""
        steps = np.clip(np.rint(values.astype(np.float64) / self.scale), 0, NO_DATA - 1)
        return np.where(np.isnan(values), NO_DATA, steps).astype(np.uint8)


def _check_name(name: str) -> None:
    """A layer needs a plain name of its own: of its files, and of what is kept meanwhile."""
    taken = [Path(raster).stem for raster in (PROBABILITY, MAP)]
    if not name.isidentifier() or name.lower() in taken:
        raise ConfigError(
            f"a layer's name is a word of letters, digits and _, but not {' or '.join(taken)}; "
            f"got {name!r}"
        )
