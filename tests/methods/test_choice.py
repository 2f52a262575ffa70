"""The choice among methods by labels left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from thonecls.datasets import synthetic, write_example
from thonecls.io.options import LabelOptions
from thonecls.method.config import FAST
from thonecls.methods import choice
from thonecls.methods.choice import CANDIDATES, choose, found_left_out
from thonecls.methods.spectral_model import SpectralModel, load_model
from thonecls.ratio.model import RatioModel, crossfit_ratio
from thonecls.splits import Coverage
from thonecls.workflow import TrainOptions, map_scene, train_scene

DATA = synthetic(height=48, width=48, bands=8, separation=3.0, fields=20, seed=1)
MASK = np.zeros(DATA.truth.shape, dtype=bool)
MASK.flat[np.random.default_rng(0).choice(np.flatnonzero(DATA.truth == 1), 40, replace=False)] = 1
pytestmark = pytest.mark.usefixtures("white_pictures")


@pytest.mark.parametrize("method", ["matched-filter", "isolation-forest"])
def test_labels_left_out_of_an_easy_class_are_found(method: str) -> None:
    found = found_left_out(method, DATA.scene, MASK)
    assert found is not None
    assert found > 80
    inside = np.zeros_like(MASK)
    inside[:12, :12] = True
    pixels = np.flatnonzero(inside)[::9]
    together = np.zeros_like(MASK)
    together.flat[pixels] = True
    assert found_left_out(method, DATA.scene, together) is None  # one place: none to learn from


def test_the_ratio_is_taken_unless_another_is_clearly_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratio, _ = crossfit_ratio(DATA.scene, MASK, folds=3)
    told = {"seed": 0, "unlabeled": 400}
    chosen = choose(ratio, DATA.scene, MASK, **told)
    assert isinstance(chosen, RatioModel)
    found = chosen.training["choice"]["found"]
    assert {"density-ratio", "matched-filter", "biased-svm"} <= found.keys()
    assert found.keys() <= {"density-ratio", *CANDIDATES}
    assert chosen.training["choice"]["words"].startswith("auto took density-ratio: no other")
    np.testing.assert_array_equal(chosen.score(DATA.scene), ratio.score(DATA.scene))
    monkeypatch.setattr(choice, "CANDIDATES", {"matched-filter": ""})
    worse = replace(ratio, training={**ratio.training, "pauc_left_out": 60.0})
    other = choose(worse, DATA.scene, MASK, **told)
    assert isinstance(other, SpectralModel)
    assert other.method == "matched-filter"
    assert other.training["choice"]["words"].startswith("auto took matched-filter: it finds")
    # Whatever the ratio found labels to cover, others are judged by the same folds.
    coverages: tuple[Coverage, ...] = ("all", "part")
    for coverage in coverages:
        judged = replace(ratio, training={**ratio.training, "coverage": coverage})
        alike = found_left_out("matched-filter", DATA.scene, MASK, coverage=coverage, **told)
        assert alike is not None
        compared = choose(judged, DATA.scene, MASK, **told).training["choice"]["found"]
        assert compared["matched-filter"] == round(alike, 1)


def test_a_run_tells_what_was_taken_and_maps_other_scenes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "CANDIDATES", {"matched-filter": ""})
    files = write_example(tmp_path)
    lantana = LabelOptions(where="species = 'lantana'")
    options = TrainOptions(method="auto", label="lantana")
    out = tmp_path / "run"
    summary = train_scene(
        files.scene, files.labels, out, config=FAST, options=options, label_options=lantana
    ).as_dict()
    assert summary["method"] == "auto"
    assert any(note.startswith("auto took ") for note in summary["notes"])
    assert "choice" in load_model(out / "model.safetensors").training
    mapped = map_scene(out, files.scene, tmp_path / "map").as_dict()
    assert mapped["mapped_share"] == pytest.approx(summary["mapped_share"])
