"""Agreement of maps: of several seeds, and of other methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
