"""Labels as people click them: a GeoPackage that is on disk before a click is acknowledged.

One point for each labelled pixel, in the layer `labels`, with the column `present` that `train`
reads: 1 the class, 0 not the class, empty where nobody can tell. Beside it in the same database
stands every operation with what it changed, so that all can be undone, over restarts too.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError, LabelError
from thonecls.io.grid import Grid
from thonecls.studio.geopackage import create, database_errors, insert, run_all
from thonecls.studio.refusals import ANOTHER, PROJECT

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]
Kind = Literal["positive", "negative", "unknown", "erase"]
Origin = Literal["stroke", "suggestion"]

KINDS = ("positive", "negative", "unknown")  # of the states 1, 2 and 3; 0 is no label
PRESENT = (None, 1, 0, None)  # of each state, in the layer
SUGGESTED = 4  # added to the state of an answer to a suggestion
MOST = 1_000_000  # labels
MOST_STROKE = 200_000  # pixels
OPERATIONS = """
CREATE TABLE studio_operations (id INTEGER PRIMARY KEY AUTOINCREMENT, words TEXT NOT NULL,
    made TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    undone INTEGER NOT NULL DEFAULT 0, pixels BLOB NOT NULL, before BLOB NOT NULL,
    after BLOB NOT NULL);
