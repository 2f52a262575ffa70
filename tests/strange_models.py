"""Small models of every kind, and files like theirs with whatever a stranger may put there."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thonecls.datasets import synthetic
from thonecls.method import store
from thonecls.method.frozen import freeze
from thonecls.method.model import Model
from thonecls.method.net import FreeOCNet
from thonecls.method.novelty import fit_novelty
from thonecls.methods.spectral import Samples
from thonecls.methods.spectral_model import SpectralModel
from thonecls.ratio.model import RatioModel
from thonecls.ratio.ratio import Look, Machine
from thonecls.scene import BandStatistics, band_statistics, standardize

BANDS = 4
WAVES = (450.0, 550.0, 650.0, 850.0)
KINDS = ("model", "ratio model", "spectral model")
About = dict[str, Any]
Tensors = dict[str, Tensor]
Change = Callable[[About, Tensors], None]


def _network() -> Model:
    scene = synthetic(height=12, width=10, bands=BANDS).scene
    statistics = band_statistics(scene)
    cube = standardize(scene, statistics)
    torch.manual_seed(0)
    nets = [FreeOCNet(BANDS, width=0.125).eval() for _ in range(2)]
    frozen = [freeze(net, torch.from_numpy(cube)[None]) for net in nets]
    return Model(
        nets[0],
        statistics,
        frozen[0],
        {"config": {}, "history": {"loss": [0.5]}, "label": "oak", "finished": True},
        wavelengths=WAVES,
        novelty=fit_novelty(cube.reshape(BANDS, -1).T),
        members=((nets[1], frozen[1]),),
    )


def make(kind: str) -> Model | RatioModel | SpectralModel:
    """A model of a kind, as small as it can be."""
    network = _network()
    if kind == "model":
        return network
    rng = np.random.default_rng(0)
    training = {"config": {}, "seed": 0, "finished": True, "seconds": 0.1, "positives": 6}
    shared: dict[str, Any] = {"wavelengths": WAVES, "novelty": network.novelty}
    if kind == "ratio model":
        axes = np.eye(3, BANDS, dtype=np.float32)
        statistics = BandStatistics(network.statistics.mean, network.statistics.std, axes)
        machines = (
            Machine(
                Look((1, 3), 0.5),
                rng.normal(size=(5, 6)).astype(np.float32),
                0.3,
                np.ones(5, np.float32),
            ),
        )
        return RatioModel(machines, statistics, 0.4, training, **shared)
    samples = Samples(
        rng.normal(1, 1, (6, BANDS)),
        rng.normal(size=(20, BANDS)),
        np.empty(0, np.int64),
        np.zeros(BANDS),
        np.eye(BANDS),
    )
    return SpectralModel("matched-filter", samples, network.statistics, training, **shared)


def written(path: Path, kind: str, about: About, tensors: Tensors) -> Path:
    """A file with these contents and a checksum that is right."""
    store.save(path, kind, about, tensors)
    return path


def contents(path: Path, kind: str) -> tuple[About, Tensors]:
    """What is in a model's file, to be changed."""
    make(kind).save(path)
    about, tensors = store.load(path, kind)
    return {k: v for k, v in about.items() if k not in ("kind", "format", "types")}, tensors


def _set(name: str, value: object) -> Change:
    """A fact of another value; of parts of facts the name has dots."""

    def change(about: About, tensors: Tensors) -> None:
        *outer, last = name.split(".")
        place: Any = about
        for part in outer:
            place = place[int(part) if part.isdigit() else part]
        place[last] = value

    return change


def _drop(name: str) -> Change:
    return lambda about, tensors: (about.pop(name, None), tensors.pop(name, None), None)[2]


def _array(name: str, change: Callable[[Tensor], Tensor]) -> Change:
    def changed(about: About, tensors: Tensors) -> None:
        tensors[name] = change(tensors[name])

    return changed


