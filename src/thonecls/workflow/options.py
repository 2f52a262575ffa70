"""What training and mapping are told, what tells one from another, and commands to repeat."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

import numpy as np

from thonecls.errors import ConfigError
from thonecls.files import files_below
from thonecls.io.inputs import LabelInput, SceneInput
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster.gdal import data_file
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig
from thonecls.methods import METHODS, Method, unknown_method
from thonecls.scene import BoolArray
from thonecls.schema import MOST_LABEL
from thonecls.splits import Coverage
from thonecls.workflow.run_folder import GIVEN, check_minimum_area, check_threshold

if TYPE_CHECKING:
    from thonecls.method.fit import OnStep
    from thonecls.workflow.map import OnWindow


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    if not 0 <= seed < 2**62:
        raise ConfigError(f"'seed' must be from 0 to 2^62 - 1. Got {seed} instead")


@dataclass(frozen=True)
class TrainOptions:
    """What training is to do besides its settings.

    seeds: how many models, with seeds from `seed` on; folds: in how many parts labels are left out
    in turn to judge the map by, 0 for none; threshold: a probability, None for the model's own;
    label: what the class is called; coverage: where labels come from, for the density ratio, None
    to have it seen; minimum_area: of polygons in m², None for that of a few pixels.
    """

    method: str = "density-ratio"
    coverage: Coverage | None = None
    estimate_prior: str | None = None
    seed: int = 0
    seeds: int = 1
    folds: int = 3
    threshold: float | None = None
    label: str = "class"
    floats: bool = False
    minimum_area: float | None = None
    polygons: bool = True

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        check_minimum_area(self.minimum_area)
        if self.method not in METHODS:
            raise unknown_method(self.method)
        if odd := next((c for c in self.label if category(c) in ("Cc", "Cs")), None):
            raise ConfigError(f"'label' must be a name, without control characters. Got {odd!r}")
        if self.seeds < 1:
            raise ConfigError(f"'seeds' must be 1 or more. Got {self.seeds} instead")
        if self.seeds > 1 and not METHODS[self.method].learning.several:
            raise ConfigError(
                f"{self.method} has no use for several seeds: leave out 'seeds'",
                options=("seeds",),
            )
        if self.coverage is not None and not METHODS[self.method].coverage:
            raise ConfigError(
                f"{self.method} has no use for a coverage: leave out 'coverage'",
                options=("coverage",),
            )
        check_seed(self.seed)
        if len(self.label) > MOST_LABEL:
            raise ConfigError(
                f"'label' must be a name of at most {MOST_LABEL} characters. Got "
                f"{len(self.label):,} instead"
            )
        if self.folds != 0 and not 2 <= self.folds <= 20:
            raise ConfigError(f"'folds' must be 0, or from 2 to 20. Got {self.folds} instead")
        if self.estimate_prior is not None and not METHODS[self.method].needs_prior:
            raise ConfigError(
                f"{self.method} needs no class prior: leave out 'estimate_prior'",
                options=("estimate_prior",),
            )


OnFold = Callable[[int, int, int], None]  # how many are done, of how many, how many at a time
OnTraining = Callable[[int, int], None]  # how many networks are trained, of how many


@dataclass(frozen=True)
class Running:
    """How a training is run, and who hears of it; its outcome does not depend on that.

    resume: one that was stopped or killed goes on from its last checkpoint, and a finished one is
    left as it is; checkpoint_every: seconds; jobs: processes in which networks of folds may be
    trained; a script that asks for several must guard its main part (`if __name__ ==
    "__main__"`). dask: the address of a scheduler whose workers train the networks and score the
    maps instead. on_plan hears what a network will take, on_training of networks on a cluster.
    """

    overwrite: bool = False
    resume: bool = False
    checkpoint_every: float = CHECKPOINT_SECONDS
    jobs: int = 1
    dask: str | None = None
    on_plan: Callable[[str], None] | None = None
    on_step: OnStep | None = None
    on_fold: OnFold | None = None
    on_training: OnTraining | None = None
    on_window: OnWindow | None = None

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise ConfigError(
                "'resume' continues, 'overwrite' begins again: say one of the two",
                options=("resume", "overwrite"),
            )

    def alone(self, resume: bool) -> Running:
        """As another process runs a part of it, which nobody hears of."""
        return Running(resume=resume, checkpoint_every=self.checkpoint_every)


@dataclass(frozen=True)
class MapOptions:
    """How a scene is mapped.

    threshold: the model's own unless told; floats: probability as float32, not as whole percents;
    minimum_area: of the polygons, in m², that of a few pixels unless told; tolerance: between
    bands, in nm; dask: the address of a scheduler whose workers score the windows; force: take the
    values as they are, on whatever scale; resume: go on with a map that was killed.
    """

    threshold: float | None = None
    floats: bool = False
    minimum_area: float | None = None
    polygons: bool = True
    tolerance: float | None = None
    device: str = "auto"
    dask: str | None = None
    force: bool = False
    overwrite: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        check_minimum_area(self.minimum_area)


@dataclass(frozen=True, eq=False)
class Task:
    """A training that is ready to begin."""

    out: Path
    scene: SceneInput
    labels: LabelInput
    positives: BoolArray
    config: TrainConfig
    options: TrainOptions


USUAL: dict[str, Any] = {
    **asdict(SceneOptions()),
    **asdict(LabelOptions()),
    **{name: value for name, value in asdict(TrainOptions()).items() if name != "threshold"},
}


def quoted(words: Sequence[str]) -> str:
    """A command to be copied; words with apostrophes stand between plain quotation marks.

    >>> print(quoted(["thonecls", "check", "--where", "kind = 'oak'", "--label", "an oak"]))
    thonecls check --where "kind = 'oak'" --label 'an oak'
    """
    return " ".join(
        f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)
        for word in words
    )


def train_command(
    scene: Path | Sequence[Path],
    labels: Path,
    options: Mapping[str, Any],
    method: Method,
    config: TrainConfig,
) -> str:
    """How to train as was checked; options: those of scene and labels."""
    scenes = [scene] if isinstance(scene, Path) else scene
    words = ["thonecls", "train", *map(str, scenes), str(labels), *_flags(options, USUAL)]
    flags = _config_flags(asdict(config), method)
    if method.learning.presets:
        words += ["--method", method.name, *flags]
    return quoted([*words, "--out", "run"])


def map_command(
    run: Path, scene: Path, options: Mapping[str, Any], threshold: float, out: Path
) -> str:
    """How to map a scene with a run's models, at a threshold; options: those of the scene."""
    words = ["thonecls", "map", str(run), str(scene), *_flags(options, USUAL)]
    return quoted([*words, "--threshold", str(threshold), "--out", str(out)])


