"""The report of a run: how far to trust its map, as a page for people and as JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thonecls import schema
from thonecls.errors import FileError, LabelError
from thonecls.files import check_writable, locked, write_atomically
from thonecls.io.grid import Grid
from thonecls.io.inputs import read_labels, read_truth
from thonecls.io.options import LabelOptions
from thonecls.maps import Measure, scene_grid
from thonecls.methods import METHODS
from thonecls.methods.costs import in_words
from thonecls.methods.spectral_model import load_model
from thonecls.metrics import Scores, evaluate
from thonecls.report.report import (
    Picture,
    Report,
    Verdict,
    Verified,
    as_json,
    draw_disagreement,
    draw_novelty,
    draw_probability,
    draw_scores,
    draw_spectra,
    draw_thresholds,
    hectares,
    judge,
    render,
    summarise_points,
)
from thonecls.scene import BoolArray
from thonecls.schema import Rule
from thonecls.trust import (
    Circumstances,
    TrustReport,
    assess,
    compare,
    count_votes,
    find_places,
    summarise,
)
from thonecls.version import software
from thonecls.workflow.options import repeat_command
from thonecls.workflow.run_folder import (
    ANEW,
    CURVES,
    ERRORS,
    OVERVIEW,
    REPORT,
    REPORT_JSON,
    RUN,
    Evidence,
    check_run,
    check_together,
    load_evidence,
    model_files,
    read_novelty,
    read_probability,
    read_run,
    write_json,
)
from thonecls.workflow.sample import checked_points, hectares_of_pixel, verify_run


class Written(NamedTuple):
    """What a report says: scores, where truth was given, the verdict, and the figures in words."""

    scores: Scores | None
    verdict: Verdict
    summary: str


@dataclass(frozen=True)
class TruthFile:
    """What is known of a scene, for evaluation only.

    options: which of the file is the class; negative: a filter for what it is not.
    """

    path: Path
    options: LabelOptions = field(default_factory=LabelOptions)
    negative: str | None = None


def write_report(
    out: Path, truth: TruthFile | None = None, verified: Path | None = None
) -> Written:
    """Write report.html and report.json of a run's folder.

    Everything comes from the folder itself: the scene is not needed again. truth: gives scores;
    verified: points of `draw_sample` with answers. Of what is not given, the report has what the
    one before it had.
    """
    if not (out / RUN).exists():  # before anything is made there
        raise FileError(f"{out} holds no {RUN}: name the folder of a training")
    check_writable(out)
    with locked(out):
        written = make_report(out, truth, verified or checked_points(out))
        if truth is not None and written.scores is not None:
            write_json(out / RUN, read_run(out, {}) | {"scores": asdict(written.scores)})
    return written


@dataclass(frozen=True, eq=False)
class RunParts:
    """What a report is made of besides the maps; history: how the first model's training went."""

    run: Mapping[str, Any]
    evidence: Evidence
    history: Mapping[str, Sequence[float]]


def make_report(
    out: Path,
    truth: TruthFile | None = None,
    verified: Path | None = None,
    parts: RunParts | None = None,
) -> Written:
    """`write_report` in a folder that this process holds; parts: where it has just made them."""
    grid, probability = read_probability(out)
    scene = scene_grid(out, grid)
    parts = parts or _read_parts(out, scene)
    run, evidence, history = parts.run, parts.evidence, parts.history
    trust = judge_evidence(run, evidence, scene, history)
    scores = _recorded(out, run) if truth is None else _score(out, run, truth)
    pixel = hectares_of_pixel(grid)
    valid = float(np.isfinite(probability).sum())
    checked = None
    if verified is not None:
        whole = None if pixel is None else pixel * valid
        checked = Verified(verify_run(out, verified), whole)
    verdict = _with_folder(judge(trust, checked), out)
    area = "" if pixel is None else hectares(pixel * valid * run["mapped_share"])
    report = Report(
        title=f"{run.get('label', 'class')} in {_scene_name(run)}",
        summary=summarise(trust, area) if checked is None else summarise_points(checked),
        verdict=verdict,
        facts=_facts(run),
        command=repeat_command(run),
        maps=_pictures(out, {OVERVIEW: "The map over the scene, with the labels"}),
        trust=trust,
        scores=scores,
        spectra=_spectra(evidence),
        curves=_curves(out, evidence, trust, run),
        settings=run["config"],
        panels=_panels(out, evidence, scene, run),
        area=area,
        verified=checked,
        errors=_pictures(out, {ERRORS: "Where the map is right and wrong"} if scores else {}),
    )
    page = render(report).encode(errors="replace")  # a file's name need not be text
    (out / REPORT_JSON).unlink(missing_ok=True)  # what is killed here leaves no two that differ
    write_atomically(out / REPORT, page)
    write_json(out / REPORT_JSON, as_json(report))
    return Written(scores, verdict, report.summary)


