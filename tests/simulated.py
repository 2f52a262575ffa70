"""Worlds of known truth, for what is said about a map without negatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Scores = NDArray[np.float64]


def world(
    rng: np.random.Generator,
    *,
    prevalence: float = 0.1,
    labels: int = 100,
    pixels: int = 8000,
    apart: float = 4.0,
) -> tuple[Scores, Scores, NDArray[np.bool_]]:
    """Probabilities of labels and of pixels, calibrated, and which of the pixels are the class."""
    truth = rng.random(pixels) < prevalence
    log_odds = np.log(prevalence / (1 - prevalence))

    def score(of_class: NDArray[np.bool_]) -> Scores:
        x = rng.normal(np.where(of_class, apart / 2, -apart / 2))
        return np.asarray(expit(apart * x + log_odds))

    return score(np.ones(labels, dtype=bool)), score(truth), truth
