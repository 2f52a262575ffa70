"""Scenes in raster files: every form that GDAL reads, window by window, bands by wavelength."""

from __future__ import annotations

from thonecls.raster.bad_bands import find_bad_bands
from thonecls.raster.bands import Band, BandChoice, parse_bands, parse_wavelengths
from thonecls.raster.gdal import open_gdal
from thonecls.raster.matching import match_bands
from thonecls.raster.source import RasterSource, open_raster

__all__ = [
    "Band",
    "BandChoice",
    "RasterSource",
    "find_bad_bands",
    "match_bands",
    "open_gdal",
    "open_raster",
    "parse_bands",
    "parse_wavelengths",
]
