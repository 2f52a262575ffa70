"""Methods on scenes: from a scene and labels to a score map, or at once to a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.model import Crossfit
from thonecls.methods import networks
from thonecls.methods.catalogue import Method
from thonecls.methods.choice import FOLDS, choose
from thonecls.methods.spectral import SPECTRAL, ScoreMap
from thonecls.methods.spectral_model import SpectralModel, fit_spectral
from thonecls.metrics import find_degenerate
from thonecls.priors import ESTIMATORS, check_estimators, estimate_priors, usable
from thonecls.ratio.model import RatioModel, crossfit_ratio, fit_ratio
from thonecls.scene import BoolArray, Scene, Source, band_statistics, standardize
from thonecls.splits import Coverage, Labels

PriorChoice = float | Literal["km1", "km2", "bbe"] | None


def score_scene(
    method: Method,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    prior: PriorChoice = None,
    **options: Any,
) -> ScoreMap:
    """The score map of a scene by a method; one that is uninformative gives a warning."""
    if method.needs_prior:
        if prior is None and "config" in options:
            prior = options["config"].prior
        options["prior"] = resolve_prior(prior, scene, labels, seed)
    score = SCORERS.get(method.name) or partial(score_by_network, method)
    probability = score(scene, labels, seed, **options)
    message = find_degenerate(probability, labels.positive)
    if message:
        warnings.warn(message, stacklevel=3)
    return probability


def score_ratio(
    scene: Scene, labels: Labels, seed: int = 0, *, coverage: Coverage | None = None
) -> ScoreMap:
    """Fit the density ratio and score its scene."""
    return fit_ratio(scene, labels, seed=seed, coverage=coverage).score(scene)


def score_auto(
    scene: Scene, labels: Labels, seed: int = 0, *, coverage: Coverage | None = None
) -> ScoreMap:
    """Choose a method by labels left out, and score the scene with it."""
    positives = np.zeros(scene.shape, dtype=bool)
    positives.flat[labels.positive] = True
    model, _ = fit_at_once("auto", scene, positives, Known(seed=seed, coverage=coverage))
    return model.score(scene)


# What trains no network, called with scene, labels, seed and options.
SCORERS: dict[str, Callable[..., ScoreMap]] = {
    "density-ratio": score_ratio,
    "auto": score_auto,
    **SPECTRAL,
}


@dataclass(frozen=True, eq=False)
class Known:
    """What a model that trains no network is fitted with, beside scene and positives.

    negatives, answers: (H, W), as in `LabelInput`; folds: into which labels are left out, 0: none.
    """

    seed: int = 0
    unlabeled: int = 4000
    folds: int = 0
    coverage: Coverage | None = None
    negatives: BoolArray | None = None
    answers: BoolArray | None = None


def fit_at_once(
    method: str, source: Source, positives: BoolArray, known: Known
) -> tuple[RatioModel | SpectralModel, Crossfit | None]:
    """A model that is there in seconds, and labels by models without them where it gives them."""
    if method in SPECTRAL:
        model = fit_spectral(method, source, positives, seed=known.seed, unlabeled=known.unlabeled)
        return model, None
    choosing = method == "auto" and known.negatives is None  # others have no use for negatives
    ratio, left_out = crossfit_ratio(
        source,
        positives,
        seed=known.seed,
        coverage=known.coverage,
        negatives=known.negatives,
        answers=known.answers,
        folds=known.folds or (FOLDS if choosing else 0),
    )
    kept = left_out if known.folds else None
    if not choosing:
        return ratio, kept
    chosen = choose(
        ratio,
        source,
        positives,
        coverage=known.coverage,
        seed=known.seed,
        unlabeled=known.unlabeled,
    )
    return chosen, kept if chosen.training["choice"]["method"] == "density-ratio" else None


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


def score_by_network(
    method: Method,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    config: TrainConfig = FAST,
    prior: float | None = None,
    **change: Any,
) -> ScoreMap:
    """Train a network by a method and score its scene; `change`: single settings."""
    settings = method.configure(config, prior=prior, **change)
    generator = torch.Generator().manual_seed(seed)
    model = networks.train(method.name, scene, labels, config=settings, generator=generator)
    probability = model.score(scene, device=settings.device)
    # The model's own cut moves to 0.5; the order of the pixels stays.
    return np.interp(probability, [0, model.threshold, 1], [0, 0.5, 1]).astype(np.float32)
