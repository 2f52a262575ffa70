"""Labels by models that have not seen them, whatever the method; and what other methods say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from thonecls.collage import cover
from thonecls.errors import LabelError
from thonecls.methods.models import AnyModel
from thonecls.methods.spectral_model import fit_spectral, thinned
from thonecls.model import Crossfit, Scorer
from thonecls.scene import BoolArray, FloatArray, Scene, Source
from thonecls.splits import coverage_of, judging_folds

SIDE = 64  # pixels of the windows in which labels are scored
MOST = 500  # labels that a second opinion learns from: it is to take seconds
OPINIONS = ("matched-filter", "biased-svm")  # seconds each, and no package beside the usual ones


def crossfit(
    fit: Callable[[BoolArray, int], AnyModel],
    source: Source,
    positives: BoolArray,
    *,
    folds: int,
    seed: int,
    device: str = "auto",
) -> Crossfit:
    """Every label scored by a model of others; fit: of (H, W) positives and the fold's number."""
    pixels = np.flatnonzero(positives)
    coverage = coverage_of(pixels, source.shape)
    rng = np.random.default_rng(seed)
    fold, apart = judging_folds(pixels, source.shape, folds, coverage, rng)
    probability = np.full(pixels.size, np.nan, np.float32)
    for number, kept in enumerate(apart):
        held = np.flatnonzero(fold == number)
        if not kept.any():
            continue
        some = np.zeros_like(positives)
        some.flat[pixels[kept]] = True
        scorer = Scorer([fit(some, number)], device=device)
        probability[held] = score_pixels(scorer, source, pixels[held])
    return Crossfit(pixels, fold, probability)


def score_pixels(scorer: Scorer, source: Source, pixels: NDArray[np.int64]) -> FloatArray:
    """The probability of single pixels, by flat index, read in windows: (n,), NaN on nodata."""
    rng = np.random.default_rng(0)
    windows, _, _ = cover(pixels, source.shape, SIDE, rng, pixels.size)
    rows, columns = np.divmod(pixels, source.shape[1])
    found = np.full(pixels.size, np.nan, np.float32)
    for down, across in windows:
        inside = (rows >= down.start) & (rows < down.stop)
        inside &= (columns >= across.start) & (columns < across.stop) & ~np.isfinite(found)
        if inside.any():
            part = scorer.score(source, down, across).probability
            found[inside] = part[rows[inside] - down.start, columns[inside] - across.start]
    return found


def second_opinions(
    source: Source, positives: BoolArray, looked_at: Scene, *, seed: int, but: str
) -> dict[str, FloatArray]:
    """Scores (h, w) of a small scene by methods on single spectra that learn from the same labels.

    but: the method whose map they are to be compared with. A method for which labels are too few
    has no opinion.
    """
    found = {}
    positives = thinned(positives, MOST, seed)
    for method in OPINIONS:
        if method == but:
            continue
        try:
            found[method] = fit_spectral(method, source, positives, seed=seed).score(looked_at)
        except LabelError:
            continue
    return found


def nothing_left_out(pixels: NDArray[np.int64]) -> Crossfit:
    """Of a training that leaves no label out."""
    return Crossfit(pixels, np.full(pixels.size, -1), np.full(pixels.size, np.nan, np.float32))
