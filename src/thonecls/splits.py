"""From labels or ground truth to the pixels that training and testing use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from thonecls.errors import LabelError

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

BLOCK = 16  # pixels a side: labels this near each other tell much the same
CLUSTERED = 4  # labels to a block, on average: from here on neighbours are alike
TOUCHING = 0.8  # share of the labels that have another one beside them: these are patches
PAPER_SEED = 2333  # the data seed of every run behind the paper's tables
POLYGON = 5  # pixels a side
PLOT_TESTED = 50  # pixels of the class that must be left to test on, beside a plot of labels
PLOT_DRAWS = 50  # centres to try for such a plot
PLACES = 10  # blocks with labels: fewer cannot be all over a scene
EACH_HALF = 0.1  # of the labels lies in every half of a scene that is labelled all over
SPANNED = 0.45  # of the rows, and of the columns, lies between the first and the last label there
AROUND = 2  # pixels about a label that are its neighbours
CROWDED = 0.25  # of the pixels around labels that are labelled: more are polygons
SOLID = 0.2  # of the labels have labels on all four sides: these are polygons that are filled
FEW_CROWDED = 4  # blocks with such labels: fewer are a patch or two
COVERED = 0.5  # of the area of several scenes: if more has labels, they come from all over
NO_ELSEWHERE = 25  # blocks: a scene of fewer is labelled all over by any label
PATCH = 24  # pixels: labels that but for a few lie within so many rows and columns are a patch
FEW_APART = 0.05  # of the labels may lie beyond either end of these
APART = 8  # pixels between labels of a fold of places and those that its model learns from
FAR = 1e7  # pixels between places in two scenes
LLOYD = 20  # rounds of k-means
WRONG = 0.05  # of the positives, where labels are noisy
KNOWN = 0.5  # of the unlabeled pixels of a training are negatives, where some are known
Coverage = Literal["all", "part", "patch"]
Windows = Sequence[tuple[slice, slice]]  # where the scenes of a mosaic lie; none of a single scene


@dataclass(frozen=True, eq=False)
class Labels:
    """What training sees: flat row-major indices of positive and of unlabeled pixels.

    negative: of those known not to be the class, for methods that take them apart.
    """

    positive: IntArray
    unlabeled: IntArray
    negative: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


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


def with_negatives(labels: Labels, negatives: IntArray) -> Labels:
    """Labels whose unlabeled pixels hold known negatives so often that they are `KNOWN` of them.

    A loss that takes unlabeled pixels as a mixture is pushed down hardest where they are most: this
    is how it learns from negatives that are few, and from odd places.

    >>> labels = Labels(np.array([1]), np.arange(10, 14))
    >>> with_negatives(labels, np.array([7, 8])).unlabeled.tolist()
    [7, 7, 8, 8, 10, 11, 12, 13]
    """
    if not negatives.size:
        return labels
    wanted = KNOWN / (1 - KNOWN) * labels.unlabeled.size
    repeated = np.repeat(negatives, max(1, round(wanted / negatives.size)))
    return Labels(labels.positive, np.sort(np.concatenate([labels.unlabeled, repeated])))


def blocks_of(pixels: IntArray, shape: tuple[int, ...], block: int = BLOCK) -> IntArray:
    """The number of the block of block × block pixels that each pixel lies in.

    >>> blocks_of(np.array([0, 15, 16, 40 * 16]), (40, 40)).tolist()
    [0, 0, 1, 3]
    """
    rows, columns = np.divmod(pixels, shape[1])
    return np.asarray(rows // block * (shape[1] // block + 1) + columns // block)


def hold_out(
    positives: BoolArray, share: float, rng: np.random.Generator, *, block: int = BLOCK
) -> tuple[BoolArray, BoolArray]:
    """Positives to train on and positives to test on, as (H, W) masks.

    Where labels lie in clusters, as polygons give them, neighbours tell the same: then whole
    blocks of block × block pixels are held out, as far as at least half of all labels stay.
    """
    if not 0 < share < 1:
        raise LabelError(f"the share to hold out must be between 0 and 1. Got {share:g} instead")
    pixels = np.flatnonzero(positives)
    wanted = round(share * pixels.size)
    if wanted < 1 or pixels.size - wanted < 1:
        raise LabelError(
            f"{share:.0%} of {pixels.size} labels cannot be held out: label more pixels"
        )
    block_of = blocks_of(pixels, positives.shape, block)
    blocks, counts = np.unique(block_of, return_counts=True)
    if counts.mean() < CLUSTERED:
        held = rng.choice(pixels, size=wanted, replace=False)
    else:
        order = rng.permutation(len(blocks))
        taken: list[int] = []
        for i in order:
            after = sum(int(counts[j]) for j in taken) + int(counts[i])
            if after <= max(wanted, 1) or (not taken and after <= pixels.size // 2):
                taken.append(int(i))
        held = pixels[np.isin(block_of, blocks[taken])]
        if held.size == 0:  # all labels in one block: nothing better than single pixels is left
            held = rng.choice(pixels, size=wanted, replace=False)
    kept, test = positives.copy(), np.zeros_like(positives)
    kept.flat[held], test.flat[held] = False, True
    return kept, test


def are_touching(pixels: IntArray, shape: tuple[int, int]) -> bool:
    """Whether most pixels, by flat index, have another one beside them: they lie in clumps.

    >>> are_touching(np.arange(9), (100, 100)), are_touching(np.arange(0, 90, 10), (100, 100))
    (True, False)
    """
    columns = pixels % shape[1]
    beside = np.isin(pixels - shape[1], pixels) | np.isin(pixels + shape[1], pixels)
    beside |= (columns > 0) & np.isin(pixels - 1, pixels)
    beside |= (columns < shape[1] - 1) & np.isin(pixels + 1, pixels)
    return bool(beside.mean() >= TOUCHING)


def fold_labels(
    pixels: IntArray, shape: tuple[int, int], folds: int, rng: np.random.Generator
) -> IntArray:
    """The fold of each label, from 0: (n,); folds are about equally large.

    Single pixels are dealt out at random. Labels that touch each other, as polygons give them,
    tell the same: then whole blocks go to one fold, or, where all lie in a few blocks, stripes
    along the patch.
    """
    if not are_touching(pixels, shape):
        return np.asarray(rng.permutation(pixels.size) % folds)
    blocks, block_of = np.unique(blocks_of(pixels, shape), return_inverse=True)
    if len(blocks) < 2 * folds:
        places = np.stack(np.unravel_index(pixels, shape), axis=1).astype(np.float64)
        along = (places - places.mean(0)) @ np.linalg.eigh(np.cov(places.T))[1][:, -1]
        rank = np.argsort(np.argsort(along, kind="stable"))
        return np.asarray(rank * folds // pixels.size)
    fold_of, sizes = np.empty(len(blocks), dtype=np.int64), np.zeros(folds)
    counts = np.bincount(block_of)
    shuffled = rng.permutation(len(blocks))
    for block in shuffled[np.argsort(-counts[shuffled], kind="stable")]:  # the fullest first
        fold_of[block] = sizes.argmin()
        sizes[fold_of[block]] += counts[block]
    return np.asarray(fold_of[block_of])


class Folds(NamedTuple):
    """Labels in folds, each to be scored by a model that has not seen it.

    fold: (n,) of each label, from 0; apart: (folds, n), which labels a model may learn from that is
    to score a fold.
    """

    fold: IntArray
    apart: BoolArray


def judging_folds(
    pixels: IntArray,
    shape: tuple[int, int],
    folds: int,
    coverage: Coverage,
    rng: np.random.Generator,
    scenes: Windows = (),
) -> Folds:
    """Folds whose labels lie as far from those learnt from as the class does that is to be found.

    Labels all over a scene are a sample of it: any other pixel of the class lies as near to a label
    as they do to each other, so they are dealt out at random, in blocks where they touch. Else
    nobody labelled where the map is to be right, and whole places are left out. Where as many
    scenes have labels as there are to be folds, whole scenes are left out, however labels lie.
    """
    by_scene = len(np.unique(scene_of(pixels, shape, scenes))) >= max(2, folds)
    if coverage != "all" or by_scene:
        return place_folds(pixels, shape, folds, scenes)
    fold = fold_labels(pixels, shape, min(folds, pixels.size), rng)
    return Folds(fold, np.stack([fold != k for k in range(int(fold.max()) + 1)]))


def scene_of(pixels: IntArray, shape: tuple[int, int], scenes: Windows) -> IntArray:
    """The number of the scene that each pixel of a mosaic lies in; 0 of a single scene.

    >>> left, right = (slice(0, 5), slice(0, 5)), (slice(0, 5), slice(15, 20))
    >>> scene_of(np.array([3, 17, 24]), (5, 20), [left, right]).tolist()
    [0, 1, 0]
    """
    rows, columns = np.divmod(pixels, shape[1])
    found = np.zeros(pixels.size, dtype=np.int64)
    for number, (down, across) in enumerate(scenes):
        inside = (rows >= down.start) & (rows < down.stop)
        found[inside & (columns >= across.start) & (columns < across.stop)] = number
    return found


def _scene_folds(scene: IntArray, folds: int) -> Folds:
    """Whole scenes in folds of about as many labels, those that follow each other together."""
    _, number, count = np.unique(scene, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    fold = np.minimum((middle / scene.size * folds).astype(np.int64), folds - 1)
    _, fold = np.unique(fold[number], return_inverse=True)  # without empty ones
    return Folds(fold, np.stack([fold != k for k in range(int(fold.max()) + 1)]))


def place_folds(
    pixels: IntArray, shape: tuple[int, int], folds: int, scenes: Windows = ()
) -> Folds:
    """Labels, by flat index, in so many folds or fewer, each of neighbouring places.

    Labels within a block of `BLOCK` pixels stay together, so labels of one place are one fold. A
    model for a fold learns from no label within `APART` pixels of it. scenes: of a mosaic; where
    enough of them have labels a fold is of whole scenes, else no fold is of places in two of them.

    >>> place_folds(np.array([0, 1, 50, 51, 9950, 9951]), (100, 100), 3).fold.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    at = np.stack(np.divmod(pixels, shape[1]), axis=1).astype(np.float64)
    scene = scene_of(pixels, shape, scenes)
    if len(np.unique(scene)) >= max(2, folds):
        return _scene_folds(scene, folds)
    at[:, 0] += FAR * scene
    blocks, block_of = np.unique(blocks_of(pixels, shape), return_inverse=True)
    count = np.bincount(block_of)
    middles = np.stack([np.bincount(block_of, at[:, i]) / count for i in (0, 1)], axis=1)
    folds = min(folds, len(blocks))
    # Begin with middles that lie as far apart as they can, the first as far as can be from all.
    seeds = [int(np.linalg.norm(middles - middles.mean(axis=0), axis=1).argmax())]
    while len(seeds) < folds:
        distance = np.linalg.norm(middles[:, None] - middles[seeds], axis=2).min(axis=1)
        seeds.append(int(distance.argmax()))
    centres = middles[seeds]
    for _ in range(LLOYD):  # k-means, each block with the weight of its labels
        nearest = np.linalg.norm(middles[:, None] - centres, axis=2).argmin(axis=1)
        for k in range(folds):
            own = nearest == k
            if own.any():
                centres[k] = np.average(middles[own], axis=0, weights=count[own])
    # Numbered by their first label, and without empty ones.
    _, first, fold = np.unique(nearest[block_of], return_index=True, return_inverse=True)
    fold = np.argsort(np.argsort(first))[fold]
    apart = np.zeros((len(first), len(pixels)), dtype=bool)
    for k in range(len(first)):
        away, _ = scipy.spatial.cKDTree(at[fold == k]).query(at, p=np.inf)
        apart[k] = (fold != k) & (away > APART)
    return Folds(fold.astype(np.int64), apart)


