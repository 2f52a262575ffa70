"""From a raster and a few points to a map that opens in QGIS, as a mapper walks it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import rasterio
from affine import Affine
from rio_cogeo.cogeo import cog_validate

from commands import run
from thonecls.datasets import Example, write_example
from thonecls.io.options import SceneOptions
from thonecls.method.model import Model, Scored, Scorer
from thonecls.methods.costs import on_cores, usable_cores
from thonecls.methods.spectral_model import load_model
from thonecls.workflow import check_scene
from thonecls.workflow.options import repeat_command

QUICK = ["--epochs", "6", "--batches", "4", "--width", "0.25", "--unlabeled", "800"]
ONE_EPOCH = ["--epochs", "1", *QUICK[2:]]
WHERE = ["--where", "species = 'lantana'"]
pytestmark = pytest.mark.usefixtures("white_pictures")


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True, scope="module")
def one_opinion() -> Iterator[None]:
    """A matched filter alone beside every training: what others say is not the subject here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        yield


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return write_example(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """Another, for trainings of which only what they write is looked at."""
    return write_example(tmp_path_factory.mktemp("small"), height=48, width=40)


@pytest.fixture(scope="module")
def trained(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything: labels held out, two seeds, truth for the report."""
    out = tmp_path_factory.mktemp("trained") / "run"
    command = ["train", example.scene, example.labels, *WHERE, "--out", out, *QUICK, "--json"]
    more = ["--folds", "2", "--seeds", "2", "--label", "lantana", "--minimum-area", "4000"]
    truth = ["--truth", example.truth, "--truth-target", "1"]
    assert run(*command, *more, *truth) == 0
    return out


@pytest.mark.usefixtures("drawn")
def test_check_says_that_all_is_well(
    example: Example, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = ["--picture", tmp_path / "labels.png"]
    assert run("check", example.scene, example.labels, *WHERE, "--json", *picture) == 0
    found = said(capsys)
    assert (tmp_path / "labels.png").read_bytes().startswith(b"\x89PNG")
    words = {finding["subject"]: finding["words"] for finding in found["findings"]}
    assert found["fit"]
    assert "EPSG:32633" in words["place"]
    assert "marked bad" in words["bands left out"]
    assert "reprojected from EPSG:4326" in words["labels"]
    assert "60 pixels" in words["labelled pixels"]
    assert run("check", example.scene, example.labels, *WHERE, "--order", "3") == 0
    shown = capsys.readouterr().out
    assert "ready: thonecls train" in shown
    assert "--where \"species = 'lantana'\"" in shown  # as a person would write it, on one line
    assert words["no data"] == "5 % of the scene"  # its last four columns of 80
    assert "unlike that of any label" in words["likeness"]
    given = ["--drop-bad-bands", "--order", "3"]
    assert run("check", example.scene, example.labels, *WHERE, *given, "--json") == 0
    scene, labels = str(example.scene), str(example.labels)
    expected = ["thonecls", "train", scene, labels, "--drop-bad-bands", *WHERE]
    expected += ["--method", "t-honecls", "--order", "3"]
    assert shlex.split(said(capsys)["command"]) == [*expected, "--out", "run"]


def test_check_counts_the_cores_that_it_may_use(
    example: Example, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for told, words in (("1", "1 core"), ("100000", on_cores(usable_cores()))):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert run("check", example.scene, "--json") == 0
        subjects = [finding["subject"] for finding in said(capsys)["findings"]]
        assert told == "1" or subjects[-1] == f"mapping, {on_cores(usable_cores())}"
        assert told != "1" or subjects[-2:] == [f"training, {words}", f"mapping, {words}"]


def test_a_scene_with_coordinates_can_be_given_its_crs(
    example: Example, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scene = tmp_path / "plot.tif"
    with rasterio.open(example.scene) as file:
        cube, transform = file.read(), file.transform
    shape = {"count": len(cube), "height": cube.shape[1], "width": cube.shape[2]}
    with rasterio.open(
        scene, "w", driver="GTiff", dtype="int16", transform=transform, nodata=-32768, **shape
    ) as file:
        file.write(cube)
    assert run("check", scene, example.labels, *WHERE) == 2
    assert "the scene has no CRS: say the scene's CRS (--scene-crs)" in capsys.readouterr().err
    given = [*WHERE, "--scene-crs", "EPSG:32633"]
    assert run("check", scene, example.labels, *given, "--json") == 0
    found = said(capsys)
    words = {finding["subject"]: finding["words"] for finding in found["findings"]}
    assert "(EPSG:32633)" in words["place"]
    assert "--scene-crs EPSG:32633" in found["command"]
    out = tmp_path / "run"
    assert run("train", scene, example.labels, *given, "--out", out, "--folds", "0") == 0
    with rasterio.open(out / "map.tif") as file:
        assert file.crs.to_epsg() == 32633
    facts = json.loads((out / "run.json").read_text("utf-8"))
    assert "--scene-crs EPSG:32633" in repeat_command(facts)
    capsys.readouterr()
    # A file's own CRS is not replaced, and pixels without coordinates get none.
    assert run("check", example.scene, "--scene-crs", "EPSG:4326") == 2
    assert "scene.tif is in EPSG:32633, not in EPSG:4326" in capsys.readouterr().err
    assert run("check", example.scene, "--scene-crs", "EPSG:32633") == 0
    np.save(tmp_path / "scene.npy", cube)
    assert run("check", tmp_path / "scene.npy", "--scene-crs", "EPSG:32633") == 2
    assert "scene.npy has no coordinates" in capsys.readouterr().err


def test_info_tells_what_a_scene_holds(
    example: Example, capsys: pytest.CaptureFixture[str], trained: Path
) -> None:
    assert run("info", example.scene, "--json") == 0
    found = said(capsys)
    assert (found["type"], found["nodata"], found["scale"]) == ("int16", -32768, 1.0)
    assert "96 rows × 80 columns" in found["place"]
    assert run("info", trained / "model-0.safetensors") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "450 to 1250 (23 values)" in shown


def test_check_tells_how_much_of_a_scene_has_no_data(tmp_path: Path) -> None:
    cube = np.random.default_rng(0).random((60, 50, 4), dtype=np.float32)
    cube[:15] = -1
    np.save(tmp_path / "scene.npy", cube)
    found = check_scene(
        tmp_path / "scene.npy", scene_options=SceneOptions(nodata=-1.0, bands_axis="last")
    )
    words = {finding.subject: finding.words for finding in found.findings}
    assert words["no data"] == "25 % of the scene"


@pytest.mark.parametrize(("step", "told"), [(1, True), (20, False)])
def test_check_tells_of_labels_from_few_places(step: int, told: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "scene.npy", rng.random((100, 100, 5), dtype=np.float32))
    labels = np.zeros((100, 100), np.uint8)
    labels[np.ix_(range(2, 2 + 5 * step, step), range(2, 2 + 5 * step, step))] = 1
    np.save(tmp_path / "labels.npy", labels)
    found = check_scene(tmp_path / "scene.npy", tmp_path / "labels.npy")
    assert found.fit
    assert told == ("spread of labels" in [finding.subject for finding in found.findings])


@pytest.mark.learning
def test_without_settings_a_map_is_there_in_seconds_and_right(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    command = ["train", example.scene, example.labels, *WHERE, "--seed", seed, "--json"]
    truth = ["--truth", example.truth, "--truth-target", "1"]
    assert run(*command, *truth, "--folds", "2", "--out", tmp_path / "run") == 0
    summary = said(capsys)
    assert summary["method"] == "density-ratio"
    assert summary["scores"]["f1"] > 75
    reasons = {"all": ("about halfway",), "part": ("where the map", "0.4"), "patch": ("0.4",)}
    assert summary["threshold_reason"].startswith(reasons[summary["coverage"]])
    beyond = load_model(tmp_path / "run/model.safetensors").training.get("beyond")
    goes_on = beyond is not None and beyond["fair"] is False
    assert any("seems to go on" in note for note in summary["notes"]) == goes_on
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"model.safetensors", "map.tif", "novelty.tif", "report.html"} <= names
    assert not {"curves.png", "checkpoint.safetensors"} & names
    assert run("map", tmp_path / "run", example.scene, "--out", tmp_path / "map", "--json") == 0
    mapped = said(capsys)
    assert mapped["mapped_share"] == pytest.approx(summary["mapped_share"])
    assert mapped["threshold_reason"] == summary["threshold_reason"]
    words = shlex.split(repeat_command(json.loads((tmp_path / "run/run.json").read_text("utf-8"))))
    assert "--method" not in words
    assert "--preset" not in words
    assert run(*command, "--folds", "2", "--resume", "--out", tmp_path / "run") == 0
    assert said(capsys)["mapped_share"] == summary["mapped_share"]
    assert run("info", tmp_path / "run", "--json") == 0
    assert said(capsys)["weights"] > 0


def test_a_coverage_is_for_the_density_ratio_alone(
    small: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = ["train", small.scene, small.labels, *WHERE, "--folds", "0"]
    command = [*train, "--out", tmp_path / "run"]
    assert run(*command, "--coverage", "all", "--json") == 0
    assert said(capsys)["coverage"] == "all"
    assert run(*command, "--overwrite", "--coverage", "all", "--epochs", "1") == 2
    assert "leave out --coverage" in " ".join(capsys.readouterr().err.split())
    assert run(*train, *ONE_EPOCH, "--out", tmp_path / "n") == 0
    assert json.loads((tmp_path / "n/run.json").read_text("utf-8"))["method"] == "t-honecls"


def test_a_network_that_is_overwritten_leaves_nothing_behind(
    small: Example, tmp_path: Path
) -> None:
    command = ["train", small.scene, small.labels, *WHERE, "--out", tmp_path / "run"]
    command += ["--folds", "0"]
    assert run(*command, *ONE_EPOCH, "--seeds", "2") == 0
    assert run(*command, "--overwrite") == 0
    models = [path.name for path in (tmp_path / "run").glob("*.safetensors")]
    assert models == ["model.safetensors"]


def test_the_command_of_a_report_repeats_what_was_given(trained: Path, example: Example) -> None:
    words = shlex.split(repeat_command(json.loads((trained / "run.json").read_text("utf-8"))))
    assert words[:4] == ["thonecls", "train", str(example.scene), str(example.labels)]
    for given in (WHERE, QUICK, ["--folds", "2"], ["--seeds", "2"], ["--label", "lantana"]):
        assert all(str(word) in words for word in given)
    assert words[words.index("--minimum-area") + 1] == "4000.0"


def test_labels_on_nodata_alone_are_a_problem(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with rasterio.open(example.scene) as file:
        x, y = file.xy(5, file.width - 2)
    (tmp_path / "l.csv").write_text(f"x,y\n{x},{y}\n")
    assert run("check", example.scene, tmp_path / "l.csv") == 2
    assert "lie on nodata" in capsys.readouterr().out


def test_training_leaves_all_that_a_mapper_opens(trained: Path, example: Example) -> None:
    names = {path.name for path in trained.iterdir()}
    rasters = {"map", "probability", "uncertainty", "novelty"}
    assert names == {
        *(f"{name}.tif" for name in rasters),
        *(f"{name}.qml" for name in rasters),
        "item.json",
        "map.tif.aux.xml",
        "model-0.safetensors",
        "model-1.safetensors",
        "polygons.gpkg",
        "overview.png",
        "curves.png",
        "evidence.npz",
        "report.html",
        "report.json",
        "run.json",
    }
    with rasterio.open(example.scene) as scene:
        expected = scene.crs, scene.transform, scene.shape
        valid = scene.read_masks(1) > 0
    for name in rasters:
        path = trained / f"{name}.tif"
        assert cog_validate(path, quiet=True)[0]
        with rasterio.open(path) as file:
            assert (file.crs, file.transform, file.shape) == expected
            np.testing.assert_array_equal(file.read(1) != 255, valid)
            assert file.tags()["model_sha256"]
    with rasterio.open(trained / "map.tif") as file:
        assert file.colormap(1)[1][:3] == (0, 114, 178)
        assert set(np.unique(file.read(1))) <= {0, 1, 255}


@pytest.mark.learning
def test_the_map_is_right(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    longer = ["--epochs", "14", *QUICK[2:], "--folds", "0"]
    command = ["train", example.scene, example.labels, *WHERE, *longer, "--seed", seed, "--json"]
    truth = ["--truth", example.truth, "--truth-target", "1"]
    assert run(*command, *truth, "--out", tmp_path / "run") == 0
    assert said(capsys)["scores"]["f1"] > 80


def test_the_report_says_how_right_the_map_is(trained: Path) -> None:
    summary = json.loads((trained / "run.json").read_text("utf-8"))
    assert summary["held_out"] == summary["positives"] == 60
    report = json.loads((trained / "report.json").read_text("utf-8"))
    assert report["trust"]["held_out"]["labels"] == 60
    assert report["trust"]["opinions"][0]["method"] == "matched-filter"
    assert report["area"].endswith(" ha")
    assert report["trust"]["stability"]["seeds"] == 2
    assert report["scores"]["f1"] == pytest.approx(summary["scores"]["f1"])
    page = " ".join(re.sub("<[^>]*>", " ", (trained / "report.html").read_text("utf-8")).split())
    assert "of the class" in page
    assert "thonecls train" in page
    assert "--folds 2" in page


def test_polygons_cover_what_is_mapped(trained: Path) -> None:
    polygons = geopandas.read_file(trained / "polygons.gpkg")
    with rasterio.open(trained / "map.tif") as file:
        mapped = int((file.read(1) == 1).sum())
    assert (polygons["area"] >= 4000).all()
    assert polygons["mean_probability"].between(0.5, 1).all()
    assert polygons["pixels"].sum() <= mapped
    assert polygons["pixels"].sum() > 0.9 * mapped


def test_report_can_be_made_again(
    trained: Path, example: Example, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (trained / "report.json").read_bytes()
    known = json.loads((trained / "run.json").read_text("utf-8"))
    assert known["scores"]
    truth = ["--truth", example.truth, "--truth-target", "1"]
    for given in ([], truth, []):  # what a truth told once is not forgotten
        assert run("report", trained, *given, "--json") == 0
        assert said(capsys)["scores"]["f1"] == pytest.approx(known["scores"]["f1"])
        assert (trained / "report.json").read_bytes() == before
        assert json.loads((trained / "run.json").read_text("utf-8")) == known
    assert run("report", trained) == 0
    assert "report:" in capsys.readouterr().out


def test_another_scene_is_mapped_by_its_wavelengths(
    trained: Path, example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The training scene with its bands turned round and one more among them."""
    with rasterio.open(example.scene) as file:
        profile, cube = file.profile, file.read()
        waves = [float(file.tags(band)["wavelength"]) for band in file.indexes]
    order = [*range(len(waves) - 1, -1, -1)]
    profile |= {"count": len(waves) + 1}
    with rasterio.open(tmp_path / "turned.tif", "w", **profile) as file:
        for band, i in enumerate([*order, 0], 1):
            file.write(cube[i], band)
            wave = waves[i] if band <= len(order) else 2000.0
            file.update_tags(band, wavelength=f"{wave}", wavelength_units="nm")
    assert run("map", trained, tmp_path / "turned.tif", "--out", tmp_path / "m", "--json") == 0
    notes = " ".join(said(capsys)["notes"])
    assert "the model has 23 bands, the scene 25; matched within 0.0 nm" in notes
    for name in ("map.tif", "probability.tif", "uncertainty.tif", "novelty.tif"):
        with rasterio.open(trained / name) as one, rasterio.open(tmp_path / "m" / name) as two:
            np.testing.assert_array_equal(one.read(), two.read())


def test_many_scenes_by_pattern(
    trained: Path, example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tif").write_bytes(example.scene.read_bytes())
    assert run("map", trained, tmp_path / "*.tif", "--out", tmp_path / "maps", "--json") == 0
    assert len(said(capsys)) == 2
    with (
        rasterio.open(tmp_path / "maps/a/map.tif") as one,
        rasterio.open(tmp_path / "maps/b/map.tif") as two,
    ):
        np.testing.assert_array_equal(one.read(), two.read())
        assert (one.tags()["scene"], two.tags()["scene"]) == ("a.tif", "b.tif")
    assert run("map", trained, tmp_path / "*.img", "--out", tmp_path / "x") == 2
    assert "no file fits" in capsys.readouterr().err
    assert run("map", trained, example.scene, tmp_path / "c.tif", "--out", tmp_path / "x") == 2
    assert "there is no file" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "transform",
    [
        Affine(30, 0, 364095.123, 0, -30, 5809965.321),
        Affine(21.2, 21.2, 364095.0, 21.2, -21.2, 5809965.0),  # rotated
        Affine(30, 0, 364095.0, 0, 30, 5807085.0),  # south up
        Affine(10, 0, 364095.0, 0, -25, 5809965.0),  # oblong
    ],
    ids=["north-up", "rotated", "south-up", "oblong"],
)
def test_maps_lie_where_the_scene_lies_to_the_last_digit(
    trained: Path, example: Example, tmp_path: Path, transform: Affine
) -> None:
    with rasterio.open(example.scene) as file:
        profile, cube = file.profile, file.read()[:, :37, :50]  # smaller than the halo
        tags = [file.tags(band) for band in file.indexes]
    profile |= {"transform": transform, "height": 37, "width": 50, "tiled": False}
    profile = {k: v for k, v in profile.items() if not k.startswith("block")}
    with rasterio.open(tmp_path / "s.tif", "w", **profile) as file:
        file.write(cube)
        for band, found in enumerate(tags, 1):
            file.update_tags(band, **found)
    assert run("map", trained, tmp_path / "s.tif", "--out", tmp_path / "m", "--json") == 0
    with rasterio.open(tmp_path / "m/map.tif") as made:
        assert made.transform == transform
        assert made.shape == (37, 50)


def test_a_threshold_by_labels_left_out_is_in_the_model_and_every_map_uses_it(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "train",
        example.scene,
        example.labels,
        *WHERE,
        *QUICK,
        "--members",
        "2",
        "--folds",
        "0",
    ]
    assert run(*command, "--out", tmp_path / "run", "--json") == 0
    summary = said(capsys)
    assert "labels left out of training say the class covers" in summary["threshold_reason"]
    assert run("map", tmp_path / "run", example.scene, "--out", tmp_path / "map", "--json") == 0
    assert said(capsys)["threshold"] == summary["threshold"] != 0.5
    again = ["map", tmp_path / "run", example.scene, "--threshold", "0.5"]
    assert run(*again, "--out", tmp_path / "half", "--json") == 0
    assert said(capsys)["threshold_reason"] == "given by hand"
    with rasterio.open(tmp_path / "run/probability.tif") as file:
        probability = file.read(1)
    with rasterio.open(tmp_path / "run/map.tif") as file:
        mapped = file.read(1)
    known = mapped != 255
    limit = summary["threshold"]
    np.testing.assert_array_equal((probability[known] * 0.01) > limit, mapped[known] == 1)


LITTLE = 1e6  # bytes for a window, so that a small scene has several

# The program: it says when it has written two windows, and waits to be killed.
WAITS_AFTER_TWO = f"""
import time
import thonecls.method.model, thonecls.workflow.layers as layers
from thonecls.cli import main
thonecls.method.model.MEMORY = {LITTLE}
write, windows = layers._Rasters.write, []
def write_and_wait(*arguments):
    write(*arguments)
    windows.append(1)
    if len(windows) == 2:
        print("two windows", flush=True)
        time.sleep(1e6)
layers._Rasters.write = write_and_wait
main()
"""


@pytest.fixture(scope="module")
def large(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's scene, repeated to 150 × 120 pixels in an ENVI file: six windows."""
    path = tmp_path_factory.mktemp("large") / "large.bsq"
    with rasterio.open(example.scene) as file:
        profile = file.profile
        cube = np.tile(file.read(), (1, 2, 2))[:, :150, :120]
        tags = [file.tags(band) for band in file.indexes]
    size = {"driver": "ENVI", "height": 150, "width": 120, "interleave": "bil"}
    profile = {k: v for k, v in profile.items() if k not in ("blockxsize", "blockysize", "tiled")}
    with rasterio.open(path, "w", **(profile | size)) as file:
        file.write(cube)
        waves = ", ".join(found["wavelength"] for found in tags)
        good = ", ".join(found["bbl"] for found in tags)
    header = path.with_suffix(".hdr").read_text("utf-8")
    more = f"wavelength units = Nanometers\nwavelength = {{{waves}}}\nbbl = {{{good}}}\n"
    path.with_suffix(".hdr").write_text(header + more)
    return path


def test_a_killed_map_is_resumed_to_the_same_bytes(
    trained: Path, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when two of six windows are written; then resumed by another process."""
    command = ["map", trained / "model-0.safetensors", large, "--resume", "--json"]
    scored: list[Scored] = []
    score = Scorer.score

    def count(*arguments: Any) -> Scored:
        scored.append(score(*arguments))
        return scored[-1]

    monkeypatch.setattr(Scorer, "score", count)
    monkeypatch.setattr("thonecls.method.model.MEMORY", LITTLE)
    assert run(*command, "--out", tmp_path / "whole") == 0
    assert len(scored) == 6
    words = [sys.executable, "-c", WAITS_AFTER_TWO, *command, "--out", tmp_path / "killed"]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"two windows\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed/map.tif").exists()
    assert run(*command, "--out", tmp_path / "killed") == 0
    assert len(scored) == 6 + 4
    for name in ("map.tif", "probability.tif", "novelty.tif"):
        one, two = (tmp_path / folder / name for folder in ("whole", "killed"))
        assert one.read_bytes() == two.read_bytes()


def test_a_cluster_maps_the_same_and_outlives_a_worker(
    trained: Path, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    from thonecls.workflow import MapOptions, map_scene

    model = trained / "model-0.safetensors"
    map_scene(model, large, tmp_path / "here")
    monkeypatch.setattr("thonecls.workflow.map.TILE", 40)  # 12 windows
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        killed: list[int] = []

        def kill_one(done: int, total: int) -> None:
            if not killed and done < total:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        map_scene(
            model,
            large,
            tmp_path / "there",
            options=MapOptions(dask=cluster.scheduler_address),
            on_window=kill_one,
        )
    assert killed
    with (
        rasterio.open(tmp_path / "here/map.tif") as one,
        rasterio.open(tmp_path / "there/map.tif") as two,
    ):
        np.testing.assert_array_equal(one.read(), two.read())


def test_a_model_knows_its_bands(trained: Path) -> None:
    model = Model.load(trained / "model-0.safetensors")
    assert model.wavelengths is not None
    assert len(model.wavelengths) == model.bands == 23
    assert model.training["label"] == "lantana"
