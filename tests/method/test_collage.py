"""Collages: what they are cut from, how they are cut, and what is learnt from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reference import plain_cut
from thonecls.datasets import Dataset, synthetic
from thonecls.errors import LabelError, SceneError
from thonecls.method.collage import IntArray, Part, Pool, build_pool, random_scenes
from thonecls.method.config import COLLAGE, TrainConfig
from thonecls.method.data import CollageData
from thonecls.method.fit import fit
from thonecls.method.model import Model
from thonecls.method.progress import Progress
from thonecls.metrics import evaluate
from thonecls.scene import (
    ArraySource,
    BandStatistics,
    FloatArray,
    Scene,
    Source,
    as_scene,
    band_statistics,
    standardize,
)
from thonecls.splits import half_split, resampled_split

Mask = NDArray[np.bool_]
BANDS = 5


def make_pool(shapes: list[tuple[int, int]], labels: IntArray, seed: int) -> Pool:
    rng = np.random.default_rng(seed)
    parts = [
        Part(rng.normal(size=(BANDS, *shape)).astype(np.float32), rng.random(shape) > 0.2)
        for shape in shapes
    ]
    places = [np.flatnonzero(part.valid) for part in parts]
    statistics = BandStatistics(*np.ones((2, BANDS), np.float32))
    corners = np.zeros((len(parts), 2), np.int64)
    return Pool(parts, labels, np.arange(len(labels)), places, statistics, corners)


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
    blocks: dict[str, Any] = {"block": 8, "label_blocks": 3, "random_blocks": 9}
    data = CollageData.prepare(
        rng.normal(size=(6, 50, 40)),
        np.arange(2000).reshape(50, 40) % 97 == 0,
        replace(COLLAGE, **blocks, gain=0.0, components=4, device="cpu", width=0.25),
        torch.Generator().manual_seed(0),
    )
    (batch,) = data.batches(1, torch.Generator().manual_seed(0))
    cube, _, _ = data._cut(batch)
    assert cube.shape == (1, 4, 24, 32)
    assert cube.stride() == (4 * 24 * 32, 1, 4 * 32, 4)
    assert data.pool.parts[0].features.strides == (4, 4 * 4 * 40, 4 * 4)


def numbered(rows: int, columns: int) -> Scene:
    """A scene whose two bands hold row and column, so that blocks can be traced."""
    row, column = np.indices((rows, columns), dtype=np.float32)
    return as_scene(np.stack([row, column]))


def traced(pool: Pool, cube: FloatArray, pixels: IntArray) -> IntArray:
    """Where in the scene some pixels of a canvas come from: (n, 2)."""
    spread = pool.statistics.std[:, None] * cube.reshape(2, -1)[:, pixels]
    return np.asarray(np.rint(spread + pool.statistics.mean[:, None]).T, dtype=np.int64)


def pool_of(scene: Source, positive: IntArray, *, block: int = 8, components: int = 0) -> Pool:
    rng = np.random.default_rng(0)
    return build_pool(scene, positive, side=2 * block, components=components, rng=rng)


@pytest.mark.parametrize("whole", [2**21, 100], ids=["held whole", "held in windows"])
@given(rows=st.integers(3, 90), columns=st.integers(3, 90), n=st.integers(1, 12))
def test_every_positive_is_found_in_its_canvas(whole: int, rows: int, columns: int, n: int) -> None:
    rng = np.random.default_rng(n)
    positive = np.sort(rng.choice(rows * columns, min(n, rows * columns - 2), replace=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.method.collage.WHOLE", whole)
        patch.setattr("thonecls.method.collage.PLACES", 16)
        pool = pool_of(numbered(rows, columns), positive)
    assert sorted(pool.pixels) == positive.tolist()
    cut = pool.cut(np.arange(len(positive)), 5, 8, rng)
    found = traced(pool, cut.cube, cut.positive)
    assert (found[:, 0] * columns + found[:, 1]).tolist() == pool.pixels.tolist()
    assert np.isin(cut.unlabeled, np.flatnonzero(cut.fair)).all()
    at = traced(pool, cut.cube, cut.unlabeled)
    assert ((at >= 0) & (at < (rows, columns))).all()


@pytest.mark.parametrize("whole", [2**21, 100], ids=["held whole", "held in windows"])
def test_unlabeled_pixels_are_a_fair_sample_of_the_scene(
    whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all labels lie in one corner."""
    monkeypatch.setattr("thonecls.method.collage.WHOLE", whole)
    pool = pool_of(numbered(200, 160), np.array([0, 1, 161]))
    rng, seen = np.random.default_rng(1), []
    for _ in range(60):
        cut = pool.cut(np.array([0, 1, 2]), 30, 8, rng)
        seen.append(traced(pool, cut.cube, cut.unlabeled))
    at = np.concatenate(seen)
    share = np.histogram2d(at[:, 0], at[:, 1], bins=4, range=((0, 200), (0, 160)))[0] / len(at)
    assert share.min() > 0.04  # of 0.0625 each
    assert share.max() < 0.09


