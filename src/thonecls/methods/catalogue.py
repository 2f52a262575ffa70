"""The literal catalogue: every method, on scenes and on images, with its settings and its card.

METHODS[name](scene, labels, seed, ...) gives a score map. The cards can be read without torch or
scikit-learn: a method loads what it runs when it is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from thonecls.errors import ConfigError
from thonecls.method.config import PRESETS
from thonecls.methods.costs import network_costs, spectra_costs
from thonecls.methods.method import Learning, Method

NETWORK = Learning(
    "scenes",
    "in steps",
    "scenes:score_scene",
    "scenes:measure_network",
    "method:on_preset",
    presets=PRESETS,
    several=True,
    calibrated=True,
    costs=network_costs,
)
AT_ONCE = Learning(
    "scenes",
    "at once",
    "scenes:score_scene",
    "scenes:measure_at_once",
    "method:on_preset",
    uses=("unlabeled", "device"),
)
ON_SPECTRA = replace(AT_ONCE, costs=spectra_costs, uses=("unlabeled",))
ON_SPECTRA_WITH_PRIOR = replace(ON_SPECTRA, uses=(*(ON_SPECTRA.uses or ()), "prior"))
ON_IMAGES = Learning(
    "images",
    "in steps",
    "images:score_images",
    "images:measure_network",
    "images:network_settings",
    uses=(
        *("batches", "device", "epochs", "order", "precision", "rate", "unlabeled"),
        "weight_decay",
    ),
)
TREES = Learning(
    "images",
    "at once",
    "images:score_images",
    "images:measure_trees",
    "images:tree_settings",
    uses=("unlabeled",),
)


# The baselines share the paper's schedule; they are single networks, without clipping.
ALONE: dict[str, Any] = {"beta": 0.0, "ema": False, "clip": 1e9, "members": 0, "patience": 0}


def _network(
    own: dict[str, Any], minimises: str, paper: str, constants: str = "", **facts: Any
) -> Method:
    """A method on FreeOCNet; own: what it sets in the training loop."""
    usual: dict[str, Any] = {
        "learning": NETWORK,
        "on": "the scene",
        "learn": "thonecls.method.fit:fit_on",
        "score": "scenes:score_by_network",
        "negatives": True,
    }
    return Method(minimises, paper, constants, settings=own, **{**usual, **facts})


def _loss(name: str, minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A network alone, with the loss of that name."""
    return _network({"loss": name, **ALONE}, minimises, paper, constants, **facts)


