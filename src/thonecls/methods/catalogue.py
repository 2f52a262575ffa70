"""The literal catalogue: every method, on scenes and on images, with its settings and its card.

METHODS[name](scene, labels, seed, ...) gives a score map. The cards can be read without torch or
scikit-learn: a method loads what it runs when it is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from thonecls.errors import ConfigError
from thonecls.method.config import TrainConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from thonecls.splits import Labels

Kind = Literal["the scene", "windows about a pixel", "single spectra", "images"]


@dataclass(frozen=True)
class Method:
    """A way to tell one class from the rest; call it with a scene or images, labels and a seed.

    On a scene the result is an (H, W) float32 map in [0, 1], NaN on nodata, and above 0.5 where the
    class is; on images the probability of each test image, (n,).
    on: what it looks at; needs_prior: whether it must be told the share of the class; extra: what
    to install for it; settings: of a network, what it sets in the one training loop, None where no
    network is trained; negatives: whether it has a use for places where the class is not;
    takes_apart: whether it wants them by themselves, not among the unlabeled; coverage: whether it
    asks where labels come from.
    """

    name: str
    on: Kind
    minimises: str
    paper: str
    constants: str = ""
    needs_prior: bool = False
    extra: str = ""
    settings: Mapping[str, Any] | None = None
    negatives: bool = False
    coverage: bool = False
    takes_apart: bool = False

    @property
    def network(self) -> bool:
        """Whether it trains a network: in many steps, with checkpoints, on a GPU where there is."""
        return self.settings is not None

    def configure(self, base: TrainConfig, **change: Any) -> TrainConfig:
        """The settings on top of a preset; `change` overrides both."""
        return replace(base, **{**(self.settings or {}), **change})

    def card(self) -> dict[str, Any]:
        """What `thonecls methods --json` tells of it."""
        told = ("minimises", "paper", "constants", "needs_prior", "network")
        own = ("name", *told) if self.on == "images" else (*told, "extra", "on")
        return {name: getattr(self, name) for name in own}

    def __call__(
        self, data: Any, labels: Labels, seed: int = 0, **options: Any
    ) -> NDArray[np.float32]:
        """data: a `Scene` or `Images`."""
        if self.on == "images":
            from thonecls.methods.images import score_images

            return score_images(self, data, labels, seed, **options)
        from thonecls.methods.scenes import score_scene

        return score_scene(self, data, labels, seed, **options)


# The baselines share the paper's schedule; they are single networks, without clipping.
ALONE: dict[str, Any] = {"beta": 0.0, "ema": False, "clip": 1e9, "members": 0, "patience": 0}


def _network(
    name: str, own: dict[str, Any], minimises: str, paper: str, constants: str = "", **facts: Any
) -> Method:
    """A method on FreeOCNet; own: what it sets in the training loop."""
    return Method(
        name, "the scene", minimises, paper, constants, settings=own, negatives=True, **facts
    )


def _loss(name: str, minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A network alone, with the loss of that name."""
    return _network(name, {"loss": name, **ALONE}, minimises, paper, constants, **facts)