def test_nodata_is_never_drawn_nor_counted() -> None:
    cube = np.random.default_rng(0).normal(size=(3, 60, 50)) + 5
    cube[:, :, 20:] = np.nan
    scene = as_scene(cube, valid=np.isfinite(cube[0]))
    pool = pool_of(scene, np.array([0, 19, 49, 70]))  # the last two lie on nodata
    assert pool.pixels.tolist() == [0, 19]
    cut = pool.cut(np.array([0, 1]), 20, 16, np.random.default_rng(0))
    assert np.isfinite(cut.cube).all()
    assert (cut.cube.reshape(3, -1)[:, cut.unlabeled] != 0).any(axis=0).all()
    with pytest.raises(LabelError, match="no label lies on a valid pixel"):
        pool_of(scene, np.array([49]))


def test_a_large_scene_that_is_almost_all_nodata_is_searched_for_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("thonecls.method.collage.WHOLE", 100)
    monkeypatch.setattr("thonecls.method.collage.TRIES", 5)
    cube = np.full((2, 400, 400), -1.0)
    cube[:, 399, 397:] = [[5, 6, 7], [1, 2, 3]]
    pool = pool_of(ArraySource(cube, nodata=-1), np.array([399 * 400 + 398]))
    assert sum(map(len, pool.places)) > 100
    np.testing.assert_allclose(pool.statistics.mean, [6, 2])
    with pytest.raises(SceneError, match="no valid pixel: check its nodata value"):
        list(random_scenes(ArraySource(cube * 0 - 1, nodata=-1), 8, np.random.default_rng(0), 3))


def test_components_are_those_of_all_pixels() -> None:
    """Of z-scored bands, most spread first; a scene with fewer bands keeps them as they are."""
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(9, 3)) @ rng.normal(size=(3, 40 * 30)) + 0.01 * rng.normal(
        size=(9, 1200)
    )
    scene = as_scene(mixed.reshape(9, 40, 30))
    pool = pool_of(scene, np.array([5]), components=3)
    assert pool.parts[0].features.shape == (3, 40, 30)
    z = standardize(scene, band_statistics(scene)).reshape(9, -1)
    axes = pool.statistics.axes
    assert axes is not None
    kept = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    assert np.var(kept @ z) * 3 == pytest.approx(np.var(z) * 9, rel=1e-3)
    assert pool_of(scene, np.array([5]), components=9).statistics.axes is None


SMALL = TrainConfig(
    epochs=2,
    batches=3,
    block=8,
    label_blocks=4,
    random_blocks=8,
    components=4,
    gain=0.1,
    width=0.25,
    rate=1e-3,
    optimizer="adam",
    schedule="cosine",
    device="cpu",
)


def weights(model: Model) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for net, _ in model.networks for p in net.parameters()])


