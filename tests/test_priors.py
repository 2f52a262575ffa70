"""Class priors against known mixtures, an exact solver, and the reference's grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from thonecls import priors
from thonecls.datasets import indian_pines
from thonecls.errors import ConfigError, LabelError
from thonecls.methods import label_spectra
from thonecls.priors import ESTIMATORS, Prior, bbe, estimate_bbe, estimate_priors, km, usable
from thonecls.splits import paper_split

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


@pytest.mark.learning
@pytest.mark.parametrize("prior", [0.1, 0.3, 0.6])
def test_every_estimator_recovers_the_share_of_a_blob(prior: float, seed: int) -> None:
    positive, unlabeled = blobs(prior, seed=seed)
    km1, km2 = km(positive, unlabeled, rng=rng(), bootstraps=0)
    assert km1.value == pytest.approx(prior, abs=0.06)
    # KM2 leans down for common classes, also when the distances are exact: 0.53 for 0.6.
    assert km2.value == pytest.approx(prior, abs=0.08)
    assert estimate_bbe(positive, unlabeled, rng=rng()).value == pytest.approx(prior, abs=0.04)


def test_the_catalogue_gives_an_interval_around_each_estimate() -> None:
    positive, unlabeled = blobs(0.3, unlabeled=100, positives=30)
    found = estimate_priors(list(ESTIMATORS), positive, unlabeled)
    assert [prior.name for prior in found] == list(ESTIMATORS)
    for prior in found:
        assert 0 < prior.low < prior.value < prior.high < 1
        assert prior.high - prior.low < 0.4


def test_an_estimate_is_the_same_alone_and_beside_others() -> None:
    positive, unlabeled = blobs(0.3, unlabeled=100, positives=30)
    beside = estimate_priors(["bbe", "km2", "km1"], positive, unlabeled, seed=3)
    for prior in beside:
        assert estimate_priors([prior.name], positive, unlabeled, seed=3) == [prior]
        (plain,) = estimate_priors([prior.name], positive, unlabeled, seed=3, interval=False)
        assert plain.value == prior.value
        assert np.isnan([plain.low, plain.high]).all()


def test_what_two_estimators_share_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arrays: FloatArray, **options: Any) -> tuple[Prior, Prior]:
        calls.append(options)
        return km(*arrays, **options)

    for name in ("km1", "km2"):
        monkeypatch.setitem(ESTIMATORS, name, counted)
    estimate_priors(["km1", "km2"], *blobs(0.3, unlabeled=50, positives=20), interval=False)
    assert len(calls) == 1


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_an_estimate_that_trains_nothing_is_refused_by_name(value: float) -> None:
    with pytest.raises(ConfigError, match="bbe estimates a class prior of"):
        usable(Prior("bbe", value, np.nan, np.nan))


def test_an_unknown_estimator_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="called 'guess': take one of km1"):
        estimate_priors(["km1", "guess"], *blobs(0.3, unlabeled=50, positives=20))


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


N_U, N_P = 420, 80


def whole_kernel(points: FloatArray) -> FloatArray:
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    return np.asarray(np.exp(-priors._best_gamma(points, (N_U, N_P)) * squared))


def test_distances_agree_with_an_exact_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    positive, unlabeled = noisy_spectra(N_U, N_P, 0.25)
    points = np.concatenate([unlabeled, positive])
    kernel = whole_kernel(points)
    means = np.full(N_U, 1 / N_U), np.full(N_P, 1 / N_P)
    cut = priors._Curve(priors._factorize(points, (N_U, N_P)), *means)
    monkeypatch.setattr(priors, "RANK", N_U + N_P)
    full = priors._Curve(priors._factorize(points, (N_U, N_P)), *means)
    assert cut.kernel.factor.shape[1] < full.kernel.factor.shape[1] == N_U + N_P
    for at in (1.0, 1.05, 1.2, 1.4, 2.0, 8.0):
        exact = exact_distance(kernel, full.target(at, 1 - at))
        assert full.distance(at) == pytest.approx(exact, abs=2e-5)
        assert cut.distance(at) == pytest.approx(exact, abs=1e-3)


def real_spectra() -> tuple[FloatArray, FloatArray]:
    """Corn-notill of Indian Pines, by the paper's split."""
    data = indian_pines()
    positive, unlabeled = label_spectra(data.scene, paper_split(data.truth, 2).labels)
    return positive[:N_P].astype(np.float64), unlabeled[:N_U].astype(np.float64)


