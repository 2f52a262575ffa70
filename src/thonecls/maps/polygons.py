"""Patches of the class as polygons with their area."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
from affine import Affine
from rasterio.features import shapes
from rasterio.windows import Window
from scipy import ndimage
from shapely.affinity import affine_transform
from shapely.geometry import shape
from shapely.ops import unary_union

from thonecls.errors import ConfigError, SceneError
from thonecls.maps.cogs import disk_errors
from thonecls.maps.measure import Measure
from thonecls.raster import open_gdal


def write_polygons(
    map_path: Path,
    probability_path: Path,
    out: Path,
    *,
    minimum_area: float = 0.0,
    strip: int = 1024,
) -> int:
    """Patches of the class as polygons in a GeoPackage; returns how many there are.

    Pixels belong together where they share an edge. Attributes: pixels, area in map units²,
    hectares where the CRS tells the size of a unit, mean_probability. minimum_area: smaller
    patches are left out; in m² where there are hectares, else in map units². The map is read
    `strip` rows at a time, which does not change the result.
    """
    if out.suffix.lower() != ".gpkg":
        raise ConfigError(f"polygons are written as GeoPackage; got {out.name}: name it .gpkg")
    rows: list[dict[str, Any]] = []
    with (
        open_gdal(str(map_path), map_path) as classes,
        open_gdal(str(probability_path), probability_path) as scores,
    ):
        if (classes.shape, classes.transform) != (scores.shape, scores.transform):
            raise SceneError(
                f"{map_path} and {probability_path} lie on different grids: give two of one run"
            )
        crs, measure = classes.crs, Measure.of(classes.crs)
        for patch in _patches(classes, scores, strip):
            row = _attributes(patch, classes.transform, measure)
            if row.get("hectares", row["area"] / 1e4) * 1e4 >= minimum_area * (1 - 1e-9):
                rows.append(row)
    names = ["pixels", "area", "hectares", "mean_probability", "geometry"]
    if measure == Measure():
        names.remove("hectares")
    _write_table({name: [row[name] for row in rows] for name in names}, crs, out)
    return len(rows)


@dataclass(eq=False)
class _Patch:
    """Pixels of the class that share edges: polygons in pixel coordinates, count, sum."""

    numbers: list[int]
    polygons: list[Any]
    pixels: int
    total: float

    def absorb(self, other: _Patch) -> None:
        self.numbers += other.numbers
        self.polygons += other.polygons
        self.pixels += other.pixels
        self.total += other.total


def _patches(classes: Any, scores: Any, strip: int) -> Iterator[_Patch]:
    """Each patch once it is whole; those that cross from strip to strip are joined."""
    height, width = classes.shape
    last, base = np.zeros(width, dtype=np.int64), 0  # numbers along the last row read
    owner: dict[int, _Patch] = {}  # of the patches that touch it
    for top in range(0, height, strip):
        window = Window(0, top, width, min(strip, height - top))
        mask = classes.read(1, window=window) == 1
        values = scores.read(1, window=window) * np.float64(scores.scales[0])
        labels, count = ndimage.label(mask)
        pixels = np.bincount(labels[mask], minlength=count + 1)
        totals = np.bincount(labels[mask], weights=values[mask], minlength=count + 1)
        shift = Affine.translation(0, top)
        for polygon, label in shapes(labels.astype(np.int32), mask=mask, transform=shift):
            i = int(label)
            owner[base + i] = _Patch([base + i], [polygon], int(pixels[i]), float(totals[i]))
        numbers = np.where(labels > 0, labels + base, 0)
        touching = (last > 0) & (numbers[0] > 0)
        for above, below in np.unique(np.stack([last, numbers[0]])[:, touching], axis=1).T:
            one, other = owner[int(above)], owner[int(below)]
            if one is not other:
                one.absorb(other)
                owner |= dict.fromkeys(other.numbers, one)
        last, base = numbers[-1], base + count
        going_on = {int(n): owner[int(n)] for n in np.unique(last[last > 0])}
        held = {id(patch) for patch in going_on.values()}
        yield from {id(p): p for p in owner.values() if id(p) not in held}.values()
        owner = going_on
    yield from {id(p): p for p in owner.values()}.values()


def _attributes(patch: _Patch, transform: Any, measure: Measure) -> dict[str, Any]:
    """One row of the table, its polygon joined and in map coordinates."""
    parts = [shape(polygon) for polygon in patch.polygons]
    # Simplifying by nothing drops the corners that a seam left on straight edges.
    joined = parts[0] if len(parts) == 1 else unary_union(parts).simplify(0)
    a, b, c, d, e, f = transform[:6]
    polygon = affine_transform(joined, [a, b, d, e, c, f])
    row = {
        "pixels": patch.pixels,
        "area": patch.pixels * abs(a * e - b * d),
        "mean_probability": patch.total / patch.pixels,
        "geometry": polygon,
    }
    if (metres := measure.area(polygon)) is not None:
        row["hectares"] = metres / 1e4
    return row


def _write_table(columns: dict[str, list[Any]], crs: Any, out: Path) -> None:
    """A GeoPackage with one layer named as the file, whole or not at all."""
    unfinished = out.with_name(f".{out.stem}.part.gpkg")
    try:
        with disk_errors(out.parent), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'crs' was not provided")
            out.parent.mkdir(parents=True, exist_ok=True)
            unfinished.unlink(missing_ok=True)
            table = geopandas.GeoDataFrame(columns, geometry="geometry", crs=crs)
            table.to_file(
                unfinished, driver="GPKG", layer=out.stem, engine="pyogrio", geometry_type="Polygon"
            )
            unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
