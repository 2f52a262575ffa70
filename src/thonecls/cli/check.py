"""The commands `thonecls demo` and `thonecls check`: a first map, and a look before one."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls.cli.app import (
    DemoPreset,
    Json,
    LabelFlags,
    LabelSettings,
    LabelsFile,
    MoreFiles,
    Out,
    Overrides,
    SceneFile,
    SceneFlags,
    ScenePreset,
    SceneSettings,
    Seed,
    Settings,
    app,
    conclude,
    errors,
    resolve,
    scenes_and_labels,
    with_flags,
)
from thonecls.cli.train import preset_of, usual_method

if TYPE_CHECKING:
    from thonecls.workflow import CheckSummary
    from thonecls.workflow.summaries import Finding


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
            method=usual_method(preset, 1, config),
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
        config=resolve(preset_of(preset, scenes, layer, scene_options, label_options), config),
        method=usual_method(preset, 1, config),
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
