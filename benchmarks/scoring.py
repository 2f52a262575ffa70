"""Scoring a scene, the plain whole-scene forward against the frozen, folded network.

    python benchmarks/scoring.py [--rounds 5]

The plain side is the network's own forward, on a cube padded with zeros to a multiple of 16 as the
authors do, and without that padding.
"""

from __future__ import annotations

from functools import partial

import cyclopts
import torch
from torch.nn.functional import pad

from measure import interleaved, publish
from thonecls.method.frozen import FrozenNet, freeze
from thonecls.method.net import FreeOCNet

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
            padded = pad(cube, (0, -columns % 16, 0, -rows % 16))
            sides = {
                "plain": partial(net, padded),
                "unpadded": partial(net, cube),
                "ours": partial(frozen, cube),
            }
            seconds = interleaved(sides, rounds)
        pixels = rows * columns / 1e6
        table.append(
            {
                "scene": f"{name} {rows}×{columns}×{bands}",
                "plain Mpx/s": pixels / seconds["plain"],
                "ours Mpx/s": pixels / seconds["ours"],
                "ratio": seconds["plain"] / seconds["ours"],
                "ratio, unpadded": seconds["unpadded"] / seconds["ours"],
            }
        )
    publish("scoring", table)


if __name__ == "__main__":
    cyclopts.run(main)
