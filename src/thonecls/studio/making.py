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
from thonecls.method.model import Scorer
from thonecls.methods.spectral import spectral_angles
from thonecls.methods.spectral_model import SpectralModel, fit_spectral
from thonecls.scene import FloatArray, Scene
from thonecls.splits import Folds, coverage_of, judging_folds
from thonecls.studio.maps import LEVELS, LiveMap, MapFacts, RunMap, Spread, encode, snap
from thonecls.studio.view import SceneView
from thonecls.workflow.run_folder import Evidence, load_evidence, read_run

ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.int64]

Score = Callable[[Scene], FloatArray]

MOST_LABELS = 2000  # that a quick map learns from: it is to take no time
FILTERED = 30  # labels from which on a matched filter is better than the angle to the nearest
FOLDS = 3
FEW = 4  # labels left out that tell where to cut
FOUND = 0.9  # of them
MOST_MAPPED = 0.1  # of the scene, at first
COMPARED = 100  # labels, and spectra of what is not the class, that a pixel is compared with
FEW_MAPPED = 0.05  # of it, where labels tell nothing
NO_MORE = f"the {MOST_MAPPED:.0%} of the scene most like the labels, and no more at first"
NEAREST = 0.02  # of the scene, the share that similar pixels are at first
PARTIAL = (
    "labels come from a part of the scene only: their recall tells what is found near them, not "
    "what is found elsewhere"
)


def quick_map(
    view: SceneView,
    pixels: IntArray,
    spectra: FloatArray,
    revision: int,
    *,
    others: FloatArray | None = None,
    seed: int = 0,
) -> LiveMap:
    """A map at once, of labels whose spectra are known: (n, C) in the bands in use.

    By the angle to the nearest label; a matched filter needs more labels than that to be better.
    others: spectra that are not the class; what is more like them than like a label is left out.
    """
    began = time.perf_counter()
    known = np.isfinite(spectra).all(axis=1)
    pixels, spectra = pixels[known], spectra[known]
    if others is not None:
        others = others[np.isfinite(others).all(axis=1)]
    if not pixels.size:
        raise LabelError("no positive label lies on a valid pixel: label where there are data")
    if pixels.size > MOST_LABELS:
        kept = np.sort(np.random.default_rng(seed).choice(pixels.size, MOST_LABELS, replace=False))
        pixels, spectra = pixels[kept], spectra[kept]
    folds = _folds(pixels, view.shape, seed)
    caution = PARTIAL if coverage_of(pixels, view.shape) != "all" else None
    if pixels.size < FILTERED:
        method, name = "sam", "angle to the nearest label"
        score, left_out, reason = _by_angle(view.background, spectra, folds)
        score = _but(score, spectra, others)
        octets, cut = encode(score(_as_row(view.background))[0]), 0.5
    else:
        method, name = "matched-filter", "matched filter"
        score, left_out, reason = _by_filter(view.background, spectra, folds, seed)
        score = _but(score, spectra, others)
        octets = encode(score(_as_row(view.background))[0])
        most = snap(min(1.0, float(np.quantile(octets, 1 - MOST_MAPPED)) / LEVELS))
        cut, reason = (0.5, reason) if most <= 0.5 else (most, NO_MORE)
    facts = MapFacts(
        f"quick-{revision}",
        "quick",
        f"{name}, at once",
        method,
        revision,
        cut,
        cut,
        round(time.perf_counter() - began, 3),
    )
    found = left_out[np.isfinite(left_out)]
    spread = Spread(octets, encode(found) if found.size else None, reason, caution)
    return LiveMap(facts, spread, score)


def _folds(pixels: IntArray, shape: tuple[int, int], seed: int) -> Folds:
    """Labels in folds, each to be judged by labels that are not near it."""
    rng = np.random.default_rng(seed)
    return judging_folds(pixels, shape, FOLDS, coverage_of(pixels, shape), rng)


