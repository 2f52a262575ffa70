"""The command `thonecls`: demo, train, map, info."""

from __future__ import annotations

import json as jsonlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, field, fields, make_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from thonecls import __version__, workflow
from thonecls.checkpoint import EVERY
from thonecls.errors import ThoneclsError
from thonecls.train import PRESETS, Progress, TrainConfig

INTERRUPTED = 130  # the exit code that shells use after Ctrl-C

app = App(
    name="thonecls",
    version=__version__,
    help="""Map ONE class in a hyperspectral scene from about a hundred labelled pixels of it.

No negative labels and no class prior are needed. First steps:

`thonecls demo` maps a field crop in a real scene that comes with the package.

`thonecls train scene.mat labels.npy --out run` maps your own scene.

`thonecls map run/model.safetensors other.mat --out map` maps another with the same bands.""",
)
errors = Console(stderr=True)

if TYPE_CHECKING:

    class Overrides(TrainConfig):
        """For the type checker; at run time every field may also be None, for "as the preset"."""

else:

    def _help(setting: Any) -> str:
        values = {name: getattr(preset, setting.name) for name, preset in PRESETS.items()}
        shown = [f"{name} {value}" for name, value in values.items()]
        if len(set(values.values())) == 1:
            shown = [str(value) for value in list(values.values())[:1]]
        return f"{setting.metadata['help']} [{', '.join(shown)}]"

    # One flag for each setting of TrainConfig: its name, type and help are stated only there.
    _types = get_type_hints(TrainConfig)
    Overrides = make_dataclass(
        "Overrides",
        [
            (
                f.name,
                Annotated[_types[f.name] | None, Parameter(help=_help(f), show_default=False)],
                field(default=None),
            )
            for f in fields(TrainConfig)
        ],
        frozen=True,
    )
    Overrides.__module__ = __name__  # else cyclopts takes it for a built-in type

Settings = Annotated[
    Overrides,
    Parameter(name="*", group=Group("Training settings, by preset")),
]
Preset = Annotated[
    Literal["fast", "paper"],
    Parameter(help="Settings to start from: fast takes minutes, paper is the published schedule."),
]
Json = Annotated[bool, Parameter(help="Print one JSON object and nothing else.", negative=())]
Out = Annotated[Path, Parameter(help="Folder for the results; made if it does not exist.")]
Axis = Annotated[
    Literal["first", "last"] | None,
    Parameter(help="Which axis of the cube holds the bands; by default told from the other input."),
]
Threshold = Annotated[float, Parameter(help="Probability above which a pixel is mapped.")]
Seed = Annotated[int, Parameter(help="Seed of everything random: same seed, same result.")]


@app.command
def demo(
    *,
    out: Out = Path("demo-output"),
    target: Annotated[int, Parameter(help="Class of Indian Pines to map, 1 to 16.")] = 2,
    preset: Preset = "fast",
    seed: Seed = 0,
    config: Settings = Overrides(),  # noqa: B008  # frozen
    json: Json = False,
) -> int:
    """Map a crop in a real scene from 100 labels, and compare with the ground truth.

    Uses Indian Pines (AVIRIS, 145×145 pixels, 200 bands), which comes with the package. Writes
    overview.png, curves.png, run.json, the map and the model, and prints precision, recall, F1.
    """
    with _training_bar(quiet=json) as watch:
        summary = workflow.demo(
            out, config=_resolve(preset, config), target=target, seed=seed, on_step=watch
        )
    return _conclude(summary, json)


