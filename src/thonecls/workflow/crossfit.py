"""Labels by models that have not seen them, whatever the method; and what other methods say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError
from thonecls.method.collage import cover
from thonecls.method.model import Crossfit, Scorer
from thonecls.methods.models import AnyModel
from thonecls.methods.spectral_model import fit_spectral, thinned
from thonecls.scene import BoolArray, FloatArray, Scene, Source
from thonecls.splits import Folds, coverage_of, judging_folds

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
    pixels, (fold, apart) = _divide(positives, folds, seed)
    probability = np.full(pixels.size, np.nan, np.float32)
    for number, some in _parts(positives, pixels, apart):
        held = fold == number
        scorer = Scorer([fit(some, number)], device=device)
        probability[held] = score_pixels(scorer, source, pixels[held])
    return Crossfit(pixels, fold, probability)


def parts_without(positives: BoolArray, folds: int, seed: int) -> dict[int, BoolArray]:
    """By fold, the (H, W) positives that a model may see which is to judge that fold's labels."""
    pixels, (_, apart) = _divide(positives, folds, seed)
    return dict(_parts(positives, pixels, apart))


def _divide(positives: BoolArray, folds: int, seed: int) -> tuple[NDArray[np.int64], Folds]:
    """The labels, by flat index, and their folds."""
    pixels, (rows, columns) = np.flatnonzero(positives), positives.shape
    coverage = coverage_of(pixels, (rows, columns))
    rng = np.random.default_rng(seed)
    return pixels, judging_folds(pixels, (rows, columns), folds, coverage, rng)


def _parts(
    positives: BoolArray, pixels: NDArray[np.int64], apart: BoolArray
) -> Iterator[tuple[int, BoolArray]]:
    """The positives of each fold that has any."""
    for number, kept in enumerate(apart):
        if kept.any():
            some = np.zeros_like(positives)
            some.flat[pixels[kept]] = True
            yield number, some


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
