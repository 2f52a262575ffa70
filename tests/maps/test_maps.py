"""Maps: the scene's own geometry, whole files or none, and numbers a person can check."""

from __future__ import annotations

import errno
import resource
import shutil
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import geopandas
import numpy as np
import pytest
import rasterio
import rasterio.shutil
from affine import Affine
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning
from rio_cogeo.cogeo import cog_validate

from thonecls.errors import ConfigError, FileError, SceneError
from thonecls.io.grid import Grid
from thonecls.io.raster import RasterSource, open_raster
from thonecls.maps import (
    Backdrop,
    LayerWriter,
    MapWriter,
    Marks,
    draw_map,
    rgb_bands,
    write_polygons,
    write_qml,
    write_quicklook,
)

UTM = rasterio.crs.CRS.from_epsg(32633).to_wkt()
NORTH_UP = (30.0, 0.0, 364095.1, 0.0, -30.0, 5809965.3)
SMALL = Grid((7, 9), NORTH_UP, UTM)
Scores = NDArray[np.float32]

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")


class Raster(NamedTuple):
    values: NDArray[Any]
    about: Any


def scores(shape: tuple[int, int], seed: int = 0) -> Scores:
    values = np.random.default_rng(seed).random(shape, dtype=np.float32)
    values.flat[:: max(2, values.size // 7)] = np.nan
    return values


def write_maps(folder: Path, probability: Scores, grid: Grid = SMALL, **settings: Any) -> Path:
    rows, columns = (slice(0, n) for n in grid.shape)
    with MapWriter(folder, grid, **settings) as writer:
        writer.write(rows, columns, probability)
    return folder


def stop_after(
    folder: Path, rows: slice, probability: Scores, error: type[BaseException], **settings: Any
) -> None:
    """Write some rows of a map, then fail."""
    with MapWriter(folder, SMALL, **settings) as writer:
        writer.write(rows, slice(0, 9), probability[rows])
        raise error


def read(path: Path) -> Raster:
    with rasterio.open(path) as file:
        about = {"crs": file.crs, "tags": file.tags(), "overviews": file.overviews(1)}
        about |= {"transform": file.transform, "nodata": file.nodata, "scale": file.scales[0]}
        return Raster(file.read(1), about | {"dtype": file.dtypes[0]})


# rasters

GRIDS = [
    SMALL,
    Grid((7, 9), (0.1 + 0.2, 0.0, 1 / 3, 0.0, -1 / 7, 2 / 3), UTM),  # pixels that are not square
    Grid((7, 9), (30.0, 0.0, 500000.0, 0.0, 30.0, 100.0), UTM),  # south up
    Grid((7, 9), (25.98, 15.000001, 1e6 / 3, 15.0, -25.98, 2e6 / 3), UTM),  # rotated
    Grid(
        (7, 9),
        (1e-4 / 3, 0.0, 13.1, 0.0, -1e-4 / 7, 52.3),
        rasterio.crs.CRS.from_epsg(4326).to_wkt(),
    ),
    Grid((7, 9), (2.0, 0.0, 5.0, 0.0, -2.0, 7.0)),  # placed, but without a CRS
    Grid((7, 9)),  # nowhere
    Grid((1, 1), NORTH_UP, UTM),
    Grid((1, 600), NORTH_UP, UTM),
    Grid((1100, 530), NORTH_UP, UTM),
]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", ["probability.tif", "map.tif"])
def test_the_maps_are_cogs_with_the_geometry_of_the_scene(
    tmp_path: Path, grid: Grid, name: str
) -> None:
    path = write_maps(tmp_path, scores(grid.shape), grid) / name
    assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
    values, about = read(path)
    assert values.shape == grid.shape
    assert tuple(about["transform"])[:6] == grid.transform[:6]
    assert about["crs"] == (grid.crs and rasterio.crs.CRS.from_wkt(grid.crs))


def test_geometry_from_a_real_file_goes_round(tmp_path: Path) -> None:
    """From a file through a source into a map: the same numbers, bit by bit."""
    transform = Affine(28.9525375000012, 0.0, 383779.3953, 0.0, -30.15855999998748, 5818457.1239)
    with rasterio.open(
        tmp_path / "a.tif", "w", driver="GTiff", width=9, height=7, count=2, dtype="uint8",
        crs="EPSG:3035", transform=transform,
    ) as file:  # fmt: skip
        file.write(np.ones((2, 7, 9), dtype=np.uint8))
    grid = open_raster(tmp_path / "a.tif").grid
    about = read(write_maps(tmp_path, scores((7, 9)), grid) / "map.tif").about
    assert about["transform"] == transform
    assert about["crs"] == rasterio.crs.CRS.from_epsg(3035)


def test_windows_in_any_order_give_the_same_files(tmp_path: Path) -> None:
    grid = Grid((600, 530), NORTH_UP, UTM)
    probability = scores(grid.shape)
    windows = [
        (slice(r, min(r + 97, 600)), slice(c, min(c + 211, 530)))
        for r in range(0, 600, 97)
        for c in range(0, 530, 211)
    ]
    with MapWriter(tmp_path / "parts", grid) as writer:
        for i in np.random.default_rng(1).permutation(len(windows)):
            rows, columns = windows[int(i)]
            writer.write(rows, columns, probability[rows, columns])
    write_maps(tmp_path / "whole", probability, grid)
    names = ["map.qml", "map.tif", "map.tif.aux.xml", "probability.qml", "probability.tif"]
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == names
    for name in names:
        one, other = (tmp_path / folder / name for folder in ("parts", "whole"))
        assert one.read_bytes() == other.read_bytes()


def test_values_nodata_and_tags(tmp_path: Path) -> None:
    probability = scores((7, 9))
    probability[0, 1:4] = 0, 1, 0.5
    tags = {"model": "sha256:ab", "threshold": 0.7, "settings": {"epochs": 3, "text": "<&é>"}}
    write_maps(tmp_path, probability, tags=tags, label="Robinia & co", threshold=0.5)
    values, about = read(tmp_path / "probability.tif")
    missing = np.isnan(probability)
    assert about["dtype"] == "uint8"
    assert (about["nodata"], about["scale"]) == (255, 0.01)
    np.testing.assert_array_equal(values == 255, missing)
    assert values[0, 1:4].tolist() == [0, 100, 50]
    np.testing.assert_allclose(values[~missing] * 0.01, probability[~missing], atol=0.01)
    classes, facts = read(tmp_path / "map.tif")
    np.testing.assert_array_equal(classes, np.where(missing, 255, probability > 0.5))
    assert facts["nodata"] == 255
    for tagged in (about, facts):
        assert tagged["tags"]["model"] == "sha256:ab"
        assert tagged["tags"]["settings"] == '{"epochs": 3, "text": "<&\\u00e9>"}'
        assert tagged["tags"]["threshold"] == "0.5"
        assert tagged["tags"]["label"] == "Robinia & co"


@given(
    values=st.lists(st.floats(0, 1, width=32), min_size=1, max_size=60),
    threshold=st.one_of(st.floats(0, 1), st.integers(0, 100).map(lambda n: n / 100)),
)
def test_percents_stay_on_their_side_of_the_threshold(
    values: list[float], threshold: float
) -> None:
    probability = np.array([[*values, threshold, np.nan]], dtype=np.float32)
    writer = MapWriter("unused", Grid((1, 1)), threshold=threshold)
    percent = writer._encode(probability)[0]
    over = (probability > threshold)[0, :-1]
    np.testing.assert_array_equal(percent[:-1] * 0.01 > threshold, over)
    assert np.abs(percent[:-1] * 0.01 - probability[0, :-1]).max() <= 0.0101
    assert percent[-1] == 255


def test_floats_on_request(tmp_path: Path) -> None:
    probability = scores((7, 9))
    probability[0, 1] = 0
    values, about = read(write_maps(tmp_path, probability, floats=True) / "probability.tif")
    assert about["dtype"] == "float32"
    assert np.isnan(about["nodata"])
    assert about["scale"] == 1
    np.testing.assert_array_equal(values, probability)
    assert not np.signbit(values[0, 1])


def test_the_classes_have_colours_and_names(tmp_path: Path) -> None:
    path = write_maps(tmp_path, scores((7, 9)), label="tree") / "map.tif"
    with rasterio.open(path) as file:
        colours = file.colormap(1)
        assert (colours[0], colours[1]) == ((244, 244, 244, 255), (0, 114, 178, 255))
        rasterio.shutil.copy(file, tmp_path / "a.vrt", driver="VRT")  # shows what GDAL knows
    names = ElementTree.parse(tmp_path / "a.vrt").iter("Category")
    assert [name.text for name in names] == ["other", "tree"]


def test_overviews_average_probabilities_and_never_invent_a_class(tmp_path: Path) -> None:
    grid = Grid((1100, 1300), NORTH_UP, UTM)
    probability = scores(grid.shape)
    probability[:300, :200] = np.nan
    write_maps(tmp_path, probability, grid)
    levels = len(read(tmp_path / "map.tif").about["overviews"])
    assert levels == 2
    for level in range(levels):
        with rasterio.open(tmp_path / "map.tif", overview_level=level) as file:
            assert set(np.unique(file.read(1))) == {0, 1, 255}
    with rasterio.open(tmp_path / "probability.tif", overview_level=0) as file:
        thin = file.read(1)
    assert (thin[:150, :100] == 255).all()
    blocks = probability[300:302, 400:402].mean() * 100
    assert abs(float(thin[150, 200]) - blocks) <= 1.5


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(slice(0, 2), slice(8, 10)), (slice(6, 8), slice(0, 2)), (slice(0, 2), slice(0, 3))],
)
def test_a_window_must_fit(tmp_path: Path, rows: slice, columns: slice) -> None:
    """A window past the right edge would go on in the next row."""
    with pytest.raises(SceneError, match="does not fit"), MapWriter(tmp_path, SMALL) as writer:
        writer.write(rows, columns, np.zeros((2, 2), dtype=np.float32))


