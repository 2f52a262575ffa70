"""Which pixels stand for a scene, and what the density ratio sees of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thonecls.method.collage import Pool
from thonecls.parallel import threaded
from thonecls.ratio.ratio import (
    CHUNK,
    LEADING,
    MOST_POSITIVES,
    Around,
    means_at,
    neighbours_of,
    spread_of,
)
from thonecls.scene import FloatArray

# What these numbers rest on: docs/adr/0014-density-ratio.md.
MANY = 2  # times as many pixels as are drawn: those most like the class are drawn in any case
MOST_LIKE = 0.25  # of the drawn pixels are the most like the class
CANDIDATES = 2**18  # pixels, or as many as there are, that these are chosen from


def sample(
    pool: Pool,
    count: int,
    windows: list[int],
    rng: np.random.Generator,
    positive: NDArray[np.bool_],
) -> tuple[dict[int, FloatArray], dict[int, FloatArray], NDArray[np.int64], FloatArray | None]:
    """Means over these windows, of a pool's labels and of unlabeled pixels from anywhere.

    And where the latter lie in the scene, rows and columns, (n, 2), and how many each stands for,
    1 on average (None: all for as many). positive: which of the labels are the class; the others
    are known not to be. Where there are many more pixels than are drawn, a part of those that are
    drawn are the ones most like the class: a uniform sample would hold few of a rare one, or none.
    """
    ends, sampling = np.cumsum([len(places) for places in pool.places]), None
    if ends[-1] >= MANY * count:
        drawn, sampling = _most_like(pool, pool.labels[positive], ends, count, rng)
    else:
        drawn = np.sort(rng.choice(ends[-1], min(count, int(ends[-1])), replace=False))
    part_of = np.searchsorted(ends, drawn, side="right")

    def look(number: int) -> list[dict[int, FloatArray]]:
        """Of one part: means of its labels and of those of its others that were drawn."""
        labels = _labels_in(pool, number)
        first = int(ends[number]) - len(pool.places[number])
        others = pool.places[number][drawn[part_of == number] - first]
        means = means_at(*pool.parts[number], windows, np.concatenate([labels, others]))
        return [
            {w: m[: labels.size] for w, m in means.items()},
            {w: m[labels.size :] for w, m in means.items()},
        ]

    used = np.union1d(part_of, pool.labels[:, 0]).tolist()
    kinds = zip(*threaded(look, used), strict=True)
    of_p, of_u = (_joined(list(kind)) for kind in kinds)
    places = np.concatenate(pool.places)[drawn]
    widths = np.array([part.valid.shape[1] for part in pool.parts])[part_of]
    at = np.stack(np.divmod(places, widths), axis=1) + pool.corners[part_of]
    return of_p, of_u, at, sampling


def _most_like(
    pool: Pool,
    positive: NDArray[np.int64],
    ends: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], FloatArray]:
    """So many of a pool's places, by number in order, and how many each stands for.

    positive: (n, 3) part, row and column of labels. Of `CANDIDATES` places a part, `MOST_LIKE`,
    are those that lie nearest to a label in the first components; the rest is drawn from the
    others.
    """
    candidates = np.sort(rng.choice(ends[-1], min(CANDIDATES, int(ends[-1])), replace=False))
    scale = np.sqrt(spread_of(pool.statistics))[:LEADING]
    labels = np.stack([pool.parts[i].features[:LEADING, r, c] for i, r, c in positive]) * scale
    if len(labels) > MOST_POSITIVES:
        labels = labels[rng.choice(len(labels), MOST_POSITIVES, replace=False)]
    part_of = np.searchsorted(ends, candidates, side="right")
    away = np.empty(len(candidates), np.float32)
    for number in np.unique(part_of):
        own = np.flatnonzero(part_of == number)
        first = int(ends[number]) - len(pool.places[number])
        places = pool.places[number][candidates[own] - first]
        features = pool.parts[number].features
        pixels = features.transpose(1, 2, 0).reshape(-1, len(features))  # as they lie in memory
        for start in range(0, own.size, CHUNK):
            some = slice(start, start + CHUNK)
            seen = pixels[places[some], : len(scale)] * scale
            squares = np.square(seen).sum(axis=1)[:, None] - 2 * seen @ labels.T
            away[own[some]] = (squares + np.square(labels).sum(axis=1)).min(axis=1)
    near = np.argsort(away, kind="stable")[: round(MOST_LIKE * count)]
    far = np.setdiff1d(np.arange(len(candidates)), near)
    far = rng.choice(far, count - len(near), replace=False)
    stands = np.full(len(candidates), (len(candidates) - len(near)) / len(far), np.float32)
    stands[near] = 1
    chosen = np.sort(np.concatenate([near, far]))
    return candidates[chosen], stands[chosen] / stands[chosen].mean()


def around_labels(
    pool: Pool, windows: list[int], spread: FloatArray, difference: float
) -> Around | None:
    """What lies around a pool's labels; None where they are so many that it would take long."""
    if difference <= 0 or len(pool.labels) > MOST_POSITIVES:
        return None
    found, weights = [], []
    for number, part in enumerate(pool.parts):
        labels = _labels_in(pool, number)
        if labels.size:
            pixels, weight = neighbours_of(labels, *part, spread, difference)
            found.append(means_at(*part, windows, pixels.ravel()))
            weights.append(weight)
    return Around(_joined(found), np.concatenate(weights))


def _labels_in(pool: Pool, number: int) -> NDArray[np.int64]:
    """The flat indices of labels in a part of a pool."""
    labels = pool.labels[pool.labels[:, 0] == number]
    return np.asarray(labels[:, 1] * pool.parts[number].valid.shape[1] + labels[:, 2])


def _joined(parts: list[dict[int, FloatArray]]) -> dict[int, FloatArray]:
    """Means of several parts, by window."""
    return {window: np.concatenate([part[window] for part in parts]) for window in parts[0]}
