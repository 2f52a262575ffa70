"""The per-pixel methods: closed forms where they exist, and one set of facts for all of them."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from sklearn.svm import SVC, OneClassSVM

from thonecls.datasets import synthetic
from thonecls.errors import ConfigError, LabelError, ModelError, SceneError
from thonecls.extras import how_to_install
from thonecls.methods import METHODS, spectral, spectral_model
from thonecls.methods.spectral import (
    NETWORKS,
    SPECTRAL,
    QuickSVC,
    ScoreMap,
    Transform,
    coherence,
    filter_weights,
    scale_scores,
    spectral_angles,
    spread,
)
from thonecls.methods.spectral_model import SpectralModel, fit_spectral, gather, load_model
from thonecls.methods.spectral_networks import SETTINGS
from thonecls.metrics import evaluate
from thonecls.scene import Scene, as_scene
from thonecls.splits import Labels, draw_labels

EXTRAS = {"pu-bagging": "pulearn", "elkan-noto": "pulearn", "maxent": "elapid"}
EXTRAS |= {"puet-spectra": "numba"}
ON_SPECTRA = [f"{loss}-spectra" for loss in NETWORKS]
DATA = synthetic(height=30, width=32, bands=10, classes=4, separation=2.0, seed=5)
# Nodata in a corner and in some whole rows.
HOLES = np.zeros((30, 32), dtype=bool)
HOLES[:4, :5] = HOLES[15:18] = True
SCENE = Scene(DATA.scene.cube, ~HOLES)
TARGET = DATA.truth == 1


def some_labels(seed: int = 0, positives: int = 30) -> Labels:
    rng = np.random.default_rng(seed)
    mask = np.zeros(SCENE.shape, dtype=bool)
    mask.flat[rng.choice(np.flatnonzero(TARGET & SCENE.valid), positives, replace=False)] = True
    return draw_labels(mask, SCENE.valid, 300, rng)


LABELS = some_labels()


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Networks take a few steps: whether they learn is tested with the other methods."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"epochs": 2, "batches": 3}.items():
            patch.setitem(SETTINGS, name, value)
        yield


def options_of(name: str) -> dict[str, Any]:
    return {"prior": 0.35} if METHODS[name].needs_prior else {}


def needs_extra(name: str) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])


@cache
def score_map(name: str, seed: int = 0) -> ScoreMap:
    return SPECTRAL[name](SCENE, some_labels(seed), 3 + seed, **options_of(name))


every_method = pytest.mark.parametrize("name", SPECTRAL)


@pytest.mark.learning
@pytest.mark.parametrize("name", [name for name in SPECTRAL if name not in ON_SPECTRA])
def test_learns_an_easy_scene(name: str, seed: int) -> None:
    needs_extra(name)
    test = np.ones(SCENE.shape, dtype=bool)
    test.flat[some_labels(seed).positive] = False
    found = evaluate(score_map(name, seed), TARGET, test)
    assert found.f1 > 80
    assert found.auc > 95


@every_method
def test_a_map_has_the_scenes_shape_and_is_nan_exactly_on_nodata(name: str) -> None:
    needs_extra(name)
    scores = score_map(name)
    assert scores.dtype == np.float32
    assert scores.shape == SCENE.shape
    assert (np.isfinite(scores) == SCENE.valid).all()
    assert scores[SCENE.valid].min() >= 0
    assert scores[SCENE.valid].max() <= 1


@every_method
def test_same_seed_same_bits_and_the_order_of_labels_has_no_say(name: str) -> None:
    needs_extra(name)
    rng = np.random.default_rng(1)
    shuffled = Labels(rng.permutation(LABELS.positive), rng.permutation(LABELS.unlabeled))
    found = SPECTRAL[name](SCENE, shuffled, 3, **options_of(name))
    assert np.array_equal(found, score_map(name), equal_nan=True)


@every_method
def test_what_lies_on_nodata_and_constant_bands_change_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_extra(name)
    constant = np.full((2, *SCENE.shape), 7.3, dtype=np.float32)
    constant[1] = 0
    cube = np.concatenate([SCENE.cube[:4], constant, SCENE.cube[4:]])
    cube[:, HOLES] = np.nan
    monkeypatch.setattr(spectral, "CHUNK", 100)  # blocks of 3 rows, one of them without a pixel
    scores = SPECTRAL[name](Scene(cube, SCENE.valid), LABELS, 3, **options_of(name))
    np.testing.assert_allclose(scores, score_map(name), atol=1e-4)


@every_method
def test_labels_that_nothing_can_be_learnt_from_are_refused(name: str) -> None:
    needs_extra(name)
    none = Labels(LABELS.positive[:0], LABELS.unlabeled)
    with pytest.raises(LabelError, match="no positive pixel is labelled"):
        SPECTRAL[name](SCENE, none, **options_of(name))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("ocsvm", 2),
        ("isolation-forest", 2),
        ("biased-svm", 6),
        ("pu-bagging", 2),
        ("elkan-noto", 10),
        ("maxent", 6),
        ("vpu-spectra", 2),
        ("puet-spectra", 2),
    ],
)
def test_too_few_positives_are_refused_and_the_least_number_works(name: str, least: int) -> None:
    needs_extra(name)
    few = Labels(LABELS.positive[: least - 1], LABELS.unlabeled)
    with pytest.raises(LabelError, match=f"at least {least} positives. Got {least - 1} instead"):
        SPECTRAL[name](SCENE, few, **options_of(name))
    enough = Labels(LABELS.positive[:least], LABELS.unlabeled)
    assert np.isfinite(SPECTRAL[name](SCENE, enough, **options_of(name))[SCENE.valid]).all()


def test_a_one_class_svm_by_products_ranks_as_its_own_loop_does() -> None:
    samples = SPECTRAL["ocsvm"].learn(SCENE, LABELS)
    positive, others = samples.positive, samples.unlabeled
    gamma = 1 / (positive.shape[1] * positive.var())
    own = OneClassSVM(nu=0.1, gamma=gamma).fit(positive).score_samples(others)
    ours = SPECTRAL["ocsvm"].fit(samples, 0).score(others)
    assert (np.diff(ours[np.argsort(own)]) > -1e-12).all()


@pytest.mark.parametrize("name", ["sam", "matched-filter", "cem", "ace", "ocsvm"])
def test_the_threshold_keeps_its_promise_on_pixels_never_seen(name: str) -> None:
    found = []
    for seed in range(8):
        labels = some_labels(seed)
        unseen = TARGET & SCENE.valid
        unseen.flat[labels.positive] = False
        found.append((SPECTRAL[name](SCENE, labels, seed)[unseen] > 0.5).mean())
    # Without held-out positives the matched filter finds 0.76 of them.
    assert 0.8 < np.mean(found) < 0.98


@pytest.mark.learning
@pytest.mark.parametrize("name", ["sam", "matched-filter", "cem", "ace"])
def test_one_reference_spectrum_is_enough_for_the_classics(name: str, seed: int) -> None:
    labels = some_labels(seed)
    one = Labels(labels.positive[:1], labels.unlabeled)
    scores = SPECTRAL[name](SCENE, one)
    assert scores.flat[one.positive[0]] > 0.5
    assert evaluate(scores, TARGET).auc > 90


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_extra_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, EXTRAS[name], None)
    rule = f"{name} needs {EXTRAS[name]}: {how_to_install(EXTRAS[name])}"
    with pytest.raises(ConfigError, match=re.escape(rule)):
        SPECTRAL[name](SCENE, LABELS, **options_of(name))


def test_spectral_angles_are_arccos_and_do_not_depend_on_brightness() -> None:
    spectra = np.array([[1.0, 0.0, 0.0], [0.0, 5.0, 0.0], [3.0, 3.0, 0.0], [-1.0, 0.0, 0.0]])
    target = np.array([[2.0, 0.0, 0.0]])
    degrees = np.rad2deg(spectral_angles(spectra, target))[:, 0]
    np.testing.assert_allclose(degrees, [0, 90, 45, 180], atol=1e-6)
    dark = spectral_angles(np.zeros((1, 3)), target)  # a black pixel points nowhere
    np.testing.assert_allclose(dark, np.pi / 2)


def test_sam_maps_the_same_pixels_at_any_brightness() -> None:
    light = np.random.default_rng(0).uniform(0.2, 5, SCENE.shape).astype(np.float32)
    bright = Scene(SCENE.cube * light, SCENE.valid)
    before, after = (SPECTRAL["sam"](s, LABELS, nearest=True) > 0.5 for s in (SCENE, bright))
    assert (before == after).mean() > 0.995


@pytest.mark.learning
def test_the_nearest_angle_maps_more_than_the_labelled_pixels_themselves(seed: int) -> None:
    found = evaluate(SPECTRAL["sam"](SCENE, some_labels(seed), nearest=True), TARGET)
    assert found.recall > 80


def test_the_matched_filter_is_1_on_the_target_and_0_on_the_background() -> None:
    rng = np.random.default_rng(2)
    background, target = rng.normal(3, size=(50, 80)), rng.normal(size=80)
    mean = background.mean(axis=0)
    weights = filter_weights(target - mean, spread(background - mean))
    assert (target - mean) @ weights == pytest.approx(1)
    assert ((background - mean) @ weights).mean() == pytest.approx(0, abs=1e-12)


def test_cem_is_1_on_the_target_and_of_least_energy() -> None:
    rng = np.random.default_rng(3)
    background, target = rng.normal(1, size=(400, 6)), rng.normal(size=6)
    weights = filter_weights(target, spread(background))
    assert target @ weights == pytest.approx(1)
    correlation = spread(background)
    for _ in range(20):  # any other filter that gives 1 lets more of the background through
        other = rng.normal(size=6)
        other /= target @ other
        assert weights @ correlation @ weights <= other @ correlation @ other


def test_ace_does_not_change_with_the_length_of_a_mean_removed_spectrum() -> None:
    rng = np.random.default_rng(4)
    spectra, target, background = rng.normal(size=(9, 5)), rng.normal(size=5), np.diag(range(1, 6))
    once, longer = (
        coherence(spectra, target, background),
        coherence(7 * spectra, target, background),
    )
    np.testing.assert_allclose(once, longer)
    ends = coherence(np.stack([target, -target, 0 * target]), target, background)
    np.testing.assert_allclose(ends, [1, -1, 0])


@pytest.mark.parametrize(("recall", "mapped"), [(0.9, 90), (0.5, 50), (1.0, 100)])
def test_a_share_of_the_positives_lies_above_the_threshold(recall: float, mapped: int) -> None:
    raw = np.random.default_rng(6).normal(size=(20, 20)) * 1e3
    positive = raw[:5].ravel()
    scores = scale_scores(raw, positive, float(raw.std()), recall)
    assert int((scores[:5] > 0.5).sum()) == mapped
    assert (np.argsort(scores, axis=None) == np.argsort(raw, axis=None)).all()


def test_scores_that_are_all_alike_map_everything() -> None:
    assert (scale_scores(np.full((2, 2), 4.0), np.full(2, 4.0), 0.0) > 0.5).all()
    with pytest.raises(ConfigError, match=r"recall must lie in \(0, 1\]. Got 90 instead"):
        scale_scores(np.zeros((1, 1)), np.zeros(1), 1.0, 90)


def test_the_quick_svm_decides_like_the_plain_one() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(80, 4)), np.arange(80) < 30
    options = {"gamma": 0.2, "class_weight": {True: 5.0, False: 0.5}}
    quick, plain = (kind(**options).fit(x, y) for kind in (QuickSVC, SVC))
    np.testing.assert_allclose(quick.decision_function(x), plain.decision_function(x), atol=1e-9)


@pytest.mark.learning
def test_mnf_finds_the_quiet_band_that_pca_overlooks(seed: int) -> None:
    rng = np.random.default_rng(8 + seed)
    cube = rng.normal(size=(6, 24, 24))
    cube[1:] += 3 * rng.normal(size=(24, 24))  # loud noise, shared by the other bands
    cube[0] = 0.01 * rng.normal(size=(24, 24)) + (np.arange(24) < 8)[:, None]
    scene, truth = as_scene(cube), np.broadcast_to((np.arange(24) < 8)[:, None], (24, 24))
    labels = Labels(np.arange(0, 190, 6), np.arange(0, 576, 2))
    auc = {
        transform: evaluate(
            SPECTRAL["matched-filter"](scene, labels, transform=transform, components=1), truth
        ).auc
        for transform in get_args(Transform)[1:]
    }
    assert auc["mnf"] > 99
    assert auc["pca"] < 80


@pytest.mark.learning
@pytest.mark.parametrize("name", ["sam", "matched-filter", "cem", "ace", "ocsvm", "biased-svm"])
@pytest.mark.parametrize("transform", ["pca", "mnf"])
def test_many_bands_and_few_pixels_work(name: str, transform: Transform, seed: int) -> None:
    data = synthetic(height=12, width=12, bands=90, classes=2, fields=6, seed=1 + seed)
    target = np.flatnonzero(data.truth == 1)
    labels = Labels(target[::5][:12], np.arange(0, 144, 4))
    scores = SPECTRAL[name](data.scene, labels, components=3, transform=transform)
    assert evaluate(scores, data.truth == 1).auc > 80


def test_settings_outside_their_range_are_refused() -> None:
    method = SPECTRAL["sam"]
    with pytest.raises(ConfigError, match="components=3 has no meaning without a transform"):
        method(SCENE, LABELS, components=3)
    with pytest.raises(ConfigError, match="components must lie in 1 to 10"):
        method(SCENE, LABELS, components=11, transform="pca")
    with pytest.raises(ConfigError, match="transform must be none, pca or mnf"):
        method(SCENE, LABELS, transform="ica")  # type: ignore[arg-type]
    flat = dataclasses.replace(SCENE, cube=np.ones_like(SCENE.cube))
    with pytest.raises(SceneError, match="every band is constant"):
        method(flat, LABELS)
    column = as_scene(SCENE.cube.reshape(10, -1, 1), valid=SCENE.valid.reshape(-1, 1))
    with pytest.raises(SceneError, match="MNF needs valid pixels side by side"):
        method(column, LABELS, transform="mnf")


# Models

OTHER = synthetic(height=20, width=26, bands=10, classes=4, separation=2.0, seed=5)


@every_method
def test_a_model_scores_its_scene_as_the_method_does_and_comes_back_from_its_file(
    name: str, tmp_path: Path
) -> None:
    needs_extra(name)
    mask = np.zeros(SCENE.shape, dtype=bool)
    mask.flat[LABELS.positive] = True
    model = fit_spectral(name, SCENE, mask, seed=3, unlabeled=300, **options_of(name))
    labels = draw_labels(mask, SCENE.valid, 300, np.random.default_rng(3))
    plain = SPECTRAL[name](SCENE, labels, 3, **options_of(name))
    if name == "pu-bagging":  # the method knows which pixels a tree has seen
        plain.flat[labels.unlabeled] = model.score(SCENE).flat[labels.unlabeled]
    np.testing.assert_allclose(model.score(SCENE), plain, atol=2e-4)
    np.testing.assert_array_equal(model.score(SCENE, tile=7), model.score(SCENE))
    model.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert isinstance(again, SpectralModel)
    assert again.training == model.training
    np.testing.assert_array_equal(again.score(OTHER.scene), model.score(OTHER.scene))


@pytest.mark.learning
def test_a_large_scene_is_learnt_from_windows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral_model, "WHOLE", 1000)
    monkeypatch.setattr(spectral_model, "WINDOWS", 40)
    data = synthetic(height=90, width=80, bands=10, separation=2.0, fields=40, seed=seed)
    pixels = np.flatnonzero(data.truth == 1)
    mask = np.zeros(data.truth.shape, dtype=bool)
    mask.flat[np.random.default_rng(seed).choice(pixels, 40, replace=False)] = True
    for name in ("matched-filter", "biased-svm"):
        model = fit_spectral(name, data.scene, mask, seed=seed)
        assert model.training["positives"] == 40
        assert evaluate(model.score(data.scene), data.truth == 1).auc > 95
    seen, labels, at = gather(data.scene, mask, 4000, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(at), np.flatnonzero(mask))
    np.testing.assert_array_equal(
        seen.cube.reshape(10, -1)[:, labels.positive], data.scene.cube.reshape(10, -1)[:, at]
    )
    of_labels = seen.cube.reshape(10, -1)[:, labels.positive]
    assert {*map(tuple, of_labels.T)} == {*map(tuple, data.scene.cube[:, mask].T)}
    assert seen.valid.flat[labels.unlabeled].all()


def test_a_model_of_an_unknown_method_is_refused(tmp_path: Path) -> None:
    mask = np.zeros(SCENE.shape, dtype=bool)
    mask.flat[LABELS.positive] = True
    with pytest.raises(ConfigError, match=r"'method' must be one of sam, .* Got 'magic'"):
        fit_spectral("magic", SCENE, mask)
    model = dataclasses.replace(fit_spectral("sam", SCENE, mask), method="magic")
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="by magic, which this version does not know"):
        load_model(tmp_path / "model.safetensors")