def test_a_lack_of_space_does_not_cost_a_stopped_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probability = scores((7, 9))
    with pytest.raises(KeyboardInterrupt):
        stop_after(tmp_path, slice(0, 3), probability, KeyboardInterrupt, resume=True)
    with monkeypatch.context() as patched:
        usage = shutil.disk_usage(tmp_path)._replace(free=100)
        patched.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(FileError, match="GB left"):
            write_maps(tmp_path, probability, resume=True)
    with MapWriter(tmp_path, SMALL, resume=True) as writer:
        assert writer.done(slice(0, 3), slice(0, 9))
        writer.write(slice(3, 7), slice(0, 9), probability[3:])


def test_pixels_never_written_are_an_error_and_leave_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(SceneError, match="never written"),
        MapWriter(tmp_path / "new" / "out", SMALL) as writer,
    ):
        writer.write(slice(0, 7), slice(0, 8), np.zeros((7, 8), dtype=np.float32))
    assert not (tmp_path / "new" / "out").exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        stop_after(tmp_path / "out", slice(0, 2), scores((7, 9)), error)
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_an_older_map_as_it_was(tmp_path: Path) -> None:
    write_maps(tmp_path, scores((7, 9)))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ZeroDivisionError), MapWriter(tmp_path, SMALL):
        raise ZeroDivisionError
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_new_map_takes_the_place_of_an_old_one_and_of_what_viewers_left(tmp_path: Path) -> None:
    write_maps(tmp_path, scores((7, 9)))
    (tmp_path / "probability.tif.aux.xml").write_text("<PAMDataset/>")  # old statistics
    (tmp_path / "map.tif.ovr").write_text("old overviews")
    write_maps(tmp_path, scores((7, 9), seed=1))
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".qml", ".qml", ".tif", ".tif", ".xml"]


