"""Bands better left out: those without light, and dead ones."""

from __future__ import annotations

import numpy as np

from thonecls.raster.source import RasterSource

WATER = ((1350.0, 1430.0), (1800.0, 1950.0))  # nm; where water vapour leaves next to no light
NOISE = 2450.0  # nm; beyond it sensors see mostly noise


def find_bad_bands(source: RasterSource) -> dict[int, str]:
    """Bands better left out, by number, with the reason; see `RasterSource.without`.

    Those without light by their wavelength, and those that are constant or nodata throughout a
    sample of windows.
    """
    bad = {band.number: why for band in source.layers if (why := _without_light(band.wavelength))}
    least, most = np.full((2, source.bands), np.nan)
    for rows, columns in _sample(source.shape):
        raw, missing = source.missing(rows, columns)
        for i in range(source.bands):
            if (values := raw[i][~missing[i]]).size:
                least[i] = np.fmin(least[i], values.min())
                most[i] = np.fmax(most[i], values.max())
    if np.isnan(least).all():  # nothing but nodata was looked at: that says nothing of a band
        return bad
    for band, low, high in zip(source.layers, least, most, strict=True):
        if np.isnan(low):
            bad[band.number] = "nodata wherever it was looked at"
        elif low == high:
            bad[band.number] = f"constant: {low:g} wherever it was looked at"
    return dict(sorted(bad.items()))


def _without_light(wavelength: float | None) -> str | None:
    if wavelength is None or wavelength <= NOISE:
        for low, high in WATER:
            if low <= (wavelength or 0) <= high:
                return f"absorbed by water vapour ({low:g}-{high:g} nm)"
        return None
    return f"mostly noise (over {NOISE:g} nm)"


def _sample(shape: tuple[int, int], count: int = 4, side: int = 64) -> list[tuple[slice, slice]]:
    """Windows spread evenly over a scene; they cover it where it is small."""
    starts = [np.unique(np.linspace(0, max(0, n - side), count, dtype=int)) for n in shape]
    rows, columns = (
        [slice(int(at), min(int(at) + side, n)) for at in part]
        for part, n in zip(starts, shape, strict=True)
    )
    return [(r, c) for r in rows for c in columns]
