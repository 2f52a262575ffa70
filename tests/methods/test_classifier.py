"""The classifier of tables and images: it learns, and keeps scikit-learn's rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

from simulated import POSITIVE, bright_and_dark
from thonecls.errors import ConfigError
from thonecls.images import Images
from thonecls.images.networks import table_net
from thonecls.methods.classifier import PUClassifier


@pytest.fixture(scope="module")
def images() -> Images:
    return bright_and_dark()


@pytest.mark.learning
@pytest.mark.parametrize("labelling", [(1, 0), (1, -1), (True, False), ("yes", "no")])
def test_the_classifier_learns_from_any_two_labels(labelling: tuple[Any, Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.arange(300) < 120
    x = rng.normal(np.where(truth, 300.0, 100.0)[:, None], 60, (300, 3))
    y = np.where(np.arange(300) < 40, *labelling)
    classifier = PUClassifier(epochs=2, random_state=seed).fit(x, y)
    predicted = classifier.predict(x)
    assert set(predicted) == set(labelling)
    assert ((predicted == labelling[0]) == truth).mean() > 0.9
    assert classifier.predict_proba(x).shape == (300, 2)
    np.testing.assert_allclose(classifier.predict_proba(x).sum(1), 1)


@pytest.mark.learning
def test_the_classifier_takes_images(images: Images, seed: int) -> None:
    y = np.zeros(len(images.train), dtype=int)
    y[np.flatnonzero(np.isin(images.train_labels, POSITIVE))[:30]] = 1
    classifier = PUClassifier(network="cifar", epochs=4, batches=8, random_state=seed)
    predicted = classifier.fit(images.train, y).predict(images.test)
    assert (predicted == np.isin(images.test_labels, POSITIVE)).mean() > 0.9


def test_the_classifier_refuses_other_samples_than_it_learnt(images: Images) -> None:
    y = np.arange(len(images.train)) < 40
    classifier = PUClassifier(network="cifar", epochs=1, batches=1).fit(images.train, y)
    with pytest.raises(ValueError, match="images of bytes were learnt"):
        classifier.predict(images.test.astype(np.float32))
    with pytest.raises(ValueError, match="were learnt"):
        classifier.predict(images.test[:, :, :6])


@pytest.mark.learning
def test_a_table_of_bytes_is_standardised_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.arange(300) < 120
    x = rng.poisson(np.where(truth, 9, 2)[:, None], (300, 4)).astype(np.uint8)
    y = np.arange(300) < 40
    of_bytes, of_floats = (
        PUClassifier(epochs=2, random_state=seed).fit(values, y).predict_proba(values)
        for values in (x, x.astype(np.float32))
    )
    np.testing.assert_array_equal(of_bytes, of_floats)
    assert ((of_bytes[:, 1] > 0.5) == truth).mean() > 0.85


def test_the_classifier_takes_ones_own_network() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    own = PUClassifier(network=partial(table_net, outputs=2), epochs=1)
    net = own.fit(x, np.arange(50) < 9).model_.net
    assert list(net.parameters())[-1].shape == (2,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": "resnet"}, "'network' must be one of cifar, stl, table"),
        ({"network": lambda shape: torch.nn.Linear(shape[0], 1)}, "must make a .*StagedNet"),
        ({"loss": "hinge"}, "there is no method 'hinge'"),
        ({"batch_size": 0}, "'batch_size' must be a whole number"),
        ({"epochs": 0}, "'epochs' must be a whole number"),
        ({"batch_size": 2.5}, "'batch_size' must be a whole number"),
        ({"order": 2.0}, "'order' must be a whole number"),
        ({"rate": "a"}, "'rate' must be a number above 0"),
        ({"early_stopping": 3}, "'early_stopping' must be True or False"),
        ({"validation_fraction": 1.0}, "'validation_fraction' must be a number in"),
        ({"n_iter_no_change": 0}, "'n_iter_no_change' must be a whole number"),
        ({"prior": "x"}, "'prior' must be the share"),
        ({"network": ["a"]}, "'network' must be one of"),
        ({"loss": "nnpu"}, "needs the class prior"),
    ],
)
def test_settings_of_the_classifier_out_of_range(change: dict[str, Any], message: str) -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ConfigError, match=message):
        PUClassifier(**change).fit(x, np.arange(50) < 9)


@pytest.mark.learning
def test_large_numbers_that_differ_little_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(2, 1, (200, 2)), rng.normal(-2, 1, (200, 2))])
    y = np.arange(400) < 60
    found = [
        PUClassifier(epochs=3, random_state=seed).fit(x + far, y).predict(x + far)
        for far in (0, 2e9)
    ]
    assert (found[0] == found[1]).mean() > 0.99
    assert found[1][:200].mean() > 0.9
    with pytest.raises(ValueError, match="so large"):
        PUClassifier(epochs=1).fit(x * 1e300, y)


@pytest.mark.learning
def test_the_classifier_stops_before_it_memorises_its_samples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.arange(1000) < 300
    x = rng.normal(np.where(truth, 0.6, -0.6)[:, None], 1.0, (1000, 20))
    classifier = PUClassifier(random_state=seed).fit(x, np.arange(1000) < 100)
    found, rest = classifier.predict(x)[100:], truth[100:]
    assert len(classifier.model_.training["history"]["loss"]) < 20
    # Mean of five seeds 0.93; after all 20 epochs, without early stopping, 0.69.
    assert 2 * (found & rest).sum() / (found.sum() + rest.sum()) > 0.75


def test_the_classifier_holds_nothing_out_of_few_samples() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    found = [
        PUClassifier(epochs=2, batches=3, early_stopping=early, random_state=0).fit(x, y)
        for y in (np.arange(60) < 9, np.arange(60) < 10)
        for early in (True, False)
    ]
    few, all_of_few, enough, all_of_enough = (next(c.model_.net.parameters()) for c in found)
    assert torch.equal(few, all_of_few)
    assert not torch.equal(enough, all_of_enough)
    assert [c.model_.training["positives"] for c in found] == [9, 9, 8, 10]


def test_a_warm_up_takes_its_share_of_the_epochs() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    found = [
        PUClassifier(loss, prior=0.3, epochs=5, batches=3, random_state=0).fit(x, np.arange(60) < 9)
        for loss in ("oc", "oc-warmup")
    ]
    plain, warmed = (next(one.model_.net.parameters()) for one in found)
    assert not torch.equal(plain, warmed)


@parametrize_with_checks([PUClassifier(epochs=6, batches=10)])  # type: ignore[untyped-decorator]
def test_the_classifier_is_a_scikit_learn_estimator(
    estimator: PUClassifier, check: Callable[[Any], None]
) -> None:
    check(estimator)
