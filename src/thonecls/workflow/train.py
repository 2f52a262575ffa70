"""From a scene and a few labels to models, a map and what can be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from thonecls.errors import ConfigError, LabelError, SceneError
from thonecls.files import check_writable, write_atomically
from thonecls.io.inputs import LabelInput, SceneInput, read_labels, read_scenes
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster import RasterSource
from thonecls.maps import disk_errors
from thonecls.method.config import TrainConfig
from thonecls.method.members import checkpoints
from thonecls.method.model import Crossfit
from thonecls.methods import METHODS, label_spectra
from thonecls.methods.costs import in_words, judging, on_cores, training_cost, usable_cores
from thonecls.methods.scenes import Known, QuickModel
from thonecls.methods.spectral_model import AnyModel
from thonecls.priors import Prior, check_estimators, estimate_priors, usable
from thonecls.scene import ArraySource, BoolArray, Source, read_all
from thonecls.splits import check_positives, draw_labels
from thonecls.workflow.crossfit import crossfit, leave_out, nothing_left_out
from thonecls.workflow.finish import conclude, tell
from thonecls.workflow.map import Site, Windows, score_here, score_on_cluster
from thonecls.workflow.options import Running, Task, TrainOptions, asked_of_training
from thonecls.workflow.report import TruthFile, read_tested
from thonecls.workflow.run_folder import (
    BEGUN,
    RUN,
    SCENE_LIST,
    begin,
    checkpoint_path,
    finished_run,
    is_unfinished,
    making,
    model_files,
    model_path,
    refuse_others,
    refuse_to_overwrite,
    tell_scenes,
)
from thonecls.workflow.scaling import check_one_scale
from thonecls.workflow.seeds import (
    LOOKED_AT,
    complete,
    train_on_cluster,
    train_seed,
    usual_spectra,
)
from thonecls.workflow.spectra import find_trouble, sample_spectra, valid_at
from thonecls.workflow.summaries import RunSummary, summary_of_run

LOOKED_AT_EACH = 200  # pixels of each of several scenes
STRIP = 64


def train_scene(
    scene: Path | Sequence[Path],
    labels: Path,
    out: Path,
    *,
    config: TrainConfig,
    options: TrainOptions | None = None,
    scene_options: SceneOptions | None = None,
    label_options: LabelOptions | None = None,
    truth: TruthFile | None = None,
    running: Running | None = None,
) -> RunSummary:
    """Train on a scene and its labels; write models, map, pictures and report to `out`.

    scene: one, or several that are learnt from together: a pattern, a folder, a list file, STAC, or
    a sequence of any of these (see `find_scenes`); each is mapped into out/scenes/NAME. labels: of
    several scenes one layer for all, or a pattern or folder of files called like the scenes.

    Returns the summary that is also written as run.json. config: the settings of `options.method`
    (see `Method.configure`). truth: is used for nothing but the scores in the report.
    """
    options, running = options or TrainOptions(), running or Running()
    check_writable(out)
    with making(out):
        if not (running.resume or running.overwrite):
            refuse_to_overwrite(out)
        opened = read_scenes(scene, scene_options, labels=labels, label_options=label_options)
        if opened.parts:
            refuse_others(out, [part.name for part in opened.grid.parts])
        read = read_labels(labels, opened.grid, label_options)
        if isinstance(opened.source, RasterSource):  # what follows looks at it several times
            opened = replace(opened, source=opened.source.hold())
        marked = on_data(opened, read)
        if truth is not None:
            read_tested(truth, opened.grid, marked.mask)  # after training would be late
        asked = asked_of_training(opened, marked, config, options, scene_options, label_options)
        if running.resume and (out / RUN).exists() and not is_unfinished(out):
            found = finished_run(out, asked)
            return summary_of_run(found if truth is None else tell(out, found, truth))
        task = _prepare(opened, marked, config, options, out)
        facts = _facts(opened.path, labels, options, scene_options, label_options)
        if opened.parts:
            facts |= {"cube": str(out / SCENE_LIST), "scenes": tell_scenes(opened.grid)}
        facts["asked"] = asked
        with disk_errors(out):
            begin(out, asked, resume=running.resume)
            if opened.parts:
                paths = [str(one.path.resolve()) for one in opened.parts]
                write_atomically(out / SCENE_LIST, ("\n".join(paths) + "\n").encode())
            models, left_out = LEARN[METHODS[options.method].learning.pace](task, running)
            score = partial(_score, models, out, task.config.device, running.dask)
            summary = conclude(task, models, left_out, score, facts, truth, running.on_window)
            for file in _fold_files(out):
                file.unlink()
            if summary["finished"]:  # last: until now --resume makes all of it again
                (out / BEGUN).unlink()
        return summary_of_run(summary)


def _score(
    models: Sequence[AnyModel],
    out: Path,
    device: str,
    dask: str | None,
    scene: SceneInput,
    site: Site | None,
) -> Windows:
    """A scene's windows, scored here or on a cluster; site: what lies beside the scene."""
    if dask is None:
        return score_here(models, scene, device, site)
    return score_on_cluster(model_files(out), scene, device, dask, site)


