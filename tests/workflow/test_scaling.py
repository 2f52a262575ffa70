"""Scenes in other units than those that a model learnt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands import run
from thonecls.datasets import Dataset
from thonecls.errors import ModelError
from thonecls.methods.spectral_model import fit_spectral
from thonecls.ratio.model import fit_ratio
from thonecls.scene import BandStatistics, Scene, band_statistics
from thonecls.workflow.scaling import find_scale, rescaled

USUAL = BandStatistics(np.linspace(500, 3000, 8, dtype=np.float32), np.full(8, 200, np.float32))


def spectra(factor: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    noise = rng.normal(1, 0.2, size=(300, 8))
    return (USUAL.mean * noise * factor).astype(np.float32)


@pytest.mark.parametrize(("factor", "wanted"), [(1, 1), (2, 1), (0.4, 1), (1e-4, 1e4), (1e4, 1e-4)])
def test_another_unit_is_seen_and_another_light_is_not(factor: float, wanted: float) -> None:
    assert find_scale(spectra(factor), USUAL) == pytest.approx(wanted)


def test_a_scale_that_is_no_unit_is_refused() -> None:
    with pytest.raises(ModelError, match=r"about (29|30).* times .* say 'force'"):
        find_scale(spectra(30), USUAL)
    bent = spectra(1) * np.logspace(0, 3, 8)
    with pytest.raises(ModelError, match="say 'force'"):
        find_scale(bent.astype(np.float32), USUAL)


def test_a_rescaled_model_maps_the_same(field_scene: Dataset, few_positives: np.ndarray) -> None:
    scene = Scene(field_scene.scene.cube + 5, field_scene.scene.valid)
    small = Scene(scene.cube / 1e4, scene.valid)
    assert find_scale(small.cube.reshape(6, -1).T, band_statistics(scene)) == pytest.approx(1e4)
    for model in (
        fit_ratio(scene, few_positives),
        fit_spectral("matched-filter", scene, few_positives),
        fit_spectral("sam", scene, few_positives),
    ):
        np.testing.assert_allclose(rescaled(model, 1e4).score(small), model.score(scene), atol=2e-3)


def test_a_map_says_that_it_was_rescaled_and_how_much_of_it_is_a_guess(
    field_scene: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cube = field_scene.scene.cube - field_scene.scene.cube.min() + 1
    np.save(tmp_path / "cube.npy", cube)
    np.save(tmp_path / "labels.npy", field_scene.truth == 1)
    np.save(tmp_path / "small.npy", cube / 1e4)
    np.save(tmp_path / "odd.npy", 37 * cube)
    command = [
        "train",
        tmp_path / "cube.npy",
        tmp_path / "labels.npy",
        "--method",
        "matched-filter",
    ]
    assert run(*command, "--out", tmp_path / "run", "--json") == 0
    capsys.readouterr()
    again = ["map", tmp_path / "run", tmp_path / "small.npy", "--out", tmp_path / "map", "--json"]
    assert run(*again) == 0
    summary = json.loads(capsys.readouterr().out)
    assert "multiplied by 10000" in " ".join(summary["notes"])
    assert summary["novel_share"] < 0.2
    one, other = (np.load(tmp_path / name / "map.npy") for name in ("run", "map"))
    assert (one == other).mean() > 0.99
    odd = ["map", tmp_path / "run", tmp_path / "odd.npy", "--out", tmp_path / "odd", "--json"]
    assert run(*odd) == 2
    assert "say --force" in json.loads(capsys.readouterr().out)["error"]
    assert run(*odd, "--force") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["novel_share"] > 0.9
    assert "the map is a guess" in summary["warning"]
