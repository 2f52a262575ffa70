"""Which bands of a scene stand for those of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from thonecls.errors import ModelError
from thonecls.raster.source import RasterSource

FARTHEST = 10.0  # nm by which a matched band may be off at most


def match_bands(
    wavelengths: Sequence[float] | None,
    source: RasterSource,
    *,
    bands: int | None = None,
    tolerance: float | None = None,
) -> tuple[tuple[int, ...], str]:
    """The scene's bands that a model's bands stand for, for `RasterSource.take`, and a message.

    wavelengths: the model's, in nm, or None with the number of its `bands`. Each gets its own
    band of the scene, the nearest within the tolerance: half the spacing there, at most 10 nm.
    """
    count = len(wavelengths) if wavelengths is not None else bands or 0
    counts = f"the model has {count} bands, the scene {source.bands}"
    if wavelengths is None or source.wavelengths is None:
        if count == source.bands:
            every = tuple(range(count))
            return every, f"{counts}; matched by position, for wavelengths are unknown"
        whose = "the model's" if wavelengths is None else "the scene's"
        raise ModelError(
            f"{counts}, and {whose} wavelengths are unknown: give the same bands in the same order "
            "(choose them by number), or files that name their wavelengths"
        )
    wanted, found = np.asarray(wavelengths), np.asarray(source.wavelengths)
    away = np.abs(wanted[:, None] - found)
    limit = _tolerances(found) if tolerance is None else np.full(len(found), tolerance)
    cost = np.where(away <= limit, away**2, 1e9)  # squares: neighbours do not swap partners
    rows, chosen = scipy.optimize.linear_sum_assignment(cost)
    fits = cost[rows, chosen] < 1e9
    unmatched = np.delete(wanted, rows[fits])
    if len(unmatched):
        few = ", ".join(f"{w:.1f}" for w in unmatched[:4]) + (", ..." if len(unmatched) > 4 else "")
        raise ModelError(
            f"{counts}; {len(unmatched)} of the model's have none of their own within "
            f"{np.median(limit):.1f} nm: {few} nm. Use a scene with these bands, or raise the "
            "tolerance"
        )
    return tuple(chosen.tolist()), f"{counts}; matched within {away[rows, chosen].max():.1f} nm"


def _tolerances(wavelengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the spacing around each band; the median of a few gaps, for detectors may overlap."""
    order = np.argsort(wavelengths)
    gaps = np.diff(wavelengths[order])
    limits = np.full(len(wavelengths), FARTHEST)
    for i, band in enumerate(order):
        if len(near := gaps[max(0, i - 2) : i + 2]):
            limits[band] = min(FARTHEST, float(np.median(near)) / 2)
    return limits
