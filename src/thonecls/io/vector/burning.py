"""From features and from rasters of labels to the pixels of a scene."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import shapely
from numpy.typing import NDArray
from pyproj import CRS
from rasterio._err import CPLE_BaseError
from rasterio.features import rasterize
from rasterio.transform import Affine
from rasterio.vrt import WarpedVRT

from thonecls.errors import ConfigError, FileError, LabelError, NoLabelError
from thonecls.io.grid import Grid, crs_name
from thonecls.io.raster.gdal import open_gdal
from thonecls.io.vector.crs import (
    IDENTITY,
    Shapes,
    is_finite,
    is_missing,
    parse_crs,
    place,
    refuse,
)
from thonecls.io.vector.layers import read_layer
from thonecls.scene import NO_DATA, BoolArray

UNKNOWN = NO_DATA  # in a truth map: neither positive nor negative


@dataclass(frozen=True, eq=False)
class Burnt:
    """Positive pixels from a label file, and what became of its features.

    mask: (H, W) bool. Of all `features`, `inside` label a pixel, `outside` lie beyond the scene,
    `missed` cover no pixel's centre, `empty` have no geometry. `doubled` points, the parts of
    multipoints included, fall on a pixel that is labelled already; `repaired` polygons were
    invalid and are mended; `crs_note` says what was done about the CRS.
    """

    mask: BoolArray
    features: int
    inside: int
    outside: int
    missed: int
    empty: int
    doubled: int
    repaired: int
    crs_note: str


def burn_positives(
    path: Path,
    grid: Grid,
    *,
    layer: str | None = None,
    where: str | None = None,
    all_touched: bool = False,
    crs: str | None = None,
    buffer: float | None = None,
) -> Burnt:
    """The pixels that a label file marks, on the scene's grid.

    A point marks the pixel whose half-open cell holds it; a polygon the pixels whose centre it
    covers, a line those on its way; with `all_touched`, all that they touch: as GDAL does.
    crs: the labels' CRS, such as EPSG:4326, whatever the file says. buffer: a distance in the
    units of the scene's CRS by which the features are widened, or polygons narrowed if negative.
    """
    frame = read_layer(path, layer=layer, where=where, columns=[])
    shapes, repaired = _repair(np.asarray(frame.geometry.array, dtype=object))
    if not shapes.size:
        raise LabelError(
            f"none of the {len(frame)} features of {path.name} has a geometry: "
            "draw them again, or choose another layer ('layer')",
            options=("layer",),
        )
    own = frame.crs if crs is None else parse_crs(crs)
    placed, note = place(shapes, own, grid, path.name)
    if crs is not None and frame.crs != own:
        said = "no CRS" if frame.crs is None else crs_name(frame.crs)
        note = f"taken as {crs_name(own)}, as asked, although the file says {said}; {note}"
    finite = is_finite(placed)  # what cannot be projected lies outside
    widened = _widen(placed[finite], buffer, grid)
    widened = widened[~is_missing(widened)]
    mask, hit, doubled = _burn(widened, grid, all_touched)
    near = shapely.intersects(widened, grid.footprint) & (shapely.get_dimensions(widened) > 0)
    missed = int((near & ~hit).sum())
    if not hit.any():
        refuse(shapes, own, placed, grid, path.name, buffer)
    empty = len(frame) - len(shapes) + int(finite.sum()) - len(widened)
    outside = len(frame) - (inside := int(hit.sum())) - missed - empty
    return Burnt(mask, len(frame), inside, outside, missed, empty, doubled, repaired, note)


def burn_truth(
    path: Path,
    grid: Grid,
    *,
    positive_where: str | None = None,
    negative_where: str | None = None,
    layer: str | None = None,
    all_touched: bool = False,
    crs: str | None = None,
) -> NDArray[np.uint8]:
    """A held-out layer, for evaluation only: (H, W) with 1 positive, 0 negative, 255 unknown.

    Without filters every feature is positive; without `negative_where` there are no negatives.
    A pixel that holds both is unknown.
    """
    if positive_where is None and negative_where is not None:
        raise ConfigError(
            f"negatives are picked by {negative_where!r}, but positives by nothing: "
            "say which features are positive too (positive_where)"
        )
    truth = np.full(grid.shape, UNKNOWN, dtype=np.uint8)
    wheres = [positive_where] if negative_where is None else [positive_where, negative_where]
    positive, *negatives = [
        burn_positives(path, grid, layer=layer, where=w, all_touched=all_touched, crs=crs).mask
        for w in wheres
    ]
    truth[positive] = 1
    for negative in negatives:
        truth[negative & ~positive] = 0
        truth[negative & positive] = UNKNOWN
    if not (truth == 1).any():
        raise LabelError(
            f"every positive pixel of {path.name} is also marked negative: "
            f"check {positive_where!r} against {negative_where!r}"
        )
    return truth


def _repair(shapes: Shapes) -> tuple[Shapes, int]:
    """The shapes that there are, invalid polygons mended, and how many these were."""
    shapes = shapes[~is_missing(shapes) & is_finite(shapes)]
    bad = np.flatnonzero(~shapely.is_valid(shapes) & (shapely.get_dimensions(shapes) == 2))
    for i in bad:
        plain = shapes[i].geom_type != "GeometryCollection"
        parts, _ = _parts(np.array([shapely.make_valid(shapes[i])], dtype=object))
        # What the mending leaves of a polygon as lines or points is no area.
        kept = [part for part in parts if not plain or part.geom_type == "Polygon"]
        shapes[i] = shapely.MultiPolygon(kept) if plain else shapely.GeometryCollection(kept)
    return shapes[~is_missing(shapes)], len(bad)


def _widen(shapes: Shapes, buffer: float | None, grid: Grid) -> Shapes:
    if buffer is None:
        return shapes
    if not math.isfinite(buffer) or buffer == 0:
        raise ConfigError(f"buffer must be a distance other than 0. Got {buffer} instead")
    if grid.crs is not None and CRS.from_wkt(grid.crs).is_geographic:
        raise ConfigError(
            f"buffer {buffer:g} would be in degrees, as the scene is: "
            "buffer the layer in metres (QGIS: Buffer), or reproject the scene"
        )
    return np.asarray(shapely.buffer(shapes, buffer), dtype=object)


def _parts(shapes: Shapes) -> tuple[Shapes, NDArray[np.int64]]:
    """The points, lines and polygons that multis and collections hold, and whose they are."""
    owner = np.arange(len(shapes))
    while (shapely.get_type_id(shapes) > 3).any():
        shapes, index = shapely.get_parts(shapes, return_index=True)
        owner = owner[index]
    there = ~is_missing(shapes)
    return shapes[there], owner[there]


def _burn(shapes: Shapes, grid: Grid, all_touched: bool) -> tuple[BoolArray, BoolArray, int]:
    """The mask, which shapes mark a pixel of it, and how many points fall on a marked one."""
    mask = np.zeros(grid.shape, dtype=bool)
    hit = np.zeros(len(shapes), dtype=bool)
    parts, owner = _parts(shapes)
    point = shapely.get_type_id(parts) == 0
    drawn = ~point & np.isin(owner, owner[_near(parts, grid)])  # of a feature all parts, or none
    groups = np.split(parts[drawn], np.flatnonzero(np.diff(owner[drawn])) + 1)
    for i, group in zip(np.unique(owner[drawn]), groups, strict=False):
        hit[i] = _burn_group_(mask, group, grid, all_touched)
    cells = np.floor(grid.to_pixels(shapely.get_coordinates(parts[point])))
    inside = ((cells >= 0) & (cells < grid.shape[::-1])).all(axis=1)
    columns, rows = cells[inside].astype(np.int64).T
    before = int(mask.sum())
    mask[rows, columns] = True
    hit[owner[point][inside]] = True
    return mask, hit, int(inside.sum()) - (int(mask.sum()) - before)


def _near(shapes: Shapes, grid: Grid) -> BoolArray:
    """Which shapes may reach the scene, by their bounds: of many tiles a layer marks but a few."""
    a, b, _, d, e, _ = grid.transform[:6]
    reach = 2 * max(abs(a) + abs(b), abs(d) + abs(e))
    left, low, right, high = grid.footprint.bounds
    x, y, beyond, above = shapely.bounds(shapes).T
    near = (x <= right + reach) & (beyond >= left - reach)
    return np.asarray(near & (y <= high + reach) & (above >= low - reach))


def _burn_group_(mask: BoolArray, group: Shapes, grid: Grid, all_touched: bool) -> bool:
    """Burn lines and polygons of one feature into the part of the mask that they span."""
    pixels = grid.to_pixels(shapely.get_coordinates(group))
    size = np.array(grid.shape[::-1])
    left, top = np.clip(np.floor(pixels.min(axis=0)) - 1, 0, size).astype(int).tolist()
    right, bottom = np.clip(np.ceil(pixels.max(axis=0)) + 1, 0, size).astype(int).tolist()
    if left >= right or top >= bottom:
        return False
    a, b, c, d, e, f = grid.transform[:6]
    burnt = rasterize(
        list(group),
        out_shape=(bottom - top, right - left),
        transform=Affine(a, b, a * left + b * top + c, d, e, d * left + e * top + f),
        all_touched=all_touched,
        dtype="uint8",
    )
    mask[top:bottom, left:right] |= burnt == 1
    return bool(burnt.any())


@dataclass(frozen=True, eq=False)
class LabelRaster:
    """Positive pixels from a raster, (H, W) bool, and how it was laid on the scene."""

    mask: BoolArray
    note: str


def read_label_raster(path: Path, grid: Grid, *, target: int | None = None) -> LabelRaster:
    """The pixels of class `target` in a label raster, on the scene's grid.

    Without a target the raster holds 1 and 0 (or -1). A raster in another grid is resampled to
    the nearest neighbour where both have a CRS, and refused where not.
    """
    values, note = _read(path, grid)
    known = np.unique(values.compressed()).tolist()
    shown = ", ".join(f"{v:g}" for v in known[:8]) + (", …" if len(known) > 8 else "")
    if target is None and not set(known) <= {-1, 0, 1}:
        raise LabelError(
            f"a label raster holds 1 and 0. {path.name} holds {shown}: pick one class ('target')",
            options=("target",),
        )
    mask = np.ma.filled(values == (1 if target is None else target), False)
    if not mask.any():
        raise NoLabelError(
            f"no pixel of {path.name} inside the scene is {1 if target is None else target}; "
            f"it holds {shown}: pick one of these ('target')",
            options=("target",),
        )
    return LabelRaster(np.asarray(mask, dtype=bool), note)


def read_labelled(path: Path, grid: Grid) -> BoolArray:
    """Where a raster of class numbers has one: neither nodata nor 0."""
    return np.asarray(np.ma.filled(_read(path, grid)[0] != 0, False), dtype=bool)


def is_laid_on(path: Path, grid: Grid) -> bool:
    """Whether a raster without a place on Earth has the size of a grid without one."""
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    with open_gdal(str(path), path) as raster:
        return bool(raster.shape == grid.shape and not raster.crs)


def _read(path: Path, grid: Grid) -> tuple[Any, str]:
    """The masked values of a raster on the scene's grid, and how it was laid."""
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    try:
        with open_gdal(str(path), path) as raster:
            values, own, note = _read_onto(raster, grid, path.name)
    except (rasterio.errors.RasterioError, CPLE_BaseError) as e:
        raise FileError(  # GDAL's own words are in the cause
            f"cannot read {path} ({e.__cause__ or e}): it must be a whole raster file"
        ) from e
    if not values.count():
        raise NoLabelError(
            f"{path.name} has no value inside the scene: it covers {own.describe()}, "
            f"the scene {grid.describe()}; check that the two belong together"
        )
    return values, note


