"""What the methods of the catalogue do: train a network, fit a ratio, or judge single spectra."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.method.config import FAST, TrainConfig
from thonecls.methods import deep
from thonecls.methods.spectral import SPECTRAL, ScoreMap
from thonecls.metrics import find_degenerate
from thonecls.priors import ESTIMATORS, check_estimators, estimate_priors, usable
from thonecls.ratio.model import fit_ratio
from thonecls.scene import Scene, band_statistics, standardize
from thonecls.splits import Coverage, Labels

__all__ = [
    "PriorChoice",
    "ScoreMap",
    "find_degenerate",
    "label_spectra",
    "procedure",
    "resolve_prior",
    "score_deep",
]

PriorChoice = float | Literal["km1", "km2", "bbe"] | None


def procedure(method: str) -> Callable[..., ScoreMap]:
    """What gives the score map of a method: called with scene, labels, seed and options."""
    if method == "density-ratio":
        return score_ratio
    return SPECTRAL[method] if method in SPECTRAL else partial(score_deep, method)


def score_ratio(
    scene: Scene, labels: Labels, seed: int = 0, *, coverage: Coverage | None = None
) -> ScoreMap:
    """Fit the density ratio and score its scene."""
    return fit_ratio(scene, labels, seed=seed, coverage=coverage).score(scene)


def resolve_prior(prior: PriorChoice, scene: Scene, labels: Labels, seed: int = 0) -> float:
    """A prior as a number: given as such, or estimated from the spectra of the labels.

    prior: from 0 to 1, or the name of an estimator.
    """
    if prior is None:
        raise ConfigError(
            "this method needs the class prior, the share of the class among all pixels: give a "
            f"number, or one of {', '.join(ESTIMATORS)} to have it estimated"
        )
    if not isinstance(prior, str):
        return float(prior)
    check_estimators([prior])
    spectra = label_spectra(scene, labels)
    return usable(*estimate_priors([prior], *spectra, seed=seed, interval=False))


def label_spectra(scene: Scene, labels: Labels) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The z-scored spectra of positive and of unlabeled pixels: (n_p, C) and (n_u, C)."""
    statistics = band_statistics(scene)
    positive, unlabeled = (
        standardize(scene.pick(pixels), statistics)[:, 0].T
        for pixels in (labels.positive, labels.unlabeled)
    )
    return positive, unlabeled


def score_deep(
    method: str,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    config: TrainConfig = FAST,
    prior: float | None = None,
    **change: Any,
) -> ScoreMap:
    """Train a network by a method and score its scene; `change`: single settings."""
    settings = deep.settings(method, config, prior=prior, **change)
    generator = torch.Generator().manual_seed(seed)
    model = deep.train(method, scene, labels, config=settings, generator=generator)
    probability = model.score(scene, device=settings.device)
    # The model's own cut moves to 0.5; the order of the pixels stays.
    return np.interp(probability, [0, model.threshold, 1], [0, 0.5, 1]).astype(np.float32)
