"""Training on several scenes at once: from tiles to one model, a map for each, one report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
import torch
from affine import Affine

from commands import run
from thonecls.datasets import Example, synthetic
from thonecls.errors import ConfigError, FileError, LabelError, SceneError
from thonecls.io.inputs import read_labels, read_scenes, read_truth
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.fit import fit
from thonecls.methods.spectral_model import AnyModel, load_model
from thonecls.mosaic import Mosaic
from thonecls.ratio.model import fit_ratio
from thonecls.scene import pooled_statistics, read_all
from thonecls.workflow import (
    Running,
    TrainOptions,
    TruthFile,
    check_scene,
    draw_sample,
    train_scene,
)
from thonecls.workflow.map import score_here
from thonecls.workflow.sample import suggest_places, verify_run
from thonecls.workflow.train import LEARN
from tiles import cut_tiles

LANTANA = LabelOptions(where="species = 'lantana'")
CRS = "EPSG:32633"
PLOTS = 12


@pytest.fixture(scope="module")
def tiles(smallholding: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scene in nine tiles, of which some have no label."""
    folder = tmp_path_factory.mktemp("flight") / "tiles"
    cut_tiles(smallholding.scene, folder, 3, 3)
    return folder


@pytest.fixture(scope="module")
def trained(smallholding: Example, tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    truth = TruthFile(smallholding.truth, LabelOptions(target=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        summary = train_scene(
            tiles / "*.tif",
            smallholding.labels,
            out,
            config=FAST,
            label_options=LANTANA,
            truth=truth,
        )
    assert summary.finished
    assert not summary.problems
    return out


def test_labels_and_bands_of_all_scenes_are_learnt_from(
    smallholding: Example, tiles: Path, trained: Path
) -> None:
    told = json.loads((trained / "run.json").read_text("utf-8"))
    assert told["positives"] == 60
    assert len(told["scenes"]) == 9
    assert any("60 labelled pixels in 5 of 9 scenes; the other 4" in note for note in told["notes"])
    model = load_model(trained / "model.safetensors")
    pooled = pooled_statistics(read_all(one.source) for one in read_scenes(tiles).parts)
    np.testing.assert_allclose(model.statistics.mean, pooled.mean, rtol=1e-4)
    np.testing.assert_allclose(model.statistics.std, pooled.std, rtol=1e-3)
    assert told["scores"]["f1"] > 70  # of the whole scene: tiles without the class count too
    whole = read_labels(
        smallholding.truth, read_scenes(smallholding.scene).grid, LabelOptions(target=1)
    )
    assert told["scores"]["positives"] == int(whole.mask.sum()) - 60


def test_each_scene_has_a_map_in_its_own_place(tiles: Path, trained: Path) -> None:
    for tile in sorted(tiles.glob("*.tif")):
        folder = trained / "scenes" / tile.stem
        with rasterio.open(tile) as scene, rasterio.open(folder / "map.tif") as made:
            assert (made.shape, made.transform, made.crs) == (
                scene.shape,
                scene.transform,
                scene.crs,
            )
        item = json.loads((folder / "item.json").read_text("utf-8"))
        assert item["assets"]["map"]["href"] == "./map.tif"
    assert (trained / "overview.png").stat().st_size > 10_000
    assert "9 scenes" in (trained / "report.html").read_text("utf-8")
    again = json.loads((trained / "report.json").read_text("utf-8"))
    assert "scenes.txt" in json.dumps(again)  # in the command that repeats it


def test_tiles_of_one_flight_are_learnt_from_as_they_lie(
    smallholding: Example, tiles: Path, tmp_path: Path
) -> None:
    whole, cut = read_scenes(smallholding.scene), read_scenes(tiles)
    np.testing.assert_array_equal(read_all(cut.source).cube, read_all(whole.source).cube)
    np.testing.assert_array_equal(
        read_labels(smallholding.labels, cut.grid, LANTANA).mask,
        read_labels(smallholding.labels, whole.grid, LANTANA).mask,
    )
    assert cut.grid.sites == ()  # judged as one scene
    assert cut.grid.north_up
    retouch(tiles / "tile_00.tif", tmp_path / "moved.tif", shift=0.5)  # of a pixel, off the others
    assert len(read_scenes([tmp_path / "moved.tif", tiles / "tile_01.tif"]).grid.sites) == 2


@pytest.mark.parametrize("kind", ["ratio", "network"])
def test_a_tile_is_mapped_with_what_lies_beside_it(
    smallholding: Example, tmp_path: Path, kind: str, tiny: TrainConfig, generator: torch.Generator
) -> None:
    cut_tiles(smallholding.scene, tmp_path / "tiles", 2, 2)  # not at multiples of the stride
    whole, cut = read_scenes(smallholding.scene), read_scenes(tmp_path / "tiles")
    mask = read_labels(smallholding.labels, whole.grid, LANTANA).mask
    model: AnyModel
    if kind == "ratio":
        model = fit_ratio(whole.source, mask)
        assert model.halo > 0
    else:
        model = fit(read_all(whole.source), mask, config=tiny, generator=generator)
    expected = model.score(whole.source, device="cpu")
    assert isinstance(cut.source, Mosaic)
    for number, (part, scene) in enumerate(zip(cut.grid.parts, cut.parts, strict=True)):
        site = cut.source.site_of(number)
        (scored,) = score_here([model], scene, "cpu", site)(lambda rows, columns: False)
        assert scored.probability.shape == part.grid.shape
        np.testing.assert_allclose(scored.probability, expected[part.window], atol=1e-4)
    first = cut.parts[0].source, cut.grid.parts[0].window
    alone = model.score(first[0], device="cpu")
    assert np.nanmax(np.abs(alone - expected[first[1]])) > 1e-3  # it would not be the same


def test_points_are_drawn_over_all_scenes_and_read_back(trained: Path, tmp_path: Path) -> None:
    points = draw_sample(trained, tmp_path / "sample", size=24)
    frame = geopandas.read_file(points)
    assert frame.crs.to_epsg() == 32633
    assert frame["scene"].nunique() > 2
    frame["present"] = 1
    frame.to_file(points, driver="GPKG")
    assert verify_run(trained, points).answered == 24
    assert len(geopandas.read_file(suggest_places(trained, tmp_path / "places", size=5))) == 5


def test_resuming_what_is_finished_makes_nothing_again(
    smallholding: Example, tiles: Path, trained: Path
) -> None:
    before = (trained / "model.safetensors").stat().st_mtime_ns
    again = train_scene(
        sorted(tiles.glob("*.tif")),
        smallholding.labels,
        trained,
        config=FAST,
        label_options=LANTANA,
        running=Running(resume=True),
    )
    assert again.finished
    assert (trained / "model.safetensors").stat().st_mtime_ns == before


def test_labels_may_be_a_file_for_each_scene(
    smallholding: Example, tiles: Path, tmp_path: Path
) -> None:
    points = geopandas.read_file(smallholding.labels).query("species == 'lantana'").to_crs(CRS)
    for tile in tiles.glob("*.tif"):
        with rasterio.open(tile) as scene:
            own = points[points.within(shapely.box(*scene.bounds))]
        if len(own):
            own.to_file(tmp_path / f"{tile.stem}.gpkg")
    grid = read_scenes(tiles).grid
    each = read_labels(tmp_path, grid, LANTANA).mask
    np.testing.assert_array_equal(each, read_labels(smallholding.labels, grid, LANTANA).mask)
    (tmp_path / "labels.csv").write_text("row,column\n1,1\n", "utf-8")
    with pytest.raises(LabelError, match="not of which of 9 scenes"):
        read_labels(tmp_path / "labels.csv", grid)


def retouch(
    source: Path,
    target: Path,
    *,
    factor: float = 1.0,
    bands: slice = slice(None),
    crs: bool = True,
    shift: float = 0.0,
) -> None:
    """A tile with other values or bands, without its CRS, or some columns farther east."""
    with rasterio.open(source) as scene:
        numbers = list(range(1, scene.count + 1))[bands]
        profile = {**scene.profile, "count": len(numbers), "dtype": "float32"}
        profile["transform"] = Affine(*scene.transform[:6]) @ Affine.translation(shift, 0)
        if not crs:
            profile["crs"] = None
        cube = scene.read(numbers).astype(np.float32)
        with rasterio.open(target, "w", **profile) as file:
            file.write(np.where(cube == scene.nodata, cube, cube * factor))
            for to, band in enumerate(numbers, 1):
                file.update_tags(to, **scene.tags(band))


def test_bands_are_matched_by_wavelength_and_other_units_refused(
    smallholding: Example, tiles: Path, tmp_path: Path
) -> None:
    one, two = tiles / "tile_00.tif", tmp_path / "two.tif"
    retouch(tiles / "tile_01.tif", two, bands=slice(None, None, -1))
    matched = read_scenes([one, two]).parts[1]
    np.testing.assert_array_equal(
        read_all(matched.source).cube, read_all(read_scenes(tiles / "tile_01.tif").source).cube
    )
    retouch(tiles / "tile_01.tif", two, bands=slice(0, 8))
    with pytest.raises(SceneError, match=r"two.tif cannot be learnt from .* the scene tile_00.tif"):
        read_scenes([one, two])
    retouch(tiles / "tile_01.tif", two, factor=1e-4)
    with pytest.raises(SceneError, match=r"values of two are about \S+ times those of tile_00"):
        train_scene(
            [one, two], smallholding.labels, tmp_path / "run", config=FAST, label_options=LANTANA
        )


def test_scenes_without_a_crs_may_be_told_theirs(
    smallholding: Example, tiles: Path, tmp_path: Path
) -> None:
    for name in ("tile_00", "tile_02", "tile_22"):
        retouch(tiles / f"{name}.tif", tmp_path / f"{name}.tif", crs=False)
    grid = read_scenes(tmp_path / "*.tif", SceneOptions(scene_crs=CRS)).grid
    told = read_scenes([tiles / f"tile_{n}.tif" for n in ("00", "02", "22")]).grid
    np.testing.assert_array_equal(
        read_labels(smallholding.labels, grid, LANTANA).mask,
        read_labels(smallholding.labels, told, LANTANA).mask,
    )
    with pytest.raises(LabelError, match="the scene has no CRS"):
        read_labels(smallholding.labels, read_scenes(tmp_path / "*.tif").grid, LANTANA)
    with pytest.raises(ConfigError, match="not in EPSG:32634"):
        read_scenes(tiles, SceneOptions(scene_crs="EPSG:32634"))


def test_labels_outside_of_all_scenes_say_so(tiles: Path, tmp_path: Path) -> None:
    far = geopandas.GeoDataFrame(geometry=[shapely.Point(0, 0)], crs=CRS)
    far.to_file(tmp_path / "far.gpkg")
    with pytest.raises(LabelError, match=r"far.gpkg marks no pixel in any of the 9 scenes"):
        read_labels(tmp_path / "far.gpkg", read_scenes(tiles).grid)


def test_the_shell_may_expand_the_pattern(
    smallholding: Example, tiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(tiles.glob("*.tif"))
    code = run("check", *files, smallholding.labels, "--where", "species = 'lantana'", "--json")
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert any("9 scenes" in one["words"] for one in found["findings"])
    assert check_scene(tiles, smallholding.labels, label_options=LANTANA).fit


@pytest.mark.usefixtures("one_opinion")
def test_many_plots_of_different_shapes_with_crowns_just_work(tmp_path: Path) -> None:
    data = synthetic(height=110, width=110, bands=6, fields=60, separation=3.0, seed=1)
    rng = np.random.default_rng(0)
    shapes, places = [], []
    (tmp_path / "tiles").mkdir()
    for number in range(PLOTS):
        rows, columns = 8 + number % 4, 9 + number % 3  # of different shapes
        row, column = divmod(number, 10)
        top, left = 11 * row, 11 * column
        at = Affine(1.0, 0.0, 500_000.0 + 200 * column, 0.0, -1.0, 5_000_000.0 - 200 * row)
        cube = data.scene.cube[:, top : top + rows, left : left + columns].astype(np.float32)
        profile = {"driver": "GTiff", "dtype": "float32", "count": 6, "crs": CRS, "transform": at}
        path = tmp_path / "tiles" / f"plot_{number}.tif"
        with rasterio.open(path, "w", height=rows, width=columns, **profile) as file:
            file.write(cube)
        truth = data.truth[top : top + rows, left : left + columns]
        for r, c in np.argwhere(truth == 1)[:1] if rng.random() < 0.9 else []:
            places.append((number, r, c))
            shapes.append(shapely.Point(*(at @ (c + 0.5, r + 0.5))).buffer(0.6))
    geopandas.GeoDataFrame(geometry=shapes, crs=CRS).to_file(tmp_path / "crowns.gpkg")
    summary = train_scene(
        tmp_path / "tiles",
        tmp_path / "crowns.gpkg",
        tmp_path / "run",
        config=FAST,
        options=TrainOptions(polygons=False, label="oak"),
    )
    assert summary.verdict is not None
    assert not summary.problems
    assert summary.positives == len(places)
    assert summary.held_out == len(places)
    assert len(list((tmp_path / "run/scenes").glob("plot_*/map.tif"))) == PLOTS


QUICKLY = TrainOptions(method="matched-filter", folds=0)


def train_quickly(example: Example, scene: Path, out: Path, *, overwrite: bool = False) -> None:
    given: dict[str, Any] = {"config": FAST, "options": QUICKLY, "label_options": LANTANA}
    train_scene(scene, example.labels, out, running=Running(overwrite=overwrite), **given)


def test_a_training_takes_away_nothing_that_it_did_not_make(
    smallholding: Example, tiles: Path, tmp_path: Path, one_opinion: None
) -> None:
    """Maps of one's own in OUT/scenes stay; those of the training's scenes go with it."""
    own = tmp_path / "run" / "scenes" / "may"
    own.mkdir(parents=True)
    for name in ("map.tif", "map.json", "item.json"):
        (own / name).write_text("mine")
    train_quickly(smallholding, smallholding.scene, tmp_path / "run")
    train_quickly(smallholding, tiles / "tile_1*.tif", tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "scenes.txt").exists()
    assert len(list((tmp_path / "run" / "scenes").glob("*/map.tif"))) == 4
    train_quickly(smallholding, smallholding.scene, tmp_path / "run", overwrite=True)
    assert {path.name for path in own.iterdir()} == {"map.tif", "map.json", "item.json"}
    assert [path.name for path in own.parent.iterdir()] == ["may"]
    assert not (tmp_path / "run" / "scenes.txt").exists()


def test_a_list_and_maps_of_ones_own_are_not_written_over(
    smallholding: Example, tiles: Path, tmp_path: Path
) -> None:
    first = sorted(tiles.glob("*.tif"))[0].stem
    for number, name in enumerate(("scenes.txt", f"scenes/{first}/map.json")):
        file = tmp_path / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_text("mine")
        with pytest.raises(FileError, match=f"{file.name} is there already"):
            train_quickly(smallholding, tiles, tmp_path / str(number))
        assert file.read_text() == "mine"


def test_what_fails_before_it_has_made_anything_leaves_nothing(
    smallholding: Example, tiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LabelError("not today")

    monkeypatch.setitem(LEARN, "at once", fail)
    with pytest.raises(LabelError, match="not today"):
        train_quickly(smallholding, tiles, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_truth_of_a_tile_may_be_positives_or_negatives_alone(tiles: Path, tmp_path: Path) -> None:
    grid = read_scenes([tiles / f"tile_{n}.tif" for n in ("00", "01", "11")]).grid
    first, second, third = (part.grid.footprint.centroid for part in grid.parts)
    away = shapely.Point(second.x + grid.parts[1].grid.transform.a, second.y)
    kinds = ["yes", "yes", "no", "no"]
    frame = geopandas.GeoDataFrame({"kind": kinds}, geometry=[first, second, away, third], crs=CRS)
    frame.to_file(tmp_path / "truth.gpkg")
    options = LabelOptions(where="kind = 'yes'")
    of_class, tested = read_truth(tmp_path / "truth.gpkg", grid, options, negative="kind = 'no'")
    assert [int(of_class[part.window].sum()) for part in grid.parts] == [1, 1, 0]
    assert [int(tested[part.window].sum()) for part in grid.parts] == [1, 2, 1]


def test_bad_bands_are_those_of_the_same_wavelength_in_all_scenes(tmp_path: Path) -> None:
    waves = [500.0, 600.0, 1360.0, 1380.0, 1400.0, 1600.0]
    for number, own in enumerate((waves, [450.0, *waves])):
        place = {"crs": CRS, "transform": Affine(1, 0, 100 * number, 0, -1, 2)}
        size = {"count": len(own), "height": 2, "width": 2, "dtype": "float32"}
        with rasterio.open(
            tmp_path / f"{number}.tif", "w", driver="GTiff", **size, **place
        ) as file:
            for band, wave in enumerate(own, 1):
                file.write(wave + np.arange(4, dtype=np.float32).reshape(2, 2), band)
                file.update_tags(band, wavelength=str(wave), wavelength_units="nm")
    opened = read_scenes(tmp_path, SceneOptions(drop_bad_bands=True))
    assert opened.wavelengths == (500, 600, 1600)
    for part in opened.parts:
        np.testing.assert_array_equal(read_all(part.source).cube[:, 0, 0], opened.wavelengths)


def test_labels_that_are_negatives_alone_are_a_problem(tiles: Path, tmp_path: Path) -> None:
    scenes = [tiles / "tile_00.tif", tiles / "tile_22.tif"]
    inside = read_scenes(scenes).grid.parts[0].grid.footprint.centroid
    points = [inside, shapely.Point(inside.x + 1e5, inside.y)]  # the class lies beyond both
    frame = geopandas.GeoDataFrame({"present": [0, 1]}, geometry=points, crs=CRS)
    frame.to_file(tmp_path / "answers.gpkg")
    found = check_scene(scenes, tmp_path / "answers.gpkg")
    assert not found.fit
    assert any(
        one.status == "problem" and "no pixel is labelled as the class" in one.words
        for one in found.findings
    )
