"""Which of GDAL's drivers may open a file: those that its ending promises.

GDAL goes by what is in a file. A description named scene.tif could make it fetch addresses and read
any other file. Drivers that do so open only what is named so, and those that need a network none.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from thonecls.errors import FileError

# Endings such as .dat or .img promise nothing: what is not listed may be anything but `FOLLOW`.
RASTERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((".tif", ".tiff", ".gtiff", ".geotiff", ".cog"), ("GTiff",)),
    **dict.fromkeys((".bsq", ".bil", ".bip"), ("ENVI", "EHdr", "GenBin")),
    **dict.fromkeys((".nc", ".nc4", ".cdf"), ("netCDF",)),
    **dict.fromkeys(
        (".h5", ".hdf5", ".he5", ".hdf"),
        ("HDF5", "HDF5Image", "HDF4", "HDF4Image", "BAG", "netCDF"),
    ),
    **dict.fromkeys(
        (".jp2", ".jpeg2000"), ("JP2OpenJPEG", "JP2KAK", "JP2ECW", "JP2MrSID", "JPEG2000")
    ),
    ".png": ("PNG",),
    **dict.fromkeys((".jpg", ".jpeg"), ("JPEG",)),
    ".vrt": ("VRT",),
}
# They follow what a file says to other files or to addresses; a .vrt alone may do so.
FOLLOW = {
    *("VRT", "GTI", "STACIT", "STACTA", "DERIVED", "KMLSUPEROVERLAY", "TileDB", "MBTiles", "GPKG"),
    *("WMS", "WMTS", "WCS", "OGCAPI", "DAAS", "EEDA", "EEDAI", "PLMOSAIC", "PLScenes", "NGW"),
    *("HTTP", "PostGISRaster", "GeoRaster", "RasterLite", "Rasterlite", "SQLite", "S3", "MEM"),
    *("MRF", "OAPIF", "WFS", "CSW", "Carto", "AmigoCloud", "Elastic", "CouchDB", "GMLAS"),
}
SETTINGS = {
    "CPL_VSIL_CURL_ALLOWED_FILENAME": "none",  # no address is read, whatever a .vrt names
    "GDAL_SKIP": "WMS WMTS WCS OGCAPI DAAS EEDA EEDAI PLMOSAIC PLSCENES NGW HTTP STACIT STACTA "
    "GDALG OGR_VRT WFS OAPIF CSW Carto AmigoCloud Elasticsearch",
}
PIPELINE = b"gdal_streamed_alg"  # commands for GDAL, in JSON
START = 4096  # bytes by which a vector file is known
MAGIC: dict[str, tuple[bytes, ...]] = {
    ".gpkg": (b"SQLite format 3\0",),
    ".shp": (b"\0\0\x27\x0a",),
    ".fgb": (b"fgb",),
    ".kmz": (b"PK",),
    ".zip": (b"PK",),
    ".geojson": (b"{", b"["),
    ".json": (b"{", b"["),
    ".kml": (b"<",),
}
PROLOGUE = re.compile(r"(\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(\[.*?\])?\s*>)*", re.S)


def keep_from_networks() -> None:
    """Let GDAL do without the drivers that need a network, for the whole process.

    Before GDAL is loaded. What a person has asked for by the same variables is left as it is.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


@cache
def _others() -> tuple[str, ...]:
    """All drivers of rasters that read nothing but the file that they are given."""
    from rasterio.env import Env

    with Env() as env:
        return tuple(sorted(env.drivers().keys() - FOLLOW))


def raster_drivers(path: Path) -> list[str]:
    """The drivers that may open a raster, by its ending.

    >>> raster_drivers(Path("scene.tif")), raster_drivers(Path("stack.VRT"))
    (['GTiff'], ['VRT'])
    """
    return list(RASTERS.get(path.suffix.lower()) or _others())


def open_raster_as(name: str | Path, drivers: list[str]) -> Any:
    """GDAL's dataset of that name by one of some drivers; `rasterio.open` takes only one."""
    from rasterio._path import _parse_path
    from rasterio.env import ensure_env
    from rasterio.io import DatasetReader

    return ensure_env(DatasetReader)(_parse_path(str(name)), driver=drivers)


def check_vector(path: Path) -> None:
    """Refuse a vector file that is not what its ending says, before GDAL sees it."""
    ending = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(START).removeprefix(b"\xef\xbb\xbf")
    if ending in (".geojson", ".json", ".kml"):
        start = start.lstrip()
    if not start.startswith(MAGIC.get(ending, (b"",))):
        raise _unlike(path)
    if ending in (".geojson", ".json") and _holds(path, PIPELINE):
        raise _unlike(path)
    if ending == ".kml":
        words = start.decode("utf-8", "replace")
        root = PROLOGUE.sub("", words, count=1)
        if not re.match(r"<(\w+:)?kml\b", root):
            raise _unlike(path)


def _holds(path: Path, words: bytes) -> bool:
    """Whether some words stand anywhere in a file."""
    before = b""
    with path.open("rb") as file:
        while part := file.read(2**20):
            if words in before + part:
                return True
            before = part[-len(words) :]
    return False


def _unlike(path: Path) -> FileError:
    return FileError(
        f"cannot read {path.name} (it begins like no {path.suffix.lower()} file): it must be a "
        "whole file of the format that its ending says"
    )
