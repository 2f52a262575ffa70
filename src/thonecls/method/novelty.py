"""Spectra unlike the others: pixels where a model guesses, and labels that may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.scene import FloatArray

EXPLAINED = 0.999  # of the variance that the components kept stand for
FEWEST, MOST = 2, 12  # components
USUAL = 0.999  # of the training scene's pixels lie within distance 1
ODD = 5.0  # robust standard deviations from the other labels


@dataclass(frozen=True, eq=False)
class Novelty:
    """How far a spectrum lies from those of a scene, as a multiple of what is usual there.

    Spectra are z-scored. axes: (k, C) orthonormal directions of most variance; centre: (C,);
    scales: (k + 1,) standard deviations along them and of what they leave; usual: the distance
    that 99.9 % of the scene's own pixels stay within.
    """

    axes: FloatArray
    centre: FloatArray
    scales: FloatArray
    usual: float

    def score(self, cube: FloatArray) -> FloatArray:
        """Distances of a z-scored (C, H, W) cube: below 1 usual, above 1 new to the model."""
        result = np.empty(cube.shape[1:], dtype=np.float32)
        for row in range(cube.shape[1]):  # the cube may be large, and copies of it too much
            result[row] = self._distance(cube[:, row]) / self.usual
        return result

    def _distance(self, spectra: FloatArray) -> FloatArray:
        """Of (C, n) spectra."""
        away = spectra - self.centre[:, None]
        along = self.axes @ away
        left = np.maximum((away**2).sum(axis=0) - (along**2).sum(axis=0), 0)
        squares = ((along / self.scales[:-1, None]) ** 2).sum(axis=0) + left / self.scales[-1] ** 2
        return np.asarray(np.sqrt(squares / len(self.scales)), dtype=np.float32)


def fit_novelty(spectra: NDArray[np.float32]) -> Novelty:
    """From (n, C) z-scored spectra of the scene's pixels.

    >>> rng = np.random.default_rng(0)
    >>> novelty = fit_novelty(rng.normal(size=(500, 6)).astype(np.float32))
    >>> bool(novelty.score(np.full((6, 1, 1), 20, dtype=np.float32))[0, 0] > 3)
    True
    """
    centre = spectra.mean(axis=0, dtype=np.float64)
    _, singular, axes = np.linalg.svd(spectra - centre, full_matrices=False)
    variances = singular**2 / max(1, len(spectra) - 1)
    share = np.cumsum(variances) / max(float(variances.sum()), 1e-30)
    kept = int(np.clip(np.searchsorted(share, EXPLAINED) + 1, FEWEST, min(MOST, len(axes))))
    floor = 1e-6 * max(float(variances.sum()), 1e-12)  # of a direction in which nothing varies
    left = max(float(variances[kept:].sum()), 100 * floor)  # less is lost in rounding
    scales = np.sqrt([*np.maximum(variances[:kept], floor), left])
    novelty = Novelty(
        axes[:kept].astype(np.float32), centre.astype(np.float32), scales.astype(np.float32), 1.0
    )
    usual = float(np.quantile(novelty._distance(spectra.T), USUAL))
    return Novelty(novelty.axes, novelty.centre, novelty.scales, max(usual, 1e-6))


def find_odd(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Indices of the labels whose spectra are unlike the others', the oddest first.

    labels: (n, C). A label's distance is the root mean square over bands of its difference from
    the median spectrum, in robust deviations of the band; odd ones are far beyond the usual.
    """
    if len(labels) < 5:
        return np.empty(0, dtype=np.int64)
    away = labels - np.median(labels, axis=0)
    usual = 1.4826 * np.median(np.abs(away), axis=0)
    distance = np.sqrt(np.square(away / np.where(usual > 0, usual, 1)).mean(axis=1))
    middle = np.median(distance)
    limit = middle + ODD * 1.4826 * np.median(np.abs(distance - middle))
    ranked = np.argsort(-distance, kind="stable")
    return np.asarray(ranked[distance[ranked] > max(limit, 2 * middle)])
