"""From labels or ground truth to the pixels that training and testing use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thonecls.errors import LabelError

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

PAPER_SEED = 2333  # the data seed of every run behind the paper's tables


@dataclass(frozen=True, eq=False)
class Labels:
    """What training sees: flat row-major indices of positive and of unlabeled pixels."""

    positive: IntArray
    unlabeled: IntArray


@dataclass(frozen=True, eq=False)
class Split:
    """Labels for training and the (H, W) mask of pixels to test on."""

    labels: Labels
    test: BoolArray


def positive_mask(positives: ArrayLike, shape: tuple[int, int]) -> BoolArray:
    """The (H, W) mask of labelled positives.

    positives: an (H, W) mask as bool, 1/0 or 1/-1, or (n, 2) pairs of row and column.

    >>> positive_mask([(0, 1), (1, 2)], (2, 3)).astype(int).tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    array = np.asarray(positives)
    if array.shape == shape:
        return _from_mask(array)
    if array.ndim == 2 and array.shape[1] == 2:
        return _from_pairs(array, shape)
    raise LabelError(
        f"labels have shape {array.shape}, the scene {shape}: give a mask of the scene's rows × "
        "columns, or (n, 2) pairs of row and column"
    )


def draw_labels(
    positives: BoolArray, valid: BoolArray, unlabeled: int, rng: np.random.Generator
) -> Labels:
    """Labels from a mask of positives: `unlabeled` distinct pixels, uniform over the valid ones.

    As in the paper they are drawn over the whole scene, labelled positives included:
    "unlabeled" describes the scene as it is. In a small scene all pixels are taken.
    """
    if positives[valid].all():
        raise LabelError(
            "every pixel is labelled positive: leave the pixels that you do not know unlabeled"
        )
    pixels = np.flatnonzero(valid)
    drawn = np.sort(rng.choice(pixels, size=min(unlabeled, pixels.size), replace=False))
    if not positives[valid].any() and positives.any():
        raise LabelError("every labelled positive lies on nodata: check labels and nodata value")
    return Labels(np.flatnonzero(positives & valid), drawn)


def check_positives(positive: IntArray, shape: tuple[int, int]) -> None:
    """Refuse positives that are none, or that lie outside a scene of this shape."""
    if positive.size == 0:
        raise LabelError(
            "no positive pixel is labelled: mark at least one (about 100 work well), "
            "and check that the target class is the right one"
        )
    _check_inside(positive, shape[0] * shape[1])


def _check_inside(pixels: IntArray, size: int) -> None:
    if pixels.size and (pixels.min() < 0 or pixels.max() >= size):
        worst = int(pixels.min() if pixels.min() < 0 else pixels.max())
        raise LabelError(
            f"labels point at pixel {worst}, the scene has {size}: "
            "use flat row-major indices of this scene"
        )


def check_labels(labels: Labels, valid: BoolArray) -> None:
    """Refuse labels that nothing can be learnt from, or that lie outside the valid pixels."""
    check_positives(labels.positive, (valid.shape[0], valid.shape[1]))
    _check_inside(labels.unlabeled, valid.size)
    everything = np.concatenate([labels.positive, labels.unlabeled])
    if not valid.flat[everything].all():
        raise LabelError("labels lie on nodata: leave those pixels out")
    others = np.setdiff1d(labels.unlabeled, labels.positive).size
    if others < 2:
        raise LabelError(
            f"at least 2 unlabeled pixels are needed besides the positives. Got {others} instead; "
            "raise the number of unlabeled pixels or label fewer positives"
        )


def paper_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = PAPER_SEED,
    valid: BoolArray | None = None,
) -> Split:
    """The paper's protocol for Indian Pines, Pavia University and HongHu.

    truth: (H, W) class numbers, 0 where unlabelled; valid: (H, W), where the scene has data.
    Positives are drawn from the target class, unlabeled pixels from the whole image; tested are
    all labelled pixels but the positives.
    """
    of_class = np.flatnonzero(truth == target)
    if of_class.size == 0:
        known = ", ".join(str(c) for c in np.unique(truth[truth != 0]))
        raise LabelError(f"class {target} does not occur in the ground truth; it has: {known}")
    if of_class.size <= positives:
        raise LabelError(
            f"class {target} has {of_class.size} pixels, too few to train on {positives} and "
            "test on the rest: ask for fewer positives"
        )
    # Fresh states of the legacy generator: these draws equal those behind the paper's numbers.
    np.random.RandomState(seed).shuffle(of_class)
    seen = np.arange(truth.size) if valid is None else np.flatnonzero(valid)
    chosen = np.zeros(seen.size, dtype=np.int64)
    chosen[:unlabeled] = 1
    np.random.RandomState(seed).shuffle(chosen)
    positive = np.sort(of_class[:positives])
    test = truth != 0
    test.flat[positive] = False
    return Split(Labels(positive, seen[np.flatnonzero(chosen)]), test)


def _from_mask(array: NDArray[Any]) -> BoolArray:
    values = set(np.unique(array).tolist())
    if not (values <= {0, 1} or values <= {-1, 1}):
        raise LabelError(
            f"a label mask holds True/False, 1/0 or 1/-1. Got {sorted(values)[:6]} instead; "
            "pick one class (--target 2, or truth == 2)"
        )
    return np.asarray(array == 1)


def _from_pairs(array: NDArray[Any], shape: tuple[int, int]) -> BoolArray:
    if array.dtype.kind not in "iu" and not np.array_equal(array, array.astype(np.int64)):
        raise LabelError("row/column pairs must be whole numbers")
    pairs = array.astype(np.int64)
    outside = ((pairs < 0) | (pairs >= np.array(shape))).any(axis=1)
    if outside.any():
        row, column = pairs[outside][0].tolist()
        raise LabelError(
            f"{int(outside.sum())} of {len(pairs)} labels lie outside the scene of {shape[0]} rows "
            f"× {shape[1]} columns, such as row {row}, column {column}: rows come first, from 0"
        )
    mask = np.zeros(shape, dtype=bool)
    mask[pairs[:, 0], pairs[:, 1]] = True
    return mask
