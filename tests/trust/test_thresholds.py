"""Thresholds from unlabeled scores alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, expit, logit

from thonecls.trust.thresholds import CUTS, _information, mean_threshold, tmi_threshold


def plain_information(z: np.ndarray, below: int, k: int = 3) -> float:
    """Ross (2014), every score with every other."""
    side = np.arange(len(z)) >= below
    total = digamma(len(z)) + digamma(k)
    for i in range(len(z)):
        away = np.abs(z - z[i])
        reach = np.sort(away[side == side[i]])[k]
        total -= (digamma((side == side[i]).sum()) + digamma((away <= reach).sum() - 1)) / len(z)
    return float(total)


@pytest.mark.parametrize("below", [4, 10, 20, 27, 36])
def test_information_is_that_of_the_plain_estimator(below: int) -> None:
    z = np.sort(np.random.default_rng(0).normal(size=40))
    assert _information(z, below) == pytest.approx(plain_information(z, below), abs=1e-12)


def test_the_threshold_lies_in_the_gap_of_two_halves() -> None:
    rng = np.random.default_rng(1)
    low, high = rng.normal(-3, 0.3, 200), rng.normal(3, 0.3, 200)
    found = tmi_threshold(expit(np.concatenate([low, high])))
    assert low.max() < logit(found) < high.min()


def test_it_stays_near_the_median_however_rare_the_class() -> None:
    rng = np.random.default_rng(2)
    scores = expit(np.concatenate([rng.normal(-3, 1, 1900), rng.normal(5, 1, 100)]))
    assert 0.35 < (scores > tmi_threshold(scores)).mean() < 0.65


def test_the_mean_marks_as_many_as_are_expected() -> None:
    scores = np.random.default_rng(3).beta(0.2, 1.8, 5000)
    assert (scores > mean_threshold(scores)).mean() == pytest.approx(scores.mean(), abs=2e-3)


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize(
    "scores", [np.zeros(50), np.ones(50), np.full(3, 0.4), np.r_[np.zeros(500), np.ones(20)]]
)
def test_scores_that_say_little_still_have_a_threshold(name: str, scores: np.ndarray) -> None:
    assert 0 <= CUTS[name](scores) <= 1
