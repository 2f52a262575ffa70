"""Maps as cloud-optimised GeoTIFFs in a scene's own geometry, and beside them its lookup."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import rasterio.shutil
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from rasterio._err import CPLE_BaseError
from rasterio.errors import NotGeoreferencedWarning
from rasterio.windows import Window

from thonecls.errors import FileError
from thonecls.files import write_refused
from thonecls.io.drivers import open_raster_as
from thonecls.io.grid import Grid
from thonecls.io.lookup import GEOMETRY, NONE, Lookup
from thonecls.scene import NO_DATA, FloatArray

BLOCK = 512  # pixels a side of what is held while maps are finished
UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CACHE = 64  # MB that GDAL keeps of a map; by itself it takes a share of the machine


@dataclass(frozen=True)
class Cog:
    """A raster to be made: how values, NaN on nodata, are written in it, and what it says.

    scale: of the numbers written, so that viewers show the values. Those with colours are
    classes, whose overviews hold the commonest; others hold means. floats: float32, not uint8.
    """

    path: Path
    encode: Callable[[FloatArray], NDArray[Any]]
    description: str
    scale: float = 1.0
    floats: bool = False
    colours: Mapping[int, str] | None = None


def write_cogs(
    cogs: Sequence[Cog],
    grid: Grid,
    blocks: Iterator[tuple[slice, slice, FloatArray]],
    tags: Mapping[str, str],
) -> None:
    """Encode values block by block, each once for all rasters, and turn these into COGs."""
    raw = [cog.path.with_name(f".raw-{cog.path.name}") for cog in cogs]
    with rasterio.Env(GDAL_CACHEMAX=CACHE), ExitStack() as stack:
        rasters = [
            stack.enter_context(_create(path, cog, grid, tags))
            for path, cog in zip(raw, cogs, strict=True)
        ]
        for rows, columns, values in blocks:
            window = Window.from_slices(rows, columns)
            for raster, cog in zip(rasters, cogs, strict=True):
                raster.write(cog.encode(values), 1, window=window)
    for path, cog in zip(raw, cogs, strict=True):
        if cog.colours:
            _to_cog(path, cog.path, "MODE")
        else:
            _to_cog(path, cog.path, "AVERAGE", predictor="YES")


def tag_texts(tags: Mapping[str, Any] | None) -> dict[str, str]:
    """Tags as a file keeps them: texts as they are, all else as JSON."""
    return {
        key: plain_text(value if isinstance(value, str) else json.dumps(value, default=str))
        for key, value in (tags or {}).items()
    }


def plain_text(text: str) -> str:
    r"""A text that XML and UTF-8 can hold: control characters and the like become �.

    >>> plain_text("a\x1b[1mb")
    'a�[1mb'
    """
    return UNWRITABLE.sub("\ufffd", text)


def _create(path: Path, cog: Cog, grid: Grid, tags: Mapping[str, str]) -> Any:
    """A tiled raster without compression, for windows in any order."""
    dataset = _open_new(path, grid, np.float32 if cog.floats else np.uint8)
    dataset.update_tags(**tags)
    if cog.colours:
        dataset.write_colormap(1, {k: (*_rgb(c), 255) for k, c in cog.colours.items()})
    dataset.set_band_description(1, plain_text(cog.description))
    if cog.scale != 1:
        dataset.scales = (cog.scale,)
    return dataset


def _open_new(path: Path, grid: Grid, dtype: type[np.generic]) -> Any:
    """A new one-band GeoTIFF of the scene's geometry, to the last digit."""
    with warnings.catch_warnings():  # a scene need not lie anywhere on Earth
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        return rasterio.open(
            path,
            "w",
            driver="GTiff",
            height=grid.shape[0],
            width=grid.shape[1],
            count=1,
            dtype=np.dtype(dtype).name,
            nodata=np.nan if dtype is np.float32 else NO_DATA,
            transform=None if grid == Grid(grid.shape) else grid.transform,
            crs=None if grid.crs is None else rasterio.crs.CRS.from_wkt(grid.crs),
            tiled=True,
            blockxsize=BLOCK,
            blockysize=BLOCK,
            BIGTIFF="IF_SAFER",
        )


def _to_cog(raw: Path, path: Path, resampling: str, **options: str) -> None:
    """A compressed COG with overviews from a plain raster, which is deleted."""
    with rasterio.Env(GDAL_CACHEMAX=CACHE), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        rasterio.shutil.copy(
            raw,
            path,
            driver="COG",
            compress="DEFLATE",
            blocksize=str(BLOCK),
            overview_resampling=resampling,
            bigtiff="IF_SAFER",
            **options,
        )
    raw.unlink()


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """What the disk refuses, as an error that names the folder and what to do."""
    try:
        yield
    except (OSError, CPLE_BaseError) as error:
        raise write_refused(folder, error) from error


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
