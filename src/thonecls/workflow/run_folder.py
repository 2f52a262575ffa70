"""The files of a run's folder, and what may not be overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thonecls import schema
from thonecls.errors import ConfigError, FileError, ModelError
from thonecls.files import digest_of, locked, write_atomically

RUN, EVIDENCE = "run.json", "evidence.npz"
SUMMARY = "map.json"
BEGUN = ".begun.json"  # what a training is asked for, as long as it has not ended
MOST = 2**26  # bytes of run.json
OVERVIEW, CURVES, ERRORS = "overview.png", "curves.png", "errors.png"
POLYGONS = "polygons.gpkg"
GIVEN = "given by hand"  # why a threshold is what it is
ANEW = "choose another folder, or train again"
REPORT, REPORT_JSON = "report.html", "report.json"
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
            f"{path} holds an unfinished training: end it by --resume, or name a model's file"
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
        if out.is_dir() and [path.name for path in out.iterdir()] == [BEGUN]:
            (out / BEGUN).unlink()  # nothing was made that could be gone on with
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def begin(out: Path, asked: Mapping[str, Any], *, resume: bool) -> None:
    """Make a folder ready for a training, or for going on with the one that is there.

    What an older one made is taken away before anything is written, its summary first: whenever
    this process is killed, no two trainings lie side by side.
    """
    begun = _read_json(out / BEGUN, "go on elsewhere, or say --overwrite") if resume else None
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
    pictures = [OVERVIEW, CURVES, POLYGONS]
    _clear(out, (RUN, SUMMARY, REPORT_JSON, REPORT, EVIDENCE, *pictures, *maps))


def _clear(out: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        for path in sorted(out.glob(pattern)):
            path.unlink()


def refuse_other(out: Path, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to go on with what was asked for in other words."""
    differ = [name for name in {**asked, **found} if found.get(name) != asked.get(name)]
    if differ:
        raise FileError(
            f"{out} holds a training with other {', '.join(differ)}: choose another --out, "
            "or say --overwrite"
        )


def digests(out: Path) -> dict[str, str]:
    """What tells the files that belong together from those of another training, by their names."""
    maps = [out / f"{layer}{ending}" for layer in LAYERS for ending in (".tif", ".npy")]
    whole = [path for path in (*maps, out / EVIDENCE) if path.exists()]
    return {path.name: digest_of(path) for path in (*sorted(out.glob(MODELS)), *whole)}


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
            "choose another --out, or say --overwrite"
        )
    refuse_other(out, found["asked"], asked)
    check_together(out, found)
    return found


def is_unfinished(out: Path) -> bool:
    """Whether a training in this folder was stopped or killed."""
    return (out / BEGUN).exists() or any(out.glob(CHECKPOINTS))


def refuse_to_overwrite(out: Path) -> None:
    """Refuse a folder that holds the work of another command."""
    if is_unfinished(out):
        raise FileError(
            f"{out} holds an unfinished training: say --resume to go on with it, or --overwrite"
        )
    if any((out / name).exists() for name in (RUN, SUMMARY)) or any(out.glob(MODELS)):
        raise FileError(
            f"{out} holds a model or a map already: choose another --out, or say --overwrite"
        )


def check_threshold(threshold: float | None) -> None:
    """Refuse a threshold that is no probability; None stands for the model's own."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ConfigError(f"'threshold' must be from 0 to 1. Got {threshold!r} instead")


def check_minimum_area(area: float | None) -> None:
    """Refuse what is no area of polygons; None stands for that of a few pixels."""
    if area is not None and not 0 <= area < float("inf"):
        raise ConfigError(f"'minimum_area' must be 0 or more. Got {area!r} instead")
