"""Scoring a scene, the plain whole-scene forward against the frozen, folded network.

python benchmarks/scoring.py [--rounds 5]
"""

from __future__ import annotations

from functools import partial

import cyclopts
import torch

from measure import interleaved, publish
from thonecls.frozen import FrozenNet, freeze
from thonecls.net import FreeOCNet

SIZES = {
    "Indian Pines": (200, 145, 145),
    "Pavia University": (103, 610, 340),
    "64 bands": (64, 512, 512),
}


def main(*, rounds: int = 5) -> None:
    """Measure all sizes."""
    table = []
    for name, (bands, rows, columns) in SIZES.items():
        torch.manual_seed(0)
        net = FreeOCNet(bands).eval().requires_grad_(False)
        cube = torch.randn(1, bands, rows, columns)
        frozen = FrozenNet(net, freeze(net, cube), torch.device("cpu"))
        with torch.inference_mode():
            sides = {"plain": partial(net, cube), "ours": partial(frozen, cube)}
            seconds = interleaved(sides, rounds)
        pixels = rows * columns / 1e6
        table.append(
            {
                "scene": f"{name} {rows}×{columns}×{bands}",
                "plain Mpx/s": pixels / seconds["plain"],
                "ours Mpx/s": pixels / seconds["ours"],
                "ratio": seconds["plain"] / seconds["ours"],
            }
        )
    publish("scoring", table)


if __name__ == "__main__":
    cyclopts.run(main)
