"""Mapping a scene of 20,000 × 20,000 pixels by the command: seconds and peak memory.

    python benchmarks/vast.py [--side 20000] [--method matched-filter] [--folder /tmp/vast]

Makes a GeoTIFF of noise, the worst there is for polygons, trains a cheap model on a small scene
like it, and runs `thonecls map` on the whole in a process of its own. The files are removed in the
end.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import cyclopts
import numpy as np
import rasterio
from affine import Affine
from rasterio.windows import Window

from mapping import run
from measure import publish
from thonecls.method.novelty import fit_novelty
from thonecls.methods.spectral_model import fit_spectral
from thonecls.scene import as_scene, standardize

BANDS, ROWS = 4, 512


def noise(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Bands of whole numbers, (C, H, W), without any order in them."""
    return rng.integers(0, 10_000, (BANDS, rows, columns), dtype=np.uint16)


def make_scene(path: Path, side: int) -> None:
    rng = np.random.default_rng(0)
    about = {"driver": "GTiff", "count": BANDS, "height": side, "width": side, "dtype": "uint16"}
    place = {"crs": "EPSG:32633", "transform": Affine(1, 0, 364095, 0, -1, 5809965)}
    tiles = {"tiled": True, "blockxsize": ROWS, "blockysize": ROWS, "BIGTIFF": "YES"}
    with rasterio.open(path, "w", **about, **place, **tiles) as file:
        for top in range(0, side, ROWS):
            rows = min(ROWS, side - top)
            file.write(noise(rng, rows, side), window=Window(0, top, side, rows))


def train(path: Path, method: str, threshold: float) -> None:
    """A model of the same noise: which pixels are labelled does not matter here."""
    cube = noise(np.random.default_rng(1), 64, 64).astype(np.float32)
    positives = cube[0] > 8000
    model = fit_spectral(method, cube, positives)
    seen = standardize(as_scene(cube), model.statistics).reshape(BANDS, -1).T
    replace(model, threshold=threshold, novelty=fit_novelty(seen)).save(path)


def main(
    *,
    side: int = 20_000,
    method: str = "matched-filter",
    threshold: float = 0.5,
    folder: Path = Path("/tmp/thonecls-vast"),
) -> None:
    """Make, train, map, measure."""
    folder.mkdir(parents=True)
    try:
        scene, model, out = folder / "scene.tif", folder / "model.safetensors", folder / "map"
        make_scene(scene, side)
        train(model, method, threshold)
        seconds, peak = run(model, scene, out)
        told = json.loads((out / "map.json").read_text("utf-8"))
        row = {
            "side": side,
            "method": method,
            "mapped share": told["mapped_share"],
            "seconds": seconds,
            "s/Mpx": seconds / side**2 * 1e6,
            "peak GiB": peak * 1e9 / 2**30,
            "polygons MB": (out / "polygons.gpkg").stat().st_size / 1e6,
        }
        print(*told["notes"], sep="\n")
        publish("vast", [row])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    cyclopts.run(main)
