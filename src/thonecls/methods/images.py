"""Methods on images: networks that suit them, and trees."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.images import Images, image_spec
from thonecls.images.data import CHUNK, ItemModel, Rows
from thonecls.images.networks import NETWORKS
from thonecls.images.trees import PUExtraTreesClassifier
from thonecls.method.config import TrainConfig
from thonecls.method.progress import Control
from thonecls.methods.image_training import fit_items, item_settings
from thonecls.methods.method import Method, Scored, Trial, load
from thonecls.splits import Labels

Scores = NDArray[np.float32]


def score_images(
    method: Method,
    images: Images,
    labels: Labels,
    seed: int = 0,
    *,
    prior: float | None = None,
    **options: Any,
) -> Scores:
    """The probability of each test image by a method: (n,) float32 in [0, 1]."""
    config: TrainConfig | None = options.get("config")
    if prior is None and config is not None:
        prior = config.prior
    if method.needs_prior and prior is None:
        raise ConfigError(
            f"{method.name} needs the class prior, the share of positives among the unlabeled "
            "images: give it as a number between 0 and 1"
        )
    if method.needs_prior and config is not None:
        options["config"] = replace(config, prior=prior)
    elif method.needs_prior:
        options["prior"] = prior
    scores: Scores = load(method.score)(method, images, labels, seed, **options)
    return scores


def score_by_network(
    method: Method, images: Images, labels: Labels, seed: int = 0, **options: Any
) -> Scores:
    """Train a network and score the test images with it."""
    return train_images(method.name, images, labels, seed, **options).score(images.test)


def measure_network(method: Method, trial: Trial) -> Scored:
    """The same with all settings and checkpoints, and how it went."""
    given = trial.data, trial.labels, trial.seed
    model = train_images(method.name, *given, config=trial.config, control=trial.control)
    seconds, history = (model.training[name] for name in ("seconds", "history"))
    scores = model.score(trial.data.test)
    return Scored(scores, seconds, history=history, config=trial.config)


def measure_trees(method: Method, trial: Trial) -> Scored:
    """Trees grow at once, and take the class prior alone from the settings."""
    assert trial.config.prior is not None
    began = time.perf_counter()
    given = trial.data, trial.labels, trial.seed
    scores = score_by_trees(method, *given, prior=trial.config.prior)
    return Scored(scores, round(time.perf_counter() - began, 3))


def train_images(
    method: str,
    images: Images,
    labels: Labels,
    seed: int = 0,
    *,
    config: TrainConfig | None = None,
    control: Control[ItemModel] | None = None,
    **change: Any,
) -> ItemModel:
    """Train the network that suits the images.

    labels: of `image_split`; config: all settings, or `change`: some of those of the method.
    """
    if config is not None and change:
        raise ConfigError(f"give config, or changes of it ({', '.join(change)}), but not both")
    spec = image_spec(images.name)
    make = NETWORKS[spec.network]
    return fit_items(
        method,
        Rows(images.train, labels.positive),
        Rows(images.pool, labels.unlabeled),
        lambda: make(images.shape),
        config=config or image_settings(method, images.name, **change),
        generator=torch.Generator().manual_seed(seed),
        mix=spec.mix,
        control=control,
    )


def network_settings(method: Method, dataset: str, **change: Any) -> TrainConfig:
    """The settings of a network on a dataset."""
    return image_settings(method.name, dataset, **change)


def tree_settings(_: Method, dataset: str, **change: Any) -> TrainConfig:
    """Of a method without a network only the number of unlabeled images and the prior matter."""
    return image_settings("bce", dataset, **change)


def image_settings(method: str, dataset: str, **change: Any) -> TrainConfig:
    """The settings of a method on a dataset, as published; `change` overrides them."""
    spec = image_spec(dataset)
    own: dict[str, Any] = {"unlabeled": spec.drawn}
    if spec.rate is not None:
        own["rate"] = spec.rate
    if method in ("taylor", "t-honecls", "t-honecls-views"):
        own["order"] = spec.order
    if method == "vpu":
        own["rate"] = spec.vpu_rate
    return item_settings(method, **{**own, **change})


def score_by_trees(
    _: Method, images: Images, labels: Labels, seed: int = 0, *, prior: float, **settings: Any
) -> Scores:
    """PU extra trees on the images' bytes."""
    count = len(labels.positive)
    x = np.empty((count + len(labels.unlabeled), int(np.prod(images.shape))), dtype=np.uint8)
    for part, places, into in (
        (images.train, labels.positive, x[:count]),
        (images.pool, labels.unlabeled, x[count:]),
    ):
        for start in range(0, len(places), CHUNK):  # the images may lie on disk
            taken = part[places[start : start + CHUNK]]
            into[start : start + CHUNK] = taken.reshape(len(taken), -1)
    y = np.arange(len(x)) < count
    forest = PUExtraTreesClassifier(prior, random_state=seed, **settings).fit(x, y)
    test = np.asarray(images.test).reshape(len(images.test), -1)
    return np.asarray(forest.predict_proba(test)[:, 1], dtype=np.float32)
