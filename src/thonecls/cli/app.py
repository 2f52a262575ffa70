"""What the commands share: the app, the flags that several take, and how results are shown."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import App, Group, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls.errors import ConfigError
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.method.config import PRESETS, TrainConfig
from thonecls.methods import METHODS, unknown_method
from thonecls.version import __version__

SPAN = 8  # numbers in a list that are shown one by one
SOME_FAILED = 3  # the exit code where some of many scenes could not be mapped
INTERRUPTED = 130  # the exit code that shells use after Ctrl-C
UNREAD = 141  # and where nobody reads what is printed
# Of a summary, what is not shown: it is in the folder, and `info` shows it in full.
IN_FOLDER = ("config", "versions", "files", "asked")

app = App(
    name="thonecls",
    version=__version__,
    help="""Map ONE class in a hyperspectral scene from about a hundred labelled pixels of it.

No negative labels and no class prior are needed. First steps:

`thonecls demo` maps a field crop in a real scene that comes with the package.

`thonecls check scene.tif labels.gpkg` checks whether your scene and labels fit together.

`thonecls train scene.tif labels.gpkg --out run` maps your scene; `run/report.html` says how far to
trust the map.

`thonecls map run other.tif --out map` maps another scene with it.""",
)
app.register_install_completion_command(
    help="Complete commands and options with the Tab key, in bash, zsh and fish."
)
errors = Console(stderr=True)


def with_flags(words: str, options: tuple[str, ...]) -> str:
    """Words of the library with the options that they name as flags.

    >>> with_flags("say 'bands_axis' last", ("bands_axis",))
    'say --bands-axis last'
    """
    for name in options:
        words = words.replace(f"'{name}'", f"--{name.replace('_', '-')}")
    return words


if TYPE_CHECKING:
    from thonecls.workflow import TruthFile

    class Overrides(TrainConfig):
        """For the type checker; at run time every field may also be None, for "as the preset"."""

    class SceneFlags(SceneOptions):
        """For the type checker; at run time the fields carry their help."""

    class LabelFlags(LabelOptions):
        """For the type checker; at run time the fields carry their help."""

else:
    # One flag for each field of a dataclass: its name, type and help are stated only there.

    def _as_preset(setting: Any) -> str:
        values = {name: getattr(preset, setting.name) for name, preset in PRESETS.items()}
        shown = [f"{name} {value}" for name, value in values.items()]
        if len(set(values.values())) == 1:
            shown = [str(value) for value in list(values.values())[:1]]
        return f"{setting.metadata['help']} [{', '.join(shown)}]"

    def _flags(name: str, options: type, help: Any, default: Any, **base: Any) -> type:
        types = get_type_hints(options)
        made = make_dataclass(
            name,
            [
                (
                    f.name,
                    Annotated[
                        types[f.name] | None if default is None else types[f.name],
                        Parameter(help=help(f), show_default=False, negative=()),
                    ],
                    field(default=f.default if default is ... else default),
                )
                for f in fields(options)
            ],
            frozen=True,
            **base,
        )
        made.__module__ = __name__  # else cyclopts takes it for a built-in type
        return made

    def _own(setting: Any) -> str:
        return setting.metadata["help"]

    Overrides = _flags("Overrides", TrainConfig, _as_preset, None)
    SceneFlags = _flags("SceneFlags", SceneOptions, _own, ..., bases=(SceneOptions,))
    LabelFlags = _flags("LabelFlags", LabelOptions, _own, ..., bases=(LabelOptions,))

Settings = Annotated[
    Overrides,
    Parameter(name="*", group=Group("Training settings, by preset")),
]
DemoPreset = Annotated[
    Literal["fast", "paper"] | None,
    Parameter(
        help="Train the network of the paper: fast takes minutes, paper is the published schedule. "
        "By default the density ratio makes the map, in seconds."
    ),
]
ScenePreset = Annotated[
    Literal["fast", "collage", "paper"] | None,
    Parameter(
        help="Settings to start from: fast sees the whole scene at every step and takes minutes, "
        "collage sees blocks of it, as fast on a scene of any size, paper is the published "
        "schedule. By default fast, and collage above 500,000 pixels."
    ),
]
Json = Annotated[bool, Parameter(help="Print one JSON object and nothing else.", negative=())]
ProgressForm = Annotated[
    Literal["bar", "json"] | None,
    Parameter(
        name="--progress",
        help="How progress is shown on stderr: as a bar, or as JSON, one object a line with stage "
        "(train, judge or map), done and total. By default a bar, and nothing with --json.",
    ),
]
Out = Annotated[Path, Parameter(help="Folder for the results; made if it does not exist.")]
SceneSettings = Annotated[SceneFlags, Parameter(name="*", group=Group("How the scene is read"))]
LabelSettings = Annotated[LabelFlags, Parameter(name="*", group=Group("How labels are read"))]
LabelsFile = Annotated[
    Path,
    Parameter(
        help="Where the class is: a layer of points, lines or polygons (.gpkg, .shp, .geojson, "
        ".kml, .fgb, .csv of lon,lat or x,y), a raster or array of 1/0 or of class numbers with "
        "--target, or a .csv of row,column. Of several scenes one layer for all, or a pattern or "
        "folder of files called like the scenes; scenes without labels serve as unlabeled."
    ),
]
SceneFile = Annotated[
    Path,
    Parameter(
        help="The scene: GeoTIFF, ENVI, NetCDF, HDF5 or whatever else GDAL reads, a folder of "
        "single bands, or a 3-D array in a .npy, .npz or .mat file. Several are learnt from "
        "together: a pattern such as 'tiles/*.tif', a folder of scenes, a .txt with a scene in "
        "each line, or a STAC collection on disk."
    ),
]
MoreFiles = Annotated[
    Path,
    Parameter(
        name="more",
        show=False,  # what a shell makes of tiles/*.tif labels.gpkg
    ),
]
DataRoot = Annotated[
    Path | None,
    Parameter(help="Folder with the datasets' files; else THONECLS_DATA, else ./data."),
]
Seed = Annotated[int, Parameter(help="Seed of everything random: same seed, same result.")]
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


@dataclass(frozen=True)
class TruthFlags:
    """What is known of a scene, for the report's scores only."""

    truth: Annotated[
        Path | None, Parameter(help="What is known of the scene, for the report's scores only.")
    ] = None
    truth_target: Annotated[
        int | None, Parameter(help="The class number in a truth of several.")
    ] = None
    truth_where: Annotated[
        str | None, Parameter(help="Which features of the truth are the class.")
    ] = None
    truth_negative: Annotated[
        str | None, Parameter(help="Which features of the truth are certainly not the class.")
    ] = None
    truth_layer: Annotated[str | None, Parameter(help="The truth's layer.")] = None

    def file(self) -> TruthFile | None:
        """What was given, as the library takes it."""
        if self.truth is None:
            if any(value is not None for value in asdict(self).values()):
                raise ConfigError("what is the truth's file? Give it by --truth")
            return None
        from thonecls.workflow import TruthFile

        options = LabelOptions(
            target=self.truth_target, where=self.truth_where, layer=self.truth_layer
        )
        return TruthFile(self.truth, options, self.truth_negative)