def _one(value: float) -> Callable[[Tensor], Tensor]:
    """The same tensor with one value changed."""

    def change(tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        tensor.view(-1)[0] = value
        return tensor

    return change


JUNK: list[object] = [None, True, "x", -1, 0, 1e400, math.nan, [], {}, [[]], 10**30]
FACTS: dict[str, dict[str, list[object]]] = {
    "shared": {
        "training": [None, 3, "x", []],
        "wavelengths": ["x", [1.0], [math.nan] * 4, [0.0] * 4, ["a"] * 4, {}, [10**400] * 4],
        "threshold": [None, "x", -0.1, 1.1, math.nan, True, []],
        "usual": [0, -1, math.nan, math.inf, "x", None, [1.0]],
        "training.label": ["x" * 1_000_000, 3, None],
        "training.finished": ["yes", 1, None],
        "training.seconds": ["x", -1, math.inf],
    },
    "model": {
        "net": [None, {}, {"bands": 4}, {"bands": 4, "width": 0.125, "more": 1}],
        "net.width": [30, 1e9, 0, -1, math.nan, math.inf, "1", None, True, 0.25, 10**30],
        "net.bands": [0, 3, 5, 4.0, 10**9, 10**30, "4", None, True],
        "ceiling": [0, 0.0, -1, 1.5, math.nan, math.inf, "x", None, []],
        "networks": [0, -1, 1, 3, 10**9, 2.0, "2", None],
        "training.history": [[], {"loss": 1}, {"loss": ["x"]}],
        "training.prevalence": ["x", 2, math.nan],
    },
    "ratio model": {
        "cut": [None, "x", math.nan, math.inf, [], 1e30],
        "machines": [None, {}, [], [3], [{}], "x"],
        "machines.0.windows": [[], [0], [2], [1001], [1, 3, 5], ["3"], 3, [1.0, 3.0], [True, 3]],
        "machines.0.gamma": [0, -1, math.nan, "x", None],
        "machines.0.power": [-1, math.nan, "x", 1e9],
    },
    "spectral model": {
        "method": [None, 3, "magic", [], "x" * 100_000],
        "training.seed": [None, -1, 1.5, "x", 2**70],
    },
}
ARRAYS = {
    "shared": ["bands.mean", "bands.std", "novelty.axes", "novelty.centre", "novelty.scales"],
    "model": [
        "net.stem.weight",
        "frozen.norm",
        "frozen.blocks.1.channel",
        "member.1.net.head.bias",
    ],
    "ratio model": ["bands.axes", "machine.0.centres", "machine.0.weights"],
    "spectral model": ["samples.positive", "samples.unlabeled", "samples.mean", "samples.matrix"],
}
BELOW = {"bands.std", "novelty.scales", "frozen.norm", "frozen.blocks.1.channel"}  # not below 0


def strange(kind: str) -> Iterator[tuple[str, Change]]:
    """Every change of a model's file after which it must be refused, with a name."""
    for part in ("shared", kind):
        for name, values in FACTS[part].items():
            for i, value in enumerate(values):
                yield f"{name} {i}", _set(name, value)
        for name in ARRAYS[part]:
            yield f"{name} NaN", _array(name, _one(math.nan))
            yield f"{name} infinite", _array(name, _one(math.inf))
            yield f"{name} missing", _drop(name)
            yield f"{name} flat", _array(name, lambda t: t.flatten()[None, None])
            if name not in ("samples.positive", "samples.unlabeled"):  # more are no harm
                yield f"{name} longer", _array(name, lambda t: torch.cat([t, t]))
            yield f"{name} empty", _array(name, lambda t: t[:0])
            yield f"{name} whole numbers", _array(name, lambda t: t.to(torch.int64))
            yield f"{name} halves", _array(name, lambda t: t.to(torch.float16))
            if name in BELOW:
                yield f"{name} below 0", _array(name, lambda t: t - 1e6)
    for name in (
        "training",
        *{"model": ("net",), "ratio model": ("cut", "machines")}.get(kind, ()),
    ):
        yield f"without {name}", _drop(name)
    for stray in ("odd", "bands.odd", "net.odd", "member.7.net.odd", "machine.9.weights"):
        yield (
            f"with {stray}",
            lambda _, tensors, stray=stray: tensors.update(  # type: ignore[misc]
                {stray: torch.zeros(2)}
            ),
        )


def changed(path: Path, kind: str, change: Change, base: tuple[About, Tensors]) -> Path:
    """A copy of a model's file with a change."""
    about, tensors = copy.deepcopy(base[0]), dict(base[1])
    change(about, tensors)
    return written(path, kind, about, tensors)
