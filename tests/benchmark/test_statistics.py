"""Statistics of methods, against the worked example of Demšar 2006 (JMLR 7, tables 2, 5 and 6)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from thonecls.benchmark.statistics import (
    average_ranks,
    cliques,
    compare,
    critical_difference,
    friedman,
    holm,
    mean_interval,
)

# AUC of C4.5, with m, with cf and with both tuned, on 14 data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],  # printed alike, and ranked 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_mean_ranks_are_the_published_ones() -> None:
    assert average_ranks(DEMSAR).round(3).tolist() == [3.143, 2.000, 2.893, 1.964]


def test_friedman_is_the_published_one() -> None:
    found = friedman(DEMSAR)
    assert (round(found.chi2, 2), round(found.f, 2)) == (9.28, 3.69)
    assert found.p < 0.05 < stats.f.sf(2.0, 3, 39)


def test_methods_in_the_same_order_everywhere_surely_differ() -> None:
    found = friedman([[3.0, 2.0, 1.0]] * 5)
    assert found.chi2 == pytest.approx(10.0)
    assert (found.f, found.p) == (np.inf, 0.0)


@pytest.mark.parametrize(
    ("methods", "level", "q"),
    [(2, 0.95, 1.960), (4, 0.95, 2.569), (10, 0.95, 3.164), (4, 0.90, 2.291), (10, 0.90, 2.920)],
)
def test_critical_values_are_those_of_the_table(methods: int, level: float, q: float) -> None:
    scale = np.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_difference(methods, 14, level) == pytest.approx(q * scale, abs=1e-3)


def test_wilcoxon_is_the_published_one() -> None:
    found = compare(DEMSAR[:, 1], DEMSAR[:, 0])
    assert (found.wins, found.ties, found.losses, found.classes) == (10, 2, 2, 14)
    difference = (DEMSAR[:, 1] - DEMSAR[:, 0]).round(3)
    exact = stats.wilcoxon(difference, zero_method="zsplit")
    assert exact.statistic == 12.0  # R- of the paper; R+ is 93
    assert found.p is not None
    assert found.p < 0.05
    assert found.difference == pytest.approx(difference.mean())


def test_equal_methods_are_not_tested() -> None:
    found = compare([1.0, 2.0], [1.0, 2.0])
    assert (found.p, found.ties, found.difference) == (None, 2, 0.0)


def test_an_interval_is_that_of_students_t() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = mean_interval(values)
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    assert found.low == pytest.approx(float(low))
    assert found.high == pytest.approx(float(high))
    alone = mean_interval([7.0])
    assert (alone.mean, alone.low, alone.high, alone.n) == (7.0, None, None, 1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_lies_between_raw_and_bonferroni(values: list[float]) -> None:
    raw: dict[str, float | None] = {str(number): value for number, value in enumerate(values)}
    adjusted = holm(raw)
    order = sorted(raw, key=lambda name: (raw[name], name))
    found = [adjusted[name] for name in order]
    assert found == sorted(found, key=lambda value: value or 0.0)
    for name, value in raw.items():
        assert value is not None
        new = adjusted[name]
        assert new is not None
        assert value <= new <= 1.0
    assert found[0] == pytest.approx(min(1.0, len(raw) * min(values)))  # Bonferroni's
    assert found[-1] == max(x for x in found if x is not None)


def test_bars_join_what_does_not_differ() -> None:
    assert cliques([1.0, 2.0, 3.0], 5.0) == [(0, 2)]
    assert cliques([1.0, 3.0, 5.0], 1.0) == []
    assert cliques([1.0, 1.2, 3.0, 3.1, 3.9], 1.0) == [(0, 1), (2, 4)]