def _at_once(minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A method that learns at once."""
    return Method(minimises, paper, constants, **{"learning": AT_ONCE, **facts})


def _spectral(minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A method on single spectra: that of the same name in `spectral.SPECTRAL`."""
    where = {"learn": "scenes:fit_spectra", "score": "scenes:score_spectra"}
    return _at_once(minimises, paper, constants, on="single spectra", **where, **facts)


def _by_loss(minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A method of the images that learns from single spectra, by a small network or by trees."""
    learning = ON_SPECTRA_WITH_PRIOR if facts.get("needs_prior") else ON_SPECTRA
    return _spectral(minimises, paper, constants, learning=learning, **facts)


def _images(minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A method on images; what it sets is in `image_training.TRAININGS`."""
    usual: dict[str, Any] = {
        "learning": ON_IMAGES,
        "learn": "images:train_images",
        "score": "images:score_by_network",
    }
    return Method(minimises, paper, constants, on="images", **{**usual, **facts})


def _trees(minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    """A method on images that trains no network."""
    where = {"learn": "images:score_by_trees", "score": "images:score_by_trees"}
    return _images(minimises, paper, constants, learning=TREES, **where, **facts)


# What a method is on scenes, and on images.
CATALOGUE: dict[str, tuple[Method, ...]] = {
    "density-ratio": (
        _at_once(
            "squared error of the ratio of densities, in closed form",
            "Kanamori 2009",
            "60 components, windows of up to 31 pixels, cut by labels left out",
            negatives=True,
            coverage=True,
            learn="scenes:fit_density_ratio",
            score="scenes:score_ratio",
            on="windows about a pixel",
        ),
    ),
    "auto": (
        _at_once(
            "what the density ratio does, or the method on spectra that finds labels left out "
            "better",
            "ours",
            "PAUC better by 15 or more; labels left out by place",
            negatives=True,
            coverage=True,
            learn="scenes:fit_best",
            score="scenes:score_auto",
            on="windows about a pixel",
        ),
    ),
    "t-honecls": (
        _network(
            {},
            "Taylor variational loss + KL to an EMA teacher",
            "Zhao 2023",
            "order 2, β 0.5, α 0.99, clip 6",
        ),
        _images(
            "Taylor variational loss + KL to an EMA teacher",
            "Zhao 2023",
            "order 1, on STL-10 3, β 0.5, α 0.99",
        ),
    ),
    "t-honecls-views": (
        _images(
            "as t-honecls; student and teacher see other views of each image",
            "ours",
            "mirrored, moved by up to 4 pixels, rate 3e-4; else as t-honecls",
        ),
    ),
    "taylor": (
        _network(
            {"beta": 0.0, "ema": False},
            "Taylor variational loss, no teacher",
            "Zhao 2023",
            "order 2, clip 6",
        ),
        _images("Taylor variational loss", "Zhao 2023", "order 1, on STL-10 3"),
    ),
    "variational": (
        _loss("variational", "variational loss alone; the paper's tables call it vPU", "Chen 2020"),
        _images("variational loss alone", "Chen 2020"),
    ),
    # clipped: its MixUp term has no bound; it chooses its epoch by itself
    "vpu": (
        _network(
            {"loss": "vpu", **ALONE, "clip": 6.0},
            "variational loss + MixUp; epoch by held-out loss; probability over its maximum",
            "Chen 2020",
            "weight 0.3, Beta(0.3, 0.3), 10 % held out, clip 6",
            learn="vpu:train",
        ),
        _images(
            "the same + MixUp of images; epoch by held-out loss; probability over its maximum",
            "Chen 2020",
            "weight 0.03 on CIFAR-10, else 0.3, Beta(0.3, 0.3), 10 % held out",
        ),
    ),
    "nnpu": (
        _loss("nnpu", "non-negative PU risk", "Kiryo 2017", "sigmoid, β 0, γ 1", needs_prior=True),
        _images("non-negative PU risk", "Kiryo 2017", "sigmoid, β 0, γ 1", needs_prior=True),
    ),
    "upu": (
        _loss("upu", "unbiased PU risk", "du Plessis 2015", "sigmoid", needs_prior=True),
        _images("unbiased PU risk", "du Plessis 2015", "sigmoid", needs_prior=True),
    ),
    "imb-nnpu": (
        _loss(
            "imb-nnpu",
            "non-negative PU risk of a class as large as the rest",
            "Su 2021",
            "sigmoid, balance 0.5; as published but for the network",
            needs_prior=True,
        ),
        _images(
            "non-negative PU risk of a class as large as the rest",
            "Su 2021",
            "sigmoid, balance 0.5",
            needs_prior=True,
        ),
    ),
    "abs-negative": (
        _loss("abs-negative", "PU risk, |negative part|", "Zhao 2022", "sigmoid", needs_prior=True),
    ),
    "oc": (
        _network(
            {"loss": "oc", "warmup": 20, "warmup_loss": "oc-warmup", **ALONE},
            "focal positive risk + |negative risk|",
            "Zhao 2022 (HOneCls)",
            "weight 0.3, focus 0.1, 20 epochs of cross-entropy first",
            needs_prior=True,
        ),
    ),
    "dist-pu": (
        _loss(
            "dist-pu",
            "label distribution term of Dist-PU",
            "Zhao 2022 (Dist-PU)",
            "sigmoid",
            needs_prior=True,
        ),
        _images(
            "distance of label distributions; then also entropies and MixUp of pseudo-labels",
            "Zhao 2022 (Dist-PU)",
            "two phases of 60 epochs, batches of 256, Beta(6, 6)",
            needs_prior=True,
        ),
    ),
    "bce": (
        _loss("bce", "cross-entropy, unlabeled as negatives", "supervised classifier"),
        _images("cross-entropy, unlabeled as negatives", "supervised classifier"),
    ),
    "mse": (_loss("mse", "squared error, unlabeled as negatives", "Ghosh 2017"),),
    "gce": (_loss("gce", "generalised cross-entropy", "Zhang 2018", "q 0.3"),),
    "sce": (_loss("sce", "symmetric cross-entropy", "Wang 2019", "0.01 forward, 4 reverse"),),
    "tce": (
        _network(
            {"loss": "tce", "order": 6, **ALONE},
            "Taylor cross-entropy of each pixel",
            "Feng 2020",
            "order 6",
        ),
    ),
    # its map moves in every second epoch only
    "pan": (
        _network(
            {"loss": "bce", "settle": 0.0, **ALONE},
            "game of a classifier and a P-U discriminator",
            "Hu 2021",
            "λ 1e-4, eps 0.01",
            learn="pan:train",
            check="pan:check",
        ),
    ),
    "pan-reference": (
        _network(
            {"loss": "bce", "settle": 0.0, **ALONE},
            "the same with the hinge and sums of its authors' code",
            "Hu 2021",
            "λ 1e-4, eps 0.01",
            learn="pan:train_reference",
            check="pan:check",
        ),
    ),
    # its discriminator, which is all that learns
    "pan-as-run": (
        _network(
            {"loss": "bce", **ALONE},
            "what the paper's PAN column amounts to: cross-entropy, as `bce`",
            "Zhao 2023",
        ),
    ),
    # its map is that of the average, which the loop keeps
    "ncpu": (
        _network(
            {"loss": "bce", "beta": 0.0, "warmup": 5, "members": 0, "patience": 0},
            "cross-entropy of prototypes' labels + 2 √(1 - cos) of pairs of a class, in a twin "
            "network",
            "Zhao 2026 (NcPU)",
            "momentum 0.99, temperature 0.1; adapted: 5 epochs of cross-entropy first, labels "
            "given anew at every step, negative unless surely positive, one view, the head's "
            "features",
            learn="ncpu:train",
            check="ncpu:check",
        ),
        _images(
            "cross-entropy of prototypes' labels + 2 √(1 - cos) of pairs of a class, in a twin "
            "network",
            "Zhao 2026 (NcPU)",
            "momentum 0.99, temperature 0.1; adapted: 7-layer network, 5 epochs of cross-entropy "
            "first, labels given anew at every step, negative unless surely positive",
        ),
    ),
    "lbe": (
        _network(
            {"loss": "bce", "warmup": 5, **ALONE},
            "likelihood of labels that likelier pixels are likelier to have, by EM",
            "Gong 2021 (LBE)",
            "adapted: both probabilities by one network with two heads, 5 epochs of cross-entropy"
            " first, as many P as U",
            learn="lbe:train",
        ),
        _images(
            "likelihood of labels that likelier images are likelier to have, by EM",
            "Gong 2021 (LBE)",
            "adapted: both probabilities by one network with two heads, 2 epochs of cross-entropy"
            " first, as many P as U",
        ),
    ),
    "pul-cpbf": (
        _network(
            {"loss": "nnpu:surrogate=logistic", "warmup": 5, **ALONE},
            "cross-entropy of labels drawn by posteriors, which a fence of classifiers tells",
            "Li 2024 (PUL-CPBF)",
            "9 classifiers; adapted: fence and classifier are heads of one network, 5 epochs of "
            "the fence alone first",
            needs_prior=True,
            learn="cpbf:train",
        ),
        _images(
            "cross-entropy of labels drawn by posteriors, which a fence of classifiers tells",
            "Li 2024 (PUL-CPBF)",
            "9 classifiers; adapted: fence and classifier are heads of one network, 5 epochs of "
            "the fence alone first",
            needs_prior=True,
        ),
    ),
    "pusb": (
        _network(
            {"loss": "nnpu:surrogate=logistic", **ALONE},
            "non-negative PU risk; the share that the prior says is mapped",
            "Kato 2019 (PUSB)",
            "logistic; as published but for the network",
            needs_prior=True,
            learn="pusb:train",
        ),
    ),
    "pubn": (
        _network(
            {"loss": "nnpu:surrogate=logistic", **ALONE},
            "PU risk with negatives of some kinds; weights by a network that tells labelled kinds",
            "Hsieh 2019 (PUbN)",
            "logistic, τ 0.7; adapted: the negatives' share by BBE, PUbN\\N where there are none",
            needs_prior=True,
            takes_apart=True,
            learn="pubn:train",
        ),
    ),
    "dist-pu-full": (
        _network(
            {"loss": "dist-pu", "settle": 0.0, **ALONE},
            "label distribution; then also entropies and MixUp of pseudo-labels",
            "Zhao 2022 (Dist-PU)",
            "Beta(6, 6); adapted: half of the epochs for either phase, logits mixed, pseudo-"
            "labels by the network when the epoch began",
            needs_prior=True,
            learn="dist_pu:train",
        ),
    ),
    "p3mix-e": (
        _network(
            {"loss": "bce", **ALONE},
            "cross-entropy, u near the boundary mixed with p near it, early learning regularised",
            "Li 2022",
            "bound 0.85, pool from epoch 10; adapted: logits mixed, pool of half of a step's p",
            learn="p3mix:train_e",
        ),
        _images(
            "cross-entropy, u near the boundary mixed with p near it, early learning regularised",
            "Li 2022",
            "200 epochs, bound 0.85, pool 100 from epoch 10",
        ),
    ),
    "p3mix-c": (
        _network(
            {"loss": "bce", **ALONE},
            "the same, sure u relabelled instead",
            "Li 2022",
            "bound 0.8, pool from epoch 10; adapted: as above",
            learn="p3mix:train_c",
        ),
        _images(
            "the same, sure u relabelled instead",
            "Li 2022",
            "200 epochs, bound 0.8, pool 100 from epoch 10",
        ),
    ),
    # it chooses its epoch by itself
    "t-honecls-selected": (
        _network(
            {"members": 0, "patience": 0, "settle": 0.0},
            "as t-honecls; the epoch by vPU's held-out loss",
            "Zhao 2023, Chen 2020",
            "order 2, β 0.5, α 0.99, clip 6, 10 % held out",
            learn="vpu:train_selected",
        ),
    ),
    "sam": (_spectral("angle to the mean spectrum", "Kruse 1993", "recall 0.9"),),
    "matched-filter": (
        _spectral("background energy, 1 on the target", "Robey 1992", "recall 0.9"),
    ),
    "cem": (
        _spectral("output energy under a constraint on the target", "Harsanyi 1993", "recall 0.9"),
    ),
    "ace": (_spectral("whitened angle to the target", "Kraut 2005", "recall 0.9"),),
    "ocsvm": (
        _spectral("one-class margin around the positives", "Schölkopf 2001", "ν 0.1, recall 0.9"),
    ),
    "isolation-forest": (
        _spectral("isolation depth among the positives", "Liu 2008", "100 trees, recall 0.9"),
    ),
    "biased-svm": (
        _spectral(
            "hinge with two costs, chosen by recall² / share", "Liu 2003", "at most 1500 unlabeled"
        ),
    ),
    "pu-bagging": (
        _spectral(
            "trees on positives against random unlabeled",
            "Mordelet 2014",
            "100 trees",
            extra="methods",
        ),
    ),
    "elkan-noto": (
        _spectral(
            "P-vs-U classifier over its mean on positives",
            "Elkan 2008",
            "20 % held out",
            extra="methods",
        ),
    ),
    "maxent": (
        _spectral(
            "relative entropy to the background",
            "Phillips 2006",
            "20 MNF components, recall 0.9",
            extra="methods",
        ),
    ),
    "taylor-spectra": (
        _by_loss("Taylor variational loss, of a small network", "Zhao 2023", "order 1"),
    ),
    "vpu-spectra": (
        _by_loss(
            "variational loss + MixUp of spectra; epoch by held-out loss; probability over its "
            "maximum",
            "Chen 2020",
            "weight 0.3, Beta(0.3, 0.3), 10 % held out",
        ),
    ),
    "variational-spectra": (_by_loss("variational loss alone, of a small network", "Chen 2020"),),
    "nnpu-spectra": (
        _by_loss(
            "non-negative PU risk of a small network",
            "Kiryo 2017",
            "sigmoid, β 0, γ 1",
            needs_prior=True,
        ),
    ),
    "upu-spectra": (
        _by_loss(
            "unbiased PU risk of a small network", "du Plessis 2015", "sigmoid", needs_prior=True
        ),
    ),
    "imb-nnpu-spectra": (
        _by_loss(
            "non-negative PU risk of a class as large as the rest, of a small network",
            "Su 2021",
            "sigmoid, balance 0.5",
            needs_prior=True,
        ),
    ),
    "dist-pu-spectra": (
        _by_loss(
            "distance of label distributions; then also entropies and MixUp of pseudo-labels",
            "Zhao 2022 (Dist-PU)",
            "Beta(6, 6); adapted: a small network, two phases of 10 epochs",
            needs_prior=True,
        ),
    ),
    "bce-spectra": (
        _by_loss(
            "cross-entropy of a small network, unlabeled as negatives", "supervised classifier"
        ),
    ),
    "ncpu-spectra": (
        _by_loss(
            "cross-entropy of prototypes' labels + 2 √(1 - cos) of pairs of a class, in a twin "
            "network",
            "Zhao 2026 (NcPU)",
            "momentum 0.99, temperature 0.1; adapted: a small network, 2 epochs of cross-entropy "
            "first, labels given anew at every step, negative unless surely positive, one view",
        ),
    ),
    "lbe-spectra": (
        _by_loss(
            "likelihood of labels that likelier spectra are likelier to have, by EM",
            "Gong 2021 (LBE)",
            "adapted: both probabilities by one small network with two heads, 1 epoch of "
            "cross-entropy first",
        ),
    ),
    "pul-cpbf-spectra": (
        _by_loss(
            "cross-entropy of labels drawn by posteriors, which a fence of classifiers tells",
            "Li 2024 (PUL-CPBF)",
            "9 classifiers; adapted: fence and classifier are heads of a small network, 2 epochs "
            "of the fence alone first",
            needs_prior=True,
        ),
    ),
    "p3mix-e-spectra": (
        _by_loss(
            "cross-entropy, u near the boundary mixed with p near it, early learning regularised",
            "Li 2022",
            "bound 0.85, pool 100 from epoch 10; adapted: a small network, 20 epochs",
        ),
    ),
    "puet-spectra": (
        _by_loss(
            "PU risk of extremely randomised trees",
            "Wilton 2022",
            "100 trees, quadratic, non-negative",
            needs_prior=True,
            extra="trees",
        ),
    ),
    "puet": (
        _trees(
            "PU risk of extremely randomised trees",
            "Wilton 2022",
            "100 trees, quadratic, non-negative",
            needs_prior=True,
        ),
    ),
}


def _methods_on(data: str) -> dict[str, Method]:
    return {
        name: replace(method, name=name)
        for name, methods in CATALOGUE.items()
        for method in methods
        if method.learning.data == data
    }


METHODS, IMAGE_METHODS = _methods_on("scenes"), _methods_on("images")


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