def coverage_of(positive: IntArray, shape: tuple[int, int], scenes: Windows = ()) -> Coverage:
    """Whether labels, by flat index, lie all over a scene of this shape, in a part, or in a patch.

    scenes: of a mosaic, each of which is looked at (see `_coverage_of_scenes`).

    >>> coverage_of(np.arange(0, 100 * 100, 97), (100, 100))
    'all'
    >>> coverage_of(np.arange(0, 50 * 100, 97), (100, 100)), coverage_of(np.arange(9), (100, 100))
    ('part', 'patch')
    """
    if scenes:
        return _coverage_of_scenes(positive, shape, scenes)
    rows, columns = np.divmod(positive, shape[1])
    before = np.array([(rows < shape[0] / 2).mean(), (columns < shape[1] / 2).mean()])
    spanned = min(np.ptp(rows) / shape[0], np.ptp(columns) / shape[1])
    places = len(np.unique(rows // BLOCK * shape[1] + columns // BLOCK))
    each_half = np.minimum(before, 1 - before).min()
    if places >= PLACES and each_half >= EACH_HALF and spanned >= SPANNED:
        return "all"
    if places < FEW_CROWDED and are_crowded(positive, shape):
        return "patch"
    ends = np.quantile(np.stack([rows, columns]), (FEW_APART, 1 - FEW_APART), axis=1)
    small = np.ptp(ends, axis=0).max() <= min(PATCH, max(shape) / 4)
    return "patch" if small else "part"


def are_crowded(pixels: IntArray, shape: tuple[int, int]) -> bool:
    """Whether pixels, by flat index, lie so close together as those of polygons do.

    >>> are_crowded(np.arange(9), (100, 100)), are_crowded(np.arange(0, 90, 10), (100, 100))
    (True, False)
    """
    rows, columns = np.divmod(pixels, shape[1])
    away = np.arange(-AROUND, AROUND + 1)
    near_rows = (rows[:, None, None] + away[:, None] + 0 * away).ravel()
    near_columns = (columns[:, None, None] + 0 * away[:, None] + away).ravel()
    inside = (near_rows >= 0) & (near_rows < shape[0])
    inside &= (near_columns >= 0) & (near_columns < shape[1])
    around = len(np.unique(near_rows[inside] * shape[1] + near_columns[inside]))
    return len(np.unique(pixels)) >= CROWDED * around


def are_solid(pixels: IntArray, shape: tuple[int, int]) -> bool:
    """Whether pixels, by flat index, fill polygons: scattered ones hardly ever do, however many.

    >>> solid = np.arange(36) // 6 * 100 + np.arange(36) % 6
    >>> are_solid(solid, (100, 100)), are_solid(solid[::2], (100, 100))
    (True, False)
    """
    mask = np.zeros(shape, dtype=bool)
    mask.flat[pixels] = True
    around = scipy.ndimage.binary_erosion(mask, border_value=1)  # all four beside it are labelled
    return bool(around.sum() >= SOLID * mask.sum())


def _coverage_of_scenes(positive: IntArray, shape: tuple[int, int], scenes: Windows) -> Coverage:
    """Whether labels come from all over several scenes, from a part, or from a patch or two.

    A scene is covered where its own labels lie all over it; a small one, which has no elsewhere, by
    any label. Labels come from all over if most of the area is (`COVERED`), in `PLACES` places.
    """
    scene = scene_of(positive, shape, scenes)
    rows, columns = np.divmod(positive, shape[1])
    found: list[Coverage] = []
    area = covered = 0
    for number, (down, across) in enumerate(scenes):
        size = down.stop - down.start, across.stop - across.start
        area += size[0] * size[1]
        own = scene == number
        if not own.any():
            continue
        inside = (rows[own] - down.start) * size[1] + columns[own] - across.start
        found.append(coverage_of(inside, size))
        if found[-1] == "all" or size[0] * size[1] < NO_ELSEWHERE * BLOCK**2:
            covered += size[0] * size[1]
    places = len(np.unique(blocks_of(positive, shape)))
    if places >= PLACES and covered > COVERED * area:
        return "all"
    return "patch" if len(found) <= 2 and set(found) == {"patch"} else "part"


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
    everything = np.concatenate([labels.positive, labels.unlabeled, labels.negative])
    _check_inside(everything, valid.size)
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
    of_class = _pixels_of(truth, target, positives)
    # A fresh state of the legacy generator: these draws equal those behind the paper's numbers.
    np.random.RandomState(seed).shuffle(of_class)
    positive = np.sort(of_class[:positives])
    test = truth != 0
    test.flat[positive] = False
    return Split(Labels(positive, _paper_unlabeled(truth.size, unlabeled, seed, valid)), test)


def fixed_split(
    train: NDArray[Any],
    test: NDArray[Any],
    target: int,
    *,
    unlabeled: int = 4000,
    seed: int = PAPER_SEED,
    valid: BoolArray | None = None,
) -> Split:
    """The paper's protocol for LongKou and HanChuan, which come with maps of train and test."""
    positive = np.flatnonzero(train == target)
    if positive.size == 0:
        raise LabelError(f"class {target} does not occur in the training labels")
    drawn = _paper_unlabeled(train.size, unlabeled, seed, valid)
    return Split(Labels(positive, drawn), np.asarray(test != 0))


def _paper_unlabeled(size: int, unlabeled: int, seed: int, valid: BoolArray | None) -> IntArray:
    """Unlabeled pixels from the whole image, the same for every class."""
    seen = np.arange(size) if valid is None else np.flatnonzero(valid)
    chosen = np.zeros(seen.size, dtype=np.int64)
    chosen[:unlabeled] = 1
    np.random.RandomState(seed).shuffle(chosen)
    return np.asarray(seen[np.flatnonzero(chosen)])


def resampled_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = 0,
    valid: BoolArray | None = None,
) -> Split:
    """As `paper_split`, but every seed draws its own labels: the spread that a user meets."""
    of_class = _pixels_of(truth, target, positives)
    rng = np.random.default_rng(seed)
    positive = np.sort(rng.choice(of_class, size=positives, replace=False))
    return _split(truth, positive, unlabeled, valid, rng)


def noisy_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = 0,
    valid: BoolArray | None = None,
    wrong: float = WRONG,
) -> Split:
    """As `resampled_split`, but a share of the positives, one at least, are of other classes.

    These stand in the place of as many right ones, and are not tested on.
    """
    truth = _on_valid(truth, valid)
    of_class = _pixels_of(truth, target, positives)
    others = np.flatnonzero((truth != 0) & (truth != target))
    count = max(1, round(wrong * positives))
    if not 0 < wrong < 1 or count >= positives:
        raise LabelError(
            f"a share between 0 and 1 of the positives is wrong, and one of them right. Got "
            f"{wrong:g} of {positives} instead"
        )
    if others.size < count:
        raise LabelError(
            f"the ground truth has {others.size} pixels of other classes than {target}, too few "
            f"for {count} wrong labels: ask for fewer positives, or for another protocol"
        )
    rng = np.random.default_rng(seed)
    right = rng.choice(of_class, size=positives - count, replace=False)
    mistaken = rng.choice(others, size=count, replace=False)
    return _split(truth, np.sort(np.concatenate([right, mistaken])), unlabeled, valid, rng)


