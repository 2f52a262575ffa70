"""The density ratio: its formulas, what it learns, its models and their maps."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import thonecls.ratio.model
from thonecls.datasets import Dataset, synthetic
from thonecls.errors import ConfigError, LabelError, ModelError
from thonecls.method.collage import build_pool
from thonecls.method.config import TrainConfig
from thonecls.method.fit import fit as fit_network
from thonecls.method.model import Model
from thonecls.method.novelty import fit_novelty
from thonecls.method.store import save
from thonecls.methods.spectral_model import load_model
from thonecls.metrics import evaluate, evaluate_pu, share_below
from thonecls.priors import bbe
from thonecls.ratio.cuts import (
    CHANCE,
    EDGE,
    FEWEST_LIKE,
    GAPS,
    Beyond,
    beyond_labels,
    chance_beyond,
    cut_of,
    fair_cut,
    gap_cut,
)
from thonecls.ratio.model import RatioModel, fit_ratio, rule_by
from thonecls.ratio.ratio import (
    EACH,
    FAIR_PART,
    FOLDS,
    MIDDLE,
    MOST_POSITIVES,
    NEAR,
    NEGATIVES,
    REACH,
    ROUNDING,
    RULES,
    STRENGTHS,
    WIDE,
    Around,
    Fitted,
    Look,
    Ratio,
    Rule,
    _basis,
    fit,
    gaussian_kernel,
    looks_of,
    means_at,
    neighbour_difference,
    neighbours_of,
    see,
    smooth,
    solve,
    spread_of,
    window_means,
    windows_of,
)
from thonecls.ratio.sampling import sample
from thonecls.scene import BoolArray, FloatArray, Scene, as_scene, standardize, whitened_axes
from thonecls.splits import Coverage, Folds, are_crowded, blocks_of, coverage_of

Mask = NDArray[np.bool_]


def labelled(data: Dataset, count: int, seed: int, where: Mask | None = None) -> Mask:
    """So many random pixels of class 1, from a part of the scene if told."""
    allowed = (data.truth == 1) & (True if where is None else where)
    mask = np.zeros(data.truth.shape, dtype=bool)
    pixels = np.flatnonzero(allowed)
    mask.flat[np.random.default_rng(seed).choice(pixels, count, replace=False)] = True
    return mask


@given(st.integers(0, 2**32 - 1))
def test_the_kernel_is_that_of_gauss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, c = (rng.normal(size=(n, 3)).astype(np.float32) for n in (4, 5))
    plain = np.exp(-0.3 * ((x[:, None] - c[None]) ** 2).sum(axis=2))
    assert np.allclose(gaussian_kernel(x, c, 0.3), plain, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 5, 7]))
def test_a_window_is_averaged_over_its_valid_pixels(seed: int, window: int) -> None:
    rng = np.random.default_rng(seed)
    valid = rng.random((6, 9)) < 0.7
    image = np.where(valid, rng.normal(size=(2, 6, 9)), 0).astype(np.float32)
    means, half = window_means(image, valid, window), window // 2
    for row in range(6):
        for column in range(9):
            here = (
                slice(max(0, row - half), row + half + 1),
                slice(max(0, column - half), column + half + 1),
            )
            inside = image[:, here[0], here[1]][:, valid[here]]
            plain = inside.mean(axis=1) if inside.shape[1] else np.zeros(2)
            assert np.allclose(means[:, row, column], plain, atol=1e-5)


@given(st.integers(0, 2**32 - 1))
def test_means_at_some_pixels_are_those_of_the_whole_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 12, 2)
    valid = rng.random((rows, columns)) < 0.7
    image = np.where(valid, rng.normal(100, 30, size=(2, rows, columns)), 0).astype(np.float32)
    pixels = rng.integers(0, rows * columns, 7)
    found = means_at(image, valid, [1, 3, 7, 31], pixels)
    for window, means in found.items():
        whole = window_means(image, valid, window).reshape(2, -1)
        np.testing.assert_allclose(means.T, whole[:, pixels], rtol=1e-5, atol=1e-4)


@given(st.integers(0, 2**32 - 1))
def test_scores_are_averaged_over_neighbours_that_look_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 11, 2)
    valid = rng.random((rows, columns)) < 0.8
    components = rng.normal(size=(3, rows, columns)).astype(np.float32)
    scores = rng.normal(size=(rows, columns)).astype(np.float32)
    spread = np.array([2, 1, 0.5], np.float32)
    found = smooth(scores, components, valid, spread, 1.5)
    assert np.array_equal(found[~valid], scores[~valid])
    for row, column in np.argwhere(valid):
        here = (
            slice(max(0, row - REACH), row + REACH + 1),
            slice(max(0, column - REACH), column + REACH + 1),
        )
        away = (components[:, *here] - components[:, row, column, None, None]).astype(float)
        weights = np.exp(-np.square(away * spread[:, None, None]).sum(axis=0) / 1.5) * valid[here]
        plain = (weights * scores[here]).sum() / weights.sum()
        assert found[row, column] == pytest.approx(plain, abs=1e-5)


def test_a_label_is_judged_by_what_lies_around_it_as_the_map_is() -> None:
    """Neighbours are those of `smooth`, every other one; only labels that are judged get them."""
    rng = np.random.default_rng(0)
    valid = rng.random((9, 9)) < 0.9
    valid[4, 4] = valid[0, 1] = True
    components = rng.normal(size=(3, 9, 9)).astype(np.float32)
    spread, pixels = np.array([2, 1, 0.5], np.float32), np.array([40, 1])
    flat, weights = neighbours_of(pixels, components, valid, spread, 1.5)
    away = (components.reshape(3, -1)[:, flat] - components.reshape(3, -1)[:, pixels, None]) ** 2
    alike = np.exp(-(away * spread[:, None, None] ** 2).sum(axis=0) / 1.5) * valid.ravel()[flat]
    rows = pixels[:, None] // 9 + np.repeat([-4, -2, 0, 2, 4], 5)
    columns = pixels[:, None] % 9 + np.tile([-4, -2, 0, 2, 4], 5)
    alike[(rows < 0) | (columns < 0)] = 0
    np.testing.assert_allclose(weights, alike / alike.sum(axis=1, keepdims=True), atol=1e-6)
    assert np.array_equal(flat[0], (rows * 9 + columns)[0])

    means = some_means(200)
    positive = {w: m[:30] + 1.5 for w, m in means.items()}
    fold = np.arange(30) // 15
    folds = Folds(fold, np.stack([fold == 1, fold == 0]))
    alone = Around(positive, np.ones((30, 1), np.float32))
    other = {w: np.repeat(m, 2, axis=0) for w, m in positive.items()}
    for mean in other.values():
        mean[1::2] = -5  # what lies beside them is not at all like them
    half = Around(other, np.full((30, 2), 0.5, np.float32))
    judged = [
        fit(
            positive,
            means,
            np.ones(4, np.float32),
            np.random.default_rng(1),
            rule=RULES["patch"],
            folds=folds,
            around=around,
        ).judged
        for around in (None, alone, half)
    ]
    np.testing.assert_allclose(judged[0], judged[1], rtol=1e-3, atol=1e-4)
    assert judged[2].mean() < 0.7 * judged[0].mean()


def test_the_difference_of_neighbours_is_that_of_valid_pixels_side_by_side() -> None:
    image = np.array([[[0, 1, 3, 100]], [[0, 0, 2, 5]]], dtype=np.float32)
    valid = np.array([[True, True, True, False]])
    spread = np.array([2, 1], np.float32)
    assert neighbour_difference([(image, valid)], spread) == pytest.approx((4 + 20) / 2)
    assert neighbour_difference([(image, valid & False)], spread) == 0
    scores = np.arange(4, dtype=np.float32)[None]
    assert np.array_equal(smooth(scores, image, valid, spread, 0.0), scores)


def test_the_ratio_solves_its_linear_system() -> None:
    rng = np.random.default_rng(0)
    means, unlabeled = rng.normal(size=(2, 4)), rng.normal(size=(50, 4))
    moments = unlabeled.T @ unlabeled / 50
    for found, strength in zip(solve(means, unlabeled, (1e-3, 0.5)), (1e-3, 0.5), strict=True):
        for mean, weights in zip(means, found, strict=True):
            plain = np.linalg.solve(moments + strength * np.eye(4), mean)
            assert np.allclose(weights, plain)


def test_in_a_world_of_few_kinds_the_ratio_is_that_of_their_shares() -> None:
    """Of three kinds of pixels: r = p(kind | positive) / p(kind), whatever the class prior."""
    p, u = np.array([0.7, 0.3, 0.0]), np.array([0.2, 0.3, 0.5])
    kinds = np.eye(3)
    unlabeled = np.repeat(kinds, (1000 * u).astype(int), axis=0)
    (found,) = solve((p @ kinds)[None], unlabeled, (1e-9,))
    assert np.allclose(kinds @ found[0], p / u, atol=1e-6)


def some_means(count: int, seed: int = 0) -> dict[int, FloatArray]:
    rng = np.random.default_rng(seed)
    return {
        w: rng.normal(size=(count, 4)).astype(np.float32) for w in windows_of(MIDDLE + WIDE + NEAR)
    }


@pytest.mark.parametrize("name", RULES)
def test_labels_left_out_have_the_mean_one_and_machines_add_up(name: Coverage) -> None:
    means, rule = some_means(300), RULES[name]
    positive = {w: m[:40] + 2 for w, m in means.items()}
    spread = np.ones(4, np.float32)
    found = fit(positive, means, spread, np.random.default_rng(1), rule=rule).by(rule)
    assert found.held_out.mean() == pytest.approx(1)
    assert [machine.look for machine in found.machines] == list(rule.looks)
    together = sum(m(see(means, m.look, spread)) for m in found.machines)
    assert np.allclose(together, found.unlabeled, atol=2e-3)
    assert found.unlabeled.mean() < 0.5
    assert np.isnan(found.judged).all()  # no fold was asked for


def test_single_pixels_have_a_say_where_windows_know_the_place_and_not_the_class() -> None:
    """Pixels of the class are alike everywhere; what lies around them differs from place to place.

    Single pixels find a place that was left out, windows do not; where windows of all places are
    alike, they do.
    """
    rng = np.random.default_rng(0)
    place = np.arange(60) // 20
    far, apart = np.eye(4)[place] * 6, np.stack([place != k for k in range(3)])
    shares = []
    for odd in (0.0, 1.0):
        unlabeled = some_means(600)
        # Others lie in places like these, and like no label in a single pixel.
        unlabeled = {
            w: m + (odd * np.eye(4)[rng.integers(0, 3, 600)] * 6 if w > 3 else 0)
            for w, m in unlabeled.items()
        }
        positive = {
            w: (rng.normal(size=(60, 4)) * 0.3 + (odd * far if w > 3 else 0) + [0, 0, 0, 4]).astype(
                np.float32
            )
            if w <= 3 or not odd
            else (rng.normal(size=(60, 4)) * 0.3 + far).astype(np.float32)
            for w in unlabeled
        }
        found = fit(
            positive,
            {w: m.astype(np.float32) for w, m in unlabeled.items()},
            np.ones(4, np.float32),
            np.random.default_rng(1),
            rule=RULES["part"],
            places=Folds(place, apart),
        )
        ratio = found.by(RULES["part"])
        shares.append(ratio.near)
        looks = {machine.look for machine in ratio.machines}
        assert set(NEAR) <= looks if ratio.near else not set(NEAR) & looks
        assert found.by(RULES["part"], 0.5).near == max(0.5, ratio.near)
        assert found.by(FAIR_PART, 0.5).near == 0
    assert shares == [0, 1]


@pytest.mark.parametrize("told", [0.0, 3.0])
def test_single_pixels_have_a_say_where_labels_all_over_are_found_better_with_them(
    told: float,
) -> None:
    """told: by how many deviations single pixels of the class differ, beside what windows show."""
    rng = np.random.default_rng(0)

    def means(count: int, shift: float) -> dict[int, FloatArray]:
        single, wide = rng.normal(size=(2, count, 4))
        single[:, 0] += told * shift
        wide[:, 1] += 1.5 * shift
        sizes = windows_of(looks_of(RULES["all"]))
        return {w: (single if w <= 3 else wide).astype(np.float32) for w in sizes}

    rule = RULES["all"]._replace(looks=MIDDLE[:1] + WIDE[:1])
    found = fit(means(80, 1.0), means(2000, 0.0), np.ones(4, np.float32), rng, rule=rule)
    near = found.by(rule).near
    assert near > 0 if told else near == 0
    assert found.by(rule, 0.3).near == max(near, 0.3)
    # Labels that lie side by side tell no more than one, and a few labels tell nothing.
    together = found._replace(groups=np.arange(80) // 8)
    assert together.by(rule).near == 0
    some = found.held_out[..., :19]
    assert found._replace(held_out=some, judged=some, by_place=some).by(rule).near == 0
    # Single pixels that are better by chance alone have no say.
    luck = np.random.default_rng(1).random((2, 40))
    luck[1] = luck[0] + np.where(np.arange(40) < 22, 0.01, -0.01)
    array = np.stack([np.repeat(part[None], 4, axis=0) for part in luck])
    kernels = tuple((look, np.zeros((1, 1), np.float32), 1.0) for look in (MIDDLE[0], NEAR[0]))
    others = np.broadcast_to(np.linspace(0, 1, 1000), (2, 4, 1000))
    by_luck = Fitted(kernels, (np.ones((4, 1)),) * 2, array, array, array, others)
    assert by_luck.by(rule).near == 0


def test_a_large_penalty_has_no_say_in_the_map_of_a_rare_class() -> None:
    rng = np.random.default_rng(0)
    rule = RULES["patch"]._replace(looks=(Look((1,), 0.0),))
    kernels = ((rule.looks[0], np.zeros((1, 1), np.float32), 1.0),)
    used = []
    for share in (0.2, 0.005, 0.0002):
        scores = np.where(rng.permutation(20_000) < share * 20_000, 1.0, 0.0)
        array = np.broadcast_to(scores, (1, 4, 20_000))
        weights = (np.arange(4.0)[:, None],)
        ones = np.ones((1, 4, 5))
        found = Fitted(kernels, weights, ones, ones, ones, array)
        ratio = found.by(rule)
        used.append(ratio.machines[0].weights[0])
        assert ratio.strengths == (STRENGTHS[int(used[-1])],)
        # Pixels of the class that stand for three each.
        heavy = np.where(scores > 0, 3.0, 1.0).astype(np.float32)
        doubled = found._replace(sampling=heavy / heavy.mean())
        assert doubled.by(rule).machines[0].weights[0] == used[-1] + (share == 0.005)
    assert used == [3, 2, 1]  # of STRENGTHS: 0.1, 0.01, 0.001


def test_a_cut_is_low_where_there_is_a_gap_and_higher_where_there_is_none() -> None:
    rng = np.random.default_rng(0)
    background, some = rng.normal(0, 0.05, 900), rng.normal(1, 0.1, 100)
    assert gap_cut(np.concatenate([background, some])) == GAPS[0]
    between = rng.uniform(0.1, 0.45, 400)  # much that is a little like the labels
    assert 0.4 < gap_cut(np.concatenate([background, between, some])) < GAPS[1]
    assert gap_cut(np.full(1000, 0.1)) == GAPS[0]  # nothing like the labels at all


def test_the_share_of_the_class_moves_a_fair_cut_halfway() -> None:
    """A sixth of the scene scores as labels do, 1 and more: the cut for that share is 1."""
    held_out, others = np.ones(50), np.linspace(0, 1.2, 1201)
    ratio = Ratio((), held_out, held_out, others, 0.0)
    assert cut_of(ratio, RULES["all"]) == pytest.approx((0.5 + 1) / 2, abs=0.01)
    few = ratio._replace(held_out=ratio.held_out[:10])  # too few to tell a share by
    assert cut_of(few, RULES["all"]) == 0.5


def test_features_by_either_root_of_the_kernel_give_the_same_ratio() -> None:
    """Plain: eigenvectors of the kernel, all at once; the ratio must not know which root it is."""
    means = some_means(1500)
    positive = {w: m[:40] + 1.5 for w, m in means.items()}
    spread = np.ones(4, np.float32)
    found = fit(positive, means, spread, np.random.default_rng(1), rule=RULES["part"])
    for number, (look, centres, gamma) in enumerate(found.kernels):
        values, vectors = np.linalg.eigh(gaussian_kernel(centres, centres, gamma).astype(float))
        root = vectors / np.sqrt(values + ROUNDING * len(centres))
        p, u = (
            gaussian_kernel(see(x, look, spread), centres, gamma) @ root for x in (positive, means)
        )
        plain = solve(p.mean(axis=0)[None], u, STRENGTHS)[:, 0] @ u.T
        scale = (plain * found.unlabeled[number]).sum(axis=1) / np.square(plain).sum(axis=1)
        np.testing.assert_allclose(found.unlabeled[number], plain * scale[:, None], atol=5e-3)


def test_a_fold_is_scored_as_by_a_fit_without_it() -> None:
    """The same kernels, and positives that differ: what a fold scores is what it scores alone."""
    means = some_means(200)
    positive = {w: m[:30] + 1.5 for w, m in means.items()}
    fold = np.arange(30) // 15
    apart = np.stack([fold == 1, (fold == 0) & (np.arange(30) > 3)])
    spread = np.ones(4, np.float32)
    found = fit(
        positive,
        means,
        spread,
        np.random.default_rng(1),
        rule=RULES["part"],
        folds=Folds(fold, apart),
    )
    for number, (look, centres, gamma) in enumerate(found.kernels):
        basis = _basis(centres, gamma)
        p, u = (
            gaussian_kernel(see(x, look, spread), centres, gamma) @ basis for x in (positive, means)
        )
        plain = np.empty((len(STRENGTHS), 30))
        for k in (0, 1):
            weights = solve(p[apart[k]].mean(axis=0)[None], u, STRENGTHS)[:, 0]
            plain[:, fold == k] = weights @ p[fold == k].T
        scale = (plain / found.judged[number]).mean(axis=1, keepdims=True)
        np.testing.assert_allclose(plain, found.judged[number] * scale, rtol=1e-3, atol=1e-4)


def test_known_negatives_are_pushed_down() -> None:
    means = some_means(300)
    positive = {w: m[:40] + 1 for w, m in means.items()}
    negative = {w: m[40:50] + 1 for w, m in means.items()}
    spread = np.ones(4, np.float32)
    scores = []
    for known in (None, negative):
        found = fit(
            positive, means, spread, np.random.default_rng(1), rule=RULES["part"], negative=known
        )
        ratio = found.by(RULES["part"])
        scores.append(np.mean([m(see(negative, m.look, spread)) for m in ratio.machines]))
    assert scores[1] < 0.7 * scores[0]


def test_of_many_negatives_few_are_kernels() -> None:
    data = synthetic(height=60, width=60, fields=20, seed=1)
    positives = labelled(data, 30, 0)
    everywhere_else = data.truth != 1
    model = fit_ratio(data.scene, positives, negatives=everywhere_else, coverage="patch")
    assert model.training["negatives"] == everywhere_else.sum() > 2 * MOST_POSITIVES
    assert len(model.machines[0].centres) <= 30 + MOST_POSITIVES + 60 * 60 // EACH + 1
    scores = model.score(data.scene)
    assert scores[data.truth == 1].mean() > 2 * scores[everywhere_else].mean()


def test_labels_far_from_everything_can_be_fitted() -> None:
    """Of a kernel around them in single precision rounding would make no kernel at all."""
    rng = np.random.default_rng(0)
    centres = np.concatenate([rng.normal(0, 0.05, (300, 60)), rng.normal(60, 0.05, (100, 60))])
    basis = _basis(centres.astype(np.float32), 1.0)
    assert np.isfinite(basis).all()
    exact = gaussian_kernel(centres, centres, 1.0)
    np.testing.assert_allclose(basis.T @ exact @ basis, np.eye(400), atol=0.05)


def test_negatives_add_to_the_moments() -> None:
    rng = np.random.default_rng(0)
    mean, unlabeled, negative = rng.normal(size=(1, 4)), rng.normal(size=(50, 4)), np.eye(4)[:2]
    moments = unlabeled.T @ unlabeled / 50 + NEGATIVES * np.diag([0.5, 0.5, 0, 0])
    plain = np.linalg.solve(moments + 1e-2 * np.eye(4), mean[0])
    np.testing.assert_allclose(solve(mean, unlabeled, (1e-2,), negative)[0, 0], plain)


@pytest.mark.learning
def test_it_learns_fields_from_forty_labels(seed: int) -> None:
    data = synthetic(height=64, width=64, fields=40, separation=0.6, seed=seed)
    positives = labelled(data, 40, seed)
    model = fit_ratio(data.scene, positives, seed=seed)
    scores = evaluate(model.score(data.scene), data.truth == 1, ~positives)
    assert scores.f1 > 80
    assert scores.auc > 95


@pytest.mark.learning
def test_labels_from_one_half_find_the_class_in_the_other(seed: int) -> None:
    data = synthetic(height=64, width=96, fields=60, separation=0.6, seed=seed)
    left = np.arange(96) < 48
    positives = labelled(data, 40, seed, np.broadcast_to(left, (64, 96)))
    model = fit_ratio(data.scene, positives, seed=seed)
    assert model.training["coverage"] != "all"
    other = np.broadcast_to(~left, (64, 96))
    scores = evaluate(model.score(data.scene), data.truth == 1, other)
    assert scores.recall > 50
    assert scores.f1 > 62


def test_the_same_seed_gives_the_same_bits_whatever_the_order_of_labels(
    field_scene: Dataset, few_positives: Mask
) -> None:
    pairs = np.argwhere(few_positives)
    maps = [
        fit_ratio(field_scene.scene, labels, seed=seed).score(field_scene.scene)
        for labels, seed in ((few_positives, 0), (pairs[::-1], 0), (few_positives, 1))
    ]
    assert np.array_equal(maps[0], maps[1])
    assert not np.array_equal(maps[0], maps[2])


def test_tiles_give_the_map_of_the_whole_scene(field_scene: Dataset, few_positives: Mask) -> None:
    valid = np.ones(field_scene.scene.shape, dtype=bool)
    valid[4:9, 3:11] = False
    scene = Scene(field_scene.scene.cube, valid)
    model = fit_ratio(scene, few_positives & valid)
    whole, tiled = model.score(scene), model.score(scene, tile=8)
    assert np.array_equal(np.isnan(whole), ~valid)
    assert np.allclose(whole[valid], tiled[valid], atol=1e-5)


def test_what_nodata_holds_has_no_say(field_scene: Dataset, few_positives: Mask) -> None:
    valid = np.ones(field_scene.scene.shape, dtype=bool)
    valid[10:, :7] = False
    cube = field_scene.scene.cube.copy()
    cube[:, ~valid] = 1e6
    maps = [
        fit_ratio(scene, few_positives & valid).score(scene)
        for scene in (Scene(field_scene.scene.cube, valid), Scene(cube, valid))
    ]
    assert np.array_equal(maps[0], maps[1], equal_nan=True)


def test_a_large_scene_is_learnt_from_windows_as_well_as_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = synthetic(height=100, width=90, fields=60, seed=2)
    positives = labelled(data, 60, 0)
    monkeypatch.setattr(thonecls.ratio.model, "WINDOWS_OF_SCENE", 40)
    scores = {}
    for name, pixels in (("whole", 2**18), ("windows", 1000)):
        monkeypatch.setattr(thonecls.ratio.model, "WHOLE", pixels)
        assert (name == "whole") == (pixels * (60 // data.scene.bands) >= 9000)
        model = fit_ratio(data.scene, positives, coverage="part")
        assert model.training["positives"] == 60
        scores[name] = evaluate(model.score(data.scene), data.truth == 1, ~positives)
    assert scores["windows"].auc > 95
    assert abs(scores["windows"].f1 - scores["whole"].f1) < 10


def test_a_model_comes_back_from_its_file_as_it_was(
    field_scene: Dataset, few_positives: Mask, tmp_path: Path
) -> None:
    model = fit_ratio(field_scene.scene, few_positives)
    spectra = field_scene.scene.cube.reshape(field_scene.scene.bands, -1).T
    model = replace(model, wavelengths=(1.0, 2, 3, 4, 5, 6), novelty=fit_novelty(spectra))
    model.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert isinstance(again, RatioModel)
    assert again.difference == model.difference > 0
    assert again.wavelengths == model.wavelengths
    assert again.training == model.training
    assert again.novelty is not None
    assert np.array_equal(again.score(field_scene.scene), model.score(field_scene.scene))
    with pytest.raises(ModelError, match="is a ratio model, where a model is needed"):
        Model.load(tmp_path / "model.safetensors")


def test_networks_and_ratios_are_told_apart_by_their_files(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, tmp_path: Path
) -> None:
    import torch

    network = fit_network(
        field_scene.scene, few_positives, config=tiny, generator=torch.Generator().manual_seed(0)
    )
    network.save(tmp_path / "network.safetensors")
    assert isinstance(load_model(tmp_path / "network.safetensors"), Model)
    save(tmp_path / "other.safetensors", "checkpoint", {}, {"a": torch.zeros(1)})
    with pytest.raises(ModelError, match="is a checkpoint, where a model is needed"):
        load_model(tmp_path / "other.safetensors")
    (tmp_path / "text.safetensors").write_text("no model at all, but some words")
    with pytest.raises(ModelError, match=r"not a thonecls model"):
        load_model(tmp_path / "text.safetensors")
    with pytest.raises(ModelError, match="cannot read"):
        load_model(tmp_path / "none.safetensors")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_labels_give_a_map(field_scene: Dataset, count: int) -> None:
    positives = labelled(field_scene, count, 0)
    model = fit_ratio(field_scene.scene, positives)
    probability = model.score(field_scene.scene)
    assert np.isfinite(probability).all()
    assert probability[positives].mean() > probability.mean()


def test_a_scene_of_a_few_pixels_with_a_constant_band_gives_a_map() -> None:
    cube = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    cube[1] = 7
    mask = np.zeros((4, 3), dtype=bool)
    mask[0, :2] = True
    scene = as_scene(cube)
    assert np.isfinite(fit_ratio(scene, mask).score(scene)).all()


def test_labels_on_nodata_are_left_out_and_refused_if_there_are_no_others(
    field_scene: Dataset, few_positives: Mask
) -> None:
    valid = np.ones(field_scene.scene.shape, dtype=bool)
    valid.flat[np.flatnonzero(few_positives)[:3]] = False
    scene = Scene(field_scene.scene.cube, valid)
    assert fit_ratio(scene, few_positives).training["positives"] == few_positives.sum() - 3
    with pytest.raises(LabelError, match="no label lies on a valid pixel"):
        fit_ratio(Scene(field_scene.scene.cube, ~few_positives), few_positives)


def test_where_labels_lie_decides_how_freely_it_fits() -> None:
    rng = np.random.default_rng(0)
    shape = (200, 300)
    everywhere = np.unique(rng.integers(0, 60_000, 100))
    assert coverage_of(everywhere, shape) == "all"
    assert coverage_of(everywhere[everywhere < 30_000], shape) == "part"
    rows, columns = np.mgrid[50:60, 70:80]
    assert coverage_of((rows * 300 + columns).ravel(), shape) == "patch"
    two = np.concatenate([(rows * 300 + columns).ravel(), ((rows + 90) * 300 + 200).ravel()])
    assert coverage_of(two, shape) == "patch"  # in every half, but two places are not all over
    fields = np.zeros(shape, dtype=bool)
    for row in (20, 60, 100):
        for column in (30, 90):
            fields[row : row + 8, column : column + 8] = True
    assert coverage_of(np.flatnonzero(fields), shape) == "part"  # polygons of many fields
    sparse = ((rows[::2, ::2] - 55) * 5 + 90) * 300 + (columns[::2, ::2] - 75) * 5 + 90
    assert coverage_of(sparse.ravel(), shape) == "part"
    near = ((rows[::2, ::2] - 55) * 2 + 90) * 300 + (columns[::2, ::2] - 75) * 2 + 90
    assert coverage_of(near.ravel(), shape) == "patch"  # few and apart, but all in one place


def test_labels_that_are_a_fair_sample_are_rarely_called_unfair() -> None:
    """However the class lies, the outermost of n labels leaves 1 / (n + 1) of it on a side."""
    rng = np.random.default_rng(0)
    shape, left, unfair = (400, 300), [], []
    for _ in range(400):
        middles = rng.integers([150, 100], [250, 200], size=(rng.integers(1, 6), 2))
        near = middles[rng.integers(len(middles), size=400)] + rng.normal(0, 15, (400, 2))
        at, labels = np.split(np.rint(near).astype(np.int64), [320])
        found = beyond_labels(np.ones(len(at)), at, labels, shape, len(labels))
        left.append(found.share)
        unfair.append(found.fair is False)
    assert 1 / 81 < np.mean(left) < 4 / 81  # the worst of four sides
    assert np.mean(unfair) < 4 * CHANCE


@given(st.integers(0, 4), st.integers(4, 8), st.integers(1, 6))
def test_the_chance_that_pixels_lie_beyond_labels_is_counted(
    beyond: int, pixels: int, labels: int
) -> None:
    """Of all orders of pixels and labels, those in which pixels alone come first."""
    orders = list(itertools.combinations(range(pixels + labels), labels))
    plain = np.mean([order[0] >= beyond for order in orders])
    assert chance_beyond(beyond, pixels, labels) == pytest.approx(plain)


def test_what_lies_beyond_labels_is_counted_on_the_worst_side() -> None:
    shape = (100, 100)
    at = np.stack(np.divmod(np.arange(10_000), 100), axis=1)
    inside, right = at[:, 1] < 60, at[:, 1] >= 80
    scores = np.where(inside | right, 0.9, 0.1)
    labels = at[inside][::7]
    assert beyond_labels(scores, at, labels, shape, len(labels)) == (0.25, "right of", False)
    assert beyond_labels(np.where(inside, 0.9, 0.1), at, labels, shape, 100) == (0, "above", True)
    # Few pixels, narrow strips and what few labels leave by chance tell nothing.
    few = np.full(10_000, 0.1)
    few[np.flatnonzero(right)[: FEWEST_LIKE - 1]] = 0.9
    assert beyond_labels(few, at, labels, shape, 100) == (1, "right of", None)
    narrow = at[at[:, 1] < 100 - EDGE * 100]
    assert beyond_labels(np.ones(10_000), at, narrow, shape, len(narrow)).share == 0
    assert beyond_labels(scores, at, labels, shape, 5).fair


def test_the_rule_follows_what_lies_beyond_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, ends, unknown = (Beyond(0.3, "above", fair) for fair in (False, True, None))
    windows_know: dict[str, float] = {"share": 0.0}
    monkeypatch.setattr(Fitted, "near_share", lambda self: windows_know["share"])
    none = np.zeros((0, 4, 0))
    fitted = Fitted((), (), none, none, none, none)
    assert rule_by(goes_on, "all", 30, fitted) == ("part", RULES["part"])
    assert rule_by(goes_on, "part", 30, fitted) == ("part", RULES["part"])
    assert rule_by(ends, "all", 30, fitted) == ("all", RULES["all"])
    assert rule_by(ends, "part", 30, fitted) == ("part", FAIR_PART)
    assert rule_by(ends, "part", 9, fitted) == ("part", RULES["part"])  # too few places to tell
    assert rule_by(unknown, "part", 30, fitted) == ("part", RULES["part"])
    # Labels that are sparse in a patch; of few of them chance leaves much beyond.
    hardly = Beyond(0.02, "above", True)
    assert rule_by(hardly, "patch", 4, fitted) == ("part", FAIR_PART)
    for beyond in (goes_on, unknown, ends):
        assert rule_by(beyond, "patch", 4, fitted) == ("patch", RULES["patch"])
    windows_know["share"] = 0.7
    assert rule_by(ends, "part", 30, fitted) == ("part", RULES["part"])
    assert rule_by(hardly, "patch", 4, fitted) == ("patch", RULES["patch"])


def fields_and_look_alikes(seed: int) -> tuple[FloatArray, BoolArray, list[tuple[int, int]]]:
    """Spectra, where the class is, and the corners of its nine fields; as many are like them."""
    spectra = np.random.default_rng(seed).normal(size=(6, 132, 132)).astype(np.float32)
    of_class = np.zeros(spectra.shape[1:], dtype=bool)
    corners = []
    for number in range(18):
        row, column = 10 + number // 4 * 25, 10 + number % 4 * 30
        field = slice(row, row + 14), slice(column, column + 14)
        spectra[:2, *field] += 3 if number % 2 else 2
        if number % 2:
            of_class[field] = True
            corners.append((row, column))
    return spectra, of_class, corners


@pytest.mark.learning
def test_polygons_in_many_fields_are_no_patch(seed: int) -> None:
    """They tell the class from what is like it, as scattered labels do."""
    spectra, of_class, corners = fields_and_look_alikes(seed)
    polygons = np.zeros_like(of_class)
    for row, column in corners[:7]:
        polygons[row + 1 : row + 6, column + 1 : column + 6] = True
    model = fit_ratio(as_scene(spectra), polygons, seed=seed)
    assert model.training["coverage"] == "part"
    assert evaluate(model.score(spectra), of_class, ~polygons).f1 > 85


def test_filled_polygons_all_over_are_left_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one a label is found by those beside it, and the cut would be too strict."""
    monkeypatch.setattr(thonecls.ratio.model, "PIXELS", 2000)  # for the time it takes
    spectra, of_class, _ = fields_and_look_alikes(0)
    folds = []

    def spy(*given: Any, **options: Any) -> Fitted:
        folds.append(options["left_out"])
        return fit(*given, **options)

    monkeypatch.setattr(thonecls.ratio.model, "fit", spy)
    filled = np.flatnonzero(of_class)
    model = fit_ratio(as_scene(spectra), of_class)
    assert model.training["coverage"] == "all"
    blocks = blocks_of(filled, of_class.shape)
    assert all(len(np.unique(folds[0][blocks == block])) == 1 for block in np.unique(blocks))
    assert np.unique(folds[0]).tolist() == list(range(FOLDS))
    some = np.sort(np.random.default_rng(0).choice(filled, filled.size // 2, replace=False))
    scattered = np.zeros_like(of_class)
    scattered.flat[some] = True
    fit_ratio(as_scene(spectra), scattered)
    assert folds[-1] is None
    monkeypatch.setattr(thonecls.ratio.model, "POSITIVES", 500)  # of more a part, less filled
    fit_ratio(as_scene(spectra), of_class)
    assert np.unique(folds.pop()).tolist() == list(range(FOLDS))


def test_labels_in_clumps_tell_by_places_what_windows_are_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thonecls.ratio.model, "PIXELS", 2000)  # for the time it takes
    spectra, of_class, _ = fields_and_look_alikes(0)
    scattered = np.zeros_like(of_class)
    scattered.flat[np.flatnonzero(of_class)[::9]] = True
    least, by = [], Fitted.by

    def spy(self: Fitted, rule: Rule, least_near: float = 0.0) -> Ratio:
        least.append(least_near)
        return by(self, rule, least_near)

    monkeypatch.setattr(Fitted, "by", spy)
    monkeypatch.setattr(Fitted, "near_share", lambda self: 0.3)
    for labels in (of_class, scattered):
        model = fit_ratio(as_scene(spectra), labels, coverage="all")
        assert model.training["config"]["single_pixels"] >= least[-1]
    assert least == [0.3, 0.0]


def test_where_very_many_labels_lie_is_told_by_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fit takes a part of them, which is not as crowded."""
    spectra = np.random.default_rng(0).normal(size=(3, 120, 120)).astype(np.float32)
    plot = np.zeros((120, 120), dtype=bool)
    plot[20:80, 20:80] = True
    spectra[0, plot] += 3
    groups = []

    def spy(*given: Any, **options: Any) -> Fitted:
        groups.append(options["groups"])
        return fit(*given, **options)

    monkeypatch.setattr(thonecls.ratio.model, "fit", spy)
    monkeypatch.setattr(thonecls.ratio.model, "POSITIVES", 500)
    fit_ratio(as_scene(spectra), plot)
    thinned = np.random.default_rng(0).choice(np.flatnonzero(plot), 500, replace=False)
    assert not are_crowded(np.sort(thinned), plot.shape)
    assert all(found is not None for found in groups)


@pytest.mark.learning
def test_one_label_maps_what_is_like_it(seed: int) -> None:
    """Nothing is left out, so that nothing tells which penalties are too large for the class."""
    data = synthetic(height=60, width=60, bands=12, fields=8, seed=3)
    label = np.zeros(data.truth.shape, dtype=bool)
    pixels = np.flatnonzero(data.truth == 1)
    label.flat[pixels[len(pixels) // 2]] = True
    found = fit_ratio(data.scene, label, seed=seed).score(data.scene)
    assert (found[label] > 0.5).all()
    assert evaluate(found, data.truth == 1).f1 > 50


@pytest.mark.learning
def test_sparse_labels_of_a_class_that_fills_one_field_are_a_fair_sample(seed: int) -> None:
    """As many side by side may be a plot of a class that goes on."""
    rng = np.random.default_rng(seed)
    spectra = rng.normal(size=(6, 100, 100)).astype(np.float32)
    field = np.zeros((100, 100), dtype=bool)
    field[40:64, 40:62] = True
    spectra[:2, field] += 3
    sparse, plot = np.zeros((2, 100, 100), dtype=bool)
    sparse.flat[rng.choice(np.flatnonzero(field), 90, replace=False)] = True
    plot[45:55, 45:54] = True
    model = fit_ratio(as_scene(spectra), sparse, seed=seed)
    assert model.training["coverage"] == "part"
    assert model.training["beyond"]["fair"]
    assert evaluate(model.score(spectra), field, ~sparse).f1 > 90
    dense = fit_ratio(as_scene(spectra), plot, seed=seed).training
    assert dense["coverage"] == "patch"
    assert "beyond" not in dense
    few = np.zeros_like(plot)
    few[[45, 50, 52], [50, 44, 57]] = True
    assert fit_ratio(as_scene(spectra), few, seed=seed).training["coverage"] == "patch"


def test_pixels_from_windows_of_a_large_scene_are_known_by_their_place() -> None:
    rows, columns = np.mgrid[:90, :120].astype(np.float32)
    scene = as_scene(np.stack([rows, columns]))
    pool = build_pool(
        scene,
        np.array([5000]),
        side=16,
        components=0,
        rng=np.random.default_rng(0),
        whole=100,
        windows=20,
        margin=3,
    )
    pool = replace(pool, statistics=replace(pool.statistics, axes=np.eye(2, dtype=np.float32)))
    _, of_u, at, _ = sample(pool, 200, [1], np.random.default_rng(1), np.ones(1, bool))
    place = of_u[1] * pool.statistics.std + pool.statistics.mean
    np.testing.assert_allclose(place, at, atol=1e-3)
    assert len(np.unique(at, axis=0)) > 150


@pytest.mark.parametrize("refused", [0, 500])
def test_of_many_pixels_those_most_like_the_class_are_drawn(refused: int) -> None:
    """A rare class is seen whole, the rest stands for all of it, whatever is known not to be it."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1, 100, 100)).astype(np.float32)
    values[0, 40:43, 40:50] = 20  # the class
    scene = as_scene(np.concatenate([values, values[:, ::-1]]))
    label, others = np.array([40 * 100 + 40]), np.arange(refused)
    pool = build_pool(
        scene, label, side=16, components=2, rng=rng, axes=whitened_axes, others=others
    )
    of_class = np.isin(pool.pixels, label)
    _, _, at, sampling = sample(pool, 1000, [1], np.random.default_rng(1), of_class)
    assert sampling is not None
    assert sampling.mean() == pytest.approx(1, abs=1e-5)
    drawn = ((at >= [40, 40]) & (at < [43, 50])).all(axis=1)
    assert drawn.sum() == 30
    assert sampling[drawn].sum() / len(at) == pytest.approx(30 / 10_000, rel=1e-4)
    assert len(np.unique(at, axis=0)) == len(at) == 1000
    # Where there are hardly more pixels than are drawn, all are alike.
    assert sample(pool, 6000, [1], np.random.default_rng(1), of_class)[3] is None


def test_pixels_that_stand_for_several_count_as_often() -> None:
    rng = np.random.default_rng(0)
    scores, times = rng.random(300), rng.integers(1, 6, 300)
    times[scores > 0.45] = 1  # so that those that are mapped stand for fewer
    weights = (times / times.mean()).astype(np.float32)
    repeated, left = np.repeat(scores, times), rng.random(40) / 2 + 0.5
    apart = np.where(scores > 0.9, scores, scores / 2)
    mapped = np.where(scores > 0.9, 30, 1)  # the class counts for so much that its map grows little
    plain, weighted = gap_cut(np.repeat(apart, mapped)), gap_cut(apart, mapped.astype(np.float32))
    assert weighted == plain != gap_cut(apart)
    alone, often = (evaluate_pu(left, others) for others in (scores, repeated))
    told = evaluate_pu(left, scores, weights=weights)
    assert told.pauc == pytest.approx(often.pauc) != alone.pauc
    assert told.share == pytest.approx(often.share)
    np.testing.assert_allclose(share_below(left, scores, weights), share_below(left, repeated))
    assert share_below(left, repeated).mean() == pytest.approx(often.pauc / 100)
    assert bbe(left, scores, weights=weights) == pytest.approx(bbe(left, repeated), abs=1e-3)
    assert abs(bbe(left, scores) - bbe(left, repeated)) > 0.05
    ratios = [
        Ratio((), left, left, others, 0.0, sampling)
        for others, sampling in ((scores, weights), (repeated, None))
    ]
    assert fair_cut(ratios[0]) == pytest.approx(fair_cut(ratios[1]), abs=0.01)


def test_what_lies_beyond_labels_counts_for_what_it_stands_for() -> None:
    rng = np.random.default_rng(0)
    scores, times = rng.random(400), rng.integers(1, 5, 400)
    weights = (times / times.mean()).astype(np.float32)
    at = np.stack([rng.integers(0, 100, 400), np.full(400, 50)], axis=1)
    labels = np.array([[0, 50], [59, 50]])
    plain = beyond_labels(
        np.repeat(scores, times), np.repeat(at, times, axis=0), labels, (100, 100), 50
    )
    told = beyond_labels(scores, at, labels, (100, 100), 50, weights)
    assert told.share == pytest.approx(plain.share)
    assert told.share != beyond_labels(scores, at, labels, (100, 100), 50).share
    assert told[1:] == plain[1:] == ("below", False)
    # Few that stand for many tell less than many would.
    heavy = np.where(np.arange(400) < 5, 1e3, 1e-3).astype(np.float32)
    assert beyond_labels(scores, at, labels, (100, 100), 50, heavy).fair is None


@pytest.mark.parametrize("pixels", [1500, 20_000])
def test_a_fit_knows_how_many_pixels_each_stands_for(
    pixels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 32,400 pixels 1,500 are a small part, in which those most like a label stand for few."""
    monkeypatch.setattr(thonecls.ratio.model, "PIXELS", pixels)
    seen: list[FloatArray | None] = []

    def spy(*given: Any, **options: Any) -> Fitted:
        seen.append(options["sampling"])
        return fit(*given, **options)

    monkeypatch.setattr(thonecls.ratio.model, "fit", spy)
    cube = np.random.default_rng(0).normal(size=(3, 180, 180)).astype(np.float32)
    labels = np.zeros((180, 180), dtype=bool)
    labels[40:140:10, 40:140:20] = True
    model = fit_ratio(as_scene(cube), labels, coverage="part")
    assert model.training["unlabeled"] == pixels
    sampling = seen[-1]
    if pixels == 20_000:
        assert sampling is None
    else:
        assert sampling is not None
        kinds, counts = np.unique(sampling, return_counts=True)
        assert counts.tolist() == [375, 1125]
        assert kinds[1] / kinds[0] == pytest.approx((32_400 - 375) / 1125, rel=0.01)


def test_a_fit_of_weighted_pixels_is_that_of_repeated_ones() -> None:
    rng = np.random.default_rng(0)
    look = {1: rng.normal(size=(300, 3)).astype(np.float32)}
    times = rng.integers(1, 4, 300)
    weights = (times / times.mean()).astype(np.float32)
    repeated = {1: np.repeat(look[1], times, axis=0)}
    labels = {1: (rng.normal(size=(30, 3)) + 1).astype(np.float32)}
    rule = RULES["patch"]._replace(looks=(Look((1,), 0.0),), centres=0)
    spread = np.ones(3, np.float32)
    whole = fit(labels, repeated, spread, np.random.default_rng(1), rule=rule)
    short = fit(labels, look, spread, np.random.default_rng(1), rule=rule, sampling=weights)
    np.testing.assert_allclose(short.held_out, whole.held_out, rtol=1e-3)
    np.testing.assert_allclose(
        np.repeat(short.unlabeled, times, axis=2), whole.unlabeled, rtol=1e-3, atol=1e-3
    )


def test_windows_of_a_large_scene_hold_all_that_is_averaged_over() -> None:
    """Means about labels and drawn pixels are those of the whole scene, also at its corners."""
    scene = as_scene(np.random.default_rng(0).normal(size=(2, 90, 120)))
    # Two at corners of the scene, and some that share a window at its full reach.
    labels = np.array([0, 5000, 5003, 5000 + 16 * 120, 5016, 5000 - 16 * 121, 10799])
    pool = build_pool(
        scene,
        labels,
        side=(14, 30),
        components=0,
        rng=np.random.default_rng(0),
        whole=100,
        windows=20,
        margin=5,
        about=5,
    )
    pool = replace(pool, statistics=replace(pool.statistics, axes=np.eye(2, dtype=np.float32)))
    of_p, of_u, at, _ = sample(
        pool, 200, [3, 11], np.random.default_rng(1), np.ones(len(pool.labels), bool)
    )
    assert sorted(pool.pixels) == sorted(labels)
    whole = standardize(scene, pool.statistics)
    for window in (3, 11):
        plain = window_means(whole, scene.valid, window)
        by_label = plain.reshape(2, -1).T[pool.pixels]
        np.testing.assert_allclose(of_p[window], by_label, atol=1e-5)
        np.testing.assert_allclose(of_u[window], plain[:, at[:, 0], at[:, 1]].T, atol=1e-5)


def test_many_pixels_that_are_not_the_class_take_no_place_of_labels() -> None:
    scene = as_scene(np.random.default_rng(0).normal(size=(2, 300, 300)))
    at = np.random.default_rng(1).permutation(90_000)
    labels, others = np.sort(at[:12]), np.sort(at[12:3000])
    pool = build_pool(
        scene,
        labels,
        side=16,
        components=0,
        rng=np.random.default_rng(0),
        whole=100,
        windows=12,
        others=others,
        about=3,
    )
    assert set(labels) <= set(pool.pixels.tolist())
    assert len(set(pool.pixels.tolist()) & set(others)) > 50
    values = np.array([pool.parts[p].features[:, r, c] for p, r, c in pool.labels])
    whole = standardize(scene, pool.statistics).reshape(2, -1).T
    np.testing.assert_allclose(values, whole[pool.pixels], atol=1e-5)


@pytest.mark.learning
def test_whether_labels_are_a_fair_sample_is_told_by_what_lies_beyond_them(seed: int) -> None:
    """Of a class in the left of a scene alone, and of one that is all over it."""
    data = synthetic(height=96, width=160, fields=90, separation=0.8, seed=seed)
    left = np.broadcast_to(np.arange(160) < 64, (96, 160))
    positives = labelled(data, 80, seed, left)
    goes_on = fit_ratio(data.scene, positives, seed=seed)
    assert goes_on.training["coverage"] == "part"
    assert goes_on.training["beyond"]["side"] == "right of"
    assert goes_on.training["beyond"]["fair"] is False
    assert "lies right of all of them" in goes_on.training["threshold_reason"]
    assert goes_on.training["config"]["single_pixels"] >= 0.5
    nowhere_else = data.scene.cube.copy()
    elsewhere = (data.truth == 1) & ~left
    others = np.flatnonzero(data.truth.ravel() == 2)
    drawn = np.random.default_rng(seed).choice(others, int(elsewhere.sum()))
    nowhere_else[:, elsewhere] = nowhere_else.reshape(len(nowhere_else), -1)[:, drawn]
    fair = fit_ratio(nowhere_else, positives, seed=seed)
    assert fair.training["coverage"] == "part"  # that is where labels lie
    assert fair.training["beyond"]["fair"]
    assert fair.training["config"]["strengths"] == list(FAIR_PART.strengths)
    assert (fair.cut, fair.training["threshold_reason"]) == (
        FAIR_PART.cut,
        f"{FAIR_PART.reason}, as {FAIR_PART.why}",
    )
    told = fit_ratio(nowhere_else, positives, seed=seed, coverage="part")
    assert told.training["config"]["strengths"] == list(RULES["part"].strengths)


def test_the_cut_is_in_the_model_with_its_reason(field_scene: Dataset, few_positives: Mask) -> None:
    for name, rule in RULES.items():
        model = fit_ratio(field_scene.scene, few_positives, coverage=name)
        assert model.training["threshold_reason"].startswith(rule.reason)
        assert "were said to come from" in model.training["threshold_reason"]
        assert "beyond" not in model.training  # what was told is not put to a test
        assert model.threshold == 0.5
        if isinstance(rule.cut, float):
            assert model.cut == rule.cut
        assert 0 < model.cut < 1
        assert model.halo == windows_of(looks_of(rule))[-1] // 2 + REACH
    with pytest.raises(ConfigError, match="must be all, part or patch"):
        fit_ratio(field_scene.scene, few_positives, coverage="most")  # type: ignore[arg-type]


def test_components_are_white_and_their_spread_is_known(
    field_scene: Dataset, few_positives: Mask
) -> None:
    statistics = fit_ratio(field_scene.scene, few_positives).statistics
    assert statistics.axes is not None
    assert len(statistics.axes) == field_scene.scene.bands
    assert (np.diff(spread_of(statistics)) <= 1e-6).all()


def test_answers_from_elsewhere_count_for_a_part_of_all_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two of them are enough: labels no longer come from a patch alone."""
    data = synthetic(height=60, width=50, fields=30, seed=2)
    of_class = np.argwhere(data.truth == 1)
    first = of_class[np.abs(of_class - of_class[0]).max(axis=1) < 12][:20]
    positives, answers = np.zeros((2, *data.truth.shape), dtype=bool)
    positives[tuple(first.T)] = True
    weights: list[FloatArray] = []

    def spy(*given: Any, **named: Any) -> Any:
        weights.append(named["weights"])
        return fit(*given, **named)

    monkeypatch.setattr(thonecls.ratio.model, "fit", spy)
    found = []
    for count in (0, 1, 2):
        for row, column in of_class[::-1][:count]:
            positives[row, column] = answers[row, column] = True
        model = fit_ratio(data.scene, positives, answers=answers)
        found.append(model.training["coverage"])
        assert sorted(weights[-1].tolist()) == pytest.approx([1.0] * 20 + [6.0] * count)
    assert found == ["patch", "patch", "part"]
    told = fit_ratio(data.scene, positives, answers=answers, coverage="patch")
    assert told.training["coverage"] == "patch"
