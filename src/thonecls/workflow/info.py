"""What a model, a run or a scene holds; and how common a class is in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from thonecls.io.arrays import read_array
from thonecls.io.inputs import is_array, read_labels, read_scenes
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster import open_raster
from thonecls.method.config import FAST
from thonecls.methods.spectral_model import AnyModel, SpectralModel, load_model
from thonecls.priors import ESTIMATORS
from thonecls.ratio.model import RatioModel
from thonecls.workflow.run_folder import model_files
from thonecls.workflow.summaries import PriorEstimate, PriorSummary
from thonecls.workflow.train import estimate, on_data


def describe(path: Path, *, variable: str | None = None) -> dict[str, Any]:
    """What a model file, a run's folder or a scene holds."""
    if path.suffix == ".safetensors" or (path.is_dir() and any(path.glob("model*.safetensors"))):
        return _describe_model(model_files(path)[0])
    return _describe_array(path, variable) if is_array(path) else _describe_raster(path, variable)


def _describe_model(path: Path) -> dict[str, Any]:
    model = load_model(path)
    history = model.training.pop("history", {})
    last = {name: values[-1] for name, values in history.items() if values}
    known = {} if model.wavelengths is None else {"wavelengths": list(model.wavelengths)}
    return {
        "model": str(path),
        "bands": model.bands,
        "weights": _weights(model),
        "threshold": model.threshold,
        **known,
        **model.training,
        "last_epoch": last,
    }


def _weights(model: AnyModel) -> int:
    """How many numbers were learnt, or are learnt from."""
    if isinstance(model, RatioModel):
        return sum(machine.weights.size for machine in model.machines)
    if isinstance(model, SpectralModel):
        return model.samples.positive.size + model.samples.unlabeled.size
    return sum(p.numel() for p in model.net.parameters())


def _describe_raster(path: Path, variable: str | None) -> dict[str, Any]:
    source = open_raster(path, variable=variable)
    raw, _ = source.missing(slice(0, 1), slice(0, 1))
    found: dict[str, Any] = {
        "scene": str(path),
        "place": source.grid.describe(),
        "type": str(raw.dtype),
        "nodata": _distinct(band.nodata for band in source.layers),
        "scale": _distinct(band.scale for band in source.layers),
        "offset": _distinct(band.offset for band in source.layers),
        "bands": source.bands,
        "left_out": list(source.dropped),
    }
    if source.product:
        found["product"] = list(source.product)
    if source.wavelengths:
        found["wavelengths"] = f"{min(source.wavelengths):.0f} to {max(source.wavelengths):.0f} nm"
    return found


def _distinct(values: Iterable[float | None]) -> Any:
    """The one value of all bands, or a list of their values; NaN, which JSON has not, as a word."""
    told = ("nan" if value is not None and np.isnan(value) else value for value in values)
    known = list(dict.fromkeys(told))
    return known[0] if len(known) == 1 else known


def _describe_array(path: Path, variable: str | None) -> dict[str, Any]:
    array = read_array(path, axes=3, variable=variable)
    lowest, highest, bad = np.inf, -np.inf, 0
    for part in array:  # one slice at a time: the cube may be larger than memory
        good = part[np.isfinite(part)]
        bad += part.size - good.size
        if good.size:
            lowest, highest = min(lowest, float(good.min())), max(highest, float(good.max()))
    return {
        "cube": str(path),
        "shape": list(array.shape),
        "type": str(array.dtype),
        "minimum": lowest if bad < array.size else None,
        "maximum": highest if bad < array.size else None,
        "not_finite": bad,
    }


def estimate_priors(
    scene: Path,
    labels: Path,
    *,
    seed: int = 0,
    scene_options: SceneOptions | None = None,
    label_options: LabelOptions | None = None,
) -> PriorSummary:
    """The share of the class in a scene by every estimator, each with its interval."""
    opened = read_scenes(scene, scene_options, labels=labels, label_options=label_options)
    marked = on_data(opened, read_labels(labels, opened.grid, label_options))
    priors = estimate(opened.source, marked.mask, FAST, seed, tuple(ESTIMATORS))
    found = {p.name: PriorEstimate(p.value, p.low, p.high) for p in priors}
    return PriorSummary(str(scene), str(labels), found)
