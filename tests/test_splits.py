"""Labels in every accepted form, and the paper's draws pixel by pixel."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from thonecls.datasets import indian_pines
from thonecls.errors import LabelError
from thonecls.splits import (
    PLOT_TESTED,
    PROTOCOLS,
    BoolArray,
    Coverage,
    Labels,
    Split,
    check_labels,
    coverage_of,
    draw_labels,
    fixed_split,
    half_split,
    hold_out,
    judging_folds,
    noisy_split,
    paper_split,
    place_folds,
    plot_split,
    polygons_split,
    positive_mask,
    resampled_split,
    scene_of,
    spatial_split,
)

MASK = np.array([[True, False, False], [False, False, True]])


@functools.cache
def known_truth() -> NDArray[np.uint8]:
    """Indian Pines' classes, read once."""
    return indian_pines().truth


@pytest.mark.parametrize(
    "positives",
    [
        MASK,
        MASK.astype(int),
        np.where(MASK, 1, -1),
        MASK.astype(float),
        [(0, 0), (1, 2)],
        np.array([[1.0, 2.0], [0.0, 0.0]]),
        [(1, 2), (0, 0), (0, 0)],
    ],
)
def test_every_accepted_form_gives_the_same_mask(positives: ArrayLike) -> None:
    assert positive_mask(positives, (2, 3)).tolist() == MASK.tolist()


@pytest.mark.parametrize(
    ("positives", "rule"),
    [
        (np.zeros((3, 3)), r"labels have shape \(3, 3\), the scene \(2, 3\)"),
        (np.array([[0, 1, 2], [0, 0, 3]]), r"Got \[0, 1, 2, 3\] instead; pick one class"),
        ([(0, 0), (2, 0)], "1 of 2 labels lie outside the scene of 2 rows × 3 columns"),
        ([(0, -1)], "lie outside"),
        ([(0.5, 1)], "whole numbers"),
        ([1, 2, 3], "labels have shape"),
    ],
)
def test_labels_that_do_not_fit_are_refused(positives: ArrayLike, rule: str) -> None:
    with pytest.raises(LabelError, match=rule):
        positive_mask(positives, (2, 3))


@pytest.mark.parametrize(
    ("shape", "first", "total"),
    [
        ((678, 465), [257, 500, 543, 565, 585], 638627108),
        ((1217, 303), [18, 75, 93, 287, 563], 741072470),
        ((550, 400), [104, 148, 208, 218, 219], 444284828),
        ((145, 145), [2, 3, 11, 16, 17], 42057193),
        ((610, 340), [19, 23, 73, 225, 259], 418887521),
    ],
)
def test_unlabeled_pixels_are_those_of_the_paper(
    shape: tuple[int, int], first: list[int], total: int
) -> None:
    truth = np.ones(shape, dtype=np.uint8)
    unlabeled = paper_split(truth, 1).labels.unlabeled
    assert len(unlabeled) == 4000
    assert unlabeled[:5].tolist() == first
    assert int(unlabeled.sum()) == total


def test_the_paper_split_of_indian_pines() -> None:
    truth = known_truth()
    split = paper_split(truth, 2)
    assert (truth.flat[split.labels.positive] == 2).all()
    assert len(np.unique(split.labels.positive)) == 100
    assert int(split.test.sum()) == 10149
    assert not split.test.flat[split.labels.positive].any()
    assert not split.test[truth == 0].any()


def test_classes_that_cannot_be_split_are_refused() -> None:
    truth = np.array([[0, 1, 1], [2, 2, 2]])
    with pytest.raises(
        LabelError, match="class 7 does not occur in the ground truth; it has: 1, 2"
    ):
        paper_split(truth, 7)
    with pytest.raises(LabelError, match="class 1 has 2 pixels, too few to train on 2"):
        paper_split(truth, 1, positives=2)


def test_unlabeled_pixels_are_drawn_from_valid_ones_without_repeats() -> None:
    valid = np.zeros((6, 5), dtype=bool)
    valid[2:4] = True
    positives = np.zeros((6, 5), dtype=bool)
    positives[1:3, 0] = True
    labels = draw_labels(positives, valid, 7, np.random.default_rng(0))
    assert labels.positive.tolist() == [10]
    assert len(np.unique(labels.unlabeled)) == 7
    assert valid.flat[labels.unlabeled].all()
    assert len(draw_labels(positives, valid, 4000, np.random.default_rng(0)).unlabeled) == 10