def repeat_command(run: Mapping[str, Any]) -> str:
    """The command that makes a map again, from what is written of its run."""
    if "dataset" in run:
        words = ["thonecls", "demo", "--target", run["target"], "--seed", run["seed"]]
        words += ["--positives", run["positives"]]
        method = METHODS[run["method"]]
        words += ["--preset", "fast"] if method.learning.presets else []
        words += _config_flags(run.get("config", {}), method)
        return quoted([*map(str, words), "--out", run["out"]])
    words = ["thonecls", "train", run["cube"], run["labels"], "--out", run["out"]]
    words += _flags({name: run[name] for name in USUAL if name in run}, USUAL)
    config = run.get("config", {})
    if run.get("estimate_prior") is not None:  # it is estimated again
        config = {**config, "prior": None}
    words += _config_flags(config, METHODS[run["method"]])
    if run.get("threshold_reason") == GIVEN:
        words += ["--threshold", str(run["threshold"])]
    return quoted(words)


def _config_flags(config: Mapping[str, Any], method: Method) -> list[str]:
    """Words for the settings: the preset they come from, and those that differ from it."""
    preset = "collage" if config.get("block") else "fast"  # older runs know no blocks
    if preset not in method.learning.presets:
        if method.on != "single spectra":
            return []
        asked = {name: config.get(name) for name in method.learning.uses or ()}
        return _flags(asked, asdict(TrainConfig()))
    words = ["--preset", preset] if preset == "collage" else []
    return words + _flags(config, asdict(method.configure(method.learning.presets[preset])))


