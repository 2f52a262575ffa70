"""Training on scenes of 0.02 to 100 megapixels with 64 bands, from a file on disk.

    python benchmarks/training.py [--method t-honecls] [--megapixels 0.02,1,16,100]

By the density ratio, or by the network with the preset for large scenes. Each size runs in its own
process; the file is noise on a pattern,
an ENVI cube of 6.4 GB at 100 megapixels, and is removed afterwards. The peak is of the whole
process.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import cyclopts
import numpy as np
import torch

from measure import publish
from thonecls.benchmark.records import forget_peak, peak_memory
from thonecls.io.raster import open_raster
from thonecls.method.config import COLLAGE
from thonecls.method.fit import fit
from thonecls.methods.spectral_model import AnyModel
from thonecls.ratio.model import fit_ratio

BANDS, PERIOD = 64, 32  # of the pattern, so that labels lie all over the smallest scene too


def write_scene(path: Path, side: int) -> None:
    """An ENVI cube of uint8, written band by band."""
    rng = np.random.default_rng(0)
    tile = rng.integers(0, 100, size=(BANDS, PERIOD, PERIOD), dtype=np.uint8)
    tile[:20, 10:20, 10:20] += 100  # the class
    times = -(-side // PERIOD)
    with path.open("wb") as file:
        for band in range(BANDS):
            np.tile(tile[band], (times, times))[:side, :side].tofile(file)
    header = {"samples": side, "lines": side, "bands": BANDS, "data type": 1, "interleave": "bsq"}
    lines = ["ENVI", *(f"{name} = {value}" for name, value in header.items())]
    path.with_suffix(".hdr").write_text("\n".join(lines))


def measure(path: Path, method: str) -> dict[str, float]:
    """Train to the end; seconds of the clock and of the processor, and bytes."""
    source = open_raster(path)
    rng = np.random.default_rng(1)
    rows, columns = (rng.integers(0, n // PERIOD, 100) for n in source.shape)
    offsets = np.random.default_rng(2).integers(10, 20, size=(2, 100))
    positives = np.unique(np.stack([rows, columns], 1) * PERIOD + offsets.T, axis=0)
    forget_peak()
    began, worked = time.perf_counter(), time.process_time()
    model: AnyModel
    if method == "density-ratio":
        model = fit_ratio(source, positives, coverage="all")  # the dearest, and the same for each
    else:
        model = fit(source, positives, config=COLLAGE, generator=torch.Generator().manual_seed(0))
    return {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - worked,
        "steps": model.training["seconds"],
        "bytes": float(peak_memory() or 0),
    }


def main(
    *,
    megapixels: tuple[float, ...] = (0.02, 1, 16, 100),
    folder: Path | None = None,
    method: Literal["density-ratio", "t-honecls"] = "density-ratio",
    child: Path | None = None,
) -> None:
    """Measure every size in its own process."""
    if child is not None:
        print(json.dumps(measure(child, method)))
        return
    table = []
    for size in megapixels:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            path = Path(temporary) / "scene.bsq"
            write_scene(path, max(PERIOD, round(math.sqrt(size * 1e6))))
            command = [sys.executable, __file__, "--method", method, "--child", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        steps = {} if method == "density-ratio" else {"of these in steps": found["steps"]}
        table.append(
            {
                "Mpx": size,
                "seconds": found["seconds"],
                **steps,
                "core seconds": found["cpu"],
                "peak GiB": found["bytes"] / 2**30,
            }
        )
        print(table[-1], flush=True)
    publish("fitting-scale" if method == "density-ratio" else "training-scale", table)


if __name__ == "__main__":
    cyclopts.run(main)
