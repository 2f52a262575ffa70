"""Which method for this scene? The one that best finds labels that were left out, by place."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from thonecls.errors import LabelError
from thonecls.methods.spectral import SPECTRAL
from thonecls.methods.spectral_model import SpectralModel, fit_spectral, gather, thinned
from thonecls.metrics import evaluate_pu
from thonecls.mosaic import windows_of
from thonecls.ratio.model import RatioModel, folds_of
from thonecls.scene import BoolArray, Source
from thonecls.splits import Coverage, coverage_of

# Those on single spectra that take seconds; the packages that some of them need may be missing.
CANDIDATES = {"matched-filter": "", "ace": "", "isolation-forest": "", "biased-svm": ""}
CANDIDATES |= {"elkan-noto": "pulearn"}
MOST = 500  # labels that a candidate is tried with
CLEARLY = 15.0  # percent by which another must find labels better than the ratio does
FOLDS = 3


def found_left_out(
    method: str,
    source: Source,
    positives: BoolArray,
    *,
    coverage: Coverage | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    unlabeled: int = 4000,
) -> float | None:
    """How often a label left out scores above an unlabeled pixel, in percent (PAUC).

    The labels are left out as the density ratio leaves them out: by whole places, or at random
    where they lie all over the scene. None where none could be left out.
    """
    rng = np.random.default_rng(seed)
    seen, labels, pixels = gather(source, thinned(positives, MOST, seed), unlabeled, rng)
    samples = SPECTRAL[method].learn(seen, labels)
    shape = source.shape
    scenes = windows_of(source)
    found = coverage or coverage_of(pixels, shape, scenes)
    fold, apart = folds_of(pixels, shape, folds, found, seed, scenes)
    held_out = np.full(len(pixels), np.nan)
    for number, kept in enumerate(apart):
        if kept.sum() < SPECTRAL[method].at_least:
            continue
        try:
            learnt = SPECTRAL[method].fit(replace(samples, positive=samples.positive[kept]), seed)
        except LabelError:  # too few are left
            continue
        held_out[fold == number] = learnt.score(samples.positive[fold == number])
    known = np.isfinite(held_out)
    if not known.any():
        return None
    others = SPECTRAL[method].fit(samples, seed).score(samples.unlabeled)
    return evaluate_pu(held_out[known], others).pauc


def choose(
    ratio: RatioModel,
    source: Source,
    positives: BoolArray,
    *,
    seed: int,
    unlabeled: int,
) -> RatioModel | SpectralModel:
    """The ratio, or the method on single spectra that finds labels left out clearly better.

    The model remembers what was compared (`training["choice"]`).
    """
    found: dict[str, float | None] = {"density-ratio": ratio.training["pauc_left_out"]}
    coverage = ratio.training["coverage"]  # by which its own labels were left out
    for method, package in CANDIDATES.items():
        if package and find_spec(package) is None:
            continue
        try:
            found[method] = found_left_out(
                method, source, positives, coverage=coverage, seed=seed, unlabeled=unlabeled
            )
        except LabelError:  # it needs more labels than there are
            continue
    known = {method: round(pauc, 1) for method, pauc in found.items() if pauc is not None}
    best = max(known, key=lambda method: known[method], default="density-ratio")
    ours = known.get("density-ratio", 100.0)
    if best == "density-ratio" or known[best] < ours + CLEARLY:
        return replace(ratio, training={**ratio.training, "choice": _told(known, ratio=True)})
    model = fit_spectral(best, source, positives, seed=seed, unlabeled=unlabeled)
    return replace(model, training={**model.training, "choice": _told(known, ratio=False)})


def _told(found: dict[str, float], *, ratio: bool) -> dict[str, Any]:
    """What was compared, and in words why this method was taken."""
    order = sorted(found, key=lambda method: -found[method])
    ranks = ", ".join(f"{method} {found[method]:.0f}" for method in order)
    taken = "density-ratio" if ratio else order[0]
    if not found:
        why = "no label could be left out"
    elif ratio:
        why = f"no other finds labels left out better by {CLEARLY:.0f} or more"
    else:
        why = "it finds labels left out clearly better than the density ratio"
    words = f"auto took {taken}: {why}"
    if found:
        words += f" (labels above how many of 100 unlabeled pixels: {ranks})"
    return {"method": taken, "found": found, "words": words}
