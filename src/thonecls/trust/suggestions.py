"""Where a look is worth most: pixels that may be the class, unlike what is labelled, spread out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LOW, HIGH = 0.15, 0.97  # probabilities between which a pixel may be the class, and may be not
NEARBY = 0.3  # of the candidates, the nearest to labels, that are not worth a look
ACROSS = 4.0  # the longer side of a scene, in units in which a component's deviation is `WEIGHT`
WEIGHT = 0.3
MOST = 8000  # candidates that are looked at


def suggest(
    probability: NDArray[Any],
    threshold: float,
    places: NDArray[Any],
    components: NDArray[Any],
    labels: NDArray[np.bool_],
    size: int,
    rng: np.random.Generator,
) -> IntArray:
    """Numbers of pixels worth a look, at most `size`, of those that are given.

    probability: (n,), NaN on nodata; places: (n, 2) row and column; components: (n, k), white;
    labels: (n,), which are labelled. Candidates are pixels about whose class the map is in doubt.
    Those far from labels, in place and spectrum, are put into groups; the middle of each is taken,
    so that an answer speaks for many.
    """
    longest = max(1.0, float(np.ptp(places, axis=0).max()))
    at = np.concatenate([places / longest * ACROSS, components * WEIGHT], axis=1)
    # The threshold need not be 0.5: doubt is counted from it to both sides.
    moved = np.where(
        probability > threshold,
        0.5 + 0.5 * (probability - threshold) / max(1 - threshold, 1e-6),
        0.5 * probability / max(threshold, 1e-6),
    )
    free = np.isfinite(probability) & ~labels
    chosen = np.flatnonzero(free & (moved > LOW) & (moved < HIGH))
    if chosen.size < size:  # a map without doubt: what is most like the class, mapped or not
        order = np.argsort(-np.where(free, probability, -1), kind="stable")
        chosen = order[: min(5 * size, int(free.sum()))]
    if chosen.size > MOST:
        chosen = np.sort(rng.choice(chosen, MOST, replace=False))
    if labels.any() and chosen.size > 2 * size:
        away = np.asarray(cKDTree(at[labels]).query(at[chosen])[0])
        chosen = chosen[away >= np.quantile(away, NEARBY)]
    if chosen.size <= size:
        return chosen
    groups = KMeans(size, n_init=2, random_state=int(rng.integers(2**31))).fit(at[chosen])
    away = np.linalg.norm(at[chosen] - groups.cluster_centers_[groups.labels_], axis=1)
    middles = [
        chosen[members[away[members].argmin()]]
        for members in (np.flatnonzero(groups.labels_ == k) for k in range(size))
        if members.size
    ]
    return np.sort(np.array(middles, dtype=np.int64))
