"""Finding files, and writing them so that nobody ever sees half of one, nor two at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError

LOCK = ".lock"  # in a folder that a process writes to
FAR = 2**30  # of a lock file, the byte that is locked: what it says of its owner can be read
POLL = 0.05  # seconds
FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}  # of some network file systems


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


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_refused(folder: Path, error: BaseException) -> FileError:
    """What the disk refuses, as an error that names the folder, the reason and what to do."""
    reason = error.__cause__ or error
    step = "free disk space" if is_full(reason) else "see whether something is in the way there"
    return FileError(f"cannot write to {folder} ({reason}): {step}, or choose another folder")


def is_full(error: BaseException) -> bool:
    """Whether an error tells that a disk has no room, or a file not for more."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    # GDAL passes on the system's words at best, not its number; libtiff says no more than that a
    # file which it has opened takes no more.
    words = [*map(os.strerror, FULL), "Write error"]
    return any(word in str(error) for word in words)


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """A folder that no other process writes to meanwhile, if it asks by this too.

    The system holds the lock, and gives it up when the process ends, however that ends. The folder
    must be there. wait: until another process has ended, where else it is an error.
    """
    file = _acquire(folder, wait)
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}".encode())
        file.flush()
        yield
    finally:
        if sys.platform == "win32":  # where a file that is open cannot be taken away
            file.close()
        with suppress(OSError):
            (folder / LOCK).unlink()
        file.close()


def _acquire(folder: Path, wait: bool) -> BinaryIO:
    """The lock file, open and locked."""
    path = folder / LOCK
    while True:
        file = path.open("a+b")
        try:
            while not _take(file):
                if not wait:
                    file.seek(0)
                    owner = file.read(200).decode(errors="replace") or "which has just begun"
                    raise FileError(
                        f"another process writes to {folder} ({owner}): wait for its end, or "
                        "choose another folder"
                    )
                time.sleep(POLL)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # its owner took the file away when it had ended: there is another, or none


if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> bool:
        """Lock a file unless another process has; whether it is."""
        file.seek(FAR)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _take(file: BinaryIO) -> bool:
        """Lock a file unless another process has; whether it is."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        return True
