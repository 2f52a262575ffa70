"""The steps behind the commands: from files to a run folder, from a model to a map."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.arrays import read_array, read_positives, read_scene
from thonecls.checkpoint import EVERY
from thonecls.datasets import indian_pines
from thonecls.errors import ConfigError, FileError
from thonecls.files import check_writable, write_atomically
from thonecls.metrics import evaluate
from thonecls.model import Model
from thonecls.report import Truth, draw_curves, draw_overview
from thonecls.scene import Bands, Scene
from thonecls.splits import paper_split, positive_mask
from thonecls.train import Progress, TrainConfig, fit

MODEL, RUN, CHECKPOINT = "model.safetensors", "run.json", "checkpoint.safetensors"
OnStep = Callable[[Progress], bool | None]


def train_scene(
    cube: Path,
    labels: Path,
    out: Path,
    *,
    config: TrainConfig,
    seed: int = 0,
    target: int | None = None,
    axis: Bands | None = None,
    cube_variable: str | None = None,
    labels_variable: str | None = None,
    threshold: float = 0.5,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = EVERY,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Train on a scene and its labels; write model, map and pictures to the folder `out`.

    Returns the summary that is also written as run.json. With `resume`, a training that was
    stopped or killed goes on from its last checkpoint, and a finished one is left as it is.
    """
    check_threshold(threshold)
    check_writable(out)
    if resume and (out / RUN).exists() and not (out / CHECKPOINT).exists():
        finished: dict[str, Any] = json.loads((out / RUN).read_text())
        return finished
    if not (resume or overwrite):
        _refuse_to_overwrite(out)
    found = read_positives(labels, target=target, variable=labels_variable)
    scene = read_scene(cube, axis=axis, variable=cube_variable, labels=found)
    positives = positive_mask(found, scene.shape)
    generator = torch.Generator().manual_seed(seed)
    if overwrite:
        (out / CHECKPOINT).unlink(missing_ok=True)
    model = fit(
        scene,
        positives,
        config=config,
        generator=generator,
        on_step=on_step,
        checkpoint=out / CHECKPOINT,
        checkpoint_every=checkpoint_every,
    )
    facts = {"cube": str(cube), "labels": str(labels), "seed": seed}
    return _write_run(out, model, scene, positives, facts, title=cube.name, threshold=threshold)


def map_scene(
    model: Path,
    cube: Path,
    out: Path,
    *,
    axis: Bands | None = None,
    variable: str | None = None,
    threshold: float = 0.5,
    device: str = "auto",
) -> dict[str, Any]:
    """Map a scene with a saved model into the folder `out`; returns a summary."""
    check_threshold(threshold)
    check_writable(out)
    trained = Model.load(model)
    scene = read_scene(cube, axis=axis, variable=variable, bands=trained.bands)
    probability = trained.score(scene, device=device)
    summary = {
        "model": str(model),
        "cube": str(cube),
        **_write_map(out, probability, threshold),
    }
    draw_overview(
        out / "overview.png", scene, None, probability, title=cube.name, threshold=threshold
    )
    write_json(out / "map.json", summary)
    return summary


def demo(
    out: Path,
    *,
    config: TrainConfig,
    target: int = 2,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Map one class of Indian Pines from 100 labels and compare it with the ground truth."""
    check_writable(out)
    data = indian_pines()
    split = paper_split(data.truth, target)
    generator = torch.Generator().manual_seed(seed)
    model = fit(data.scene, split.labels, config=config, generator=generator, on_step=on_step)
    positives = np.zeros(data.scene.shape, dtype=bool)
    positives.flat[split.labels.positive] = True
    facts = {"dataset": data.name, "target": target, "class": data.classes[target], "seed": seed}
    return _write_run(
        out,
        model,
        data.scene,
        positives,
        facts,
        title=f"Indian Pines, {data.classes[target]}",
        rgb=data.rgb,
        truth=Truth(data.truth == target, split.test),
    )


def describe(path: Path, *, variable: str | None = None) -> dict[str, Any]:
    """What a model file, or an array file, holds."""
    if path.is_dir():
        path = path / MODEL
    if path.suffix == ".safetensors":
        model = Model.load(path)
        history = model.training.pop("history", {})
        last = {name: values[-1] for name, values in history.items() if values}
        weights = sum(p.numel() for p in model.net.parameters())
        return {
            "model": str(path),
            "bands": model.bands,
            "weights": weights,
            **model.training,
            "last_epoch": last,
        }
    array = read_array(path, axes=3, variable=variable)
    values = np.asarray(array, dtype=np.float64)
    finite = np.isfinite(values)
    return {
        "cube": str(path),
        "shape": list(array.shape),
        "type": str(array.dtype),
        "minimum": float(values[finite].min()) if finite.any() else None,
        "maximum": float(values[finite].max()) if finite.any() else None,
        "not_finite": int((~finite).sum()),
    }


def check_threshold(threshold: float) -> None:
    """Refuse a threshold that is not a probability."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"'threshold' must be from 0 to 1. Got {threshold!r} instead")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def _write_run(
    out: Path,
    model: Model,
    scene: Scene,
    positives: NDArray[np.bool_],
    facts: dict[str, Any],
    *,
    title: str,
    threshold: float = 0.5,
    rgb: tuple[int, int, int] | None = None,
    truth: Truth | None = None,
) -> dict[str, Any]:
    """Model, map, pictures and run.json of a finished training; returns what run.json holds."""
    model.save(out / MODEL)  # first of all: the rest can be made again from it
    training = model.training
    probability = model.score(scene, device=training["config"]["device"])
    title += f", from {int(positives.sum())} positive labels"
    summary = {
        **facts,
        "positives": training["positives"],
        "epochs_done": len(training["history"]["loss"]),
        **{k: training[k] for k in ("finished", "seconds", "config", "versions")},
        **_write_map(out, probability, threshold),
    }
    if truth is not None:
        scores = evaluate(probability, truth.of_class, truth.tested, threshold=threshold)
        summary["scores"] = asdict(scores)
        title += (
            f": precision {scores.precision:.1f}, recall {scores.recall:.1f}, F1 {scores.f1:.1f}"
        )
    draw_overview(
        out / "overview.png",
        scene,
        positives,
        probability,
        title=title,
        threshold=threshold,
        rgb=rgb,
        truth=truth,
    )
    draw_curves(out / "curves.png", training["history"], title="Training by epoch")
    write_json(out / RUN, summary)
    if training["finished"]:
        (out / CHECKPOINT).unlink(missing_ok=True)
    return summary


def _refuse_to_overwrite(out: Path) -> None:
    if (out / CHECKPOINT).exists():
        raise FileError(
            f"{out} holds an unfinished training: say --resume to go on with it, or --overwrite"
        )
    if (out / MODEL).exists():
        raise FileError(f"{out} holds a model already: choose another --out, or say --overwrite")


def _write_map(out: Path, probability: NDArray[np.float32], threshold: float) -> dict[str, Any]:
    """probability.npy and map.npy (uint8: 1 class, 0 other, 255 nodata), and their figures."""
    valid = np.isfinite(probability)
    mapped = np.where(valid, probability > threshold, 255).astype(np.uint8)
    for name, array in (("probability.npy", probability), ("map.npy", mapped)):
        buffer = io.BytesIO()
        np.save(buffer, array)
        write_atomically(out / name, buffer.getvalue())
    share = float((mapped == 1).sum() / valid.sum())
    return {"out": str(out), "threshold": threshold, "mapped_share": share}
