"""Commands on scenes: demo, train, map, prior, info."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from thonecls import workflow
from thonecls.checkpoint import EVERY
from thonecls.cli.app import (
    Axis,
    CubeFile,
    CubeVariable,
    Json,
    LabelsFile,
    LabelsVariable,
    Out,
    Overrides,
    Preset,
    Seed,
    Settings,
    Target,
    Threshold,
    app,
    conclude,
    errors,
    resolve,
)
from thonecls.progress import Display


@app.command
def demo(
    *,
    out: Out = Path("demo-output"),
    target: Annotated[int, Parameter(help="Class of Indian Pines to map, 1 to 16.")] = 2,
    positives: Annotated[
        int, Parameter(help="Labels to train on; small classes need fewer than their pixels.")
    ] = 100,
    preset: Preset = "fast",
    seed: Seed = 0,
    config: Settings = Overrides(),  # noqa: B008  # frozen
    json: Json = False,
) -> int:
    """Map a crop in a real scene from 100 labels, and compare with the ground truth.

    Uses Indian Pines (AVIRIS, 145×145 pixels, 200 bands), which comes with the package. Writes
    overview.png, curves.png, run.json, the map and the model, and prints precision, recall, F1.
    """
    with Display(errors, quiet=json) as display:
        summary = workflow.demo(
            out,
            config=resolve(preset, config),
            target=target,
            positives=positives,
            seed=seed,
            on_step=display.on_step,
        )
    return conclude(summary, json)


@app.command
def train(
    cube: CubeFile,
    labels: LabelsFile,
    *,
    out: Out,
    target: Target = None,
    preset: Preset = "fast",
    method: Annotated[
        str, Parameter(help="How to learn the class; `thonecls methods` lists them.")
    ] = "t-honecls",
    estimate_prior: Annotated[
        Literal["km1", "km2", "bbe"] | None,
        Parameter(help="Estimate the class prior, for a method that needs one."),
    ] = None,
    seed: Seed = 0,
    threshold: Threshold = 0.5,
    bands_axis: Axis = None,
    cube_variable: CubeVariable = None,
    labels_variable: LabelsVariable = None,
    overwrite: Annotated[
        bool, Parameter(help="Replace a model that is in the folder already.", negative=())
    ] = False,
    resume: Annotated[
        bool, Parameter(help="Go on with a training that was stopped or killed.", negative=())
    ] = False,
    checkpoint_every: Annotated[
        float, Parameter(help="Seconds of training between two checkpoints.")
    ] = EVERY,
    config: Settings = Overrides(),  # noqa: B008  # frozen
    json: Json = False,
) -> int:
    """Train on your own scene and labels, then map the scene.

    Writes model.safetensors, probability.npy, map.npy (1 class, 0 other, 255 nodata),
    overview.png, curves.png and run.json. Ctrl-C ends training early and keeps what was learnt;
    --resume goes on from there, and from the last checkpoint after a crash, to the same result.

    Example: thonecls train scene.mat truth.mat --target 3 --out run

    Example: thonecls train scene.mat labels.npy --method matched-filter --out run
    """
    with Display(errors, quiet=json) as display:
        summary = workflow.train_scene(
            cube,
            labels,
            out,
            config=resolve(preset, config, method),
            method=method,
            estimate_prior=estimate_prior,
            seed=seed,
            target=target,
            axis=bands_axis,
            cube_variable=cube_variable,
            labels_variable=labels_variable,
            threshold=threshold,
            overwrite=overwrite,
            resume=resume,
            checkpoint_every=checkpoint_every,
            on_step=display.on_step,
            on_window=display.on_window,
        )
    return conclude(summary, json)


@app.command(name="map")
def map_command(
    model: Annotated[Path, Parameter(help="A model, or the run folder that holds it.")],
    cube: Annotated[
        Path, Parameter(help="The scene to map, with the bands of the training scene.")
    ],
    *,
    out: Out,
    threshold: Threshold = 0.5,
    bands_axis: Axis = None,
    cube_variable: CubeVariable = None,
    device: Annotated[str, Parameter(help="auto, cpu, cuda or mps.")] = "auto",
    overwrite: Annotated[
        bool, Parameter(help="Replace a map that is in the folder already.", negative=())
    ] = False,
    json: Json = False,
) -> int:
    """Map a scene with a trained model.

    Writes probability.npy, map.npy (1 class, 0 other, 255 nodata), overview.png and map.json.

    Example: thonecls map run/model.safetensors scene.mat --out map
    """
    with Display(errors, quiet=json) as display:
        summary = workflow.map_scene(
            model,
            cube,
            out,
            axis=bands_axis,
            variable=cube_variable,
            threshold=threshold,
            device=device,
            overwrite=overwrite,
            on_window=display.on_window,
        )
    return conclude(summary, json)


@app.command
def prior(
    cube: CubeFile,
    labels: LabelsFile,
    *,
    target: Target = None,
    seed: Seed = 0,
    bands_axis: Axis = None,
    cube_variable: CubeVariable = None,
    labels_variable: LabelsVariable = None,
    json: Json = False,
) -> int:
    """Estimate how large a share of the scene the class takes, by three estimators.

    T-HOneCls does not need this number; nnPU, uPU, OC and Dist-PU do. The intervals hold 90 % of
    the estimates on resampled pixels; they say nothing of an estimator's bias, so look whether the
    three agree. KM1 and KM2 are often far too large for small classes.

    Example: thonecls prior scene.mat truth.mat --target 3
    """
    with Display(errors, quiet=json):
        found = workflow.estimate_priors(
            cube,
            labels,
            seed=seed,
            target=target,
            axis=bands_axis,
            cube_variable=cube_variable,
            labels_variable=labels_variable,
        )
    if json:
        print(jsonlib.dumps(found))
        return 0
    table = Table("estimator", "prior", "90 % of resamples")
    for name, p in found["priors"].items():
        table.add_row(name, f"{p['value']:.3f}", f"{p['low']:.3f} to {p['high']:.3f}")
    Console().print(table)
    return 0


@app.command
def info(
    path: Annotated[Path, Parameter(help="A model, a run folder, or a cube.")],
    *,
    cube_variable: CubeVariable = None,
    json: Json = False,
) -> int:
    """Show what a model or a cube holds.

    Example: thonecls info run/model.safetensors
    """
    return conclude(workflow.describe(path, variable=cube_variable), json)
