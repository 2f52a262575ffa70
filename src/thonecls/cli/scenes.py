"""Commands on scenes: demo, check, train, map, report, prior, info."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls.cli.app import (
    SOME_FAILED,
    DemoPreset,
    Json,
    LabelFlags,
    LabelSettings,
    LabelsFile,
    MoreFiles,
    Out,
    Overrides,
    ProgressForm,
    SceneFile,
    SceneFlags,
    ScenePreset,
    SceneSettings,
    Seed,
    Settings,
    app,
    conclude,
    errors,
    given_settings,
    resolve,
    scenes_and_labels,
    with_flags,
)
from thonecls.errors import ConfigError, ThoneclsError
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig, preset_for
from thonecls.methods import METHODS

if TYPE_CHECKING:
    from thonecls.workflow import CheckSummary, Outcome, TruthFile
    from thonecls.workflow.summaries import Finding

DEFAULT = "density-ratio"  # what is learnt by, unless something asks for a network
# Commands import what they run: help and typos must not wait for it.
Overwrite = Annotated[bool, Parameter(help="Replace what is in the folder already.", negative=())]
Floats = Annotated[
    bool, Parameter(help="Probability as float32, not as whole percents.", negative=())
]
MinimumArea = Annotated[
    float | None,
    Parameter(
        help="Smallest polygon to keep, in m² (map units² without a CRS); by default the area "
        "of 4 pixels. 0 keeps every pixel that stands alone."
    ),
]
Polygons = Annotated[
    bool,
    Parameter(
        help="Write polygons.gpkg too; of a map scattered into more than 500,000 patches, or with "
        "outlines of more than 5 million pixel edges, the larger patches only."
    ),
]
Threshold = Annotated[
    float | None,
    Parameter(help="Probability above which a pixel is mapped; by default the model's own."),
]
TruthPath = Annotated[
    Path | None, Parameter(help="What is known of the scene, for the report's scores only.")
]
TruthTarget = Annotated[int | None, Parameter(help="The class number in a truth of several.")]
TruthWhere = Annotated[str | None, Parameter(help="Which features of the truth are the class.")]
TruthNegative = Annotated[
    str | None, Parameter(help="Which features of the truth are certainly not the class.")
]
TruthLayer = Annotated[str | None, Parameter(help="The truth's layer.")]


@app.command
def demo(
    *,
    out: Out = Path("demo-output"),
    target: Annotated[int, Parameter(help="Class of Indian Pines to map, 1 to 16.")] = 2,
    positives: Annotated[
        int, Parameter(help="Labels to train on; small classes need fewer than their pixels.")
    ] = 100,
    preset: DemoPreset = None,
    seed: Seed = 0,
    config: Settings = Overrides(),  # noqa: B008  # frozen
    json: Json = False,
) -> int:
    """Map a crop in a real scene from 100 labels, and compare with the ground truth.

    Uses Indian Pines (AVIRIS, 145×145 pixels, 200 bands), which comes with the package. Writes
    overview.png, report.html, run.json, the map and the model, and prints precision, recall, F1.
    Takes seconds by the density ratio, minutes by the network of the paper (--preset fast).
    """
    from thonecls.cli.progress import Display
    from thonecls.workflow.demo import demo as run_demo

    with Display(errors, quiet=json) as display:
        summary = run_demo(
            out,
            config=resolve(preset or "fast", config),
            method=_usual_method(preset, 1, config),
            target=target,
            positives=positives,
            seed=seed,
            on_step=display.on_step,
        )
    return conclude(summary.as_dict(), json)


@app.command
def check(
    scene: SceneFile,
    labels: LabelsFile | None = None,
    *more: MoreFiles,
    preset: ScenePreset = None,
    config: Settings = Overrides(),  # noqa: B008
    scene_options: SceneSettings = SceneFlags(),  # noqa: B008
    label_options: LabelSettings = LabelFlags(),  # noqa: B008
    picture: Annotated[
        Path | None, Parameter(help="A PNG to draw of where labels lie in the scene.")
    ] = None,
    json: Json = False,
) -> int:
    """Check in seconds whether scene and labels fit, before any long work.

    Shows size, position and CRS, labels inside, outside, doubled or on nodata, unusual spectra
    among them, bad bands, and the expected time and memory. Exits 2 if something is wrong.

    Example: thonecls check scene.tif plants.gpkg --where "species = 'Lantana'"
    """
    from thonecls.workflow import check_scene

    scenes, layer = scenes_and_labels(scene, labels, more)
    found = check_scene(
        scenes,
        layer,
        scene_options=scene_options,
        label_options=label_options,
        config=resolve(_preset(preset, scenes, layer, scene_options, label_options), config),
        method=_usual_method(preset, 1, config),
        picture=picture,
    )
    found = replace(found, findings=tuple(_with_flags(finding) for finding in found.findings))
    if json:
        print(jsonlib.dumps(found.as_dict()))
    else:
        _print_findings(found)
    return 0 if found.fit else 2


def _with_flags(finding: Finding) -> Finding:
    return replace(finding, words=with_flags(finding.words, finding.options))


def _print_findings(found: CheckSummary) -> None:
    marks = {"ok": "[green]✓[/green]", "note": "[yellow]![/yellow]", "problem": "[red]✕[/red]"}
    table = Table(show_header=False, box=None, pad_edge=False)
    for finding in found.findings:
        table.add_row(marks[finding.status], finding.subject, escape(finding.words))
    console = Console()
    console.print(table)
    if not found.fit:
        console.print("[bold red]this will not work yet:[/bold red] fix the items marked ✕")
    elif found.command is not None:
        console.print(f"ready: {escape(found.command)}", soft_wrap=True)


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
            "a patch or two; by default told from where they lie. Say all if you know that they "
            "do: the map is then sharper (density-ratio only)."
        ),
    ] = None,
    label: Annotated[str, Parameter(help="What the class is called, in maps and report.")] = (
        "class"
    ),
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
    truth: TruthPath = None,
    truth_target: TruthTarget = None,
    truth_where: TruthWhere = None,
    truth_negative: TruthNegative = None,
    truth_layer: TruthLayer = None,
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

    method = method or _usual_method(preset, seeds, config)
    options = TrainOptions(
        method=method,
        coverage=coverage,
        estimate_prior=estimate_prior,
        seed=seed,
        seeds=seeds,
        folds=folds,
        threshold=threshold,
        label=label,
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
                _preset(preset, scenes, layer, scene_options, label_options), config, method
            ),
            options=options,
            scene_options=scene_options,
            label_options=label_options,
            truth=_truth(truth, truth_target, truth_where, truth_negative, truth_layer),
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


def _usual_method(preset: str | None, seeds: int, config: TrainConfig) -> str:
    """The density ratio, or the network where something is asked for that only a network has."""
    of_networks = given_settings(config).keys() - set(METHODS[DEFAULT].learning.uses or ())
    return "t-honecls" if preset or seeds > 1 or of_networks else DEFAULT


def _preset(
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


def _truth(
    path: Path | None,
    target: int | None,
    where: str | None,
    negative: str | None,
    layer: str | None,
) -> TruthFile | None:
    if path is None:
        if any(value is not None for value in (target, where, negative, layer)):
            raise ConfigError("what is the truth's file? Give it by --truth")
        return None
    from thonecls.workflow import TruthFile

    return TruthFile(path, LabelOptions(target=target, where=where, layer=layer), negative)


@app.command(name="map")
def map_command(
    model: Annotated[Path, Parameter(help="A model, or the folder of a training.")],
    scenes: Annotated[
        list[Path],
        Parameter(
            help="Scenes to map, patterns such as 'flights/*.tif', folders of scenes, .txt files "
            "with a scene in each line, or a STAC Item, ItemCollection or Collection on disk."
        ),
    ],
    *,
    out: Out = Path("map"),
    threshold: Threshold = None,
    floats: Floats = False,
    minimum_area: MinimumArea = None,
    polygons: Polygons = True,
    tolerance: Annotated[
        float | None,
        Parameter(help="How far bands may differ from the model's, in nm; by default half a band."),
    ] = None,
    device: Annotated[str, Parameter(help="auto, cpu, cuda or mps.")] = "auto",
    dask: Annotated[
        str | None, Parameter(help="Address of a Dask scheduler whose workers score the windows.")
    ] = None,
    force: Annotated[
        bool,
        Parameter(
            help="Take the scene's values as they are, even if they look like another unit.",
            negative=(),
        ),
    ] = False,
    overwrite: Overwrite = False,
    resume: Annotated[
        bool,
        Parameter(
            help="Continue maps that were stopped or killed; those that are finished are skipped.",
            negative=(),
        ),
    ] = False,
    scene_options: SceneSettings = SceneFlags(),  # noqa: B008
    json: Json = False,
    progress: ProgressForm = None,
) -> int:
    """Map scenes with a trained model, of any size, window by window.

    Bands are matched by wavelength. Writes map.tif, probability.tif, novelty.tif (above 1: unlike
    the training scene), with several models uncertainty.tif, polygons.gpkg, overview.png, map.json
    and item.json (STAC); of several scenes each into its own folder. A scene that fails stops no
    other: what failed is listed at the end, the exit code is then 3, and --resume maps the rest.

    Example: thonecls map run scene.tif --out map

    Example: thonecls map run 'flights/*.tif' --out maps --resume
    """
    from thonecls.cli.progress import Display
    from thonecls.io.listing import find_scenes
    from thonecls.workflow import MapOptions, map_scene, map_scenes

    options = MapOptions(
        threshold=threshold,
        floats=floats,
        minimum_area=minimum_area,
        polygons=polygons,
        tolerance=tolerance,
        device=device,
        dask=dask,
        force=force,
        overwrite=overwrite,
        resume=resume,
    )
    listed = find_scenes(scenes)
    if len(listed) == 1:
        with Display(errors, quiet=json, form=progress) as display:
            summary = map_scene(
                model,
                listed[0].path,
                out,
                options=options,
                scene_options=scene_options,
                on_window=display.on_window,
            )
        return conclude(summary.as_dict(), json)
    with Display(errors, quiet=json, form=progress) as display:
        outcomes = list(
            map_scenes(
                model,
                scenes,
                out,
                options=options,
                scene_options=scene_options,
                on_scene=display.on_scene,
            )
        )
    return _conclude_many(outcomes, json)


def _conclude_many(outcomes: list[Outcome], as_json: bool) -> int:
    """Tell what became of many scenes; 0 if all are mapped."""
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    told = [
        {"cube": str(one.scene), "error": _words_of(one.error)}
        if one.summary is None
        else one.summary.as_dict()
        for one in outcomes
    ]
    if as_json:
        print(jsonlib.dumps(told))
        return SOME_FAILED if failed else 0
    console = Console()
    for outcome in outcomes:
        if outcome.summary is not None:
            console.print(f"[bold]{escape(outcome.name)}[/bold]", soft_wrap=True)
            conclude(outcome.summary.as_dict(), False)
    for outcome in failed:
        words = f"{escape(outcome.name)}: {escape(_words_of(outcome.error))}"
        console.print(f"[bold red]failed:[/bold red] {words}", soft_wrap=True)
    console.print(f"{len(outcomes) - len(failed)} of {len(outcomes)} scenes are mapped")
    return SOME_FAILED if failed else 0


def _words_of(error: Exception | None) -> str:
    if isinstance(error, ThoneclsError):
        return with_flags(str(error), error.options)
    return f"{type(error).__name__}: {error}"


@app.command
def report(
    run: Annotated[Path, Parameter(help="The folder of a training.")],
    *,
    truth: TruthPath = None,
    truth_target: TruthTarget = None,
    truth_where: TruthWhere = None,
    truth_negative: TruthNegative = None,
    truth_layer: TruthLayer = None,
    verified: Annotated[
        Path | None,
        Parameter(help="Points that `thonecls sample` drew, with your answers in `present`."),
    ] = None,
    json: Json = False,
) -> int:
    """Write the report of a training again, with scores if truth or checked points are given.

    report.html is one page that needs no other file; report.json says the same for programs.

    Example: thonecls report run --verified sample.gpkg

    Example: thonecls report run --truth survey.gpkg --truth-where "present = 1"
    """
    from thonecls.workflow import write_report

    found = write_report(
        run, _truth(truth, truth_target, truth_where, truth_negative, truth_layer), verified
    )
    written = jsonlib.loads((run / "report.json").read_text("utf-8"))
    if json:
        print(jsonlib.dumps(written))
        return 0
    console = Console()
    console.print(f"[bold]{escape(found.verdict.words)}[/bold]", soft_wrap=True)
    console.print(escape(found.summary), soft_wrap=True)
    if found.scores is not None:
        scores = found.scores
        console.print(
            f"precision {scores.precision:.1f}  recall {scores.recall:.1f}  F1 {scores.f1:.1f}"
        )
    console.print(f"report: {escape(str(run / 'report.html'))}", soft_wrap=True)
    return 0


@app.command
def sample(
    run: Annotated[Path, Parameter(help="The folder of a training.")],
    *,
    size: Annotated[int, Parameter(help="Points to draw; 60 are an afternoon's work.")] = 60,
    out: Annotated[
        Path | None, Parameter(help="File for the points; sample.gpkg in the run's folder.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> int:
    """Draw random points of a map for you to check, in QGIS or in the field.

    Write 1 into the column `present` where the class is, 0 where it is not, nothing where you
    cannot tell; then `thonecls report RUN --verified sample.gpkg` gives precision, recall and area
    with intervals that hold, whatever the labels were like.

    Example: thonecls sample run --size 60
    """
    from thonecls.workflow import draw_sample

    path = draw_sample(run, out, size=size, seed=seed)
    if json:
        print(jsonlib.dumps({"run": str(run), "points": str(path)}))
        return 0
    console = Console()
    console.print(f"points: {escape(str(path))}", soft_wrap=True)
    console.print("fill in the column 'present' (1 or 0), then run", soft_wrap=True)
    told = shlex.join(["thonecls", "report", str(run), "--verified", str(path)])
    console.print(escape(told), soft_wrap=True)
    return 0


@app.command
def suggest(
    run: Annotated[Path, Parameter(help="The folder of a training.")],
    *,
    size: Annotated[int, Parameter(help="Places to look at.")] = 20,
    out: Annotated[
        Path | None, Parameter(help="File for the places; suggestions.gpkg in the run's folder.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> int:
    """Suggest places worth a look: uncertain, far from all labels, spread over the scene.

    Write 1 into the column `present` where the class is, 0 where it is not, nothing where you
    cannot tell, and train again with --answers. Helps most where labels come from one part of the
    scene; ask again after each round.

    Example: thonecls suggest run --size 20
    """
    from thonecls.workflow import suggest_places

    path = suggest_places(run, out, size=size, seed=seed)
    if json:
        print(jsonlib.dumps({"run": str(run), "points": str(path)}))
        return 0
    console = Console()
    console.print(f"places: {escape(str(path))}", soft_wrap=True)
    console.print(
        "fill in the column 'present' (1 or 0), then train again with "
        f"--answers {escape(shlex.quote(str(path)))}",
        soft_wrap=True,
    )
    return 0


@app.command
def prior(
    scene: SceneFile,
    labels: LabelsFile,
    *,
    seed: Seed = 0,
    scene_options: SceneSettings = SceneFlags(),  # noqa: B008
    label_options: LabelSettings = LabelFlags(),  # noqa: B008
    json: Json = False,
) -> int:
    """Estimate how large a share of the scene the class takes, by three estimators.

    T-HOneCls does not need this number; those of `thonecls methods` that do say so. The intervals
    hold 90 % of the estimates on resampled pixels; they do not include an estimator's bias, so
    check whether the three agree. KM1 and KM2 are often far too large for small classes.

    Example: thonecls prior scene.mat truth.mat --target 3
    """
    from thonecls.cli.progress import Display
    from thonecls.workflow import estimate_priors

    with Display(errors, quiet=json):
        found = estimate_priors(
            scene, labels, seed=seed, scene_options=scene_options, label_options=label_options
        )
    if json:
        print(jsonlib.dumps(found.as_dict()))
        return 0
    table = Table("estimator", "prior", "90 % of resamples")
    for name, p in found.priors.items():
        table.add_row(name, f"{p.value:.3f}", f"{p.low:.3f} to {p.high:.3f}")
    Console().print(table)
    return 0


@app.command
def info(
    path: Annotated[Path, Parameter(help="A model, the folder of a training, or a scene.")],
    *,
    variable: Annotated[
        str | None, Parameter(help="The array or subdataset, where the file holds several.")
    ] = None,
    json: Json = False,
) -> int:
    """Show what a model or a scene holds.

    Example: thonecls info run/model.safetensors
    """
    from thonecls.workflow import describe

    return conclude(describe(path, variable=variable), json)
