"""Networks that judge a map by labels they have not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from thonecls.datasets import synthetic
from thonecls.io.grid import Grid
from thonecls.io.inputs import LabelInput, SceneInput
from thonecls.method.config import FAST
from thonecls.method.model import Crossfit
from thonecls.method.progress import Progress
from thonecls.methods import METHODS
from thonecls.workflow import Running, TrainOptions
from thonecls.workflow.crossfit import leave_out
from thonecls.workflow.options import Task
from thonecls.workflow.run_folder import fold_path, is_unfinished
from thonecls.workflow.train import plan_of

DATA = synthetic(height=24, width=24, bands=4, fields=12, separation=2.0, seed=0)


def task(out: Path) -> Task:
    positives = np.zeros(DATA.truth.shape, dtype=bool)
    positives.flat[np.flatnonzero(DATA.truth == 1)[::6]] = True
    out.mkdir()
    return Task(
        out,
        SceneInput(Path("scene"), DATA.scene, Grid(DATA.scene.shape)),
        LabelInput(Path("labels"), positives),
        positives,
        METHODS["t-honecls"].configure(
            FAST, epochs=2, settle=0, batches=2, width=0.25, unlabeled=200
        ),
        TrainOptions(method="t-honecls", folds=2),
    )


def judged(ready: Task, *, jobs: int = 1, resume: bool = False, **heard: Any) -> Crossfit:
    return leave_out(ready, [], Running(jobs=jobs, resume=resume, checkpoint_every=1e6, **heard))


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_folds_side_by_side_have_the_bits_of_folds_in_turn(tmp_path: Path) -> None:
    heard: list[tuple[int, int, int]] = []
    turn, side = (
        judged(task(tmp_path / str(jobs)), jobs=jobs, on_fold=lambda *told: heard.append(told))
        for jobs in (1, 2)
    )
    assert heard == [(done, 2, jobs) for jobs in (1, 2) for done in range(3)]
    assert np.isfinite(turn.probability).all()
    np.testing.assert_array_equal(turn.probability, side.probability)
    assert torch.get_num_threads() == 2


def test_a_stopped_fold_judges_nothing_and_can_be_gone_on_with(tmp_path: Path) -> None:
    """Half-trained networks would find few labels, and the map would be called poor for it."""
    trainings = 0

    def stop_in_the_second_fold(progress: Progress[Any]) -> bool:
        nonlocal trainings
        trainings += progress.epoch == progress.step == 1
        return trainings == 2

    ready = task(tmp_path / "run")
    stopped = judged(ready, on_step=stop_in_the_second_fold)
    assert np.isnan(stopped.probability).all()
    assert is_unfinished(ready.out)
    assert [fold_path(ready.out, number).exists() for number in (0, 1)] == [True, False]
    again, whole = judged(ready, resume=True), judged(task(tmp_path / "whole"))
    np.testing.assert_array_equal(again.probability, whole.probability)
    assert not is_unfinished(ready.out)


def test_the_plan_tells_what_judging_costs(tmp_path: Path) -> None:
    assert "more to judge the map by labels left out (none with 0 folds)" in plan_of(
        task(tmp_path / "a")
    )
