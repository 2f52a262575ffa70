"""The estimator: scikit-learn's rules, every form of labels, both orders of axes, files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from thonecls import FAST, THOneCls
from thonecls.datasets import Dataset
from thonecls.errors import ConfigError, LabelError, ModelError, SceneError
from thonecls.method.config import TrainConfig

Mask = NDArray[np.bool_]


def small(tiny: TrainConfig, **more: object) -> THOneCls:
    return THOneCls(**{**asdict(tiny), "epochs": 1, **more})


def test_parameters_are_those_of_the_config(tiny: TrainConfig) -> None:
    estimator = THOneCls(order=3, seed=7)
    parameters = estimator.get_params()
    assert parameters["order"] == 3
    assert parameters["seed"] == 7
    assert {k: parameters[k] for k in asdict(FAST)} == {**asdict(FAST), "order": 3}
    assert clone(estimator).get_params() == parameters
    assert estimator.set_params(beta=0.1).beta == 0.1
    assert "order=3" in repr(estimator)
    with pytest.raises(TypeError, match=r"unknown settings \['ordr'\]"):
        THOneCls(ordr=2)


def test_every_form_of_labels_gives_the_same_map(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig
) -> None:
    cube = field_scene.scene.cube
    expected = small(tiny).fit(cube, few_positives).predict_proba(cube)
    assert expected.shape == few_positives.shape
    forms = [few_positives.astype(int), np.where(few_positives, 1, -1), np.argwhere(few_positives)]
    for positives in forms:
        found = small(tiny, bands="first").fit(cube, positives).predict_proba(cube)
        np.testing.assert_array_equal(found, expected)


def test_bands_may_come_first_or_last(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig
) -> None:
    cube = field_scene.scene.cube
    last = np.moveaxis(cube, 0, 2)
    expected = small(tiny).fit(cube, few_positives).predict_proba(cube)
    np.testing.assert_array_equal(
        small(tiny).fit(last, few_positives).predict_proba(last), expected
    )
    np.testing.assert_array_equal(
        small(tiny).fit(field_scene.scene, few_positives).predict_proba(field_scene.scene), expected
    )


def test_labels_that_leave_the_axis_open_are_refused(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig
) -> None:
    square = np.random.default_rng(0).normal(size=(9, 9, 9))
    with pytest.raises(SceneError, match=r"cannot tell which axis .* labels of \(9, 9\)"):
        small(tiny).fit(square, np.eye(9))
    pairs = np.array([[0, 1], [2, 3]])
    last = np.moveaxis(field_scene.scene.cube, 0, 2)
    for cube in (field_scene.scene.cube, last):  # rows are never taken for bands
        with pytest.raises(SceneError, match=r"say THOneCls\(bands='first'\) or"):
            small(tiny).fit(cube, pairs)
    assert small(tiny, bands="last").fit(last, pairs).model_.bands == 6
    assert small(tiny).fit(last, np.array([[20, 17]])).model_.bands == 6  # no row 20 but so
    with pytest.raises(LabelError):
        small(tiny).fit(last, np.array([[99, 99]]))


def test_progress_is_told_and_training_can_be_ended(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig
) -> None:
    cube, epochs = field_scene.scene.cube, []
    small(tiny, epochs=2).fit(cube, few_positives, on_epoch=lambda p: epochs.append(p.epoch))
    assert epochs == [1, 2]
    ended = small(tiny, epochs=2).fit(cube, few_positives, on_step=lambda p: p.step == 2)
    assert not ended.model_.training["finished"]


def test_a_saved_estimator_maps_the_same_in_either_order_of_axes(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, tmp_path: Path
) -> None:
    cube = field_scene.scene.cube
    last = np.moveaxis(cube, 0, 2)
    fitted = small(tiny, order=3).fit(last, few_positives)
    fitted.save(tmp_path / "a.safetensors")
    loaded = THOneCls.load(tmp_path / "a.safetensors")
    expected = fitted.predict_proba(last)
    for again in (last, cube, field_scene.scene):
        np.testing.assert_array_equal(loaded.predict_proba(again), expected)
    assert loaded.order == 3
    assert loaded.model_.threshold == fitted.model_.threshold
    np.testing.assert_array_equal(loaded.predict(cube), fitted.predict(last))
    with pytest.raises(SceneError, match="holds the bands from 6 bands"):
        loaded.predict(np.zeros((6, 9, 6)))
    told = THOneCls.load(tmp_path / "a.safetensors", bands="last")
    assert told.predict(np.zeros((6, 9, 6))).shape == (6, 9)
    with pytest.raises(ModelError, match="trained on 6 bands"):
        loaded.predict(cube[:4])
    with pytest.raises(AttributeError, match="call fit"):
        small(tiny).save(tmp_path / "b.safetensors")


def test_predict_and_score(field_scene: Dataset, few_positives: Mask, tiny: TrainConfig) -> None:
    cube, truth = field_scene.scene.cube, field_scene.truth == 1
    estimator = small(tiny).fit(cube, few_positives)
    probability = estimator.predict_proba(cube)
    np.testing.assert_array_equal(estimator.predict(cube), probability > 0.5)
    np.testing.assert_array_equal(estimator.predict(cube, threshold=0.2), probability > 0.2)
    hits = (truth & (probability > 0.5)).sum()
    f1 = 2 * hits / (truth.sum() + (probability > 0.5).sum())
    assert estimator.score(cube, truth) == pytest.approx(f1)
    assert estimator.score(cube, truth, test=truth) != estimator.score(cube, truth)


def test_errors_are_clear(field_scene: Dataset, few_positives: Mask, tiny: TrainConfig) -> None:
    cube = field_scene.scene.cube
    with pytest.raises(AttributeError, match="call fit"):
        small(tiny).predict(cube)
    with pytest.raises(ConfigError, match="'order' must be 1 or more"):
        small(tiny, order=0).fit(cube, few_positives)
    with pytest.raises(SceneError, match="three axes"):
        small(tiny).fit(cube[0], few_positives)
    with pytest.raises(LabelError, match="labels have shape"):
        small(tiny).fit(cube, few_positives[1:])
    with pytest.raises(ModelError, match="trained on 6 bands, the scene has 4"):
        small(tiny).fit(cube, few_positives).predict(cube[:4])