def _by_angle(
    background: FloatArray, spectra: FloatArray, folds: Folds
) -> tuple[Score, FloatArray, str]:
    """Scores by the angle to the nearest label, 0.5 at the cut; of labels left out; and why there.

    The cut finds most labels that are left out, but maps no more than a part of the scene: a few
    labels tell little of how the class varies.
    """
    targets = spectra.astype(np.float64)
    between = spectral_angles(targets, targets)
    alone = np.full(len(targets), np.nan)
    for number, kept in enumerate(folds.apart):
        held = folds.fold == number
        if kept.any() and held.any():
            alone[held] = between[np.ix_(held, kept)].min(axis=1)
    near = spectral_angles(background.astype(np.float64), targets).min(axis=1)
    told = alone[np.isfinite(alone)]
    if told.size >= FEW:
        most = np.quantile(near, MOST_MAPPED)
        cut = min(np.quantile(told, FOUND), most)
        reason = NO_MORE if cut == most else f"it finds {FOUND:.0%} of labels left out"
    else:
        cut = np.quantile(near, FEW_MAPPED)
        reason = f"the {FEW_MAPPED:.0%} of the scene most like the labels: more labels tell more"
    scale = 2 * max(float(cut), 1e-6)
    return angle_scores(targets, scale), _nearness(alone, scale), reason


def angle_scores(targets: NDArray[np.float64], scale: float) -> Score:
    """Scores of scenes: 1 at the angle 0 to the nearest target, 0 at the angle `scale`."""

    def score(scene: Scene) -> FloatArray:
        flat = scene.cube.reshape(scene.bands, -1).T.astype(np.float64)
        found = _nearness(spectral_angles(flat, targets).min(axis=1), scale).reshape(scene.shape)
        found[~scene.valid] = np.nan
        return found

    return score


def _but(score: Score, spectra: FloatArray, others: FloatArray | None) -> Score:
    """The same scores, 0 where a spectrum is nearer to one of the others than to any label."""
    if others is None or not len(others):
        return score
    own, refused = (
        part[np.linspace(0, len(part) - 1, min(len(part), COMPARED)).astype(int)].astype(np.float64)
        for part in (spectra, others)
    )

    def scored(scene: Scene) -> FloatArray:
        found = score(scene)
        flat = scene.cube.reshape(scene.bands, -1).T.astype(np.float64)
        away = (spectral_angles(flat, part).min(axis=1) for part in (own, refused))
        other = np.greater(*away).reshape(scene.shape)
        found[other & scene.valid] = 0
        return found

    return scored


def _nearness(angles: NDArray[np.float64], scale: float) -> FloatArray:
    return np.clip(1 - angles / scale, 0, 1).astype(np.float32)


def _by_filter(
    background: FloatArray, spectra: FloatArray, folds: Folds, seed: int
) -> tuple[Score, FloatArray, str]:
    """Scores by a matched filter, of labels left out, and why its cut lies where it does."""
    alone = np.full(len(spectra), np.nan, np.float32)
    for number, kept in enumerate(folds.apart):
        held = folds.fold == number
        if kept.any() and held.any():
            model = _fit(background, spectra[kept], seed)
            alone[held] = _scoring(model)(_as_row(spectra[held]))[0]
    score = _scoring(_fit(background, spectra, seed))
    return score, alone, f"it finds {FOUND:.0%} of labels left out"


def _as_row(spectra: FloatArray) -> Scene:
    """Spectra (n, C) as a scene of one row."""
    return Scene(np.ascontiguousarray(spectra.T)[:, None], np.ones((1, len(spectra)), dtype=bool))


def _fit(background: FloatArray, spectra: FloatArray, seed: int) -> SpectralModel:
    scene = _as_row(np.concatenate([background, spectra]))
    positive = np.zeros(scene.shape, dtype=bool)
    positive[0, len(background) :] = True
    return fit_spectral("matched-filter", scene, positive, seed=seed)


def _scoring(model: SpectralModel) -> Score:
    scorer = Scorer([model], device="cpu")

    def score(scene: Scene) -> FloatArray:
        return scorer.score(scene, slice(0, scene.shape[0]), slice(0, scene.shape[1])).probability

    return score


def similar_map(view: SceneView, row: int, column: int, revision: int) -> LiveMap:
    """Pixels by the angle of their spectrum to that of one pixel."""
    began = time.perf_counter()
    values, valid = view.spectrum(row, column)
    if not valid:
        raise LabelError(f"pixel {row}, {column} has no data: choose another")
    target = np.array([[values[i] for i in view.used]], dtype=np.float64)
    angles = spectral_angles(view.background.astype(np.float64), target)[:, 0]
    cut = max(float(np.quantile(angles, NEAREST)), 1e-6)
    score = angle_scores(target, 2 * cut)
    octets = encode(score(_as_row(view.background))[0])
    facts = MapFacts(
        f"similar-{row}-{column}",
        "similar",
        f"similar to row {row}, column {column}",
        "sam",
        revision,
        0.5,
        0.5,
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
