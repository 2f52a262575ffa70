"""Mapping scenes of 1 to 100 megapixels with 64 bands: seconds a megapixel, peak memory.

    python benchmarks/scale.py [--megapixels 1,4,16]

The scene is made window by window as it is read, and the map is written to disk as it goes, so
that memory is the program's own. Each size runs in its own process. Core seconds are those that the
process worked, on all cores together: on a busy machine they say more than seconds of the clock.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cyclopts
import numpy as np
import torch

from measure import extra_memory, publish
from thonecls.files import writing_array
from thonecls.method.frozen import freeze
from thonecls.method.model import Model
from thonecls.method.net import FreeOCNet
from thonecls.scene import BandStatistics, Scene

BANDS = 64


class Endless:
    """A source of any size whose windows are cut from one block of noise."""

    def __init__(self, rows: int, columns: int) -> None:
        self.bands, self.shape = BANDS, (rows, columns)
        rng = np.random.default_rng(0)
        self.block = rng.normal(size=(BANDS, 128, 128)).astype(np.float32)

    def read(self, rows: slice, columns: slice) -> Scene:
        row, column = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
        cube = self.block[:, row % 128][:, :, column % 128]
        return Scene(cube, np.ones(cube.shape[1:], dtype=bool))


def measure(megapixels: int) -> dict[str, float]:
    """Map one scene; seconds and bytes above the start."""
    side = round(math.sqrt(megapixels * 1e6))
    source = Endless(side, side)
    torch.manual_seed(0)
    net = FreeOCNet(BANDS).eval()
    frozen = freeze(net, torch.from_numpy(source.block)[None])
    ones = np.ones(BANDS, dtype=np.float32)
    model = Model(net, BandStatistics(0 * ones, ones), frozen)

    def map_all() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            writing_array(Path(folder) / "p.npy", np.float32, source.shape) as probability,
        ):
            for rows, columns, part in model.score_windows(source):
                probability[rows, columns] = part

    started, worked = time.perf_counter(), time.process_time()
    held = extra_memory(map_all)
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - worked,
        "bytes": float(held),
    }


def main(*, megapixels: tuple[int, ...] = (1, 4, 16, 64, 100), child: bool = False) -> None:
    """Measure every size in its own process."""
    if child:
        print(json.dumps(measure(megapixels[0])))
        return
    table = []
    for size in megapixels:
        command = [sys.executable, __file__, "--child", "--megapixels", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        table.append(
            {
                "Mpx": size,
                "seconds": found["seconds"],
                "s/Mpx": found["seconds"] / size,
                "core s/Mpx": found["cpu"] / size,
                "peak GiB": found["bytes"] / 2**30,
            }
        )
        print(table[-1], flush=True)
    publish("scale", table)


if __name__ == "__main__":
    cyclopts.run(main)
