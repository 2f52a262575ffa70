"""What follows a training: the map, the evidence, the pictures, the report, the summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from thonecls.io.inputs import SceneInput
from thonecls.maps import Marks
from thonecls.method.losses import ADDITIVE
from thonecls.method.model import Crossfit, Scored
from thonecls.methods.spectral_model import AnyModel
from thonecls.metrics import find_degenerate
from thonecls.mosaic import Mosaic
from thonecls.report.plots import draw_curves
from thonecls.workflow.crossfit import gather_evidence, spread_out
from thonecls.workflow.layers import Style
from thonecls.workflow.map import (
    OnWindow,
    Sample,
    Site,
    Windows,
    count_mapped,
    finish,
    make_map,
    moved,
    tags_of,
    threshold_of,
)
from thonecls.workflow.options import Task
from thonecls.workflow.report import RunParts, TruthFile, make_report
from thonecls.workflow.run_folder import (
    CURVES,
    REPORT,
    RUN,
    SUMMARY,
    Evidence,
    attempt,
    digests,
    model_files,
    save_evidence,
    scene_folder,
    write_json,
)
from thonecls.workflow.spectra import judged_at

Score = Callable[[SceneInput, Site | None], Windows]


def conclude(
    task: Task,
    models: Sequence[AnyModel],
    left_out: Crossfit,
    score: Score,
    facts: dict[str, Any],
    truth: TruthFile | None = None,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Map the scene, keep what the map is judged by, and write all that a person looks at.

    score: gives the windows of a scene, told what lies beside it. Whatever happens to pictures and
    report, the map and its summary are there before them.
    """
    summary, evidence = make_and_judge(task, models, left_out, score, facts, on_window)
    write_json(task.out / RUN, summary)
    summary |= draw_training(task, models)
    failed = finish(
        task.out,
        task.scene,
        label=task.options.label,
        minimum_area=task.options.minimum_area,
        polygons=task.options.polygons,
        marks=marks_of(left_out, summary["threshold"]),
        learnt_from=summary["positives"],
        facts={"threshold": summary["threshold"], **_origin(task)},
    )
    summary["notes"] += failed.get("notes", [])
    _add_problems(summary, failed)
    write_json(task.out / RUN, summary)
    parts = RunParts(summary, evidence, models[0].training.get("history", {}))
    return tell(task.out, summary, truth, parts)


def tell(
    out: Path,
    summary: dict[str, Any],
    truth: TruthFile | None = None,
    parts: RunParts | None = None,
) -> dict[str, Any]:
    """Write the report, and what it says into the summary; parts: as in `make_report`."""
    problems: list[str] = []
    # Of an earlier attempt at the report nothing is left.
    before = [words for words in summary.pop("problems", []) if not words.startswith(REPORT)]
    _add_problems(summary, {"problems": before})
    with attempt(REPORT, problems):
        written = make_report(out, truth, parts=parts)
        summary["verdict"] = written.verdict.level
        summary["words"] = written.verdict.words
        summary["finding"] = written.summary
        if written.scores is not None:
            summary["scores"] = asdict(written.scores)
    _add_problems(summary, {"problems": problems})
    write_json(out / RUN, summary)
    return summary


def draw_training(task: Task, models: Sequence[AnyModel]) -> dict[str, Any]:
    """Draw how the training went, where it has a history; for the summary, what failed."""
    problems: list[str] = []
    with attempt(CURVES, problems):
        if "history" in models[0].training:
            history = dict(models[0].training["history"])
            if task.config.loss.partition(":")[0] not in ADDITIVE:
                history.pop("unlabeled", None)
            draw_curves(task.out / CURVES, history, title="Training by epoch")
    return {"problems": problems} if problems else {}


def _add_problems(summary: dict[str, Any], failed: dict[str, Any]) -> None:
    if told := failed.get("problems"):
        summary["problems"] = [*summary.get("problems", []), *told]


def marks_of(left_out: Crossfit, threshold: float) -> Marks:
    """Labels as they are drawn: found or missed by a model that has not seen them."""
    known = np.isfinite(left_out.probability)
    return Marks(left_out.pixels, np.where(known, left_out.probability > threshold, np.nan))


def make_and_judge(
    task: Task,
    models: Sequence[AnyModel],
    left_out: Crossfit,
    score: Score,
    facts: dict[str, Any],
    on_window: OnWindow | None = None,
) -> tuple[dict[str, Any], Evidence]:
    """Map the scene, and keep what the map is judged by; the summary so far, and that."""
    options, out = task.options, task.out
    at = judged_at(task.scene.source)
    sample = Sample(np.concatenate([left_out.pixels, spread_out(task.scene.grid.shape, at)]))
    threshold, reason = threshold_of(models, options.threshold)
    style = Style(threshold, options.floats, options.label, _tags(task))
    width, layers = task.scene.grid.shape[1], (len(models) > 1, True)
    if task.scene.parts:
        made = _map_scenes(task, score, style, layers, sample, on_window)
    else:
        made = make_map(
            out,
            task.scene,
            score(task.scene, None),
            style,
            layers=layers,
            on_scored=lambda part: sample.take(part, width),
            on_window=on_window,
        )
    evidence, opinions = gather_evidence(
        task.scene.source,
        task.positives,
        left_out,
        sample.values[:, left_out.pixels.size :],
        method=options.method,
        at=at,
        seed=options.seed,
        wavelengths=task.scene.wavelengths,
    )
    if task.labels.negatives is not None:
        evidence = replace(evidence, negatives=np.flatnonzero(task.labels.negatives))
    save_evidence(out, evidence)
    summary = {
        **facts,
        **_of_training(task, models),
        "notes": [
            *task.scene.product,
            *task.scene.notes,
            *task.labels.notes,
            *_choice(models),
            *_beyond(models),
        ],
        "held_out": int(np.isfinite(left_out.probability).sum()),
        "opinions": opinions,
        **made,
        "threshold_reason": reason,
        **_warning(task, left_out, sample, made),
        "files": digests(out),
    }
    return summary, evidence


