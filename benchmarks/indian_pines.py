"""The paper's schedule on Indian Pines: one training, with F1 against the truth after every epoch.

    python benchmarks/indian_pines.py --target 2 --loss taylor --seed 0

Writes runs/indian-pines/<target>-<loss>-<preset>-<seed>.json after every epoch. The truth is only
looked at, never used for training. `benchmarks/render.py` makes table and figure from these files.
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
import torch

from thonecls.datasets import indian_pines
from thonecls.files import write_atomically
from thonecls.metrics import evaluate
from thonecls.splits import paper_split
from thonecls.train import PRESETS, Progress, fit

RUNS = Path("runs/indian-pines")


def run(
    *,
    target: int = 2,
    loss: Literal["taylor", "variational"] = "taylor",
    preset: Literal["paper", "fast"] = "paper",
    seed: int = 0,
    threads: Annotated[int | None, cyclopts.Parameter(help="CPU threads; all by default.")] = None,
) -> None:
    """Train once and record losses and F1 by epoch."""
    if threads is not None:
        torch.set_num_threads(threads)
    data = indian_pines()
    split = paper_split(data.truth, target)
    config = replace(PRESETS[preset], loss=loss)
    started = time.perf_counter()
    curve: list[float] = []
    clock: list[float] = []
    path = RUNS / f"{target}-{loss}-{preset}-{seed}.json"

    def record(progress: Progress) -> None:
        model = progress.snapshot()
        scores = evaluate(model.score(data.scene), data.truth == target, split.test)
        curve.append(scores.f1)
        clock.append(model.training["seconds"])
        facts = {
            "dataset": data.name,
            "target": target,
            "loss": loss,
            "preset": preset,
            "seed": seed,
            "finished": model.training["finished"],
            "scores": asdict(scores),
            "f1": curve,
            "clock": clock,
            "seconds": time.perf_counter() - started,
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
    )


if __name__ == "__main__":
    cyclopts.run(run)
