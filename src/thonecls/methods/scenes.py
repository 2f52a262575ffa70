"""Methods on scenes: from a scene and labels to a score map, or at once to a model."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.model import Crossfit
from thonecls.methods.choice import FOLDS, choose
from thonecls.methods.method import Method, Scored, Trial, load
from thonecls.methods.spectral import SPECTRAL, ScoreMap
from thonecls.methods.spectral_model import SpectralModel, fit_spectral
from thonecls.metrics import find_degenerate
from thonecls.priors import ESTIMATORS, check_estimators, estimate_priors, usable
from thonecls.ratio.model import RatioModel, crossfit_ratio, fit_ratio
from thonecls.scene import BoolArray, Scene, Source, band_statistics, standardize
from thonecls.splits import Coverage, Labels

QuickModel = RatioModel | SpectralModel
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
    probability: ScoreMap = load(method.score)(method, scene, labels, seed, **options)
    message = find_degenerate(probability, labels.positive)
    if message:
        warnings.warn(message, stacklevel=3)
    return probability


def score_ratio(
    _: Method,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    coverage: Coverage | None = None,
    config: TrainConfig | None = None,
) -> ScoreMap:
    """Fit the density ratio and score its scene; it has no use for settings."""
    return fit_ratio(scene, labels, seed=seed, coverage=coverage).score(scene)


def score_auto(
    method: Method,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    coverage: Coverage | None = None,
    config: TrainConfig | None = None,
) -> ScoreMap:
    """Choose a method by labels left out, and score the scene with it."""
    positives = np.zeros(scene.shape, dtype=bool)
    positives.flat[labels.positive] = True
    model, _ = method.fit(scene, positives, Known(seed=seed, coverage=coverage))
    return model.score(scene)


def score_spectra(
    method: Method,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    config: TrainConfig | None = None,
    **options: Any,
) -> ScoreMap:
    """The scores of a scene by a method on single spectra."""
    return SPECTRAL[method.name](scene, labels, seed, **options)


@dataclass(frozen=True, eq=False)
class Known:
    """What a model that learns at once is fitted with, beside scene and positives.

    negatives, answers: (H, W), as in `LabelInput`; folds: into which labels are left out, 0: none;
    prior: the share of the class, for a method that needs it.
    """

    seed: int = 0
    unlabeled: int = 4000
    folds: int = 0
    coverage: Coverage | None = None
    negatives: BoolArray | None = None
    answers: BoolArray | None = None
    prior: float | None = None


def fit_spectra(
    method: str, source: Source, positives: BoolArray, known: Known
) -> tuple[SpectralModel, None]:
    """A model on single spectra; it leaves no label out by itself."""
    model = fit_spectral(
        method,
        source,
        positives,
        seed=known.seed,
        unlabeled=known.unlabeled,
        prior=known.prior,
    )
    return model, None


def fit_density_ratio(
    _: str, source: Source, positives: BoolArray, known: Known
) -> tuple[RatioModel, Crossfit | None]:
    """The density ratio, and its labels left out where folds are asked for."""
    return _fit_ratio(source, positives, known, known.folds)


def _fit_ratio(
    source: Source, positives: BoolArray, known: Known, folds: int
) -> tuple[RatioModel, Crossfit | None]:
    return crossfit_ratio(
        source,
        positives,
        seed=known.seed,
        coverage=known.coverage,
        negatives=known.negatives,
        answers=known.answers,
        folds=folds,
    )


def fit_best(
    method: str, source: Source, positives: BoolArray, known: Known
) -> tuple[QuickModel, Crossfit | None]:
    """The density ratio, or a method on single spectra that finds labels left out better."""
    if known.negatives is not None:  # others have no use for them
        return fit_density_ratio(method, source, positives, known)
    ratio, left_out = _fit_ratio(source, positives, known, known.folds or FOLDS)
    kept = left_out if known.folds else None
    chosen = choose(
        ratio,
        source,
        positives,
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
    found = measure_network(method, Trial(scene, labels, seed, settings))
    # The model's own cut moves to 0.5; the order of the pixels stays.
    cut = [0, found.threshold, 1]
    return np.interp(found.probability, cut, [0, 0.5, 1]).astype(np.float32)


def measure_network(method: Method, trial: Trial) -> Scored:
    """Train a network and score its scene."""
    generator = torch.Generator().manual_seed(trial.seed)
    model = method.train(
        trial.data, trial.labels, config=trial.config, generator=generator, control=trial.control
    )
    probability = model.score(trial.data, device=trial.config.device)
    seconds, history = (model.training[name] for name in ("seconds", "history"))
    return Scored(probability, seconds, model.threshold, history, trial.config)


def measure_at_once(method: Method, trial: Trial) -> Scored:
    """The score map of a method that learns at once; nothing of it needs to be kept."""
    options = {"prior": trial.config.prior} if method.needs_prior else {}
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a map that says nothing is named in the record
        probability = method(trial.data, trial.labels, trial.seed, **options)
    return Scored(probability, round(time.perf_counter() - began, 3), config=trial.config)
