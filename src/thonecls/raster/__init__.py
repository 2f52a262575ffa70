"""Scenes in raster files: every form that GDAL reads, window by window, bands by wavelength."""

from __future__ import annotations

from thonecls.raster.bad_bands import find_bad_bands
from thonecls.raster.bands import Band, BandChoice, parse_bands, parse_wavelengths
from thonecls.raster.gdal import open_gdal
from thonecls.raster.matching import match_bands
from thonecls.raster.source import RasterSource, open_raster
from thonecls.raster.wavelengths import FALSE_COLOUR, TRUE_COLOUR, nearest_bands

__all__ = [
    "FALSE_COLOUR",
    "TRUE_COLOUR",
    "Band",
    "BandChoice",
    "RasterSource",
    "find_bad_bands",
    "match_bands",
    "nearest_bands",
    "open_gdal",
    "open_raster",
    "parse_bands",
    "parse_wavelengths",
]
