"""A scene in the geometry of its sensor: seen, labelled and exported as it lies on its map."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import geopandas
import h5py
import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray

from products import LABELS, Made, emit
from serving import Client, serving
from thonecls.io.inputs import read_labels, read_scene
from thonecls.studio.project import open_project
from thonecls.studio.session import Studio


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return emit(tmp_path_factory.mktemp("emit"))


@pytest.fixture(scope="module")
def table(made: Made) -> NDArray[np.int32]:
    """Flat indices into the sensor's image, -1 for none, as large as the map."""
    with h5py.File(made.scene) as file:
        x, y = (np.abs(file["location"][name][:]) for name in ("glt_x", "glt_y"))
    inside = (x > 0) & (x <= made.values.shape[2])
    found: NDArray[np.int32] = np.where(inside, (y - 1) * made.values.shape[2] + x - 1, -1)
    return found


@pytest.fixture(scope="module")
def served(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Studio]]:
    folder = tmp_path_factory.mktemp("sensor") / "p"
    with serving(open_project(folder, made.scene, labels=made.labels)) as found:
        yield found


@pytest.fixture
def client(served: tuple[Client, Studio]) -> Client:
    return served[0]


def test_it_is_shown_on_its_map(client: Client, made: Made, table: NDArray[np.int32]) -> None:
    scene = client.get("/api/state")["scene"]
    (rows, columns), transform, epsg = made.grid
    assert (scene["rows"], scene["columns"], scene["crs"]) == (rows, columns, f"EPSG:{epsg}")
    assert scene["transform"] == pytest.approx(list(transform[:6]))
    values = made.values.reshape(len(made.waves), -1)
    used = [i for i, band in enumerate(scene["bands"]) if band["used"]]
    for row, column in ((20, 30), (25, 25), (30, 12)):
        told = client.get(f"/api/spectrum?row={row}&column={column}")
        expected = values[:, table[row, column]]
        assert np.array(told["values"], float)[used] == pytest.approx(expected, rel=1e-5)
    beside = np.argwhere(table < 0)[0].tolist()
    told = client.get(f"/api/spectrum?row={beside[0]}&column={beside[1]}")
    assert not told["valid"]
    assert set(told["values"]) == {None}
    reply = client.ask("POST", "/api/strokes", {"kind": "positive", "pixels": [beside]})
    assert (reply.status, "the sensor saw nothing here" in reply.json()["error"]) == (400, True)


def test_pixels_that_show_the_same_are_labelled_together(
    client: Client, table: NDArray[np.int32]
) -> None:
    shown, counts = np.unique(table[table >= 0], return_counts=True)
    twice = np.flatnonzero(table == shown[counts > 1][0])
    row, column = divmod(int(twice[0]), table.shape[1])
    told = client.stroke("unknown", [[row, column]])
    assert told["changes"]["unknown"] == twice.tolist()
    assert sorted(client.send("POST", "/api/undo")["changes"]["erased"]) == twice.tolist()


def test_it_is_learnt_asked_about_and_exported(
    client: Client, made: Made, table: NDArray[np.int32]
) -> None:
    counts = client.get("/api/state")["labels"]["counts"]
    marked = read_labels(made.labels, read_scene(made.scene).grid).mask
    assert counts["positive"] == np.isin(table, np.flatnonzero(marked)).sum() >= LABELS
    client.send("POST", "/api/train", {"method": "matched-filter"})
    assert client.ended("train")["state"] == "done"
    asked = client.send("POST", "/api/suggestions", {"size": 4})["points"]
    assert all(table[point["row"], point["column"]] >= 0 for point in asked)
    client.stroke("negative", [[asked[0]["row"], asked[0]["column"]]], origin="suggestion")
    assert client.get("/api/suggestions")["points"][0]["answer"] == "negative"
    taken = {(point["row"], point["column"]) for point in asked[:1]}
    again = client.send("POST", "/api/suggestions", {"size": 4})["points"]
    assert not taken & {(point["row"], point["column"]) for point in again}

    drawn = client.send("POST", "/api/verification", {"size": 10})
    assert drawn["state"] == "preparing"
    assert client.ended("export")["state"] == "done"
    for point in client.until(lambda s: s["verification"]["points"])["verification"]["points"]:
        assert table[point["row"], point["column"]] >= 0
        told = client.send("PUT", f"/api/verification/{point['id']}", {"answer": "positive"})
    assert told["result"]["answered"] == 10
    assert told["result"]["hectares"]["value"] > 0

    export = client.get("/api/export")
    folder = Path(export["folder"])
    assert "geometry.tif" in {file["name"] for file in export["files"]}
    with rasterio.open(folder / "map.tif") as file:
        mapped = file.read(1)
        assert (file.shape, file.transform) == (made.grid[0], made.grid[1])
    shown = client.get("/api/state")["shown"]
    body = client.ask("GET", f"/api/tiles/map/{shown}/0/0/0").body
    octets = np.frombuffer(body, np.uint8).reshape(256, 256)[: table.shape[0], : table.shape[1]]
    assert ((mapped == 1) == ((octets > 200 * export["cut"]) & (octets < 255))).all()
    assert (mapped[table < 0] == 255).all()
    # The labels are places on the map, which `train` takes: the command names them.
    labels = read_labels(folder / "labels.gpkg", read_scene(made.scene).grid)
    assert (labels.mask == marked).all()
    assert geopandas.read_file(folder / "labels.gpkg").crs.to_epsg() == made.grid[2]
    words = shlex.split(export["command"])
    assert words[:4] == ["thonecls", "train", str(made.scene), str(folder / "labels.gpkg")]
