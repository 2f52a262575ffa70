"""A training step in float32 and in bfloat16: of a scene, and of images.

    python benchmarks/precision.py [--rounds 7]

T-HOneCls on random data of the size of Indian Pines, and the Taylor loss on 500 + 500 random images
by the network for CIFAR-10, by turns in one process. What it says holds for this processor alone:
one without instructions for bfloat16 is far slower with it.
"""

from __future__ import annotations

from collections.abc import Callable

import cyclopts
import numpy as np
import torch

from measure import interleaved, publish
from thonecls.images import image_spec
from thonecls.images.data import ImageData, Rows
from thonecls.images.networks import NETWORKS
from thonecls.method.config import PAPER
from thonecls.method.data import logits_at
from thonecls.method.net import FreeOCNet
from thonecls.method.procedure import objective
from thonecls.methods.image_training import item_settings

PRECISIONS = ("float32", "bfloat16")


def half(precision: str) -> torch.autocast:
    """Around the losses of a step, as in the training loop."""
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")


def scene_step(precision: str) -> Callable[[], None]:
    """Student and teacher on a scene, loss and gradient."""
    torch.manual_seed(0)
    student, teacher = FreeOCNet(200), FreeOCNet(200)
    cube = torch.randn(1, 200, 145, 145)
    pixels = torch.randperm(145 * 145)[:10], torch.randperm(145 * 145)[:400]

    def step() -> None:
        student.zero_grad()
        with half(precision):
            losses = objective(student, teacher, lambda n: logits_at(n, cube, None, pixels), PAPER)
        losses.loss.backward()

    return step


def image_step(precision: str) -> Callable[[], None]:
    """One network on images, loss and gradient."""
    spec, config = image_spec("cifar10"), item_settings("taylor")
    items = np.random.default_rng(0).integers(0, 256, (2000, *spec.shape), dtype=np.uint8)
    rows = Rows(items, np.arange(900)), Rows(items, np.arange(900, 2000))
    make = NETWORKS[spec.network]
    data = ImageData(*rows, lambda: make(spec.shape), (500, 500), torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    net, batch = data.new_net(generator), data.batches(1, generator)[0]

    def step() -> None:
        net.zero_grad()
        with half(precision):
            losses = objective(net, net, lambda n: data.logits(n, batch), config)
        losses.loss.backward()

    return step


def main(*, rounds: int = 7) -> None:
    """Measure and publish."""
    table = []
    for name, step in (("Indian Pines", scene_step), ("CIFAR-10", image_step)):
        seconds = interleaved({p: step(p) for p in PRECISIONS}, rounds)
        table.append(
            {
                "step": name,
                **{f"{precision} s": seconds[precision] for precision in PRECISIONS},
                "ratio": seconds["float32"] / seconds["bfloat16"],
            }
        )
    publish("precision", table)


if __name__ == "__main__":
    cyclopts.run(main)
