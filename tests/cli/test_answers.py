"""Points for people: drawn, answered, and read back by report and by training."""

from __future__ import annotations

import json
from pathlib import Path

import geopandas
import numpy as np
import pytest
import rasterio

from commands import run
from thonecls.datasets import Example, write_example
from thonecls.errors import LabelError
from thonecls.io.grid import Grid
from thonecls.io.inputs import read_labels, read_scene
from thonecls.io.options import LabelOptions
from thonecls.method.model import Model

WHERE = ["--where", "species = 'lantana'"]
pytestmark = pytest.mark.usefixtures("white_pictures")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return write_example(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def trained(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("answers") / "run"
    assert run("train", example.scene, example.labels, *WHERE, "--out", out) == 0
    return out


def answer(path: Path, truth: Path, but: int = 0) -> int:
    """Fill in what the truth says, but for the first few points; how many are the class."""
    frame = geopandas.read_file(path)
    with rasterio.open(truth) as file:
        inside = frame.to_crs(file.crs)
        at = [(point.x, point.y) for point in inside.geometry]
        frame["present"] = [int(value[0] == 1) for value in file.sample(at)]
    frame.loc[: but - 1, "present"] = None
    frame.to_file(path)
    return int(frame["present"].fillna(0).sum())


def test_checked_points_tell_how_right_the_map_is(
    trained: Path, example: Example, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    points = tmp_path / "points.gpkg"
    assert run("sample", trained, "--size", "50", "--out", points, "--json") == 0
    assert json.loads(capsys.readouterr().out)["points"] == str(points)
    frame = geopandas.read_file(points)
    assert len(frame) == 50
    assert frame["present"].isna().all()
    assert run("report", trained, "--verified", points) == 2
    assert "has an answer" in capsys.readouterr().err
    answer(points, example.truth, but=4)
    assert run("report", trained, "--verified", points) == 0
    shown = capsys.readouterr().out
    assert "by points that were checked" in shown
    words = shown.splitlines()[1]
    assert words.endswith(" ha). Intervals hold the truth 19 times in 20.")
    page = (trained / "report.html").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert words in page  # the same numbers on the page and in the terminal
    assert run("report", trained, "--verified", points, "--json") == 0
    found = json.loads(capsys.readouterr().out)["verified"]["found"]
    assert (found["asked"], found["answered"]) == (50, 46)
    with rasterio.open(example.truth) as truth, rasterio.open(trained / "map.tif") as made:
        of_class, mapped = truth.read(1) == 1, made.read(1) == 1
    for name, true in (
        ("precision", of_class[mapped].mean()),
        ("recall", mapped[of_class].mean()),
        ("area", of_class.mean()),
    ):
        assert found[name]["low"] - 0.05 <= true <= found[name]["high"] + 0.05, name
    points.rename(tmp_path / "elsewhere.gpkg")
    assert run("report", trained, "--json") == 0  # answers that were given once stay
    assert json.loads(capsys.readouterr().out)["verified"]["found"] == found
    assert "points that were checked" in (trained / "report.html").read_text("utf-8")
    (tmp_path / "elsewhere.gpkg").rename(points)
    assert run("sample", trained, "--out", points) == 2
    assert "perhaps with answers" in capsys.readouterr().err


def test_points_of_another_map_are_refused(
    trained: Path, example: Example, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    points = tmp_path / "points.gpkg"
    assert run("sample", trained, "--out", points) == 0
    answer(points, example.truth)
    frame = geopandas.read_file(points)
    frame.geometry = list(frame.geometry[::-1])
    frame.to_file(points)
    assert run("report", trained, "--verified", points) == 2
    assert "was drawn from another map" in capsys.readouterr().err
    frame.drop(columns="stratum").to_file(points)
    assert run("report", trained, "--verified", points) == 2
    assert "does not tell the stratum" in capsys.readouterr().err


def test_answers_to_suggestions_are_learnt_from(
    trained: Path, example: Example, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    places = tmp_path / "places.gpkg"
    assert run("suggest", trained, "--size", "12", "--out", places) == 0
    assert "--answers" in capsys.readouterr().out
    frame = geopandas.read_file(places)
    assert 6 <= len(frame) <= 12
    again = ["train", example.scene, example.labels, *WHERE, "--answers", places, "--json"]
    assert run(*again, "--out", tmp_path / "again") == 2
    assert "has an answer: write 1 or 0" in capsys.readouterr().out
    yes = answer(places, example.truth)
    assert run(*again, "--out", tmp_path / "again") == 0
    summary = json.loads(capsys.readouterr().out)
    before = json.loads((trained / "run.json").read_text("utf-8"))
    assert summary["positives"] == before["positives"] + yes
    assert f"{yes} points are the class, {len(frame) - yes} are not" in " ".join(summary["notes"])
    page = (tmp_path / "again/report.html").read_text("utf-8")
    assert "--answers" in page  # the command to make it again
    # What was answered is not asked again, whatever the answer was.
    assert run("suggest", tmp_path / "again", "--size", "12", "--out", tmp_path / "more.gpkg") == 0
    capsys.readouterr()
    asked = geopandas.read_file(tmp_path / "more.gpkg").distance(frame.union_all())
    assert asked.min() > 8 * rasterio.open(example.scene).res[0] - 1
    quick = ["--epochs", "1", "--batches", "2", "--width", "0.25", "--unlabeled", "200"]
    assert run(*again, *quick, "--folds", "0", "--out", tmp_path / "network") == 0
    capsys.readouterr()
    assert run(*again, "--method", "sam", "--out", tmp_path / "spectral") == 2
    assert "has no use for places where the class is not" in capsys.readouterr().out
    assert run(*again, "--preset", "collage", "--out", tmp_path / "collage") == 2
    assert "take the density ratio" in capsys.readouterr().out


def test_a_column_of_labels_and_a_file_of_negatives_say_where_the_class_is_not(
    example: Example, tmp_path: Path
) -> None:
    with rasterio.open(example.scene) as file:
        crs, transform = file.crs, tuple(file.transform)[:6]
        grid = Grid((file.height, file.width), transform, crs.to_wkt())
        at = [file.xy(row, column) for row, column in ((2, 3), (4, 5), (6, 7), (8, 9))]
    points = geopandas.points_from_xy(*np.array(at).T)
    frame = geopandas.GeoDataFrame({"present": [1, 0, 0, None]}, geometry=points, crs=crs)
    frame.to_file(tmp_path / "labels.gpkg")
    found = read_labels(tmp_path / "labels.gpkg", grid)
    assert np.argwhere(found.mask).tolist() == [[2, 3]]
    assert found.negatives is not None
    assert np.argwhere(found.negatives).tolist() == [[4, 5], [6, 7]]
    frame[["geometry"]].iloc[3:].to_file(tmp_path / "no.gpkg")
    options = LabelOptions(negatives=str(tmp_path / "no.gpkg"))
    more = read_labels(tmp_path / "labels.gpkg", grid, options)
    assert more.negatives is not None
    assert more.negatives.sum() == 3
    rounds = tmp_path / "rounds"
    rounds.mkdir()
    frame.iloc[:2].to_file(rounds / "1.gpkg")
    frame.iloc[2:].to_file(rounds / "2.gpkg")
    for given in (rounds, rounds / "*.gpkg"):
        both = read_labels(tmp_path / "labels.gpkg", grid, LabelOptions(answers=str(given)))
        assert both.negatives is not None
        assert (both.mask.sum(), both.negatives.sum()) == (1, 2)
        assert "2.gpkg: 0 points are the class, 1 are not, 1 have no answer" in both.notes
    with pytest.raises(LabelError, match="no file of answers is called"):
        read_labels(tmp_path / "labels.gpkg", grid, LabelOptions(answers=str(rounds / "x*")))
    frame[["geometry"]].iloc[:1].to_file(tmp_path / "no.gpkg")
    with pytest.raises(Exception, match="1 pixels are marked as the class and as not the class"):
        read_labels(tmp_path / "labels.gpkg", grid, options)


def test_pubn_takes_negatives_by_themselves(example: Example, tmp_path: Path) -> None:
    frame = geopandas.read_file(example.labels)
    frame[frame["species"] != "lantana"][["geometry"]].to_file(tmp_path / "no.gpkg")
    command = ["train", example.scene, example.labels, *WHERE, "--method", "pubn", "--prior", "0.2"]
    command += ["--negatives", tmp_path / "no.gpkg", "--out", tmp_path / "run", "--folds", "0"]
    assert run(*command, "--epochs", "1", "--batches", "2", "--width", "0.125") == 0
    model = Model.load(tmp_path / "run" / "model.safetensors")
    assert model.training["known_share"] > 0
    assert len(model.training["history"]["loss"]) == 2  # of either network


@pytest.mark.parametrize("name", ["level_2", "Class", "TYPE"])
def test_a_column_of_kinds_is_known_by_its_name(
    example: Example, name: str, tmp_path: Path
) -> None:
    frame = geopandas.read_file(example.labels)[["species", "geometry"]]
    frame.rename(columns={"species": name}).to_file(tmp_path / "labels.gpkg")
    grid = read_scene(example.scene).grid
    with pytest.raises(LabelError, match=f"kinds in its column '{name}'"):
        read_labels(tmp_path / "labels.gpkg", grid)


def test_several_classes_in_a_layer_are_named_and_asked_about(
    example: Example, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("train", example.scene, example.labels, "--out", tmp_path / "run") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "kinds in its column 'species'" in told
    assert "lantana" in told
    assert "--where" in told
    assert not (tmp_path / "run").exists()


def test_a_value_that_looks_like_no_data_is_asked_about(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    cube = rng.normal(size=(6, 30, 30)).astype(np.float32)
    cube[:, :5, :5] = -9999
    np.save(tmp_path / "cube.npy", cube)
    np.save(tmp_path / "labels.npy", rng.random((30, 30)) < 0.1)
    command = ["train", tmp_path / "cube.npy", tmp_path / "labels.npy", "--bands-axis", "first"]
    command += ["--method", "matched-filter", "--out", tmp_path / "run"]
    assert run(*command) == 2
    assert "say --nodata -9999" in " ".join(capsys.readouterr().err.split())
    assert run(*command, "--nodata=-9999") == 0
    assert np.isnan(np.load(tmp_path / "run/probability.npy")[:5, :5]).all()