def _flags(values: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    """Words for the values that are not the usual ones.

    >>> _flags({"where": "a = 1", "all_touched": True, "seed": 0}, USUAL)
    ['--where', 'a = 1', '--all-touched']
    >>> _flags({"ema": False}, {"ema": True})
    ['--ema=False']
    """
    words = []
    for name, value in values.items():
        if value is not None and value != usual.get(name):
            flag = f"--{name.replace('_', '-')}"
            if isinstance(value, bool):
                words += [flag if value else f"{flag}=False"]
            else:
                words += [flag, str(value)]
    return words


SIDE, WINDOWS = 16, 3  # pixels of the windows that are looked at, and how many down and across


def asked_of_training(
    scene: SceneInput,
    labels: LabelInput,
    config: TrainConfig,
    options: TrainOptions,
    scene_options: SceneOptions | None,
    label_options: LabelOptions | None,
) -> dict[str, Any]:
    """All that a training's outcome depends on, as JSON has it."""
    asked = {
        "cube": [str(one.path.resolve()) for one in scene.parts] or str(scene.path.resolve()),
        "scene content": scene_stamp(scene),
        "labels": str(labels.path.resolve()),
        "labelled pixels": _labels_digest(labels),
        **asdict(scene_options or SceneOptions()),
        **asdict(label_options or LabelOptions()),
        **asdict(options),
        **METHODS[options.method].used_settings(config),
    }
    told: dict[str, Any] = json.loads(json.dumps(asked))
    return told


def scene_stamp(scene: SceneInput) -> list[Any]:
    """What a scene's file shows of being another, or changed: size, time, a digest of windows."""
    if scene.parts:
        return [
            [part.name, scene_stamp(one)]
            for part, one in zip(scene.grid.parts, scene.parts, strict=True)
        ]
    path = scene.path
    files = files_below(path) if path.is_dir() else sorted({path, data_file(path)})
    stats = [file.stat() for file in files]
    digest = hashlib.sha256()
    for rows, columns in _windows(scene.grid.shape):
        part = scene.source.read(rows, columns)
        digest.update(np.where(part.valid, part.cube, 0).astype("<f4").tobytes())
        digest.update(np.packbits(part.valid).tobytes())
    times = [stat.st_mtime_ns // 1000 for stat in stats]  # not all file systems tell less
    return [sum(stat.st_size for stat in stats), max(times), digest.hexdigest()]


def _windows(shape: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    down, across = (
        np.unique(np.linspace(0, max(0, length - SIDE), WINDOWS).astype(int)).tolist()
        for length in shape
    )
    for row in down:
        for column in across:
            yield slice(row, min(row + SIDE, shape[0])), slice(column, min(column + SIDE, shape[1]))


def _labels_digest(labels: LabelInput) -> str:
    """Of the pixels as they are learnt from, whatever their file is like."""
    digest = hashlib.sha256()
    for mask in (labels.mask, labels.negatives, labels.answers):
        digest.update(b"none" if mask is None else np.packbits(mask).tobytes())
    return digest.hexdigest()


def asked_of_map(scene: SceneInput, options: SceneOptions | None, **others: Any) -> dict[str, Any]:
    """All that a map's windows and files depend on, besides the models, of which its tags tell."""
    return {
        "scene": str(scene.path.resolve()),
        "scene content": scene_stamp(scene),
        **asdict(options or SceneOptions()),
        **others,
    }
