"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from thonecls.errors import FileError


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write beside the target, then rename: readers see the old file or the new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
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
