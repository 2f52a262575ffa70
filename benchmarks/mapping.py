"""Mapping a cube of 6 GB on disk: seconds, peak memory, and whether a killed map resumes equal.

    python benchmarks/mapping.py [--gigabytes 6] [--folder /tmp/large]

Makes an ENVI cube of noise and fields, trains a small model on a part of it, then maps the whole
once, and once more with SIGKILL halfway and --resume. The files are removed in the end.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import cyclopts
import numpy as np
import torch

from measure import publish
from thonecls.datasets import synthetic
from thonecls.method.config import FAST
from thonecls.method.fit import fit

BANDS, WIDTH = 100, 4000


def make_cube(path: Path, gigabytes: float) -> int:
    """A BIL cube of int16; its rows repeat a small scene, with noise of their own."""
    small = synthetic(height=200, width=WIDTH, bands=BANDS, fields=300, seed=1).scene.cube
    tile = np.clip(2000 + 500 * small, 0, 10000).astype(np.int16).transpose(1, 0, 2)
    rows = int(gigabytes * 1e9 / (2 * BANDS * WIDTH))
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, rows, len(tile)):
            part = tile[: min(len(tile), rows - start)]
            (part + rng.integers(-20, 20, part.shape, dtype=np.int16)).tofile(file)
    waves = ", ".join(f"{w:.1f}" for w in np.linspace(400, 2400, BANDS))
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {WIDTH}\nlines = {rows}\nbands = {BANDS}\nheader offset = 0\n"
        "file type = ENVI Standard\ndata type = 2\ninterleave = bil\nbyte order = 0\n"
        "map info = {UTM, 1, 1, 364095, 5809965, 1, 1, 33, North, WGS-84}\n"
        f"wavelength units = Nanometers\nwavelength = {{{waves}}}\n"
    )
    return rows


def train(path: Path) -> None:
    """A model of the small scene, at full width: what it finds does not matter here."""
    data = synthetic(height=64, width=64, bands=BANDS, seed=1)
    config = replace(FAST, epochs=2, batches=4, unlabeled=400)
    generator = torch.Generator().manual_seed(0)
    model = fit(data.scene, data.truth == 1, config=config, generator=generator)
    waves = tuple(float(f"{w:.1f}") for w in np.linspace(400, 2400, BANDS))
    replace(model, wavelengths=waves).save(path)


def start(model: Path, cube: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "thonecls.cli", "map", model, cube, "--out", out]
    return subprocess.Popen(
        [*map(str, command), "--resume", "--json"], stdout=subprocess.PIPE, text=True
    )


def run(model: Path, cube: Path, out: Path) -> tuple[float, float]:
    """Seconds and peak gigabytes of a whole map."""
    began = time.perf_counter()
    process = start(model, cube, out)
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        lines = [x for x in status.read_text("utf-8").splitlines() if x.startswith("VmHWM")]
        peak = max(peak, *(int(x.split()[1]) * 1024 for x in lines), 0)
        time.sleep(0.05)
    assert process.returncode == 0
    assert process.stdout is not None
    assert "mapped_share" in json.loads(process.stdout.read())
    return time.perf_counter() - began, peak / 1e9


def main(*, gigabytes: float = 6.0, folder: Path = Path("/tmp/thonecls-large")) -> None:
    """Make, map, kill, resume, compare."""
    folder.mkdir(parents=True)
    try:
        cube, model = folder / "cube.bil", folder / "model.safetensors"
        rows = make_cube(cube, gigabytes)
        train(model)
        seconds, peak = run(model, cube, folder / "whole")
        process = start(model, cube, folder / "killed")
        time.sleep(seconds / 2)
        process.kill()
        process.communicate()
        again, _ = run(model, cube, folder / "killed")
        names = ("map.tif", "probability.tif")
        same = all(
            (folder / "whole" / n).read_bytes() == (folder / "killed" / n).read_bytes()
            for n in names
        )
        row = {
            "cube": f"{cube.stat().st_size / 1e9:.1f} GB",
            "megapixels": rows * WIDTH / 1e6,
            "seconds": seconds,
            "s/Mpx": seconds / (rows * WIDTH / 1e6),
            "peak GB": peak,
            "seconds after the kill": again,
            "equal bytes": same,
        }
        publish("mapping", [row])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    cyclopts.run(main)
