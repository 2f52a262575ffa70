"""What some checked points tell of a map: a stratified random sample, and its estimators.

Precision, recall and area are estimated as by Olofsson et al. (2014, *Good practices for estimating
area and assessing accuracy of land change*). Their intervals are normal ones, which at sixty points
hold the truth of a recall in 50 to 85 of 100 cases, and have no width where all answers of a
stratum agree. Here each stratum's share has the posterior of Jeffreys' prior, with an end at 0 or 1
where all answers agree (Brown, Cai and DasGupta 2001), and the intervals are percentiles of what
draws from these imply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.trust.evidence import LEVEL, Estimate

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NEAR = 0.25  # of a probability from the threshold: near the cut
UNUSUAL = 1.0  # novelty above which a pixel is unlike the training scene
JEFFREYS = 0.5  # both numbers of the Beta distribution that is the prior of a stratum's share
DRAWS = 4_000
FEWEST = 3  # points in every stratum that has pixels, if there are as many


class Stratum(NamedTuple):
    """A part of the map that is sampled for itself; part: of the points, as a weight."""

    name: str
    mapped: bool
    part: float


STRATA = (
    Stratum("mapped", True, 15),
    Stratum("mapped, near the cut", True, 10),
    Stratum("not mapped, near the cut", False, 10),
    Stratum("not mapped", False, 20),
    Stratum("not mapped, unlike the training scene", False, 5),
)


def stratify(
    probability: NDArray[np.float32],
    mapped: NDArray[np.bool_],
    threshold: float,
    novelty: NDArray[np.float32] | None = None,
) -> NDArray[np.int8]:
    """The number of every pixel's stratum, -1 on nodata.

    >>> probability = np.array([0.9, 0.6, 0.4, 0.1, np.nan], np.float32)
    >>> stratify(probability, probability > 0.5, 0.5).tolist()
    [0, 1, 2, 3, -1]
    """
    valid, near = np.isfinite(probability), np.abs(probability - threshold) < NEAR
    kinds = np.select([mapped & ~near, mapped, near], [0, 1, 2], 3)
    if novelty is not None:
        kinds[(kinds == 3) & (novelty > UNUSUAL)] = 4
    return np.where(valid, kinds, -1).astype(np.int8)


def allocate(pixels: Sequence[int], size: int) -> list[int]:
    """How many points each stratum gets, by its part; none gets more than it has pixels.

    >>> allocate([1000, 500, 500, 10_000, 0], 60)
    [16, 11, 11, 22, 0]
    >>> allocate([2, 0, 0, 90, 0], 60)
    [2, 0, 0, 58, 0]
    """
    if size < 1:
        raise ConfigError(f"'size' must be 1 or more. Got {size} instead")
    counts = [min(FEWEST, count) for count in pixels]
    while sum(counts) > size:  # a sample too small for all of them
        counts[int(np.argmax(counts))] -= 1
    for _ in range(size - sum(counts)):
        room = [count < most for count, most in zip(counts, pixels, strict=True)]
        if not any(room):
            break
        wanting = [
            (stratum.part / (count + 0.5) if free else -1.0)
            for stratum, count, free in zip(STRATA, counts, room, strict=True)
        ]
        counts[int(np.argmax(wanting))] += 1
    return counts


def draw_points(
    strata: NDArray[np.int8], size: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Flat indices of random pixels, in random order, and the pixels of every stratum."""
    pixels = np.bincount(strata[strata >= 0], minlength=len(STRATA)).astype(np.int64)
    drawn = [
        rng.choice(np.flatnonzero(strata == number), count, replace=False)
        for number, count in enumerate(allocate(pixels.tolist(), size))
    ]
    return rng.permutation(np.concatenate(drawn)).astype(np.int64), pixels


@dataclass(frozen=True)
class Verification:
    """What checked points tell of a map; area: the share of the scene that is the class.

    answered, asked: points; present: how many of the answered ones are the class.
    """

    asked: int
    answered: int
    present: int
    precision: Estimate
    recall: Estimate
    area: Estimate


def verify(
    strata: IntArray,
    present: FloatArray,
    pixels: IntArray,
    *,
    rng: np.random.Generator,
    level: float = LEVEL,
) -> Verification:
    """Precision, recall and area of the class from points that somebody looked at.

    strata: (n,) of each point, a number of `STRATA`; present: (n,) 1 for the class, 0 for another,
    NaN for no answer; pixels: of every stratum. Points without answer count as missing at random
    within their stratum. A stratum without any answer may be anything.
    """
    known = np.isfinite(present)
    yes = np.bincount(strata[known], present[known], len(STRATA))
    tried = np.bincount(strata[known], minlength=len(STRATA))
    if not tried.any():
        raise ConfigError("no point has an answer: fill in the column 'present', 1 or 0")
    mapped = np.array([stratum.mapped for stratum in STRATA])
    # Without an answer the middle of what is possible.
    share = np.where(tried > 0, yes / np.maximum(tried, 1), 0.5)
    drawn = rng.beta(yes + JEFFREYS, tried - yes + JEFFREYS, size=(DRAWS, len(STRATA)))
    points = _rates(share[None], pixels, mapped)
    # Where all answers of a stratum agree, its share may be 0 or 1 itself, which no draw is.
    none, all_ = (tried > 0) & (yes == 0), (tried > 0) & (yes == tried)
    fewest, most = np.where(none, 0, drawn), np.where(all_, 1, drawn)
    worst, best = np.where(mapped, fewest, most), np.where(mapped, most, fewest)
    ends = {"precision": (fewest, most), "recall": (worst, best), "area": (fewest, most)}
    found = []
    for i, (name, draws) in enumerate(ends.items()):
        at = float(points[i][0])
        tails = 50 * (1 - level), 50 * (1 + level)
        low, high = (
            float(np.percentile(_rates(draw, pixels, mapped)[i], tail))
            for draw, tail in zip(draws, tails, strict=True)
        )
        found.append(Estimate(name, at, min(low, at), max(high, at), level))
    return Verification(len(present), int(tried.sum()), int(yes.sum()), *found)


def _rates(
    share: FloatArray, pixels: IntArray, mapped: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Precision, recall and area of shares (n, strata); without what they divide by, 0."""
    of_class = share * pixels
    hits, total = of_class[:, mapped].sum(axis=1), of_class.sum(axis=1)
    marked = max(int(pixels[mapped].sum()), 1)
    return hits / marked, hits / np.maximum(total, 1e-12), total / max(int(pixels.sum()), 1)