def spatial_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = 0,
    valid: BoolArray | None = None,
    block: int = BLOCK,
    share: float = 0.2,
) -> Split:
    """Labels from some blocks of the scene, tests at least a block away from every one of them.

    Of the blocks of block × block pixels that hold the class a random share is taken, or more
    until they hold enough of it; the positives are drawn from these. A test pixel lies `block` or
    more rows or columns from every positive. Unlabeled pixels come from the whole scene: they
    carry no label.
    """
    of_class = _pixels_of(truth, target, positives)
    rng = np.random.default_rng(seed)
    block_of = blocks_of(of_class, truth.shape, block)
    blocks, counts = np.unique(block_of, return_counts=True)
    order = rng.permutation(len(blocks))
    enough = int(np.searchsorted(np.cumsum(counts[order]), positives)) + 1
    enough = max(enough, math.ceil(share * len(blocks)))
    inside = of_class[np.isin(block_of, blocks[order[:enough]])]
    positive = np.sort(rng.choice(inside, size=positives, replace=False))
    split = _split(truth, positive, unlabeled, valid, rng)
    split.test[~_far_from(positive, truth.shape, block)] = False
    if not (truth[split.test] == target).any():
        raise LabelError(
            f"no pixel of class {target} lies {block} pixels away from all {positives} labels: "
            "ask for fewer positives, or for another protocol"
        )
    return split


