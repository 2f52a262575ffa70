"""Scenes of several files: folders of single-band rasters, and ENVI headers with their data."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

from rasterio.dtypes import dtype_rev, typename_fwd

from thonecls.errors import FileError, SceneError
from thonecls.io.raster.bands import named_wavelength
from thonecls.io.raster.files import LazyFile, RasterHeader
from thonecls.io.raster.gdal import Gdal, gdal_header, open_gdal

RASTERS = (".tif", ".tiff", ".jp2", ".img", ".dat", ".bsq", ".bil", ".bip", ".raw", ".vrt", "")


def folder_header(folder: Path) -> RasterHeader:
    """Single-band files of one grid as one scene, in the order in which a person counts."""
    files = sorted(filter(_is_raster, folder.iterdir()), key=_natural)
    if not files:
        raise FileError(f"{folder} holds no raster file: give a scene, or a folder of its bands")
    bands, stack = [], []
    for number, path in enumerate(files, 1):
        with open_gdal(str(path), path) as dataset:
            if dataset.count != 1:
                raise FileError(
                    f"a folder of bands holds files of one band; {path.name} has {dataset.count}: "
                    "give that file itself, or move it elsewhere"
                )
            kind = typename_fwd[dtype_rev[dataset.dtypes[0]]]
            described = bool(dataset.descriptions[0])
        _, grid, (band,) = gdal_header(path, str(path))
        if number == 1:
            first = grid
        elif grid != first:
            raise SceneError(
                f"the bands of a scene lie on one grid; {path.name} {grid.shape} and "
                f"{files[0].name} {first.shape} do not: resample them, or move one elsewhere"
            )
        band = replace(band, number=number, name=band.name if described else path.stem)
        bands.append(band if band.wavelength else named_wavelength(band, {}))
        stack.append(_virtual_band(path, number, kind))
    size = f'rasterXSize="{first.shape[1]}" rasterYSize="{first.shape[0]}"'
    form = Gdal(folder, f"<VRTDataset {size}>{''.join(stack)}</VRTDataset>")
    return LazyFile(form), first, tuple(bands)


def _natural(path: Path) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _virtual_band(path: Path, number: int, kind: str) -> str:
    """A file as a band of a GDAL virtual dataset, which keeps few of its files open at a time."""
    return (
        f'<VRTRasterBand dataType="{kind}" band="{number}"><SimpleSource>'
        f'<SourceFilename relativeToVRT="0">{escape(str(path.resolve()))}</SourceFilename>'
        "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand>"
    )


def data_file(path: Path) -> Path:
    """The data file that an ENVI header belongs to; any other path is returned as it is."""
    if path.suffix.lower() != ".hdr":
        return path
    bare = path.with_suffix("")  # of cube.hdr and of cube.dat.hdr alike
    beside = [p for p in sorted(path.parent.iterdir()) if p.stem == bare.name and _is_raster(p)]
    if bare.is_file():
        return bare
    if not beside:
        raise FileError(f"{path} has no data file beside it: expected {bare} or {bare}.dat")
    return beside[0]


def _is_raster(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in RASTERS and not path.name.startswith(".")
