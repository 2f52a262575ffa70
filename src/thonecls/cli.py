"""The command `thonecls`: demo, train, map, prior, methods, info."""

from __future__ import annotations

import json as jsonlib
import sys
from dataclasses import asdict, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls import __version__, workflow
from thonecls.checkpoint import EVERY
from thonecls.errors import ConfigError, ThoneclsError
from thonecls.methods import METHODS, deep
from thonecls.progress import Display
from thonecls.train import PRESETS, TrainConfig

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
CubeVariable = Annotated[
    str | None, Parameter(help="Name of the cube's array, if the file holds several.")
]
Threshold = Annotated[float, Parameter(help="Probability above which a pixel is mapped.")]
LabelsFile = Annotated[
    Path,
    Parameter(
        help="Pixels of the class: a mask of the scene's size (1/0, 1/-1, bool) or, with "
        "--target, a map of class numbers, as .npy, .npz or .mat; or a .csv of row,column."
    ),
]
CubeFile = Annotated[Path, Parameter(help="The scene: a 3-D array in a .npy, .npz or .mat file.")]
Target = Annotated[int | None, Parameter(help="The class number to take from the labels.")]
LabelsVariable = Annotated[
    str | None, Parameter(help="Name of the labels' array, if the file holds several.")
]
Seed = Annotated[int, Parameter(help="Seed of everything random: same seed, same result.")]


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
            config=_resolve(preset, config),
            target=target,
            positives=positives,
            seed=seed,
            on_step=display.on_step,
        )
    return _conclude(summary, json)


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
            config=_resolve(preset, config, method),
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
    return _conclude(summary, json)


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
    return _conclude(summary, json)


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
def methods(*, json: Json = False) -> int:
    """List every method that `train --method` takes.

    Example: thonecls methods
    """
    if json:
        cards = {
            name: {f.name: getattr(m, f.name) for f in fields(m) if f.name != "score"}
            for name, m in METHODS.items()
        }
        print(jsonlib.dumps(cards))
        return 0
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for column in ("minimises", "needs prior", "works on", "paper"):
        table.add_column(column)
    for name, m in METHODS.items():
        prior = "yes" if m.needs_prior else ""
        table.add_row(name, m.minimises, prior, "scene" if m.network else "spectra", m.paper)
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
    return _conclude(workflow.describe(path, variable=cube_variable), json)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits 0, 2 on an error that the user can mend, 130 after Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except (ThoneclsError, CycloptsError) as error:
        _fail(str(error), arguments)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{where}: check the path and the space left", arguments)
    except KeyboardInterrupt:
        errors.print("stopped")
        sys.exit(INTERRUPTED)


def _fail(message: str, arguments: list[str]) -> NoReturn:
    if "--json" in arguments:
        print(jsonlib.dumps({"error": message}))
    else:
        errors.print(f"[bold red]error:[/bold red] {escape(message)}", soft_wrap=True)
    sys.exit(2)


def _resolve(preset: str, overrides: TrainConfig, method: str = "t-honecls") -> TrainConfig:
    given = {name: value for name, value in asdict(overrides).items() if value is not None}
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}: `thonecls methods` lists them")
    if not METHODS[method].network:
        return replace(PRESETS[preset], **given)
    return deep.settings(method, PRESETS[preset], **given)


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
    made = "mapped_share" in summary  # what was made is in the folder; `info` shows it in full
    for name, value in summary.items():
        if name not in ("scores", "warning") and not (made and name in ("config", "versions")):
            table.add_row(name.replace("_", " "), escape(_shown(value)))
    console.print(table)
    if scores:
        console.print(
            f"[bold]precision {scores['precision']:.2f}  recall {scores['recall']:.2f}  "
            f"F1 {scores['f1']:.2f}[/bold]  AUC {scores['auc']:.2f}  "
            f"({scores['positives']} of {scores['pixels']} test pixels are of the class)"
        )
    if "warning" in summary:
        console.print(f"[bold yellow]warning:[/bold yellow] {escape(summary['warning'])}")
    if made:
        console.print(f"picture: {escape(str(Path(summary['out']) / 'overview.png'))}")
    if not summary.get("finished", True):
        console.print("training was stopped early: the model and its map are usable as they are")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
