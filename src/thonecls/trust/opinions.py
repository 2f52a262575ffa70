"""Second opinions: what other methods, in seconds, make of the same labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
