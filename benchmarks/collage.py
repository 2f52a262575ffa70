"""One training step on a collage: its time by its parts, and the share of the machine's peak.

    python benchmarks/collage.py [--rounds 15]

A step of the default settings, on random data, with as many components and of such a width. Times
are of the process, all threads together, so that other work on the machine counts little; where
threads outnumber free cores, they also hold the time that threads wait for each other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import cyclopts
import numpy as np
import torch

from measure import flops, publish
from thonecls.method.config import COLLAGE, TrainConfig
from thonecls.method.data import CollageBatch, CollageData
from thonecls.method.loop import _start, _step_
from thonecls.method.procedure import Procedure

SIDE, POSITIVES = 145, 100  # of the random scene
SIZE = 1024  # of the matrices that the machine's peak is measured with


def sides(config: TrainConfig) -> dict[str, Callable[[], object]]:
    """A whole step and its parts, and a matrix product to compare with."""
    rng = np.random.default_rng(0)
    mask = np.zeros((SIDE, SIDE), dtype=bool)
    mask.flat[rng.choice(mask.size, POSITIVES, replace=False)] = True
    generator = torch.Generator().manual_seed(0)
    cube = rng.normal(size=(config.components, SIDE, SIDE))
    data = CollageData.prepare(cube, mask, replace(config, device="cpu"), generator)
    procedure: Procedure[CollageBatch] = Procedure()
    state = _start(data, config, procedure, generator, None)
    batches = data.batches(config.batches, generator)
    turn = 0

    def step() -> None:
        nonlocal turn
        turn += 1
        _step_(state, data, batches[turn % len(batches)], config, procedure)

    def teacher() -> None:
        with torch.no_grad():
            data.logits(state.teacher, batches[0])

    def student() -> None:
        state.student.zero_grad()
        torch.cat(data.logits(state.student, batches[0])).square().mean().backward()

    a, b = torch.randn(2, SIZE, SIZE)
    return {
        "cut": lambda: data._cut(batches[0]),
        "teacher": teacher,
        "student": student,
        "step": step,
        "matmul": lambda: a @ b,
    }


def busy(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of the process for each; they take turns. One round warms up."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            started = time.process_time()
            work()
            times[name].append(time.process_time() - started)
    return {name: statistics.median(t[1:]) for name, t in times.items()}


def main(*, rounds: int = 15, threads: tuple[int, ...] = (1, 2)) -> None:
    """Measure with so many threads, at two numbers of components and two widths."""
    table = []
    for count in threads:
        torch.set_num_threads(count)
        for components in (40, 13):
            for width in (0.5, 1.0):
                works = sides(replace(COLLAGE, components=components, width=width, device="cpu"))
                ms = {name: 1e3 * seconds for name, seconds in busy(works, rounds).items()}
                parts = {name: ms[name] for name in ("cut", "student", "teacher")}
                peak = 2 * SIZE**3 / ms["matmul"]
                table.append(
                    {
                        "threads": count,
                        "components": components,
                        "width": width,
                        "step ms": ms["step"],
                        **{f"{name} ms": value for name, value in parts.items()},
                        "rest ms": ms["step"] - sum(parts.values()),
                        "of matmul peak": flops(works["step"]) / ms["step"] / peak,
                    }
                )
    publish("collage", table)


if __name__ == "__main__":
    cyclopts.run(main)