def half_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = 0,
    valid: BoolArray | None = None,
) -> Split:
    """Labels from one side of the class's median column or row, tests on the other side.

    The seed chooses the side, so that four seeds in a row have all of them: an even one cuts at a
    column, an odd one at a row; where seed // 2 is even the labels come from the lower side, the
    median included. Unlabeled pixels come from the whole scene.
    """
    truth = _on_valid(truth, valid)
    of_class = _pixels_of(truth, target, positives)
    by_row, beyond = seed % 2 == 1, seed // 2 % 2 == 1
    at = np.indices(truth.shape)[0 if by_row else 1]
    side = (at > np.median(at.flat[of_class])) == beyond
    inside = of_class[side.flat[of_class]]
    where = f"{'beyond' if beyond else 'up to'} its median {'row' if by_row else 'column'}"
    if inside.size < positives:
        raise LabelError(
            f"class {target} has {inside.size} pixels {where}, too few to train on {positives}: "
            "ask for fewer positives, or for another seed"
        )
    if inside.size == of_class.size:
        raise LabelError(
            f"all pixels of class {target} lie {where}, none is left to test on: ask for another "
            "seed, or for another protocol"
        )
    rng = np.random.default_rng(seed)
    positive = np.sort(rng.choice(inside, size=positives, replace=False))
    split = _split(truth, positive, unlabeled, valid, rng)
    split.test[side] = False
    return split


