"""Networks on single spectra: priors, schedules, and models that learn again when loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thonecls.datasets import synthetic
from thonecls.errors import ConfigError, ModelError
from thonecls.methods import METHODS, spectral_networks
from thonecls.methods.classifier import PUClassifier
from thonecls.methods.scenes import Known
from thonecls.methods.spectral import NETWORKS, SPECTRAL, Samples
from thonecls.methods.spectral_model import SpectralModel, fit_spectral, load_model
from thonecls.methods.spectral_networks import SETTINGS, fit_network
from thonecls.scene import BoolArray
from thonecls.splits import Labels

DATA = synthetic(height=30, width=32, bands=6, separation=2.0, seed=5)
POSITIVES = np.flatnonzero(DATA.truth == 1)[::4]
LABELS = Labels(POSITIVES, np.arange(0, DATA.truth.size, 3))
QUICK = {"epochs": 3, "batches": 5}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK.items():
        monkeypatch.setitem(SETTINGS, name, value)


@pytest.fixture(scope="module")
def samples() -> Samples:
    return SPECTRAL["bce-spectra"].learn(DATA.scene, LABELS)


@pytest.fixture(scope="module")
def mask() -> BoolArray:
    found = np.zeros(DATA.truth.shape, dtype=bool)
    found.flat[POSITIVES] = True
    return found


def test_a_seed_gives_the_same_bits_and_another_one_others(samples: Samples) -> None:
    one, again, other = (
        fit_network("taylor", samples, seed).score(samples.unlabeled) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(again, one)
    assert np.abs(other - one).max() > 1e-3


@pytest.mark.learning
@pytest.mark.parametrize("name", ["nnpu-spectra", "upu-spectra", "dist-pu-spectra", "puet-spectra"])
def test_a_larger_prior_gives_a_larger_class(name: str, samples: Samples, seed: int) -> None:
    if name == "puet-spectra":
        pytest.importorskip("numba")
    small, large = (
        SPECTRAL[name].fit(samples, seed, prior=prior).score(samples.unlabeled).mean()
        for prior in (0.05, 0.8)
    )
    assert large > small + 0.1


def test_what_is_more_than_a_loss_runs_its_schedule_and_a_loss_stops_by_samples_held_out(
    samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, dict[str, Any]] = {}

    class Heard(PUClassifier):
        def __init__(self, loss: str, **settings: Any) -> None:
            asked[loss] = settings
            super().__init__(loss, **{**settings, "epochs": 1, "batches": 1})

    monkeypatch.setattr(spectral_networks, "PUClassifier", Heard)
    monkeypatch.setitem(SETTINGS, "epochs", 20)
    for loss in NETWORKS:
        fit_network(loss, samples, prior=0.3)
    whole = {loss for loss, settings in asked.items() if not settings["early_stopping"]}
    assert whole == {"dist-pu", "ncpu", "lbe", "pul-cpbf", "p3mix-e"}
    epochs = {loss: settings["epochs"] for loss, settings in asked.items()}
    assert epochs == {**dict.fromkeys(NETWORKS, 20), "dist-pu": 10}


def test_a_loss_that_there_is_not_is_refused(samples: Samples) -> None:
    with pytest.raises(ConfigError, match="there is no method 'hinge'"):
        fit_network("hinge", samples)


def test_a_model_keeps_its_prior_and_learns_the_same_again(mask: BoolArray, tmp_path: Path) -> None:
    one, other = (
        fit_spectral("upu-spectra", DATA.scene, mask, unlabeled=300, prior=prior)
        for prior in (0.1, 0.6)
    )
    assert np.abs(one.score(DATA.scene) - other.score(DATA.scene)).max() > 0.01
    one.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert again.training["config"]["prior"] == 0.1
    np.testing.assert_array_equal(again.score(DATA.scene), one.score(DATA.scene))
    unlabeled = {"unlabeled": one.training["config"]["unlabeled"]}
    replace(one, training={**one.training, "config": unlabeled}).save(
        tmp_path / "without.safetensors"
    )
    with pytest.raises(ModelError, match="lacks the class prior: train it again"):
        SpectralModel.load(tmp_path / "without.safetensors")


@pytest.mark.parametrize("name", [n for n in SPECTRAL if METHODS[n].needs_prior])
def test_a_model_without_the_prior_that_it_needs_is_refused(name: str, mask: BoolArray) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs the class prior"):
        METHODS[name].fit(DATA.scene, mask, Known())


@pytest.mark.parametrize("name", ["bce-spectra", "puet-spectra", "isolation-forest"])
def test_a_seed_may_be_larger_than_scikit_learn_takes(
    name: str, mask: BoolArray, tmp_path: Path
) -> None:
    if name == "puet-spectra":
        pytest.importorskip("numba")
    prior = 0.3 if METHODS[name].needs_prior else None
    model = fit_spectral(name, DATA.scene, mask, seed=2**40, prior=prior)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model").score(DATA.scene)
    np.testing.assert_array_equal(again, model.score(DATA.scene))