def _read_parts(out: Path, grid: Grid) -> RunParts:
    """From a run's folder, each checked, and all of them together."""
    run = read_run(out, {})
    known = {"method": Rule("a method that is known", lambda name: name in METHODS)}
    check_run(out, run, schema.RUN | known)
    evidence = load_evidence(out, grid.shape, opinions=len(run["opinions"]))
    history = _history(out)
    check_together(out, run)  # now that each of them can be read
    return RunParts(run, evidence, history)


def _with_folder(verdict: Verdict, out: Path) -> Verdict:
    """The next step as a command that can be copied."""
    step = re.sub(
        r"`thonecls (sample|suggest)`", rf"`thonecls \1 {shlex.quote(str(out))}`", verdict.step
    )
    return replace(verdict, step=step)


def judge_evidence(
    run: Mapping[str, Any],
    evidence: Evidence,
    grid: Grid,
    history: Mapping[str, Sequence[float]] | None = None,
) -> TrustReport:
    """What can be said of a map; run: its summary, of which a few facts are taken."""
    several = len(evidence.unlabeled) > 1
    unlabeled = evidence.unlabeled.mean(axis=0)
    mapped = unlabeled > run["threshold"]
    unlike = float(evidence.unlike[mapped].mean()) if mapped.any() else None
    places = find_places(
        evidence.labels,
        grid.shape,
        north_up=grid.north_up,
        unlike=unlike,
        scenes=grid.sites,
    )
    known = np.isfinite(unlabeled)
    places = replace(places, apart=float(evidence.unlike[known].mean()) if known.any() else None)
    if "coverage" in run:  # as it was told, or seen
        fair = run.get("beyond", {}).get("fair")
        places = replace(places, coverage=run["coverage"], fair=fair)
    known_of = Circumstances(
        places=places,
        opinions=[
            compare(name, scores, mapped)
            for name, scores in zip(run["opinions"], evidence.opinions, strict=True)
        ],
        history=history or {},
        degenerate=run.get("warning"),
        votes=count_votes(evidence.unlabeled, run["threshold"]) if several else None,
        covered=run["mapped_share"],
        calibrated=METHODS[run["method"]].learning.calibrated,
    )
    rng = np.random.default_rng(0)
    return assess(evidence.crossfit, unlabeled, known_of, rng=rng, threshold=run["threshold"])


def _history(out: Path) -> dict[str, list[float]]:
    """How the first model's training went, where there is one."""
    if not any(out.glob("model*.safetensors")):
        return {}
    history: dict[str, list[float]] = load_model(model_files(out)[0]).training.get("history", {})
    return history


def _recorded(out: Path, run: Mapping[str, Any]) -> Scores | None:
    """The scores of a truth that was given before."""
    if "scores" not in run:
        return None
    try:
        return Scores(**run["scores"])
    except TypeError as error:
        raise FileError(f"{out / RUN} holds no scores that are known ({error}): {ANEW}") from error


