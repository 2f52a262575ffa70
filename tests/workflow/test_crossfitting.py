"""Labels by models that have not seen them, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest

from thonecls.datasets import synthetic
from thonecls.method.model import Scorer
from thonecls.methods.spectral_model import SpectralModel, fit_spectral, thinned
from thonecls.ratio.model import crossfit_ratio
from thonecls.scene import BoolArray
from thonecls.workflow.crossfit import crossfit, score_pixels, second_opinions

DATA = synthetic(height=70, width=60, bands=8, fields=30, separation=1.5, seed=4)


def positives(count: int = 40, where: BoolArray | None = None) -> BoolArray:
    allowed = (DATA.truth == 1) & (True if where is None else where)
    mask = np.zeros(DATA.truth.shape, dtype=bool)
    rng = np.random.default_rng(1)
    mask.flat[rng.choice(np.flatnonzero(allowed), count, replace=False)] = True
    return mask


def test_pixels_score_as_in_the_whole_map() -> None:
    mask = positives()
    model = fit_spectral("matched-filter", DATA.scene, mask)
    pixels = np.flatnonzero(mask)
    found = score_pixels(Scorer([model]), DATA.scene, pixels)
    np.testing.assert_allclose(found, model.score(DATA.scene).flat[pixels], atol=1e-6)


def test_every_label_is_scored_by_a_model_that_has_not_seen_it() -> None:
    mask = positives()
    seen: list[BoolArray] = []

    def fit(some: BoolArray, number: int) -> SpectralModel:
        assert number == len(seen)
        seen.append(some)
        return fit_spectral("matched-filter", DATA.scene, some)

    found = crossfit(fit, DATA.scene, mask, folds=3, seed=0)
    assert found.pixels.tolist() == np.flatnonzero(mask).tolist()
    assert np.isfinite(found.probability).all()
    assert len(seen) == 3
    for number, some in enumerate(seen):
        assert not some.flat[found.pixels[found.fold == number]].any()
        assert (mask | ~some).all()


@pytest.mark.learning
def test_labels_left_out_of_the_ratio_are_found_as_the_class_is(seed: int) -> None:
    data = synthetic(height=96, width=96, fields=60, separation=1.0, seed=seed)
    mask = np.zeros(data.truth.shape, dtype=bool)
    pixels = np.flatnonzero(data.truth == 1)
    mask.flat[np.random.default_rng(seed).choice(pixels, 80, replace=False)] = True
    model, left_out = crossfit_ratio(data.scene, mask, seed=seed, coverage="all", folds=3)
    others = (data.truth == 1) & ~mask
    truth = (model.score(data.scene)[others] > 0.5).mean()
    assert left_out.pixels.tolist() == np.flatnonzero(mask).tolist()
    assert (left_out.probability > 0.5).mean() == pytest.approx(truth, abs=0.15)


def test_labels_of_one_place_leave_nothing_to_learn_from() -> None:
    mask = np.zeros(DATA.truth.shape, dtype=bool)
    mask[3:6, 3:6] = True
    _, left_out = crossfit_ratio(DATA.scene, mask, folds=3)
    assert np.isnan(left_out.probability).all()


def test_a_second_opinion_of_thousands_of_labels_takes_no_longer() -> None:
    mask = DATA.truth == 1
    assert mask.sum() > 600
    assert thinned(mask, 500, 0).sum() == 500
    assert (mask | ~thinned(mask, 500, 0)).all()
    assert thinned(mask, 5000, 0) is mask
    found = second_opinions(DATA.scene, mask, DATA.scene, seed=0, but="density-ratio")
    assert list(found) == ["matched-filter", "biased-svm"]


def test_second_opinions_leave_out_the_method_itself_and_what_needs_more_labels() -> None:
    found = second_opinions(DATA.scene, positives(), DATA.scene, seed=0, but="biased-svm")
    assert list(found) == ["matched-filter"]
    few = second_opinions(DATA.scene, positives(3), DATA.scene, seed=0, but="density-ratio")
    assert list(few) == ["matched-filter"]
    assert few["matched-filter"].shape == DATA.truth.shape
