"""Training on windows of a scene that is over the budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thonecls.config import TrainConfig
from thonecls.datasets import synthetic
from thonecls.errors import LabelError, SceneError
from thonecls.metrics import evaluate
from thonecls.model import Model
from thonecls.scene import ArraySource, Scene, as_scene
from thonecls.train import fit
from thonecls.windows import Sheet, cut_sheets


def numbered(rows: int, columns: int) -> ArraySource:
    """A cube whose first band numbers the pixels, so that windows can be traced."""
    number = np.arange(rows * columns, dtype=np.float64).reshape(rows, columns)
    return ArraySource(np.stack([number, -number]))


def numbers(sheet: Sheet, source: ArraySource, pixels: np.ndarray[Any, Any]) -> list[int]:
    """The scene's own flat indices of some pixels of a sheet."""
    found: list[int] = sheet.read(source).cube[0].ravel()[pixels].astype(int).tolist()
    return found


@given(st.integers(32, 400), st.integers(32, 400), st.integers(1, 30), st.integers(0, 9))
def test_every_label_is_in_one_sheet_and_every_sheet_within_the_budget(
    rows: int, columns: int, n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    source = numbered(rows, columns)
    positive = np.unique(rng.integers(0, rows * columns, size=n))
    sheets = cut_sheets(source, positive, unlabeled=50, budget=50_000, count=10, rng=rng)
    assert len(sheets) == min(10, len(positive))
    labelled = [i for sheet in sheets for i in numbers(sheet, source, sheet.labels.positive)]
    assert sorted(labelled) == positive.tolist()
    for sheet in sheets:
        assert len(sheet.origins) * sheet.size[0] * sheet.size[1] <= 50_000
        assert len(sheet.labels.unlabeled) == -(-50 // len(sheets))
        assert (sheet.origins >= 0).all()
        assert (sheet.origins + sheet.size <= source.shape).all()


def test_labels_are_shared_out_evenly() -> None:
    source, rng = numbered(900, 900), np.random.default_rng(0)
    positive = rng.choice(900 * 900, size=103, replace=False)
    sheets = cut_sheets(source, positive, unlabeled=4000, budget=200_000, count=10, rng=rng)
    assert {len(sheet.labels.positive) for sheet in sheets} == {10, 11}
    assert sum(len(sheet.labels.unlabeled) for sheet in sheets) == 4000


@given(st.integers(0, 5))
def test_no_label_lies_in_the_frame_of_its_window_unless_the_scene_ends_there(seed: int) -> None:
    source, rng = numbered(300, 260), np.random.default_rng(seed)
    positive = rng.choice(300 * 260, size=40, replace=False)
    for sheet in cut_sheets(source, positive, unlabeled=900, budget=40_000, count=5, rng=rng):
        rows, columns = sheet.size
        for pixels in (sheet.labels.positive, sheet.labels.unlabeled):
            origin = sheet.origins[pixels // (rows * columns)]
            place = np.stack([pixels // columns % rows, pixels % columns], axis=1)
            frame = np.array(sheet.size) // 8
            assert ((place >= frame) | (origin == 0)).all()
            assert ((place < sheet.size - frame) | (origin + sheet.size == source.shape)).all()


def test_unlabeled_pixels_come_from_all_over_the_scene() -> None:
    source, rng = numbered(2000, 2000), np.random.default_rng(0)
    positive = np.array([5, 6, 7])  # all in one corner
    sheets = cut_sheets(source, positive, unlabeled=4000, budget=500_000, count=10, rng=rng)
    assert [len(sheet.labels.positive) for sheet in sheets] == [1, 1, 1]
    drawn = np.array(
        [i for sheet in sheets for i in numbers(sheet, source, sheet.labels.unlabeled)]
    )
    assert len(np.unique(drawn)) > 3900
    assert (drawn // 2000 < 256).mean() < 0.3  # the corner's rows are 1/8 of the scene


def test_the_border_of_a_scene_is_seen_too() -> None:
    """Centres are drawn over the whole scene, so that windows at its edges are not rare."""
    source, inside = numbered(1000, 1000), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        positive = np.arange(5, 500_000, 9000)
        sheets = cut_sheets(source, positive, unlabeled=4000, budget=500_000, count=10, rng=rng)
        for sheet in sheets:
            number = np.array(numbers(sheet, source, sheet.labels.unlabeled))
            row, column = number // 1000, number % 1000
            inside.append(((row >= 32) & (row < 968) & (column >= 32) & (column < 968)).mean())
    assert 1 - np.mean(inside) > 0.062  # at least half of the frame's share, 12.4 %


def test_labels_all_over_a_large_scene_get_smaller_windows_and_at_last_are_left_out() -> None:
    source, rng = numbered(3000, 3000), np.random.default_rng(0)
    positive = rng.choice(3000 * 3000, size=400, replace=False)
    sizes = {}
    for budget in (8_000_000, 500_000, 100_000):
        sheets = cut_sheets(source, positive, unlabeled=99, budget=budget, count=10, rng=rng)
        kept = sum(len(sheet.labels.positive) for sheet in sheets)
        sizes[budget] = sheets[0].size[0], kept
    assert sizes[8_000_000] == (256, 400)
    assert sizes[500_000] == (64, 400)
    assert sizes[100_000][0] == 64
    assert 120 <= sizes[100_000][1] < 400
    with pytest.raises(LabelError, match="set the budget to 2,048 or more"):
        cut_sheets(source, positive, unlabeled=99, budget=2000, count=10, rng=rng)


def test_nodata_stays_nodata_in_windows() -> None:
    cube = np.ones((2, 300, 300))
    cube[0] = np.arange(300)
    cube[:, :, 150:] = np.nan
    scene = as_scene(cube, valid=np.isfinite(cube[0]))
    rng = np.random.default_rng(0)
    positive = np.array([10, 310, 620, 299])  # the last on nodata
    sheets = cut_sheets(scene, positive, unlabeled=500, budget=60_000, count=2, rng=rng)
    assert sum(len(sheet.labels.positive) for sheet in sheets) == 3
    for sheet in sheets:
        read = sheet.read(scene)
        for pixels in (sheet.labels.positive, sheet.labels.unlabeled):
            assert read.valid.flat[pixels].all()
        assert np.isfinite(read.cube[:, read.valid]).all()
    with pytest.raises(LabelError, match="no label lies on a valid pixel"):
        cut_sheets(scene, positive[3:], unlabeled=500, budget=60_000, count=2, rng=rng)


def test_a_scene_of_nodata_but_for_its_labels_is_refused() -> None:
    valid = np.zeros((4000, 4000), dtype=bool)
    valid[:3, :3] = True
    scene = Scene(np.zeros((2, 4000, 4000), dtype=np.float32), valid)
    rng = np.random.default_rng(1)
    with pytest.raises(SceneError, match="held nothing but nodata"):
        cut_sheets(scene, np.array([0]), unlabeled=5, budget=5000, count=1, rng=rng)


@pytest.mark.learning
def test_windows_learn_what_the_whole_scene_teaches(seed: int) -> None:
    data = synthetic(height=112, width=112, bands=8, fields=40, seed=2)
    few = np.argwhere(data.truth == 1)[::40]
    config = TrainConfig(epochs=7, batches=8, rate=2e-2, width=0.25, unlabeled=800, device="cpu")
    scores = {}
    for budget in (112 * 112, 9000):
        model = fit(
            data.scene,
            few,
            config=replace(config, budget=budget),
            generator=torch.Generator().manual_seed(seed),
        )
        scores[budget] = evaluate(model.score(data.scene), data.truth == 1).f1
        assert (model.training["windows"] > 1) == (budget == 9000)
        assert model.training["positives"] >= 0.8 * len(few)
    assert scores[9000] > scores[112 * 112] - 5
    assert scores[9000] > 90


def test_training_on_sheets_resumes_to_the_same_bits(tmp_path: Path) -> None:
    """Which sheet comes when follows from the kept state."""
    data = synthetic(height=80, width=90, bands=5, seed=2)
    few = np.argwhere(data.truth == 1)[::60]
    config = TrainConfig(epochs=2, batches=3, width=0.25, unlabeled=90, device="cpu", budget=2100)

    def train(stop_after: int | None, file: Path) -> Model:
        return fit(
            data.scene,
            few,
            config=config,
            generator=torch.Generator().manual_seed(0),
            on_step=lambda p: p.epoch * 10 + p.step == stop_after,
            checkpoint=file,
            resume=True,
        )

    whole = train(None, tmp_path / "a")
    assert not train(12, tmp_path / "b").training["finished"]
    resumed = train(None, tmp_path / "b")
    for name, value in whole.net.state_dict().items():
        assert torch.equal(value, resumed.net.state_dict()[name])
    for name, value in whole.frozen.items():
        assert torch.equal(value, resumed.frozen[name])