TruthSettings = Annotated[TruthFlags, Parameter(name="*")]


def scenes_and_labels(
    scene: Path, labels: Path | None, more: tuple[Path, ...]
) -> tuple[Path | list[Path], Path | None]:
    """What is given: the labels come last, whatever a shell made of a pattern before them.

    >>> scenes_and_labels(Path("a.tif"), Path("b.tif"), (Path("labels.gpkg"),))[1].name
    'labels.gpkg'
    """
    if labels is None or not more:
        return scene, labels
    *others, last = more
    return [scene, labels, *others], last


def given_settings(overrides: TrainConfig) -> dict[str, Any]:
    """The settings that were given on the command line."""
    return {name: value for name, value in asdict(overrides).items() if value is not None}


def resolve(preset: str, overrides: TrainConfig, method: str = "t-honecls") -> TrainConfig:
    """A preset with the settings that were given, for a method."""
    given = given_settings(overrides)
    if method not in METHODS:
        raise unknown_method(method)
    METHODS[method].refuse_unused(given)
    return METHODS[method].configure(PRESETS[preset], **given)


def conclude(summary: dict[str, Any], as_json: bool) -> int:
    """Print a command's result, for a person or for a machine, and choose the exit code."""
    if as_json:
        print(jsonlib.dumps(summary))
    else:
        _print_summary(summary)
    return 0 if summary.get("finished", True) else INTERRUPTED


