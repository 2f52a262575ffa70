"""Patches of the class as polygons with their area, in bounded memory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import geopandas
import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.features import shapes
from rasterio.windows import Window
from scipy import ndimage
from shapely.geometry import shape

from thonecls.errors import ConfigError, SceneError
from thonecls.io.raster import open_gdal
from thonecls.maps.cogs import disk_errors
from thonecls.maps.measure import Measure

FEWEST = 4  # pixels of a patch, unless told otherwise: smaller ones are specks, and most of a file
MOST = 500_000  # patches of a file that a GIS still opens
LONGEST = 5_000_000  # edges of pixels along their outlines
JOINED = 200_000  # edges of a patch that is one polygon however many strips it crosses
STRIP = 2**20  # pixels that are looked at together
BATCH = 20_000  # patches that are written together

IntArray = NDArray[np.int64]


class Written(NamedTuple):
    """How many polygons there are, and words on what was left out, if a limit was met."""

    polygons: int
    words: str | None = None


def write_polygons(
    map_path: Path,
    probability_path: Path,
    out: Path,
    *,
    minimum_area: float | None = None,
    strip: int | None = None,
    most: int = MOST,
    longest: int = LONGEST,
) -> Written:
    """Patches of the class as polygons in a GeoPackage.

    Pixels belong together where they share an edge. Attributes: pixels, area in map units²,
    hectares where the CRS tells the size of a unit, mean_probability. minimum_area: smaller
    patches are left out; in m² where there are hectares, else in map units²; `FEWEST` pixels unless
    told. Of more than `most` patches, or longer outlines than `longest`, the larger are kept. The
    map is read `strip` rows at a time, which does not change the result, but for patches so ragged
    that joining them again would take minutes: their strips stay apart.
    """
    if out.suffix.lower() != ".gpkg":
        raise ConfigError(f"polygons are written as GeoPackage; got {out.name}: name it .gpkg")
    with (
        open_gdal(str(map_path), map_path) as classes,
        open_gdal(str(probability_path), probability_path) as scores,
    ):
        if (classes.shape, classes.transform) != (scores.shape, scores.transform):
            raise SceneError(
                f"{map_path} and {probability_path} lie on different grids: give two of one run"
            )
        rows = strip or max(1, STRIP // classes.width)
        table = _Table(classes, minimum_area)
        sizes = _tally(classes, rows, table.fewest)
        fewest, words = _limit(sizes, most, longest)
        fewest = max(fewest, table.fewest)
        some = fewest <= max(sizes, default=0)
        kept = _patches(classes, scores, rows, fewest) if some else iter(())
        return Written(_write(map(table, _batches(kept)), classes.crs, out), words)


def _batches(patches: Iterator[_Patch]) -> Iterator[list[_Patch]]:
    """Some patches at a time; an empty list where there are none at all."""
    yield list(islice(patches, BATCH))
    while batch := list(islice(patches, BATCH)):
        yield batch


class _Part(NamedTuple):
    polygon: Any
    pixels: int
    total: float


@dataclass(eq=False)
class _Patch:
    """Pixels of the class that share edges: their count, and the length of their outline.

    numbers: of its parts in the strip that was read last; parts: each with its polygon in pixel
    coordinates, its pixels and the sum of their probabilities.
    """

    numbers: list[int]
    pixels: int
    outline: int
    parts: list[_Part] = field(default_factory=list)

    def absorb(self, other: _Patch) -> None:
        self.numbers += other.numbers
        self.parts += other.parts
        self.pixels += other.pixels
        self.outline += other.outline

    def joined(self) -> list[_Part]:
        """One part; of a patch with too long an outline all, as they were cut by strips."""
        if len(self.parts) == 1 or self.outline > JOINED:
            return self.parts
        polygons, pixels, totals = zip(*self.parts, strict=True)
        # Simplifying by nothing drops the corners that a seam left on straight edges.
        return [_Part(shapely.union_all(polygons).simplify(0), sum(pixels), sum(totals))]


@dataclass(frozen=True, eq=False)
class _Strip:
    """Some rows of a map with their patches numbered from 1; each array: (count + 1,).

    open: which patches may go on above or below; base: what their numbers go on from.
    """

    top: int
    base: int
    labels: NDArray[np.int32]
    pixels: IntArray
    outline: IntArray
    open: NDArray[np.bool_]


def _strips(classes: Any, rows: int) -> Iterator[_Strip]:
    height, width = classes.shape
    base = 0
    for top in range(0, height, rows):
        window = Window(0, top, width, min(rows, height - top))
        found, count = ndimage.label(classes.read(1, window=window) == 1)
        labels = np.asarray(found, dtype=np.int32)
        pixels = np.bincount(labels.ravel(), minlength=count + 1)
        outline = 4 * pixels
        for one, other in ((labels[1:], labels[:-1]), (labels[:, 1:], labels[:, :-1])):
            inner = np.bincount(one[(one > 0) & (other > 0)], minlength=count + 1)
            outline -= 2 * inner
        pixels[0] = outline[0] = 0
        open_ = np.zeros(count + 1, dtype=bool)
        open_[labels[0]] |= top > 0
        open_[labels[-1]] |= top + rows < height
        open_[0] = False
        yield _Strip(top, base, labels, pixels, outline, open_)
        base += count


class _Joint:
    """Patches that go on from one strip to the next: few, as they touch the row between."""

    def __init__(self, width: int) -> None:
        self._last = np.zeros(width, dtype=np.int64)  # numbers along the last row read
        self._owner: dict[int, _Patch] = {}  # of those patches that touch it

    def take(self, strip: _Strip, parts: dict[int, _Patch]) -> Iterator[_Patch]:
        """Join the open parts of a strip to what is above; gives those that end here."""
        owner = self._owner | {strip.base + label: part for label, part in parts.items()}
        first, last = (
            np.where(row > 0, row.astype(np.int64) + strip.base, 0)
            for row in (strip.labels[0], strip.labels[-1])
        )
        touching = (self._last > 0) & (first > 0)
        for above, below in np.unique(np.stack([self._last, first])[:, touching], axis=1).T:
            one, other = owner[int(above)], owner[int(below)]
            if one is not other:
                one.absorb(other)
                owner |= dict.fromkeys(other.numbers, one)
        # Of the last strip none is open below, and its numbers have no owner.
        going_on = {n: owner[n] for n in np.unique(last[last > 0]).tolist() if n in owner}
        held = {id(patch) for patch in going_on.values()}
        self._last, self._owner = last, going_on
        for patch in going_on.values():  # numbers of rows that are gone are asked for no more
            patch.numbers = []
        for number, patch in going_on.items():
            patch.numbers.append(number)
        yield from {id(p): p for p in owner.values() if id(p) not in held}.values()

    def rest(self) -> Iterator[_Patch]:
        """What touches the end of the map."""
        yield from {id(patch): patch for patch in self._owner.values()}.values()


def _tally(classes: Any, rows: int, fewest: int) -> dict[int, tuple[int, int]]:
    """How many patches of each size there are, and how long their outlines are together."""
    sizes: dict[int, tuple[int, int]] = {}

    def count(pixels: IntArray, outline: IntArray) -> None:
        large = pixels >= fewest
        found, place, counts = np.unique(pixels[large], return_inverse=True, return_counts=True)
        lengths = np.bincount(place, weights=outline[large], minlength=len(found))
        for size, n, length in zip(found.tolist(), counts.tolist(), lengths.tolist(), strict=True):
            before = sizes.get(size, (0, 0))
            sizes[size] = before[0] + n, before[1] + int(length)

    joint = _Joint(classes.width)
    for strip in _strips(classes, rows):
        closed = ~strip.open
        closed[0] = False
        count(strip.pixels[closed], strip.outline[closed])
        parts = {
            label: _Patch([strip.base + label], int(strip.pixels[label]), int(strip.outline[label]))
            for label in np.flatnonzero(strip.open).tolist()
        }
        whole = list(joint.take(strip, parts))
        count(*np.array([(p.pixels, p.outline) for p in whole], np.int64).reshape(-1, 2).T)
    whole = list(joint.rest())
    count(*np.array([(p.pixels, p.outline) for p in whole], np.int64).reshape(-1, 2).T)
    return sizes


def _limit(sizes: dict[int, tuple[int, int]], most: int, longest: int) -> tuple[int, str | None]:
    """The fewest pixels of a patch that keep to the limits, and words where they leave some out."""
    patches = length = 0
    fewest = 1
    for size in sorted(sizes, reverse=True):
        patches, length = patches + sizes[size][0], length + sizes[size][1]
        if patches > most or length > longest:
            fewest = size + 1
            break
    else:
        return 1, None
    every = sum(count for count, _ in sizes.values())
    kept = sum(count for size, (count, _) in sizes.items() if size >= fewest)
    told = (
        f"those of {fewest:,} pixels or more, {kept:,}, are written" if kept else "none is written"
    )
    return fewest, (
        f"the map is too scattered for polygons of all its {every:,} patches: {told}; raise "
        "the threshold or the minimum area, or leave polygons out"
    )


def _patches(classes: Any, scores: Any, rows: int, fewest: int) -> Iterator[_Patch]:
    """Each patch of so many pixels once it is whole; those that cross strips are joined."""
    joint = _Joint(classes.width)
    for strip in _strips(classes, rows):
        keep = strip.open | (strip.pixels >= fewest)
        keep[0] = False
        mask = keep[strip.labels]
        window = Window(0, strip.top, *strip.labels.shape[::-1])
        values = scores.read(1, window=window) * np.float64(scores.scales[0])
        totals = np.bincount(strip.labels[mask], weights=values[mask], minlength=len(strip.pixels))
        del values
        going_on: dict[int, _Patch] = {}
        shift = Affine.translation(0, strip.top)
        for polygon, found in shapes(strip.labels, mask=mask, transform=shift):
            label, pixels = int(found), int(strip.pixels[int(found)])
            part = _Part(shape(polygon), pixels, float(totals[label]))
            patch = _Patch([strip.base + label], pixels, int(strip.outline[label]), [part])
            if strip.open[label]:
                going_on[label] = patch
            else:
                yield patch
        yield from (p for p in joint.take(strip, going_on) if p.pixels >= fewest)
    yield from (p for p in joint.rest() if p.pixels >= fewest)


class _Table:
    """Rows of the GeoPackage from patches; fewest: pixels that a patch needs at least."""

    def __init__(self, classes: Any, minimum_area: float | None) -> None:
        self.transform, self.minimum = classes.transform, minimum_area or 0.0
        self.measure = Measure.of(classes.crs)
        a, b, _, d, e, _ = self.transform[:6]
        self.pixel = abs(a * e - b * d)
        largest = self._largest_pixel(classes.shape)
        self.fewest = FEWEST
        if minimum_area is not None:
            self.fewest = max(1, math.ceil(minimum_area / largest * (1 - 1e-6)))

    def _largest_pixel(self, shape: tuple[int, int]) -> float:
        """m² where the CRS tells them, else map units²; of degrees the most in any row."""
        rows = np.linspace(0, shape[0] - 1, 101)
        corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
        if self.measure.ellipsoid is None:
            rows = rows[:1]
        areas = [
            self.measure.area(shapely.Polygon(self._to_map(np.add(corners, (0, row)))))
            or self.pixel
            for row in rows
        ]
        return max(areas) * (1.01 if self.measure.ellipsoid is not None else 1.0)

    def _to_map(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b, c, d, e, f = self.transform[:6]
        x, y = xy.T
        return np.column_stack([a * x + b * y + c, d * x + e * y + f])

    def __call__(self, patches: list[_Patch]) -> dict[str, Any]:
        """Columns of some patches, their polygons joined and in map coordinates."""
        parts = [part for patch in patches for part in patch.joined()]
        pixels = np.array([part.pixels for part in parts], dtype=np.int64)
        polygons = np.array([part.polygon for part in parts], dtype=object)
        geometry = shapely.transform(polygons, self._to_map)
        columns: dict[str, Any] = {"pixels": pixels, "area": pixels * self.pixel}
        metres = [self.measure.area(polygon) for polygon in geometry]
        known = self.measure != Measure()
        if known:
            columns["hectares"] = np.array(metres, dtype=np.float64) / 1e4
        totals = np.array([part.total for part in parts], dtype=np.float64)
        columns |= {"mean_probability": totals / pixels, "geometry": geometry}
        area = columns["hectares"] * 1e4 if known else columns["area"]
        large = area >= self.minimum * (1 - 1e-9)
        return {name: values[large] for name, values in columns.items()}


def _write(tables: Iterator[dict[str, Any]], crs: Any, out: Path) -> int:
    """A GeoPackage with one layer named as the file, whole or not at all; how many rows it has."""
    unfinished = out.with_name(f".{out.stem}.part.gpkg")
    count = 0
    try:
        with disk_errors(out.parent), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'crs' was not provided")
            out.parent.mkdir(parents=True, exist_ok=True)
            unfinished.unlink(missing_ok=True)
            for number, columns in enumerate(tables):
                table = geopandas.GeoDataFrame(columns, geometry="geometry", crs=crs)
                table.to_file(
                    unfinished,
                    driver="GPKG",
                    layer=out.stem,
                    engine="pyogrio",
                    geometry_type="Polygon",
                    mode="a" if number else "w",
                )
                count += len(table)
            unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    return count
