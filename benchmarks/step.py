"""One training step and one scoring, plain against ours, at the size of Indian Pines.

    python benchmarks/step.py

The plain side is Algorithm 1 word by word: whole-scene logits of student and teacher, on a cube
padded with zeros to a multiple of 16. Both sides alternate in one run, so that noise hits both.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch.nn.functional import pad

from thonecls.net import FreeOCNet
from thonecls.train import PAPER, objective

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference import dense_objective

ROUNDS = 7


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    torch.manual_seed(0)
    bands, rows, columns = 200, 145, 145
    student, teacher = FreeOCNet(bands), FreeOCNet(bands)
    cube = torch.randn(bands, rows, columns)
    padded = pad(cube, (0, -columns % 16, 0, -rows % 16))
    config = replace(PAPER, device="cpu")
    pixels = torch.randperm(rows * columns)[:10], torch.randperm(rows * columns)[:400]
    on_padded = tuple(p // columns * padded.shape[2] + p % columns for p in pixels)

    def plain_step() -> None:
        dense_objective(student, teacher, padded, on_padded, config)[0].backward()  # type: ignore[arg-type]

    def our_step() -> None:
        objective(student, teacher, cube[None], pixels, config).loss.backward()

    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for kept, work in zip(times, (plain_step, our_step), strict=True):
            kept.append(seconds(work))
    plain, ours = (statistics.median(t[1:]) for t in times)
    print(
        f"step at {rows}×{columns}×{bands}, {torch.get_num_threads()} threads, {ROUNDS - 1} rounds"
    )
    print(f"plain {plain:.3f} s   ours {ours:.3f} s   ratio {plain / ours:.2f}")


if __name__ == "__main__":
    main()
