"""The demonstration: a crop in a real scene from a hundred labels, compared with the truth."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from thonecls.datasets import indian_pines
from thonecls.errors import FileError
from thonecls.files import check_writable
from thonecls.io.grid import Grid
from thonecls.io.inputs import LabelInput, SceneInput
from thonecls.method.config import TrainConfig
from thonecls.method.fit import OnStep, fit
from thonecls.methods.spectral_model import AnyModel
from thonecls.metrics import evaluate
from thonecls.ratio.model import crossfit_ratio
from thonecls.report.plots import Truth, draw_errors
from thonecls.splits import paper_split
from thonecls.workflow.crossfit import nothing_left_out
from thonecls.workflow.finish import draw_training, make_and_judge, marks_of, tell
from thonecls.workflow.map import Site, Windows, score_here
from thonecls.workflow.options import Task, TrainOptions
from thonecls.workflow.pictures import draw_array_overview
from thonecls.workflow.report import RunParts
from thonecls.workflow.run_folder import (
    ERRORS,
    RUN,
    clear_outputs,
    is_unfinished,
    making,
    model_path,
    read_probability,
    read_run,
    write_json,
)
from thonecls.workflow.seeds import LOOKED_AT, complete
from thonecls.workflow.spectra import sample_spectra
from thonecls.workflow.summaries import RunSummary, summary_of_run


def demo(
    out: Path,
    *,
    config: TrainConfig,
    method: str = "density-ratio",
    target: int = 2,
    positives: int = 100,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> RunSummary:
    """Map one class of Indian Pines from a few labels and compare it with the ground truth.

    method: density-ratio, or t-honecls, for which the config is.
    """
    check_writable(out)
    with making(out):
        if is_unfinished(out) or "dataset" not in read_run(out, {"dataset": ""}):
            raise FileError(
                f"{out} holds a training of your own: choose another 'out'", options=("out",)
            )
        return _demo(out, config, method, target, positives, seed, on_step)


def _demo(
    out: Path,
    config: TrainConfig,
    method: str,
    target: int,
    positives: int,
    seed: int,
    on_step: OnStep | None,
) -> RunSummary:
    """`demo` in a folder that this process holds."""
    data = indian_pines()
    split = paper_split(
        data.truth, target, positives=positives, unlabeled=min(config.unlabeled, data.truth.size)
    )
    options = TrainOptions(method=method, seed=seed, label=data.classes[target])
    labelled = np.zeros(data.scene.shape, dtype=bool)
    labelled.flat[split.labels.positive] = True
    scene = SceneInput(Path("Indian Pines"), data.scene, Grid(data.scene.shape))
    task = Task(out, scene, LabelInput(Path("ground truth"), labelled), labelled, config, options)
    usual = sample_spectra(data.scene, LOOKED_AT, np.random.default_rng(seed))
    model: AnyModel
    left_out = nothing_left_out(np.sort(split.labels.positive))
    if method == "density-ratio":
        ratio, left_out = crossfit_ratio(data.scene, split.labels, seed=seed, folds=options.folds)
        model = complete(ratio, task, usual)
    else:
        generator = torch.Generator().manual_seed(seed)
        net = fit(data.scene, split.labels, config=config, generator=generator, on_step=on_step)
        model = complete(net, task, usual)
    clear_outputs(out)
    model.save(model_path(out, 0, 1))
    facts = {
        "dataset": data.name,
        "target": target,
        "class": data.classes[target],
        "cube": "Indian Pines",
        "labels": "ground truth",
        "method": options.method,
        "label": options.label,
        "seed": seed,
        "seeds": 1,
    }

    def score(scene: SceneInput, site: Site | None) -> Windows:
        return score_here([model], scene, config.device, site)

    summary, evidence = make_and_judge(task, [model], left_out, score, facts)
    _, probability = read_probability(out)
    scores = evaluate(probability, data.truth == target, split.test)
    summary["scores"] = asdict(scores)
    draw_array_overview(
        out,
        data.scene,
        title=f"{data.classes[target]} in Indian Pines, from {positives} labels",
        label=data.classes[target],
        marks=marks_of(left_out, summary["threshold"]),
        rgb=data.rgb,
    )
    mapped = probability > summary["threshold"]
    draw_errors(out / ERRORS, mapped, Truth(data.truth == target, split.test))
    summary |= draw_training(task, [model])
    write_json(out / RUN, summary)
    parts = RunParts(summary, evidence, model.training.get("history", {}))
    # Last of all: it shows the scores and the picture.
    return summary_of_run(tell(out, summary, parts=parts))
