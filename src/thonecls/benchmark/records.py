"""Records: one JSON object a line, only ever appended to; and the machine they were made on."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from thonecls import schema
from thonecls.benchmark.plan import Cell, cell_of
from thonecls.errors import ThoneclsError
from thonecls.extras import need
from thonecls.version import __version__

NAME = "results.jsonl"  # what is written; every .jsonl file of a folder is read
RECORD = {
    "cell": schema.of_type("the fields of a cell", dict),
    "scores": schema.Rule(
        "numbers by name",
        lambda v: isinstance(v, dict) and all(isinstance(x, int | float) for x in v.values()),
        needed=False,
    ),
    "curves": schema.TRAINING["history"],
}
WRONG = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
DIGITS = 4  # of the figures in a curve: records are kept for good, and curves are most of them


@dataclass(frozen=True, eq=False)
class Record:
    """What came of a cell; facts: the whole line, with scores, curves, settings and the machine.

    A cell that failed has no scores, and `facts["error"]` says why.
    """

    cell: Cell
    facts: dict[str, Any]

    @property
    def done(self) -> bool:
        return "scores" in self.facts


@dataclass(frozen=True)
class MethodCard:
    """A method that only a record file describes; the fields are those of `Method`."""

    name: str
    on: str
    minimises: str
    paper: str
    constants: str = ""
    needs_prior: bool = False


@dataclass(frozen=True)
class SceneCard:
    """A scene that only a record file describes; classes: number to name."""

    name: str
    title: str
    classes: dict[int, str]


@dataclass(frozen=True, eq=False)
class Results:
    """All records by the id of their cell, and what is wrong with the lines that hold none.

    methods, scenes: what record files describe beside those that thonecls has; others: the facts of
    records of them, which are shown but cannot be run here.
    """

    records: dict[str, Record]
    damaged: list[str]
    others: list[dict[str, Any]] = field(default_factory=list)
    methods: dict[str, MethodCard] = field(default_factory=dict)
    scenes: dict[str, SceneCard] = field(default_factory=dict)

    def find(self, cell: Cell) -> Record | None:
        """The record of a cell that is done."""
        record = self.records.get(cell.id)
        return record if record is not None and record.done else None

    def has(self, cell: Cell, *, failed: bool, left_out: bool = False) -> bool:
        """Whether a cell is done or, with `failed`, was tried.

        left_out: done is only what also says how labels left out are found.
        """
        record = self.records.get(cell.id)
        if record is None or not record.done:
            return record is not None and failed
        return not left_out or "left_out" in record.facts


def read_results(folder: Path) -> Results:
    """Every record in the .jsonl files of a folder.

    Of several for one cell the last that is done counts. A line that is not a record is reported
    in `damaged`, and the rest is read.
    """
    results = Results({}, [])
    found: list[tuple[str, dict[str, Any]]] = []
    for path, number, line in lines_of(folder):
        where = f"{path}, line {number}"
        try:
            facts = _facts(line)
            if not _describes(facts, results):
                found.append((where, facts))
        except WRONG as error:
            results.damaged.append(_damage(where, error))
    for where, facts in found:
        try:
            if is_foreign(facts["cell"], results):
                results.others.append(facts)
                continue
            record = Record(cell_of(facts["cell"]), facts)
        except (*WRONG, ThoneclsError) as error:
            results.damaged.append(_damage(where, error))
            continue
        before = results.records.get(record.cell.id)
        if record.done or before is None or not before.done:
            results.records[record.cell.id] = record
    return results


def _damage(where: str, error: Exception) -> str:
    return f"{where} is not a record ({error}): left out"


def lines_of(folder: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Every line of the record files in a folder, but empty ones: file, number, line."""
    for path in _files(folder):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if line.strip():
                yield path, number, line


def is_foreign(cell: Mapping[str, Any], known: Results) -> bool:
    """Whether a cell names a method or a scene that only record files describe."""
    return cell.get("method") in known.methods or cell.get("dataset") in known.scenes


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def _describes(facts: dict[str, Any], results: Results) -> bool:
    """Whether a line describes a method or a scene, which is kept, rather than a result."""
    if "method" in facts:
        method = MethodCard(**facts["method"])
        results.methods[method.name] = method
    elif "scene" in facts:
        card = facts["scene"]
        classes = {int(number): name for number, name in card["classes"].items()}
        results.scenes[card["name"]] = SceneCard(card["name"], card["title"], classes)
    else:
        return False
    return True


def short_curves(history: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Figures by epoch, rounded for a record.

    >>> short_curves({"loss": [0.123456, 1234.56]})
    {'loss': [0.1235, 1235.0]}
    """
    return {
        name: [float(f"{value:.{DIGITS}g}") for value in values] for name, values in history.items()
    }


def _facts(line: bytes) -> dict[str, Any]:
    """What a line holds, as far as the rest of the package relies on it."""
    facts = json.loads(line)
    if isinstance(facts, dict) and facts.keys() & {"method", "scene"}:
        return facts
    if not isinstance(facts, dict) or not ("error" in facts or "scores" in facts):
        raise ValueError("neither scores nor an error")
    schema.check_facts(facts, RECORD)
    if "scores" in facts and not isinstance(facts["scores"].get("f1"), int | float):
        raise ValueError("no F1 among its scores")
    return facts


class Ledger:
    """Which cells have a record, kept up with what other runners append."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.size = -1
        self.results = Results({}, [])

    def has(self, cell: Cell, *, failed: bool, left_out: bool = False) -> bool:
        """As `Results.has`, of what lies there now."""
        size = sum(path.stat().st_size for path in _files(self.folder))
        if size != self.size:
            self.size, self.results = size, read_results(self.folder)
        return self.results.has(cell, failed=failed, left_out=left_out)


def append_record(folder: Path, facts: dict[str, Any]) -> None:
    """Add one line: whole, on disk, and never into a line that another runner left half-written."""
    line = json.dumps(facts, allow_nan=True).encode() + b"\n"
    path = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    filelock = need("filelock", "a benchmark")
    with filelock.FileLock(path.with_suffix(".lock")), path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = b"\n" + line  # a runner was killed while it wrote
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def claimed(folder: Path, cell: Cell) -> Iterator[bool]:
    """Whether this process may run the cell; while it does, no other runner may.

    The claim ends with the process, however that ends.
    """
    place = folder / "work"
    place.mkdir(parents=True, exist_ok=True)
    filelock = need("filelock", "a benchmark")
    lock = filelock.FileLock(place / f"{cell.id}.lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def machine_facts() -> dict[str, Any]:
    """The hardware and how much of it is used."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    """The software that figures depend on."""
    packages = {name: version(name) for name in ("torch", "numpy", "scikit-learn")}
    return {"python": platform.python_version(), "thonecls": __version__, **packages}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def forget_peak() -> None:
    """Start the count of `peak_memory` anew, where the system can."""
    if sys.platform == "linux":
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return  # not allowed here: the peak is then that of the whole process


def peak_memory() -> int | None:
    """Bytes that this process has held at most; None where the system does not tell."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
