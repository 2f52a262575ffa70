"""The folder of a run or a map: its files, what may not be overwritten, and reading them back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.windows import Window

from thonecls import schema
from thonecls.errors import ConfigError, FileError, ModelError
from thonecls.files import digest_of, locked, write_atomically
from thonecls.io.arrays import read_array
from thonecls.io.grid import Grid, Part
from thonecls.io.lookup import GEOMETRY
from thonecls.io.raster import open_gdal
from thonecls.scene import NO_DATA, FloatArray
from thonecls.schema import EVIDENCE as EVIDENCE_RULES
from thonecls.schema import MismatchError, check_arrays

RUN, EVIDENCE = "run.json", "evidence.npz"
SUMMARY = "map.json"
BEGUN = ".begun.json"  # what a training is asked for, as long as it has not ended
MOST = 2**26  # bytes of run.json
OVERVIEW, CURVES, ERRORS = "overview.png", "curves.png", "errors.png"
POLYGONS = "polygons.gpkg"
GIVEN = "given by hand"  # why a threshold is what it is
ANEW = "choose another folder, or train again"
REPORT, REPORT_JSON = "report.html", "report.json"
# A copy of the answers that the report is made with: a scene lies on Earth or it does not.
CHECKED = ("verified-points.gpkg", "verified-points.csv")
MAP = "map.tif"
SCENES, SCENE_LIST = "scenes", "scenes.txt"  # of a run of several
ITEM = "item.json"
LAYERS = ("map", "probability", "uncertainty", "novelty")
MODELS, CHECKPOINTS, FOLDS = (f"{kind}*.safetensors" for kind in ("model", "checkpoint", "fold-"))


def model_path(out: Path, index: int, count: int) -> Path:
    """The file of one of `count` models."""
    return out / ("model.safetensors" if count == 1 else f"model-{index}.safetensors")


def checkpoint_path(out: Path, index: int, count: int) -> Path:
    """Where the training of one of `count` models is kept while it goes on."""
    return out / ("checkpoint.safetensors" if count == 1 else f"checkpoint-{index}.safetensors")


def fold_path(out: Path, number: int, kind: str = "fold") -> Path:
    """The model that has not seen a fold of the labels, or its checkpoint."""
    return out / f"{kind}-{number}.safetensors"


def model_files(path: Path) -> list[Path]:
    """A model's file, or those of all models in a run's folder."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(MODELS))
    if not found:
        raise ModelError(f"{path} holds no model: name a model's file, or the folder of a training")
    return found


def refuse_unfinished(path: Path) -> None:
    """Refuse the folder of a training that has not ended, unless it was stopped by hand."""
    if path.is_dir() and is_unfinished(path) and not (path / RUN).exists():
        raise ModelError(
            f"{path} holds an unfinished training: end it by 'resume', or name a model's file",
            options=("resume",),
        )


@contextmanager
def making(out: Path) -> Iterator[None]:
    """A folder to be filled, by one process at a time: what an error leaves empty is taken away."""
    from thonecls.maps import disk_errors  # here: a check makes no map

    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with disk_errors(out):
            out.mkdir(parents=True, exist_ok=True)
        with locked(out):
            yield
    except BaseException:
        left = {path.name for path in out.iterdir()} if out.is_dir() else set()
        if left in ({BEGUN}, {BEGUN, SCENE_LIST}):  # nothing was made that could be gone on with
            _clear(out, left)
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def begin(out: Path, asked: Mapping[str, Any], *, resume: bool) -> None:
    """Make a folder ready for a training, or for going on with the one that is there.

    What an older one made is taken away before anything is written, its summary first: whenever
    this process is killed, no two trainings lie side by side.
    """
    begun = _read_json(out / BEGUN, "go on elsewhere, or overwrite it") if resume else None
    if begun is not None:
        refuse_other(out, begun, asked)
    clear_outputs(out)
    if begun is None:
        # A checkpoint knows by itself what it belongs to.
        _clear(out, (MODELS, FOLDS) if resume else (CHECKPOINTS, MODELS, FOLDS))
        write_json(out / BEGUN, asked)


