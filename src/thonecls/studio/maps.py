"""Maps that the page shows: made on the fly from a model, or read from a training's folder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio.enums import Resampling
from rasterio.windows import Window

from thonecls.errors import ConfigError, LabelError
from thonecls.methods.spectral import spectral_angles
from thonecls.methods.spectral_model import SpectralModel, fit_spectral
from thonecls.model import Scorer
from thonecls.raster import open_gdal
from thonecls.scene import FloatArray, Scene
from thonecls.splits import coverage_of, judging_folds
from thonecls.studio.view import TILE, Cache, SceneView
from thonecls.workflow.evidence import Evidence, load_evidence
from thonecls.workflow.runs import read_run

ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.int64]

LEVELS = 200  # steps of probability in a tile
NODATA = 255
QUICK = "matched-filter"  # of single spectra, in a fraction of a second, from one label on
MOST_LABELS = 2000  # that a quick map learns from: it is to take no time
FOLDS = 3
NEAREST = 0.02  # of the scene, the share that similar pixels are at first
STEPS = (np.arange(LEVELS + 1) / LEVELS).astype(np.float32)


def encode(probability: FloatArray) -> ByteArray:
    """Probabilities as octets: octet > k where the probability is above k / 200, 255 on nodata.

    >>> encode(np.array([0, 0.3, 0.3001, 1, np.nan], np.float32)).tolist()
    [0, 60, 61, 200, 255]
    """
    octets = np.searchsorted(STEPS, np.nan_to_num(probability), side="left")
    return np.where(np.isnan(probability), NODATA, np.minimum(octets, LEVELS)).astype(np.uint8)


def snap(cut: float) -> float:
    """The cut in steps of a tile's octets."""
    if not 0 <= cut <= 1:
        raise ConfigError(f"'cut' must be from 0 to 1. Got {cut!r} instead")
    return round(cut * LEVELS) / LEVELS


@dataclass(frozen=True)
class MapFacts:
    """What is known of a map; revision: of the labels it learnt from; cut: the one in use."""

    id: str
    kind: Literal["quick", "similar", "run"]
    name: str
    method: str
    revision: int
    cut: float
    own_cut: float
    seconds: float
    verdict: dict[str, str] | None = None


@dataclass(frozen=True, eq=False)
class Spread:
    """Octets of a sample of the scene, and of labels by models that have not seen them.

    caution: why the labels' recall is not that of the class, where it is not.
    """

    scene: ByteArray
    labels: ByteArray | None
    reason: str
    caution: str | None = None


class Shown(Protocol):
    """A map whose tiles can be asked for."""

    facts: MapFacts
    spread: Spread

    def tile(self, view: SceneView, z: int, x: int, y: int) -> ByteArray:
        """The octets of a tile, as far as it lies in the scene."""


@dataclass(eq=False)
class LiveMap:
    """A map of single spectra: a tile is scored when somebody looks at it."""

    facts: MapFacts
    spread: Spread
    score: Callable[[Scene], FloatArray]

    def tile(self, view: SceneView, z: int, x: int, y: int) -> ByteArray:
        return encode(self.score(view.read_tile(z, x, y)))