def test_a_stopped_map_goes_on_where_it_was(tmp_path: Path) -> None:
    probability = scores((7, 9))
    probability[0, 1] = 0  # a zero is a value, not a gap
    top, rest, columns = slice(0, 3), slice(3, 7), slice(0, 9)
    with pytest.raises(KeyboardInterrupt):
        stop_after(tmp_path, top, probability, KeyboardInterrupt, resume=True)
    with MapWriter(tmp_path, SMALL, resume=True) as writer:
        assert writer.done(top, columns)
        assert not writer.done(rest, columns)
        assert not writer.done(slice(0, 4), columns)
        writer.write(rest, columns, probability[rest])
    values = read(tmp_path / "map.tif").values
    np.testing.assert_array_equal(values, np.where(np.isnan(probability), 255, probability > 0.5))
    assert not (tmp_path / ".map.part").exists()


def test_another_model_does_not_go_on_from_a_stopped_map(tmp_path: Path) -> None:
    rows, columns = slice(0, 7), slice(0, 9)
    probability = scores((7, 9))
    with pytest.raises(KeyboardInterrupt):
        stop_after(tmp_path, rows, probability, KeyboardInterrupt, resume=True, tags={"model": "a"})
    before = {path: path.read_bytes() for path in (tmp_path / ".map.part").iterdir()}
    for other in ({"tags": {"model": "b"}}, {"tags": {"model": "a"}, "origin": {"nodata": 0}}):
        with (
            pytest.raises(FileError, match=r"unfinished map with other (model|nodata): "),
            MapWriter(tmp_path, SMALL, resume=True, **other),
        ):
            pass
    assert {path: path.read_bytes() for path in (tmp_path / ".map.part").iterdir()} == before
    with MapWriter(tmp_path, SMALL, tags={"model": "b"}) as writer:  # anew
        assert not writer.done(rows, columns)
        writer.write(rows, columns, probability)


def test_too_little_disk_space_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with (
        pytest.raises(FileError, match="63 pixels takes up to"),
        MapWriter(tmp_path / "out", SMALL),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=[100_000, 400_000])  # full before windows come; while maps are finished
