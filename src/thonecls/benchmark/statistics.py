"""Statistics of methods over several classes: intervals, ranks, Friedman, Nemenyi, Wilcoxon, Holm.

As recommended by Demšar 2006 (JMLR 7), for scores in which more is better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A mean with its interval by Student's t; low and high are None for a single value."""

    mean: float
    low: float | None
    high: float | None
    n: int


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean of values, such as of several seeds, and how sure it is.

    >>> found = mean_interval([90.0, 92.0, 94.0])
    >>> found.mean, round(found.low, 3), round(found.high, 3)
    (92.0, 87.032, 96.968)
    """
    found = np.asarray(values, dtype=np.float64)
    mean, n = float(found.mean()), found.size
    if n < 2:
        return Interval(mean, None, None, n)
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * found.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def average_ranks(scores: ArrayLike) -> FloatArray:
    """The mean rank of each method, 1 for the best; ties share their ranks.

    scores: (classes, methods).

    >>> average_ranks([[0.9, 0.8, 0.7], [0.9, 0.9, 0.1]]).tolist()
    [1.25, 1.75, 3.0]
    """
    return np.asarray(stats.rankdata(-np.asarray(scores), axis=1).mean(axis=0))


@dataclass(frozen=True)
class Friedman:
    """Whether methods differ at all.

    chi2: of k - 1 degrees of freedom; f, p: the less conservative statistic of Iman and Davenport,
    and how likely one as large is among equal methods.
    """

    chi2: float
    f: float
    p: float


def friedman(scores: ArrayLike) -> Friedman:
    """Friedman's test of scores (classes, methods), two or more of each."""
    found = np.asarray(scores, dtype=np.float64)
    n, k = found.shape
    ranks = average_ranks(found)
    chi2 = 12 * n / (k * (k + 1)) * (float((ranks**2).sum()) - k * (k + 1) ** 2 / 4)
    left = n * (k - 1) - chi2
    # The same order in every class: no spread is left to compare with.
    f = np.inf if left <= 1e-9 * n * k else (n - 1) * chi2 / left
    return Friedman(float(chi2), float(f), float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))))


def critical_difference(methods: int, classes: int, level: float = LEVEL) -> float:
    """By how much mean ranks must differ for two methods to differ (Nemenyi).

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = float(stats.studentized_range.ppf(level, methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * classes)))


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """The groups that a diagram joins by a bar: first and last of ranks in ascending order.

    A group differs by less than the critical difference from end to end, and is part of no other.

    >>> cliques([1.0, 1.5, 2.5, 4.0], 1.25)
    [(0, 1), (1, 2)]
    """
    last = [
        max(j for j, rank in enumerate(ranks) if rank - ranks[i] < difference)
        for i in range(len(ranks))
    ]
    groups = [(i, j) for i, j in enumerate(last) if j > i]
    return groups[:1] + [new for old, new in pairwise(groups) if new[1] > old[1]]


@dataclass(frozen=True)
class Comparison:
    """A method against another, class by class.

    difference: its mean score less the other's; wins, ties, losses: classes; p: of Wilcoxon's
    signed-rank test, two-sided, None where nothing differs; adjusted: after Holm's correction.
    """

    difference: float
    wins: int
    ties: int
    losses: int
    p: float | None
    adjusted: float | None = None

    @property
    def classes(self) -> int:
        return self.wins + self.ties + self.losses


def compare(ours: ArrayLike, theirs: ArrayLike) -> Comparison:
    """Wilcoxon's signed-rank test of two methods on the same classes.

    Ranks of classes in which they are equal are split evenly between both.
    """
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    p = None
    if wins or losses:
        p = float(stats.wilcoxon(difference, zero_method="zsplit").pvalue)
    return Comparison(float(difference.mean()), wins, difference.size - wins - losses, losses, p)


def holm(p: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's step-down correction of p-values; None, where nothing was tested, stays.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": None})
    {'a': 0.03, 'b': 0.06, 'c': 0.06, 'd': None}
    """
    known = sorted((value, name) for name, value in p.items() if value is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p)
    least = 0.0
    for number, (value, name) in enumerate(known):
        least = max(least, min(1.0, (len(known) - number) * value))
        adjusted[name] = least
    return adjusted