class RunMap:
    """The map of a training, from its folder."""

    def __init__(self, facts: MapFacts, spread: Spread, folder: Path) -> None:
        self.facts, self.spread, self.folder = facts, spread, folder
        self._lock = threading.Lock()
        self._array: NDArray[Any] | None = None
        self._dataset: Any = None
        if (folder / "probability.npy").exists():
            self._array = np.load(folder / "probability.npy", mmap_mode="r")
        else:
            path = folder / "probability.tif"
            self._dataset = open_gdal(str(path), path)

    def tile(self, view: SceneView, z: int, x: int, y: int) -> ByteArray:
        rows, columns, factor = view.window(z, x, y)
        if self._array is not None:
            part = self._array[
                rows.start : rows.stop : factor, columns.start : columns.stop : factor
            ]
            return encode(np.asarray(part))
        shape = tuple(-(-(part.stop - part.start) // factor) for part in (rows, columns))
        with self._lock:
            read = self._dataset.read(
                1,
                window=Window.from_slices(rows, columns),
                out_shape=shape,
                resampling=Resampling.nearest,  # of overviews, which are means
            )
        return encode(read)


class Maps:
    """The maps there are, by id, and the tiles of them that were asked for last."""

    def __init__(self, view: SceneView) -> None:
        self.view = view
        self._maps: dict[str, Shown] = {}
        self._tiles = Cache()
        self._lock = threading.RLock()

    def put(self, shown: Shown) -> None:
        """Add a map; of those that are no training only the newest of a kind is kept."""
        with self._lock:
            if shown.facts.kind != "run":
                self.drop(shown.facts.kind)
            self._maps[shown.facts.id] = shown

    def drop(self, kind: str) -> bool:
        """Forget the maps of a kind; whether there were any."""
        with self._lock:
            gone = [name for name, shown in self._maps.items() if shown.facts.kind == kind]
            for name in gone:
                del self._maps[name]
            return bool(gone)

    def forget(self, name: str) -> None:
        with self._lock:
            self._maps.pop(name, None)

    def get(self, name: str) -> Shown | None:
        return self._maps.get(name)

    def set_cut(self, name: str, cut: float | None) -> MapFacts | None:
        """Another cut, None for the map's own; None where there is no such map."""
        with self._lock:
            if (shown := self._maps.get(name)) is None:
                return None
            own = shown.facts.own_cut
            shown.facts = replace(shown.facts, cut=own if cut is None else snap(cut))
            return shown.facts

    def facts(self) -> list[MapFacts]:
        with self._lock:
            return [shown.facts for shown in self._maps.values()]

    def newest(self, kind: str) -> Shown | None:
        with self._lock:
            found = [shown for shown in self._maps.values() if shown.facts.kind == kind]
        return found[-1] if found else None

    def shown(self) -> str | None:
        """The map to look at: the newest training, else the quick one."""
        found = self.newest("run") or self.newest("quick")
        return None if found is None else found.facts.id

    def tile(self, name: str, z: int, x: int, y: int) -> bytes | None:
        """A tile's octets, row by row; None where there is no such map."""
        if (shown := self._maps.get(name)) is None:
            return None

        def make() -> bytes:
            whole = np.full((TILE, TILE), NODATA, np.uint8)
            part = shown.tile(self.view, z, x, y)
            whole[: part.shape[0], : part.shape[1]] = part
            return whole.tobytes()

        self.view.window(z, x, y)  # an error where it lies outside
        return self._tiles.get((name, z, x, y), make)


def cut_curve(shown: Shown, hectares: float | None, pixels: int) -> dict[str, Any]:
    """What every cut would map, by octet; hectares: of a pixel; pixels: valid ones of the scene."""
    scene = np.bincount(shown.spread.scene, minlength=256)[: LEVELS + 1]
    share = _above(scene)
    labels = shown.spread.labels
    counted = None if labels is None else np.bincount(labels, minlength=256)[: LEVELS + 1]
    return {
        "map": shown.facts.id,
        "cut": shown.facts.cut,
        "own_cut": shown.facts.own_cut,
        "reason": shown.spread.reason,
        "scene": scene.tolist(),
        "labels": None if counted is None else counted.tolist(),
        "share": share.round(6).tolist(),
        "hectares": None if hectares is None else (share * pixels * hectares).round(4).tolist(),
        "recall": None if counted is None else _above(counted).round(4).tolist(),
        "left_out": 0 if counted is None else int(counted.sum()),
        "caution": shown.spread.caution,
        "pixels": pixels,
    }


def _above(counts: IntArray) -> NDArray[np.float64]:
    """The share of what is counted above each octet."""
    return np.asarray(1 - np.cumsum(counts) / max(1, int(counts.sum())))


PARTIAL = (
    "labels come from a part of the scene only: their recall tells what is found near them, not "
    "what is found elsewhere"
)


def quick_map(
    view: SceneView, pixels: IntArray, spectra: FloatArray, revision: int, seed: int = 0
) -> LiveMap:
    """A map by a matched filter, of labels whose spectra are known: (n, C) in the bands in use."""
    began = time.perf_counter()
    known = np.isfinite(spectra).all(axis=1)
    pixels, spectra = pixels[known], spectra[known]
    if not pixels.size:
        raise LabelError("no positive label lies on a valid pixel: label where there are data")
    if pixels.size > MOST_LABELS:
        kept = np.random.default_rng(seed).choice(pixels.size, MOST_LABELS, replace=False)
        pixels, spectra = pixels[np.sort(kept)], spectra[np.sort(kept)]
    background = view.background
    model = _fit(background, spectra, seed)
    score = _scoring(model)
    coverage = coverage_of(pixels, view.shape)
    left_out = _leave_out(view.shape, background, pixels, spectra, seed)
    spread = Spread(
        encode(score(_as_row(background))[0]),
        left_out,
        model.training["threshold_reason"],
        PARTIAL if coverage != "all" else None,
    )
    facts = MapFacts(
        f"quick-{revision}",
        "quick",
        "matched filter, at once",
        QUICK,
        revision,
        model.threshold,
        model.threshold,
        round(time.perf_counter() - began, 3),
    )
    return LiveMap(facts, spread, score)


def _as_row(spectra: FloatArray) -> Scene:
    """Spectra (n, C) as a scene of one row."""
    return Scene(np.ascontiguousarray(spectra.T)[:, None], np.ones((1, len(spectra)), dtype=bool))


def _fit(background: FloatArray, spectra: FloatArray, seed: int) -> SpectralModel:
    scene = _as_row(np.concatenate([background, spectra]))
    positive = np.zeros(scene.shape, dtype=bool)
    positive[0, len(background) :] = True
    return fit_spectral(QUICK, scene, positive, seed=seed)


def _scoring(model: SpectralModel) -> Callable[[Scene], FloatArray]:
    scorer = Scorer([model], device="cpu")

    def score(scene: Scene) -> FloatArray:
        return scorer.score(scene, slice(0, scene.shape[0]), slice(0, scene.shape[1])).probability

    return score


def _leave_out(
    shape: tuple[int, int],
    background: FloatArray,
    pixels: IntArray,
    spectra: FloatArray,
    seed: int,
) -> ByteArray | None:
    """Octets of labels by models of others; None where they are too few or all of one place."""
    if pixels.size < 2 * FOLDS:
        return None
    rng = np.random.default_rng(seed)
    fold, apart = judging_folds(pixels, shape, FOLDS, coverage_of(pixels, shape), rng)
    found = np.full(pixels.size, np.nan, np.float32)
    for number, kept in enumerate(apart):
        held = fold == number
        if kept.any() and held.any():
            model = _fit(background, spectra[kept], seed)
            found[held] = _scoring(model)(_as_row(spectra[held]))[0]
    known = np.isfinite(found)
    return encode(found[known]) if known.any() else None


def similar_map(view: SceneView, row: int, column: int, revision: int) -> LiveMap:
    """Pixels by the angle of their spectrum to that of one pixel."""
    began = time.perf_counter()
    values, valid = view.spectrum(row, column)
    if not valid:
        raise LabelError(f"pixel {row}, {column} has no data: choose another")
    target = np.array([[values[i] for i in view.used]], dtype=np.float64)
    angles = spectral_angles(view.background.astype(np.float64), target)[:, 0]
    half = max(float(np.median(angles)), 1e-6)

    def score(scene: Scene) -> FloatArray:
        flat = scene.cube.reshape(scene.bands, -1).T.astype(np.float64)
        near = 1 - spectral_angles(flat, target)[:, 0] / half
        found = np.clip(near, 0, 1).astype(np.float32).reshape(scene.shape)
        found[~scene.valid] = np.nan
        return found

    octets = encode(score(_as_row(view.background))[0])
    cut = snap(min(1.0, float(np.quantile(octets, 1 - NEAREST)) / LEVELS))
    facts = MapFacts(
        f"similar-{row}-{column}",
        "similar",
        f"similar to row {row}, column {column}",
        "sam",
        revision,
        cut,
        cut,
        round(time.perf_counter() - began, 3),
    )
    reason = f"the {NEAREST:.0%} of the scene whose spectra are nearest in angle"
    return LiveMap(facts, Spread(octets, None, reason), score)


def run_map(folder: Path, name: str, revision: int, shape: tuple[int, int]) -> RunMap:
    """The map of a training that has ended; folder: as `train_scene` wrote it."""
    run = read_run(folder, {})
    evidence: Evidence = load_evidence(folder, shape)
    known = np.isfinite(evidence.crossfit)
    unlabeled = evidence.unlabeled.mean(axis=0)
    spread = Spread(
        encode(unlabeled[np.isfinite(unlabeled)].astype(np.float32)),
        encode(evidence.crossfit[known].astype(np.float32)) if known.any() else None,
        run.get("threshold_reason", "as in the paper"),
        PARTIAL if run.get("coverage", "all") != "all" else None,
    )
    verdict = None
    if "verdict" in run:
        told = {"level": run["verdict"], "words": run["words"], "finding": run["finding"]}
        verdict = {key: str(value) for key, value in told.items()}
    cut = snap(float(run["threshold"]))
    facts = MapFacts(
        name,
        "run",
        f"{run['method']}, from {run['positives']:,} labels",
        run["method"],
        revision,
        cut,
        cut,
        float(run["seconds"]),
        verdict,
    )
    return RunMap(facts, spread, folder)
