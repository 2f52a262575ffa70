"""What probabilities of held-out labels, several seeds and other methods tell about a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from thonecls.priors import LEVELS, Prior, bbe

FloatArray = NDArray[np.float64]

LEVEL = 0.95
BOOTSTRAPS = 300
BOUND = "share-by-recall"  # of the estimates of prevalence the one that is only a bound
MOST_UNLABELED = 50_000  # more are subsampled in the bootstrap, where labels are what is scarce


@dataclass(frozen=True)
class Estimate:
    """A number from 0 to 1 with its interval at a level of confidence, where there is one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    level: float = LEVEL


def wilson(successes: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a proportion; 0 to 1 where nothing was tried.

    n need not be whole: trials that tell much the same count for less.

    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if n == 0:
        return 0.0, 1.0
    z2 = float(ndtri((1 + level) / 2)) ** 2
    center = successes + z2 / 2
    half = np.sqrt(z2 * (successes * (n - successes) / n + z2 / 4))
    low, high = (center - half) / (n + z2), (center + half) / (n + z2)
    # Rounding must not leave 0 outside the interval of no success at all, nor 1 of nothing else.
    return float(low) if successes else 0.0, float(high) if successes < n else 1.0


def estimate_recall(
    held_out: NDArray[Any], threshold: float = 0.5, *, places: int | None = None
) -> Estimate:
    """The share of held-out positives that is mapped.

    places: how many places they come from. Labels of one place tell much the same: all together
    count for the geometric mean of their number and that of the places; else as independent.
    """
    share = float((held_out > threshold).mean())
    count = float(held_out.size)
    if places is not None:
        count = min(count, float(np.sqrt(count * places)))
    return Estimate("recall", share, *wilson(share * count, count))


@dataclass(frozen=True)
class Rates:
    """What a prevalence implies; `clipped` where it implies more hits than pixels are mapped."""

    precision: float
    f1: float
    fpr: float
    clipped: bool


def rates(recall: float, share: float, prevalence: float) -> Rates:
    """Precision π rec / q, F1 2 π rec / (π + q) and false alarm rate (q - π rec) / (1 - π).

    >>> r = rates(recall=0.9, share=0.2, prevalence=0.18)
    >>> round(r.precision, 4), round(r.f1, 4), round(r.fpr, 4), r.clipped
    (0.81, 0.8526, 0.0463, False)
    """
    numbers = (np.asarray(number, dtype=np.float64) for number in (recall, share, prevalence))
    precision, f1, fpr = (float(value) for value in all_rates(*numbers))
    return Rates(precision, f1, fpr, clipped=prevalence * recall > share)


def all_rates(
    recall: FloatArray, share: FloatArray, prevalence: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Precision, F1 and false alarm rate; empty denominators give 0."""
    hits = np.minimum(prevalence * recall, share)
    precision = hits / np.where(share > 0, share, 1)
    f1 = 2 * hits / np.where(prevalence + share > 0, prevalence + share, 1)
    fpr = (share - hits) / np.where(prevalence < 1, 1 - prevalence, 1)
    return precision, f1, np.minimum(fpr, 1)


def auc_from_pu(pauc: float, prevalence: float) -> float:
    """AUC against true negatives, from that against the unlabeled: (AUC_PU - π/2) / (1 - π).

    >>> round(auc_from_pu(0.80, 0.2), 4)
    0.875
    """
    return float(np.clip((pauc - prevalence / 2) / max(1 - prevalence, 1e-12), 0, 1))


@dataclass(frozen=True)
class Prevalence:
    """Several estimates, the consensus, and the lowest and highest of them.

    The median leaves out mapped share / recall: that one takes every mapped pixel for right, so
    it is only the most that can be. In the consensus no estimate counts for more than it;
    clipped: the median is more.
    """

    value: float
    median: float
    low: float
    high: float
    estimates: tuple[Estimate, ...]
    clipped: bool


@dataclass(frozen=True, eq=False)
class Resamples:
    """Bootstrap replicates, each (n,): recall, share and the estimates of prevalence by name."""

    recall: FloatArray
    share: FloatArray
    estimates: dict[str, FloatArray]


def resample(
    held_out: NDArray[Any] | None,
    unlabeled: NDArray[Any],
    *,
    rng: np.random.Generator,
    threshold: float = 0.5,
    bootstraps: int = BOOTSTRAPS,
    calibrated: bool = True,
) -> Resamples:
    """Draw labels and unlabeled pixels again and again, and estimate anew from each draw."""
    if unlabeled.size > MOST_UNLABELED:
        unlabeled = rng.choice(unlabeled, MOST_UNLABELED, replace=False)
    drawn: list[tuple[float, float, dict[str, float]]] = []
    for _ in range(bootstraps):
        positive = None if held_out is None else rng.choice(held_out, held_out.size)
        rest = rng.choice(unlabeled, unlabeled.size)
        recall = np.nan if positive is None else float((positive > threshold).mean())
        share = float((rest > threshold).mean())
        drawn.append((recall, share, _estimates(positive, rest, threshold, calibrated)))
    names = list(_estimates(held_out, unlabeled, threshold, calibrated))
    return Resamples(
        np.array([recall for recall, _, _ in drawn]),
        np.array([share for _, share, _ in drawn]),
        {name: np.array([found.get(name, np.nan) for *_, found in drawn]) for name in names},
    )


def _estimates(
    held_out: NDArray[Any] | None, unlabeled: NDArray[Any], threshold: float, calibrated: bool
) -> dict[str, float]:
    """The prevalence from scores, by name.

    Best bin and mapped share / recall can only be too high, but for chance: they count false
    alarms in.
    """
    found = {"mean-probability": float(unlabeled.mean(dtype=np.float64))}
    if held_out is None:
        return found
    if not calibrated:
        found.clear()
    found["best-bin"] = min(1.0, bbe(held_out, unlabeled))
    recall = float((held_out > threshold).mean())
    if recall > 0:
        found[BOUND] = min(1.0, float((unlabeled > threshold).mean()) / recall)
    return found


def estimate_prevalence(
    held_out: NDArray[Any] | None,
    unlabeled: NDArray[Any],
    resamples: Resamples,
    *,
    threshold: float = 0.5,
    given: Sequence[Prior] = (),
    calibrated: bool = True,
) -> Prevalence:
    """How much of the unlabeled is the class, by every means there is.

    From scores: BBE of held-out against unlabeled, mean probability, and mapped share / recall;
    given: estimates from spectra, such as KM2, with their own 90 % intervals. calibrated: whether
    probabilities can be taken at their word; else their mean is not asked.
    """
    estimates = [
        _with_interval(name, value, resamples.estimates[name])
        for name, value in _estimates(held_out, unlabeled, threshold, calibrated).items()
    ]
    estimates += [_of_spectra(prior) for prior in given]
    values = [estimate.value for estimate in estimates]
    most = next((e.value for e in estimates if e.name == BOUND), 1.0)
    others = [estimate.value for estimate in estimates if estimate.name != BOUND]
    median = float(np.median(others))
    return Prevalence(
        float(np.median(np.minimum(others, most))),
        median,
        min(values),
        max(values),
        tuple(estimates),
        clipped=median > most,
    )


def _of_spectra(prior: Prior) -> Estimate:
    """A prior with its own 90 % interval, if it has one."""
    low, high = float(prior.low), float(prior.high)
    known = np.isfinite(low) and np.isfinite(high)
    return Estimate(
        f"{prior.name}-of-spectra",
        float(prior.value),
        low if known else None,
        high if known else None,
        level=(LEVELS[1] - LEVELS[0]) / 100,
    )


def _with_interval(name: str, value: float, moved: FloatArray) -> Estimate:
    """An estimate with the percentiles of its replicates, which are made to hold it."""
    moved = moved[np.isfinite(moved)]
    if moved.size == 0:
        return Estimate(name, value)
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(moved, (tail, 100 - tail)).tolist()
    return Estimate(name, value, min(low, value), max(high, value))


def estimate_rates(
    recall: float,
    share: float,
    prevalence: Prevalence,
    resamples: Resamples,
    *,
    rng: np.random.Generator,
) -> tuple[Estimate, Estimate, Estimate]:
    """Precision, F1 and false alarm rate, for the consensus on the prevalence.

    The intervals hold the chance in labels and pixels, and the choice among the estimates: each
    replicate takes one of them, but not the bound, for which every map is right.
    """
    point = rates(recall, share, prevalence.value)
    usable = [estimate for estimate in prevalence.estimates if estimate.name != BOUND]
    rows = np.stack([_replicates(estimate, resamples, rng) for estimate in usable])
    picked = rows[rng.integers(len(rows), size=rows.shape[1]), np.arange(rows.shape[1])]
    most = resamples.estimates.get(BOUND, np.asarray(1.0))  # NaN where no label was found
    moved = all_rates(resamples.recall, resamples.share, np.fmin(picked, most))
    names = ("precision", "f1", "fpr")
    values = (point.precision, point.f1, point.fpr)
    found = [_with_interval(*three) for three in zip(names, values, moved, strict=True)]
    return found[0], found[1], found[2]


def _replicates(estimate: Estimate, resamples: Resamples, rng: np.random.Generator) -> FloatArray:
    """Replicates of one estimate of prevalence; normal ones where only an interval is known."""
    if estimate.name in resamples.estimates:
        return resamples.estimates[estimate.name]
    n = resamples.share.size
    if estimate.low is None or estimate.high is None:
        return np.full(n, estimate.value)
    deviation = (estimate.high - estimate.low) / 2 / float(ndtri((1 + estimate.level) / 2))
    return np.asarray(np.clip(rng.normal(estimate.value, deviation, n), 0, 1))


def percent(value: float) -> str:
    """A share for people: two digits, more only where it is small.

    >>> percent(0.874), percent(0.0613), percent(0.00042), percent(0.00001), percent(0.9996)
    ('87 %', '6.1 %', '0.04 %', 'less than 0.01 %', 'nearly 100 %')
    """
    if 0 < value < 1e-4:
        return "less than 0.01 %"
    if 0.995 <= value < 1:
        return "nearly 100 %"
    return f"{100 * value:.{_digits(value)}f} %"


def _digits(value: float) -> int:
    """Behind the point of a share in percent."""
    return 0 if value >= 0.0995 or value == 0 else 1 if value >= 0.00995 else 2


def outward(low: float | None, high: float | None) -> tuple[float, float]:
    """An interval of shares in the digits in which people see it, never narrower than it is.

    >>> outward(0.7953, 0.9937), outward(0.0216, 0.14), outward(None, 0.501)
    ((0.79, 1.0), (0.021, 0.14), (0.0, 0.51))
    """
    first, last = low or 0.0, 1.0 if high is None else high
    down, up = 10 ** (2 + _digits(first)), 10 ** (2 + _digits(last))
    return floor(first * down + 1e-9) / down, min(1.0, ceil(last * up - 1e-9) / up)


def span(low: float | None, high: float | None, between: str = " to ") -> str:
    """From one share to another, rounded outward.

    >>> span(0.79, 0.92), span(0.021, 0.14, " and "), span(None, 0.501)
    ('79 to 92 %', '2.1 and 14 %', '0 to 51 %')
    """
    first, last = map(percent, outward(low, high))
    return f"{first.removesuffix(' %')}{between}{last}"


@dataclass(frozen=True)
class Votes:
    """Counts over pixels from which the agreement of maps by several seeds follows.

    together[i][j]: pixels that the maps i and j both mark; contested: that some mark and some do
    not; deviation: the sum of the standard deviations of probability. Windows of a scene add up.
    """

    pixels: int
    together: tuple[tuple[int, ...], ...]
    contested: int
    deviation: float

    def __add__(self, other: Votes) -> Votes:
        together = (np.array(self.together) + np.array(other.together)).tolist()
        return Votes(
            self.pixels + other.pixels,
            tuple(tuple(row) for row in together),
            self.contested + other.contested,
            self.deviation + other.deviation,
        )


def count_votes(probability: NDArray[Any], threshold: float = 0.5) -> Votes:
    """Votes of maps of the same pixels: (seeds, n), pixels that are NaN in any left out."""
    known = probability[:, np.isfinite(probability).all(axis=0)]
    mapped = known > threshold
    together = tuple(tuple(int((a & b).sum()) for a in mapped) for b in mapped)
    contested = int((mapped.any(axis=0) & ~mapped.all(axis=0)).sum())
    deviation = float(known.std(axis=0, ddof=1).sum()) if len(known) > 1 else 0.0
    return Votes(known.shape[1], together, contested, deviation)


@dataclass(frozen=True)
class Stability:
    """How far seeds agree: mean pairwise IoU of the maps, contested pixels, mean deviation."""

    seeds: int
    iou: float
    contested: float
    deviation: float


def stability(votes: Votes) -> Stability | None:
    """The agreement of the seeds; None for a single one. Two empty maps agree."""
    together = np.array(votes.together, dtype=np.float64)
    seeds = len(together)
    if seeds < 2:
        return None
    first, second = np.triu_indices(seeds, 1)
    both, each = together[first, second], np.diag(together)
    either = each[first] + each[second] - both
    iou = np.where(either > 0, both / np.maximum(either, 1), 1).mean()
    pixels = max(votes.pixels, 1)
    return Stability(seeds, float(iou), votes.contested / pixels, votes.deviation / pixels)


@dataclass(frozen=True)
class Opinion:
    """Another method's map beside this one.

    share: of the scene that it maps; agreement: of what either maps, the part that both do (IoU).
    """

    method: str
    share: float
    agreement: float


def compare(method: str, other: NDArray[Any], mapped: NDArray[np.bool_]) -> Opinion:
    """An opinion by its scores at some pixels, NaN on nodata; mapped: by this map, there.

    >>> compare("sam", np.array([0.9, 0.8, 0.1, np.nan]), np.array([True, False, False, False]))
    Opinion(method='sam', share=0.6666666666666666, agreement=0.5)
    """
    valid = np.isfinite(other)
    theirs, ours = other[valid] > 0.5, mapped[valid]
    either = int((theirs | ours).sum())
    both = int((theirs & ours).sum())
    return Opinion(
        method, float(theirs.mean()) if theirs.size else 0.0, both / either if either else 1.0
    )