def full_disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """A limit on the size of files, which the system enforces as it does a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (request.param, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    grid = Grid((300, 300), NORTH_UP, UTM)
    with pytest.raises(FileError, match=r"cannot write to .*out .*: free disk space, or choose"):
        write_maps(tmp_path / "out", scores(grid.shape), grid, floats=True)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_while_windows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("thonecls.maps.layers._Scores.write", fail)
    with pytest.raises(FileError, match=r"No space left on device\): free disk space"):
        write_maps(tmp_path / "out", scores((7, 9)))
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with (
        pytest.raises(FileError, match="is a file, not a folder"),
        MapWriter(tmp_path / "out", SMALL),
    ):
        pass


# styles


def test_styles_are_xml_that_qgis_takes_up(tmp_path: Path) -> None:
    style = write_qml(tmp_path / "map.tif", "classes", label='<"a" & b>')
    assert style == tmp_path / "map.qml"
    renderer = ElementTree.parse(style).find("pipe/rasterrenderer")
    assert renderer is not None
    assert (renderer.get("type"), renderer.get("band")) == ("paletted", "1")
    entries = [dict(e.items()) for e in renderer.findall("colorPalette/paletteEntry")]
    assert [(e["value"], e["label"]) for e in entries] == [("0", "other"), ("1", '<"a" & b>')]
    assert (entries[0]["alpha"], entries[1]["color"]) == ("0", "#0072b2")

    renderer = ElementTree.parse(write_qml(tmp_path / "p.tif", "probability")).find(
        "pipe/rasterrenderer"
    )
    assert renderer is not None
    assert renderer.get("type") == "singlebandpseudocolor"
    items = renderer.findall("rastershader/colorrampshader/item")
    values = [float(item.get("value", "nan")) for item in items]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 1.0)


# further layers


def write_layer(folder: Path, values: Scores, grid: Grid = SMALL, **settings: Any) -> Path:
    """A layer in one window; uncertainty unless told otherwise."""
    chosen: dict[str, Any] = {"name": "uncertainty", "scale": 0.002} | settings
    rows, columns = (slice(0, n) for n in grid.shape)
    with LayerWriter(folder, grid, **chosen) as writer:
        writer.write(rows, columns, values)
    return folder / f"{chosen['name']}.tif"


def stop_layer(folder: Path, rows: slice, values: Scores, **settings: Any) -> None:
    """Write some rows of a layer, then fail."""
    with LayerWriter(folder, SMALL, "novelty", scale=0.05, **settings) as writer:
        writer.write(rows, slice(0, 9), values[rows])
        raise KeyboardInterrupt


@pytest.mark.parametrize("grid", GRIDS)
def test_a_layer_is_a_cog_with_the_geometry_of_the_scene(tmp_path: Path, grid: Grid) -> None:
    path = write_layer(tmp_path, scores(grid.shape), grid)
    assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
    values, about = read(path)
    assert values.shape == grid.shape
    assert tuple(about["transform"])[:6] == grid.transform[:6]
    assert about["crs"] == (grid.crs and rasterio.crs.CRS.from_wkt(grid.crs))


def test_a_layer_keeps_values_to_half_a_step_and_clips_what_is_beyond(tmp_path: Path) -> None:
    values = scores((7, 9)) * np.float32(0.5)
    values[0, 1:7] = 0, 0.1, 0.508, 0.6, np.inf, -1
    path = write_layer(tmp_path, values, tags={"models": 5}, description="spread <&> of models")
    steps, about = read(path)
    assert (about["dtype"], about["nodata"], about["scale"]) == ("uint8", 255, 0.002)
    assert about["tags"]["models"] == "5"
    assert steps[0, 1:7].tolist() == [0, 50, 254, 254, 254, 0]
    np.testing.assert_array_equal(steps == 255, np.isnan(values))
    inside = (values >= 0) & (values <= 0.508)
    np.testing.assert_allclose(steps[inside] * 0.002, values[inside], atol=0.001 + 1e-6)
    with rasterio.open(path) as file:
        assert file.descriptions == ("spread <&> of models",)


def test_the_overviews_of_a_layer_are_means_without_nodata(tmp_path: Path) -> None:
    grid = Grid((1100, 1300), NORTH_UP, UTM)
    values = np.full(grid.shape, 0.4, dtype=np.float32)
    values[::2] = 0.2
    values[:300, :200] = np.nan
    values[0, :200] = 0.5  # the only value of its overview pixels
    with rasterio.open(write_layer(tmp_path, values, grid), overview_level=0) as file:
        thin = file.read(1)
    assert set(thin[0, :100]) == {250}
    assert (thin[1:150, :100] == 255).all()
    assert set(np.unique(thin[150:])) == {150}


def test_windows_of_a_layer_in_any_order_give_the_same_file(tmp_path: Path) -> None:
    grid = Grid((600, 530), NORTH_UP, UTM)
    values = scores(grid.shape) * 14
    novelty = {"name": "novelty", "scale": 0.05, "limit": 1.0}
    whole = write_layer(tmp_path / "whole", values, grid, **novelty)
    with LayerWriter(tmp_path / "parts", grid, "novelty", scale=0.05, limit=1.0) as writer:
        for rows in (slice(300, 600), slice(0, 300)):
            for columns in (slice(211, 530), slice(0, 211)):
                writer.write(rows, columns, values[rows, columns])
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == ["novelty.qml", "novelty.tif"]
    for path in (whole, whole.with_suffix(".qml")):
        assert (tmp_path / "parts" / path.name).read_bytes() == path.read_bytes()


def test_a_stopped_layer_goes_on_where_it_was(tmp_path: Path) -> None:
    values = scores((7, 9))
    values[0, 1] = 0
    top, rest, columns = slice(0, 3), slice(3, 7), slice(0, 9)
    with pytest.raises(KeyboardInterrupt):
        stop_layer(tmp_path, top, values, resume=True)
    with LayerWriter(tmp_path, SMALL, "novelty", scale=0.05, resume=True) as writer:
        assert writer.done(top, columns)
        assert not writer.done(rest, columns)
        writer.write(rest, columns, values[rest])
    steps = read(tmp_path / "novelty.tif").values
    np.testing.assert_array_equal(steps == 255, np.isnan(values))
    np.testing.assert_allclose(steps[steps < 255] * 0.05, values[steps < 255], atol=0.0251)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["novelty.qml", "novelty.tif"]


def test_another_model_does_not_go_on_from_a_stopped_layer(tmp_path: Path) -> None:
    rows, columns, values = slice(0, 7), slice(0, 9), scores((7, 9))
    with pytest.raises(KeyboardInterrupt):
        stop_layer(tmp_path, rows, values, resume=True, tags={"model": "a"})
    tags = {"model": "b"}
    with (
        pytest.raises(FileError, match="unfinished map with other model"),
        LayerWriter(tmp_path, SMALL, "novelty", scale=0.05, resume=True, tags=tags),
    ):
        pass
    with LayerWriter(tmp_path, SMALL, "novelty", scale=0.05, tags=tags) as writer:
        assert not writer.done(rows, columns)
        writer.write(rows, columns, values)


def write_all(folder: Path, values: Scores, error: type[BaseException] | None = None) -> None:
    """A map and two layers at once, window by window."""
    with (
        MapWriter(folder, SMALL) as probability,
        LayerWriter(folder, SMALL, "uncertainty", scale=0.002) as uncertainty,
        LayerWriter(folder, SMALL, "novelty", scale=0.05, limit=1.0) as novelty,
    ):
        for rows in (slice(4, 7), slice(0, 4)):
            probability.write(rows, slice(0, 9), values[rows])
            uncertainty.write(rows, slice(0, 9), values[rows] * np.float32(0.5))
            novelty.write(rows, slice(0, 9), values[rows] * 12)
        if error:
            raise error


def test_a_map_and_layers_are_written_into_one_folder_at_once(tmp_path: Path) -> None:
    values = scores((7, 9))
    write_all(tmp_path, values)
    write_maps(tmp_path / "alone", values)
    for name in ("probability.tif", "map.tif"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    seen = ~np.isnan(values)
    for name, scale, factor in (("uncertainty", 0.002, 0.5), ("novelty", 0.05, 12)):
        steps = read(tmp_path / f"{name}.tif").values
        np.testing.assert_allclose(steps[seen] * scale, values[seen] * factor, atol=scale * 0.501)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing_of_a_map_and_its_layers(
    tmp_path: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        write_all(tmp_path / "out", scores((7, 9)), error)
    assert list(tmp_path.iterdir()) == []


def test_a_layer_that_is_not_whole_leaves_an_older_one_as_it_was(tmp_path: Path) -> None:
    write_layer(tmp_path, scores((7, 9)))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        pytest.raises(SceneError, match="never written"),
        LayerWriter(tmp_path, SMALL, "uncertainty", scale=0.002) as writer,
    ):
        writer.write(slice(0, 7), slice(0, 8), np.zeros((7, 8), dtype=np.float32))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_nothing_of_a_layer(tmp_path: Path) -> None:
    grid = Grid((330, 330), NORTH_UP, UTM)
    with pytest.raises(FileError, match=r"cannot write to .*out .*: free disk space, or choose"):
        write_layer(tmp_path / "out", scores(grid.shape), grid)
    assert list(tmp_path.iterdir()) == []


def stops(style: Path) -> list[tuple[float, tuple[float, float, float]]]:
    """Values and colours of a ramp."""
    items = ElementTree.parse(style).iter("item")
    return [(float(i.get("value", "nan")), to_rgb(i.get("color", ""))) for i in items]


def test_the_style_of_a_layer_spans_its_range_and_says_what_it_is(tmp_path: Path) -> None:
    path = write_layer(tmp_path, scores((7, 9)), description='spread of "5" models')
    values = [value for value, _ in stops(path.with_suffix(".qml"))]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 0.508)
    root = ElementTree.parse(path.with_suffix(".qml")).getroot()
    notes = root.find("userNotes")
    assert notes is not None
    assert notes.get("value") == 'spread of "5" models'


def test_the_style_of_novelty_is_grey_up_to_the_limit_and_hot_beyond(tmp_path: Path) -> None:
    path = write_layer(tmp_path, scores((7, 9)), name="novelty", scale=0.05, limit=1.0)
    ramp = stops(path.with_suffix(".qml"))
    values = [value for value, _ in ramp]
    assert values == sorted(set(values))
    assert (values[0], values[-1]) == (0.0, 12.7)
    assert 1.0 in values
    for value, (red, green, blue) in ramp:
        assert (red - blue > 0.2) == (value > 1)
        assert (red == green == blue) == (value <= 1)
    assert min(value for value in values if value > 1) < 1.05  # the first step over the limit


@pytest.mark.parametrize("name", ["map", "Probability", "", "a/b", "../a", ".a", "a.tif"])
def test_a_layer_needs_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="a layer's name is a word"):
        LayerWriter(tmp_path, SMALL, name, scale=0.05)


@pytest.mark.parametrize(
    ("scale", "limit"), [(0.0, None), (-1.0, None), (np.nan, None), (0.002, 1.0), (0.05, 0.0)]
)
def test_a_layer_needs_a_range_that_holds_its_limit(scale: float, limit: float | None) -> None:
    with pytest.raises(ConfigError, match=r"a layer's (scale|limit)"):
        LayerWriter("unused", SMALL, "novelty", scale=scale, limit=limit)


# polygons

PATCHES = np.array(
    [
        [1, 1, 0, 0, 0, 0],
        [1, 1, 0, 1, 0, 1],  # the pixel at (1, 3) meets the next patch at a corner only
        [0, 0, 1, 0, 0, 1],
        [0, 0, 1, 1, 1, 1],
    ]
)


def write_classes(folder: Path, classes: NDArray[Any], grid: Grid | None = None) -> Path:
    probability = np.where(classes == 1, 0.9, 0.1).astype(np.float32)
    return write_maps(folder, probability, grid or Grid(classes.shape, NORTH_UP, UTM))


def polygons(folder: Path, **settings: Any) -> geopandas.GeoDataFrame:
    out = folder / "patches.gpkg"
    given = {"minimum_area": 0, **settings}
    made = write_polygons(folder / "map.tif", folder / "probability.tif", out, **given)
    table = geopandas.read_file(out)
    assert len(table) == made.polygons
    assert table.geometry.is_valid.all()
    return table


@pytest.mark.parametrize("strip", [1, 2, 3, 100])
def test_polygons_have_the_area_counted_by_hand(tmp_path: Path, strip: int) -> None:
    table = polygons(write_classes(tmp_path, PATCHES), strip=strip).sort_values("pixels")
    assert table.pixels.tolist() == [1, 4, 7]
    assert table.area.tolist() == [900.0, 3600.0, 6300.0]
    assert table["area"].tolist() == [900.0, 3600.0, 6300.0]
    np.testing.assert_allclose(table.hectares, [0.09, 0.36, 0.63])
    np.testing.assert_allclose(table.mean_probability, 0.9)
    assert table.crs == "EPSG:32633"
    square = table.geometry.iloc[1]
    np.testing.assert_allclose(square.bounds, (364095.1, 5809905.3, 364155.1, 5809965.3))
    assert len(square.exterior.coords) == 5  # no corner is left where strips met


def test_small_patches_are_left_out(tmp_path: Path) -> None:
    write_classes(tmp_path, PATCHES)
    assert polygons(tmp_path, minimum_area=901).pixels.tolist() == [4, 7]
    assert sorted(polygons(tmp_path, minimum_area=900).pixels) == [1, 4, 7]
    assert len(polygons(tmp_path, minimum_area=1e9)) == 0


def test_specks_of_fewer_than_4_pixels_are_left_out_unless_told_otherwise(tmp_path: Path) -> None:
    write_classes(tmp_path, PATCHES)
    assert sorted(polygons(tmp_path, minimum_area=None, strip=2).pixels) == [4, 7]
    assert len(polygons(tmp_path, minimum_area=0)) == 3


def test_a_scattered_map_gives_its_larger_patches_and_says_so(tmp_path: Path) -> None:
    classes = np.zeros((40, 40), dtype=int)
    classes[::2, ::2] = 1  # 400 pixels, each alone
    classes[20:23, 20:23] = 1  # with what stands around it, 9 pixels
    write_classes(tmp_path, classes)
    sizes = sorted(polygons(tmp_path).pixels)
    for limit in ({"most": 10}, {"longest": 50}):
        made = write_polygons(
            tmp_path / "map.tif",
            tmp_path / "probability.tif",
            tmp_path / "few.gpkg",
            minimum_area=0,
            **limit,
        )
        assert made.words is not None
        assert (
            f"polygons of all its {len(sizes)} patches: those of 2 pixels or more, 1," in made.words
        )
        assert "leave polygons out" in made.words
        assert geopandas.read_file(tmp_path / "few.gpkg").pixels.tolist() == [sizes[-1]]
    made = write_polygons(
        tmp_path / "map.tif", tmp_path / "probability.tif", tmp_path / "few.gpkg", longest=3
    )
    assert made.polygons == 0
    assert made.words is not None
    assert "none is written" in made.words


def test_polygons_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = np.random.default_rng(0).random((30, 30)) < 0.3
    write_classes(tmp_path, classes)
    whole = polygons(tmp_path)
    monkeypatch.setattr("thonecls.maps.polygons.BATCH", 7)
    parts = polygons(tmp_path)
    assert len(whole) > 50
    assert whole.equals(parts)


def test_a_ragged_patch_is_cut_at_strips_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joining a patch with thousands of holes takes minutes."""
    classes = np.random.default_rng(0).random((40, 30)) < 0.7
    write_classes(tmp_path, classes)
    whole = polygons(tmp_path, strip=10)
    monkeypatch.setattr("thonecls.maps.polygons.JOINED", 100)
    parts = polygons(tmp_path, strip=10)
    assert len(parts) > len(whole)
    assert parts.pixels.sum() == whole.pixels.sum() == classes.sum()
    np.testing.assert_allclose(parts.area.sum(), whole.area.sum())
    assert (parts.area / 900).round().tolist() == parts.pixels.tolist()


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), strip=st.integers(1, 9), share=st.floats(0.2, 0.8))
def test_strips_give_the_polygons_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, strip: int, share: float
) -> None:
    classes = np.random.default_rng(seed).random((12, 11)) < share
    folder = write_classes(tmp_path_factory.mktemp("polygons"), classes)
    whole, parts = polygons(folder, strip=12), polygons(folder, strip=strip)
    assert whole.pixels.sum() == classes.sum()
    assert sorted(whole.pixels) == sorted(parts.pixels)
    for polygon in whole.geometry:
        assert sum(polygon.equals(other) for other in parts.geometry) == 1


