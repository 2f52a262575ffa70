"""The files of a run's folder, and what may not be overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thonecls.errors import ConfigError, FileError, ModelError
from thonecls.files import write_atomically

RUN, EVIDENCE = "run.json", "evidence.npz"
OVERVIEW, CURVES, ERRORS = "overview.png", "curves.png", "errors.png"
POLYGONS = "polygons.gpkg"
GIVEN = "given by hand"  # why a threshold is what it is
ANEW = "choose another folder, or train again"
REPORT, REPORT_JSON = "report.html", "report.json"


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
    found = sorted(path.glob("model*.safetensors"))
    if not found:
        raise ModelError(f"{path} holds no model: name a model's file, or the folder of a training")
    return found


@contextmanager
def making(out: Path) -> Iterator[None]:
    """A folder to be filled: if an error leaves it empty, it is taken away again."""
    from thonecls.maps import disk_errors  # here: a check makes no map

    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with disk_errors(out):
            yield
    except BaseException:
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def read_run(out: Path, default: dict[str, Any]) -> dict[str, Any]:
    """What run.json in a folder holds, or the default where there is none."""
    if not (out / RUN).exists():
        return default
    try:
        found: dict[str, Any] = json.loads((out / RUN).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {out / RUN} ({error}): {ANEW}") from error
    if not isinstance(found, dict):
        raise FileError(f"{out / RUN} does not tell of a training: {ANEW}")
    return found


def finished_run(out: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """The summary of a training that has ended, if it is the one that is wanted."""
    found = read_run(out, {})
    differ = [name for name, value in wanted.items() if found.get(name) != value]
    if differ:
        raise FileError(
            f"{out} holds a training with other {', '.join(differ)}: choose another --out, "
            "or say --overwrite"
        )
    return found


def is_unfinished(out: Path) -> bool:
    """Whether a training in this folder was stopped or killed."""
    return any(out.glob("checkpoint*.safetensors"))


def refuse_to_overwrite(out: Path) -> None:
    """Refuse a folder that holds the work of another command."""
    if is_unfinished(out):
        raise FileError(
            f"{out} holds an unfinished training: say --resume to go on with it, or --overwrite"
        )
    if (out / RUN).exists() or any(out.glob("model*.safetensors")):
        raise FileError(
            f"{out} holds a model or a map already: choose another --out, or say --overwrite"
        )


def check_threshold(threshold: float | None) -> None:
    """Refuse a threshold that is no probability; None stands for the model's own."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ConfigError(f"'threshold' must be from 0 to 1. Got {threshold!r} instead")
