"""The folder of a project: which scene, and what people chose."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError, FileError
from thonecls.files import check_writable, write_atomically, writing_array
from thonecls.io.arrays import read_array
from thonecls.io.inputs import SceneInput, read_labels, read_scene
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster import RasterSource
from thonecls.scene import ArraySource
from thonecls.studio.laid import to_map
from thonecls.studio.refusals import ANOTHER, PROJECT
from thonecls.workflow.options import TrainOptions

FACTS, LABELS, ADDRESS = "studio.json", "labels.gpkg", ".address.json"
JOBS, EXPORT, CACHE, VERIFICATION = "jobs", "export", "cache", "verification"
MOST_AUTO = 4_000_000  # pixels of a scene that is trained on without being asked


@dataclass(frozen=True)
class Settings:
    """What people choose; auto: train when labels have rested; cuts: by map, those moved.

    rgb: numbers of the bands to show at first, of a scene that names no wavelengths.
    """

    label: str = "class"
    auto: bool = True
    method: str = "density-ratio"
    cuts: Mapping[str, float] = field(default_factory=dict)
    rgb: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        TrainOptions(method=self.method, label=self.label)  # which checks them


@dataclass(eq=False)
class Project:
    """A project that is open."""

    folder: Path
    scene: SceneInput
    scene_options: SceneOptions
    settings: Settings
    imported: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # positives, negatives
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def labels(self) -> Path:
        return self.folder / LABELS

    def change(self, **changes: Any) -> Settings:
        """Other settings, checked, and on disk when this returns."""
        with self._lock:
            self.settings = replace(self.settings, **changes)
            self.save()
            return self.settings

    def set_cut(self, name: str, cut: float | None) -> None:
        """Remember the cut of a map; None: its own."""
        others = {key: value for key, value in self.settings.cuts.items() if key != name}
        self.change(cuts=others if cut is None else others | {name: cut})

    def save(self) -> None:
        """Write studio.json."""
        facts = {
            "scene": str(self.scene.path.resolve()),
            "scene_options": asdict(self.scene_options),
            "settings": asdict(self.settings),
        }
        write_atomically(self.folder / FACTS, json.dumps(facts, indent=2).encode())


def open_project(
    folder: Path,
    scene: Path | None,
    scene_options: SceneOptions | None = None,
    *,
    labels: Path | None = None,
    label_options: LabelOptions | None = None,
    label: str | None = None,
    rgb: tuple[int, ...] | None = None,
) -> Project:
    """Open a project, or begin one; scene: None for that of a project which is there.

    labels: a file to begin with, of a new project; rgb: see `Settings`.
    """
    folder = folder.resolve()  # jobs and commands must hold wherever they are taken up
    check_writable(folder)
    known = read_facts(folder)
    if known is None:
        if scene is None:
            raise ConfigError(f"{folder} holds no project yet: name a scene")
        options = scene_options or SceneOptions()
        opened = read_scene(scene, options, labels=labels, label_options=label_options)
        project = Project(folder, opened, _resolved(opened, options), _settings(opened, rgb))
        if labels is not None:
            found = read_labels(labels, opened.grid, label_options)
            none = np.empty(0, np.int64)
            refused = none if found.negatives is None else np.flatnonzero(found.negatives)
            lookup = opened.grid.lookup
            project.imported = to_map(lookup, np.flatnonzero(found.mask)), to_map(lookup, refused)
        folder.mkdir(parents=True, exist_ok=True)
    else:
        path = Path(known["scene"])
        if scene is not None and scene.resolve() != path:
            raise FileError(
                f"{folder} is a project of {path}, not of {scene}: {ANOTHER}", options=PROJECT
            )
        if labels is not None:
            raise FileError(
                f"{folder} has its own labels already: leave out {labels}, or {ANOTHER}",
                options=PROJECT,
            )
        options = known["scene_options"]
        asked = asdict(scene_options or SceneOptions())  # as flags it is of another class
        if asked not in (asdict(SceneOptions()), asdict(options)):
            raise FileError(
                f"{folder} reads its scene by other options: leave them out, or {ANOTHER}",
                options=PROJECT,
            )
        project = Project(folder, read_scene(path, options), options, known["settings"])
    if label is not None:
        project.settings = replace(project.settings, label=label)
    return project


def begin_example(folder: Path) -> Project:
    """A new project on Indian Pines, which an extra brings."""
    from thonecls.datasets import indian_pines  # here: others need not wait for it

    data = indian_pines()
    check_writable(folder)
    path = folder / "indian-pines.npy"
    with writing_array(path, np.float32, data.scene.cube.shape) as array:
        array[:] = data.scene.cube
    rgb = tuple(band + 1 for band in data.rgb)
    return open_project(folder, path, SceneOptions(bands_axis="first"), label="corn", rgb=rgb)


def _settings(opened: SceneInput, rgb: tuple[int, ...] | None) -> Settings:
    """Of a new project; to map a large scene after every few clicks would keep a machine busy."""
    rows, columns = opened.grid.shape
    return Settings(auto=rows * columns <= MOST_AUTO, rgb=rgb)


def _resolved(opened: SceneInput, options: SceneOptions) -> SceneOptions:
    """The options with the axis that labels told of: the studio's own labels do not."""
    if isinstance(opened.source, RasterSource) or options.bands_axis is not None:
        return options
    assert isinstance(opened.source, ArraySource)
    # Were both ends as long, labels could not have told.
    first = read_array(opened.path, axes=3, variable=options.variable).shape
    return replace(options, bands_axis="first" if first == opened.source.array.shape else "last")


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What studio.json of a folder tells, checked; None where there is none."""
    path = folder / FACTS
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        return {
            "scene": str(found["scene"]),
            "scene_options": _of(SceneOptions, found["scene_options"]),
            "settings": _of(Settings, found["settings"]),
        }
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(
            f"{path} does not tell of a project ({error}): {ANOTHER}", options=PROJECT
        ) from error


def _of(kind: Any, found: Mapping[str, Any]) -> Any:
    """A dataclass from what a file says of its fields."""
    names = {f.name for f in fields(kind)}
    return kind(**{name: value for name, value in found.items() if name in names})