def test_a_ring_that_closes_strips_later_is_one_patch(tmp_path: Path) -> None:
    ring = np.ones((9, 9), dtype=int)
    ring[1:-1, 1:-1] = 0
    ring[3:6, 3:6] = 1
    table = polygons(write_classes(tmp_path, ring), strip=2).sort_values("pixels")
    assert table.pixels.tolist() == [9, 32]
    assert len(table.geometry.iloc[1].interiors) == 1


@pytest.mark.parametrize("grid", [GRIDS[2], GRIDS[3]])
def test_polygons_follow_south_up_and_rotated_grids(tmp_path: Path, grid: Grid) -> None:
    classes = np.zeros((7, 9), dtype=int)
    classes[2, 3:5] = 1
    (shape,) = polygons(write_classes(tmp_path, classes, grid)).geometry
    a, b, c, d, e, f = grid.transform[:6]
    corners = {(a * x + b * y + c, d * x + e * y + f) for x in (3, 5) for y in (2, 3)}
    assert {tuple(point) for point in shape.exterior.coords} == corners


def test_areas_where_units_are_feet_degrees_or_unknown(tmp_path: Path) -> None:
    feet = rasterio.crs.CRS.from_epsg(2263).to_wkt()
    one = np.array([[1, 0], [0, 0]])
    table = polygons(
        write_classes(tmp_path / "a", one, Grid((2, 2), (100.0, 0.0, 0.0, 0.0, -100.0, 0.0), feet))
    )
    assert table["area"].tolist() == [10_000.0]
    np.testing.assert_allclose(table.hectares, (100 * 1200 / 3937) ** 2 / 1e4)

    degrees = rasterio.crs.CRS.from_epsg(4326).to_wkt()
    at_60_north = Grid((2, 2), (0.001, 0.0, 10.0, 0.0, -0.001, 60.0), degrees)
    table = polygons(write_classes(tmp_path / "b", one, at_60_north), minimum_area=6000)
    np.testing.assert_allclose(table.hectares, [111.4 * 55.8 / 1e4], rtol=5e-3)  # 1' rule of thumb

    table = polygons(write_classes(tmp_path / "c", one, Grid((2, 2))))
    assert table["area"].tolist() == [1.0]
    assert "hectares" not in table
    assert table.crs is None


