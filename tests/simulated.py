"""Made data of known truth: probabilities as a map has them, and easy images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from thonecls.images import Images

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


POSITIVE = (0, 2, 4, 6)  # classes of the images


def bright_and_dark(train: int = 120, test: int = 100, side: int = 8) -> Images:
    """Noisy images of ten classes, of which the positive are bright and the others dark."""
    rng = np.random.default_rng(0)

    def make(count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        labels = rng.permutation(np.arange(count) % 10).astype(np.uint8)
        level = np.where(np.isin(labels, POSITIVE), 165, 85)[:, None, None, None]
        return rng.normal(level, 60, (count, 1, side, side)).clip(0, 255).astype(np.uint8), labels

    names = {number: str(number) for number in range(10)}
    return Images("fashion-mnist", *make(train), *make(test), None, names)