@app.command
def train(
    cube: Annotated[Path, Parameter(help="The scene: a 3-D array in a .npy, .npz or .mat file.")],
    labels: Annotated[
        Path,
        Parameter(
            help="Pixels of the class: a mask of the scene's size (1/0, 1/-1, bool) or, with "
            "--target, a map of class numbers, as .npy, .npz or .mat; or a .csv of row,column."
        ),
    ],
    *,
    out: Out,
    target: Annotated[
        int | None, Parameter(help="The class number to take from the labels.")
    ] = None,
    preset: Preset = "fast",
    seed: Seed = 0,
    threshold: Threshold = 0.5,
    bands_axis: Axis = None,
    cube_variable: Annotated[
        str | None, Parameter(help="Name of the cube's array, if the file holds several.")
    ] = None,
    labels_variable: Annotated[
        str | None, Parameter(help="Name of the labels' array, if the file holds several.")
    ] = None,
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

    Writes model.safetensors, probability.npy, map.npy (1 class, 0 other), overview.png,
    curves.png and run.json. Ctrl-C ends training early and keeps what was learnt; --resume goes
    on from there, and from the last checkpoint after a crash, to the same result.

    Example: thonecls train scene.mat truth.mat --target 3 --out run
    """
    with _training_bar(quiet=json) as watch:
        summary = workflow.train_scene(
            cube,
            labels,
            out,
            config=_resolve(preset, config),
            seed=seed,
            target=target,
            axis=bands_axis,
            cube_variable=cube_variable,
            labels_variable=labels_variable,
            threshold=threshold,
            overwrite=overwrite,
            resume=resume,
            checkpoint_every=checkpoint_every,
            on_step=watch,
        )
    return _conclude(summary, json)


@app.command(name="map")
def map_command(
    model: Annotated[Path, Parameter(help="A model that `thonecls train` wrote.")],
    cube: Annotated[
        Path, Parameter(help="The scene to map, with the bands of the training scene.")
    ],
    *,
    out: Out,
    threshold: Threshold = 0.5,
    bands_axis: Axis = None,
    cube_variable: Annotated[
        str | None, Parameter(help="Name of the cube's array, if the file holds several.")
    ] = None,
    device: Annotated[str, Parameter(help="auto, cpu, cuda or mps.")] = "auto",
    json: Json = False,
) -> int:
    """Map a scene with a trained model.

    Writes probability.npy, map.npy (1 class, 0 other), overview.png and map.json.

    Example: thonecls map run/model.safetensors scene.mat --out map
    """
    bar = Bar(
        TextColumn("mapping"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=errors,
        disable=json,
    )
    with bar:
        task = bar.add_task("", total=None)
        summary = workflow.map_scene(
            model,
            cube,
            out,
            axis=bands_axis,
            variable=cube_variable,
            threshold=threshold,
            device=device,
            on_window=lambda done, total: bar.update(task, completed=done, total=total),
        )
    return _conclude(summary, json)


@app.command
def info(
    path: Annotated[Path, Parameter(help="A model, a run folder, or a cube.")],
    *,
    cube_variable: Annotated[
        str | None, Parameter(help="Name of the cube's array, if the file holds several.")
    ] = None,
    json: Json = False,
) -> int:
    """Show what a model or a cube holds.

    Example: thonecls info run/model.safetensors
    """
    return _conclude(workflow.describe(path, variable=cube_variable), json)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits 0, 2 on an error that the user can mend, 130 after Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except (ThoneclsError, CycloptsError) as error:
        if "--json" in arguments:
            print(jsonlib.dumps({"error": str(error)}))
        else:
            errors.print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped")
        sys.exit(INTERRUPTED)


def _resolve(preset: str, overrides: TrainConfig) -> TrainConfig:
    given = {name: value for name, value in asdict(overrides).items() if value is not None}
    return replace(PRESETS[preset], **given)


@contextmanager
def _training_bar(*, quiet: bool) -> Iterator[workflow.OnStep]:
    """A progress bar as an `on_step` callback, which also asks to stop after the first Ctrl-C."""
    stopping = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping:
            raise KeyboardInterrupt
        stopping = True
        errors.print("stopping after this step; Ctrl-C again to give up at once")

    bar = Bar(
        TextColumn("training"),
        BarColumn(),
        TextColumn("epoch {task.fields[epoch]}  loss {task.fields[loss]}  {task.fields[pixels]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=errors,
        disable=quiet,
    )
    task = bar.add_task("", total=None, epoch="-", loss="-", pixels="")

    def watch(progress: Progress) -> bool:
        speed = progress.pixels * (bar.tasks[task].speed or 0)
        bar.update(
            task,
            total=progress.epochs * progress.steps,
            completed=(progress.epoch - 1) * progress.steps + progress.step,
            epoch=f"{progress.epoch}/{progress.epochs}",
            loss=f"{progress.figures.loss:.4f}",
            pixels=f"{speed / 1e3:,.0f} kpx/s",
        )
        if not (quiet or bar.live.is_started):  # only now: an early error needs no bar
            errors.print(
                f"training on {progress.pixels:,} pixels for {progress.epochs} epochs; "
                "Ctrl-C stops early and keeps what was learnt"
            )
            bar.start()
        return stopping

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield watch
    finally:
        bar.stop()
        signal.signal(signal.SIGINT, previous)


def _conclude(summary: dict[str, Any], as_json: bool) -> int:
    """Print a command's result, for a person or for a machine, and choose the exit code."""
    if as_json:
        print(jsonlib.dumps(summary))
    else:
        _print_summary(summary)
    return 0 if summary.get("finished", True) else INTERRUPTED


def _print_summary(summary: dict[str, Any]) -> None:
    console = Console()
    scores = summary.get("scores")
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summary.items():
        if name in ("scores", "config", "versions", "last_epoch", "scene"):
            continue
        table.add_row(name.replace("_", " "), escape(_shown(value)))
    console.print(table)
    if scores:
        console.print(
            f"[bold]precision {scores['precision']:.2f}  recall {scores['recall']:.2f}  "
            f"F1 {scores['f1']:.2f}[/bold]  AUC {scores['auc']:.2f}  "
            f"({scores['positives']} of {scores['pixels']} test pixels are of the class)"
        )
    if "mapped_share" in summary:
        console.print(f"picture: {escape(str(Path(summary['out']) / 'overview.png'))}")
    if not summary.get("finished", True):
        console.print("training was stopped early: the model and its map are usable as they are")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