def test_polygons_of_maps_that_do_not_belong_together(tmp_path: Path) -> None:
    write_classes(tmp_path / "a", PATCHES)
    write_classes(tmp_path / "b", PATCHES[1:])
    with pytest.raises(SceneError, match="different grids"):
        write_polygons(
            tmp_path / "a" / "map.tif", tmp_path / "b" / "probability.tif", tmp_path / "p.gpkg"
        )
    with pytest.raises(ConfigError, match=r"name it .gpkg"):
        write_polygons(
            tmp_path / "a" / "map.tif", tmp_path / "a" / "probability.tif", tmp_path / "p.shp"
        )
    with pytest.raises(FileError, match="cannot open"):
        write_polygons(tmp_path / "none.tif", tmp_path / "none.tif", tmp_path / "p.gpkg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_polygons_take_the_place_of_older_ones_or_leave_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_classes(tmp_path, PATCHES)
    polygons(tmp_path)
    before = (tmp_path / "patches.gpkg").read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(geopandas.GeoDataFrame, "to_file", fail)
    with pytest.raises(FileError, match=r"No space left .*: free disk space"):
        polygons(tmp_path)
    assert (tmp_path / "patches.gpkg").read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if ".part" in path.name]


# quicklook


def write_scene(path: Path, grid: Grid, waves: list[float] | None = None) -> RasterSource:
    rows, columns = np.mgrid[: grid.shape[0], : grid.shape[1]]
    cube = np.stack([rows + columns * i for i in range(len(waves or range(4)))]).astype(np.uint16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", driver="GTiff", height=grid.shape[0], width=grid.shape[1], count=len(cube),
            dtype="uint16", transform=grid.transform, crs=grid.crs,
        ) as file:  # fmt: skip
            file.write(cube)
            for number, wave in enumerate(waves or [], 1):
                file.update_tags(number, wavelength=str(wave))
    return open_raster(path)


