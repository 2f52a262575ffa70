"""The paper's tables and figures, and some of ours, as studies: classes, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thonecls.benchmark.plan import Cell, Protocol, changed
from thonecls.benchmark.targets import ALL, Place
from thonecls.errors import ConfigError
from thonecls.methods import METHODS as CATALOGUE
from thonecls.methods.catalogue import AT_ONCE


@dataclass(frozen=True)
class Study:
    """A table or figure, of the paper or of ours.

    columns: what is compared: a label, and by what the cell differs; metrics: what a table shows;
    curves: what is drawn by epoch; maps: whether distribution maps are drawn; only: the columns
    that are run on some of the places alone, and on which; board: whether it is shown as the
    leaderboard rather than as a table.
    """

    title: str
    places: tuple[Place, ...]
    columns: dict[str, dict[str, Any]]
    metrics: tuple[str, ...] = ("f1",)
    curves: tuple[str, ...] = ()
    maps: bool = False
    only: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    board: bool = False

    def has(self, place: Place, label: str) -> bool:
        """Whether a column is run on a place."""
        return place in self.only.get(label, (place,))

    def cell(self, place: Place, label: str) -> Cell:
        """The cell of a place and a column, for seed 0."""
        return changed(Cell(*place), self.columns[label])


def _places(dataset: str, *targets: int) -> tuple[Place, ...]:
    return tuple((dataset, target) for target in targets)


HONGHU = _places("honghu", 4, 6, 7, 9, 10)
HANCHUAN = _places("hanchuan", 1, 2, 3, 6, 14, 16)
LONGKOU = _places("longkou", 1, 3, 4, 6)
IP_PU = (*_places("indian-pines", 2, 11), *_places("pavia-university", 2, 8))

METHODS: dict[str, dict[str, Any]] = {
    "nnPU": {"method": "nnpu", "prior": "paper"},
    "OC": {"method": "oc", "prior": "paper"},
    "MSE": {"method": "mse"},
    "GCE": {"method": "gce"},
    "SCE": {"method": "sce"},
    "TCE": {"method": "tce"},
    "PAN, as run": {"method": "pan-as-run"},
    "variational": {"method": "variational"},
    "T-HOneCls": {"method": "t-honecls"},
}
SUPERVISED: dict[str, dict[str, Any]] = {"supervised": {"method": "bce"}}
RATIO: dict[str, dict[str, Any]] = {"density-ratio": {"method": "density-ratio"}}
# What the paper's tables leave out: methods in their own authors' form, and true priors.
MORE_METHODS: dict[str, dict[str, Any]] = {
    **SUPERVISED,
    "Taylor": {"method": "taylor"},
    "vPU": {"method": "vpu"},
    "PAN": {"method": "pan"},
    "uPU": {"method": "upu", "prior": "paper"},
    "nnPU, true prior": {"method": "nnpu", "prior": "true"},
    "OC, true prior": {"method": "oc", "prior": "true"},
}
# What knows single spectra alone, without the small networks and trees that PU losses train.
SPECTRAL: dict[str, dict[str, Any]] = {
    name: {"method": name}
    for name, method in CATALOGUE.items()
    if method.on == "single spectra" and method.learning is AT_ONCE
}
ORDERS = {f"order {order}": {"order": order} for order in range(1, 6)}
TEACHERS: dict[str, dict[str, Any]] = {
    "taylor": {"method": "taylor"},
    "taylor+ema": {"method": "taylor", "ema": True},
    "taylor+ema+l2": {"consistency": "l2"},
    "taylor+ema+kl": {},
}
_TRUE: dict[str, Any] = {"prior": "true"}
RGB: dict[str, dict[str, Any]] = {
    label: {"positives": 900, **change}
    for label, change in {
        "nnPU": {"method": "nnpu", **_TRUE},
        "PUET": {"method": "puet", **_TRUE},
        "Dist-PU": {"method": "dist-pu", **_TRUE},
        "P3MIX-E": {"method": "p3mix-e"},
        "P3MIX-C": {"method": "p3mix-c"},
        "variational": {"method": "variational"},
        "Taylor": {"method": "taylor"},
        # What the paper leaves out.
        "Taylor, with a teacher": {"method": "t-honecls"},
        "vPU": {"method": "vpu"},
        "uPU": {"method": "upu", **_TRUE},
        "supervised": {"method": "bce"},
    }.items()
}
# What came after the paper, or was left out of its comparison on images.
MORE_RGB: dict[str, dict[str, Any]] = {
    label: {"positives": 900, **change}
    for label, change in {
        "NcPU": {"method": "ncpu"},
        "LBE": {"method": "lbe"},
        "PUL-CPBF": {"method": "pul-cpbf", **_TRUE},
        "imbalanced nnPU": {"method": "imb-nnpu", **_TRUE},
    }.items()
}
VARIATIONAL = {"loss": "variational"}  # in the whole of T-HOneCls

# Where settings are chosen: none of the paper's own classes, scenes of 4 to 218 bands.
TUNING = (
    *_places("indian-pines", 3, 5, 6, 8, 10, 12, 14),
    *_places("houston-crop", 2, 5, 9, 12),
    *_places("enmap-potsdam", 1, 2, 3, 4, 6),
    *_places("zion", *range(1, 9)),
    *_places("sentinel2", *range(1, 9)),
)


def _tuning(title: str, protocol: Protocol) -> Study:
    """The density ratio and every method on spectra, with labels that a protocol draws."""
    columns = {
        label: {**change, "preset": "fast", "protocol": protocol}
        for label, change in (RATIO | SPECTRAL).items()
    }
    return Study(title, TUNING, columns)


# The leaderboard: classes with enough pixels for every way of labelling, of five sensors.
BOARD = (
    *_places("indian-pines", 2, 3, 5, 6, 8, 10, 11, 12, 14),
    *_places("houston-crop", 2, 5, 9, 12),
    *_places("enmap-potsdam", 1, 2, 3, 4),
    *_places("zion", 1, 3, 4, 5, 8),
    *_places("sentinel2", 1, 2, 3, 7),
)
# What learns in steps is run on these alone. Houston 9 is too small for labels from one plot and
# from a fifth of its places: without it there are five, which is what ranks need.
BOARD_NETWORKS = (
    *_places("indian-pines", 2, 11),
    *_places("houston-crop", 5, 9, 12),
    *_places("enmap-potsdam", 4),
)
# FAST without its stopping rule: every network gets the same steps, a tenth of the paper's.
BRIEF: dict[str, Any] = {"preset": "fast", "epochs": 30, "settle": 0.0}
BRIEF_WARMUP = 2  # epochs of cross-entropy, of the paper's 20, for the method that begins so
BOARD_PROTOCOLS: tuple[Protocol, ...] = ("resampled", "half", "plot", "spatial")
# Other labels, for what maps at once: few or many of them, or some that are wrong.
BOARD_LABELS: dict[str, dict[str, Any]] = {
    "20 labels": {"protocol": "resampled", "positives": 20},
    "400 labels": {"protocol": "resampled", "positives": 400},
    "noisy": {"protocol": "noisy"},
}
SAME_AS_OTHERS = ("pan-as-run", "pan-reference")  # `bce` and `pan` by other names


def _board() -> Study:
    """Every method of the catalogue by every way of labelling.

    Networks are run briefly, and T-HOneCls also with the paper's schedule, as published; methods
    that need a prior are given KM2's estimate.
    """
    methods: dict[str, dict[str, Any]] = {}
    for name, method in CATALOGUE.items():
        if name not in SAME_AS_OTHERS:
            steps = method.learning.pace == "in steps"
            methods[name] = {"method": name, **(BRIEF if steps else {"preset": "fast"})}
            if method.needs_prior:
                methods[name]["prior"] = "paper"
    methods["oc"]["warmup"] = BRIEF_WARMUP
    methods["t-honecls, as published"] = {"method": "t-honecls"}
    mechanisms = {protocol: {"protocol": protocol} for protocol in BOARD_PROTOCOLS} | BOARD_LABELS
    columns = {
        f"{label}, {name}": {**change, **labels}
        for name, labels in mechanisms.items()
        for label, change in methods.items()
        if name not in BOARD_LABELS or CATALOGUE[change["method"]].learning.pace == "at once"
    }
    networks = {
        label: BOARD_NETWORKS
        for label, change in columns.items()
        if CATALOGUE[change["method"]].learning.pace == "in steps"
    }
    title = f"Leaderboard; networks on {len(BOARD_NETWORKS)} of the {len(BOARD)} classes"
    return Study(title, BOARD, columns, only=networks, board=True)


STUDIES: dict[str, Study] = {
    "table-honghu": Study("F1 on HongHu", HONGHU, METHODS | SUPERVISED),
    "table-hanchuan": Study("F1 on HanChuan", HANCHUAN, METHODS | SUPERVISED),
    "table-longkou": Study("F1 on LongKou", LONGKOU, METHODS | SUPERVISED),
    "table-ip-pu": Study("F1 on Indian Pines and Pavia University", IP_PU, METHODS),
    "methods": Study(
        "F1 of every method on a network", _places("indian-pines", 2), METHODS | MORE_METHODS
    ),
    "precision-recall": Study(
        "Precision and recall",
        (*HONGHU, *HANCHUAN, *LONGKOU),
        METHODS,
        metrics=("precision", "recall"),
    ),
    "order": Study(
        "Order of the Taylor expansion",
        (*_places("honghu", 4, 6), *_places("longkou", 3, 4), *_places("hanchuan", 2, 6)),
        {**ORDERS, "variational": VARIATIONAL},
        curves=("f1",),
    ),
    "kl-teacher": Study(
        "Parts of the KL-teacher",
        (("honghu", 4), ("longkou", 4), ("hanchuan", 2)),
        {
            "variational+ema+kl": VARIATIONAL,
            **{
                f"{name}, order {order}": {**change, "order": order}
                for order in (2, 5)
                for name, change in TEACHERS.items()
            },
        },
        curves=("f1",),
    ),
    "beta": Study(
        "Weight of the consistency with the teacher",
        (("honghu", 4),),
        {
            "beta=0": {"method": "taylor"},
            **{f"beta={beta}": {"beta": beta} for beta in (0.2, 0.4, 0.5, 0.6, 0.8, 1.0)},
        },
    ),
    "prior": Study(
        "Estimated against true class prior",
        (("honghu", 6), ("honghu", 10), ("hanchuan", 2), ("hanchuan", 3), ("hanchuan", 6)),
        {
            "oc true prior": {"method": "oc", "prior": "true"},
            "oc estimated prior": {"method": "oc", "prior": "paper"},
            "t-honecls": {},
        },
    ),
    "labels": Study(
        "Number of labelled positives",
        (("honghu", 4), ("honghu", 6), ("honghu", 9)),
        {
            f"{name}, {positives} positives": {"positives": positives, **change}
            for name, change in (("variational", {"method": "variational"}), ("T-HOneCls", {}))
            for positives in (40, 100, 400, 4000)
        },
        curves=("positive", "loss", "f1"),
    ),
    "table-rgb": Study(
        "Accuracy on images",
        (("cifar10", ALL), ("stl10", ALL)),
        RGB,
        metrics=("accuracy",),
        curves=("loss", "accuracy"),
    ),
    "fashion": Study(
        "Accuracy on Fashion-MNIST, by a perceptron: minutes instead of hours",
        (("fashion-mnist", ALL),),
        RGB | MORE_RGB,
        metrics=("accuracy",),
        curves=("loss", "accuracy"),
    ),
    "views": Study(
        "Two views of each image, against none; steps in bfloat16",
        (("cifar10", ALL),),
        {
            label: {"positives": 900, "method": method, "precision": "bfloat16"}
            for label, method in (("Taylor", "taylor"), ("two views", "t-honecls-views"))
        },
        metrics=("accuracy",),
        curves=("loss", "accuracy"),
    ),
    "maps": Study("Distribution maps", (*HONGHU, *HANCHUAN, *LONGKOU), METHODS, maps=True),
    "collage": Study(
        "The whole scene at every step, or a collage of its blocks",
        (*_places("indian-pines", 2, 11), ("houston-crop", 5), ("enmap-potsdam", 4)),
        {
            "whole scene, half": {"preset": "fast", "protocol": "half"},
            **{
                f"collage, {protocol}": {"preset": "collage", "protocol": protocol}
                for protocol in ("half", "paper", "spatial")
            },
        },
    ),
    "tuning-scattered": _tuning("Labels from all over the class", "resampled"),
    "tuning-half": _tuning("Labels from one side of the class, tests on the other", "half"),
    "tuning-plot": _tuning("Labels from one compact patch, tests a block away", "plot"),
    "tuning-polygons": _tuning("Labels from squares of 5×5 pixels all over the class", "polygons"),
    "leaderboard": _board(),
}


def cells_of(
    study: Study,
    *,
    seeds: Sequence[int] = range(5),
    change: dict[str, Any] | None = None,
) -> list[Cell]:
    """Every cell of a study, seed by seed; change: other fields or settings for all of them."""
    return [
        replace(changed(study.cell(place, label), change or {}), seed=seed)
        for seed in seeds
        for place in study.places
        for label in study.columns
        if study.has(place, label)
    ]


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise ConfigError(f"there is no study {name!r}: take one of {', '.join(STUDIES)}")
    return STUDIES[name]
