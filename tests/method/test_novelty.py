"""What a model calls new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from thonecls.datasets import Dataset
from thonecls.method.config import FAST
from thonecls.method.fit import fit
from thonecls.method.model import Model, Scorer
from thonecls.method.novelty import fit_novelty
from thonecls.scene import band_statistics, standardize

TINY = replace(FAST, epochs=1, batches=2, unlabeled=60, width=0.25)


def spectra(count: int, seed: int = 0) -> np.ndarray:
    """Spectra of 20 bands that vary in three directions, and a little noise."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(7).normal(size=(3, 20))
    return (rng.normal(size=(count, 3)) @ mixing + 0.05 * rng.normal(size=(count, 20))).astype(
        np.float32
    )


def test_the_scene_itself_is_usual_and_others_are_not() -> None:
    novelty = fit_novelty(spectra(4000))
    usual = novelty.score(spectra(4000, seed=1).T[:, None])
    assert (usual > 1).mean() < 0.01
    far = novelty.score(10 * spectra(200, seed=2).T[:, None])
    assert (far > 1).mean() > 0.9
    # Of the usual size, but not in the directions in which the scene varies.
    rng = np.random.default_rng(3)
    strange = rng.normal(size=(20, 1, 200)).astype(np.float32)
    assert (novelty.score(strange) > 1).all()


def test_constant_bands_do_not_divide_by_zero() -> None:
    flat = np.zeros((50, 4), dtype=np.float32)
    assert np.isfinite(fit_novelty(flat).score(np.zeros((4, 2, 2), dtype=np.float32))).all()


def _model(data: Dataset, seed: int) -> Model:
    generator = torch.Generator().manual_seed(seed)
    return fit(data.scene, data.truth == 1, config=TINY, generator=generator)


def test_a_model_keeps_what_is_usual_and_its_wavelengths(
    field_scene: Dataset, tmp_path: Path
) -> None:
    model = _model(field_scene, 0)
    cube = standardize(field_scene.scene, band_statistics(field_scene.scene))
    known = replace(
        model,
        novelty=fit_novelty(cube.reshape(len(cube), -1).T),
        wavelengths=tuple(400.0 + 10 * i for i in range(model.bands)),
    )
    known.save(tmp_path / "m.safetensors")
    again = Model.load(tmp_path / "m.safetensors")
    assert again.wavelengths == known.wavelengths
    scene = field_scene.scene
    everything = slice(0, scene.shape[0]), slice(0, scene.shape[1])
    one, two = (Scorer([m]).score(scene, *everything) for m in (known, again))
    assert one.novelty is not None
    assert two.novelty is not None
    np.testing.assert_array_equal(one.novelty, two.novelty)
    assert (one.novelty < 1.5).all()
    assert one.spread is None


def test_an_ensemble_gives_mean_and_spread(field_scene: Dataset) -> None:
    models = [_model(field_scene, seed) for seed in range(3)]
    scorer = Scorer(models)
    scene = field_scene.scene
    single = np.stack([m.score(scene) for m in models])
    for rows, columns in scorer.windows(scene.shape, tile=16):
        part = scorer.score(scene, rows, columns)
        assert part.spread is not None
        assert part.novelty is None
        np.testing.assert_allclose(part.probability, single.mean(0)[rows, columns], atol=1e-5)
        np.testing.assert_allclose(part.spread, single.std(0)[rows, columns], atol=1e-5)
