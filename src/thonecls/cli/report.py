"""Commands that tell of maps and scenes: report, sample, suggest, prior, info."""

from __future__ import annotations

import json as jsonlib
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls.cli.app import (
    Json,
    LabelFlags,
    LabelSettings,
    LabelsFile,
    SceneFile,
    SceneFlags,
    SceneSettings,
    Seed,
    TruthFlags,
    TruthSettings,
    app,
    conclude,
    errors,
)


@app.command
def report(
    run: Annotated[Path, Parameter(help="The folder of a training.")],
    *,
    truth: TruthSettings = TruthFlags(),  # noqa: B008
    verified: Annotated[
        Path | None,
        Parameter(help="Points that `thonecls sample` drew, with your answers in `present`."),
    ] = None,
    json: Json = False,
) -> int:
    """Write the report of a training again, with scores if truth or checked points are given.

    report.html is one page that needs no other file; report.json says the same for programs.
    Scores and checked points that were given once are kept, until the class is learnt anew.

    Example: thonecls report run --verified sample.gpkg

    Example: thonecls report run --truth survey.gpkg --truth-where "present = 1"
    """
    from thonecls.workflow import write_report

    found = write_report(run, truth.file(), verified)
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
    told = shlex.join(["thonecls", "report", str(run), "--verified", str(path)])
    return _tell_points(run, path, "points", f"then run\n{told}", json=json)


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
    told = f"then train again with --answers {shlex.quote(str(path))}"
    return _tell_points(run, path, "places", told, json=json)


def _tell_points(run: Path, path: Path, kind: str, then: str, *, json: bool) -> int:
    """Say where points to answer are, and what to do with them."""
    if json:
        print(jsonlib.dumps({"run": str(run), "points": str(path)}))
        return 0
    console = Console()
    console.print(f"{kind}: {escape(str(path))}", soft_wrap=True)
    words = f"fill in the column 'present' (1 or 0), {then}"
    console.print(escape(words), soft_wrap=True)
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
