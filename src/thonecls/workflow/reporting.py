"""The report of a run: how far to trust its map, as a page for people and as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from thonecls.costs import in_words
from thonecls.errors import FileError, LabelError
from thonecls.files import write_atomically
from thonecls.inputs import read_labels, read_truth
from thonecls.methods.models import load_model
from thonecls.metrics import Scores, evaluate
from thonecls.options import LabelOptions
from thonecls.page import (
    Picture,
    Report,
    as_json,
    draw_scores,
    draw_spectra,
    draw_thresholds,
    judge,
    render,
)
from thonecls.scene import BoolArray, Grid
from thonecls.trust import TrustReport, assess, count_votes, summarise
from thonecls.version import software
from thonecls.workflow.commands import repeat_command
from thonecls.workflow.evidence import Evidence, load_evidence
from thonecls.workflow.outputs import read_probability
from thonecls.workflow.runs import (
    ANEW,
    CURVES,
    OVERVIEW,
    REPORT,
    REPORT_JSON,
    RUN,
    model_files,
    read_run,
    write_json,
)

FACTS: dict[str, type | tuple[type, ...]] = {  # what a report is made from, of what run.json holds
    **dict.fromkeys(("cube", "labels", "out", "method"), str),
    **dict.fromkeys(("positives", "held_out", "seeds"), int),
    **dict.fromkeys(("threshold", "mapped_share", "seconds"), (int, float)),
    "notes": list,
    "config": dict,
}


@dataclass(frozen=True)
class TruthFile:
    """What is known of a scene, for evaluation only.

    options: which of the file is the class; negative: a filter for what it is not.
    """

    path: Path
    options: LabelOptions = field(default_factory=LabelOptions)
    negative: str | None = None


def write_report(out: Path, truth: TruthFile | None = None) -> Scores | None:
    """Write report.html and report.json of a run's folder; its scores, where truth is given.

    Everything comes from the folder itself: the scene is not needed again.
    """
    run = read_run(out, {})
    if not run:
        raise FileError(f"{out} holds no {RUN}: name the folder of a training")
    if wrong := [name for name, kind in FACTS.items() if not isinstance(run.get(name), kind)]:
        raise FileError(f"{out / RUN} does not tell the {', '.join(wrong)} of a training: {ANEW}")
    evidence = load_evidence(out)
    trust = _assess(out, run, evidence)
    scores = _recorded(out, run) if truth is None else _score(out, run, truth)
    report = Report(
        title=f"{run.get('label', 'class')} in {Path(run['cube']).name}",
        summary=summarise(trust),
        verdict=judge(trust),
        facts=_facts(run),
        command=repeat_command(run),
        maps=_pictures(out, {OVERVIEW: "The map"}),
        trust=trust,
        scores=scores,
        spectra=_spectra(evidence),
        curves=_curves(out, evidence, trust, run),
        settings=run["config"],
    )
    write_atomically(out / REPORT, render(report).encode())
    write_json(out / REPORT_JSON, as_json(report))
    return scores


def _assess(out: Path, run: Mapping[str, Any], evidence: Evidence) -> TrustReport:
    several = len(evidence.unlabeled) > 1
    held = evidence.held_out.mean(axis=0) if evidence.held_out.size else None
    return assess(
        held,
        evidence.unlabeled.mean(axis=0),
        rng=np.random.default_rng(0),
        threshold=run["threshold"],
        trained=evidence.trained.mean(axis=0),
        history=_history(out),
        degenerate=run.get("warning"),
        votes=count_votes(evidence.unlabeled, run["threshold"]) if several else None,
        covered=run["mapped_share"],
    )


def _history(out: Path) -> dict[str, list[float]]:
    """How the first model's training went, where there is one."""
    if not any(out.glob("model*.safetensors")):
        return {}
    history: dict[str, list[float]] = load_model(model_files(out)[0]).training.get("history", {})
    return history


def _recorded(out: Path, run: Mapping[str, Any]) -> Scores | None:
    """The scores that a demo wrote down: its truth is in no file of its own."""
    if "dataset" not in run or "scores" not in run:
        return None
    try:
        return Scores(**run["scores"])
    except TypeError as error:
        raise FileError(f"{out / RUN} holds no scores of a demo ({error}): {ANEW}") from error


def _score(out: Path, run: Mapping[str, Any], truth: TruthFile) -> Scores:
    """Against the truth, at pixels that training did not learn from."""
    grid, probability = read_probability(out)
    seen = read_labels(Path(run["labels"]), grid, _label_options(run)).mask
    of_class, tested = read_tested(truth, grid, seen)
    return evaluate(probability, of_class, tested, threshold=run["threshold"])


def read_tested(truth: TruthFile, grid: Grid, seen: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Where the class is, and what is tested: what the labels do not show to training."""
    try:
        of_class, tested = read_truth(truth.path, grid, truth.options, negative=truth.negative)
    except (LabelError, FileError) as error:  # they speak of the labels' options
        words = re.sub(r"--(target|layer|where)\b", r"--truth-\1", str(error))
        raise type(error)(words) from error
    if not (tested & ~seen).any():
        raise LabelError(
            f"{truth.path.name} knows no pixel besides the labels: give a truth of other pixels"
        )
    return of_class, tested & ~seen


def _label_options(run: Mapping[str, Any]) -> LabelOptions:
    return LabelOptions(**{f.name: run[f.name] for f in fields(LabelOptions) if f.name in run})


def _facts(run: Mapping[str, Any]) -> dict[str, object]:
    known = {
        "Scene": Path(run["cube"]).name,
        "Labels": f"{Path(run['labels']).name}: {run['positives']} pixels to learn from, "
        f"{run['held_out']} held out",
        "Method": run["method"],
        "Models": run["seeds"],
        "Threshold": run["threshold"],
        "Why this threshold": run.get("threshold_reason", "the paper's"),
        "Training": in_words(run["seconds"])
        + (f", {run['epochs_done']} epochs" if "epochs_done" in run else ""),
        "Version": software(),
    }
    return known | {f"Note {i}": note for i, note in enumerate(run["notes"], 1)}


def _pictures(out: Path, wanted: Mapping[str, str]) -> tuple[Picture, ...]:
    return tuple(
        Picture(caption, (out / name).read_bytes())
        for name, caption in wanted.items()
        if (out / name).exists()
    )


def _spectra(evidence: Evidence) -> tuple[Picture, ...]:
    if not (len(evidence.label_spectra) and len(evidence.scene_spectra)):
        return ()
    wavelengths = evidence.wavelengths if evidence.wavelengths.size else None
    png = draw_spectra(evidence.label_spectra, evidence.scene_spectra, wavelengths=wavelengths)
    return (Picture("Spectra of the labels and of the scene", png),)


def _curves(
    out: Path, evidence: Evidence, trust: TrustReport, run: Mapping[str, Any]
) -> tuple[Picture, ...]:
    held, unlabeled = (
        part.mean(axis=0)[np.isfinite(part.mean(axis=0))] if part.size else None
        for part in (evidence.held_out, evidence.unlabeled)
    )
    assert unlabeled is not None
    drawn = [
        Picture(
            "Probability of held-out labels and of unlabeled pixels",
            draw_scores(held, unlabeled, threshold=run["threshold"]),
        )
    ]
    if trust.held_out is not None:
        png = draw_thresholds(
            trust.held_out.curve,
            threshold=run["threshold"],
            suggested=trust.held_out.suggested.threshold,
        )
        drawn.append(Picture("What another threshold would find", png))
    return (*drawn, *_pictures(out, {CURVES: "How training went"}))
