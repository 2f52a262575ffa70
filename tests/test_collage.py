"""Collages: cut fast, to the same bits as when they are cut block by block."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reference import plain_cut
from thonecls.collage import IntArray, Part, Pool
from thonecls.ground import CollageGround
from thonecls.scene import BandStatistics

BANDS = 5


def make_pool(shapes: list[tuple[int, int]], labels: IntArray, seed: int) -> Pool:
    rng = np.random.default_rng(seed)
    parts = [
        Part(rng.normal(size=(BANDS, *shape)).astype(np.float32), rng.random(shape) > 0.2)
        for shape in shapes
    ]
    places = [np.flatnonzero(part.valid) for part in parts]
    statistics = BandStatistics(*np.ones((2, BANDS), np.float32))
    return Pool(parts, labels, np.arange(len(labels)), places, statistics)


@pytest.mark.parametrize("block", [8, 16, 24])
@pytest.mark.parametrize("shapes", [[(70, 45)], [(32, 32), (32, 48), (40, 32)], [(13, 50), (9, 7)]])
@pytest.mark.parametrize(("positives", "margin", "gain"), [(0, 0, 0.0), (7, 0, 0.2), (7, 3, 0.0)])
def test_a_collage_is_cut_to_the_same_bits_as_block_by_block(
    shapes: list[tuple[int, int]], block: int, positives: int, margin: int, gain: float
) -> None:
    rng = np.random.default_rng(0)
    part = rng.integers(len(shapes), size=20)
    labels = np.column_stack([part, rng.integers(np.array(shapes)[part])])
    pool = make_pool(shapes, labels, seed=1)
    for seed in range(5):
        chosen = rng.choice(len(labels), positives, replace=False)
        ours, plain = np.random.default_rng(seed), np.random.default_rng(seed)
        found = pool.cut(chosen, 20, block, ours, margin=margin, gain=gain)
        slow = plain_cut(pool, chosen, 20, block, plain, margin, gain)
        for a, b in zip(found, slow, strict=True):
            np.testing.assert_array_equal(a, b)
        assert ours.bit_generator.state == plain.bit_generator.state


def test_a_canvas_has_its_channels_last() -> None:
    rng = np.random.default_rng(0)
    ground = CollageGround.prepare(
        rng.normal(size=(6, 50, 40)),
        np.arange(2000).reshape(50, 40) % 97 == 0,
        block=8,
        label_blocks=3,
        random_blocks=9,
        gain=0.0,
        components=4,
        device=torch.device("cpu"),
        width=0.25,
        generator=torch.Generator().manual_seed(0),
    )
    (batch,) = ground.batches(1, torch.Generator().manual_seed(0))
    cube, _, _ = ground._cut(batch)
    assert cube.shape == (1, 4, 24, 32)
    assert cube.stride() == (4 * 24 * 32, 1, 4 * 32, 4)
    assert ground.pool.parts[0].features.strides == (4, 4 * 4 * 40, 4 * 4)