def _map_scenes(
    task: Task,
    score: Score,
    style: Style,
    layers: tuple[bool, bool],
    sample: Sample,
    on_window: OnWindow | None,
) -> dict[str, Any]:
    """Map each scene of a mosaic into a folder of its own; threshold and share of all of them."""
    mosaic = task.scene.source
    assert isinstance(mosaic, Mosaic)
    width = task.scene.grid.shape[1]
    total = sum(part.grid.shape[0] * part.grid.shape[1] for part in task.scene.grid.parts)
    before, valid, mapped = 0, 0, 0
    scenes = zip(task.scene.grid.parts, task.scene.parts, strict=True)
    for number, (part, scene) in enumerate(scenes):
        out = scene_folder(task.out, part.name)
        out.mkdir(parents=True, exist_ok=True)
        corner = part.row, part.column

        def take(scored: Scored, corner: tuple[int, int] = corner) -> None:
            sample.take(moved(scored, corner), width)

        def tell(done: int, _: int, before: int = before) -> None:
            if on_window is not None:
                on_window(before + done, total)

        own = replace(style, tags={**(style.tags or {}), "scene": scene.path.name})
        windows = score(scene, mosaic.site_of(number))
        made = make_map(out, scene, windows, own, layers=layers, on_scored=take, on_window=tell)
        more = finish(
            out,
            scene,
            label=task.options.label,
            minimum_area=task.options.minimum_area,
            polygons=task.options.polygons,
            picture=False,  # one of all scenes is drawn
            facts={"threshold": style.threshold, **_origin(task), "scene": scene.path.name},
        )
        facts = {"model": str(task.out), "cube": str(scene.path), "notes": [*scene.notes]}
        write_json(
            out / SUMMARY, {**facts, "threshold_reason": "as of the training", **made, **more}
        )
        before += part.grid.shape[0] * part.grid.shape[1]
        counts = count_mapped(out)
        valid, mapped = valid + counts[0], mapped + counts[1]
    share = mapped / valid if valid else 0.0
    return {"out": str(task.out), "threshold": style.threshold, "mapped_share": share}


def _tags(task: Task) -> dict[str, Any]:
    return {**_origin(task), "settings": asdict(task.config)}


def _origin(task: Task) -> dict[str, Any]:
    """What a map was made from, and by what."""
    tags = {"scene": task.scene.path.name, "method": task.options.method}
    return {**tags_of(model_files(task.out)), **tags}


def _of_training(task: Task, models: Sequence[AnyModel]) -> dict[str, Any]:
    """What the summary tells of the training."""
    last = models[-1].training
    told = {"epochs_done": len(last["history"]["loss"])} if "history" in last else {}
    return {
        "positives": last["positives"],
        **told,
        **{name: last[name] for name in ("coverage", "beyond", "recall_left_out") if name in last},
        "finished": last["finished"] and len(models) == task.options.seeds and not _stopped(task),
        "seconds": round(sum(model.training["seconds"] for model in models), 3),
        "config": last.get("config", asdict(task.config)),
        "versions": last["versions"],
    }


def _choice(models: Sequence[AnyModel]) -> list[str]:
    """Which method was taken and why, where that was left to us."""
    choice = models[-1].training.get("choice")
    return [] if choice is None else [choice["words"]]


def _beyond(models: Sequence[AnyModel]) -> list[str]:
    """Where the class seems to go on where nobody labelled, if it does."""
    beyond = models[-1].training.get("beyond")
    if beyond is None or beyond["fair"] is not False:
        return []
    return [
        f"{beyond['share']:.0%} of what is most like the labels lies {beyond['side']} all of them: "
        "the class seems to go on where nobody labelled; label some of it there"
    ]


def _stopped(task: Task) -> bool:
    """Whether somebody stopped a training that was to judge the map."""
    return any(task.out.glob("checkpoint-fold*"))


def _warning(
    task: Task, left_out: Crossfit, sample: Sample, made: dict[str, Any]
) -> dict[str, str]:
    """A word on a map that says the same everywhere, if it does."""
    together = sample.values.mean(axis=0)[None]
    pixels = made["mapped_share"] * task.positives.size  # of a mosaic a few more, with its gaps
    message = find_degenerate(
        together, np.arange(left_out.pixels.size), made["threshold"], pixels=pixels
    )
    return {"warning": message} if message else {}