def _print_summary(summary: dict[str, Any]) -> None:
    console = Console()
    for problem in summary.get("problems", []):
        console.print(f"[bold yellow]warning:[/bold yellow] {escape(problem)}", soft_wrap=True)
    if "verdict" in summary:
        _print_verdict(console, summary)
        return
    if "mapped_share" in summary:
        _print_map(console, summary)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summary.items():
        if name != "problems" and value != {}:
            table.add_row(name.replace("_", " "), escape(_shown(value)))
    console.print(table)


def _print_map(console: Console, summary: dict[str, Any]) -> None:
    """The end of mapping: how much is mapped, how much of it is a guess, where to look."""
    words = f"The map covers {_share(summary['mapped_share'])} of the scene"
    if "novel_share" in summary and "warning" not in summary:  # which tells it too
        words += f"; {_share(summary['novel_share'])} of the scene is unlike the training scene"
    console.print(f"[bold]{escape(words)}.[/bold]", soft_wrap=True)
    for note in summary["notes"]:
        console.print(f"note: {escape(note)}", soft_wrap=True)
    if "warning" in summary:
        console.print(
            f"[bold yellow]warning:[/bold yellow] {escape(summary['warning'])}", soft_wrap=True
        )
    console.print(f"picture: {escape(str(Path(summary['out']) / 'overview.png'))}", soft_wrap=True)


def _share(value: float) -> str:
    from thonecls.trust.evidence import percent  # here: help must not wait for it

    return percent(value)


def _print_verdict(console: Console, summary: dict[str, Any]) -> None:
    """The end of a training in three lines: the verdict, what is found, where to read on."""
    colour = {"good": "green", "check": "yellow", "poor": "red"}[summary["verdict"]]
    console.print(f"[bold {colour}]{escape(summary['words'])}[/bold {colour}]", soft_wrap=True)
    console.print(escape(summary["finding"]), soft_wrap=True)
    if scores := summary.get("scores"):
        console.print(
            f"[bold]precision {scores['precision']:.1f}  recall {scores['recall']:.1f}  "
            f"F1 {scores['f1']:.1f}[/bold]  AUC {scores['auc']:.1f}, against the truth "
            f"({scores['positives']} of {scores['pixels']} test pixels are of the class)",
            soft_wrap=True,
        )
    console.print(f"report: {escape(str(Path(summary['out']) / 'report.html'))}", soft_wrap=True)
    if not summary.get("finished", True):
        console.print("training was stopped early: the model and its map are usable as they are")


def _shown(value: object) -> str:
    """A value for a person; of a long list of numbers its span.

    >>> _shown([400.0, 410.5, 420.0]), _shown(list(range(9))), _shown({"rows": 3, "note": None})
    ('400, 410.5, 420', '0 to 8 (9 values)', 'rows 3, note none')
    >>> _shown([[1, 3], [5]]), _shown(-32768.0), _shown(1 / 3), _shown(True)
    ('(1, 3), (5)', '-32768', '0.3333', 'yes')
    """
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        numbers = [item for item in value if isinstance(item, int | float)]
        if len(numbers) == len(value) > SPAN:
            return f"{_shown(min(numbers))} to {_shown(max(numbers))} ({len(value)} values)"
        parts = (f"({_shown(v)})" if isinstance(v, list) else _shown(v) for v in value)
        return ", ".join(parts) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    return f"{value:.0f}" if isinstance(value, float) and abs(value) < 1e15 else str(value)


# Commands import what they run: help and typos must not wait for it.