def _spectral(name: str, minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    return Method(name, "single spectra", minimises, paper, constants, **facts)


def _images(name: str, minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A method on images; what it sets is in `image_training.TRAININGS`."""
    return Method(name, "images", minimises, paper, constants, **{"settings": {}, **facts})


ON_SCENES = (
    Method(
        "density-ratio",
        "windows about a pixel",
        "squared error of the ratio of densities, in closed form",
        "Kanamori 2009",
        "60 components, windows of up to 13 pixels, cut by labels left out",
        negatives=True,
        coverage=True,
    ),
    Method(
        "auto",
        "windows about a pixel",
        "what the density ratio does, or the method on spectra that finds labels left out better",
        "ours",
        "PAUC better by 15 or more; labels left out by place",
        negatives=True,
        coverage=True,
    ),
    _network(
        "t-honecls",
        {},
        "Taylor variational loss + KL to an EMA teacher",
        "Zhao 2023",
        "order 2, β 0.5, α 0.99, clip 6",
    ),
    _network(
        "taylor",
        {"beta": 0.0, "ema": False},
        "Taylor variational loss, no teacher",
        "Zhao 2023",
        "order 2, clip 6",
    ),
    _loss("variational", "variational loss alone; the paper's tables call it vPU", "Chen 2020"),
    _network(  # clipped: its MixUp term has no bound; it chooses its epoch by itself
        "vpu",
        {"loss": "vpu", **ALONE, "clip": 6.0},
        "variational loss + MixUp; epoch by held-out loss; probability over its maximum",
        "Chen 2020",
        "weight 0.3, Beta(0.3, 0.3), 10 % held out, clip 6",
    ),
    _loss("nnpu", "non-negative PU risk", "Kiryo 2017", "sigmoid, β 0, γ 1", needs_prior=True),
    _loss("upu", "unbiased PU risk", "du Plessis 2015", "sigmoid", needs_prior=True),
    _loss(
        "imb-nnpu",
        "non-negative PU risk of a class as large as the rest",
        "Su 2021",
        "sigmoid, balance 0.5; as published but for the network",
        needs_prior=True,
    ),
    _loss("abs-negative", "PU risk, |negative part|", "Zhao 2022", "sigmoid", needs_prior=True),
    _network(
        "oc",
        {"loss": "oc", "warmup": 20, "warmup_loss": "oc-warmup", **ALONE},
        "focal positive risk + |negative risk|",
        "Zhao 2022 (HOneCls)",
        "weight 0.3, focus 0.1, 20 epochs of cross-entropy first",
        needs_prior=True,
    ),
    _loss(
        "dist-pu",
        "label distribution term of Dist-PU",
        "Zhao 2022 (Dist-PU)",
        "sigmoid",
        needs_prior=True,
    ),
    _loss("bce", "cross-entropy, unlabeled as negatives", "supervised classifier"),
    _loss("mse", "squared error, unlabeled as negatives", "Ghosh 2017"),
    _loss("gce", "generalised cross-entropy", "Zhang 2018", "q 0.3"),
    _loss("sce", "symmetric cross-entropy", "Wang 2019", "0.01 forward, 4 reverse"),
    _network(
        "tce",
        {"loss": "tce", "order": 6, **ALONE},
        "Taylor cross-entropy of each pixel",
        "Feng 2020",
        "order 6",
    ),
    _network(  # its map moves in every second epoch only
        "pan",
        {"loss": "bce", "settle": 0.0, **ALONE},
        "game of a classifier and a P-U discriminator",
        "Hu 2021",
        "λ 1e-4, eps 0.01",
    ),
    _network(
        "pan-reference",
        {"loss": "bce", "settle": 0.0, **ALONE},
        "the same with the hinge and sums of its authors' code",
        "Hu 2021",
        "λ 1e-4, eps 0.01",
    ),
    _network(  # its discriminator, which is all that learns
        "pan-as-run",
        {"loss": "bce", **ALONE},
        "what the paper's PAN column amounts to: cross-entropy, as `bce`",
        "Zhao 2023",
    ),
    _network(  # its map is that of the average, which the loop keeps
        "ncpu",
        {"loss": "bce", "beta": 0.0, "warmup": 5, "members": 0, "patience": 0},
        "cross-entropy of prototypes' labels + 2 √(1 - cos) of pairs of a class, in a twin network",
        "Zhao 2026 (NcPU)",
        "momentum 0.99, temperature 0.1; adapted: 5 epochs of cross-entropy first, labels given "
        "anew at every step, one view, the head's features",
    ),
    _network(
        "lbe",
        {"loss": "bce", "warmup": 5, **ALONE},
        "likelihood of labels that likelier pixels are likelier to have, by EM",
        "Gong 2021 (LBE)",
        "adapted: both probabilities by one network with two heads, 5 epochs of cross-entropy "
        "first, as many P as U",
    ),
    _network(
        "pusb",
        {"loss": "nnpu:surrogate=logistic", **ALONE},
        "non-negative PU risk; the share that the prior says is mapped",
        "Kato 2019 (PUSB)",
        "logistic; as published but for the network",
        needs_prior=True,
    ),
    _network(
        "pubn",
        {"loss": "nnpu:surrogate=logistic", **ALONE},
        "PU risk with negatives of some kinds; weights by a network that tells labelled kinds",
        "Hsieh 2019 (PUbN)",
        "logistic, τ 0.7; adapted: the negatives' share by BBE, PUbN\\N where there are none",
        needs_prior=True,
        takes_apart=True,
    ),
    _network(
        "dist-pu-full",
        {"loss": "dist-pu", "settle": 0.0, **ALONE},
        "label distribution; then also entropies and MixUp of pseudo-labels",
        "Zhao 2022 (Dist-PU)",
        "Beta(6, 6); adapted: half of the epochs for either phase, logits mixed, pseudo-labels by "
        "the network when the epoch began",
        needs_prior=True,
    ),
    _network(
        "p3mix-e",
        {"loss": "bce", **ALONE},
        "cross-entropy, u near the boundary mixed with p near it, early learning regularised",
        "Li 2022",
        "bound 0.85, pool from epoch 10; adapted: logits mixed, pool of half of a step's p",
    ),
    _network(
        "p3mix-c",
        {"loss": "bce", **ALONE},
        "the same, sure u relabelled instead",
        "Li 2022",
        "bound 0.8, pool from epoch 10; adapted: as above",
    ),
    _network(  # it chooses its epoch by itself
        "t-honecls-selected",
        {"members": 0, "patience": 0, "settle": 0.0},
        "as t-honecls; the epoch by vPU's held-out loss",
        "Zhao 2023, Chen 2020",
        "order 2, β 0.5, α 0.99, clip 6, 10 % held out",
    ),
    _spectral("sam", "angle to the mean spectrum", "Kruse 1993", "recall 0.9"),
    _spectral("matched-filter", "background energy, 1 on the target", "Robey 1992", "recall 0.9"),
    _spectral(
        "cem", "output energy under a constraint on the target", "Harsanyi 1993", "recall 0.9"
    ),
    _spectral("ace", "whitened angle to the target", "Kraut 2005", "recall 0.9"),
    _spectral(
        "ocsvm", "one-class margin around the positives", "Schölkopf 2001", "ν 0.1, recall 0.9"
    ),
    _spectral(
        "isolation-forest",
        "isolation depth among the positives",
        "Liu 2008",
        "100 trees, recall 0.9",
    ),
    _spectral(
        "biased-svm",
        "hinge with two costs, chosen by recall² / share",
        "Liu 2003",
        "at most 1500 unlabeled",
    ),
    _spectral(
        "pu-bagging",
        "trees on positives against random unlabeled",
        "Mordelet 2014",
        "100 trees",
        extra="methods",
    ),
    _spectral(
        "elkan-noto",
        "P-vs-U classifier over its mean on positives",
        "Elkan 2008",
        "20 % held out",
        extra="methods",
    ),
    _spectral(
        "maxent",
        "relative entropy to the background",
        "Phillips 2006",
        "20 MNF components, recall 0.9",
        extra="methods",
    ),
)

ON_IMAGES = (
    _images("taylor", "Taylor variational loss", "Zhao 2023", "order 1, on STL-10 3"),
    _images(
        "t-honecls", "the same + KL to an EMA teacher", "Zhao 2023", "order as above, β 0.5, α 0.99"
    ),
    _images("variational", "variational loss alone", "Chen 2020"),
    _images(
        "vpu",
        "the same + MixUp of images; epoch by held-out loss; probability over its maximum",
        "Chen 2020",
        "weight 0.03 on CIFAR-10, else 0.3, Beta(0.3, 0.3), 10 % held out",
    ),
    _images("nnpu", "non-negative PU risk", "Kiryo 2017", "sigmoid, β 0, γ 1", needs_prior=True),
    _images("upu", "unbiased PU risk", "du Plessis 2015", "sigmoid", needs_prior=True),
    _images(
        "dist-pu",
        "distance of label distributions; then also entropies and MixUp of pseudo-labels",
        "Zhao 2022 (Dist-PU)",
        "two phases of 60 epochs, batches of 256, Beta(6, 6)",
        needs_prior=True,
    ),
    _images(
        "p3mix-e",
        "cross-entropy, u near the boundary mixed with p near it, early learning regularised",
        "Li 2022",
        "200 epochs, bound 0.85, pool 100 from epoch 10",
    ),
    _images(
        "p3mix-c",
        "the same, sure u relabelled instead",
        "Li 2022",
        "200 epochs, bound 0.8, pool 100 from epoch 10",
    ),
    _images(
        "puet",
        "PU risk of extremely randomised trees",
        "Wilton 2022",
        "100 trees, quadratic, non-negative",
        needs_prior=True,
        settings=None,
    ),
    _images(
        "ncpu",
        "cross-entropy of prototypes' labels + 2 √(1 - cos) of pairs of a class, in a twin network",
        "Zhao 2026 (NcPU)",
        "momentum 0.99, temperature 0.1; adapted: 7-layer network, 5 epochs of cross-entropy "
        "first, labels given anew at every step, one view",
    ),
    _images(
        "lbe",
        "likelihood of labels that likelier images are likelier to have, by EM",
        "Gong 2021 (LBE)",
        "adapted: both probabilities by one network with two heads, 2 epochs of cross-entropy "
        "first, as many P as U",
    ),
    _images(
        "imb-nnpu",
        "non-negative PU risk of a class as large as the rest",
        "Su 2021",
        "sigmoid, balance 0.5",
        needs_prior=True,
    ),
    _images("bce", "cross-entropy, unlabeled as negatives", "supervised classifier"),
)
METHODS: dict[str, Method] = {method.name: method for method in ON_SCENES}
IMAGE_METHODS: dict[str, Method] = {method.name: method for method in ON_IMAGES}


def as_markdown(catalogue: Mapping[str, Method] | None = None) -> str:
    """A catalogue as a table, by default that of scenes: a card for each method."""
    catalogue = METHODS if catalogue is None else catalogue
    scenes = any(method.on != "images" for method in catalogue.values())
    on = ["works on"] if scenes else []
    header = ["method", "minimises", "prior", *on, "paper", "constants"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for name, method in catalogue.items():
        prior = "needed" if method.needs_prior else ""
        constants = method.constants + (f"; extra `{method.extra}`" if method.extra else "")
        where = [method.on] if scenes else []
        cells = (f"`{name}`", method.minimises, prior, *where, method.paper, constants)
        lines.append(f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |")
    return "\n".join(lines)


def unknown_method(name: str) -> ConfigError:
    """The error for a method that is not in the catalogue, with the one that was perhaps meant.

    >>> str(unknown_method("maxnt"))
    "there is no method 'maxnt', did you mean maxent? See `thonecls methods`"
    """
    near = difflib.get_close_matches(name, METHODS, n=1)
    meant = f", did you mean {near[0]}? See" if near else ": see"
    return ConfigError(f"there is no method {name!r}{meant} `thonecls methods`")