CREATE TABLE studio_revision (number INTEGER NOT NULL);
INSERT INTO studio_revision VALUES (0);
"""


@dataclass(frozen=True, eq=False)
class Change:
    """What an operation, its undoing or its redoing did: pixels, and the states they have now."""

    revision: int
    pixels: IntArray
    states: ByteArray

    def by_kind(self) -> dict[str, list[int]]:
        """The pixels that became each kind, or lost their label."""
        plain = self.states % SUGGESTED
        names = ("erased", *KINDS)
        return {name: self.pixels[plain == i].tolist() for i, name in enumerate(names)}


class Labels:
    """The labels of a project, in memory and on disk."""

    def __init__(self, path: Path, grid: Grid) -> None:
        self.path, self.grid = path, grid
        self._lock = threading.RLock()
        self._pending: tuple[IntArray, ByteArray] | None = None
        made = not path.exists()
        with database_errors(path):
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            try:
                self._database.execute("PRAGMA synchronous = FULL")  # each commit is on disk
                if made or not self._has_tables():
                    with self._writing() as database:
                        create(database, grid)
                        run_all(database, OPERATIONS)
                # Only now: GDAL knows a GeoPackage by the first bytes of the file itself.
                self._database.execute("PRAGMA journal_mode = WAL")
                self._states = self._read()
                row = self._one("SELECT number FROM studio_revision")
                self.revision = 0 if row is None else int(row[0])
            except BaseException:
                self._database.close()
                raise

    def close(self) -> None:
        """Leave one whole file behind."""
        with self._lock, suppress(sqlite3.Error):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()

    def apply(self, kind: Kind, pixels: IntArray, words: str, origin: Origin = "stroke") -> Change:
        """Give pixels, by flat index, a label, or take theirs away; on disk when this returns."""
        state = 0 if kind == "erase" else KINDS.index(kind) + 1
        if state and origin == "suggestion":
            state += SUGGESTED
        if len(pixels) > MOST_STROKE:
            raise LabelError(
                f"a stroke labels at most {MOST_STROKE:,} pixels. Got {len(pixels):,}: draw "
                "smaller ones"
            )
        with self._lock:
            pixels = np.unique(pixels)
            before = self._states_of(pixels)
            # Another stroke of the same kind does not change where an answer came from.
            changes = before % SUGGESTED != state % SUGGESTED
            pixels, before = pixels[changes], before[changes]
            if not pixels.size:
                return Change(self.revision, pixels, before)
            if state and len(self._states) + int((before == 0).sum()) > MOST:
                raise LabelError(f"a project holds at most {MOST:,} labels: erase some first")
            after = np.full(len(pixels), state, np.uint8)
            with self._writing() as database:
                database.execute("DELETE FROM studio_operations WHERE undone = 1")
                database.execute(
                    "INSERT INTO studio_operations (words, pixels, before, after) "
                    "VALUES (?, ?, ?, ?)",
                    (words, *(zlib.compress(a.tobytes(), 1) for a in (pixels, before, after))),
                )
                return self._set(database, pixels, after)

    def undo(self) -> Change | None:
        """Undo the last operation that is not undone; None where there is none."""
        return self._step("undone = 0 ORDER BY id DESC", 1, "before")

    def redo(self) -> Change | None:
        """Do again what was undone last; None where nothing is."""
        return self._step("undone = 1 ORDER BY id", 0, "after")

    def words(self) -> tuple[str | None, str | None]:
        """What would be undone, and what done again."""
        with self._lock:
            found = [
                self._one(f"SELECT words FROM studio_operations WHERE {which} LIMIT 1")
                for which in ("undone = 0 ORDER BY id DESC", "undone = 1 ORDER BY id")
            ]
        undo, redo = (None if row is None else str(row[0]) for row in found)
        return undo, redo

    def counts(self) -> dict[str, int]:
        """How many pixels are of each kind."""
        _, states = self.all()
        counted = np.bincount(states % SUGGESTED, minlength=4)
        return dict(zip(KINDS, counted[1:].tolist(), strict=True))

    def pixels(self, kind: str) -> IntArray:
        """The pixels of a kind, in order."""
        pixels, states = self.all()
        return np.asarray(pixels[states % SUGGESTED == KINDS.index(kind) + 1])

    def kind_of(self, pixel: int) -> str | None:
        state = self._states.get(pixel, 0) % SUGGESTED
        return KINDS[state - 1] if state else None

    def all(self) -> tuple[IntArray, ByteArray]:
        """All labelled pixels, in order, and their states."""
        with self._lock:
            pixels = np.fromiter(self._states.keys(), np.int64, len(self._states))
            states = np.fromiter(self._states.values(), np.uint8, len(self._states))
        order = np.argsort(pixels)
        return pixels[order], states[order]

    def _states_of(self, pixels: IntArray) -> ByteArray:
        states = self._states
        return np.array([states.get(pixel, 0) for pixel in pixels.tolist()], np.uint8)

    def _step(self, which: str, undone: int, column: str) -> Change | None:
        with self._lock:
            found = self._one(
                f"SELECT id, pixels, {column} FROM studio_operations WHERE {which} LIMIT 1"
            )
            if found is None:
                return None
            pixels = np.frombuffer(zlib.decompress(found[1]), np.int64)
            states = np.frombuffer(zlib.decompress(found[2]), np.uint8)
            with self._writing() as database:
                database.execute(
                    "UPDATE studio_operations SET undone = ? WHERE id = ?", (undone, found[0])
                )
                return self._set(database, pixels, states)

    def _set(self, database: sqlite3.Connection, pixels: IntArray, states: ByteArray) -> Change:
        """Give pixels these states on disk; in memory once that is done (see `_writing`)."""
        gone = pixels[states == 0]
        database.executemany("DELETE FROM labels WHERE fid = ?", ((p + 1,) for p in gone.tolist()))
        insert(database, self.grid, pixels[states > 0], _columns(states[states > 0]))
        database.execute("UPDATE studio_revision SET number = number + 1")
        self._pending = (pixels, states)
        return Change(self.revision + 1, pixels, states)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk when it is left, or nothing is changed."""
        self._pending = None
        with database_errors(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        if self._pending is not None:
            for pixel, state in zip(*(a.tolist() for a in self._pending), strict=True):
                if state:
                    self._states[pixel] = state
                else:
                    self._states.pop(pixel, None)
            self.revision += 1

    def _read(self) -> dict[int, int]:
        rows = self._database.execute("SELECT fid, present, origin FROM labels")
        size = self.grid.shape[0] * self.grid.shape[1]
        found = {fid - 1: _state(present, origin) for fid, present, origin in rows}
        if any(not 0 <= pixel < size for pixel in found):
            raise FileError(
                f"{self.path} holds labels outside the scene: {ANOTHER}", options=PROJECT
            )
        return found

    def _has_tables(self) -> bool:
        tables = self._database.execute(
            "SELECT name FROM sqlite_master WHERE name IN ('labels', 'studio_operations')"
        ).fetchall()
        if len(tables) == 1:
            raise FileError(f"{self.path} was not made by the studio: {ANOTHER}", options=PROJECT)
        return bool(tables)

    def _one(self, query: str) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._database.execute(query).fetchone()
        return found


def write_copy(path: Path, grid: Grid, pixels: IntArray, states: ByteArray) -> None:
    """A GeoPackage of some labels, without operations, whole or not at all."""
    unfinished = path.with_name(f".{path.stem}.part.gpkg")
    unfinished.unlink(missing_ok=True)
    with database_errors(path):
        database = sqlite3.connect(unfinished, isolation_level=None)
        try:
            database.execute("BEGIN")
            create(database, grid)
            insert(database, grid, pixels, _columns(states))
            database.execute("COMMIT")
        finally:
            database.close()
    unfinished.replace(path)


def _columns(states: ByteArray) -> Iterator[tuple[int | None, str]]:
    """The columns `present` and `origin` of labels in these states."""
    for state in states.tolist():
        yield PRESENT[state % SUGGESTED], "suggestion" if state >= SUGGESTED else "stroke"


def _state(present: int | None, origin: str | None) -> int:
    state = {1: 1, 0: 2}.get(-1 if present is None else present, 3)
    return state + SUGGESTED * (origin == "suggestion")


def kinds_of(states: ByteArray) -> NDArray[np.str_]:
    """The kinds of labels by their states.

    >>> kinds_of(np.array([1, 6, 3], np.uint8)).tolist()
    ['positive', 'negative', 'unknown']
    """
    return np.array(["", *KINDS])[states % SUGGESTED]


def answers_among(states: Sequence[int] | ByteArray) -> NDArray[np.bool_]:
    """Which labels are answers to suggestions."""
    return np.asarray(states) >= SUGGESTED
