"""Labels in rasters, laid on the pixels of a scene."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import shapely
from pyproj import CRS
from rasterio._err import CPLE_BaseError
from rasterio.vrt import WarpedVRT

from thonecls.errors import FileError, LabelError, NoLabelError
from thonecls.io.grid import Grid
from thonecls.io.raster.gdal import open_gdal
from thonecls.io.vector.crs import IDENTITY
from thonecls.scene import BoolArray


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
