"""Every method for images behind one interface: IMAGE_METHODS[name](images, labels, seed, ...)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.checkpoint import EVERY
from thonecls.config import TrainConfig
from thonecls.errors import ConfigError
from thonecls.images import Images, image_spec
from thonecls.images.items import ItemModel, Rows
from thonecls.images.networks import NETWORKS
from thonecls.images.training import OnEpoch, OnStep, fit_items, item_settings
from thonecls.splits import Labels
from thonecls.trees import PUExtraTreesClassifier

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
        if self.needs_prior:
            options["prior"] = prior
        if self.needs_prior and prior is None:
            raise ConfigError(
                f"{self.name} needs the class prior, the share of positives among the unlabeled "
                "images: give it as a number between 0 and 1"
            )
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
    checkpoint_every: float = EVERY,
    resume: bool = False,
    **change: Any,
) -> ItemModel:
    """Train the network that suits the images.

    labels: of `image_split`; config: all settings, or `change`: some of those of the method.
    """
    spec = image_spec(images.name)
    make = NETWORKS[spec.network]
    return fit_items(
        method,
        Rows(images.train, labels.positive),
        Rows(images.pool, labels.unlabeled),
        lambda: make(images.shape),
        config=config or item_settings(method, **{"order": spec.order, **change}),
        generator=torch.Generator().manual_seed(seed),
        mix=spec.mix,
        on_epoch=on_epoch,
        on_step=on_step,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )


def score_by_trees(
    images: Images, labels: Labels, seed: int = 0, *, prior: float, **settings: Any
) -> Scores:
    """PU extra trees on the images' bytes."""
    rows = [images.train[labels.positive], images.pool[labels.unlabeled]]
    x = np.concatenate(rows).reshape(sum(map(len, rows)), -1)
    y = np.arange(len(x)) < len(rows[0])
    forest = PUExtraTreesClassifier(prior, random_state=seed, **settings).fit(x, y)
    test = np.asarray(images.test).reshape(len(images.test), -1)
    return np.asarray(forest.predict_proba(test)[:, 1], dtype=np.float32)


_PAPER = "Zhao et al., ICCV 2023"
IMAGE_METHODS = {
    method.name: method
    for method in (
        ImageMethod("taylor", "Taylor variational loss, of order 1", _PAPER),
        ImageMethod("t-honecls", "the same, and the divergence from an EMA teacher", _PAPER),
        ImageMethod("variational", "log E_u f - E_p log f", "Chen et al., NeurIPS 2020"),
        ImageMethod("vpu", "the same, and MixUp of u with p", "Chen et al., NeurIPS 2020"),
        ImageMethod("nnpu", "non-negative PU risk", "Kiryo et al., NeurIPS 2017", needs_prior=True),
        ImageMethod("upu", "unbiased PU risk", "du Plessis et al., ICML 2015", needs_prior=True),
        ImageMethod(
            "dist-pu",
            "distance of label distributions; then entropies and MixUp of pseudo-labels",
            "Zhao Y. et al., CVPR 2022",
            needs_prior=True,
        ),
        ImageMethod(
            "p3mix-e",
            "cross-entropy of u near the boundary mixed with p, early learning regularised",
            "Li et al., ICLR 2022",
        ),
        ImageMethod("p3mix-c", "the same, sure u relabelled instead", "Li et al., ICLR 2022"),
        ImageMethod(
            "puet",
            "PU risk of extremely randomised trees, quadratic, non-negative",
            "Wilton et al., NeurIPS 2022",
            needs_prior=True,
            network=False,
        ),
        ImageMethod("bce", "cross-entropy, unlabeled as negative", "the supervised classifier"),
    )
}
