"""A training step on images: images a second, and what bounds them.

    python benchmarks/images.py [--rounds 5]

The Taylor loss on the networks for CIFAR-10 and Fashion-MNIST, 500 + 500 random images a step, with
memory given back after every step, as glibc does, and kept. Each runs in processes of its own, in
turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import cyclopts
import numpy as np
import torch

from measure import flops, matmul_peak, publish
from thonecls.images import image_spec
from thonecls.images.data import ImageData, Rows
from thonecls.images.networks import NETWORKS
from thonecls.images.steps import adam
from thonecls.method.procedure import objective
from thonecls.methods.image_training import TRAININGS, item_settings

NAMES = ("cifar10", "fashion-mnist")
STEPS = 4


# How glibc is told to keep large blocks for their next use instead of giving them back.
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}


def measure(name: str) -> dict[str, float]:
    """Seconds of an image in a step, operations of it, and the machine's peak a second."""
    spec, config = image_spec(name), item_settings("taylor")
    random = np.random.default_rng(0)
    items = random.integers(0, 256, (2000, *spec.shape), dtype=np.uint8)
    sizes = TRAININGS["taylor"].sizes
    assert isinstance(sizes, tuple)
    data = ImageData(
        Rows(items, np.arange(900)),
        Rows(items, np.arange(900, 2000)),
        lambda: NETWORKS[spec.network](spec.shape),
        sizes,
        torch.device("cpu"),
    )
    generator = torch.Generator().manual_seed(0)
    net = data.new_net(generator)
    optimizer = adam(net, config)
    batches = data.batches(STEPS + 2, generator)

    def step(number: int) -> None:
        optimizer.zero_grad()
        objective(net, net, lambda n: data.logits(n, batches[number]), config).loss.backward()
        optimizer.step()

    step(0)
    began = time.perf_counter()
    for number in range(1, STEPS + 1):
        step(number)
    seconds = (time.perf_counter() - began) / STEPS
    done = float(flops(lambda: step(STEPS + 1)))
    return {
        "seconds": seconds / sum(sizes),
        "flops": done / sum(sizes),
        "peak": matmul_peak(),
    }


def main(*, rounds: int = 5, child: str | None = None) -> None:
    """Measure all, or (for a child process) one."""
    if child is not None:
        print(json.dumps(measure(child)))
        return
    table: list[dict[str, Any]] = []
    for name in NAMES:
        found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for _ in range(rounds):
            for kept_there, measured in found.items():
                command = [sys.executable, __file__, "--child", name]
                environment = {**os.environ, **(KEEPING if kept_there else {})}
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=environment
                )
                measured.append(json.loads(done.stdout))
        given, kept = (
            {key: statistics.median(m[key] for m in measured) for key in measured[0]}
            for measured in found.values()
        )
        table.append(
            {
                "images": image_spec(name).title.partition(",")[0],
                "images/s, memory given back": 1 / given["seconds"],
                "images/s, kept": 1 / kept["seconds"],
                "ratio": given["seconds"] / kept["seconds"],
                "of matmul peak": kept["flops"] / kept["seconds"] / kept["peak"],
            }
        )
    publish("images", table)


if __name__ == "__main__":
    cyclopts.run(main)
