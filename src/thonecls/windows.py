"""What a step of training sees: the whole scene, or, beyond a budget, a sheet of its windows.

A sheet holds windows around some of the labels and random ones. An epoch goes once through all
sheets, one to a pseudo-batch, so it meets all labels, and unlabeled pixels of many places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError, SceneError
from thonecls.scene import BoolArray, Scene, Source
from thonecls.splits import Labels

SIDES = (256, 192, 128, 96, 64, 48, 32)  # of a window, the preferred first
FEWEST = 2  # windows in a sheet: half with labels, half at random
MARGIN = 8  # a window's frame, side / MARGIN wide, lacks context: no pixel of it is used
TRIES = 100  # places looked at for a random window before a scene counts as nodata alone
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Windows of one size, and labels inside them.

    origins: (n, 2) upper left corners; size: rows and columns of a window; labels: flat indices
    into the (n, rows, columns) stack that the network takes.
    """

    origins: IntArray
    size: tuple[int, int]
    labels: Labels

    def read(self, source: Source) -> Scene:
        """The windows, stacked by rows into one scene: its flat indices are those of the stack."""
        return _stack(source, self.origins, self.size)


def whole(source: Source, labels: Labels) -> list[Sheet]:
    """One sheet of one window, the scene itself; in what order labels come does not matter."""
    in_order = Labels(np.sort(labels.positive), np.sort(labels.unlabeled))
    return [Sheet(np.zeros((1, 2), dtype=np.int64), source.shape, in_order)]


def cut_sheets(
    source: Source,
    positive: IntArray,
    *,
    unlabeled: int,
    budget: int,
    count: int,
    rng: np.random.Generator,
) -> list[Sheet]:
    """At most `count` sheets of at most `budget` pixels each, over a scene that has more.

    positive: flat indices into the source, shared out evenly; those that need more windows than
    half of all are left out. Unlabeled pixels come from the random windows alone: these stand for
    the scene as it is.
    """
    pairs = np.stack(np.unravel_index(positive, source.shape), axis=1)
    size, most, shares = _share_out(rng.permutation(pairs), source.shape, budget, count)
    sheets = []
    for around, mine in shares:
        random = _random_windows(source, most - len(around), size, rng)
        origins = np.concatenate([around, random])
        scene = _stack(source, origins, size)
        core = np.stack([_core(origin, size, source.shape) for origin in origins])
        core[: len(around)] = False
        candidates = np.flatnonzero(core.ravel() & scene.valid.ravel())
        wanted = min(-(-unlabeled // len(shares)), candidates.size)
        drawn = np.sort(rng.choice(candidates, size=wanted, replace=False))
        placed = _place(mine, around, size)
        placed = np.sort(placed[scene.valid.flat[placed]])
        if placed.size and drawn.size:
            sheets.append(Sheet(origins, size, Labels(placed, drawn)))
    if not sheets:
        raise LabelError("no label lies on a valid pixel: check the labels and the nodata value")
    return sheets


def _share_out(
    pairs: IntArray, shape: tuple[int, int], budget: int, count: int
) -> tuple[tuple[int, int], int, list[tuple[IntArray, IntArray]]]:
    """Size and number of a sheet's windows, and each sheet's label windows with their labels.

    The largest windows are taken that leave no label out; failing that, the smallest that are
    still large enough to learn from.
    """
    best = None
    for side in SIDES:
        size = (min(side, shape[0]), min(side, shape[1]))
        most = budget // (size[0] * size[1])
        if most < FEWEST:
            continue
        if best is not None and side < 64:
            break  # labels left out cost less than windows this small
        shares = []
        kept = 0
        around, window_of = _cover(pairs, size, shape)
        order = np.argsort(window_of, kind="stable")
        for chunk in np.array_split(order, min(count, len(pairs))):
            used, of = np.unique(window_of[chunk], return_inverse=True)
            fullest = np.argsort(-np.bincount(of), kind="stable")[: most // 2]
            chosen = chunk[np.isin(of, fullest)]
            kept += len(chosen)
            shares.append((around[used[np.sort(fullest)]], pairs[chosen]))
        best = size, most, shares
        if kept == len(pairs):
            break
    if best is None:
        least = FEWEST * min(SIDES[-1], shape[0]) * min(SIDES[-1], shape[1])
        raise LabelError(
            f"{budget:,} pixels are too few to learn from windows: set the budget to {least:,} "
            "or more"
        )
    return best


def _cover(
    pairs: IntArray, size: tuple[int, int], shape: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """Windows with all pairs in their cores, and the window of each pair.

    Each window is centred on the first pair that is still outside.
    """
    origins: list[IntArray] = []
    window_of = np.full(len(pairs), -1)
    while (window_of < 0).any():
        origin = _origin(pairs[window_of < 0][0], size, shape)
        low, high = _core_bounds(origin, size, shape)
        inside = ((pairs >= origin + low) & (pairs < origin + high)).all(axis=1)
        window_of[inside & (window_of < 0)] = len(origins)
        origins.append(origin)
    return np.array(origins, dtype=np.int64).reshape(-1, 2), window_of


def _random_windows(
    source: Source, count: int, size: tuple[int, int], rng: np.random.Generator
) -> IntArray:
    """Origins of windows about random places; where all is nodata, another place is drawn."""
    origins: list[IntArray] = []
    for _ in range(TRIES * count):
        if len(origins) == count:
            break
        origin = _origin(rng.integers(0, source.shape), size, source.shape)
        if _stack(source, origin[None], size).valid.any():
            origins.append(origin)
    if len(origins) < count:
        raise SceneError(
            f"{TRIES} random windows held nothing but nodata: cut the scene to its valid part"
        )
    return np.array(origins, dtype=np.int64)


def _origin(centre: IntArray, size: tuple[int, int], shape: tuple[int, int]) -> IntArray:
    """The upper left corner of a window about a centre, moved inside the scene where it must."""
    corner = centre - np.array(size) // 2
    return np.asarray(np.clip(corner, 0, np.array(shape) - size), dtype=np.int64)


def _core_bounds(
    origin: IntArray, size: tuple[int, int], shape: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """Where the core begins and ends, in rows and columns; the scene's edge needs no frame."""
    frame = np.array(size) // MARGIN
    low = np.where(origin == 0, 0, frame)
    high = np.where(origin + size == shape, size, np.array(size) - frame)
    return low, high


def _core(origin: IntArray, size: tuple[int, int], shape: tuple[int, int]) -> BoolArray:
    (top, left), (bottom, right) = _core_bounds(origin, size, shape)
    core = np.zeros(size, dtype=bool)
    core[top:bottom, left:right] = True
    return core


def _place(pairs: IntArray, origins: IntArray, size: tuple[int, int]) -> IntArray:
    """The flat index of each pair in the stack: in that window where it lies most centrally."""
    offset = pairs[:, None] - origins[None]  # (pairs, windows, 2)
    inside = ((offset >= 0) & (offset < size)).all(axis=2)
    from_centre = np.abs(offset - np.array(size) / 2).max(axis=2)
    best = np.where(inside, from_centre, np.inf).argmin(axis=1)
    row, column = offset[np.arange(len(pairs)), best].T
    return np.asarray((best * size[0] + row) * size[1] + column)


def _stack(source: Source, origins: IntArray, size: tuple[int, int]) -> Scene:
    parts = [
        source.read(slice(row, row + size[0]), slice(column, column + size[1]))
        for row, column in origins.tolist()
    ]
    if len(parts) == 1:
        return parts[0]
    return Scene(
        np.concatenate([part.cube for part in parts], axis=1),
        np.concatenate([part.valid for part in parts], axis=0),
    )
