"""Methods on images: all of them learn easy ones, and the catalogue says what they need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulated import POSITIVE, bright_and_dark
from thonecls.errors import ConfigError
from thonecls.images import Images
from thonecls.methods import IMAGE_METHODS
from thonecls.methods.catalogue import as_markdown
from thonecls.methods.images import image_settings, train_images
from thonecls.metrics import evaluate
from thonecls.splits import Labels

PRIOR = 0.4


@pytest.fixture(scope="module")
def images() -> Images:
    return bright_and_dark()


@pytest.fixture(scope="module")
def labels(images: Images) -> Labels:
    positive = np.flatnonzero(np.isin(images.train_labels, POSITIVE))
    return Labels(positive[:30], np.arange(len(images.train)))


@pytest.mark.learning
@pytest.mark.parametrize("name", sorted(IMAGE_METHODS))
def test_every_method_learns_easy_images(
    images: Images, labels: Labels, name: str, seed: int
) -> None:
    options: dict[str, Any] = {"epochs": 8, "batches": 6, "rate": 1e-3}
    if name in ("bce", "imb-nnpu", "lbe"):
        options["epochs"] = 5
    if name == "ncpu":
        options["rate"] = 5e-4
    if name == "pul-cpbf":
        options |= {"epochs": 14, "rate": 5e-4}  # of which the fence takes five
    if name == "puet":
        options = {"n_estimators": 20}
    if name in ("dist-pu", "p3mix-c", "p3mix-e"):
        # P3MIX chooses partners from the tenth epoch on, and overfits soon after.
        options = {"epochs": 11, "batches": 2, "rate": 5e-4}
    scores = IMAGE_METHODS[name](images, labels, seed, prior=PRIOR, **options)
    assert scores.shape == (100,)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()
    assert np.isfinite(scores).all()
    found = evaluate(scores, np.isin(images.test_labels, POSITIVE))
    assert found.auc > 95
    if name not in ("bce", "variational", "lbe"):  # they rank; probabilities are too low so far
        assert found.accuracy > 90


def test_the_docs_list_the_catalogue() -> None:
    page = Path(__file__).parents[2] / "docs" / "images.md"
    assert as_markdown(IMAGE_METHODS) in page.read_text("utf-8"), "run benchmarks/render.py"


@pytest.mark.parametrize("name", sorted(n for n, m in IMAGE_METHODS.items() if m.needs_prior))
def test_methods_that_need_a_prior_say_so(images: Images, labels: Labels, name: str) -> None:
    with pytest.raises(ConfigError, match="needs the class prior"):
        IMAGE_METHODS[name](images, labels)


def test_the_prior_may_stand_in_the_settings(images: Images, labels: Labels) -> None:
    config = image_settings("nnpu", images.name, epochs=1, batches=1)
    given = IMAGE_METHODS["nnpu"](images, labels, prior=PRIOR, config=config)
    held = IMAGE_METHODS["nnpu"](images, labels, config=replace(config, prior=PRIOR))
    assert np.array_equal(given, held)


def test_an_unknown_method_is_refused_by_name(images: Images, labels: Labels) -> None:
    with pytest.raises(ConfigError, match="no method 'hinge'"):
        train_images("hinge", images, labels)
