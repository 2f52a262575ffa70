"""Mapping many scenes: one failure stops no other, and what is finished is skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run
from thonecls.datasets import Example
from thonecls.io.options import LabelOptions
from thonecls.method.config import FAST
from thonecls.workflow import MapOptions, TrainOptions, map_scenes, train_scene
from tiles import cut_tiles

pytestmark = pytest.mark.usefixtures("white_pictures")


@pytest.fixture(scope="module")
def model(smallholding: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "run"
    lantana = LabelOptions(where="species = 'lantana'")
    options = TrainOptions(method="matched-filter", folds=0, polygons=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ())
        train_scene(
            smallholding.scene,
            smallholding.labels,
            out,
            config=FAST,
            options=options,
            label_options=lantana,
        )
    return out


def test_a_broken_scene_stops_no_other_and_resume_maps_the_rest(
    smallholding: Example, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = cut_tiles(smallholding.scene, tmp_path / "tiles", 1, 3)
    whole = files[1].read_bytes()
    files[1].write_bytes(b"no raster")
    out = tmp_path / "maps"
    command = ("map", model, tmp_path / "tiles/*.tif", "--out", out, "--no-polygons")
    assert run(*command, "--json") == 3
    told = json.loads(capsys.readouterr().out)
    assert ["error" in one for one in told] == [False, True, False]
    assert not (out / files[1].stem).exists()
    times = {p: p.stat().st_mtime_ns for p in out.glob("*/map.tif")}
    files[1].write_bytes(whole)
    assert run(*command, "--resume") == 0
    shown = capsys.readouterr().out
    assert "3 of 3 scenes are mapped" in shown
    assert {p: p.stat().st_mtime_ns for p in times} == times  # not made again
    assert len(list(out.glob("*/item.json"))) == 3


def test_a_finished_map_of_other_settings_is_not_taken_for_the_one_asked_for(
    smallholding: Example, model: Path, tmp_path: Path
) -> None:
    scenes = cut_tiles(smallholding.scene, tmp_path / "tiles", 1, 2)
    plain = MapOptions(polygons=False, resume=True)
    assert all(one.error is None for one in map_scenes(model, scenes, tmp_path, options=plain))
    other = MapOptions(polygons=False, resume=True, threshold=0.9)
    errors = [one.error for one in map_scenes(model, scenes, tmp_path, options=other)]
    assert all("with other threshold" in str(error) for error in errors)
