"""Models by the methods on single spectra, learnt again when loaded; and models of every kind."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError, ModelError
from thonecls.method import store
from thonecls.method.collage import cover, random_scenes
from thonecls.method.model import KIND, Model, load_novelty, save_novelty, score_whole
from thonecls.method.novelty import Novelty
from thonecls.method.store import check_spectral
from thonecls.methods.catalogue import METHODS
from thonecls.methods.spectral import CHUNK, SPECTRAL, Learnt, Samples
from thonecls.ratio.model import RATIO, RatioModel
from thonecls.scene import (
    BandStatistics,
    BoolArray,
    FloatArray,
    Scene,
    Source,
    as_source,
    pooled_statistics,
    read_all,
)
from thonecls.splits import Labels, check_positives, draw_labels
from thonecls.version import __version__, commit

SPECTRA = "spectral model"  # the kind of its file
UNLABELED = 4000  # pixels, as in the paper
POSITIVES = 5000  # labels that a method learns from at most: some take their square in memory
WHOLE = 2**20  # pixels of a scene that is read whole
SIDE = 32  # of the windows that stand for a larger one
WINDOWS = 256  # of them, and around labels at most
TILE = 448  # pixels a side


@dataclass(frozen=True, eq=False)
class SpectralModel:
    """A method on single spectra with what it learns from, which is little.

    samples: features of positive and unlabeled pixels; statistics: of the bands; the rest as for
    `Model`. What was learnt is not kept but learnt again, in seconds: a file holds no code.
    """

    method: str
    samples: Samples
    statistics: BandStatistics
    training: dict[str, Any] = field(default_factory=dict)
    wavelengths: tuple[float, ...] | None = None
    novelty: Novelty | None = None
    threshold: float = 0.5

    @property
    def bands(self) -> int:
        return len(self.statistics.mean)

    @property
    def halo(self) -> int:
        """How many pixels to each side have a say: none."""
        return 0

    @property
    def tile(self) -> int:
        """The side of a tile that takes little memory."""
        return TILE

    @cached_property
    def learnt(self) -> Learnt:
        """What the method makes of its samples, with the seed and the prior of its training."""
        needed = METHODS[self.method].needs_prior
        options = {"prior": self.training["config"]["prior"]} if needed else {}
        learnt: Learnt = SPECTRAL[self.method].fit(self.samples, self.training["seed"], **options)
        return learnt

    def ready(self, device: torch.device) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Scores (H, W) of a z-scored cube (C, H, W) and its valid pixels, on the CPU."""
        return self.probability

    def probability(self, cube: FloatArray, valid: BoolArray) -> FloatArray:
        """Scores in [0, 1], above 0.5 where the class is."""
        statistics, samples = self.statistics, self.samples
        matrix = statistics.std.astype(np.float64)[:, None] * samples.matrix
        shift = (statistics.mean - samples.mean) @ samples.matrix
        scores = np.full(valid.shape, np.nan, np.float32)
        pixels = np.flatnonzero(valid)
        flat = cube.reshape(len(cube), -1)
        for start in range(0, pixels.size, CHUNK):
            part = pixels[start : start + CHUNK]
            scores.flat[part] = self.learnt.score(flat[:, part].T @ matrix + shift)
        return scores

    def score(
        self, cube: Source | NDArray[Any], *, device: str = "auto", tile: int | None = None
    ) -> NDArray[np.float32]:
        """Scores of a whole scene, (H, W) float32, NaN on nodata; see `Model.score`."""
        return score_whole(self, cube, device, tile)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all. It holds no code."""
        kept = ("positive", "unlabeled", "mean", "matrix")
        arrays = {f"samples.{name}": getattr(self.samples, name) for name in kept}
        arrays |= {"bands.mean": self.statistics.mean, "bands.std": self.statistics.std}
        about: dict[str, Any] = {
            "method": self.method,
            "training": self.training,
            "wavelengths": self.wavelengths,
            "threshold": self.threshold,
        }
        tensors = {n: torch.from_numpy(np.ascontiguousarray(a)) for n, a in arrays.items()}
        save_novelty(self.novelty, about, tensors)
        store.save(Path(path), SPECTRA, about, tensors)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> SpectralModel:
        """Read what `save` wrote; refuse a damaged file and one of another version."""
        about, tensors = store.load(Path(path), SPECTRA)
        check_spectral(Path(path), about, tensors)
        samples, bands = (
            {name: tensor.numpy() for name, tensor in store.part(tensors, prefix).items()}
            for prefix in ("samples.", "bands.")
        )
        if about["method"] not in SPECTRAL:
            raise ModelError(
                f"{path} is by {about['method']}, which this version does not know: update thonecls"
            )
        prior = about["training"].get("config", {}).get("prior")
        known = isinstance(prior, float) and 0 < prior < 1
        if METHODS[about["method"]].needs_prior and not known:
            raise ModelError(
                f"{path} is by {about['method']} and lacks the class prior: train it again"
            )
        wavelengths = about.get("wavelengths")
        return SpectralModel(
            about["method"],
            Samples(**samples, others=np.empty(0, np.int64)),
            BandStatistics(**bands),
            about["training"],
            None if wavelengths is None else tuple(wavelengths),
            load_novelty(about, tensors),
            about.get("threshold", 0.5),
        )


def fit_spectral(
    method: str,
    scene: Source | NDArray[Any],
    positives: BoolArray,
    *,
    seed: int = 0,
    unlabeled: int = UNLABELED,
    prior: float | None = None,
) -> SpectralModel:
    """Let a method on single spectra learn from one scene of any size.

    scene: a scene, a source, or a (C, H, W) array; positives: (H, W); prior: the share of the class
    among all pixels, for a method that needs it. Of a scene above `WHOLE` pixels random windows are
    read, and those around labels.
    """
    if method not in SPECTRAL:
        raise ConfigError(f"'method' must be one of {', '.join(SPECTRAL)}. Got {method!r} instead")
    if METHODS[method].needs_prior and prior is None:
        raise ConfigError(
            f"{method} needs the class prior, the share of the class among all pixels: set 'prior' "
            "(`thonecls prior` estimates it, and 'estimate_prior' sets it)",
            options=("estimate_prior",),
        )
    began = time.perf_counter()
    source = as_source(scene)
    check_positives(np.flatnonzero(positives), source.shape)
    rng = np.random.default_rng(seed)
    seen, labels, _ = gather(source, thinned(positives, POSITIVES, seed), unlabeled, rng)
    config = {"method": method, "unlabeled": len(labels.unlabeled)}
    training = {
        "config": config if prior is None else {**config, "prior": float(prior)},
        "scene": {"bands": source.bands, "rows": source.shape[0], "columns": source.shape[1]},
        "positives": len(labels.positive),
        "unlabeled": len(labels.unlabeled),
        "threshold_reason": "where the method itself begins to say yes",
        "finished": True,
        "versions": {"thonecls": __version__, "commit": commit(), "numpy": np.__version__},
        "python": platform.python_version(),
        "seed": seed,
    }
    samples = SPECTRAL[method].learn(seen, labels)
    model = SpectralModel(method, samples, pooled_statistics([seen]), training)
    assert model.learnt  # now, so that what is wrong with the labels is told at once
    training["seconds"] = round(time.perf_counter() - began, 3)
    return model


def thinned(positives: BoolArray, most: int, seed: int) -> BoolArray:
    """Positives, (H, W), or a random part of them where they are more than so many."""
    pixels = np.flatnonzero(positives)
    if pixels.size <= most:
        return positives
    kept = np.zeros_like(positives)
    kept.flat[np.random.default_rng(seed).choice(pixels, most, replace=False)] = True
    return kept


def gather(
    source: Source, positives: BoolArray, unlabeled: int, rng: np.random.Generator
) -> tuple[Scene, Labels, NDArray[np.int64]]:
    """A scene, or what stands for a large one: windows one below the other, and labels in it.

    The last are the flat indices of the positives in the source.
    """
    if positives.size <= WHOLE:
        scene = read_all(source)
        labels = draw_labels(positives, scene.valid, unlabeled, rng)
        return scene, labels, labels.positive
    windows, at, pixels = cover(np.flatnonzero(positives), source.shape, SIDE, rng, WINDOWS)
    near = [source.read(*window) for window in windows]
    far = [scene for _, scene in random_scenes(source, SIDE, rng, WINDOWS)]
    # A row of nodata between two windows: they are no neighbours.
    parts = [_framed(part) for part in (*near, *far)]
    scene = Scene(
        np.concatenate([part.cube for part in parts], axis=1),
        np.concatenate([part.valid for part in parts]),
    )
    tops = np.cumsum([0, *(part.shape[0] for part in parts)])
    marked = np.full(scene.shape, -1, dtype=np.int64)
    marked[tops[at[:, 0]] + at[:, 1], at[:, 2]] = pixels
    fair = np.flatnonzero(scene.valid)
    fair = fair[fair >= tops[len(near)] * SIDE]  # windows around labels do not stand for the scene
    drawn = np.sort(rng.choice(fair, min(unlabeled, fair.size), replace=False))
    positive = np.flatnonzero((marked >= 0) & scene.valid)
    return scene, Labels(positive, drawn), marked.flat[positive]


def _framed(part: Scene) -> Scene:
    """A window `SIDE` columns wide, with a row of nodata below it."""
    more = ((0, 1), (0, SIDE - part.shape[1]))
    return Scene(np.pad(part.cube, ((0, 0), *more)), np.pad(part.valid, more))


AnyModel = Model | RatioModel | SpectralModel


def load_model(path: str | os.PathLike[str]) -> AnyModel:
    """A model of any kind, from its file."""
    kind = store.kind_of(Path(path), KIND)
    if kind == RATIO:
        return RatioModel.load(path)
    if kind == SPECTRA:
        return SpectralModel.load(path)
    if kind in (KIND, None):
        return Model.load(path)
    raise ModelError(f"{path} is a {kind}, where a model is needed: name a model's file")