@pytest.mark.parametrize("grid", [*GRIDS[:7], Grid((300, 4), NORTH_UP, UTM)])
@pytest.mark.parametrize("name", ["map.tif", "probability.tif"])
def test_a_quicklook_of_every_kind_of_grid(tmp_path: Path, grid: Grid, name: str) -> None:
    source = write_scene(tmp_path / "scene.tif", grid)
    write_maps(tmp_path, scores(grid.shape), grid)
    write_quicklook(tmp_path / "look.png", source, tmp_path / name, title="A map", side=100)
    picture = imread(tmp_path / "look.png")
    assert picture.shape[2] == 4
    assert min(picture.shape[:2]) > 300
    assert max(picture.shape[:2]) < 2000


def test_a_quicklook_shows_the_class_where_it_is_and_north_up(tmp_path: Path) -> None:
    def is_blue(picture: NDArray[Any]) -> Any:
        return (picture[..., 2] > picture[..., 0] + 0.3).nonzero()[0]

    south_up = GRIDS[2]
    for grid, top in ((SMALL, True), (south_up, False)):
        folder = tmp_path / str(top)
        folder.mkdir()
        classes = np.zeros(grid.shape, dtype=int)
        classes[:3] = 1
        source = write_scene(folder / "scene.tif", grid)
        write_classes(folder, classes, grid)
        write_quicklook(folder / "look.png", source, folder / "map.tif")
        rows = is_blue(imread(folder / "look.png")[:-200])  # without the legend
        middle = imread(folder / "look.png").shape[0] / 2
        assert (np.median(rows) < middle) == top


