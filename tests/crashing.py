"""Work that is killed at some moment, and what must be true of its folder then."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine

from thonecls.benchmark.plan import Cell
from thonecls.benchmark.records import read_results
from thonecls.benchmark.run import run_cells
from thonecls.datasets import synthetic
from thonecls.errors import ThoneclsError
from thonecls.method.config import TrainConfig
from thonecls.workflow import (
    MapOptions,
    Running,
    TrainOptions,
    TruthFile,
    draw_sample,
    map_scene,
    train_scene,
    write_report,
)

CONFIG = TrainConfig(
    epochs=2, batches=3, unlabeled=60, width=0.25, rate=1e-3, rate_decay=1.0, device="cpu"
)
CELL = Cell("indian-pines", 2, "matched-filter")
# What a clock, a folder's name or a foreign library's clock makes different each time.
TIMED = {"seconds", "Training", "out", "command", "files", "model", "step"} | {
    "created",
    "datetime",
}
UNEQUAL = {".safetensors", ".gpkg", ".html", ".lock"}
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}


@dataclass(frozen=True)
class World:
    """Files to work on: a cube, two sets of labels, a truth, one scene of two years."""

    here: Path

    def train(self, out: Path, number: int = 0, method: str = "density-ratio", **more: Any) -> None:
        labels = self.here / f"labels{number}.npy"
        options = TrainOptions(method=method, seed=number, folds=0)
        truth = {"truth": more.pop("truth")} if "truth" in more else {}
        how = {"running": Running(**more), **truth}
        train_scene(self.here / "cube.npy", labels, out, config=CONFIG, options=options, **how)

    def map(self, model: Path, out: Path, year: int = 2020, **more: Any) -> None:
        heard = {name: more.pop(name) for name in ("on_window", "scene_options") if name in more}
        options = MapOptions(**more)
        map_scene(model, self.here / f"{year}/scene.tif", out, options=options, **heard)

    def report(self, out: Path, *, truth: bool) -> None:
        write_report(out, TruthFile(self.here / "truth.npy") if truth else None)

    def sample(self, run: Path, out: Path | None = None) -> None:
        draw_sample(run, out, size=9)

    def benchmark(self, out: Path) -> None:
        run_cells([CELL], out, root=self.here, threads=1)


def make_world(here: Path) -> World:
    """A world of small scenes."""
    data = synthetic(height=21, width=18, bands=6, seed=3)
    pixels = np.flatnonzero(data.truth == 1)
    np.save(here / "cube.npy", data.scene.cube)
    np.save(here / "truth.npy", data.truth == 1)
    for number in (0, 1):
        mask = np.zeros(data.truth.shape, dtype=bool)
        mask.flat[pixels[number::5][:12]] = True
        np.save(here / f"labels{number}.npy", mask)
    for year in (2020, 2021):
        (here / str(year)).mkdir()
        cube = np.tile(data.scene.cube, (1, 14, 1)) * (1 + 0.1 * (year - 2020))
        profile = {"height": cube.shape[1], "width": cube.shape[2], "count": 6, "dtype": "float32"}
        place = {"crs": "EPSG:32633", "transform": Affine(10, 0, 5e5, 0, -10, 5e6)}
        with rasterio.open(here / f"{year}/scene.tif", "w", **profile, **place) as file:
            file.write(cube.astype(np.float32))
    return World(here)


def outcome(folder: Path) -> dict[str, Any]:
    """What a folder says, as far as it is the same whenever the same work is done."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.suffix in UNEQUAL or name.startswith("."):
            continue
        if path.name == "results.jsonl":
            records = read_results(folder).records
            found[name] = {i: record.facts["scores"] for i, record in records.items()}
        elif path.suffix == ".json":
            found[name] = _untimed(json.loads(path.read_text("utf-8")))
        else:
            found[name] = path.read_bytes()
    return found


def _untimed(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {name: _untimed(value) for name, value in facts.items() if name not in TIMED}
    return [_untimed(value) for value in facts] if isinstance(facts, list) else facts


_on_change: Callable[[], None] | None = None
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _on_change is None:
        return
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or event in CHANGES:
        _on_change()


@contextmanager
def before_changes(call: Callable[[], None]) -> Iterator[None]:
    """Call something before every change of a file by this process that Python sees."""
    global _on_change, _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # for good: nothing takes it away again
        _hooked = True

    def alone() -> None:
        global _on_change
        _on_change = None
        try:
            call()
        finally:
            _on_change = alone

    _on_change = alone
    try:
        yield
    finally:
        _on_change = None


def states(work: Callable[[Callable[[], None]], None], folder: Path, kept: Path) -> list[Path]:
    """Copies of a folder as a kill before each change by some work would leave it, and its end.

    work: is given what it may call for one more, where it writes into a file that is open.
    """
    found: list[Path] = []
    last: list[Any] = [None]

    def keep() -> None:
        now = sorted(
            (str(p.relative_to(folder)), p.stat().st_size, p.stat().st_mtime_ns)
            for p in folder.rglob("*")
        )
        if folder.exists() and now != last[0]:
            last[0] = now
            found.append(kept / f"{len(found):03}")
            shutil.copytree(folder, found[-1])

    with before_changes(keep):
        work(keep)
    keep()
    return found


def visible(folder: Path) -> dict[str, bytes]:
    """The files that a person sees."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


def start(work: Callable[[], object]) -> int:
    """Begin work in a process of its own; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads: these wait
        process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    except ThoneclsError:
        code = 2
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def ended(process: int) -> int:
    """The exit code of a process: 0 done, 2 refused, 1 an error that nobody foresaw."""
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def kill_after(seconds: float, work: Callable[[], object]) -> bool:
    """Do work in a process of its own and kill it after so long; whether it was still at it."""
    process = start(work)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    code = ended(process)
    assert code != 1, "an error that nobody foresaw"
    return code == -signal.SIGKILL
