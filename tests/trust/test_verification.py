"""Points that are checked: how they are drawn, and what their answers tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thonecls.errors import ConfigError
from thonecls.trust.verification import STRATA, allocate, draw_points, stratify, verify

PIXELS = np.array([900, 300, 500, 8300, 0])


def test_estimates_are_those_of_a_stratified_sample() -> None:
    """By hand: the class is 0.5 of 900, all of 300 mapped pixels, 0.5 of 500 and 0 of 8300."""
    found = verify(
        np.array([0, 0, 1, 2, 2, 3, 3]),
        np.array([1, 0, 1, 1, 0, 0, 0.0]),
        PIXELS,
        rng=np.random.default_rng(0),
    )
    assert found.precision.value == pytest.approx((450 + 300) / 1200)
    assert found.recall.value == pytest.approx(750 / 1000)
    assert found.area.value == pytest.approx(1000 / 10_000)
    assert (found.asked, found.answered, found.present) == (7, 7, 3)
    for part in (found.precision, found.recall, found.area):
        assert part.low is not None
        assert part.high is not None
        assert 0 <= part.low <= part.value <= part.high <= 1


def test_points_without_answer_are_left_out_of_their_stratum() -> None:
    strata, present = [0, 0, 0, 1, 2, 3], [1, 1, np.nan, 0, 0, 0.0]
    with_gap = verify(np.array(strata), np.array(present), PIXELS, rng=np.random.default_rng(0))
    without = verify(
        np.delete(strata, 2), np.delete(present, 2), PIXELS, rng=np.random.default_rng(0)
    )
    assert with_gap.precision == without.precision
    assert (with_gap.asked, with_gap.answered) == (6, 5)


def test_a_stratum_without_answers_may_be_anything() -> None:
    found = verify(np.array([0, 0, 1]), np.ones(3), PIXELS, rng=np.random.default_rng(0))
    assert found.area.low is not None
    assert found.area.high is not None
    assert found.area.high - found.area.low > 0.7  # of the 8300 pixels nothing is known
    with pytest.raises(ConfigError, match="no point has an answer"):
        verify(np.array([0]), np.array([np.nan]), PIXELS, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("pixels", "shares"),
    [
        ([1500, 300, 400, 7800, 0], [0.95, 0.6, 0.2, 0.005, 0]),
        ([1000, 500, 500, 8000, 0], [0.85, 0.5, 0.3, 0.02, 0]),
        ([2000, 500, 500, 6500, 500], [0.99, 0.8, 0.4, 0.1, 0.2]),
    ],
)
def test_intervals_hold_the_truth_of_simulated_maps(pixels: list[int], shares: list[float]) -> None:
    """Sixty points, 300 draws; the levels that normal intervals have are 74 to 96 %."""
    rng, size, share = np.random.default_rng(1), np.array(pixels), np.array(shares)
    mapped = np.array([stratum.mapped for stratum in STRATA])
    hits = (size * share)[mapped].sum()
    truth = {
        "precision": hits / size[mapped].sum(),
        "recall": hits / (size * share).sum(),
        "area": (size * share).sum() / size.sum(),
    }
    counts = np.array(allocate(pixels, 60))
    strata = np.repeat(np.arange(5), counts)
    held = dict.fromkeys(truth, 0)
    for _ in range(300):
        present = (rng.random(60) < share[strata]).astype(float)
        found = verify(strata, present, size, rng=rng)
        for part in (found.precision, found.recall, found.area):
            held[part.name] += (part.low or 0) <= truth[part.name] <= (part.high or 0)
    assert all(count >= 272 for count in held.values()), held
    assert 279 <= np.mean(list(held.values())) <= 299


@given(st.lists(st.integers(0, 400), min_size=5, max_size=5), st.integers(1, 200))
def test_points_are_dealt_out_as_far_as_there_are_pixels(pixels: list[int], size: int) -> None:
    counts = allocate(pixels, size)
    assert sum(counts) == min(size, sum(pixels))
    assert all(count <= most for count, most in zip(counts, pixels, strict=True))
    if size >= 15:
        assert all(count >= min(3, most) for count, most in zip(counts, pixels, strict=True))


def test_points_are_random_pixels_of_their_strata() -> None:
    rng = np.random.default_rng(0)
    probability = rng.random((60, 50)).astype(np.float32)
    probability[0] = np.nan
    novelty = np.where(rng.random((60, 50)) < 0.2, 2, 0.5).astype(np.float32)
    strata = stratify(probability, probability > 0.5, 0.5, novelty)
    assert (strata[0] == -1).all()
    assert set(np.unique(strata)) == {-1, 0, 1, 2, 3, 4}
    drawn, pixels = draw_points(strata.ravel(), 60, rng)
    assert len(set(drawn.tolist())) == 60
    assert pixels.sum() == 59 * 50
    kinds = strata.ravel()[drawn]
    assert np.bincount(kinds, minlength=5).tolist() == allocate(pixels.tolist(), 60)
    # All pixels of a stratum come up alike.
    seen = np.zeros(strata.size)
    for seed in range(300):
        seen[draw_points(strata.ravel(), 60, np.random.default_rng(seed))[0]] += 1
    of_largest = seen[strata.ravel() == int(pixels.argmax())]
    assert of_largest.max() < 8 * of_largest.mean() + 8


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="'size' must be 1 or more"):
        allocate([5, 0, 0, 0, 0], 0)
