"""Whether another scene's values are on the scale that a model learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from thonecls.errors import ModelError, SceneError
from thonecls.methods.spectral_model import AnyModel, SpectralModel
from thonecls.scene import BandStatistics, FloatArray

LOOKED_AT = 2000  # pixels
SAME = 0.6  # of a power of ten, between the bands' means: less may be light and season
UNIT = 1.5  # powers of ten between scenes that are learnt from together: more is another unit
SURE = 0.35  # from a whole power of ten, and between bands: less can only be another unit


def find_scale(spectra: FloatArray, statistics: BandStatistics) -> float:
    """By what values of a scene, (n, C) spectra of it, must be multiplied for a model: 1 or 10^k.

    A scale that differs, but not by a whole power of ten in all bands, is an error.
    """
    mean = np.abs(spectra.astype(np.float64).mean(axis=0))
    known = np.abs(statistics.mean.astype(np.float64))
    told = (mean > 1e-12) & (known > 1e-12)
    if not told.any():
        return 1.0
    logs = np.log10(mean[told] / known[told])
    middle = float(np.median(logs))
    if abs(middle) < SAME:
        return 1.0
    power = round(middle)
    if abs(middle - power) < SURE and float(np.median(np.abs(logs - middle))) < SURE:
        return 10.0**-power
    raise ModelError(
        f"the scene's values are about {10**middle:.3g} times those that the model was trained on: "
        "give reflectance in the same unit, or, if you know that it is right, say 'force'",
        options=("force",),
    )


def check_one_scale(spectra: Mapping[str, FloatArray]) -> None:
    """Refuse scenes, by name with (n, C) spectra of each, whose values are in different units.

    Land cover and light make scenes differ; more than `UNIT` powers of ten they do not.
    """
    means = {
        name: np.abs(some.astype(np.float64).mean(axis=0))
        for name, some in spectra.items()
        if len(some)
    }
    first, *others = means or {"": np.empty(0)}
    for name in others:
        told = (means[name] > 1e-12) & (means[first] > 1e-12)
        middle = (
            float(np.median(np.log10(means[name][told] / means[first][told]))) if told.any() else 0
        )
        if abs(middle) > UNIT:
            raise SceneError(
                f"the values of {name} are about {10**middle:.3g} times those of {first}: give all "
                "scenes in one unit, such as reflectance × 10,000"
            )


def rescaled(model: AnyModel, factor: float) -> AnyModel:
    """The model for scenes whose values must be multiplied by a factor."""
    old = model.statistics
    mean, std = ((part / factor).astype(np.float32) for part in (old.mean, old.std))
    statistics = replace(old, mean=mean, std=std)
    if isinstance(model, SpectralModel):
        samples = replace(
            model.samples, mean=model.samples.mean / factor, matrix=model.samples.matrix * factor
        )
        return replace(model, statistics=statistics, samples=samples)
    return replace(model, statistics=statistics)


def on_scale(
    models: list[AnyModel], spectra: FloatArray, *, force: bool
) -> tuple[list[AnyModel], str]:
    """The models, made ready for a scene of these spectra, and a word where that was needed."""
    try:
        alike = len(spectra) and spectra.shape[1] == models[0].bands  # else refused later on
        factor = find_scale(spectra, models[0].statistics) if alike else 1.0
    except ModelError:
        if not force:
            raise
        return models, ""
    if factor == 1 or force:
        return models, ""
    words = f"values were multiplied by {factor:g}, as the scene is in another unit than the model"
    return [rescaled(model, factor) for model in models], words
