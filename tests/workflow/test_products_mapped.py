"""Products as they are delivered, by check, train and map, without a conversion."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import h5py
import numpy as np
import pandas as pd
import pytest
import rasterio
from numpy.typing import NDArray
from pyproj import CRS
from rasterio.errors import NotGeoreferencedWarning
from rio_cogeo.cogeo import cog_validate

from commands import run
from products import PRODUCTS, SHAPE, Made, emit
from thonecls.errors import FileError, LabelError
from thonecls.io.inputs import read_labels, read_scene, read_scenes
from thonecls.io.vector import read_points, write_points
from thonecls.maps import scene_grid
from thonecls.method.model import Scorer
from thonecls.methods.spectral_model import load_model
from thonecls.workflow.run_folder import read_probability
from thonecls.workflow.sample import draw_sample, hectares_of_pixel, suggest_places, verify_run

pytestmark = pytest.mark.usefixtures("white_pictures")


@pytest.fixture(autouse=True, scope="module")
def one_opinion() -> Iterator[None]:
    """A matched filter alone beside every training: what others say is not the subject here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        yield


@pytest.mark.parametrize("name", [name for name in PRODUCTS if name != "emit"])
def test_a_product_is_checked_trained_on_and_mapped(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk(PRODUCTS[name](tmp_path), tmp_path, capsys)


def walk(made: Made, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check, train and map; what is there in the end."""
    assert run("check", made.scene, made.labels, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fit"], found
    out, again = folder / "run", folder / "again"
    assert run("train", made.scene, made.labels, "--out", out, "--folds", "2", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert "problems" not in told, told
    assert run("map", out, made.scene, "--out", again, "--json") == 0
    assert "problems" not in json.loads(capsys.readouterr().out)
    shape, transform, code = made.grid
    for path in (out / "map.tif", again / "map.tif", again / "probability.tif"):
        assert cog_validate(path)[0]
        with rasterio.open(path) as file:
            assert file.shape == shape
            assert file.transform.almost_equals(transform, 1e-6)
            assert CRS.from_wkt(file.crs.to_wkt()).to_epsg() == code
            assert file.read(1).min() < 255
    if made.values.shape[1:] == shape:
        with rasterio.open(again / "map.tif") as file:
            assert ((file.read(1) == 255) == np.isnan(made.values).any(axis=0)).all()


@pytest.fixture(scope="module")
def swath(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Path]:
    """A scene in the geometry of its sensor, and a run on it."""
    folder = tmp_path_factory.mktemp("swath")
    made = emit(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        assert run("check", made.scene, made.labels) == 0
        assert run("train", made.scene, made.labels, "--out", folder / "run", "--folds", "2") == 0
        assert run("map", folder / "run", made.scene, "--out", folder / "again") == 0
    return made, folder / "run"


def test_a_map_shows_what_was_scored_in_the_geometry_of_the_sensor(
    swath: tuple[Made, Path],
) -> None:
    made, out = swath
    opened = read_scene(made.scene)
    assert opened.grid.lookup is not None
    scorer = Scorer([load_model(out / "model.safetensors")], device="cpu")
    scored = scorer.score(opened.source, slice(0, SHAPE[0]), slice(0, SHAPE[1])).probability
    table = opened.grid.lookup.table
    expected = np.where(table >= 0, scored.flat[np.maximum(table, 0)], np.nan)
    for folder in (out, out.parent / "again"):
        assert cog_validate(folder / "map.tif")[0]
        with rasterio.open(folder / "probability.tif") as file:
            raw = file.read(1)
            assert file.shape == made.grid[0]
            assert file.transform.almost_equals(made.grid[1], 1e-9)
        np.testing.assert_array_equal(raw == 255, np.isnan(expected))
        assert np.nanmax(np.abs(np.where(raw == 255, np.nan, raw / 100) - expected)) < 0.011
        with rasterio.open(folder / "geometry.tif") as file:
            np.testing.assert_array_equal(file.read(1), table)
        assert (folder / "overview.png").exists()
        item = json.loads((folder / "item.json").read_text("utf-8"))
        assert item["properties"]["proj:shape"] == list(made.grid[0])
    polygons = geopandas.read_file(out / "polygons.gpkg")
    assert polygons.crs.to_epsg() == 4326
    assert len(polygons)


def write_raster(path: Path, array: NDArray[np.uint8], **place: Any) -> None:
    size = {"count": 1, "height": array.shape[0], "width": array.shape[1], "dtype": "uint8"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver="GTiff", **size, **place) as file:
            file.write(array, 1)


def test_labels_of_any_kind_reach_the_pixels_of_the_sensor(
    swath: tuple[Made, Path], tmp_path: Path
) -> None:
    made, _ = swath
    grid = read_scene(made.scene).grid
    lookup = grid.lookup
    assert lookup is not None
    points = read_labels(made.labels, grid)
    assert points.mask.shape == SHAPE
    assert any("pixels of the sensor" in note for note in points.notes)
    # A raster on the map, one in the geometry of the sensor, and a list of pixels.
    marked = np.isin(lookup.table, np.flatnonzero(points.mask)).astype(np.uint8)
    place = {"crs": lookup.grid.crs, "transform": lookup.grid.transform}
    write_raster(tmp_path / "map.tif", marked, **place)
    write_raster(tmp_path / "sensor.tif", points.mask.astype(np.uint8))
    for name in ("map.tif", "sensor.tif"):
        np.testing.assert_array_equal(read_labels(tmp_path / name, grid).mask, points.mask)
    np.save(tmp_path / "mask.npy", points.mask)
    np.testing.assert_array_equal(read_labels(tmp_path / "mask.npy", grid).mask, points.mask)
    # Where the map shows nothing, there is nothing to learn from.
    point = geopandas.points_from_xy([13.0001], [52.3999])
    corner = geopandas.GeoDataFrame(geometry=point, crs=4326)
    corner.to_file(tmp_path / "corner.gpkg", driver="GPKG")
    with pytest.raises(LabelError, match="none of which shows a pixel"):
        read_labels(tmp_path / "corner.gpkg", grid)


def test_points_of_a_run_lie_on_the_map(swath: tuple[Made, Path], tmp_path: Path) -> None:
    made, out = swath
    grid = read_scene(made.scene).grid
    lookup = grid.lookup
    assert lookup is not None
    asked = suggest_places(out, tmp_path / "asked", size=5)
    assert geopandas.read_file(asked).crs.to_epsg() == 4326
    assert geopandas.read_file(draw_sample(out, tmp_path / "sample")).crs.to_epsg() == 4326
    pixels = np.unique(lookup.table[lookup.table >= 0])[[5, 70, 400]].astype(np.int64)
    write_points(tmp_path / "points.gpkg", grid, pixels, {}, np.array([1.0, 0.0, np.nan]))
    found = read_points(tmp_path / "points.gpkg", grid)
    np.testing.assert_array_equal(found.pixels, pixels)
    np.testing.assert_array_equal(found.present, [1, 0, np.nan])


def test_a_report_compares_with_a_truth_on_the_map(
    swath: tuple[Made, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = swath[1]
    with rasterio.open(out / "map.tif") as file:
        truth, about = file.read(1), dict(file.profile)
    place = {name: about[name] for name in ("crs", "transform")}
    known = np.where(truth == 255, 0, truth + 1).astype(np.uint8)
    write_raster(tmp_path / "truth.tif", known, **place)
    capsys.readouterr()
    assert run("report", out, "--truth", tmp_path / "truth.tif", "--truth-target", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["scores"]["f1"] == pytest.approx(100)


def test_a_geometry_that_is_spoilt_is_refused(swath: tuple[Made, Path], tmp_path: Path) -> None:
    (tmp_path / "geometry.tif").write_bytes(b"II*\0")
    with pytest.raises(FileError, match="map the scene again"):
        scene_grid(tmp_path, read_scene(swath[0].scene).grid.on_map)


def shifted(scene: Path, path: Path) -> Path:
    """The same swath half a degree farther east."""
    shutil.copy(scene, path)
    with h5py.File(path, "a") as file:
        file.attrs["geotransform"] += np.array([0.5, 0, 0, 0, 0, 0])
    return path


def test_a_swath_among_others_may_have_negatives_alone(
    swath: tuple[Made, Path], tmp_path: Path
) -> None:
    made, _ = swath
    grid = read_scenes([made.scene, shifted(made.scene, tmp_path / "second.nc")]).grid
    here = geopandas.read_file(made.labels)[["geometry"]].assign(present=1)
    there = here.assign(geometry=here.translate(0.5, 0), present=0)
    pd.concat([here, there]).to_file(tmp_path / "answers.gpkg")
    labels = read_labels(tmp_path / "answers.gpkg", grid)
    first, second = grid.windows
    assert labels.negatives is not None
    np.testing.assert_array_equal(labels.mask[first], labels.negatives[second])
    assert labels.mask[first].any()
    assert not labels.mask[second].any()
    assert not labels.negatives[first].any()


def test_swaths_that_were_learnt_from_together_are_read_back_as_they_were(
    swath: tuple[Made, Path], tmp_path: Path
) -> None:
    made, one = swath
    scenes = [made.scene, shifted(made.scene, tmp_path / "second.nc")]
    here = geopandas.read_file(made.labels)
    pd.concat([here, here.assign(geometry=here.translate(0.5, 0))]).to_file(tmp_path / "two.gpkg")
    out = tmp_path / "run"
    asked = ("--out", out, "--method", "matched-filter", "--folds", "2")
    assert run("train", *scenes, tmp_path / "two.gpkg", *asked) == 0
    told = json.loads((out / "run.json").read_text("utf-8"))
    assert not told.get("problems")
    assert (out / "scenes/second/item.json").exists()
    grid, probability = read_probability(out)
    assert grid.shape == read_scenes(scenes).grid.shape
    assert grid.windows == read_scenes(scenes).grid.windows
    # Points lie where the map has the probability that they tell.
    points = geopandas.read_file(suggest_places(out, tmp_path / "asked", size=5))
    assert points.crs.to_epsg() == 4326
    found = read_points(tmp_path / "asked.gpkg", grid)
    np.testing.assert_allclose(probability.flat[found.pixels], points["probability"], atol=0.02)
    drawn = draw_sample(out, tmp_path / "sample", size=12)
    geopandas.read_file(drawn).assign(present=1).to_file(drawn, driver="GPKG")
    assert verify_run(out, drawn).answered == 12
    area = hectares_of_pixel(grid)
    assert area is not None
    on_map = read_probability(one)
    share = np.isfinite(probability).sum() / np.isfinite(on_map[1]).sum()
    assert area * share == pytest.approx(2 * (hectares_of_pixel(on_map[0]) or 0), rel=0.05)
