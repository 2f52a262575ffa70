"""How long the studio makes people wait: spectra, a stroke to its first map, tiles of large files.

python benchmarks/studio.py --side 1000        # 1 Mpx, 13 bands
python benchmarks/studio.py --side 10000       # 100 Mpx: 2.7 GB in --folder
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine

BANDS = 13
BLOCK = 50  # pixels a side of a field


def write_scene(path: Path, side: int) -> None:
    """Fields of random spectra with noise, tiled, without overviews."""
    rng = np.random.default_rng(0)
    fields = rng.normal(3000, 600, size=(BANDS, side // BLOCK + 1, side // BLOCK + 1))
    at = np.arange(side) // BLOCK
    profile = {
        **{"driver": "GTiff", "height": side, "width": side, "count": BANDS, "dtype": "int16"},
        **{"crs": "EPSG:32633", "transform": Affine(10, 0, 4e5, 0, -10, 58e5), "tiled": True},
        **{"blockxsize": 256, "blockysize": 256, "bigtiff": "if_safer"},
    }
    with rasterio.open(path, "w", **profile) as file:
        for start in range(0, side, 512):
            part = fields[:, at[start : start + 512]][:, :, at].astype(np.int16)
            part += rng.integers(-60, 60, size=part.shape, dtype=np.int16)
            file.write(part, window=((start, start + part.shape[1]), (0, side)))
        for band in range(1, BANDS + 1):
            file.update_tags(band, wavelength=str(440 + 60 * band), wavelength_units="nm")


class Client:
    """Asks a studio, one connection for all."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://([^/]+)/\?token=(.+)", address)
        assert found is not None
        self.host, self.token = found[1], found[2]
        self.connection = http.client.HTTPConnection(self.host)

    def ask(self, method: str, path: str, content: Any = None) -> bytes:
        """What the server answers; an error where it refuses."""
        body = None if content is None else json.dumps(content).encode()
        headers = {"X-Thonecls-Token": self.token, "Content-Type": "application/json"}
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        read = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {read.decode()}")
        return read

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("GET", "/api/state"))
        return found


@contextmanager
def studio(scene: Path, project: Path, *more: str) -> Iterator[Client]:
    """A studio of a scene, in a process of its own."""
    words = [sys.executable, "-m", "thonecls.cli", "studio", str(scene), "--no-open", *more]
    with subprocess.Popen(
        [*words, "--project", str(project)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                break
        assert found is not None
        try:
            yield Client(found[0])
        finally:
            process.terminate()


def milliseconds(client: Client, path: str) -> float:
    """How long an answer takes."""
    began = time.perf_counter()
    client.ask("GET", path)
    return 1e3 * (time.perf_counter() - began)


def in_words(name: str, times: list[float]) -> None:
    """Print median and worst of some times in ms."""
    middle, worst = np.median(times), max(times)
    print(f"{name:<44} median {middle:8.1f} ms   worst {worst:8.1f} ms   n {len(times)}")


def measure_spectra(client: Client, side: int, rng: np.random.Generator) -> None:
    pixels = rng.integers(0, side, size=(100, 2)).tolist()
    times = [milliseconds(client, f"/api/spectrum?row={r}&column={c}") for r, c in pixels]
    in_words("spectrum of a pixel", times)


def measure_strokes(client: Client, rng: np.random.Generator) -> None:
    """From a stroke to all tiles of the quick map at the coarsest level, which shows the scene."""
    times = []
    for k in range(5):
        row, column = 50 * k + 20, 120
        began = time.perf_counter()
        pixels = [[row + i // 4, column + i % 4] for i in range(16)]
        told = json.loads(
            client.ask("POST", "/api/strokes", {"kind": "positive", "pixels": pixels})
        )
        while not any(m["revision"] == told["revision"] for m in client.state()["maps"]):
            time.sleep(0.02)
        client.ask("GET", f"/api/tiles/map/quick-{told['revision']}/0/0/0")
        times.append(1e3 * (time.perf_counter() - began))
    in_words("stroke to first map", times)


def measure_tiles(
    client: Client, side: int, zooms: int, name: str, rng: np.random.Generator
) -> None:
    for z in range(zooms):
        tiles = -(-side // (256 * 2 ** (zooms - 1 - z)))
        asked = {tuple(rng.integers(0, tiles, 2).tolist()) for _ in range(12)}
        times = [milliseconds(client, name.format(z=z, x=x, y=y)) for x, y in asked]
        kind = "scene" if "scene" in name else "quick map"
        in_words(f"tile of the {kind}, zoom {z} of {zooms - 1}", times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        scene = folder / f"scene-{options.side}.tif"
        if not scene.exists():
            write_scene(scene, options.side)
        began = time.perf_counter()
        with studio(scene, Path(temporary) / "project") as client:
            print(f"{options.side} x {options.side} pixels, {BANDS} bands")
            print(f"ready to be opened after {time.perf_counter() - began:.1f} s")
            client.ask("PUT", "/api/settings", {"auto": False})
            while not client.state()["overview"]["ready"]:
                time.sleep(0.2)
            print(f"overview after {time.perf_counter() - began:.1f} s")
            zooms = client.state()["scene"]["zooms"]
            measure_spectra(client, options.side, rng)
            address = "/api/tiles/scene/{z}/{x}/{y}?preset=false-colour"
            measure_tiles(client, options.side, zooms, address, rng)
            measure_strokes(client, rng)
            shown = client.state()["shown"]
            address = f"/api/tiles/map/{shown}" + "/{z}/{x}/{y}"
            measure_tiles(client, options.side, zooms, address, rng)


if __name__ == "__main__":
    main()
