"""Maps in the making: at once from a few spectra, and of a training that has ended.

Apart from `maps`, as it takes seconds to import: the server answers before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError
from thonecls.methods.spectral import spectral_angles
from thonecls.methods.spectral_model import SpectralModel, fit_spectral
from thonecls.model import Scorer
from thonecls.scene import FloatArray, Scene
from thonecls.splits import coverage_of, judging_folds
from thonecls.studio.maps import LEVELS, LiveMap, MapFacts, RunMap, Spread, encode, snap
from thonecls.studio.view import SceneView
from thonecls.workflow.evidence import Evidence, load_evidence
from thonecls.workflow.runs import read_run

ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.int64]

QUICK = "matched-filter"  # of single spectra, in a fraction of a second, from one label on
MOST_LABELS = 2000  # that a quick map learns from: it is to take no time
FOLDS = 3
NEAREST = 0.02  # of the scene, the share that similar pixels are at first
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