@pytest.mark.parametrize("change", [{}, {"members": 3}], ids=str)
def test_same_seed_same_bits_and_a_killed_training_goes_on_to_them(
    field_scene: Dataset, few_positives: Mask, tmp_path: Path, change: dict[str, Any]
) -> None:
    config = replace(SMALL, **change)

    def train(**options: Any) -> Model:
        generator = torch.Generator().manual_seed(3)
        return fit(field_scene.scene, few_positives, config=config, generator=generator, **options)

    whole, again = train(), train()
    assert torch.equal(weights(whole), weights(again))
    steps = 0

    def die(progress: Progress[Model]) -> None:
        nonlocal steps
        steps += 1
        if steps == 4:
            raise KeyboardInterrupt

    kept = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=kept, checkpoint_every=0, on_step=die)
    resumed = train(checkpoint=kept, resume=True)
    assert torch.equal(weights(whole), weights(resumed))
    assert resumed.threshold == whole.threshold
    assert resumed.training["history"] == whole.training["history"]


@pytest.mark.parametrize("positives", [1, 2, 5])
def test_very_few_labels_train(field_scene: Dataset, positives: int) -> None:
    mask = np.zeros(field_scene.scene.shape, dtype=bool)
    mask.flat[np.flatnonzero(field_scene.truth == 1)[:positives]] = True
    config = replace(COLLAGE, epochs=1, batches=2, width=0.25, device="cpu")
    model = fit(field_scene.scene, mask, config=config, generator=torch.Generator().manual_seed(0))
    assert model.training["positives"] == positives
    assert np.isfinite(model.score(field_scene.scene)).all()


def test_a_model_of_several_networks_is_their_mean_also_from_a_file(
    field_scene: Dataset, few_positives: Mask, generator: torch.Generator, tmp_path: Path
) -> None:
    config = replace(SMALL, members=2)
    model = fit(field_scene.scene, few_positives, config=config, generator=generator)
    assert len(model.networks) == 2
    single = [replace(model, net=net, frozen=frozen, members=()) for net, frozen in model.networks]
    mean = np.mean([one.score(field_scene.scene) for one in single], axis=0)
    np.testing.assert_allclose(model.score(field_scene.scene), mean, atol=1e-6)
    model.save(tmp_path / "model.safetensors")
    loaded = Model.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.score(field_scene.scene), model.score(field_scene.scene))
    assert loaded.threshold == model.threshold


@pytest.mark.learning
def test_learns_an_easy_scene_and_scores_it_as_it_was_trained(seed: int) -> None:
    """Probabilities of unlabeled pixels are alike in collages and in the scored scene."""
    data = synthetic(height=60, width=60, bands=12, seed=1)
    split = resampled_split(data.truth, 1, positives=40, unlabeled=400, seed=seed)
    config = replace(COLLAGE, epochs=10, width=0.25, device="cpu")
    generator = torch.Generator().manual_seed(seed)
    model = fit(data.scene, split.labels, config=config, generator=generator)
    probability = model.score(data.scene)
    assert evaluate(probability, data.truth == 1, split.test).f1 > 80  # all positive: 32
    trained = model.training["history"]["share"][-1]
    assert abs(float(probability.mean()) - trained) < 0.1


@pytest.mark.learning
def test_the_class_is_found_where_nobody_labelled(seed: int) -> None:
    """Labels from the left half alone, of a class that looks alike on both sides."""
    data = synthetic(height=60, width=80, bands=12, seed=2)
    split = half_split(data.truth, 1, positives=40, unlabeled=400, seed=2 * (seed % 2))
    config = replace(COLLAGE, epochs=10, width=0.25, device="cpu")
    generator = torch.Generator().manual_seed(seed)
    model = fit(data.scene, split.labels, config=config, generator=generator)
    assert evaluate(model.score(data.scene), data.truth == 1, split.test).f1 > 70