def on_data(scene: SceneInput, labels: LabelInput) -> LabelInput:
    """The labels without those on nodata, before any is left out or counted; none left is an error.

    What is known of a label on nodata is of no use, whichever way it is known. A scene that is the
    same all over, or has a fill that nobody told of, is refused.
    """
    sample = sample_spectra(scene.source, LOOKED_AT, np.random.default_rng(0))
    if trouble := find_trouble(scene, sample):
        raise SceneError(trouble, options=("nodata",))
    if scene.parts:
        rng = np.random.default_rng(0)
        check_one_scale(
            {
                part.name: sample_spectra(one.source, LOOKED_AT_EACH, rng)
                for part, one in zip(scene.grid.parts, scene.parts, strict=True)
            }
        )
    if isinstance(scene.source, ArraySource) and scene.source.nodata is None:
        return labels  # such a scene must have data everywhere
    known = [labels.mask, *(m for m in (labels.negatives, labels.answers) if m is not None)]
    valid = valid_at(scene.source, np.logical_or.reduce(known))
    mask = labels.mask & valid
    lost = int(labels.mask.sum()) - int(mask.sum())
    if lost and not mask.any():
        raise LabelError(
            f"every pixel that {labels.path.name} labels lies on nodata: check labels and nodata "
            "value"
        )
    words = (f"{lost} labelled pixels lie on nodata and are left out",) if lost else ()
    return replace(
        labels,
        mask=mask,
        notes=(*labels.notes, *words),
        negatives=None if labels.negatives is None else labels.negatives & valid,
        answers=None if labels.answers is None else labels.answers & valid,
    )


def _facts(
    scene: Path,
    labels: Path,
    options: TrainOptions,
    scene_options: SceneOptions | None,
    label_options: LabelOptions | None,
) -> dict[str, Any]:
    """What tells one training from another, besides its settings."""
    given = {
        name: value
        for part in (scene_options, label_options)
        if part is not None
        for name, value in asdict(part).items()
        if value not in (None, False)
    }
    kept = ("method", "seed", "seeds", "folds", "label", "estimate_prior", "coverage")
    chosen = {name: getattr(options, name) for name in kept if getattr(options, name) is not None}
    # Older runs do not name these, and they matter only where they are not as usual.
    names = ("floats", "minimum_area", "polygons")
    usual = TrainOptions()
    shown = {n: getattr(options, n) for n in names if getattr(options, n) != getattr(usual, n)}
    return {"cube": str(scene), "labels": str(labels), **given, **chosen, **shown}


def _prepare(
    scene: SceneInput, labels: LabelInput, config: TrainConfig, options: TrainOptions, out: Path
) -> Task:
    """Look the scene over, and estimate the class prior where that is asked."""
    positives = labels.mask
    check_positives(np.flatnonzero(positives), scene.grid.shape)
    if labels.negatives is not None:
        if not METHODS[options.method].negatives:
            raise ConfigError(
                f"{options.method} has no use for places where the class is not: leave out "
                "'answers' and 'negatives', or take another method",
                options=("answers", "negatives"),
            )
        if not METHODS[options.method].takes_negatives(config):
            raise ConfigError(
                "collages have no use for places where the class is not: take the density ratio "
                "(no 'method' and no 'preset'), or leave out 'answers' and 'negatives'",
                options=("method", "preset", "answers", "negatives"),
            )
    if isinstance(scene.source, ArraySource) and positives.size > config.budget:
        _check_finite(scene.source)  # windows alone would find a bad pixel only after training
    if options.estimate_prior is not None:
        if config.prior is not None:
            raise ConfigError("a prior is given and to be estimated: leave one of the two out")
        names = (options.estimate_prior,)
        (prior,) = estimate(scene.source, positives, config, options.seed, names, interval=False)
        config = replace(config, prior=usable(prior))
    return Task(out, scene, labels, positives, config, options)


