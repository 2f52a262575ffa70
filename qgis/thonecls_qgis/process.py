# SPDX-License-Identifier: GPL-2.0-or-later
"""Running programs beside QGIS: a clean environment, progress as it comes, and an end on demand.

Nothing of QGIS is imported here.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

# What QGIS sets for its own Python and libraries, and what would lead another Python astray: its
# modules, and the tables of another GDAL and PROJ.
FOREIGN = (
    "PYTHON",
    "__PYVENV",
    "VIRTUAL_ENV",
    "CONDA",
    "GDAL_",
    "PROJ_",
    "OGR_",
    "OSGEO4W",
    "QGIS",
    "QT_",
    "QML",
    "GISBASE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "DYLD_",
)
OF_USERS = ("GDAL_CACHEMAX", "GDAL_NUM_THREADS")  # these do no harm, and are set on purpose
PATIENCE = 5.0  # seconds between asking a program to end and ending it
OFTEN = 0.1  # seconds between two looks whether it is cancelled
KEPT = 40  # last lines of what a program says, for errors


def clean_environment(
    environment: Mapping[str, str], prefix: str | None = None, separator: str = os.pathsep
) -> dict[str, str]:
    """An environment without what belongs to QGIS and its Python.

    prefix: QGIS's own folder on Windows and macOS, whose libraries must not be found by PATH.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name.upper() in OF_USERS or not name.upper().startswith(FOREIGN)
    }
    if prefix:
        for name in [name for name in kept if name.upper() == "PATH"]:
            parts = kept[name].split(separator)
            kept[name] = separator.join(part for part in parts if not _within(part, prefix))
    kept["PYTHONUTF8"] = "1"  # for programs that it starts in turn
    kept["PYTHONNOUSERSITE"] = "1"
    kept["PYTHONUNBUFFERED"] = "1"
    return kept


def _within(part: str, prefix: str) -> bool:
    def plain(path: str) -> str:
        return path.replace("\\", "/").rstrip("/").lower() + "/"

    return plain(part).startswith(plain(prefix))


def foreign_prefix() -> str | None:
    """The folder of a QGIS that brings its own libraries; None where it uses the system's."""
    if sys.platform == "win32":
        return os.environ.get("OSGEO4W_ROOT") or str(Path(sys.prefix).parents[1])
    return None


@dataclass(frozen=True)
class Done:
    """How a program ended: its exit code, what it printed, the last that it said besides."""

    code: int
    out: str
    said: tuple[str, ...]
    cancelled: bool


def run(
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    cancelled: Callable[[], bool],
    patience: float = PATIENCE,
) -> Done:
    """Run a program to its end, or until `cancelled`; then it ends with all that it started.

    on_line hears each line of its stderr, in this thread. What it prints is returned.
    """
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        options = {"creationflags": flags}
    process = subprocess.Popen(
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=dict(environment),
        **options,
    )
    printed: list[str] = []
    lines: queue.Queue[str | None] = queue.Queue()
    readers = [
        threading.Thread(target=_read, args=(process.stdout, printed.append), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, lines.put), daemon=True),
    ]
    for reader in readers:
        reader.start()
    said: list[str] = []

    def hear(wait: float) -> None:
        with contextlib.suppress(queue.Empty):
            line = (lines.get(timeout=wait) or "").rstrip("\r\n")
            said.append(line)
            del said[:-KEPT]
            on_line(line)

    stopped = False
    try:
        while process.poll() is None or not lines.empty():
            hear(OFTEN)
            if not stopped and cancelled():
                stopped = True
                stop(process, patience)
    finally:  # also where on_line fails: nothing goes on behind one's back
        stop(process, patience if process.poll() is None else 0)
        for reader in readers:
            reader.join(timeout=1)
    while not lines.empty():
        hear(0)
    return Done(process.returncode, "".join(printed), tuple(said), stopped)


def _read(stream: IO[str], put: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError), stream:  # closed while reading, when all is over
        for line in stream:
            put(line)


def stop(process: subprocess.Popen[str], patience: float = PATIENCE) -> None:
    """End a program with all that it started: asked first, and by force after a while."""
    if sys.platform == "win32":
        if process.poll() is None:
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)],
                capture_output=True,
                check=False,
                creationflags=subprocess.CREATE_NO_WINDOW,
            )
        process.wait()
        return
    # The program leads a group of its own, which bears its number and may outlive it.
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# How far the whole is when a stage ends, in percent; reading and pictures are not told.
ENDS = {"train": 55.0, "judge": 80.0, "map": 97.0}


@dataclass
class Bar:
    """One bar for all stages of a command, from its lines of progress; it never goes back.

    >>> bar = Bar()
    >>> bar.hear('{"stage": "map", "done": 1, "total": 2}'), bar.hear("a warning")
    ('map: 1 of 2', None)
    >>> bar.percent
    48.5
    """

    percent: float = 0.0
    stage: str = ""
    start: float = field(default=0.0, repr=False)

    def hear(self, line: str) -> str | None:
        """The line in words, if it tells progress; None if it is anything else."""
        try:
            told = json.loads(line)
            stage, done, total = str(told["stage"]), float(told["done"]), float(told["total"])
        except (ValueError, TypeError, KeyError):
            return None
        if stage != self.stage:
            self.stage, self.start = stage, self.percent
        end = max(self.start, ENDS.get(stage, 97.0))
        share = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0
        self.percent = max(self.percent, self.start + (end - self.start) * share)
        words = f", {told['words']}" if told.get("words") else ""
        return f"{stage}: {done:,.6g} of {total:,.6g}{words}"


def result_of(done: Done) -> dict[str, Any] | None:
    """The object that `thonecls --json` printed; None if it printed none."""
    for line in reversed(done.out.splitlines()):
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict):
                return told
    return None


def failure_of(done: Done) -> str | None:
    """Why a command failed, in its own words; None if it did not."""
    told = result_of(done)
    if told is not None and "error" in told:
        return str(told["error"])
    if told is not None:
        return None
    last = [line for line in done.said if line.strip() and Bar().hear(line) is None]
    words = " ".join(last[-3:]) or "it said nothing"
    if done.code in (-9, 137):
        words = "it was ended from outside, probably out of memory"
    return f"thonecls ended with code {done.code}: {words}"
