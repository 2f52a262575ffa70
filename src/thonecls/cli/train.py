"""The command `thonecls train`: its flags, and what it takes unless told."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from thonecls.cli.app import (
    Floats,
    Json,
    LabelFlags,
    LabelSettings,
    LabelsFile,
    MinimumArea,
    MoreFiles,
    Out,
    Overrides,
    Overwrite,
    Polygons,
    ProgressForm,
    SceneFile,
    SceneFlags,
    ScenePreset,
    SceneSettings,
    Seed,
    Settings,
    Threshold,
    TruthFlags,
    TruthSettings,
    app,
    conclude,
    errors,
    given_settings,
    resolve,
    scenes_and_labels,
)
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig, preset_for
from thonecls.methods import METHODS

DEFAULT = "density-ratio"  # what is learnt by, unless something asks for a network


@app.command
def train(
    scene: SceneFile,
    labels: LabelsFile,
    *more: MoreFiles,
    out: Out = Path("run"),
    preset: ScenePreset = None,
    method: Annotated[
        str | None,
        Parameter(
            help="How to learn the class; `thonecls methods` lists them. By default density-ratio, "
            "which takes seconds; auto takes another on single spectra where that finds labels "
            "left out clearly better; t-honecls, the network of the paper, if a preset, several "
            "seeds or a network setting is given."
        ),
    ] = None,
    coverage: Annotated[
        Literal["all", "part", "patch"] | None,
        Parameter(
            help="Whether labels come from all over the class, from a part of the scene, or from "
            "a patch or two; by default told from where they lie, and from whether the class "
            "goes on beyond them. Say all if you know that they do: the map is then sharper "
            "(density-ratio only)."
        ),
    ] = None,
    label: Annotated[
        str | None,
        Parameter(
            help="What the class is called, in maps and report; by default what --where calls it."
        ),
    ] = None,
    folds: Annotated[
        int,
        Parameter(
            help="Parts of the labels, by place, each left out in turn to judge the map by; the "
            "map itself learns from all labels. 0: none, and the map is not judged. With a "
            "network, each fold is one more training."
        ),
    ] = 3,
    seeds: Annotated[
        int, Parameter(help="Models to train; several show where the map is uncertain.")
    ] = 1,
    seed: Seed = 0,
    estimate_prior: Annotated[
        Literal["km1", "km2", "bbe"] | None,
        Parameter(help="Estimate the class prior, for a method that needs one."),
    ] = None,
    threshold: Threshold = None,
    floats: Floats = False,
    minimum_area: MinimumArea = None,
    polygons: Polygons = True,
    truth: TruthSettings = TruthFlags(),  # noqa: B008
    overwrite: Overwrite = False,
    resume: Annotated[
        bool, Parameter(help="Continue a training that was stopped or killed.", negative=())
    ] = False,
    checkpoint_every: Annotated[
        float, Parameter(help="Seconds of training between two checkpoints.")
    ] = CHECKPOINT_SECONDS,
    dask: Annotated[
        str | None,
        Parameter(
            help="Address of a Dask scheduler whose workers train the networks of all seeds and "
            "folds, and score the windows of the maps."
        ),
    ] = None,
    scene_options: SceneSettings = SceneFlags(),  # noqa: B008
    label_options: LabelSettings = LabelFlags(),  # noqa: B008
    config: Settings = Overrides(),  # noqa: B008
    json: Json = False,
    progress: ProgressForm = None,
) -> int:
    """Train on your own scene and labels, then map the scene and report how far to trust the map.

    Writes the model, the map (map.tif and probability.tif with styles for QGIS, polygons.gpkg;
    .npy for array files), overview.png, report.html and run.json. Ctrl-C ends training early and
    keeps the model; --resume continues from there, or from the last checkpoint after a crash, to
    the same result. Of several scenes, which must have the same bands and unit, the maps lie in
    scenes/NAME.

    Example: thonecls train scene.tif plants.gpkg --out run

    Example: thonecls train 'tiles/*.tif' crowns.gpkg --label oak --out run

    Example: thonecls train scene.mat truth.mat --target 3 --method matched-filter --out run
    """
    from thonecls.cli.progress import Display
    from thonecls.workflow import Running, TrainOptions, train_scene

    method = method or usual_method(preset, seeds, config)
    options = TrainOptions(
        method=method,
        coverage=coverage,
        estimate_prior=estimate_prior,
        seed=seed,
        seeds=seeds,
        folds=folds,
        threshold=threshold,
        label=named_by(label_options.where) if label is None else label,
        floats=floats,
        minimum_area=minimum_area,
        polygons=polygons,
    )
    scenes, layer = scenes_and_labels(scene, labels, more)
    assert layer is not None
    with Display(errors, quiet=json, form=progress) as display:
        summary = train_scene(
            scenes,
            layer,
            out,
            config=resolve(
                preset_of(preset, scenes, layer, scene_options, label_options), config, method
            ),
            options=options,
            scene_options=scene_options,
            label_options=label_options,
            truth=truth.file(),
            running=Running(
                overwrite=overwrite,
                resume=resume,
                checkpoint_every=checkpoint_every,
                jobs=os.cpu_count() or 1,
                dask=dask,
                on_plan=display.on_plan,
                on_step=display.on_step,
                on_fold=display.on_fold,
                on_training=display.on_training,
                on_window=display.on_window,
            ),
        )
    return conclude(summary.as_dict(), json)


def named_by(where: str | None) -> str:
    """What a condition on labels calls the class, if it is so simple.

    >>> named_by("species = 'lantana'"), named_by("area > 3"), named_by(None)
    ('lantana', 'class', 'class')
    """
    found = re.fullmatch(r"""\s*(?:\w+|"[^"]+")\s*=\s*'([^']{1,60})'\s*""", where or "")
    return found[1] if found else "class"


def usual_method(preset: str | None, seeds: int, config: TrainConfig) -> str:
    """The density ratio, or the network where something is asked for that only a network has."""
    of_networks = given_settings(config).keys() - set(METHODS[DEFAULT].learning.uses or ())
    return "t-honecls" if preset or seeds > 1 or of_networks else DEFAULT


def preset_of(
    given: str | None,
    scene: Path | list[Path],
    labels: Path | None,
    scene_options: SceneOptions,
    label_options: LabelOptions,
) -> str:
    """The preset that is asked for, or the one for a scene of this size."""
    if given is not None:
        return given
    from thonecls.io.inputs import read_scenes

    opened = read_scenes(scene, scene_options, labels=labels, label_options=label_options)
    return preset_for(opened.grid.shape[0] * opened.grid.shape[1])
