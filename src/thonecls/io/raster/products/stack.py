"""Bands in files of their own, of one extent and several pixel sizes, on one grid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import shapely
from rasterio.dtypes import dtype_rev, typename_fwd

from thonecls.errors import SceneError
from thonecls.io.grid import Grid
from thonecls.io.raster.gdal import Gdal, gdal_header, open_gdal


class Layer(NamedTuple):
    """A band of a file, where it lies, and GDAL's name of the type of its values."""

    path: Path
    number: int
    grid: Grid
    kind: str


def layers_of(path: Path) -> list[Layer]:
    """All bands of a file."""
    with open_gdal(str(path), path) as dataset:
        kinds = [typename_fwd[dtype_rev[kind]] for kind in dataset.dtypes]
    _, grid, _ = gdal_header(path, str(path))
    return [Layer(path, number, grid, kind) for number, kind in enumerate(kinds, 1)]


def stack(folder: Path, grid: Grid, layers: Sequence[Layer], nodata: float | None = None) -> Gdal:
    """The bands on one grid: coarser ones repeated, finer ones averaged; folder: for errors.

    nodata: a value that no average takes in; without it nothing is averaged.
    """
    bands = []
    for number, layer in enumerate(layers, 1):
        _check_extent(layer, grid)
        (height, width), (rows, columns) = layer.grid.shape, grid.shape
        finer = height > rows and nodata is not None
        how = ' resampling="average"' if finer else ""
        fill = "" if nodata is None else f"<NODATA>{nodata:g}</NODATA>"
        bands.append(
            f'<VRTRasterBand dataType="{layer.kind}" band="{number}">'
            f"<ComplexSource{how}>"
            f'<SourceFilename relativeToVRT="0">{escape(str(layer.path.resolve()))}'
            f"</SourceFilename><SourceBand>{layer.number}</SourceBand>"
            f'<SrcRect xOff="0" yOff="0" xSize="{width}" ySize="{height}"/>'
            f'<DstRect xOff="0" yOff="0" xSize="{columns}" ySize="{rows}"/>{fill}'
            "</ComplexSource></VRTRasterBand>"
        )
    size = f'rasterXSize="{grid.shape[1]}" rasterYSize="{grid.shape[0]}"'
    return Gdal(folder, f"<VRTDataset {size}>{''.join(bands)}</VRTDataset>")


def _check_extent(layer: Layer, grid: Grid) -> None:
    """Refuse a file that covers another piece of Earth than the others."""
    own, others = (shapely.get_coordinates(g.footprint) for g in (layer.grid, grid))
    pixel = np.hypot(*np.array(grid.transform[:6]).reshape(2, 3)[:, 0])
    if layer.grid.crs != grid.crs or np.abs(own - others).max() > 0.01 * pixel:
        raise SceneError(
            f"{layer.path.name} covers {layer.grid.describe()}, the other bands "
            f"{grid.describe()}: get the whole product again"
        )
