"""Training on windows of a scene that is over the budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thonecls.datasets import synthetic
from thonecls.errors import LabelError
from thonecls.metrics import evaluate
from thonecls.scene import ArraySource, as_scene
from thonecls.train import TrainConfig, fit
from thonecls.windows import gather


def numbered(rows: int, columns: int) -> ArraySource:
    """A cube whose first band numbers the pixels, so that windows can be traced."""
    number = np.arange(rows * columns, dtype=np.float64).reshape(rows, columns)
    return ArraySource(np.stack([number, -number]))


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 30), st.integers(0, 9))
def test_every_label_is_found_again_in_a_window(rows: int, columns: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = numbered(rows, columns)
    positive = np.unique(rng.integers(0, rows * columns, size=n))
    try:
        mosaic = gather(source, positive, unlabeled=50, budget=80_000, rng=rng)
    except LabelError:
        assert rows * columns < 3 or n > 10  # next to nothing unlabeled
        return
    number = mosaic.scene.cube[0].ravel()
    assert sorted(number[mosaic.labels.positive].tolist()) == positive.tolist()
    assert mosaic.scene.valid.size <= 80_000
    assert mosaic.scene.valid.size % (mosaic.window[0] * mosaic.window[1]) == 0


def test_unlabeled_pixels_are_not_drawn_from_the_windows_around_labels() -> None:
    source = numbered(2000, 2000)
    rng = np.random.default_rng(0)
    positive = np.array([5, 6, 7])  # all in one corner
    mosaic = gather(source, positive, unlabeled=4000, budget=500_000, rng=rng)
    number = mosaic.scene.cube[0].ravel()[mosaic.labels.unlabeled]
    assert len(np.unique(number)) > 3900
    assert mosaic.labels.unlabeled.min() >= mosaic.window[0] * mosaic.window[1]
    share = (number // 2000 < 256).mean()  # the corner's rows are 1/8 of the scene
    assert share < 0.3


def test_the_border_of_a_scene_is_seen_too() -> None:
    """Centres are drawn over the whole scene, so that windows at its edges are not rare."""
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        mosaic = gather(
            numbered(1000, 1000), np.array([5]), unlabeled=4000, budget=500_000, rng=rng
        )
        number = mosaic.scene.cube[0].ravel()[mosaic.labels.unlabeled]
        row, column = number // 1000, number % 1000
        inside.append(((row >= 32) & (row < 968) & (column >= 32) & (column < 968)).mean())
    assert 1 - np.mean(inside) > 0.062  # at least half of the frame's share, 12.4 %


def test_labels_all_over_a_large_scene_get_smaller_windows() -> None:
    rng = np.random.default_rng(0)
    positive = rng.choice(3000 * 3000, size=40, replace=False)
    mosaic = gather(numbered(3000, 3000), positive, unlabeled=99, budget=500_000, rng=rng)
    assert mosaic.window == (64, 64)
    with pytest.raises(LabelError, match="lie too far apart for 2,000 pixels of windows"):
        gather(numbered(3000, 3000), positive, unlabeled=99, budget=2000, rng=rng)


def test_nodata_stays_nodata_in_windows() -> None:
    cube = np.ones((2, 300, 300))
    cube[0] = np.arange(300)
    cube[:, :, 150:] = np.nan
    scene = as_scene(cube, valid=np.isfinite(cube[0]))
    rng = np.random.default_rng(0)
    positive = np.array([10, 310, 620])
    mosaic = gather(scene, positive, unlabeled=500, budget=60_000, rng=rng)
    assert mosaic.scene.valid.flat[mosaic.labels.unlabeled].all()
    assert np.isfinite(mosaic.scene.cube[:, mosaic.scene.valid]).all()


def test_windows_learn_what_the_whole_scene_teaches() -> None:
    data = synthetic(height=112, width=112, bands=8, fields=40, seed=2)
    near = np.argwhere(data.truth == 1)
    near = near[(near < 64).all(axis=1)][::8]  # labels of one corner
    config = TrainConfig(epochs=12, batches=4, rate=2e-2, width=0.25, unlabeled=800, device="cpu")
    scores = {}
    for budget in (112 * 112, 10_000):
        model = fit(
            data.scene,
            near,
            config=replace(config, budget=budget),
            generator=torch.Generator().manual_seed(0),
        )
        scores[budget] = evaluate(model.score(data.scene), data.truth == 1).f1
        assert (model.training["windows"] > 1) == (budget == 10_000)
    # Windows this small, about half of what the network sees, cost some of the score.
    assert scores[10_000] > scores[112 * 112] - 20
    assert scores[10_000] > 70