def plan_of(task: Task) -> str:
    """What training a network will take, in words."""
    pixels, cores = task.positives.size, usable_cores()
    cost = training_cost(task.config, pixels, cores, method=task.options.method)
    took = in_words(task.options.seeds * cost.seconds)
    return f"about {took} to train on {on_cores(cores)}; {judging(cost, task.options.folds)}"


def _train(task: Task, running: Running) -> tuple[list[AnyModel], Crossfit]:
    """One network for each seed and fold; those that are there already are not trained again."""
    if running.on_plan is not None:
        running.on_plan(plan_of(task))
    if running.dask is not None:
        train_on_cluster(task, running)
        running = replace(running, overwrite=False, resume=True, jobs=1)  # all are there
    models: list[AnyModel] = []
    for index in range(task.options.seeds):
        models.append(train_seed(task, index, running))
        if not models[-1].training["finished"]:
            break  # stopped by hand: what there is is mapped
    return models, leave_out(task, models, running)


def _fold_files(out: Path) -> list[Path]:
    """Models of the folds, which are of no use once their labels are scored."""
    return list(out.glob("fold-*.safetensors"))


def _fit(task: Task, _: Running) -> tuple[list[AnyModel], Crossfit]:
    """A model that is there in seconds, saved before anything else is made of it."""
    usual = usual_spectra(task)
    scene, positives, options = task.scene.source, task.positives, task.options

    def fit(some: BoolArray, folds: int) -> tuple[QuickModel, Crossfit | None]:
        known = Known(
            seed=options.seed,
            unlabeled=task.config.unlabeled,
            folds=folds,
            coverage=options.coverage,
            negatives=task.labels.negatives,
            answers=task.labels.answers,
            prior=task.config.prior,
        )
        return METHODS[options.method].fit(scene, some, known)

    fitted, left_out = fit(positives, options.folds)
    model = complete(fitted, task, usual)
    if left_out is None:
        left_out = nothing_left_out(np.flatnonzero(positives))
        if options.folds:
            with suppress(LabelError):  # so few labels that none can be spared
                left_out = crossfit(
                    lambda some, _: fit(some, 0)[0],
                    scene,
                    positives,
                    folds=options.folds,
                    seed=options.seed,
                )
    model.save(model_path(task.out, 0, 1))
    for file in checkpoints(checkpoint_path(task.out, 0, 1)):
        file.unlink()  # of a network that was to be trained here before
    return [model], left_out


# By how a method learns.
LEARN = {"in steps": _train, "at once": _fit}


def estimate(
    source: Source,
    positives: BoolArray,
    config: TrainConfig,
    seed: int,
    names: tuple[str, ...],
    *,
    interval: bool = True,
) -> list[Prior]:
    """The class prior by some estimators, from the labels and the config's unlabeled pixels."""
    check_estimators(names)
    if positives.size > config.budget:
        raise ConfigError(
            f"a prior is estimated on at most {config.budget:,} pixels: cut a part from the scene, "
            "raise 'budget', or give 'prior' a number",
            options=("budget", "prior"),
        )
    scene = read_all(source)
    labels = draw_labels(positives, scene.valid, config.unlabeled, np.random.default_rng(seed))
    spectra = label_spectra(scene, labels)
    return estimate_priors(names, *spectra, seed=seed, interval=interval)


def _check_finite(source: Source) -> None:
    """Read all of a scene once; a bad value is refused by the reading."""
    for start in range(0, source.shape[0], STRIP):
        source.read(slice(start, min(start + STRIP, source.shape[0])), slice(0, source.shape[1]))
