"""Where labels lie in a scene, and how far the rest of it is from them, in space and spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from thonecls.splits import Coverage, IntArray, Windows, blocks_of, coverage_of, scene_of

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

COMPONENTS = 10  # principal ones, in which spectra are compared
MANY = 2000  # labels: of more a tree is made
FEW_PAIRS = 200_000  # of spectra: fewer are compared one by one, without waiting for SciPy
ALIKE = 0.95  # of the labels have another label this near, in spectrum
CORNERS = ("upper left", "upper right", "lower left", "lower right")
COMPASS = ("north-west", "north-east", "south-west", "south-east")


@dataclass(frozen=True)
class Places:
    """Where labels lie.

    blocks: of `splits.BLOCK` pixels a side that hold labels; empty: quarters of the scene without
    any, by name; half: the half of the scene without any, if there is one; middle, farthest: how
    far from a label half of the scene lies, and all of it, in pixels; unlike: the share of what
    is mapped whose spectrum is not near that of any label, None where that is not known;
    apart: the same of the whole scene; fair: whether labels are a fair sample of the class, by what
    lies beyond the outermost of them, None where that is not known.
    """

    coverage: Coverage
    labels: int
    blocks: int
    empty: tuple[str, ...]
    half: str | None
    middle: float
    farthest: float
    unlike: float | None = None
    apart: float | None = None
    fair: bool | None = None


def find_places(
    labels: IntArray,
    shape: tuple[int, int],
    *,
    north_up: bool = False,
    unlike: float | None = None,
    scenes: Windows = (),
) -> Places:
    """Where labels, by flat index, lie in a scene of this shape; north_up: names by the compass.

    scenes: of a mosaic, which has no quarters; how far labels are is told of scenes with labels.

    >>> found = find_places(np.array([0, 5, 300]), (100, 100))
    >>> found.coverage, found.blocks, found.half
    ('patch', 1, 'lower half')
    """
    rows, columns = np.divmod(labels, shape[1])
    quarter = 2 * (rows >= shape[0] / 2) + (columns >= shape[1] / 2)
    bare = np.bincount(quarter, minlength=4) == 0
    names = COMPASS if north_up else CORNERS
    halves = ("north", "south", "west", "east") if north_up else ("upper", "lower", "left", "right")
    pairs = ((0, 1), (2, 3), (0, 2), (1, 3))
    half = next(
        (f"{h} half" for h, (i, j) in zip(halves, pairs, strict=True) if bare[i] and bare[j]), None
    )
    if scenes:
        bare, half = np.zeros(4, dtype=bool), None
        away = _distances_in_scenes(labels, shape, scenes)
    else:
        away = distances(labels, shape, *lattice(shape))
    return Places(
        coverage_of(labels, shape, scenes),
        int(labels.size),
        int(np.unique(blocks_of(labels, shape)).size),
        tuple(name for name, none in zip(names, bare, strict=True) if none),
        half,
        float(np.median(away)),
        float(away.max()),
        unlike,
    )


def _distances_in_scenes(labels: IntArray, shape: tuple[int, int], scenes: Windows) -> FloatArray:
    """How far pixels lie from the nearest label of their scene, in scenes that have any: (n,)."""
    scene = scene_of(labels, shape, scenes)
    rows, columns = np.divmod(labels, shape[1])
    found = []
    for number in np.unique(scene):
        down, across = scenes[number]
        size = down.stop - down.start, across.stop - across.start
        own = scene == number
        inside = (rows[own] - down.start) * size[1] + columns[own] - across.start
        found.append(distances(inside, size, *lattice(size)).ravel())
    return np.concatenate(found)


def lattice(shape: tuple[int, int], side: int = 200) -> tuple[IntArray, IntArray]:
    """Rows and columns, evenly spread over a scene, at most so many of each.

    >>> [part.tolist() for part in lattice((3, 1000), 4)]
    [[0, 1, 2], [0, 333, 666, 999]]
    """
    rows, columns = (
        np.unique(np.linspace(0, length - 1, min(length, side)).round()).astype(np.int64)
        for length in shape
    )
    return rows, columns


def distances(
    labels: IntArray, shape: tuple[int, int], rows: IntArray, columns: IntArray
) -> FloatArray:
    """How far a lattice's pixels lie from the nearest label, in pixels: (rows, columns)."""
    down, across = np.divmod(labels, shape[1])
    if labels.size > MANY:
        grid = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=2).reshape(-1, 2)
        tree = scipy.spatial.cKDTree(np.stack([down, across], axis=1))
        return np.asarray(tree.query(grid)[0]).reshape(len(rows), len(columns))
    sideways = (columns[:, None] - across).astype(np.float64) ** 2
    squares = [(sideways + (row - down) ** 2).min(axis=1) for row in rows]
    return np.asarray(np.sqrt(np.stack(squares)))


def spectral_components(spectra: NDArray[Any]) -> FloatArray:
    """Principal components of spectra (n, C), white: (n, k)."""
    values = spectra.astype(np.float64)
    std = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(std > 0, std, 1)
    sizes, vectors = np.linalg.eigh(scaled.T @ scaled / max(1, len(scaled)))
    kept = vectors[:, ::-1][:, :COMPONENTS]
    return np.asarray(scaled @ (kept / np.sqrt(np.maximum(sizes[::-1][:COMPONENTS], 1e-9))))


def unlike_labels(labels: FloatArray, others: FloatArray) -> BoolArray:
    """Which of the others (n, k) are farther from every label (m, k) than labels are.

    Both: components. Of fewer than three labels nothing can be said: none is.
    """
    if len(labels) < 3 or not len(others):
        return np.zeros(len(others), dtype=bool)
    usual = _nearest(labels, labels, but_itself=True)
    return np.asarray(_nearest(labels, others) > np.quantile(usual, ALIKE))


def _nearest(labels: FloatArray, others: FloatArray, *, but_itself: bool = False) -> FloatArray:
    """How far the others are from the nearest label, (n,)."""
    if len(labels) * len(others) > FEW_PAIRS:
        nth = 2 if but_itself else 1
        return np.asarray(scipy.spatial.cKDTree(labels).query(others, k=[nth])[0])[:, 0]
    squares = ((others[:, None] - labels[None]) ** 2).sum(axis=2)
    return np.asarray(np.sqrt(np.sort(squares, axis=1)[:, int(but_itself)]))
