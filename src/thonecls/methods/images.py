"""Every method for images behind one interface: IMAGE_METHODS[name](images, labels, seed, ...)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.images import Images, image_spec
from thonecls.images.data import CHUNK, ItemModel, Rows
from thonecls.images.networks import NETWORKS
from thonecls.images.trees import PUExtraTreesClassifier
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig
from thonecls.methods.items import OnEpoch, OnStep, fit_items, item_settings
from thonecls.splits import Labels

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class ImageMethod:
    """A way to tell positive images from others; call it with images, labels and a seed.

    The result is the probability of each test image, (n,) float32 in [0, 1].
    needs_prior: whether it must be told the share of positives among the unlabeled.
    """

    name: str
    minimises: str
    paper: str
    constants: str = ""
    needs_prior: bool = False
    network: bool = True

    def __call__(
        self,
        images: Images,
        labels: Labels,
        seed: int = 0,
        *,
        prior: float | None = None,
        **options: Any,
    ) -> Scores:
        config: TrainConfig | None = options.get("config")
        if prior is None and config is not None:
            prior = config.prior
        if self.needs_prior and prior is None:
            raise ConfigError(
                f"{self.name} needs the class prior, the share of positives among the unlabeled "
                "images: give it as a number between 0 and 1"
            )
        if self.needs_prior and config is not None:
            options["config"] = replace(config, prior=prior)
        elif self.needs_prior:
            options["prior"] = prior
        if not self.network:
            return score_by_trees(images, labels, seed, **options)
        return train_images(self.name, images, labels, seed, **options).score(images.test)


def train_images(
    method: str,
    images: Images,
    labels: Labels,
    seed: int = 0,
    *,
    config: TrainConfig | None = None,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    resume: bool = False,
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
        on_epoch=on_epoch,
        on_step=on_step,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )


def image_settings(method: str, dataset: str, **change: Any) -> TrainConfig:
    """The settings of a method on a dataset, as published; `change` overrides them.

    Of a method without a network only the number of unlabeled images matters.
    """
    spec = image_spec(dataset)
    own: dict[str, Any] = {"unlabeled": spec.drawn}
    if method in ("taylor", "t-honecls"):
        own["order"] = spec.order
    if method == "vpu":
        own["rate"] = spec.vpu_rate
    trees = method in IMAGE_METHODS and not IMAGE_METHODS[method].network
    return item_settings("bce" if trees else method, **{**own, **change})


def score_by_trees(
    images: Images, labels: Labels, seed: int = 0, *, prior: float, **settings: Any
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


_OWN = "Zhao 2023"
_CHEN = "Chen 2020"
_LI = "Li 2022"
IMAGE_METHODS = {
    method.name: method
    for method in (
        ImageMethod("taylor", "Taylor variational loss", _OWN, "order 1, on STL-10 3"),
        ImageMethod(
            "t-honecls", "the same + KL to an EMA teacher", _OWN, "order as above, β 0.5, α 0.99"
        ),
        ImageMethod("variational", "variational loss alone", _CHEN),
        ImageMethod(
            "vpu",
            "the same + MixUp of images; epoch by held-out loss; probability over its maximum",
            _CHEN,
            "weight 0.03 on CIFAR-10, else 0.3, Beta(0.3, 0.3), 10 % held out",
        ),
        ImageMethod(
            "nnpu", "non-negative PU risk", "Kiryo 2017", "sigmoid, β 0, γ 1", needs_prior=True
        ),
        ImageMethod("upu", "unbiased PU risk", "du Plessis 2015", "sigmoid", needs_prior=True),
        ImageMethod(
            "dist-pu",
            "distance of label distributions; then also entropies and MixUp of pseudo-labels",
            "Zhao 2022 (Dist-PU)",
            "two phases of 60 epochs, batches of 256, Beta(6, 6)",
            needs_prior=True,
        ),
        ImageMethod(
            "p3mix-e",
            "cross-entropy, u near the boundary mixed with p near it, early learning regularised",
            _LI,
            "200 epochs, bound 0.85, pool 100 from epoch 10",
        ),
        ImageMethod(
            "p3mix-c",
            "the same, sure u relabelled instead",
            _LI,
            "200 epochs, bound 0.8, pool 100 from epoch 10",
        ),
        ImageMethod(
            "puet",
            "PU risk of extremely randomised trees",
            "Wilton 2022",
            "100 trees, quadratic, non-negative",
            needs_prior=True,
            network=False,
        ),
        ImageMethod("bce", "cross-entropy, unlabeled as negatives", "supervised classifier"),
    )
}


def as_markdown() -> str:
    """The catalogue as a table: a card for each method."""
    lines = ["| method | minimises | prior | paper | constants |", "|---|---|---|---|---|"]
    for name, method in IMAGE_METHODS.items():
        prior = "needed" if method.needs_prior else ""
        cells = (f"`{name}`", method.minimises, prior, method.paper, method.constants)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
