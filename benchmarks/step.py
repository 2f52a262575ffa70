"""One training step, plain against ours: time, memory, and share of the machine's peak.

    python benchmarks/step.py [--rounds 5]

The plain side is Algorithm 1 word by word (tests/reference.py): whole-scene logits of student and
teacher, on a cube padded with zeros to a multiple of 16, as the authors do.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import cyclopts
import torch
from torch.nn.functional import pad

from measure import extra_memory, flops, interleaved, matmul_peak, memory_of, publish
from thonecls.method.checkpoint import Checkpointer, State
from thonecls.method.config import CHECKPOINT_SECONDS, PAPER
from thonecls.method.data import logits_at
from thonecls.method.net import FreeOCNet
from thonecls.method.procedure import new_optimizer, objective

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference import dense_objective

SIZES = {
    "Indian Pines": (200, 145, 145),
    "Pavia University": (103, 610, 340),
    "HongHu": (270, 940, 475),
}


def sides(bands: int, rows: int, columns: int) -> dict[str, Callable[[], None]]:
    """A training step of either kind, on random data."""
    torch.manual_seed(0)
    student, teacher = FreeOCNet(bands), FreeOCNet(bands)
    cube = torch.randn(1, bands, rows, columns)
    pixels = torch.randperm(rows * columns)[:10], torch.randperm(rows * columns)[:400]
    padded = pad(cube[0], (0, -columns % 16, 0, -rows % 16))
    width = padded.shape[2]
    moved = (pixels[0] // columns * width + pixels[0] % columns,
             pixels[1] // columns * width + pixels[1] % columns)  # fmt: skip

    def plain() -> None:
        student.zero_grad()
        dense_objective(student, teacher, padded, moved, PAPER)[0].backward()

    def ours() -> None:
        student.zero_grad()
        step_losses = objective(
            student, teacher, lambda net: logits_at(net, cube, None, pixels), PAPER
        )
        step_losses.loss.backward()

    return {"plain": plain, "ours": ours}


def checkpoint_cost() -> dict[str, float]:
    """Seconds to keep the state of a training on Indian Pines, and their share of the run."""
    bands = SIZES["Indian Pines"][0]
    student, teacher = FreeOCNet(bands), FreeOCNet(bands)
    optimizer = new_optimizer(student, PAPER)
    sum(p.sum() for p in student.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()  # so that there is momentum to keep
    state = State(student, teacher, optimizer, torch.Generator().get_state(), [0.0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        checkpointer = Checkpointer(path, "", every=CHECKPOINT_SECONDS)
        seconds = interleaved({"keep": lambda: checkpointer.keep(state, now=True)}, 9)["keep"]
        size = path.stat().st_size / 1e6
    return {
        "MB": size,
        "seconds": seconds,
        "kept every s": CHECKPOINT_SECONDS,
        "share of training, %": 100 * seconds / CHECKPOINT_SECONDS,
    }


def main(
    *, rounds: int = 5, memory: tuple[Literal["plain", "ours"], int, int, int] | None = None
) -> None:
    """Measure all sizes, or (for a child process) the memory of one side at one size."""
    if memory is not None:
        print(extra_memory(sides(*memory[1:])[memory[0]]))
        return
    table = []
    for name, size in SIZES.items():
        both = sides(*size)
        # Small scenes are measured more often: they are over soon, and noise is as large.
        seconds = interleaved(both, rounds * max(1, 100_000 // (size[1] * size[2])))
        peak = matmul_peak()
        repeats = 5 if size[1] * size[2] < 100_000 else 1
        bytes_ = {
            side: statistics.median(
                memory_of(__file__, "--memory", side, *size) for _ in range(repeats)
            )
            for side in both
        }
        table.append(
            {
                "scene": f"{name} {size[1]}×{size[2]}×{size[0]}",
                "plain s": seconds["plain"],
                "ours s": seconds["ours"],
                "time ratio": seconds["plain"] / seconds["ours"],
                "plain GB": bytes_["plain"] / 1e9,
                "ours GB": bytes_["ours"] / 1e9,
                "memory ratio": bytes_["ours"] / bytes_["plain"],
                "ours of matmul peak": flops(both["ours"]) / seconds["ours"] / peak,
            }
        )
    publish("step", table)
    publish("checkpoint", [checkpoint_cost()])


if __name__ == "__main__":
    cyclopts.run(main)
