"""Scores against the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from thonecls.errors import LabelError
from thonecls.metrics import evaluate, evaluate_pu

PROBABILITY = np.array([[0.9, 0.6, 0.4], [0.5, 0.2, 0.7]])
TRUTH = np.array([[True, False, True], [True, False, True]])


def test_scores_by_hand() -> None:
    """Above 0.5: three pixels, two of them right, of four true ones."""
    scores = evaluate(PROBABILITY, TRUTH)
    assert scores.precision == pytest.approx(200 / 3)
    assert scores.recall == pytest.approx(50)
    assert scores.f1 == pytest.approx(400 / 7)
    assert scores.auc == pytest.approx(100 * 6 / 8)
    assert (scores.pixels, scores.positives) == (6, 4)


def test_the_threshold_is_strict() -> None:
    assert evaluate(PROBABILITY, TRUTH, threshold=0.49).recall == pytest.approx(75)


def test_only_tested_pixels_count() -> None:
    test = np.array([[True, False, False], [False, True, True]])
    scores = evaluate(PROBABILITY, TRUTH, test)
    assert (scores.f1, scores.pixels, scores.positives) == (100, 3, 2)


def test_nodata_is_not_tested() -> None:
    probability = PROBABILITY.copy()
    probability[0, 1] = np.nan
    assert evaluate(probability, TRUTH).precision == 100


def test_empty_maps_and_single_classes_do_not_divide_by_zero() -> None:
    empty = evaluate(np.zeros((2, 3)), TRUTH)
    assert (empty.precision, empty.recall, empty.f1) == (0, 0, 0)
    assert math.isnan(evaluate(PROBABILITY, np.ones((2, 3), dtype=bool)).auc)


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(LabelError, match="no pixel is left"):
        evaluate(PROBABILITY, TRUTH, np.zeros((2, 3), dtype=bool))
    with pytest.raises(LabelError, match="the map has shape"):
        evaluate(PROBABILITY, TRUTH.T)


def test_accuracy_counts_both_classes() -> None:
    assert evaluate(PROBABILITY, TRUTH).accuracy == pytest.approx(
        100 * ((PROBABILITY > 0.5) == TRUTH).mean()
    )


def test_scores_without_negatives() -> None:
    rng = np.random.default_rng(0)
    negative, prior = rng.normal(0.3, 0.2, 80_000), 0.2
    positive = rng.normal(0.7, 0.2, 20_000)
    held, unlabeled = rng.normal(0.7, 0.2, 20_000), np.concatenate([positive, negative])
    scores = evaluate_pu(held, unlabeled)
    recall, share = (held > 0.5).mean(), (unlabeled > 0.5).mean()
    assert scores.puf == pytest.approx(recall**2 / share)
    precision = (positive > 0.5).sum() / (unlabeled > 0.5).sum()
    assert scores.puf == pytest.approx(precision * recall / prior, rel=0.02)
    auc = roc_auc_score(np.repeat([1, 0], [20_000, 80_000]), unlabeled)
    assert scores.pauc / 100 == pytest.approx(prior / 2 + (1 - prior) * auc, abs=0.005)


def test_an_empty_map_has_no_infinite_score() -> None:
    assert evaluate_pu(np.array([0.9]), np.zeros(50)).puf == 50
    assert evaluate_pu(np.array([0.9, np.nan]), np.array([0.1, np.nan])).recall == 100
    with pytest.raises(LabelError, match="at least one each"):
        evaluate_pu(np.array([np.nan]), np.zeros(3))
