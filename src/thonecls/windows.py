"""Training beyond memory: windows around the labels and at random, stacked into one scene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError
from thonecls.scene import Scene, Source
from thonecls.splits import Labels, check_labels

SIZES = (256, 192, 128, 96, 64, 48, 32)  # sides of a window, the preferred first
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mosaic:
    """Windows of one size, stacked by rows into a `scene`, and the labels inside it.

    A flat index of the stack is also one of the (windows, rows, columns) that the network takes.
    """

    scene: Scene
    labels: Labels
    window: tuple[int, int]


def gather(
    source: Source,
    positive: IntArray,
    *,
    unlabeled: int,
    budget: int,
    rng: np.random.Generator,
) -> Mosaic:
    """Windows of at most `budget` pixels in all that hold every positive, and random ones.

    positive: flat indices into the source. Half of the budget may go to windows with labels. The
    unlabeled pixels come from the random windows alone: they stand for the scene as it is.
    """
    pairs = np.stack(np.unravel_index(positive, source.shape), axis=1)
    for side in SIZES:
        window = (min(side, source.shape[0]), min(side, source.shape[1]))
        most = budget // (window[0] * window[1])
        around = _cover(pairs, window, source.shape)
        if 2 * len(around) <= most:
            break
    else:
        raise LabelError(
            f"the {len(positive)} labels lie too far apart for {budget:,} pixels of windows: "
            "raise the budget, or label in fewer places"
        )
    centres = rng.integers(0, source.shape, size=(most - len(around), 2))
    origins = np.concatenate([around, _origin(centres, window, source.shape)])
    parts = [source.read(*_slices(origin, window)) for origin in origins]
    scene = Scene(
        np.concatenate([part.cube for part in parts], axis=1),
        np.concatenate([part.valid for part in parts], axis=0),
    )
    candidates = np.flatnonzero(scene.valid)
    candidates = candidates[candidates >= len(around) * window[0] * window[1]]
    drawn = rng.choice(candidates, size=min(unlabeled, candidates.size), replace=False)
    placed = _place(pairs, origins[: len(around)], window)
    labels = Labels(np.sort(placed[scene.valid.flat[placed]]), np.sort(drawn))
    check_labels(labels, scene.valid)
    return Mosaic(scene, labels, window)


def _cover(pairs: IntArray, window: tuple[int, int], shape: tuple[int, int]) -> IntArray:
    """Origins of windows that hold all pairs, each centred on the first that is still outside."""
    origins, left = [], pairs
    while len(left):
        origin = _origin(left[0], window, shape)
        origins.append(origin)
        inside = ((left >= origin) & (left < origin + window)).all(axis=1)
        left = left[~inside]
    return np.array(origins, dtype=np.int64).reshape(-1, 2)


def _origin(centre: IntArray, window: tuple[int, int], shape: tuple[int, int]) -> IntArray:
    """The upper left corner of a window about a centre, moved inside the scene where it must."""
    corner = centre - np.array(window) // 2
    return np.asarray(np.clip(corner, 0, np.array(shape) - window), dtype=np.int64)


def _place(pairs: IntArray, origins: IntArray, window: tuple[int, int]) -> IntArray:
    """The flat index of each pair in the stack: in that window where it lies most centrally."""
    offset = pairs[:, None] - origins[None]  # (pairs, windows, 2)
    inside = ((offset >= 0) & (offset < window)).all(axis=2)
    from_centre = np.abs(offset - np.array(window) / 2).max(axis=2)
    best = np.where(inside, from_centre, np.inf).argmin(axis=1)
    row, column = offset[np.arange(len(pairs)), best].T
    return np.asarray((best * window[0] + row) * window[1] + column)


def _slices(origin: IntArray, window: tuple[int, int]) -> tuple[slice, slice]:
    row, column = origin.tolist()
    return slice(row, row + window[0]), slice(column, column + window[1])
