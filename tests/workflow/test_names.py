"""No picture, no name and no console costs a run."""

from __future__ import annotations

import io
import json
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest

from commands import run as thonecls
from crashing import CONFIG, World, make_world
from thonecls.errors import ConfigError
from thonecls.maps import Backdrop, draw_map
from thonecls.maps.styles import write_qml
from thonecls.methods.spectral_model import load_model
from thonecls.workflow import TrainOptions, map_scene, train_scene

ODD = "sc$\\frac$.tif"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def undrawn(world: World) -> Path:
    """A training in which no picture could be drawn."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no such glyph")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        patch.setattr(matplotlib.figure.Figure, "savefig", fail)
        files = world.here / "cube.npy", world.here / "labels0.npy", world.here / "run"
        summary = train_scene(*files, config=CONFIG, options=TrainOptions(folds=0))
    assert [problem.split()[0] for problem in summary.problems] == [
        "overview.png",
        "report.html",
    ]
    return files[-1]


def test_a_training_is_whole_though_no_picture_could_be_drawn(undrawn: Path, world: World) -> None:
    names = {path.name for path in undrawn.iterdir()}
    made = {"model.safetensors", "map.npy", "probability.npy", "novelty.npy", "evidence.npz"}
    assert names == {*made, "run.json"}
    summary = json.loads((undrawn / "run.json").read_text("utf-8"))
    assert summary["finished"]
    assert "no such glyph" in summary["problems"][0]
    world.sample(undrawn, world.here / "sample.csv")
    world.train(undrawn, resume=True)  # nothing left to do


def test_a_dollar_in_a_name_is_no_formula(
    undrawn: Path, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(world.here / "2020/scene.tif", tmp_path / ODD)
    model = load_model(undrawn / "model.safetensors")
    named = replace(model, training={**model.training, "label": "a $\\frac$ \x01 b"})
    named.save(tmp_path / "named.safetensors")
    summary = map_scene(tmp_path / "named.safetensors", tmp_path / ODD, tmp_path / "map")
    assert not summary.problems
    assert (tmp_path / "map/overview.png").exists()
    for path in [*(tmp_path / "map").glob("*.qml"), *(tmp_path / "map").glob("*.xml")]:
        ElementTree.parse(path)
    backdrop = Backdrop(np.ones((4, 5, 3)), (4, 5), ("1", "2", "3"))
    draw_map(tmp_path / "a.png", backdrop, np.zeros((4, 5), np.float32), title=ODD, label=ODD)


def test_a_map_is_there_though_its_picture_fails(
    undrawn: Path, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.maps.quicklook.rgb_bands", lambda *_: 1 / 0)
        scene = world.here / "2020/scene.tif"
        assert thonecls("map", undrawn, scene, "--out", tmp_path / "map") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "warning: overview.png could not be made (ZeroDivisionError" in said
    assert (tmp_path / "map/map.json").exists()
    assert (tmp_path / "map/polygons.gpkg").exists()


@pytest.mark.parametrize("label", ["a\x1bb", "two\nlines", "\udcff"])
def test_a_label_is_a_name(label: str) -> None:
    with pytest.raises(ConfigError, match="without control characters"):
        TrainOptions(label=label)


def test_a_style_is_well_formed_whatever_the_class_is_called(tmp_path: Path) -> None:
    path = write_qml(tmp_path / "map.tif", "classes", label="a\x1b <b> & \x00")
    names = [entry.get("label") for entry in ElementTree.parse(path).iter("paletteEntry")]
    assert names == ["other", "a� <b> & �"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_without_our_letters_gets_others(
    encoding: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(world.here / "cube.npy", world.here / "ščene ✓.npy")
    written = io.BytesIO()
    said = io.TextIOWrapper(written, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", said)
    assert thonecls("check", world.here / "ščene ✓.npy", world.here / "labels0.npy") == 0
    said.flush()
    assert b"ready: thonecls train" in written.getvalue()
