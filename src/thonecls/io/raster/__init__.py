"""Scenes in raster files: every form that GDAL reads, window by window, bands by wavelength."""

from __future__ import annotations

from thonecls.io.raster.bands import (
    FALSE_COLOUR,
    TRUE_COLOUR,
    Band,
    BandChoice,
    nearest_bands,
    parse_bands,
    parse_wavelengths,
)
from thonecls.io.raster.gdal import open_gdal
from thonecls.io.raster.source import RasterSource, find_bad_bands, match_bands, open_raster

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
