"""Where labels lie: coordinate systems, the scene's outline, and why they do not meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError, ProjError

from thonecls.errors import ConfigError, LabelError, NoLabelError
from thonecls.io.grid import Grid, crs_name, extent
from thonecls.scene import BoolArray

Shapes = NDArray[Any]  # (n,) shapely geometries

LON_LAT = CRS.from_epsg(4326)
IDENTITY = Grid((1, 1)).transform


def parse_crs(text: str) -> CRS:
    """A CRS from what a person writes, such as EPSG:4326."""
    try:
        return CRS.from_user_input(text)
    except CRSError as e:
        raise ConfigError(
            f"crs must be a CRS that PROJ knows, such as EPSG:4326. Got {text!r} instead"
        ) from e


def assign_crs(grid: Grid, text: str, name: str) -> Grid:
    """The grid in a CRS that its file does not name; one that the file names is not replaced."""
    told = parse_crs(text)
    if grid.crs is not None and not CRS.from_wkt(grid.crs).equals(told, ignore_axis_order=True):
        raise ConfigError(
            f"{name} is in {crs_name(CRS.from_wkt(grid.crs))}, not in {text}: leave out the "
            "scene's CRS, or reproject the file"
        )
    if grid.transform == IDENTITY:
        raise ConfigError(
            f"{name} has no coordinates that could be in {text}: georeference it first (in QGIS "
            "by the Georeferencer)"
        )
    return grid if grid.crs is not None else replace(grid, crs=told.to_wkt())


def place(shapes: Shapes, own: CRS | None, grid: Grid, name: str) -> tuple[Shapes, str]:
    """The shapes in the scene's coordinates, and in words how they got there."""
    if grid.crs is None:
        return _place_without_crs(shapes, own, grid, name)
    scene = CRS.from_wkt(grid.crs)
    if own is not None:
        moved = _reproject(shapes, own, grid)
        if moved is shapes:
            return shapes, f"in the scene's CRS, {crs_name(scene)}"
        return moved, f"reprojected from {crs_name(own)} to {crs_name(scene)}"
    if _reach(shapes, grid):
        return (
            shapes,
            f"the file names no CRS; taken as the scene's, {crs_name(scene)}, which it fits",
        )
    x, y = shapely.get_coordinates(shapes).T
    if (np.abs(x) <= 180).all() and (np.abs(y) <= 90).all():
        moved = _reproject(shapes, LON_LAT, grid)
        if _reach(moved, grid):
            return moved, "the file names no CRS; taken as longitude and latitude, EPSG:4326"
    raise NoLabelError(
        f"{name} names no CRS, and its coordinates ({extent(shapes)}) lie in the scene "
        f"({extent(grid.footprint)}, {crs_name(scene)}) neither as they are nor as longitude and "
        f"latitude: say their CRS with 'crs'{_swap_hint(shapes, None, grid)}",
        options=("crs",),
    )


def _place_without_crs(
    shapes: Shapes, own: CRS | None, grid: Grid, name: str
) -> tuple[Shapes, str]:
    """On a scene without CRS, only coordinates without CRS have a meaning."""
    if own is not None:
        step = "say the scene's CRS ('scene_crs')"
        if grid.transform == IDENTITY:
            step = "georeference the scene (in QGIS by the Georeferencer)"
        raise LabelError(
            f"{name} is in {crs_name(own)}, but the scene has no CRS: {step}, or give pixels, as a "
            ".csv of row,column or of x,y = column,row",
            options=("scene_crs",),
        )
    if grid.transform != IDENTITY:
        return shapes, "neither the file nor the scene names a CRS; taken as the same"
    if not _reach(shapes, grid):
        upright = shapely.transform(shapes, lambda xy: xy * [1, -1])
        if _reach(upright, grid):  # QGIS shows a scene without georeference from 0 down to -rows
            return upright, "taken as pixels: x = column, y = -row, as QGIS draws such a scene"
    return shapes, "taken as pixels: x = column, y = row"


def _reproject(shapes: Shapes, own: CRS | None, grid: Grid) -> Shapes:
    """The shapes in the scene's CRS, themselves if they are in it; infinite where that fails."""
    if own is None or grid.crs is None:
        return shapes
    scene = CRS.from_wkt(grid.crs)
    if own.equals(scene, ignore_axis_order=True):
        return shapes
    try:
        transformer = Transformer.from_crs(own, scene, always_xy=True)
    except ProjError as e:
        raise LabelError(
            f"there is no way from the labels' CRS {crs_name(own)} to the scene's "
            f"{crs_name(scene)} ({e}): save the labels in the scene's CRS"
        ) from e
    moved: Shapes = shapely.transform(shapes, transformer.transform, interleaved=False)
    return moved


def is_missing(shapes: Shapes) -> BoolArray:
    """Which shapes have no geometry."""
    return np.asarray(shapely.is_missing(shapes) | shapely.is_empty(shapes))


def is_finite(shapes: Shapes) -> BoolArray:
    """Which shapes have finite coordinates."""
    coordinates, owner = shapely.get_coordinates(shapes, return_index=True)
    finite = np.ones(len(shapes), dtype=bool)
    finite[owner[~np.isfinite(coordinates).all(axis=1)]] = False
    return finite


def _reach(shapes: Shapes, grid: Grid) -> bool:
    """Whether any shape touches the scene."""
    return bool(shapely.intersects(shapes[is_finite(shapes)], grid.footprint).any())


def _swap_hint(shapes: Shapes, own: CRS | None, grid: Grid) -> str:
    """Said where the labels would fit with x and y exchanged."""
    swapped = shapely.transform(shapes, lambda xy: xy[:, ::-1])
    for crs in (own, LON_LAT) if own is None and grid.crs is not None else (own,):
        if _reach(_reproject(swapped, crs, grid), grid):
            return ". With x and y exchanged they lie inside: exchange them (longitude is x)"
    return ""


def refuse(
    shapes: Shapes,
    own: CRS | None,
    placed: Shapes,
    grid: Grid,
    name: str,
    buffer: float | None,
) -> NoReturn:
    """Say why no feature marks a pixel."""
    if _reach(placed[shapely.get_dimensions(placed) > 0], grid) or (
        buffer is not None and buffer < 0 and _reach(placed, grid)
    ):
        step = "take all pixels that they touch ('all_touched')"
        if buffer is not None and buffer < 0:
            step = f"narrow them by less than {-buffer:g} ('buffer')"
        raise NoLabelError(
            f"the features of {name} in the scene are too small to cover a pixel's centre: {step}",
            options=("all_touched", "buffer"),
        )
    if own is None or is_finite(placed).any():
        where = extent(placed[is_finite(placed)])
    else:
        where = f"{extent(shapes)} in {crs_name(own)}, which PROJ cannot bring to the scene's CRS"
    step = "check that the two belong together, and the labels' CRS ('crs')"
    if (
        own is not None
        and own.is_geographic
        and np.abs(shapely.get_coordinates(shapes)).max() > 360
    ):
        step = (
            f"the coordinates are not degrees, as {crs_name(own)} has them: say their CRS ('crs')"
        )
    scene = grid.crs_name
    raise NoLabelError(
        f"none of the {len(shapes)} features of {name} lies inside the scene: they span {where}, "
        f"the scene {extent(grid.footprint)} ({scene}); {step}{_swap_hint(shapes, own, grid)}",
        options=("crs",),
    )
