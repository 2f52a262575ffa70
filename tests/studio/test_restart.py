"""Nothing is lost when the server dies: strokes, history, trainings."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import rasterio

from commands import run
from serving import Process
from thonecls.datasets import Example
from thonecls.io.inputs import read_labels, read_scene


def of_class(farmland: Example, count: int) -> list[list[int]]:
    with rasterio.open(farmland.truth) as file:
        found: list[list[int]] = np.argwhere(file.read(1) == 1)[::30][:count].tolist()
        return found


def test_after_a_power_cut_all_that_was_acknowledged_is_there(
    farmland: Example, tmp_path: Path
) -> None:
    pixels = of_class(farmland, 40)
    flat = [row * 80 + column for row, column in pixels]
    kept = sorted(flat[:29] + flat[30:])
    project = tmp_path / "p"
    with Process(farmland.scene, "--project", project) as first:
        client = first.client
        client.send("PUT", "/api/settings", {"auto": False, "label": "lantana"})
        for pixel in pixels[:30]:
            client.stroke("positive", [pixel])
        client.send("POST", "/api/undo")
        job = client.send("POST", "/api/train")
        client.until(lambda state: state["jobs"][0]["words"] != "starting")
        told = client.stroke("positive", pixels[30:])
        first.kill()
    # The labels are whole for anybody, without the server.
    found = read_labels(project / "labels.gpkg", read_scene(farmland.scene).grid)
    assert np.flatnonzero(found.mask).tolist() == kept
    # The training lives on, or is killed too: both ways a new server brings it to its end.
    status = json.loads((project / "jobs" / job["id"] / "status.json").read_text())
    os.kill(status["process"], signal.SIGKILL)
    with Process("--project", project) as second:
        assert second.client.port == first.client.port  # an open page finds it again
        assert second.client.token == first.client.token
        state = second.client.get("/api/state")
        assert state["labels"]["revision"] == told["revision"]
        assert state["settings"]["label"] == "lantana"
        assert second.client.get("/api/labels")["positive"] == kept
        second.client.until(lambda state: state["jobs"][0]["words"] not in ("starting", "going on"))
        second.kill()  # now the training goes on without a server, and a third one follows it
    with Process(farmland.scene, "--project", project) as third:
        assert third.client.ended("train")["state"] == "done"
        assert third.client.get("/api/state")["shown"] == "run-1"
        assert third.client.send("POST", "/api/undo")["counts"]["positive"] == 29
        assert third.stop() == 0
    assert not (project / "labels.gpkg-wal").exists()


def test_a_job_can_be_cancelled_and_a_second_server_is_refused(
    farmland: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Process(farmland.scene, "--project", tmp_path / "p") as server:
        client = server.client
        client.send("PUT", "/api/settings", {"auto": False})
        assert run("studio", "--project", tmp_path / "p", "--no-open") == 2
        assert "another process writes to" in capsys.readouterr().err
        client.stroke("positive", of_class(farmland, 20))
        job = client.send("POST", "/api/train", {"method": "t-honecls"})
        assert client.send("POST", f"/api/jobs/{job['id']}/cancel")["state"] == "cancelled"
        assert client.ended("train")["state"] == "cancelled"
        assert client.send("POST", f"/api/jobs/{job['id']}/cancel")["state"] == "cancelled"
        server.stop()
    assert not (tmp_path / "p" / "jobs" / job["id"] / "run").exists()