def test_positives_on_nodata_alone_are_refused() -> None:
    valid = np.array([[True, True, True, False]])
    with pytest.raises(LabelError, match="every labelled positive lies on nodata"):
        draw_labels(~valid, valid, 9, np.random.default_rng(0))
    with pytest.raises(LabelError, match="labels lie on nodata"):
        check_labels(Labels(np.array([0]), np.array([1, 2, 3])), valid)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_every_protocol_trains_on_the_class_and_tests_elsewhere(protocol: str) -> None:
    truth = known_truth()
    valid = np.ones(truth.shape, dtype=bool)
    valid[:, 140:] = False
    split = PROTOCOLS[protocol](truth, 11, positives=60, unlabeled=500, valid=valid)
    assert len(np.unique(split.labels.positive)) == 60
    right = (truth.flat[split.labels.positive] == 11).sum()
    assert right == (57 if protocol == "noisy" else 60)
    assert len(np.unique(split.labels.unlabeled)) == 500
    assert valid.flat[split.labels.unlabeled].all()
    assert not split.test.flat[split.labels.positive].any()
    assert not split.test[truth == 0].any()
    assert len(np.unique(truth[split.test])) > 10


def test_repeats_of_the_resampled_protocol_differ_by_their_labels() -> None:
    truth = known_truth()
    one, same, other = (resampled_split(truth, 2, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.labels.positive, same.labels.positive)
    np.testing.assert_array_equal(one.labels.unlabeled, same.labels.unlabeled)
    shared = np.intersect1d(one.labels.positive, other.labels.positive).size
    assert shared < 30
    assert not np.array_equal(one.labels.unlabeled, other.labels.unlabeled)


@given(seed=st.integers(0, 2**32), block=st.integers(4, 24), target=st.sampled_from([2, 5, 11, 14]))
def test_spatial_tests_lie_a_block_away_from_every_label(
    seed: int, block: int, target: int
) -> None:
    truth = known_truth()
    split = spatial_split(truth, target, positives=50, seed=seed, block=block, share=0)
    labels = np.stack(np.unravel_index(split.labels.positive, truth.shape), axis=1)
    known = np.argwhere(truth != 0)
    away = np.abs(known[:, None] - labels[None]).max(axis=2).min(axis=1)  # the plain way
    assert np.array_equal(np.argwhere(split.test), known[away >= block])
    assert (truth[split.test] == target).any()


@pytest.mark.parametrize(("target", "blocks"), [(2, 5), (11, 5), (14, 2)])
def test_spatial_labels_come_from_a_fifth_of_the_blocks(target: int, blocks: int) -> None:
    truth = known_truth()
    for seed in range(5):
        split = spatial_split(truth, target, seed=seed)
        rows, columns = np.unravel_index(split.labels.positive, truth.shape)
        assert blocks <= len({*zip(rows // 16, columns // 16, strict=True)}) <= blocks + 1
        assert (truth[split.test] == target).sum() > 100


def test_a_class_in_one_corner_cannot_be_tested_spatially() -> None:
    truth = np.full((20, 20), 2)
    truth[:5, :5] = 1
    with pytest.raises(LabelError, match="no pixel of class 1 lies 16 pixels away"):
        spatial_split(truth, 1, positives=10)


def cut_valid(truth: NDArray[np.uint8], seed: int) -> BoolArray:
    """A scene with a strip of nodata and single pixels of it."""
    valid = np.random.default_rng(seed).random(truth.shape) > 0.05
    valid[:, 60:64] = False
    return valid


@pytest.mark.parametrize(
    ("seed", "axis", "beyond"), [(0, 1, False), (1, 0, False), (2, 1, True), (3, 0, True)]
)
def test_four_seeds_take_labels_from_the_four_halves(seed: int, axis: int, beyond: bool) -> None:
    truth = known_truth()
    median = np.median(np.argwhere(truth == 11)[:, axis])
    for again in (seed, seed + 4, seed + 40):
        split = half_split(truth, 11, seed=again)
        labels = np.unravel_index(split.labels.positive, truth.shape)[axis]
        assert ((labels > median) == beyond).all()
        known = np.argwhere(truth != 0)
        other = known[(known[:, axis] > median) != beyond]
        np.testing.assert_array_equal(np.argwhere(split.test), other)


@given(seed=st.integers(0, 2**32), target=st.sampled_from([2, 5, 11, 14]))
def test_halves_of_the_valid_pixels_share_nothing(seed: int, target: int) -> None:
    truth = known_truth()
    valid = cut_valid(truth, seed)
    split = half_split(truth, target, positives=50, seed=seed, valid=valid)
    axis = 1 - seed % 2
    labels = np.unravel_index(split.labels.positive, truth.shape)[axis]
    tests = np.argwhere(split.test)[:, axis]
    of_class = np.argwhere((truth == target) & valid)[:, axis]
    low, high = sorted([labels, tests], key=lambda places: int(places.min()))
    assert low.max() <= np.median(of_class) < high.min()
    assert (truth[split.test] == target).any()
    check_kept_to(split, truth, target, valid, positives=50)


def test_a_half_with_too_few_pixels_of_the_class_is_refused() -> None:
    truth = np.full((6, 9), 2)
    truth[0, :5] = 1
    for seed, beyond in ((0, "has 3 pixels up to its median column"), (2, "has 2 pixels beyond")):
        with pytest.raises(LabelError, match=f"class 1 {beyond}.*too few to train on 4: ask"):
            half_split(truth, 1, positives=4, seed=seed)
    with pytest.raises(LabelError, match="all pixels of class 1 lie up to its median row, none is"):
        half_split(truth, 1, positives=4, seed=1)
    with pytest.raises(LabelError, match="class 1 has 0 pixels beyond its median row"):
        half_split(truth, 1, positives=4, seed=3)
    valid = truth == 2
    with pytest.raises(LabelError, match="class 1 does not occur"):
        half_split(truth, 1, positives=4, valid=valid)


@given(
    seed=st.integers(0, 2**32),
    block=st.integers(4, 16),
    positives=st.integers(1, 80),
    target=st.sampled_from([2, 10, 11, 14]),
)
def test_a_plot_is_compact_and_tests_lie_a_block_away(
    seed: int, block: int, positives: int, target: int
) -> None:
    truth = known_truth()
    valid = cut_valid(truth, seed)
    split = plot_split(truth, target, positives=positives, seed=seed, valid=valid, block=block)
    labels = np.stack(np.unravel_index(split.labels.positive, truth.shape), axis=1)
    # Around one of the labels, no pixel of the class outside the plot is nearer than one in it.
    unlike = np.setdiff1d(np.flatnonzero((truth == target) & valid), split.labels.positive)
    others = np.stack(np.unravel_index(unlike, truth.shape), axis=1)
    reach = squared_distances(labels, labels).max(axis=1)
    assert (reach <= squared_distances(labels, others).min(axis=1)).any()
    known = np.argwhere((truth != 0) & valid)
    away = np.abs(known[:, None] - labels[None]).max(axis=2).min(axis=1)  # the plain way
    np.testing.assert_array_equal(np.argwhere(split.test), known[away >= block])
    assert (truth[split.test] == target).sum() >= PLOT_TESTED
    check_kept_to(split, truth, target, valid, positives)


def squared_distances(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(((one[:, None] - other[None]) ** 2).sum(axis=2))


def check_kept_to(
    split: Split, truth: NDArray[np.uint8], target: int, valid: BoolArray, positives: int
) -> None:
    """Labels are of the class, labels and tests on valid pixels, and none is both."""
    assert len(np.unique(split.labels.positive)) == positives
    assert (truth.flat[split.labels.positive] == target).all()
    assert valid.flat[split.labels.positive].all()
    assert valid.flat[split.labels.unlabeled].all()
    assert valid[split.test].all()
    assert not split.test.flat[split.labels.positive].any()


@given(
    seed=st.integers(0, 2**32 - 1),
    side=st.sampled_from([3, 5, 8]),
    positives=st.integers(1, 150),
    target=st.sampled_from([2, 10, 11, 14]),
)
def test_polygons_are_whole_squares_of_the_class_and_tests_lie_apart(
    seed: int, side: int, positives: int, target: int
) -> None:
    truth = known_truth()
    valid = cut_valid(truth, seed)
    split = polygons_split(truth, target, positives=positives, seed=seed, valid=valid, side=side)
    check_kept_to(split, truth, target, valid, positives)
    mask = np.zeros(truth.shape, dtype=bool)
    mask.flat[split.labels.positive] = True
    of_class = (truth == target) & valid
    half = side // 2
    rows, columns = np.nonzero(mask)
    whole = np.zeros_like(mask)  # squares of which all of the class is labelled
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        square = (
            slice(max(0, row - half), row + half + 1),
            slice(max(0, column - half), column + half + 1),
        )
        if (mask[square] == of_class[square]).all():
            whole[square] |= mask[square]
    # But for those of the last square, a part of which may be left out.
    assert (mask & ~whole).sum() < (2 * half + 1) ** 2
    known = np.argwhere((truth != 0) & valid)
    labels = np.stack([rows, columns], axis=1)
    away = np.abs(known[:, None] - labels[None]).max(axis=2).min(axis=1)  # the plain way
    np.testing.assert_array_equal(np.argwhere(split.test), known[away >= side])


def test_polygons_that_leave_nothing_to_test_are_refused() -> None:
    truth = np.full((20, 20), 2)
    truth[:6, :6] = 1
    with pytest.raises(LabelError, match="lies 5 pixels away from squares that hold 30 others"):
        polygons_split(truth, 1, positives=30)


def test_a_plot_beside_which_too_little_is_left_is_drawn_anew() -> None:
    truth = np.full((40, 80), 2)
    truth[:10, :10] = truth[:7, 40:47] = 1  # 100 pixels, and 49 that alone are too few to test on
    for seed in range(20):
        columns = plot_split(truth, 1, positives=20, seed=seed).labels.positive % 80
        assert columns.min() >= 40


def test_a_class_in_one_patch_cannot_be_tested_beside_a_plot() -> None:
    truth = np.full((40, 40), 2)
    truth[:12, :12] = 1
    with pytest.raises(LabelError, match=r"no patch of 10 pixels of class 1, .* has 50 others 16"):
        plot_split(truth, 1, positives=10)


@pytest.mark.parametrize("protocol", ["half", "plot"])
def test_labels_of_a_part_are_reproduced_by_their_seed(protocol: str) -> None:
    truth = known_truth()
    one, same, other = (PROTOCOLS[protocol](truth, 11, seed=seed) for seed in (0, 0, 4))
    np.testing.assert_array_equal(one.labels.positive, same.labels.positive)
    np.testing.assert_array_equal(one.labels.unlabeled, same.labels.unlabeled)
    np.testing.assert_array_equal(one.test, same.test)
    assert not np.array_equal(one.labels.positive, other.labels.positive)
    assert not np.array_equal(one.labels.unlabeled, other.labels.unlabeled)


def test_fixed_maps_of_train_and_test_are_taken_as_they_are() -> None:
    truth = np.arange(12).reshape(3, 4) % 3
    train = np.where(truth == 1, truth, 0)
    train[0] = 0
    split = fixed_split(train, truth - train, 1, unlabeled=5)
    np.testing.assert_array_equal(split.labels.positive, np.flatnonzero(train == 1))
    np.testing.assert_array_equal(split.test, (truth - train) != 0)
    assert len(split.labels.unlabeled) == 5
    with pytest.raises(LabelError, match="class 2 does not occur"):
        fixed_split(train, truth, 2)


def test_scattered_labels_are_held_out_one_by_one() -> None:
    rng = np.random.default_rng(0)
    mask = np.zeros((200, 200), dtype=bool)
    mask.flat[rng.choice(mask.size, 100, replace=False)] = True
    kept, test = hold_out(mask, 0.2, rng)
    assert (int(kept.sum()), int(test.sum())) == (80, 20)
    np.testing.assert_array_equal(kept | test, mask)


def test_clustered_labels_are_held_out_by_blocks() -> None:
    mask = np.zeros((200, 200), dtype=bool)
    for i in range(10):
        mask[20 * i + 1 : 20 * i + 5, 7:11] = True  # ten fields of 16 pixels
    kept, test = hold_out(mask, 0.2, np.random.default_rng(1))
    np.testing.assert_array_equal(kept | test, mask)
    assert not (kept & test).any()
    assert 0 < test.sum() <= 32
    blocks = [{(r // 16, c // 16) for r, c in np.argwhere(part)} for part in (kept, test)]
    assert not blocks[0] & blocks[1]


def test_one_cluster_still_gives_something_to_test_on() -> None:
    mask = np.zeros((40, 40), dtype=bool)
    mask[:10, :10] = True
    kept, test = hold_out(mask, 0.2, np.random.default_rng(0))
    assert (int(kept.sum()), int(test.sum())) == (80, 20)


def test_too_few_labels_to_hold_any_out() -> None:
    mask = np.zeros((9, 9), dtype=bool)
    mask[0, 0] = True
    with pytest.raises(LabelError, match="label more pixels"):
        hold_out(mask, 0.2, np.random.default_rng(0))
    with pytest.raises(LabelError, match="between 0 and 1"):
        hold_out(mask, 1.5, np.random.default_rng(0))


@given(
    share=st.sampled_from([0.05, 0.2]), positives=st.sampled_from([10, 40]), seed=st.integers(0, 9)
)
def test_noisy_labels_are_wrong_in_a_known_share_and_never_tested(
    share: float, positives: int, seed: int
) -> None:
    truth = np.random.default_rng(seed).integers(0, 4, (30, 30))
    valid = np.ones(truth.shape, dtype=bool)
    valid[:2] = False
    split = noisy_split(truth, 2, positives=positives, seed=seed, valid=valid, wrong=share)
    chosen = split.labels.positive
    assert len(np.unique(chosen)) == positives
    wrong = truth.flat[chosen] != 2
    assert wrong.sum() == max(1, round(share * positives))
    assert (truth.flat[chosen] != 0).all()
    assert valid.flat[chosen].all()
    assert not split.test.flat[chosen].any()
    again = noisy_split(truth, 2, positives=positives, seed=seed, valid=valid, wrong=share)
    np.testing.assert_array_equal(again.labels.positive, chosen)


def test_noise_needs_other_classes_and_a_share() -> None:
    truth = np.zeros((9, 9), dtype=int)
    truth[:5] = 1
    with pytest.raises(LabelError, match="0 pixels of other classes than 1, too few for 1 wrong"):
        noisy_split(truth, 1, positives=20)
    truth[5:] = 2
    for wrong in (0.0, 1.0):
        with pytest.raises(LabelError, match="a share between 0 and 1 of the positives is wrong"):
            noisy_split(truth, 1, positives=20, wrong=wrong)


# Several scenes

SIDE, SCENES = 20, 6
ROW_OF_SCENES = [
    (slice(0, SIDE), slice(i * (SIDE + 32), i * (SIDE + 32) + SIDE)) for i in range(SCENES)
]
MOSAIC = (SIDE, SCENES * (SIDE + 32))


def in_scenes(numbers: list[int], each: int = 12) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Labels in some of the scenes, scattered over each."""
    rng = np.random.default_rng(0)
    mask = np.zeros(MOSAIC, dtype=bool)
    for number in numbers:
        rows, columns = ROW_OF_SCENES[number]
        at = rng.choice(SIDE**2, each, replace=False)
        mask[rows, columns].flat[at] = True
    return np.flatnonzero(mask)


@pytest.mark.parametrize("coverage", ["all", "part", "patch"])
def test_folds_are_of_whole_scenes_where_enough_have_labels(coverage: Coverage) -> None:
    pixels = in_scenes([0, 1, 3, 4, 5])
    rng = np.random.default_rng(0)
    fold, apart = judging_folds(pixels, MOSAIC, 3, coverage, rng, ROW_OF_SCENES)
    scene = scene_of(pixels, MOSAIC, ROW_OF_SCENES)
    assert all(len(np.unique(fold[scene == number])) == 1 for number in np.unique(scene))
    assert np.unique(fold).tolist() == [0, 1, 2]
    assert all((apart[k] == (fold != k)).all() for k in range(3))


def test_no_fold_of_places_lies_in_two_scenes() -> None:
    pixels = in_scenes([1, 2], each=60)
    fold, _ = place_folds(pixels, MOSAIC, 4, ROW_OF_SCENES)
    scene = scene_of(pixels, MOSAIC, ROW_OF_SCENES)
    assert len(np.unique(fold)) == 4
    assert all(len(np.unique(scene[fold == k])) == 1 for k in range(4))


def test_labels_in_most_scenes_come_from_all_over() -> None:
    found = [
        coverage_of(in_scenes(some), MOSAIC, ROW_OF_SCENES)
        for some in ([0, 1, 2, 3], [0, 1, 2], [4])
    ]
    assert found == ["all", "part", "part"]
    crowded = np.flatnonzero(np.pad(np.ones((6, 6), bool), ((0, 14), (0, MOSAIC[1] - 6))))
    assert coverage_of(crowded, MOSAIC, ROW_OF_SCENES) == "patch"
