"""Trainings on a cluster whose workers come and go."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from thonecls.datasets import Example
from thonecls.errors import ConfigError
from thonecls.io.grid import Grid
from thonecls.io.inputs import LabelInput, SceneInput, read_labels, read_scenes
from thonecls.io.options import LabelOptions
from thonecls.method.config import FAST
from thonecls.method.model import Model
from thonecls.methods import METHODS
from thonecls.scene import ArraySource
from thonecls.workflow import Running, TrainOptions
from thonecls.workflow.options import Task
from thonecls.workflow.run_folder import fold_path, model_path
from thonecls.workflow.seeds import pack, train_on_cluster, train_seed
from tiles import cut_tiles

LANTANA = LabelOptions(where="species = 'lantana'")


def task(out: Path, scene: SceneInput, labels: LabelInput) -> Task:
    out.mkdir()
    config = METHODS["t-honecls"].configure(
        FAST, epochs=2, settle=0, batches=2, width=0.25, unlabeled=200, device="cpu"
    )
    options = TrainOptions(method="t-honecls", seeds=2, folds=2)
    return Task(out, scene, labels, labels.mask, config, options)


def test_seeds_and_folds_are_trained_although_a_worker_dies(
    smallholding: Example, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    scene = read_scenes(cut_tiles(smallholding.scene, tmp_path / "tiles", 1, 2))  # several at once
    labels = read_labels(smallholding.labels, scene.grid, LANTANA)
    ready = task(tmp_path / "there", scene, labels)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        killed: list[int] = []

        def kill_one(done: int, total: int) -> None:
            assert total == 4
            if not killed:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        train_on_cluster(
            ready,
            Running(dask=cluster.scheduler_address, checkpoint_every=0.0, on_training=kill_one),
        )
    assert killed
    assert all(fold_path(ready.out, number).exists() for number in (0, 1))
    here = train_seed(task(tmp_path / "here", scene, labels), 1, Running(checkpoint_every=1e6))
    there = Model.load(model_path(ready.out, 1, 2))
    assert here.training["finished"]
    assert there.training["finished"]
    one, other = (model.training["history"]["loss"] for model in (here, there))
    np.testing.assert_allclose(one, other, rtol=1e-3)


def test_a_task_is_sent_without_its_masks(smallholding: Example, tmp_path: Path) -> None:
    scene = read_scenes(smallholding.scene)
    labels = read_labels(smallholding.labels, scene.grid, LANTANA)
    sent = pack(task(tmp_path / "out", scene, labels))
    assert sum(pixels.nbytes for pixels in sent.masks.values()) < labels.mask.nbytes
    np.testing.assert_array_equal(sent.unpack().labels.mask, labels.mask)


def test_a_cluster_takes_no_arrays(tmp_path: Path) -> None:
    source = ArraySource(np.ones((4, 9, 9), np.float32))
    mask = np.eye(9, dtype=bool)
    array = SceneInput(tmp_path / "scene.npy", source, Grid((9, 9)))
    ready = task(tmp_path / "out", array, LabelInput(tmp_path / "labels.npy", mask))
    with pytest.raises(ConfigError, match=r"reads rasters only: save scene\.npy"):
        train_on_cluster(ready, Running(dask="tcp://127.0.0.1:1"))
