"""What the commands share: the app, the flags that several take, and how results are shown."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import App, Group, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls import __version__
from thonecls.errors import ConfigError
from thonecls.methods import METHODS, deep
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
DataRoot = Annotated[
    Path | None,
    Parameter(help="Folder with the datasets' files; else THONECLS_DATA, else ./data."),
]
Seed = Annotated[int, Parameter(help="Seed of everything random: same seed, same result.")]


def given_settings(overrides: TrainConfig) -> dict[str, Any]:
    """The settings that were given on the command line."""
    return {name: value for name, value in asdict(overrides).items() if value is not None}


def resolve(preset: str, overrides: TrainConfig, method: str = "t-honecls") -> TrainConfig:
    """A preset with the settings that were given, for a method."""
    given = given_settings(overrides)
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}: `thonecls methods` lists them")
    if not METHODS[method].network:
        return replace(PRESETS[preset], **given)
    return deep.settings(method, PRESETS[preset], **given)


def conclude(summary: dict[str, Any], as_json: bool) -> int:
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
