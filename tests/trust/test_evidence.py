"""Numbers without negatives: closed forms, curves, thresholds and the agreement of seeds."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest

from simulated import Scores, world
from thonecls.errors import ConfigError
from thonecls.metrics import evaluate_pu
from thonecls.trust import (
    Curve,
    auc_from_pu,
    choose_threshold,
    count_votes,
    rates,
    stability,
    threshold_curve,
    wilson,
)

fraction = st.floats(0, 1)
shares = st.floats(0.001, 0.999)


# Closed forms


def test_rates_of_a_known_prevalence() -> None:
    """rec = 0.9, q = 0.2: Lee and Liu's criterion 4.05; with π = 0.18 the rest by hand."""
    held_out = np.repeat([0.9, 0.1], [9, 1])
    unlabeled = np.repeat([0.8, 0.2], [200, 800])
    curve = threshold_curve(held_out, unlabeled, prevalence=0.18)
    at = curve.thresholds.index(0.5)
    assert (curve.tpr[at], curve.ppp[at]) == pytest.approx((0.9, 0.2))
    assert curve.puf[at] == pytest.approx(4.05)
    found = rates(recall=0.9, share=0.2, prevalence=0.18)
    assert found.precision == pytest.approx(0.81)
    assert found.f1 == pytest.approx(2 * 0.18 * 0.9 / 0.38)
    assert found.fpr == pytest.approx((0.2 - 0.162) / 0.82)
    assert curve.precision is not None
    assert curve.f1 is not None
    assert (curve.precision[at], curve.f1[at]) == pytest.approx((found.precision, found.f1))


def test_auc_against_true_negatives() -> None:
    assert auc_from_pu(0.80, 0.2) == pytest.approx(0.875)


def test_a_precision_above_one_is_clipped_and_flagged() -> None:
    found = rates(recall=0.9, share=0.1, prevalence=0.2)
    assert found.clipped
    assert (found.precision, found.fpr) == (1, 0)
    assert not rates(recall=0.9, share=0.2, prevalence=0.18).clipped


def test_an_empty_map_has_no_rates_rather_than_an_error() -> None:
    found = rates(recall=0, share=0, prevalence=0.1)
    assert (found.precision, found.f1, found.fpr, found.clipped) == (0, 0, 0, False)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # Newcombe 1998, and R's prop.test(correct = FALSE)
        (8, 10, 0.4902, 0.9433),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (10, 10, 0.7225, 1.0),
    ],
)
def test_wilson_against_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 500), fraction, st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys_and_holds_the_proportion(n: int, part: float, level: float) -> None:
    successes = round(part * n)
    low, high = wilson(successes, n, level)
    known = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert (low, high) == pytest.approx((known.low, known.high), abs=1e-9)
    assert 0 <= low <= successes / n <= high <= 1


def test_wilson_of_nothing_is_everything() -> None:
    assert wilson(0, 0) == (0, 1)


# The curve and its threshold


@given(
    st.lists(fraction, min_size=1, max_size=40),
    st.lists(fraction, min_size=1, max_size=60),
    shares,
)
def test_the_curve_falls_and_agrees_with_the_scores(
    held_out: list[float], unlabeled: list[float], prevalence: float
) -> None:
    positive, rest = np.array(held_out), np.array(unlabeled)
    curve = threshold_curve(positive, rest, prevalence=prevalence)
    assert 200 <= len(curve.thresholds) <= 403
    assert (np.diff(curve.tpr) <= 0).all()
    assert (np.diff(curve.ppp) <= 0).all()
    assert curve.precision is not None
    assert curve.f1 is not None
    for at in range(0, len(curve.thresholds), 20):
        scores = evaluate_pu(positive, rest, threshold=curve.thresholds[at])
        assert (100 * curve.tpr[at], 100 * curve.ppp[at]) == pytest.approx(
            (scores.recall, scores.share), abs=1e-9
        )
        known = rates(curve.tpr[at], curve.ppp[at], prevalence)
        assert (curve.precision[at], curve.f1[at]) == pytest.approx((known.precision, known.f1))
    assert 0 <= min(curve.precision) <= max(curve.precision) <= 1


def test_single_precision_ties_are_compared_as_in_the_map() -> None:
    """0.8 in float32 is above 0.8 in float64, yet `probability > 0.8` does not map it."""
    held_out = np.array([0.8, 0.9], dtype=np.float32)
    curve = threshold_curve(held_out, held_out)
    at = curve.thresholds.index(0.8)
    assert curve.tpr[at] == (held_out > 0.8).mean() == 0.5