def test_labels_are_drawn_where_they_lie_and_leave_the_map_between_them(tmp_path: Path) -> None:
    """Found, missed and unjudged ones; on a scene whose rows run north too."""

    def yellow(picture: NDArray[Any]) -> Any:
        red, green, blue = (picture[..., i] for i in range(3))
        return (red > 0.85) & (green > 0.8) & (blue < 0.4)

    for grid, top in ((SMALL, True), (GRIDS[2], False)):
        folder = tmp_path / str(top)
        folder.mkdir()
        source = write_scene(folder / "scene.tif", grid)
        pixels = np.arange(grid.shape[1])  # the first row
        marks = Marks(pixels, np.where(pixels % 3, 1.0, np.nan))
        write_quicklook(folder / "look.png", source, None, marks=marks)
        picture = imread(folder / "look.png")[:-200]  # without the legend
        found = yellow(picture)
        assert found.any()
        assert (np.median(found.nonzero()[0]) < len(picture) / 2) == top
    whole = Backdrop(np.full((300, 300, 3), 0.5), (300, 300), ("1", "2", "3"))
    everywhere = Marks(np.arange(90_000), np.ones(90_000))
    draw_map(tmp_path / "full.png", whole, np.ones((300, 300)), marks=everywhere)
    blue = imread(tmp_path / "full.png")[60:-250]
    assert ((blue[..., 2] > blue[..., 0] + 0.2).mean()) > 0.3


def test_a_quicklook_of_another_scene_is_refused(tmp_path: Path) -> None:
    source = write_scene(tmp_path / "scene.tif", Grid((8, 9), NORTH_UP, UTM))
    write_maps(tmp_path, scores((7, 9)))
    with pytest.raises(SceneError, match=r"is \(7, 9\), the scene \(8, 9\)"):
        write_quicklook(tmp_path / "look.png", source, tmp_path / "map.tif")


def test_the_bands_of_the_picture(tmp_path: Path) -> None:
    waves = [450.0, 555.0, 665.0, 840.0, 1600.0]
    assert rgb_bands(write_scene(tmp_path / "a.tif", SMALL, waves)) == (3, 2, 1)
    assert rgb_bands(write_scene(tmp_path / "b.tif", SMALL, [1500.0, 1600.0, 1700.0])) == (0, 1, 2)
    assert rgb_bands(write_scene(tmp_path / "c.tif", SMALL)) == (0, 2, 3)
