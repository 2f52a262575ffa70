"""Where the density ratio is cut, and whether the class goes on beyond its labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thonecls.priors import bbe
from thonecls.ratio.ratio import FEWEST_FAIR, LIKE, Array64, Ratio, Rule
from thonecls.scene import FloatArray

# What these numbers rest on: docs/adr/0014-density-ratio.md.
GAPS = (0.3, 0.6)  # the lowest cut and the highest of labels from a part of a scene
GROWTH, STEP = 1.4, 0.1  # a map that grows by less where its cut is so much lower hardly grows
EDGE = 0.1  # of a scene's rows or columns: a narrower strip beyond the labels tells nothing
BEYOND = 0.05  # of the class, beyond the outermost label on one side: a map's errors may be less
CHANCE = 0.01  # of as many pixels there, if labels are a fair sample: rarer is not by chance
FEWEST_LIKE = 60  # pixels like the class: of fewer it cannot be told


class Beyond(NamedTuple):
    """How much of what is like the class lies beyond the outermost label, on its worst side.

    share: of such pixels; side: of the scene; fair: whether labels that are a fair sample of the
    class would leave as much there, None where too few pixels are like it.
    """

    share: float
    side: str
    fair: bool | None


def beyond_labels(
    scores: NDArray[np.floating[Any]],
    at: NDArray[np.int64],
    labels: NDArray[np.int64],
    shape: tuple[int, int],
    count: int,
    sampling: FloatArray | None = None,
) -> Beyond:
    """Whether the class goes on beyond the labels, so that they come from a part of it.

    scores: (m,) of unlabeled pixels by the strictest fit, 1 being a label left out; at: (m, 2) and
    labels: (n, 2) rows and columns in a scene of this shape; count: how many labels tell on their
    own; sampling: of the pixels, as in `Fitted`. Labels that are drawn from the class at random,
    wherever it is, leave 1 / (n + 1) of it beyond the outermost on average, however it lies and in
    how many places.

    >>> at, labels = np.array([[row, 50] for row in range(100)]), np.array([[3, 50], [49, 50]])
    >>> beyond_labels(np.ones(100), at, labels, (100, 100), 100)
    Beyond(share=0.5, side='below', fair=False)
    """
    like = scores > LIKE
    first, last = labels.min(axis=0), labels.max(axis=0)
    sides = {
        "above": (first[0] / shape[0], at[:, 0] < first[0]),
        "below": (1 - (last[0] + 1) / shape[0], at[:, 0] > last[0]),
        "left of": (first[1] / shape[1], at[:, 1] < first[1]),
        "right of": (1 - (last[1] + 1) / shape[1], at[:, 1] > last[1]),
    }
    sampling = np.ones(scores.shape, np.float32) if sampling is None else sampling
    counted = sampling * like
    found = {
        side: float(counted[outside].sum()) if strip > EDGE else 0.0
        for side, (strip, outside) in sides.items()
    }
    side = max(found, key=lambda side: found[side])
    share = found[side] / max(1e-9, float(counted.sum()))
    # As many of equal weight would tell as much (Kish).
    total = round(float(counted.sum() ** 2 / max(1e-9, float(np.square(counted).sum()))))
    if total < FEWEST_LIKE:
        return Beyond(share, side, None)
    by_chance = chance_beyond(round(share * total), total, count) > CHANCE
    return Beyond(share, side, share <= BEYOND or by_chance)


def chance_beyond(beyond: int, pixels: int, labels: int) -> float:
    """How likely so many of these pixels, or more, lie beyond the outermost of these labels.

    Both are drawn from one class at random: of all of them, the outermost are pixels.

    >>> chance_beyond(1, 1, 1), chance_beyond(2, 2, 1), chance_beyond(0, 5, 9)
    (0.5, 0.3333333333333333, 1.0)
    """
    number = np.arange(beyond)
    return float(np.prod((pixels - number) / (labels + pixels - number)))


def fair_cut(ratio: Ratio) -> float:
    """Midway between half of what labels left out score, and the cut that maps the class's share.

    How much of the scene the class covers is told by best-bin estimation.
    """
    if len(ratio.held_out) < FEWEST_FAIR:
        return 0.5
    share = min(1.0, bbe(ratio.held_out, ratio.unlabeled, weights=ratio.sampling))
    if ratio.sampling is None:
        cut = np.quantile(ratio.unlabeled, 1 - share)
    else:
        scores, weights = ratio.unlabeled, ratio.sampling
        cut = np.quantile(scores, 1 - share, weights=weights, method="inverted_cdf")
    return (0.5 + float(cut)) / 2


def gap_cut(scores: Array64, sampling: FloatArray | None = None) -> float:
    """The lowest cut of `GAPS` that maps less than `GROWTH` times as much as one that is `STEP` up.

    scores: of unlabeled pixels; sampling: as in `Fitted`. Where many score a little, a low cut
    would map them all, and the cut rises; where there is a gap between the class and the rest, it
    is low, and finds what differs somewhat from the labels.

    >>> two_kinds, all_between = np.array([0.0] * 90 + [1.0] * 10), np.linspace(0, 0.62, 100)
    >>> gap_cut(two_kinds), gap_cut(all_between)
    (0.3, 0.6)
    """
    order = np.argsort(scores)
    ordered = scores[order]
    counts = np.ones(len(order)) if sampling is None else sampling[order].astype(np.float64)
    above = np.append(np.cumsum(counts[::-1])[::-1], 0.0)

    def mapped(cut: float) -> float:
        return float(above[np.searchsorted(ordered, cut, side="right")])

    for cut in np.arange(*GAPS, 0.01).tolist():
        if mapped(cut) < GROWTH * mapped(cut + STEP) + 1e-5 * above[0]:
            return float(cut)
    return GAPS[1]


def cut_of(ratio: Ratio, rule: Rule) -> float:
    """Where a rule cuts a ratio."""
    if rule.cut == "fair":
        return fair_cut(ratio)
    return gap_cut(ratio.unlabeled, ratio.sampling) if rule.cut == "gap" else float(rule.cut)