@pytest.mark.parametrize("spectra", [lambda: noisy_spectra(N_U, N_P, 0.25), real_spectra])
def test_estimates_agree_with_an_exact_solver(
    spectra: Callable[[], tuple[FloatArray, FloatArray]],
) -> None:
    positive, unlabeled = spectra()
    ours = km(positive, unlabeled, rng=rng(), bootstraps=0)
    exact = exact_km(whole_kernel(np.concatenate([unlabeled, positive])), N_U, N_P)
    assert [prior.value for prior in ours] == pytest.approx(exact, abs=0.02)


def test_the_order_of_the_spectra_does_not_matter() -> None:
    positive, unlabeled = noisy_spectra(150, 40, 0.3)
    shuffled = rng().permutation(positive), rng().permutation(unlabeled)
    first = km(positive, unlabeled, rng=rng(), bootstraps=0)
    second = km(*shuffled, rng=rng(), bootstraps=0)
    assert [p.value for p in first] == pytest.approx([p.value for p in second], abs=1e-4)


def test_the_same_generator_gives_the_same_estimate() -> None:
    positive, unlabeled = blobs(0.3, unlabeled=60, positives=20)
    assert km(positive, unlabeled, rng=rng(), bootstraps=2) == km(
        positive, unlabeled, rng=rng(), bootstraps=2
    )
    first = estimate_bbe(positive, unlabeled, rng=rng(), bootstraps=5)
    assert first == estimate_bbe(positive, unlabeled, rng=rng(), bootstraps=5)


def test_many_unlabeled_spectra_are_subsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priors, "MOST_UNLABELED", 100)
    positive, unlabeled = blobs(0.3, unlabeled=5000, positives=30)
    assert len(priors._checked(positive, unlabeled, rng())[1]) == 100
    assert 0 < km(positive, unlabeled, rng=rng(), bootstraps=0)[1].value < 0.6


def test_bbe_by_hand() -> None:
    # Three quarters of the positives score above all but 10 % of the unlabeled, the others lie
    # among the rest: 0.1 / 0.75, and the bound makes it the best of the thresholds.
    positive = np.concatenate([np.full(750, 3.0), np.full(250, 1.0)])
    unlabeled = np.concatenate([np.full(1000, 3.0), np.full(8000, 1.0), np.full(1000, 0.0)])
    assert bbe(positive, unlabeled) == pytest.approx(0.1 / 0.75)
    # Fewer positives widen the bound: at q_p = 0.02 it no longer beats q_p = 1.
    positive = np.concatenate([np.full(2, 3.0), np.full(98, 1.0)])
    unlabeled = np.concatenate([np.full(1, 3.0), np.full(499, 1.0), np.full(500, 0.0)])
    assert bbe(positive, unlabeled) == pytest.approx(0.5)


scores = st.lists(st.integers(0, 8).map(float), min_size=1, max_size=30).map(np.array)


@given(positive=scores, unlabeled=scores)
def test_bbe_is_the_best_of_all_thresholds(positive: FloatArray, unlabeled: FloatArray) -> None:
    slack = sum(np.sqrt(np.log(40) / 2 / len(side)) for side in (positive, unlabeled))
    bounds, ratios = [], []
    for c in np.arange(-0.5, 9, 0.5):
        q_p, q_u = (positive >= c).mean(), (unlabeled >= c).mean()
        if q_p > 0:
            ratios.append(q_u / q_p)
            bounds.append(q_u / q_p + 1.01 * slack / q_p)
    best = np.array(ratios)[np.array(bounds) < min(bounds) + 1e-9]
    ratio = bbe(positive, unlabeled)
    assert 0 <= ratio <= 1
    assert np.abs(best - ratio).min() < 1e-9
    # Only the order of the scores counts.
    assert bbe(np.exp(positive), np.exp(unlabeled)) == ratio


NAN = np.full((20, 3), np.nan)
GOOD = np.random.default_rng(1).normal(size=(20, 3))


@pytest.mark.parametrize("estimate", [km, estimate_bbe])
@pytest.mark.parametrize(
    ("positive", "unlabeled", "rule"),
    [
        (GOOD[:1], GOOD, "at least . positive spectra. Got 1 instead"),
        (GOOD, GOOD[:9], "at least 10 unlabeled spectra. Got 9 instead"),
        (NAN, GOOD, "positive spectra hold NaN"),
        (GOOD, NAN, "unlabeled spectra hold NaN"),
        (GOOD[:, :2], GOOD, "positive spectra have 2 bands, unlabeled 3"),
        (GOOD[0], GOOD, r"Got shape \(3,\) instead"),
        (GOOD * 0, GOOD * 0, "identical"),
    ],
)
def test_spectra_that_tell_nothing_are_refused(
    estimate: Callable[..., object], positive: FloatArray, unlabeled: FloatArray, rule: str
) -> None:
    with pytest.raises(LabelError, match=rule):
        estimate(positive, unlabeled, rng=rng())