def plot_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = 0,
    valid: BoolArray | None = None,
    block: int = BLOCK,
) -> Split:
    """Labels from one compact patch, tests at least a block away from every one of them.

    The positives are the pixels of the class nearest to a random one of them. A test pixel lies
    `block` or more rows or columns from every positive. A patch that leaves fewer than
    `PLOT_TESTED` pixels of the class to test on is drawn anew. Unlabeled pixels come from the
    whole scene.
    """
    truth = _on_valid(truth, valid)
    of_class = _pixels_of(truth, target, positives)
    rows, columns = np.divmod(of_class, truth.shape[1])
    rng = np.random.default_rng(seed)
    for _ in range(PLOT_DRAWS):
        centre = rng.integers(of_class.size)
        squared = (rows - rows[centre]) ** 2 + (columns - columns[centre]) ** 2
        positive = np.sort(of_class[np.argsort(squared, kind="stable")[:positives]])
        far = _far_from(positive, truth.shape, block)
        if np.count_nonzero(far.flat[of_class]) >= PLOT_TESTED:
            split = _split(truth, positive, unlabeled, valid, rng)
            split.test[~far] = False
            return split
    raise LabelError(
        f"no patch of {positives} pixels of class {target}, of {PLOT_DRAWS} drawn, has "
        f"{PLOT_TESTED} others {block} pixels away: ask for fewer positives, or for another "
        "protocol"
    )


