"""From strokes to a map that is taken away: first map, training, questions, check, export."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray

from commands import run
from serving import Client, Listener, serving
from thonecls.datasets import Example
from thonecls.io.inputs import read_scene
from thonecls.io.options import SceneOptions
from thonecls.studio.asking import Asking
from thonecls.studio.making import quick_map
from thonecls.studio.maps import encode
from thonecls.studio.project import open_project
from thonecls.studio.session import Studio
from thonecls.studio.view import SceneView


@pytest.fixture(scope="module")
def truth(farmland: Example) -> NDArray[np.uint8]:
    with rasterio.open(farmland.truth) as file:
        found: NDArray[np.uint8] = file.read(1)
        return found


@pytest.fixture(scope="module")
def served(
    farmland: Example, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Client, Studio]]:
    with serving(open_project(tmp_path_factory.mktemp("loop") / "p", farmland.scene)) as found:
        yield found


def octets_of(client: Client, name: str) -> NDArray[np.uint8]:
    body = client.ask("GET", f"/api/tiles/map/{name}/0/0/0").body
    return np.frombuffer(body, np.uint8).reshape(256, 256)[:96, :80]


def places(truth: NDArray[np.uint8], number: int, count: int) -> list[list[int]]:
    rng = np.random.default_rng(number)
    found = np.argwhere(truth == number)
    chosen: list[list[int]] = found[rng.choice(len(found), count, replace=False)].tolist()
    return chosen


def test_two_pages_see_the_same_labels_and_undo(client: Client) -> None:
    before = client.get("/api/state")["labels"]["revision"]
    with Listener(client) as one, Listener(client) as two:
        told = client.stroke("negative", [[1, 1], [1, 2]])
        assert told["revision"] == before + 1
        assert told["changes"]["negative"] == [81, 82]
        for listener in (one, two):
            heard = listener.first("labels", lambda data: data["revision"] == before + 1)
            assert heard["changes"] == told["changes"]
            assert heard["by"] == "test"
        assert client.get("/api/spectrum?row=1&column=1")["label"] == "negative"
        again = client.stroke("negative", [[1, 1]])
        assert (again["changed"], again["revision"]) == (0, before + 1)
        undone = client.send("POST", "/api/undo")
        assert undone["changes"]["erased"] == [81, 82]
        assert undone["redo_words"] == "click, not this, 2 pixels"
        assert two.first("labels", lambda data: data["revision"] == before + 2)["redo"]
    assert client.send("POST", "/api/redo")["counts"]["negative"] == 2
    client.send("POST", "/api/undo")


def test_what_cannot_be_done_yet_is_said(client: Client) -> None:
    for path in ("/api/undo", "/api/suggestions", "/api/export", "/api/verification", "/api/train"):
        reply = client.ask("POST", path, {})
        assert reply.status == 409
        assert "error" in reply.json()


def test_a_first_map_appears_and_follows_the_labels(
    client: Client, truth: NDArray[np.uint8]
) -> None:
    for pixels in (places(truth, 1, 5), places(truth, 1, 40)):
        with Listener(client) as listener:
            told = client.stroke("positive", pixels)
            heard = listener.first("maps")
        quick = heard["maps"][-1]
        assert heard["shown"] == quick["id"] == f"quick-{told['revision']}"
        mapped = octets_of(client, quick["id"]) > 200 * quick["cut"]
        valid = octets_of(client, quick["id"]) < 255
        assert valid.mean() == 0.95
        mapped &= valid
        curve = client.get(f"/api/cut/{quick['id']}")
        level = round(200 * quick["cut"])
        assert curve["share"][level] == pytest.approx(mapped.sum() / valid.sum(), abs=0.01)
        assert curve["hectares"][level] == pytest.approx(
            curve["share"][level] * 7296 * 0.09, rel=0.01
        )
        assert sum(curve["scene"]) == 7296
    assert curve["left_out"] == len({tuple(p) for p in [*places(truth, 1, 5), *pixels]})
    moved = client.send("PUT", f"/api/cut/{quick['id']}", {"cut": 0.7531})
    assert (moved["cut"], moved["own_cut"]) == (0.755, quick["own_cut"])
    assert client.send("PUT", f"/api/cut/{quick['id']}", {"cut": None})["cut"] == quick["own_cut"]
    for _ in range(2):
        client.send("POST", "/api/undo")
    client.until(lambda state: not state["maps"])


@pytest.mark.learning
@pytest.mark.parametrize("count", [5, 45])
def test_a_first_map_is_mostly_right(
    farmland: Example, truth: NDArray[np.uint8], tmp_path: Path, count: int, seed: int
) -> None:
    view = SceneView(read_scene(farmland.scene), SceneOptions(), tmp_path)
    rng = np.random.default_rng(seed)
    pixels = np.sort(rng.choice(np.flatnonzero(truth == 1), count, replace=False))
    shown = quick_map(view, pixels, view.spectra(pixels)[:, view.used], 1)
    octets = shown.tile(view, 0, 0, 0)
    mapped = (octets > 200 * shown.facts.cut) & (octets < 255)
    assert (truth[mapped] == 1).mean() > 0.6


def test_what_is_said_not_to_be_the_class_leaves_the_first_map(
    client: Client, truth: NDArray[np.uint8]
) -> None:
    client.stroke("positive", places(truth, 1, 4))
    quick = client.until(lambda state: state["maps"])["maps"][-1]
    octets = octets_of(client, quick["id"])
    wrong = np.argwhere((octets > 1) & (octets < 190))[0].tolist()
    told = client.stroke("negative", [wrong])
    name = f"quick-{told['revision']}"
    client.until(lambda state: state["shown"] == name)
    after = octets_of(client, name)
    assert after[tuple(wrong)] == 0
    row, column = places(truth, 1, 4)[0]
    assert after[row, column] == 200
    for _ in range(2):
        client.send("POST", "/api/undo")
    client.until(lambda state: not state["maps"])


def test_similar_pixels_are_there_at_once(client: Client, truth: NDArray[np.uint8]) -> None:
    row, column = places(truth, 1, 1)[0]
    found = client.send("POST", "/api/similar", {"row": row, "column": column})["map"]
    octets = octets_of(client, found["id"])
    assert octets[row, column] == 200
    mapped = (octets > 100) & (octets < 255)
    assert 0.01 < mapped.mean() < 0.03
    assert client.send("DELETE", "/api/similar")["maps"] == []
    assert client.ask("GET", f"/api/tiles/map/{found['id']}/0/0/0").status == 200  # for a while
    assert client.ask("POST", "/api/similar", {"row": 1, "column": 79}).status == 400  # nodata


@pytest.fixture(scope="module")
def trained(served: tuple[Client, Studio], truth: NDArray[np.uint8]) -> Client:
    """A client of a project with a training that has ended, learnt from answers too."""
    client = served[0]
    client.stroke("positive", places(truth, 1, 40))
    client.stroke("negative", places(truth, 2, 5))
    row, column = np.argwhere(truth == 1)[-1].tolist()
    client.stroke("positive", [[row, column]], origin="suggestion")
    with Listener(client) as listener:
        job = client.send("POST", "/api/train")
        assert (job["state"], job["method"]) == ("running", "density-ratio")
        # One at a time: another is refused, the same is under way.
        assert client.ask("POST", "/api/train", {"method": "sam"}).status == 409
        assert client.send("POST", "/api/train")["id"] == job["id"]
        assert client.ended("train")["state"] == "done"
        stopped = client.send("POST", f"/api/jobs/{job['id']}/cancel")
        assert (stopped["id"], stopped["state"]) == (job["id"], "done")  # too late is no error
        assert listener.first("job", lambda data: data["state"] == "running")["id"] == job["id"]
        assert listener.first("maps", lambda data: data["shown"] == "run-1")
    return client


def test_a_training_swaps_in(trained: Client, served: tuple[Client, Studio]) -> None:
    state = trained.get("/api/state")
    shown = state["maps"][-1]
    assert state["shown"] == shown["id"] == "run-1"
    assert shown["verdict"]["level"] in ("good", "check", "poor")
    with rasterio.open(served[1].jobs.folder / "train-1" / "run" / "probability.tif") as file:
        assert (octets_of(trained, "run-1") == encode(file.read(1))).all()
    curve = trained.get("/api/cut/run-1")
    assert curve["left_out"] >= 40
    assert curve["recall"][0] == pytest.approx(1, abs=0.05)


def test_suggestions_are_answered_by_strokes(
    trained: Client, served: tuple[Client, Studio]
) -> None:
    labelled = trained.get("/api/labels")
    asked = trained.send("POST", "/api/suggestions", {"size": 6})
    assert (asked["map"], len(asked["points"])) == ("run-1", 6)
    taken = {p for kind in ("positive", "negative", "unknown") for p in labelled[kind]}
    assert not taken & {p["row"] * 80 + p["column"] for p in asked["points"]}
    point = asked["points"][0]
    trained.stroke("unknown", [[point["row"], point["column"]]], origin="suggestion")
    told = trained.get("/api/suggestions")["points"]
    assert [p["answer"] for p in told] == ["unknown", *[None] * 5]
    # A server that starts again asks the same.
    recalled = Asking(served[1])
    recalled.recall()
    assert recalled.suggestions()["points"] == told
    # What was answered is not asked again.
    again = trained.send("POST", "/api/suggestions", {"size": 6})["points"]
    assert all((p["row"], p["column"]) != (point["row"], point["column"]) for p in again)
    trained.send("POST", "/api/undo")


@pytest.fixture(scope="module")
def exported(trained: Client) -> dict[str, Any]:
    """The export that a verification has made."""
    trained.send("PUT", "/api/settings", {"label": "lantana"})
    trained.send("PUT", "/api/cut/run-1", {"cut": 0.4})
    drawn = trained.send("POST", "/api/verification", {"size": 30})
    assert drawn["state"] == "preparing"
    assert trained.ended("export")["state"] == "done"
    found: dict[str, Any] = trained.get("/api/export")
    return found


def test_the_export_is_the_map_that_was_shown(
    trained: Client, exported: dict[str, Any], farmland: Example, tmp_path: Path
) -> None:
    assert exported["ready"]
    assert not exported["stale"]
    names = {file["name"] for file in exported["files"]}
    wanted = {"map.tif", "probability.tif", "polygons.gpkg", "report.html", "labels.gpkg"}
    assert wanted | {"answers.gpkg", "model.safetensors"} <= names
    for file in exported["files"]:
        reply = trained.ask("GET", f"/api/export/{file['name']}")
        assert len(reply.body) == file["bytes"]
        (tmp_path / file["name"]).write_bytes(reply.body)
    with rasterio.open(tmp_path / "map.tif") as made, rasterio.open(farmland.scene) as scene:
        assert (made.crs, made.transform, made.shape) == (scene.crs, scene.transform, scene.shape)
        mapped = made.read(1)
    octets = octets_of(trained, "run-1")
    assert ((mapped == 1) == ((octets > 80) & (octets < 255))).all()
    assert len(geopandas.read_file(tmp_path / "labels.gpkg")) == 45
    assert len(geopandas.read_file(tmp_path / "answers.gpkg")) == 1
    assert "lantana" in (tmp_path / "report.html").read_text("utf-8")


def test_the_command_makes_the_same_map_again(exported: dict[str, Any]) -> None:
    words = shlex.split(exported["command"])
    assert words[:2] == ["thonecls", "train"]
    assert run(*words[1:], "--json") == 0
    again = Path(words[words.index("--out") + 1])
    with (
        rasterio.open(again / "map.tif") as one,
        rasterio.open(Path(exported["folder"]) / "map.tif") as other,
    ):
        assert (one.read(1) == other.read(1)).all()


def test_verification_is_blind_and_ends_in_intervals(
    trained: Client, exported: dict[str, Any], truth: NDArray[np.uint8]
) -> None:
    drawn = trained.get("/api/verification")
    assert (drawn["state"], len(drawn["points"]), drawn["answered"]) == ("asking", 30, 0)
    assert all(point.keys() == {"id", "row", "column", "answer"} for point in drawn["points"])
    for point in drawn["points"]:
        yes = truth[point["row"], point["column"]] == 1
        said = {"answer": "unknown" if point["id"] == 30 else "positive" if yes else "negative"}
        told = trained.send("PUT", f"/api/verification/{point['id']}", said)
    result = told["result"]
    assert (told["answered"], result["answered"], result["asked"]) == (30, 29, 30)
    with rasterio.open(Path(exported["folder"]) / "map.tif") as file:
        mapped = file.read(1) == 1
    right = (truth[mapped] == 1).mean()
    assert result["precision"]["low"] <= right <= result["precision"]["high"]
    area = (truth == 1).sum() * 0.09
    assert result["hectares"]["low"] <= area <= result["hectares"]["high"]
    assert trained.ask("PUT", "/api/verification/31", {"answer": "positive"}).status == 404
    trained.send("PUT", "/api/cut/run-1", {"cut": None})
    assert trained.get("/api/export")["stale"]
    assert trained.send("DELETE", "/api/verification")["state"] == "none"
