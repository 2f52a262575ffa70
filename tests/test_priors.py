"""Class priors against known mixtures, an exact solver, and the reference's grid."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from thonecls import priors
from thonecls.priors import ESTIMATORS, estimate_bbe, km

FloatArray = NDArray[np.float64]


def blobs(
    prior: float, *, unlabeled: int = 800, positives: int = 100, bands: int = 12, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Two Gaussian classes, 5 standard deviations apart: labelled positives, and a mixture."""
    rng = np.random.default_rng(seed)
    shift = 5 / np.sqrt(bands)
    of_class = np.arange(unlabeled) < round(prior * unlabeled)
    mixture = rng.normal(size=(unlabeled, bands)) + shift * of_class[:, None]
    return rng.normal(size=(positives, bands)) + shift, mixture


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.6])
def test_every_estimator_recovers_the_share_of_a_blob(prior: float) -> None:
    positive, unlabeled = blobs(prior)
    km1, km2 = km(positive, unlabeled, rng=rng(), bootstraps=0)
    # The kernel estimates lean: KM1 up for rare classes, both down for common ones.
    assert km1.value == pytest.approx(prior, abs=0.06)
    assert km2.value == pytest.approx(prior, abs=0.06)
    assert estimate_bbe(positive, unlabeled, rng=rng()).value == pytest.approx(prior, abs=0.03)


def test_the_catalogue_gives_an_interval_around_each_estimate() -> None:
    positive, unlabeled = blobs(0.3, unlabeled=200, positives=50)
    for name, estimate in ESTIMATORS.items():
        prior = estimate(positive, unlabeled, rng())
        assert prior.name == name
        assert 0 < prior.low < prior.value < prior.high < 1
        assert prior.high - prior.low < 0.4


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_grid_option_lies_on_the_grid_of_the_reference(share: float) -> None:
    positive, unlabeled = blobs(share, unlabeled=150, positives=40)
    for prior in km(positive, unlabeled, rng=rng(), grid=True, bootstraps=0):
        odd = (1 / (1 - prior.value) - 1) * 512 / 7
        assert odd == pytest.approx(round(odd), abs=1e-9)
        assert round(odd) % 2 == 1


def exact_distance(kernel: FloatArray, target: FloatArray) -> float:
    """From the target to the hull, by a plain interior-point method on the whole kernel matrix."""
    n = len(target)
    v, dual, nu = np.full(n, 1 / n), np.full(n, 1.0), 0.0
    while v @ dual > 1e-12:
        goal = 0.1 * (v @ dual) / n
        system = cho_factor(kernel + np.diag(dual / v))
        residual = kernel @ (v - target) - nu - goal / v
        unforced, forced = cho_solve(system, -residual), cho_solve(system, np.ones(n))
        more = (1 - v.sum() - unforced.sum()) / forced.sum()
        step = unforced + more * forced
        dual_step = (goal - dual * step) / v - dual
        ratio = np.concatenate([-step / v, -dual_step / dual]).max()
        size = min(1.0, 0.99 / ratio)
        v, dual, nu = v + size * step, dual + size * dual_step, nu + size * more
    return float(np.sqrt((target - v) @ kernel @ (target - v)))


def gaussian(points: FloatArray, width: float) -> FloatArray:
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squared / (2 * width**2 * np.median(squared))))


def exact_km(kernel: FloatArray, n_u: int, n_p: int) -> tuple[float, float]:
    """KM1 and KM2 as section 5 of the paper and the authors' code have them, to 0.01 in lambda."""
    mean_u = np.concatenate([np.full(n_u, 1 / n_u), np.zeros(n_p)])
    mean_p = np.concatenate([np.zeros(n_u), np.full(n_p, 1 / n_p)])
    known: dict[float, float] = {}

    def distance(at: float) -> float:
        if at not in known:
            known[at] = exact_distance(kernel, at * mean_u + (1 - at) * mean_p)
        return known[at]

    apart = np.sqrt((mean_u - mean_p) @ kernel @ (mean_u - mean_p))
    values = []
    for threshold in (
        1 / np.sqrt(min(n_u, n_p)),
        0.8 * (distance(1.05) - distance(1.0)) / 0.05 + 0.2 * apart,
    ):
        left, right = 1.0, 8.0
        while right - left > 0.014:
            at = (left + right) / 2
            steep = (distance(at + 0.02) - distance(at)) / 0.02 > threshold
            left, right = (left, at) if steep else (at, right)
        values.append(1 - 2 / (left + right))
    return values[0], values[1]


def noisy_spectra(n_u: int, n_p: int, share: float) -> tuple[FloatArray, FloatArray]:
    """Smooth spectra of three classes plus noise in every band, so that no low rank is exact."""
    rng = np.random.default_rng(4)
    bands = np.linspace(0, 1, 40)
    shapes = np.exp(-((bands - np.linspace(0, 1, 8)[:, None]) ** 2) / 0.02)
    centers = rng.normal(size=(3, 8))
    of_class = np.where(np.arange(n_u) < share * n_u, 0, 1 + np.arange(n_u) % 2)
    of_class = np.concatenate([np.zeros(n_p, dtype=int), of_class])
    mixed = centers[of_class] + 0.4 * rng.normal(size=(n_p + n_u, 8))
    spectra = mixed @ shapes + 0.2 * rng.normal(size=(n_p + n_u, len(bands)))
    return spectra[:n_p], spectra[n_p:]


def test_estimates_agree_with_an_exact_solver() -> None:
    positive, unlabeled = noisy_spectra(420, 80, 0.25)
    points = np.concatenate([unlabeled, positive])
    exponent = -np.log(priors._best_gamma(points, (420, 80)))
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    kernel = np.exp(-squared * np.exp(-exponent))
    ours = km(positive, unlabeled, rng=rng(), bootstraps=0)
    exact = exact_km(kernel, 420, 80)
    assert ours[0].value == pytest.approx(exact[0], abs=0.02)
    assert ours[1].value == pytest.approx(exact[1], abs=0.02)
