"""What follows a training: the map, the evidence, the pictures, the report, the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.config import TrainConfig
from thonecls.inputs import LabelInput, SceneInput
from thonecls.losses import ADDITIVE
from thonecls.methods.models import AnyModel
from thonecls.metrics import find_degenerate
from thonecls.report import draw_curves
from thonecls.scene import BoolArray
from thonecls.workflow.commands import TrainOptions
from thonecls.workflow.evidence import Evidence, look_over, save_evidence, spectra_at
from thonecls.workflow.layers import Style
from thonecls.workflow.mapping import (
    OnWindow,
    Sample,
    Windows,
    finish,
    make_map,
    tags_of,
    threshold_of,
)
from thonecls.workflow.reporting import TruthFile, write_report
from thonecls.workflow.runs import CURVES, RUN, model_files, write_json

JUDGED_BY = 4000  # unlabeled pixels of the scene
SPECTRA = 500  # labels and pixels whose spectra are kept


@dataclass(frozen=True, eq=False)
class Task:
    """A training that is ready to begin: positives to learn from, and those held out."""

    out: Path
    scene: SceneInput
    labels: LabelInput
    positives: BoolArray
    held_out: BoolArray
    config: TrainConfig
    options: TrainOptions


@dataclass(frozen=True, eq=False)
class Asked:
    """Which pixels the report wants to know of: labels held out, labels learnt from, others."""

    held_out: NDArray[np.int64]
    trained: NDArray[np.int64]
    unlabeled: NDArray[np.int64]

    def split(self, sample: Sample) -> list[NDArray[np.float32]]:
        """A sample of all of them, part by part."""
        ends = np.cumsum([self.held_out.size, self.trained.size])
        return np.split(sample.values, ends, axis=1)


def conclude(
    task: Task,
    models: Sequence[AnyModel],
    windows: Windows,
    facts: dict[str, Any],
    truth: TruthFile | None = None,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Map the scene, keep what the map is judged by, and write all that a person looks at."""
    summary = make_and_judge(task, models, windows, facts, on_window)
    finish(
        task.out,
        task.scene,
        label=task.options.label,
        minimum_area=task.options.minimum_area,
        threshold=summary["threshold"],
        positives=task.positives,
        learnt_from=summary["positives"],
    )
    write_json(task.out / RUN, summary)
    scores = write_report(task.out, truth)
    if scores is not None:
        summary["scores"] = asdict(scores)
        write_json(task.out / RUN, summary)
    return summary


def make_and_judge(
    task: Task,
    models: Sequence[AnyModel],
    windows: Windows,
    facts: dict[str, Any],
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Map the scene, keep what the map is judged by, and draw the training; the summary so far."""
    options, out = task.options, task.out
    asked = _ask(task)
    sample = Sample(np.concatenate([asked.held_out, asked.trained, asked.unlabeled]))
    threshold, reason = threshold_of(models, options.threshold)
    style = Style(threshold, options.floats, options.label, _tags(task))
    made = make_map(
        out,
        task.scene,
        windows,
        style,
        layers=(len(models) > 1, True),
        sample=sample,
        on_window=on_window,
    )
    _keep_evidence(task, asked, sample)
    summary = {
        **facts,
        **_of_training(task, models),
        "notes": [*task.scene.notes, *task.labels.notes],
        "held_out": int(asked.held_out.size),
        **made,
        "threshold_reason": reason,
        **_warning(task, asked, sample, made),
    }
    if "history" in models[0].training:
        history = dict(models[0].training["history"])
        if task.config.loss not in ADDITIVE:
            history.pop("unlabeled", None)
        draw_curves(out / CURVES, history, title="Training by epoch")
    return summary


def _ask(task: Task) -> Asked:
    rng = np.random.default_rng(task.options.seed)
    size = task.positives.size
    unlabeled = np.sort(rng.choice(size, min(JUDGED_BY, size), replace=False))
    return Asked(np.flatnonzero(task.held_out), np.flatnonzero(task.positives), unlabeled)


def _tags(task: Task) -> dict[str, Any]:
    tags = {"scene": task.scene.path.name, "method": task.options.method}
    return {**tags_of(model_files(task.out)), **tags, "settings": asdict(task.config)}


def _of_training(task: Task, models: Sequence[AnyModel]) -> dict[str, Any]:
    """What the summary tells of the training."""
    last = models[-1].training
    told = {"epochs_done": len(last["history"]["loss"])} if "history" in last else {}
    return {
        "positives": last["positives"],
        **told,
        **{name: last[name] for name in ("coverage", "recall_left_out") if name in last},
        "finished": last["finished"] and len(models) == task.options.seeds,
        "seconds": round(sum(model.training["seconds"] for model in models), 3),
        "config": last.get("config", asdict(task.config)),
        "versions": last["versions"],
    }


def _keep_evidence(task: Task, asked: Asked, sample: Sample) -> None:
    rng = np.random.default_rng(task.options.seed)
    labelled = np.concatenate([asked.held_out, asked.trained])
    if labelled.size > SPECTRA:
        labelled = rng.choice(labelled, SPECTRA, replace=False)
    wavelengths = np.array(task.scene.wavelengths or (), dtype=np.float64)
    spectra = spectra_at(task.scene.source, labelled)
    scene = look_over(task.scene.source, SPECTRA, rng)
    held, trained, unlabeled = asked.split(sample)
    save_evidence(task.out, Evidence(held, trained, unlabeled, spectra, scene, wavelengths))


def _warning(task: Task, asked: Asked, sample: Sample, made: dict[str, Any]) -> dict[str, str]:
    """A word on a map that says the same everywhere, if it does."""
    _, trained, unlabeled = (part.mean(axis=0) for part in asked.split(sample))
    together = np.concatenate([trained, unlabeled])[None]
    pixels = made["mapped_share"] * task.positives.size
    message = find_degenerate(together, np.arange(trained.size), made["threshold"], pixels=pixels)
    return {"warning": message} if message else {}