def test_the_floor_keeps_puf_from_tiny_maps() -> None:
    """One held-out label above all unlabeled would else win with a recall of 5 %."""
    rng = np.random.default_rng(0)
    held_out = np.append(rng.uniform(0.5, 0.9, 19), 0.99)
    unlabeled = np.concatenate([rng.uniform(0.5, 0.9, 1000), rng.uniform(0, 0.45, 9000)])
    curve = threshold_curve(held_out, unlabeled)
    assert curve.puf[curve.thresholds.index(0.95)] == pytest.approx(0.05**2 / 0.001)
    assert choose_threshold(curve).recall > 0.9
    assert threshold_curve(held_out, unlabeled, floor=0.01).floor == 0.01


def simulated_curve() -> tuple[Curve, Scores, NDArray[np.bool_]]:
    held_out, unlabeled, truth = world(np.random.default_rng(2), labels=400)
    return threshold_curve(held_out, unlabeled, prevalence=0.1), unlabeled, truth


def test_a_threshold_by_the_prevalence_maps_as_much() -> None:
    curve, unlabeled, _ = simulated_curve()
    choice = choose_threshold(curve, 0.1, how="prevalence")
    assert choice.rule == "prevalence"
    assert (unlabeled > choice.threshold).mean() == pytest.approx(0.1, rel=0.03)
    assert "estimated to cover (10 %)" in choice.reason


def test_every_rule_comes_near_the_best_f1() -> None:
    curve, unlabeled, truth = simulated_curve()

    def f1(threshold: float) -> float:
        mapped = unlabeled > threshold
        return float(2 * (mapped & truth).sum() / (mapped.sum() + truth.sum()))

    best = max(f1(threshold) for threshold in curve.thresholds)
    for choice in (
        choose_threshold(curve),
        choose_threshold(curve, 0.1, "puf"),
        choose_threshold(curve, 0.1, "prevalence"),
        choose_threshold(curve, 0.1),
    ):
        assert f1(choice.threshold) > 0.97 * best
        assert "%" in choice.reason


def test_auto_takes_the_better_of_the_two_rules() -> None:
    curve, _, _ = simulated_curve()
    by_puf, by_prevalence = (choose_threshold(curve, 0.3, how) for how in ("puf", "prevalence"))
    auto = choose_threshold(curve, 0.3)
    f1 = [2 * 0.3 * c.recall / (0.3 + c.share) for c in (by_puf, by_prevalence, auto)]
    assert f1[2] == max(f1)
    assert "estimated F1 is better" in auto.reason
    assert choose_threshold(curve).rule == "puf"


def test_where_classes_lie_far_apart_one_half_stays() -> None:
    held_out, unlabeled = np.full(50, 0.95), np.repeat([0.95, 0.05], [100, 900])
    curve = threshold_curve(held_out, unlabeled)
    assert choose_threshold(curve, 0.1).threshold == 0.5
    assert choose_threshold(curve, 0.1, "puf").threshold == 0.5


def test_rules_that_cannot_work_are_refused() -> None:
    curve, _, _ = simulated_curve()
    with pytest.raises(ConfigError, match="needs one"):
        choose_threshold(curve, how="prevalence")
    with pytest.raises(ConfigError, match="must be auto"):
        choose_threshold(curve, 0.1, "otsu")  # type: ignore[arg-type]


# Seeds


def test_agreement_of_maps_by_hand() -> None:
    maps = np.array([[0.9, 0.8, 0.1, 0.1], [0.9, 0.2, 0.6, 0.1], [0.9, 0.9, 0.1, np.nan]])
    found = stability(count_votes(maps))
    assert found is not None
    assert found.seeds == 3
    assert found.iou == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert found.contested == pytest.approx(2 / 3)  # the last pixel is nodata in one map
    assert found.deviation == pytest.approx(maps[:, :3].std(axis=0, ddof=1).mean())


@given(st.integers(2, 4), st.integers(1, 30), st.integers(0, 30), st.integers(0, 99))
def test_votes_of_windows_add_up(seeds: int, n: int, cut: int, seed: int) -> None:
    maps = np.random.default_rng(seed).random((seeds, n))
    whole, parts = count_votes(maps), count_votes(maps[:, :cut]) + count_votes(maps[:, cut:])
    assert whole.together == parts.together
    first, second = stability(whole), stability(parts)
    assert first is not None
    assert second is not None
    assert asdict(first) == pytest.approx(asdict(second))
    assert 0 <= first.iou <= 1


def test_a_single_seed_has_no_stability_and_equal_maps_agree() -> None:
    maps = np.random.default_rng(0).random((1, 50))
    assert stability(count_votes(maps)) is None
    same = stability(count_votes(np.repeat(maps, 3, axis=0)))
    assert same is not None
    assert (same.iou, same.contested) == (1, 0)
    empty = stability(count_votes(np.zeros((2, 9))))
    assert empty is not None
    assert empty.iou == 1
