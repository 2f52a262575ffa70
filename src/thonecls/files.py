"""Finding files, and writing them so that nobody ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError


def files_below(folder: Path) -> list[Path]:
    """The files of a folder and of all below it, in order.

    Links to folders are followed, as data often lie elsewhere; each folder is looked at once.
    """
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        paths = (Path(place, name) for name in names)
        found += (path for path in paths if path.is_file())
    return sorted(found)


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write beside the target, then rename: readers see the old file or the new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")  # the next attempt replaces what a kill left
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def writing_array(
    path: Path, dtype: type[np.generic], shape: tuple[int, ...]
) -> Iterator[NDArray[Any]]:
    """A .npy file to be filled part by part, on disk; it gets its name when it is whole."""
    made = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        array = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=shape)
        yield array
        array.flush()
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        if made and not any(path.parent.iterdir()):
            path.parent.rmdir()
        raise


def check_writable(folder: Path) -> None:
    """Refuse, before any long work, a folder that results could not be written to."""
    nearest = folder
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise FileError(f"{nearest} is a file, not a folder: choose another output folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise FileError(f"cannot write to {nearest}: choose another output folder")