def polygons_split(
    truth: NDArray[Any],
    target: int,
    *,
    positives: int = 100,
    unlabeled: int = 4000,
    seed: int = 0,
    valid: BoolArray | None = None,
    side: int = POLYGON,
) -> Split:
    """Labels as polygons give them: all pixels of the class in squares about some of them.

    Squares of side × side pixels are drawn until there are as many positives as asked for; of the
    last one a part may be left out. A test pixel lies `side` or more rows or columns from every
    positive. Unlabeled pixels come from the whole scene.
    """
    truth = _on_valid(truth, valid)
    of_class = _pixels_of(truth, target, positives)
    rng = np.random.default_rng(seed)
    labelled = np.zeros(truth.shape, dtype=bool)
    count, half = 0, side // 2
    for row, column in zip(*np.divmod(rng.permutation(of_class), truth.shape[1]), strict=True):
        if labelled[row, column]:
            continue
        square = (
            slice(max(0, row - half), row + half + 1),
            slice(max(0, column - half), column + half + 1),
        )
        new = (truth[square] == target) & ~labelled[square]
        new.flat[np.flatnonzero(new)[positives - count :]] = False
        labelled[square] |= new
        count += int(new.sum())
        if count == positives:
            break
    positive = np.flatnonzero(labelled)
    far = _far_from(positive, truth.shape, side)
    if not far.flat[of_class].any():
        raise LabelError(
            f"no pixel of class {target} lies {side} pixels away from squares that hold "
            f"{positives} others: ask for fewer positives, or for another protocol"
        )
    split = _split(truth, positive, unlabeled, valid, rng)
    split.test[~far] = False
    return split