def _score(out: Path, run: Mapping[str, Any], truth: TruthFile) -> Scores:
    """Against the truth, at pixels that training did not learn from."""
    grid, probability = read_probability(out)
    grid = scene_grid(out, grid)
    if grid.lookup is not None:
        probability = grid.lookup.on_sensor(probability)
    seen = read_labels(Path(run["labels"]), grid, _label_options(run)).mask
    of_class, tested = read_tested(truth, grid, seen)
    return evaluate(probability, of_class, tested, threshold=run["threshold"])


def read_tested(truth: TruthFile, grid: Grid, seen: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Where the class is, and what is tested: what the labels do not show to training."""
    try:
        of_class, tested = read_truth(truth.path, grid, truth.options, negative=truth.negative)
    except (LabelError, FileError) as error:  # they speak of the labels' options
        words = re.sub(r"'(target|layer|where)'", r"'truth_\1'", str(error))
        names = tuple(f"truth_{name}" for name in error.options)
        raise type(error)(words, options=names) from error
    if not (tested & ~seen).any():
        raise LabelError(
            f"{truth.path.name} knows no pixel besides the labels: give a truth of other pixels"
        )
    return of_class, tested & ~seen


def _label_options(run: Mapping[str, Any]) -> LabelOptions:
    return LabelOptions(**{f.name: run[f.name] for f in fields(LabelOptions) if f.name in run})


def _scene_name(run: Mapping[str, Any]) -> str:
    if "scenes" in run:
        return f"{len(run['scenes'])} scenes"
    return Path(run["cube"]).name


def _facts(run: Mapping[str, Any]) -> dict[str, object]:
    known = {
        "Scene": _scene_name(run),
        "Labels": f"{Path(run['labels']).name}: {run['positives']:,} pixels to learn from, "
        f"{run['held_out']:,} of them left out in turn",
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


def _panels(
    out: Path, evidence: Evidence, grid: Grid, run: Mapping[str, Any]
) -> tuple[Picture, ...]:
    """Probability, what is unlike labels and scene, and where another method differs."""
    shape = len(evidence.rows), len(evidence.columns)
    probability = evidence.unlabeled.mean(axis=0).reshape(shape)
    size = Measure.of_grid(grid).pixel(grid)
    step = [
        (int(line[-1]) - int(line[0]) + 1) / len(line) for line in (evidence.rows, evidence.columns)
    ]
    aspect = (1.0 if size is None else size[1] / size[0]) * step[0] / step[1]
    mapped = np.where(np.isfinite(probability), probability > run["threshold"], np.nan)
    novelty = read_novelty(out)
    novel = np.zeros(shape, dtype=bool)
    if novelty is not None:
        novelty = novelty if grid.lookup is None else grid.lookup.on_sensor(novelty)
        novel = novelty[np.ix_(evidence.rows, evidence.columns)] > 1
    unlike = evidence.unlike.reshape(shape)
    drawn = []
    for name, scores in zip(run["opinions"], evidence.opinions, strict=True):
        other = np.where(np.isfinite(scores), scores > 0.5, np.nan).reshape(shape)
        png = draw_disagreement(mapped, other, name, aspect=aspect)
        drawn.append(Picture(f"Where a second method, {name}, differs", png))
    return (
        Picture("Probability of the class", draw_probability(probability, aspect=aspect)),
        Picture(
            "How like the labels the mapped pixels are, and what is new (novelty)",
            draw_novelty(mapped, unlike, novel, aspect=aspect),
        ),
        *drawn,
    )


def _curves(
    out: Path, evidence: Evidence, trust: TrustReport, run: Mapping[str, Any]
) -> tuple[Picture, ...]:
    held = evidence.crossfit[np.isfinite(evidence.crossfit)]
    unlabeled = evidence.unlabeled.mean(axis=0)
    unlabeled = unlabeled[np.isfinite(unlabeled)]
    drawn = [
        Picture(
            "Probability of labels left out, and of unlabeled pixels",
            draw_scores(held if held.size else None, unlabeled, threshold=run["threshold"]),
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
