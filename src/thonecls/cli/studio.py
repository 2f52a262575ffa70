"""The command that opens the studio in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from thonecls.cli.app import (
    LabelFlags,
    LabelSettings,
    LabelsFile,
    SceneFile,
    SceneFlags,
    SceneSettings,
    app,
)
from thonecls.errors import ConfigError
from thonecls.extras import need

EXAMPLE = "indian-pines-studio"


@app.command
def studio(
    scene: SceneFile | None = None,
    labels: LabelsFile | None = None,
    *,
    project: Annotated[
        Path | None,
        Parameter(
            help="Folder for labels, maps and exports; made if it does not exist. Unless told, "
            "SCENE-studio in the current folder."
        ),
    ] = None,
    label: Annotated[str | None, Parameter(help="What the class is called.")] = None,
    port: Annotated[int, Parameter(help="Port to listen at; 0: as last time, or a free one.")] = 0,
    open: Annotated[bool, Parameter(help="Open the page in the browser.")] = True,
    host: Annotated[
        str, Parameter(help="Address to listen at; other than loopback needs --i-know.")
    ] = "127.0.0.1",
    i_know: Annotated[
        bool,
        Parameter(
            help="Let others on the network reach the studio, without encryption.", negative=()
        ),
    ] = False,
    scene_options: SceneSettings = SceneFlags(),  # noqa: B008  # frozen
    label_options: LabelSettings = LabelFlags(),  # noqa: B008
) -> None:
    """Label, learn and look in the browser: click a few pixels, see the class appear.

    Every click is kept in the project's labels.gpkg, which `thonecls train` takes too. Without a
    scene it opens that of the project, or an example (Indian Pines). Ctrl-C ends it; what was being
    trained goes on at the next start.

    Example: thonecls studio scene.tif

    Example: thonecls studio scene.tif plants.gpkg --where "species = 'Lantana'" --label Lantana
    """
    for package in ("fastapi", "uvicorn"):
        need(package, "the studio")
    from thonecls.studio.launch import check_host, serve
    from thonecls.studio.project import begin_example, open_project, read_facts

    check_host(host, i_know)
    if scene is None and labels is not None:
        raise ConfigError("labels belong to a scene: name the scene first")
    folder = project or Path(EXAMPLE if scene is None else f"{scene.stem}-studio")
    if project is None and scene is None and read_facts(folder) is None:
        opened = begin_example(folder)
    else:
        opened = open_project(
            folder, scene, scene_options, labels=labels, label_options=label_options, label=label
        )
    console = Console()

    def tell(address: str) -> None:
        console.print(f"project: {folder}", soft_wrap=True, markup=False)
        console.print(f"studio:  {address}", soft_wrap=True, markup=False)
        console.print("Ctrl-C ends it; labels are kept as you click", soft_wrap=True)

    serve(opened, host=host, port=port, known_risk=i_know, open_page=open, on_start=tell)