# How labels and tests are drawn from a ground truth, by name.
PROTOCOLS: dict[str, Callable[..., Split]] = {
    "paper": paper_split,
    "resampled": resampled_split,
    "spatial": spatial_split,
    "half": half_split,
    "plot": plot_split,
    "polygons": polygons_split,
    "noisy": noisy_split,
}


def _on_valid(truth: NDArray[Any], valid: BoolArray | None) -> NDArray[Any]:
    """The truth without its labels on nodata."""
    return truth if valid is None else np.where(valid, truth, 0)


def _far_from(pixels: IntArray, shape: tuple[int, ...], block: int) -> BoolArray:
    """Where a scene lies `block` or more rows or columns from each of these pixels."""
    others = np.ones(shape, dtype=bool)
    others.flat[pixels] = False
    return np.asarray(scipy.ndimage.distance_transform_cdt(others, metric="chessboard") >= block)


def _pixels_of(truth: NDArray[Any], target: int, positives: int) -> IntArray:
    """All pixels of a class, which must be more than the positives to be drawn from it."""
    of_class = np.flatnonzero(truth == target)
    if of_class.size == 0:
        known = ", ".join(str(c) for c in np.unique(truth[truth != 0]))
        raise LabelError(f"class {target} does not occur in the ground truth; it has: {known}")
    if of_class.size <= positives:
        raise LabelError(
            f"class {target} has {of_class.size} pixels, too few to train on {positives} and "
            "test on the rest: ask for fewer positives"
        )
    return of_class


def _split(
    truth: NDArray[Any],
    positive: IntArray,
    unlabeled: int,
    valid: BoolArray | None,
    rng: np.random.Generator,
) -> Split:
    """Unlabeled pixels from the whole scene; tested are all labelled pixels but the positives."""
    seen = np.arange(truth.size) if valid is None else np.flatnonzero(valid)
    drawn = np.sort(rng.choice(seen, size=min(unlabeled, seen.size), replace=False))
    test = truth != 0
    test.flat[positive] = False
    return Split(Labels(positive, drawn), test)


def _from_mask(array: NDArray[Any]) -> BoolArray:
    values = set(np.unique(array).tolist())
    if not (values <= {0, 1} or values <= {-1, 1}):
        raise LabelError(
            f"a label mask holds True/False, 1/0 or 1/-1. Got {sorted(values)[:6]} instead; "
            "pick one class ('target' 2, or truth == 2)",
            options=("target",),
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
