"""Jobs in their folders: exports of networks, failures, and what a server finds of them."""

from __future__ import annotations

import json
import shlex
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import rasterio

from commands import run
from thonecls.datasets import Example
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.method.config import TrainConfig
from thonecls.studio import training
from thonecls.studio.job import EXPORTED, JOB, STATUS, run_job
from thonecls.studio.jobs import Job, Jobs
from thonecls.studio.project import open_project
from thonecls.studio.session import Studio
from thonecls.workflow import TrainOptions, train_scene


def spec(farmland: Example, folder: Path, **more: Any) -> dict[str, Any]:
    """What a job is asked for, as the server writes it."""
    usual = {
        **{"kind": "train", "method": "t-honecls", "preset": None, "coverage": None},
        **{"revision": 3, "label": "lantana", "answers": None, "threshold": None},
        "scene": str(farmland.scene),
        "scene_options": asdict(SceneOptions()),
        "labels": str(farmland.labels),
        "out": str(folder / "out"),
    }
    return {**usual, **more}


def done(folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / JOB).write_text(json.dumps(content))
    run_job(folder)
    found: dict[str, Any] = json.loads((folder / STATUS).read_text())
    return found


@pytest.fixture(scope="module")
def network(farmland: Example, tiny: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a network's training."""
    out = tmp_path_factory.mktemp("network") / "run"
    options = TrainOptions(method="t-honecls", folds=0, floats=True, polygons=False)
    labels = LabelOptions(where="species = 'lantana'")
    train_scene(
        farmland.scene, farmland.labels, out, config=tiny, options=options, label_options=labels
    )
    return out


@pytest.mark.parametrize("cut", [None, 0.3])
def test_a_network_is_exported_without_training_again(
    farmland: Example, network: Path, tmp_path: Path, cut: float | None
) -> None:
    facts = {"kind": "export", "map": "run-1", "cut": cut or 0.5, "run": str(network)}
    (network / ".begun.json").write_text("{}")  # as of one that was stopped by hand
    status = done(tmp_path / "job", spec(farmland, tmp_path, **facts, threshold=cut))
    assert status["state"] == "done", status
    out = tmp_path / "out"
    assert not (out / ".begun.json").exists()
    with (
        rasterio.open(out / "map.tif") as file,
        rasterio.open(network / "probability.tif") as probability,
    ):
        mapped, likely = file.read(1), probability.read(1)
    threshold = cut or json.loads((network / "run.json").read_text())["threshold"]
    assert ((mapped == 1) == (likely > np.float32(threshold))).all()
    exported = json.loads((out / EXPORTED).read_text())
    assert exported["map"] == "run-1"
    words = shlex.split(exported["command"])
    assert words[:2] == ["thonecls", "train" if cut is None else "map"]
    if cut is not None:
        assert run(*words[1:]) == 0
        with rasterio.open(tmp_path / "export-again" / "map.tif") as again:
            assert (again.read(1) == mapped).all()


def test_what_a_user_can_mend_is_told_in_the_librarys_words(
    farmland: Example, tmp_path: Path
) -> None:
    status = done(tmp_path / "job", spec(farmland, tmp_path, method="density-ratio"))
    assert status["state"] == "failed"
    assert "holds 2 kinds in its column 'species'" in status["error"]


def test_what_nobody_expects_is_told_too(farmland: Example, tmp_path: Path) -> None:
    status = done(tmp_path / "job", spec(farmland, tmp_path, scene_options={"none": 1}))
    assert status["state"] == "failed"
    assert "unexpected" in status["error"]
    assert (tmp_path / "job" / "log.txt").read_text().startswith("Traceback")


def test_to_stop_what_has_ended_is_no_error(farmland: Example, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, lambda job: None, lambda job: None)
    for _ in range(4):
        folder = jobs.next_folder("train")
        (folder / JOB).write_text(json.dumps(spec(farmland, tmp_path)))
        (folder / STATUS).write_text(json.dumps({"state": "done", "words": "done"}))
    assert len(jobs.take_up()) == 4
    assert jobs.prune() == ["train-1", "train-2"]
    for name in ("train-1", "train-4"):  # one whose folder is gone, and one that is shown
        for keep in (False, True):
            ended = jobs.cancel(name, keep=keep)
            assert ended is not None
            assert (ended.id, ended.state) == (name, "done")
    assert not (tmp_path / "train-4" / "stop").exists()
    assert jobs.cancel("train-5") is None
    jobs.close()


def test_a_process_that_is_killed_is_noticed(farmland: Example, tmp_path: Path) -> None:
    heard: list[Job] = []
    jobs = Jobs(tmp_path, heard.append, lambda job: None)
    folder = jobs.next_folder("train")
    job = jobs.start(folder, spec(farmland, tmp_path))
    jobs._processes[job.id].kill()
    began = time.monotonic()
    while heard[-1].state == "running" and time.monotonic() - began < 60:
        time.sleep(0.05)
    assert heard[-1].state == "failed"
    assert "out of memory" in str(heard[-1].error)
    jobs.close()
    # A server that starts again tells the same, and does not try it anew.
    again = Jobs(tmp_path, heard.append, lambda job: None)
    assert [(job.id, job.state) for job, _ in again.take_up()] == [("train-1", "failed")]
    assert again.next_folder("train").name == "train-2"
    again.close()


def test_jobs_are_taken_up_from_any_folder(
    farmland: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    studio = Studio(open_project(Path("p"), farmland.scene))
    try:
        assert studio.project.folder == studio.exporting.folder.parent == tmp_path.resolve() / "p"
    finally:
        studio.close()


class Turns:
    """An event that is set after so many looks at it."""

    def __init__(self, count: int) -> None:
        self.left = count

    def wait(self, seconds: float) -> bool:
        self.left -= 1
        return self.left < 0


def test_learning_begins_by_itself_once_labels_rest(
    farmland: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio = Studio(open_project(tmp_path / "p", farmland.scene))
    begun: list[int] = []
    monkeypatch.setattr(studio.training, "begin", lambda: begun.append(studio.labels.revision))

    def learn(rest: float = 0.0) -> list[int]:
        monkeypatch.setattr(training, "REST", rest)
        begun.clear()
        studio.training.by_itself(cast("threading.Event", Turns(3)))
        return list(begun)

    try:
        studio.labels.apply("positive", np.arange(9), "nine")
        assert learn() == []  # of ten on
        studio.labels.apply("positive", np.array([9]), "the tenth")
        assert learn(rest=1e6) == []  # while the hand is at work
        assert learn() == [2]  # once for the same labels
        studio.project.change(method="t-honecls")
        assert learn() == []  # a network is trained when it is asked for
        studio.project.change(method="sam", auto=False)
        assert learn() == []
    finally:
        studio.close()
