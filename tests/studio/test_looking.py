"""Tiles and spectra are those of the file, of any kind of scene and at any zoom."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import rasterio
import scipy.io
from affine import Affine
from numpy.typing import NDArray
from PIL import Image

from serving import Client, serving
from thonecls.datasets import Example, synthetic
from thonecls.errors import ConfigError, FileError, SceneError
from thonecls.io.grid import Grid
from thonecls.io.inputs import read_labels, read_scene
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.studio import view as view_module
from thonecls.studio.maps import encode
from thonecls.studio.pictures import Pictures
from thonecls.studio.project import open_project
from thonecls.studio.refusals import NotReadyError
from thonecls.studio.session import Studio
from thonecls.studio.view import SceneView


def pixels_of(png: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(png)))


def write_tif(path: Path, cube: NDArray[np.float32], **more: object) -> None:
    profile = {"driver": "GTiff", "count": len(cube), "dtype": "float32", "nodata": -1.0}
    shape = {"height": cube.shape[1], "width": cube.shape[2]}
    place = {"crs": "EPSG:32633", "transform": Affine(10, 0, 4e5, 0, -10, 58e5)}
    with rasterio.open(path, "w", **profile, **shape, **place, **more) as file:
        file.write(cube)


def test_the_state_tells_of_scene_and_bands(client: Client) -> None:
    scene = client.get("/api/state")["scene"]
    assert (scene["rows"], scene["columns"], scene["zooms"]) == (96, 80, 1)
    assert scene["crs"] == "EPSG:32633"
    assert scene["hectares_of_pixel"] == pytest.approx(0.09)
    assert scene["nodata_share"] == 0.05
    assert [band["number"] for band in scene["bands"] if not band["used"]] == [12]
    assert scene["bands"][11]["why"] == "marked bad in the file (bbl)"
    assert scene["presets"]["false-colour"] == [13, 7, 4]
    assert scene["presets"]["pca"] is None


def test_a_grey_tile_has_the_order_of_the_band(client: Client, farmland: Example) -> None:
    with rasterio.open(farmland.scene) as file:
        values = file.read(3)
    reply = client.ask("GET", "/api/tiles/scene/0/0/0?bands=3&clip=0")
    assert reply.headers["content-type"] == "image/png"
    image = pixels_of(reply.body)
    assert image.shape == (256, 256, 4)
    assert (image[:96, :76, 3] == 255).all()
    assert (image[:96, 76:80, 3] == 0).all()  # nodata
    assert (image[96:, :, 3] == 0).all()
    shown = image[:96, :76, 0].astype(int)
    order = np.argsort(values[:, :76], axis=None)
    assert (np.diff(shown.ravel()[order]) >= 0).all()
    assert (image[..., 0] == image[..., 2]).all()


def test_tiles_may_be_kept_only_under_the_servers_name(client: Client) -> None:
    path = "/api/tiles/scene/0/0/0?preset=pca"
    assert client.ask("GET", path).headers["cache-control"] == "no-store"
    assert "immutable" in client.ask("GET", f"{path}&v=x").headers["cache-control"]


def test_a_spectrum_is_the_files_with_bad_bands(client: Client, farmland: Example) -> None:
    with rasterio.open(farmland.scene) as file:
        values = file.read()[:, 5, 7]
    found = client.get("/api/spectrum?row=5&column=7")
    assert found["values"] == values.astype(float).tolist()
    assert found["valid"]
    assert found["label"] is None
    assert found["xy"] == [364095 + 30 * 7.5, 5809965 - 30 * 5.5]
    nothing = client.get("/api/spectrum?row=5&column=79")
    assert nothing["values"] == [None] * 24
    assert not nothing["valid"]


def test_the_envelope_is_in_order(client: Client) -> None:
    scene = client.get("/api/envelope")["scene"]
    assert scene["p50"][11] is None  # the bad band
    known = [i for i in range(24) if i != 11]
    lines = np.array([[scene[f"p{p}"][i] for i in known] for p in (5, 25, 50, 75, 95)])
    assert (np.diff(lines, axis=0) >= 0).all()


@pytest.mark.parametrize("held", [2**26, 4000])
def test_tiles_of_any_zoom_show_single_pixels_of_the_scene(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_module, "HELD", held)
    rng = np.random.default_rng(0)
    cube = rng.uniform(1, 100, size=(3, 600, 300)).astype(np.float32)
    cube[:, :, :20] = -1
    write_tif(tmp_path / "scene.tif", cube, tiled=True, blockxsize=64, blockysize=64)
    view = SceneView(read_scene(tmp_path / "scene.tif"), SceneOptions(), tmp_path / "cache")
    assert view.zooms == 3
    assert view.step == (1 if held > 4000 else 16)
    if view.step > 1:
        with pytest.raises(NotReadyError):
            view.read(slice(0, 600), slice(0, 300), 16, [0])
        assert view.make_overview(lambda: False)
    for z in range(3):
        factor = 2 ** (2 - z)
        for y in range(-(-600 // (256 * factor))):
            for x in range(-(-300 // (256 * factor))):
                part = view.read_tile(z, x, y)
                whole = cube[:, y * 256 * factor :, x * 256 * factor :]
                whole = whole[:, : 256 * factor, : 256 * factor]
                assert part.shape == tuple(-(-n // factor) for n in whole.shape[1:])
                # Each is one of the pixels that it stands for.
                for i, j in ((0, 0), (part.shape[0] // 2, part.shape[1] // 2)):
                    block = whole[:, i * factor : (i + 1) * factor, j * factor : (j + 1) * factor]
                    value = part.cube[:, i, j] if part.valid[i, j] else np.full(3, -1)
                    assert np.equal(block.reshape(3, -1).T, value).all(axis=1).any()
    coarse = view.read(slice(0, 600), slice(0, 300), 16, range(3))
    assert coarse.shape == (38, 19)
    assert np.isin(coarse.cube[0][coarse.valid], cube[0]).all()


def test_an_overview_is_made_once_and_anew_for_another_scene(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_module, "HELD", 4000)
    rng = np.random.default_rng(0)
    path, cache = tmp_path / "scene.tif", tmp_path / "cache"
    write_tif(path, rng.uniform(1, 9, size=(3, 300, 300)).astype(np.float32))
    first = SceneView(read_scene(path), SceneOptions(), cache)
    assert not first.make_overview(lambda: True)  # stopped
    assert not list(cache.glob("*.npy"))
    assert first.make_overview(lambda: False)
    kept = {file.name: file.stat().st_mtime_ns for file in cache.iterdir()}
    again = SceneView(read_scene(path), SceneOptions(), cache)
    assert again.make_overview(lambda: False)
    assert {file.name: file.stat().st_mtime_ns for file in cache.iterdir()} == kept
    write_tif(path, rng.uniform(1, 9, size=(3, 300, 300)).astype(np.float32))
    other = SceneView(read_scene(path), SceneOptions(), cache)
    assert other.make_overview(lambda: False)
    assert not {file.name for file in cache.iterdir()} & kept.keys()


def test_octets_and_cuts_agree_with_the_map() -> None:
    rng = np.random.default_rng(0)
    steps = (np.arange(201) / 200).astype(np.float32)
    probability = np.concatenate([rng.uniform(size=5000).astype(np.float32), steps])
    octets = encode(probability)
    for k in range(201):
        assert ((octets > k) == (probability > k / 200)).all()


@pytest.mark.parametrize("kind", ["tif", "envi", "npy", "mat", "npz"])
def test_every_kind_of_scene_can_be_labelled(kind: str, tmp_path: Path) -> None:
    data = synthetic(height=40, width=30, bands=5, seed=1)
    cube = data.scene.cube
    options = SceneOptions()
    path = tmp_path / f"scene.{kind}"
    if kind == "tif":
        write_tif(path, cube)
    elif kind == "envi":
        path = tmp_path / "scene.bsq"
        cube.tofile(path)
        header = {"samples": 30, "lines": 40, "bands": 5, "data type": 4, "interleave": "bsq"}
        lines = [f"{name} = {value}" for name, value in {**header, "byte order": 0}.items()]
        path.with_suffix(".hdr").write_text("\n".join(["ENVI", *lines]))
    else:
        options = SceneOptions(bands_axis="last")
        turned = np.ascontiguousarray(np.moveaxis(cube, 0, 2))
        if kind == "npy":
            np.save(path, turned)
        elif kind == "npz":
            np.savez_compressed(path, cube=turned)
        else:
            scipy.io.savemat(path, {"cube": turned})
    with serving(open_project(tmp_path / "project", path, options)) as (client, studio):
        spectrum = client.get("/api/spectrum?row=7&column=9")["values"]
        assert spectrum == pytest.approx(cube[:, 7, 9].tolist(), rel=1e-6)
        assert client.ask("GET", "/api/tiles/scene/0/0/0?preset=pca").status == 200
        of_class = np.argwhere(data.truth == 1)[::9][:6]
        client.stroke("positive", of_class.tolist())
        state = client.until(lambda state: state["maps"])
        tile = client.ask("GET", f"/api/tiles/map/{state['shown']}/0/0/0")
        assert len(tile.body) == 65536
        octets = np.frombuffer(tile.body, np.uint8).reshape(256, 256)
        assert (octets[of_class[:, 0], of_class[:, 1]] > 190).all()  # the labels themselves
        assert (octets[40:] == 255).all()
        grid = studio.grid
    found = read_labels(tmp_path / "project" / "labels.gpkg", grid)
    assert np.argwhere(found.mask).tolist() == of_class.tolist()


def test_labels_to_begin_with_tell_the_axis_and_are_kept(tmp_path: Path) -> None:
    data = synthetic(height=20, width=18, bands=6, seed=3)
    np.save(tmp_path / "scene.npy", np.moveaxis(data.scene.cube, 0, 2))
    np.save(tmp_path / "truth.npy", data.truth)
    project = open_project(
        tmp_path / "p",
        tmp_path / "scene.npy",
        labels=tmp_path / "truth.npy",
        label_options=LabelOptions(target=1),
    )
    assert project.scene_options.bands_axis == "last"
    for _ in range(2):  # also when it is opened again
        with serving(project) as (client, _):
            found = client.get("/api/labels")
            assert found["positive"] == np.flatnonzero(data.truth == 1).tolist()
            assert client.get("/api/state")["labels"]["undo"]
        project = open_project(tmp_path / "p", None)


def test_a_project_is_of_one_scene(farmland: Example, tmp_path: Path) -> None:
    folder = tmp_path / "p"
    with pytest.raises(ConfigError, match="name a scene"):
        open_project(folder, None)
    with serving(open_project(folder, farmland.scene, label="lantana")):
        pass
    assert open_project(folder, None).settings.label == "lantana"
    with pytest.raises(FileError, match="is a project of"):
        open_project(folder, farmland.truth)
    with pytest.raises(FileError, match="has its own labels already"):
        open_project(folder, farmland.scene, labels=farmland.labels)
    with pytest.raises(FileError, match="by other options"):
        open_project(folder, farmland.scene, SceneOptions(bands="1-5"))
    (folder / "studio.json").write_text("{")
    with pytest.raises(FileError, match="does not tell of a project"):
        open_project(folder, None)


def test_a_scene_without_data_is_refused(tmp_path: Path) -> None:
    write_tif(tmp_path / "scene.tif", np.full((3, 40, 40), -1, np.float32))
    with pytest.raises(SceneError, match="no valid pixel"):
        Studio(open_project(tmp_path / "p", tmp_path / "scene.tif"))


def test_bands_to_show_first_may_be_told(tmp_path: Path) -> None:
    np.save(tmp_path / "scene.npy", synthetic(height=20, width=18, bands=6).scene.cube)
    opened = read_scene(tmp_path / "scene.npy", SceneOptions(bands_axis="first"))
    view = SceneView(opened, SceneOptions(bands_axis="first"), tmp_path)
    assert opened.grid == Grid((20, 18))
    assert Pictures(view).presets["three-bands"] == [1, 4, 6]
    assert Pictures(view, (3, 2, 1)).presets["three-bands"] == [3, 2, 1]
