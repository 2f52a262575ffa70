"""Where labels lie, what other methods say, and where a look is worth most."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thonecls.places
from thonecls.places import spectral_components
from thonecls.splits import Folds, judging_folds, place_folds
from thonecls.trust import compare, distances, find_places, lattice, unlike_labels
from thonecls.trust.suggestions import AWAY, suggest


def test_quarters_and_halves_without_labels_are_named() -> None:
    labels = np.array([10 * 100 + 10, 20 * 100 + 80])  # upper left and upper right
    found = find_places(labels, (100, 100))
    assert found.empty == ("lower left", "lower right")
    assert found.half == "lower half"
    assert find_places(labels[:1], (100, 100), north_up=True).empty == (
        *("north-east", "south-west", "south-east"),
    )
    assert find_places(labels[:1], (100, 100), north_up=True).half in ("south half", "east half")
    assert find_places(np.array([1010, 8080, 1080, 8010]), (100, 100)).empty == ()


@pytest.mark.parametrize("many", [2000, 3])
def test_distances_are_those_to_the_nearest_label(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thonecls.places, "MANY", many)
    rng = np.random.default_rng(0)
    labels = rng.choice(60 * 50, 7, replace=False)
    rows, columns = lattice((60, 50), 12)
    found = distances(labels, (60, 50), rows, columns)
    at = np.stack(np.divmod(labels, 50), axis=1)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            plain = np.linalg.norm(at - [row, column], axis=1).min()
            assert found[i, j] == pytest.approx(plain)


def test_spectra_unlike_every_label_are_told() -> None:
    rng = np.random.default_rng(0)
    labels, same = rng.normal(size=(60, 12)), rng.normal(size=(200, 12))
    other = rng.normal(size=(100, 12)) + 12
    seen = spectral_components(np.concatenate([labels, same, other]))
    found = unlike_labels(seen[:60], seen[60:])
    assert found[:200].mean() < 0.3
    assert found[200:].mean() > 0.6
    assert not unlike_labels(seen[:2], seen[60:]).any()


def test_an_opinion_that_is_the_same_map_agrees_fully() -> None:
    scores = np.array([0.9, 0.2, 0.7, np.nan])
    assert compare("sam", scores, scores > 0.5).agreement == 1
    assert compare("sam", np.zeros(4), np.zeros(4, dtype=bool)).agreement == 1
    assert compare("sam", scores, scores < 0.5).agreement == 0


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_folds_of_places_lie_apart(seed: int, folds: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(20, 120)), int(rng.integers(20, 120)))
    pixels = np.unique(rng.choice(shape[0] * shape[1], 40))
    fold, apart = place_folds(pixels, shape, folds)
    assert set(fold.tolist()) == set(range(len(apart)))
    assert len(apart) <= folds
    at = np.stack(np.divmod(pixels, shape[1]), axis=1)
    for k, kept in enumerate(apart):
        assert not (kept & (fold == k)).any()
        for i in np.flatnonzero(fold == k):
            near = np.abs(at - at[i]).max(axis=1) <= 8
            assert not (kept & near).any()
    blocks = at // 16
    for i in np.arange(len(pixels)):  # labels of one place are never parted
        assert (fold[(blocks == blocks[i]).all(axis=1)] == fold[i]).all()


def test_labels_all_over_are_dealt_out_at_random_and_others_by_place() -> None:
    rng = np.random.default_rng(0)
    everywhere = np.sort(rng.choice(100 * 100, 90, replace=False))
    found = judging_folds(everywhere, (100, 100), 3, "all", rng)
    assert isinstance(found, Folds)
    assert np.bincount(found.fold).tolist() == [30, 30, 30]
    assert (found.apart == np.stack([found.fold != k for k in range(3)])).all()
    by_place = judging_folds(everywhere, (100, 100), 3, "part", rng)
    assert (by_place.apart.sum(axis=1) < 90 - np.bincount(by_place.fold)).any()


def test_suggestions_lie_far_from_labels_where_the_class_may_be() -> None:
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(np.arange(80 * 60), 60)
    places = np.stack([rows, columns], axis=1).astype(float)
    probability = np.where(rows > 50, 0.6, 0.1) + 0.1 * rng.random(80 * 60)
    probability[:300] = np.nan
    labels = np.array([[10.0, 10.0], [60.0, 10.0]])
    found = suggest(probability, places, rng.normal(size=(4800, 3)), labels, 12, rng)
    assert len(found) == 12
    assert np.isfinite(probability[found]).all()
    away = np.linalg.norm(places[found][:, None] - labels, axis=2).min(axis=1)
    assert (away > AWAY).all()
    assert (rows[found] > 50).mean() > 0.7
    assert np.ptp(columns[found]) > 35  # spread over the part where it may be


@pytest.mark.parametrize("size", [1, 5, 50])
def test_few_pixels_give_few_suggestions(size: int) -> None:
    probability = np.array([0.2, np.nan, 0.9, 0.4])
    places = np.stack([np.arange(4.0), np.zeros(4)], axis=1)
    rng = np.random.default_rng(0)
    found = suggest(probability, places, np.zeros((4, 2)), np.array([[0.0, 0.0]]), size, rng)
    assert len(found) <= min(size, 3)
    assert np.isfinite(probability[found]).all()
