"""Bands of a scene for a model, by wavelength; and bands better left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from thonecls.errors import ModelError
from thonecls.io.raster.files import sample_windows
from thonecls.io.raster.source import RasterSource

FARTHEST = 10.0  # nm by which a matched band may be off at most
FILLED = 30.0  # nm to the neighbours, on both sides, that a missing band is interpolated from

Pick = tuple[int, int, float]  # two bands of a scene, from 0, and the weight of the second


def match_bands(
    wavelengths: Sequence[float] | None,
    source: RasterSource,
    *,
    bands: int | None = None,
    tolerance: float | None = None,
    whose: str = "the model",
) -> tuple[tuple[Pick, ...], str]:
    """The scene's bands that stand for a model's, for `RasterSource.blend`, and a message.

    wavelengths: the model's, in nm, or None with the number of its `bands`. Each gets its own
    band of the scene, the nearest within the tolerance: half the spacing there, at most 10 nm. One
    that has none is interpolated, if the scene has bands within 30 nm on both sides of it. whose:
    in messages, where they are not a model's.
    """
    count = len(wavelengths) if wavelengths is not None else bands or 0
    counts = f"{whose} has {count} bands, the scene {source.bands}"
    if wavelengths is None or source.wavelengths is None:
        if count == source.bands:
            every = tuple((band, band, 0.0) for band in range(count))
            return every, f"{counts}; matched by position, for wavelengths are unknown"
        unknown = f"{whose}'s" if wavelengths is None else "the scene's"
        raise ModelError(
            f"{counts}, and {unknown} wavelengths are unknown: give the same bands in the same "
            "order (choose them by number), or files that name their wavelengths"
        )
    wanted, found = np.asarray(wavelengths), np.asarray(source.wavelengths)
    away = np.abs(wanted[:, None] - found)
    limit = _tolerances(found) if tolerance is None else np.full(len(found), tolerance)
    cost = np.where(away <= limit, away**2, 1e9)  # squares: neighbours do not swap partners
    rows, chosen = scipy.optimize.linear_sum_assignment(cost)
    fits = cost[rows, chosen] < 1e9
    picks = {
        int(row): (int(band), int(band), 0.0)
        for row, band in zip(rows[fits], chosen[fits], strict=True)
    }
    filled = {i: _between(wanted[i], found) for i in range(count) if i not in picks}
    lost = [wanted[i] for i, pick in filled.items() if pick is None]
    if lost or not picks:
        few = ", ".join(f"{w:.1f}" for w in lost[:4]) + (", ..." if len(lost) > 4 else "")
        raise ModelError(
            f"{counts}; {len(lost)} of {whose}'s have none of their own within "
            f"{np.median(limit):.1f} nm, nor bands within {FILLED:.0f} nm on both sides to be "
            f"interpolated from: {few} nm. Use a scene with these bands"
        )
    picks |= {i: pick for i, pick in filled.items() if pick is not None}
    words = f"{counts}; matched within {away[rows[fits], chosen[fits]].max():.1f} nm"
    if filled:
        named = ", ".join(f"{wanted[i]:.1f}" for i in list(filled)[:4])
        more = f" and {len(filled) - 4} more" if len(filled) > 4 else ""
        words += f"; {named}{more} nm interpolated from their neighbours"
    return tuple(picks[i] for i in range(count)), words


def _between(wavelength: float, found: NDArray[np.float64]) -> Pick | None:
    """The nearest bands below and above a wavelength, both near enough, and the second's weight."""
    below, above = np.flatnonzero(found <= wavelength), np.flatnonzero(found > wavelength)
    if not (below.size and above.size):
        return None
    low, high = int(below[found[below].argmax()]), int(above[found[above].argmin()])
    if max(wavelength - found[low], found[high] - wavelength) > FILLED:
        return None
    return low, high, float((wavelength - found[low]) / (found[high] - found[low]))


def _tolerances(wavelengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the spacing around each band; the median of a few gaps, for detectors may overlap."""
    order = np.argsort(wavelengths)
    gaps = np.diff(wavelengths[order])
    limits = np.full(len(wavelengths), FARTHEST)
    for i, band in enumerate(order):
        if len(near := gaps[max(0, i - 2) : i + 2]):
            limits[band] = min(FARTHEST, float(np.median(near)) / 2)
    return limits


WATER = ((1350.0, 1430.0), (1800.0, 1950.0))  # nm; where water vapour leaves next to no light
NOISE = 2450.0  # nm; beyond it sensors see mostly noise


def find_bad_bands(source: RasterSource) -> dict[int, str]:
    """Bands better left out, by number, with the reason; see `RasterSource.without`.

    Those without light by their wavelength, and those that are constant or nodata throughout a
    sample of windows.
    """
    bad = {band.number: why for band in source.layers if (why := _without_light(band.wavelength))}
    least, most = np.full((2, source.bands), np.nan)
    for rows, columns in sample_windows(source.shape):
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
