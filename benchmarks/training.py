"""One training on a real scene, with F1 against the truth after every epoch.

    python benchmarks/training.py --scene indian-pines --target 2 --preset paper --seed 0
    python benchmarks/training.py --scene potsdam-south --data-root DATA --target 4

Writes runs/training/<scene>-<target>-<loss>-<preset>-<seed>.json after every epoch; killed, the
same command goes on where it was. The truth is only looked at, never used for training.
`benchmarks/schedule.py` and `benchmarks/render.py` make tables and figures from these files.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
import torch

from thonecls.datasets import Dataset, enmap_potsdam, houston_crop, indian_pines
from thonecls.files import write_atomically
from thonecls.metrics import evaluate
from thonecls.splits import paper_split
from thonecls.train import PRESETS, Progress, fit

RUNS = Path("runs/training")
Scenes = Literal["indian-pines", "houston-crop", "enmap-potsdam", "potsdam-south"]
SOUTH = slice(64, 192), slice(32, 160)  # of EnMAP Potsdam: 128×128 pixels, 12 of its 18 tiles


def load(scene: Scenes, data_root: Path) -> Dataset:
    """A dataset by its name."""
    if scene == "indian-pines":
        return indian_pines()
    if scene == "houston-crop":
        return houston_crop(data_root)
    data = enmap_potsdam(data_root)
    if scene == "enmap-potsdam":
        return data
    return replace(data, name=scene, scene=data.scene.read(*SOUTH), truth=data.truth[SOUTH])


def run(
    *,
    scene: Scenes = "indian-pines",
    data_root: Path = Path("data"),
    target: int = 2,
    loss: Literal["taylor", "variational"] = "taylor",
    preset: Literal["paper", "fast"] = "paper",
    seed: int = 0,
    share: Annotated[
        float, cyclopts.Parameter(help="Pixels seen at a step, of the scene's; below 1: windows.")
    ] = 1.0,
    threads: Annotated[int | None, cyclopts.Parameter(help="CPU threads; all by default.")] = None,
) -> None:
    """Train once and record losses and F1 by epoch."""
    if threads is not None:
        torch.set_num_threads(threads)
    data = load(scene, data_root)
    split = paper_split(data.truth, target, valid=data.scene.valid)
    config = replace(PRESETS[preset], loss=loss, budget=int(share * data.truth.size))
    name = f"{scene}-{target}-{loss}-{preset}{'' if share == 1 else f'-{share:g}'}-{seed}"
    path = RUNS / f"{name}.json"
    checkpoint = RUNS / f"{name}.checkpoint"
    before = json.loads(path.read_text()) if checkpoint.exists() and path.exists() else {}
    curve: list[float] = before.get("f1", [])
    clock: list[float] = before.get("clock", [])

    def record(progress: Progress) -> None:
        model = progress.snapshot()
        scores = evaluate(model.score(data.scene), data.truth == target, split.test)
        # A checkpoint may lie before the last record: that epoch comes a second time.
        curve[progress.epoch - 1 :] = [scores.f1]
        clock[progress.epoch - 1 :] = [model.training["seconds"]]
        facts = {
            "dataset": data.name,
            "target": target,
            "loss": loss,
            "preset": preset,
            "share": share,
            "seed": seed,
            "finished": model.training["finished"],
            "scores": asdict(scores),
            "f1": curve,
            "clock": clock,
            "threads": torch.get_num_threads(),
            "machine": platform.machine(),
            "training": model.training,
        }
        write_atomically(path, json.dumps(facts).encode())
        print(
            f"epoch {progress.epoch} loss {progress.figures.loss:.4f} F1 {scores.f1:.2f}",
            flush=True,
        )

    fit(
        data.scene,
        split.labels,
        config=config,
        generator=torch.Generator().manual_seed(seed),
        on_epoch=record,
        checkpoint=checkpoint,
        resume=True,
    )
    checkpoint.unlink()


if __name__ == "__main__":
    cyclopts.run(run)