def clear_outputs(out: Path) -> None:
    """Take away all that is made from a model, beginning with what says that it is whole."""
    endings = (".tif", ".npy", ".qml", ".tif.aux.xml", ".tif.ovr", ".tif.msk")
    maps = [f"{layer}{ending}" for layer in LAYERS for ending in endings]
    others = [GEOMETRY, OVERVIEW, CURVES, POLYGONS, ITEM, *CHECKED]
    scenes = _own_scenes(out)  # before what tells of them is gone
    _clear(out, (RUN, SUMMARY, REPORT_JSON, REPORT, EVIDENCE, *others, *maps))
    if scenes:
        _clear(out, (SCENE_LIST,))
    for folder in (scene_folder(out, name) for name in scenes):
        clear_outputs(folder)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _own_scenes(out: Path) -> list[str]:
    """The scenes that the training in a folder has mapped, or was to map, as it says itself.

    Folders beside those of its scenes are somebody else's.
    """
    names = set()
    for file in (RUN, BEGUN):
        with suppress(FileError):
            told = _read_json(out / file, ANEW) or {}
            asked = told.get("asked", told)
            stamps = asked.get("scene content", ()) if isinstance(asked, dict) else ()
            names |= {str(stamp[0]) for stamp in stamps if isinstance(stamp, list) and stamp}
    return sorted(path.name for path in (out / SCENES).glob("*") if path.name in names)


def refuse_others(out: Path, scenes: Iterable[str]) -> None:
    """Refuse a folder in which a training on these scenes would write over what it did not make."""
    if (out / RUN).exists() or is_unfinished(out):
        return
    files = [out / SCENE_LIST, *(scene_folder(out, name) / SUMMARY for name in scenes)]
    for file in files:
        if file.exists():
            raise FileError(
                f"{file} is there already, and a training on several scenes would write its own: "
                "choose another 'out'",
                options=("out",),
            )


