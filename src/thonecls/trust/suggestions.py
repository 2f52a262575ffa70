"""Where a look is worth most: pixels that may be the class, far from labels, spread out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans

IntArray = NDArray[np.int64]

AWAY = 8.0  # pixels: nearer to a label, the answer is known
LIKELY = 0.25  # of the pixels far from labels, the likeliest, are looked at
ACROSS = 4.0  # the longer side of a scene, in units in which a component's deviation is `WEIGHT`
WEIGHT = 0.15
MOST = 20_000  # pixels that are put into groups


def suggest(
    probability: NDArray[Any],
    places: NDArray[Any],
    components: NDArray[Any],
    labels: NDArray[Any],
    size: int,
    rng: np.random.Generator,
) -> IntArray:
    """Numbers of pixels worth a look, at most `size`, of those that are given.

    probability: (n,), NaN on nodata; places: (n, 2) row and column; components: (n, k) of spectra,
    white; labels: (m, 2) row and column of labels, and of places that were answered before. Of the
    pixels far from all of these the likeliest quarter is put into groups by place, and a little
    by spectrum; of each group the likeliest pixel is taken. So every part of the scene is asked
    about where the class may be, and those far from labels most.
    """
    chosen = np.flatnonzero(np.isfinite(probability))
    if len(labels):
        away = np.asarray(cKDTree(labels).query(places[chosen])[0])
        far = chosen[away > AWAY]
        chosen = far if far.size >= size else chosen[np.argsort(-away, kind="stable")[:size]]
    likely = probability[chosen] >= np.quantile(probability[chosen], 1 - LIKELY)
    if likely.sum() >= size:
        chosen = chosen[likely]
    if chosen.size > MOST:
        chosen = np.sort(rng.choice(chosen, MOST, replace=False))
    if chosen.size <= size:
        return chosen
    longest = max(1.0, float(np.ptp(places, axis=0).max()))
    at = np.concatenate([places[chosen] / longest * ACROSS, components[chosen] * WEIGHT], axis=1)
    groups = KMeans(size, n_init=2, random_state=int(rng.integers(2**31))).fit(at).labels_
    best = [
        chosen[members[probability[chosen[members]].argmax()]]
        for members in (np.flatnonzero(groups == k) for k in range(size))
        if members.size
    ]
    return np.unique(np.array(best, dtype=np.int64))