def _read_onto(raster: Any, grid: Grid, name: str) -> tuple[Any, Grid, str]:
    """The masked values of a raster on the scene's grid, its own grid, and how it was laid."""
    if raster.count != 1:
        raise FileError(f"a label raster has one band. {name} has {raster.count}: save one alone")
    crs = raster.crs.to_wkt() if raster.crs else None
    own = Grid(raster.shape, tuple(raster.transform)[:6], crs)
    fits, note = _compare(own, grid)
    if fits:
        return _mask_invalid(raster.read(1, masked=True)), own, note
    if own.crs is None or grid.crs is None:
        raise LabelError(
            f"{name} covers {own.describe()}, the scene {grid.describe()}: "
            "save the labels in the scene's grid, or give both a CRS"
        )
    with WarpedVRT(
        raster,
        crs=grid.crs,
        transform=grid.transform,
        height=grid.shape[0],
        width=grid.shape[1],
        add_alpha=raster.nodata is None,  # so that what it does not cover is told from class 0
        tolerance=0.01,
    ) as laid:
        return _mask_invalid(laid.read(1, masked=True)), own, note


def _mask_invalid(values: Any) -> Any:
    return np.ma.masked_invalid(values) if values.dtype.kind == "f" else values


def _compare(own: Grid, grid: Grid) -> tuple[bool, str]:
    """Whether a raster lies pixel on pixel with the scene, and the note on how it is laid."""
    plain = IDENTITY in (own.transform, grid.transform) and None in (own.crs, grid.crs)
    if own.shape == grid.shape and plain:
        return True, "laid pixel on pixel: the same size, and one of the two has no georeference"
    corners = [shapely.get_coordinates(g.footprint) for g in (own, grid)]
    apart = np.abs(grid.to_pixels(corners[0]) - grid.to_pixels(corners[1])).max()
    aligned = own.shape == grid.shape and apart <= 1e-6
    if aligned and None in (own.crs, grid.crs):
        return True, "in the scene's grid; one CRS is missing and taken as the other"
    if own.crs is None or grid.crs is None:
        return False, ""
    crs, scene = CRS.from_wkt(own.crs), CRS.from_wkt(grid.crs)
    if aligned and crs.equals(scene, ignore_axis_order=True):
        return True, "in the scene's grid"
    return False, f"resampled to the nearest neighbour from {own.describe()}"
