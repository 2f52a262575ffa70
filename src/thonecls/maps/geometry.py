"""Which pixel of a sensor's image each pixel of a map shows, as a raster beside the map."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import rasterio
from rasterio.windows import Window

from thonecls.errors import FileError
from thonecls.io.drivers import open_raster_as
from thonecls.io.grid import Grid
from thonecls.io.lookup import GEOMETRY, NONE, Lookup
from thonecls.maps.cogs import BLOCK

SIZE = ("SENSOR_ROWS", "SENSOR_COLUMNS")  # tags of the raster


def write_geometry(folder: Path, lookup: Lookup) -> None:
    """geometry.tif: row × columns + column of the sensor's pixel, -1 for none; whole or not at all.

    By it a folder is read back without the scene.
    """
    grid, unfinished = lookup.grid, folder / f".part-{GEOMETRY}"
    try:
        with rasterio.open(
            unfinished,
            "w",
            driver="GTiff",
            height=grid.shape[0],
            width=grid.shape[1],
            count=1,
            dtype="int32",
            nodata=NONE,
            transform=grid.transform,
            crs=None if grid.crs is None else rasterio.crs.CRS.from_wkt(grid.crs),
            compress="DEFLATE",
            predictor=2,
            tiled=True,
            blockxsize=BLOCK,
            blockysize=BLOCK,
        ) as file:
            file.update_tags(**dict(zip(SIZE, lookup.shape, strict=True)))
            file.set_band_description(1, "pixel of the sensor's image: row × columns + column")
            for top in range(0, grid.shape[0], BLOCK):
                rows = slice(top, min(top + BLOCK, grid.shape[0]))
                window = Window.from_slices(rows, slice(0, grid.shape[1]))
                file.write(lookup.table[rows].astype(np.int32), 1, window=window)
        unfinished.replace(folder / GEOMETRY)
    finally:
        unfinished.unlink(missing_ok=True)


def scene_grid(folder: Path, grid: Grid) -> Grid:
    """The grid of the scene whose map lies in a folder; grid: of the map itself."""
    path = folder / GEOMETRY
    if not path.exists():
        return grid
    try:
        with open_raster_as(path, ["GTiff"]) as file:
            rows, columns = (int(file.tags()[name]) for name in SIZE)
            if rows < 1 or columns < 1:
                raise ValueError(f"an image of {rows} × {columns} pixels")
    except (OSError, KeyError, ValueError) as error:
        raise FileError(f"cannot read {path} ({error}): map the scene again") from error
    return Grid((rows, columns), lookup=Lookup(path, (rows, columns), grid))
