"""The command `thonecls map`: one scene, or many."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from thonecls.cli.app import (
    SOME_FAILED,
    Floats,
    Json,
    MinimumArea,
    Out,
    Overwrite,
    Polygons,
    ProgressForm,
    SceneFlags,
    SceneSettings,
    Threshold,
    app,
    conclude,
    errors,
    with_flags,
)
from thonecls.errors import ThoneclsError

if TYPE_CHECKING:
    from thonecls.workflow import Outcome


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
