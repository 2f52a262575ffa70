"""The steps behind the commands, killed and resumed."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from thonecls.datasets import Dataset
from thonecls.datasets.example import write_example
from thonecls.io.options import LabelOptions
from thonecls.io.raster.files import LazyFile
from thonecls.method.config import TrainConfig
from thonecls.method.model import Model
from thonecls.workflow import Running, TrainOptions, train_scene

KILLS = 5


def _train_on_one_thread(*args: Any, **options: Any) -> None:
    torch.set_num_threads(1)  # beside other tests, more take longer
    train_scene(*args, **options)


def test_sigkill_at_random_moments_changes_nothing(
    field_scene: Dataset, tiny: TrainConfig, tmp_path: Path
) -> None:
    """Killed five times, each time resumed; weights and map equal to the bit."""
    np.save(tmp_path / "cube.npy", field_scene.scene.cube)
    np.save(tmp_path / "truth.npy", field_scene.truth == 1)
    config = replace(tiny, epochs=10)
    context = multiprocessing.get_context("forkserver")
    # What every training would import for itself; the optimizer takes torch._dynamo.
    context.set_forkserver_preload(["thonecls.workflow.train", "torch._dynamo"])

    def start(out: str) -> multiprocessing.process.BaseProcess:
        files = tmp_path / "cube.npy", tmp_path / "truth.npy", tmp_path / out
        options = {
            "config": config,
            "options": TrainOptions(method="t-honecls", folds=2),
            "running": Running(resume=True, checkpoint_every=0.0),
        }
        process = context.Process(target=_train_on_one_thread, args=files, kwargs=options)
        process.start()
        return process

    whole = start("whole")
    whole.join()
    assert whole.exitcode == 0
    checkpoint = tmp_path / "run/checkpoint.safetensors"
    kills, random = 0, np.random.default_rng(0)
    while True:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = start("run")
        while process.is_alive() and kills < KILLS:
            time.sleep(0.002)
            # Let it make a step or so before the blow, or the end would never come.
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
                time.sleep(random.uniform(0, 0.15))
                process.kill()
                kills += 1
                break
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert kills == KILLS
    assert not checkpoint.exists()
    one, other = (Model.load(tmp_path / name / "model.safetensors") for name in ("whole", "run"))
    for name, tensor in one.net.state_dict().items():
        assert torch.equal(tensor, other.net.state_dict()[name]), name
    assert one.training["history"] == other.training["history"]
    for name in ("probability.npy", "map.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert json.loads((tmp_path / "run/run.json").read_text("utf-8"))["finished"]


def test_a_scene_is_read_once_before_the_first_step(
    tiny: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = write_example(tmp_path / "example", height=48, width=40, bands=6)
    read: list[int] = []
    steps: list[int] = []
    plain = LazyFile.read

    def counted(self: LazyFile, numbers: Any, rows: slice, columns: slice, *more: Any) -> Any:
        read.append((rows.stop - rows.start) * (columns.stop - columns.start))
        return plain(self, numbers, rows, columns, *more)

    monkeypatch.setattr(LazyFile, "read", counted)
    train_scene(
        example.scene,
        example.labels,
        tmp_path / "run",
        config=replace(tiny, epochs=1, batches=1),
        options=TrainOptions(method="t-honecls", folds=0),
        label_options=LabelOptions(where="species = 'lantana'"),
        running=Running(on_step=lambda progress: steps.append(sum(read))),
    )
    assert steps == [48 * 40]