def _clear(out: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        for path in sorted(out.glob(pattern)):
            path.unlink()


def refuse_other(out: Path, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to go on with what was asked for in other words."""
    differ = [name for name in {**asked, **found} if found.get(name) != asked.get(name)]
    if differ:
        raise FileError(
            f"{out} holds a training with other {', '.join(differ)}: choose another 'out', "
            "or say 'overwrite'",
            options=("out", "overwrite"),
        )


def digests(out: Path) -> dict[str, str]:
    """What tells the files that belong together from those of another training, by their names."""
    maps = [out / f"{layer}{ending}" for layer in LAYERS for ending in (".tif", ".npy")]
    maps += [p for layer in LAYERS for p in sorted((out / SCENES).glob(f"*/{layer}.*"))]
    whole = [
        path
        for path in (*maps, out / EVIDENCE, out / GEOMETRY)
        if path.suffix in (".tif", ".npy", ".npz")
    ]
    found = (*sorted(out.glob(MODELS)), *(path for path in whole if path.exists()))
    return {path.relative_to(out).as_posix(): digest_of(path) for path in found}


def check_together(out: Path, run: Mapping[str, Any], *, models_only: bool = False) -> None:
    """Refuse files that are not those which a run's summary tells of; older ones do not tell."""
    known: dict[str, str] = run.get("files", {})
    models = {path.name for path in out.glob(MODELS)}
    of_models = {name for name in known if Path(name).match(MODELS)}
    if known and of_models != models:
        raise FileError(f"{out} holds other models than {RUN} tells of: {ANEW}")
    for name in of_models if models_only else known:
        if not (out / name).is_file() or digest_of(out / name) != known[name]:
            raise FileError(f"{out / name} is not the one that {RUN} tells of: {ANEW}")


@contextmanager
def attempt(name: str, problems: list[str]) -> Iterator[None]:
    """Make something that is not worth a run: where it fails, that is told in `problems`."""
    try:
        yield
    except Exception as error:  # of foreign libraries, of any kind
        problems.append(f"{name} could not be made ({type(error).__name__}: {error})")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def read_run(out: Path, default: dict[str, Any]) -> dict[str, Any]:
    """What run.json in a folder holds, or the default where there is none."""
    found = _read_json(out / RUN, ANEW)
    if found is None:
        return default
    check_run(out, found, {name: rule.optional for name, rule in schema.RUN.items()})
    return found


def check_run(out: Path, run: dict[str, Any], rules: Mapping[str, schema.Rule]) -> None:
    """Refuse a run.json of which a fact breaks its rule."""
    with schema.refusing(FileError, f"{out / RUN} does not tell of a training", ANEW):
        schema.check_facts(run, rules)


def _read_json(path: Path, step: str) -> dict[str, Any] | None:
    """What a file of facts holds, None where there is none; step: what to do if it is spoilt."""
    if not path.exists():
        return None
    if not path.is_file() or path.stat().st_size > MOST:
        raise FileError(f"{path} is no file of a training: {step}")
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"cannot read {path} ({error}): {step}") from error
    if not isinstance(found, dict):
        raise FileError(f"{path} does not tell of a training: {step}")
    return found


def finished_run(out: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a training that has ended, if it is the one that is asked for, and whole."""
    found = read_run(out, {})
    if "asked" not in found:
        raise FileError(
            f"{out / RUN} does not tell all that was asked for, as of a demo or an older version: "
            "choose another 'out', or say 'overwrite'",
            options=("out", "overwrite"),
        )
    refuse_other(out, found["asked"], asked)
    check_together(out, found)
    return found


def finished_map(out: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a map that is finished, if it is the one that is asked for, and whole."""
    found = _read_json(out / SUMMARY, "map the scene again") or {}
    known = found.get("asked")
    differ = [
        name for name in asked if not isinstance(known, dict) or known.get(name) != asked[name]
    ]
    layers = [out / f"{layer}{ending}" for layer in LAYERS[:2] for ending in (".tif", ".npy")]
    whole = sum(path.exists() for path in layers) >= 2
    if differ or not whole:
        what = (
            f"with other {', '.join(differ)}" if isinstance(known, dict) and differ else "as it is"
        )
        raise FileError(
            f"{out} holds a map {what} that cannot be continued: choose another 'out', or say "
            "'overwrite'",
            options=("out", "overwrite"),
        )
    return found


def is_unfinished(out: Path) -> bool:
    """Whether a training in this folder was stopped or killed."""
    return (out / BEGUN).exists() or any(out.glob(CHECKPOINTS))


def refuse_to_overwrite(out: Path) -> None:
    """Refuse a folder that holds the work of another command."""
    if is_unfinished(out):
        raise FileError(
            f"{out} holds an unfinished training: say 'resume' to go on with it, or 'overwrite'",
            options=("resume", "overwrite"),
        )
    if any((out / name).exists() for name in (RUN, SUMMARY)) or any(out.glob(MODELS)):
        raise FileError(
            f"{out} holds a model or a map already: choose another 'out', or say 'overwrite'",
            options=("out", "overwrite"),
        )


def check_threshold(threshold: float | None) -> None:
    """Refuse a threshold that is no probability; None stands for the model's own."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ConfigError(f"'threshold' must be from 0 to 1. Got {threshold!r} instead")


def check_minimum_area(area: float | None) -> None:
    """Refuse what is no area of polygons; None stands for that of a few pixels."""
    if area is not None and not 0 <= area < float("inf"):
        raise ConfigError(f"'minimum_area' must be 0 or more. Got {area!r} instead")


STRIP = 512  # rows at a time


def scene_folder(out: Path, name: str) -> Path:
    """Where a run of several scenes has the map of one of them."""
    return out / SCENES / name


def tell_scenes(grid: Grid) -> list[dict[str, Any]]:
    """The scenes of a mosaic as run.json has them."""
    return [{"name": part.name, "row": part.row, "column": part.column} for part in grid.parts]


def _scenes_of(out: Path) -> list[tuple[Path, int, int]]:
    """The folders of the scenes that a run learnt from together, and where each begins."""
    told = read_run(out, {}).get("scenes", [])
    return [(scene_folder(out, one["name"]), one["row"], one["column"]) for one in told]


def _read_mosaic(out: Path, name: str) -> tuple[Grid, FloatArray] | None:
    """A layer of the maps of several scenes as one, NaN between them.

    Those of swaths are brought back to the sensor, in whose geometry they were learnt from.
    """
    from thonecls.maps import scene_grid  # here: matplotlib would slow every command

    parts, layers = [], []
    for folder, row, column in _scenes_of(out):
        found = _read_layer(folder, name)
        if found is None:
            return None
        grid, layer = scene_grid(folder, found[0]), found[1]
        if grid.lookup is not None:
            layer = grid.lookup.on_sensor(layer)
        parts.append(Part(folder.name, grid, row, column))
        layers.append(layer)
    shape = tuple(max(part.window[axis].stop for part in parts) for axis in (0, 1))
    whole = np.full(shape, np.nan, np.float32)
    for part, layer in zip(parts, layers, strict=True):
        whole[part.window] = layer
    return Grid((shape[0], shape[1]), parts=tuple(parts)), whole


def read_map_strips(out: Path) -> Iterator[NDArray[np.uint8]]:
    """The map in a folder, some rows at a time: 1 the class, 0 other, 255 nodata.

    That of several scenes comes as a whole.
    """
    if _scenes_of(out):
        found = _read_mosaic(out, "map")
        if found is None:
            raise FileError(f"{out} does not hold the maps of all its scenes: {ANEW}")
        yield np.where(np.isfinite(found[1]), found[1], NO_DATA).astype(np.uint8)
        return
    if not (out / MAP).exists():
        array = np.load(out / "map.npy", mmap_mode="r")
        for start in range(0, len(array), STRIP):
            yield np.asarray(array[start : start + STRIP])
        return
    with open_gdal(str(out / MAP), out / MAP) as file:
        for start in range(0, file.height, STRIP):
            window = Window(0, start, file.width, min(STRIP, file.height - start))
            yield _read_part(file, out / MAP, window)


def read_probability(out: Path) -> tuple[Grid, FloatArray]:
    """Where the map of a folder lies, and its probabilities, NaN on nodata."""
    found = _read_layer(out, "probability")
    if found is None:
        raise FileError(f"{out} holds no map: name the folder of a training")
    return found


def read_novelty(out: Path) -> FloatArray | None:
    """How unlike the training scene pixels are, NaN on nodata, where a folder tells it."""
    found = _read_layer(out, "novelty")
    return None if found is None else found[1]


def read_novelty_strips(out: Path) -> Iterator[FloatArray]:
    """The same, some rows at a time."""
    path = out / "novelty.tif"
    if not path.exists():
        whole = read_novelty(out)
        yield from () if whole is None else (whole,)
        return
    with open_gdal(str(path), path) as file:
        for start in range(0, file.height, STRIP):
            window = Window(0, start, file.width, min(STRIP, file.height - start))
            yield _values(_read_part(file, path, window), file.scales[0])


def _read_layer(out: Path, name: str) -> tuple[Grid, FloatArray] | None:
    """A layer of a map, NaN on nodata, and where it lies; None where there is no such layer."""
    if _scenes_of(out):
        return _read_mosaic(out, name)
    if (out / f"{name}.npy").exists():
        array = read_array(out / f"{name}.npy", axes=2)
        if array.dtype == np.uint8:
            array = _values(array, 1.0)
        return Grid(array.shape), array
    path = out / f"{name}.tif"
    if not path.exists():
        return None
    with open_gdal(str(path), path) as file:
        values = _values(_read_part(file, path), file.scales[0])
        crs = file.crs.to_wkt() if file.crs else None
        grid = Grid((file.height, file.width), tuple(file.transform)[:6], crs)
    return grid, values


def _values(raw: NDArray[Any], scale: float) -> FloatArray:
    missing = raw == NO_DATA if raw.dtype == np.uint8 else ~np.isfinite(raw)
    return np.where(missing, np.float32("nan"), raw * np.float32(scale)).astype(np.float32)


def _read_part(file: Any, path: Path, window: Window | None = None) -> NDArray[Any]:
    try:
        return np.asarray(file.read(1, window=window))
    except OSError as error:  # GDAL's own words are in the cause
        raise FileError(
            f"cannot read {path} ({error.__cause__ or error}): map the scene again"
        ) from error


MOST_EVIDENCE = 2**30  # bytes of evidence, unpacked


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a map is judged by.

    labels: (n,) flat indices; fold: (n,) of each, -1 where it was never left out; crossfit: (n,)
    its probability by a model that has not seen it, NaN where there is none. unlabeled: (models,
    pixels), the probability by each model on the lattice of pixels rows × columns; opinions:
    (methods, pixels), scores by other methods there. label_spectra, scene_spectra: (pixels, C), as
    the file has them; wavelengths: (C,), empty where they are not known; unlike: (pixels,) of the
    lattice, 1 where a spectrum is unlike any label's; components: (pixels, k) of its spectra,
    white, NaN on nodata. negatives: (m,) flat indices of pixels that are known not to be the class.
    """

    labels: NDArray[np.int64]
    fold: NDArray[np.int64]
    crossfit: FloatArray
    unlabeled: FloatArray
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    opinions: FloatArray
    unlike: NDArray[np.bool_]
    components: FloatArray
    label_spectra: FloatArray
    scene_spectra: FloatArray
    wavelengths: NDArray[np.float64]
    negatives: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def _check_evidence(
    arrays: dict[str, NDArray[Any]], shape: tuple[int, int], opinions: int | None
) -> None:
    """Refuse arrays that do not fit each other, or not the map."""
    sizes = check_arrays(arrays, EVIDENCE_RULES)
    limits = dict.fromkeys(("labels", "negatives"), shape[0] * shape[1])
    limits |= {"rows": shape[0], "columns": shape[1]}
    for name, limit in limits.items():
        if name in arrays and arrays[name].size and arrays[name].max() >= limit:
            raise MismatchError(f"its array '{name}' must lie in a map of {shape[0]} × {shape[1]}")
    if sizes["pixels"] != sizes["rows"] * sizes["columns"] or not sizes["pixels"]:
        raise MismatchError("its pixels must lie on a lattice of its rows and columns")
    if sizes["wavelengths"] not in (0, sizes["bands"]) or not sizes["models"]:
        raise MismatchError("its spectra and wavelengths must be of the same bands")
    if opinions not in (None, sizes["opinions"]):
        raise MismatchError(f"it must hold {opinions} opinions. Got {sizes['opinions']} instead")


def save_evidence(out: Path, evidence: Evidence) -> None:
    """Write evidence.npz, whole or not at all."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{f.name: getattr(evidence, f.name) for f in fields(evidence)})
    write_atomically(out / EVIDENCE, buffer.getvalue())


def load_evidence(out: Path, shape: tuple[int, int], *, opinions: int | None = None) -> Evidence:
    """Read what `save_evidence` wrote, of a map of this shape; opinions: how many there must be."""
    path = out / EVIDENCE
    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            if (size := sum(info.file_size for info in found.zip.infolist())) > MOST_EVIDENCE:
                raise ValueError(f"it unpacks to {size:,} bytes, more than {MOST_EVIDENCE:,}")
            if flawed := found.zip.testzip():
                raise ValueError(f"the checksum of {flawed} differs")
            names = {f.name for f in fields(Evidence)}
            # That of an earlier version does not tell of negatives.
            arrays = {name: found[name] for name in names if name != "negatives" or name in found}
        _check_evidence(arrays, shape, opinions)
        return Evidence(**arrays)
    except Exception as error:  # a damaged file can fail anywhere inside two foreign parsers
        raise FileError(
            f"cannot read {path} ({error}): name the folder of a training, or train again"
        ) from error
