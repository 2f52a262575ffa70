"""Files held open while windows are read, the choice among the cubes of one, and windows."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import Band
from thonecls.parallel import THREADS
from thonecls.scene import BoolArray


class Format(Protocol):
    """A kind of file: how to open one, and how to read a window once it is open."""

    @property
    def path(self) -> Path:
        """What an error calls the file."""

    def open(self) -> Any:
        """The file, open for reading."""

    def read(
        self, opened: Any, numbers: Sequence[int], rows: slice, columns: slice, step: int, /
    ) -> tuple[NDArray[Any], BoolArray | None]:
        """Every step-th raw value (C, H, W) of a window, and a mask (H, W) where there is one."""


class LazyFile:
    """An open file: opened when first read, in each process anew, and pickled closed.

    Two threads may read at a time, each by a file of its own; others wait for their turn.
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self._process = os.getpid()
        self._idle: list[Any] = []
        self._turns = threading.BoundedSemaphore(THREADS)
        self._opening = threading.Lock()

    def __reduce__(self) -> tuple[type[LazyFile], tuple[Format]]:
        return LazyFile, (self.format,)

    def read(
        self, numbers: Sequence[int], rows: slice, columns: slice, step: int = 1
    ) -> tuple[NDArray[Any], BoolArray | None]:
        """Raw values (C, H, W) of a window, and a mask (H, W) where the file has one."""
        if self._process != os.getpid():  # not across a fork
            LazyFile.__init__(self, self.format)
        with self._turns:
            try:
                with self._opening:
                    opened = self._idle.pop() if self._idle else self.format.open()
                found = self.format.read(opened, numbers, rows, columns, step)
            except OSError as e:  # GDAL's own words are in the cause
                raise FileError(
                    f"cannot read rows {rows.start}-{rows.stop} of {self.format.path} "
                    f"({e.__cause__ or e}): the file is damaged or cut short; copy it again"
                ) from e
            self._idle.append(opened)
            return found


# What the headers of a file say.
RasterHeader = tuple[LazyFile, Grid, tuple[Band, ...]]


def choose_cube(path: Path, shapes: Mapping[str, tuple[int, ...]], variable: str | None) -> str:
    """The key of the one cube, or of that with this name or last part of a name."""
    name = variable and variable.strip("/")
    fitting = [key for key in shapes if name in (None, key, key.rsplit("/", 1)[-1])]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(f"{key} {shape}" for key, shape in shapes.items()) or "none"
    if name is not None:
        raise FileError(f"{path} has no one cube {name!r}: name one of these: {listed}")
    few = "several cubes" if shapes else "no cube of three axes"
    raise FileError(
        f"{path} holds {few}: name the right one ('variable'); it has: {listed}",
        options=("variable",),
    )


def sample_windows(
    shape: tuple[int, int], count: int = 4, side: int = 64
) -> list[tuple[slice, slice]]:
    """Windows spread evenly over a scene; they cover it where it is small."""
    starts = [np.unique(np.linspace(0, max(0, n - side), count, dtype=int)) for n in shape]
    rows, columns = (
        [slice(int(at), min(int(at) + side, n)) for at in part]
        for part, n in zip(starts, shape, strict=True)
    )
    return [(r, c) for r in rows for c in columns]
