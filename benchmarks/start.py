"""How long one waits before anything happens: imports and short commands, against `import torch`.

    python benchmarks/start.py [--rounds 5] [--before OTHER/src]

Each is a new process; they take turns, so that noise hits all. CPU seconds tell more than wall time
where the machine is busy. Before: the source folder of another
version, measured beside this one, with the same interpreter and the same packages.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cyclopts

from measure import publish
from thonecls.datasets import write_example

TORCH = "import torch"
IMPORTS = (TORCH, "import thonecls", "from thonecls.losses import taylor_variational")
# The last is a word that no command is called.
COMMANDS = ("--help", "--version", "methods", "check SCENE", "check SCENE LABELS", "trian")


def commands(folder: Path) -> dict[str, list[str]]:
    """What is measured, by name: the arguments of a Python interpreter."""
    example = write_example(folder)
    files = {"SCENE": str(example.scene), "LABELS": str(example.labels)}
    return {
        **{words: ["-c", words] for words in IMPORTS},
        **{
            f"thonecls {words}": ["-m", "thonecls.cli", *(files.get(w, w) for w in words.split())]
            for words in COMMANDS
        },
    }


def seconds(arguments: list[str], source: Path | None) -> tuple[float, float]:
    """Wall and CPU time of one process; source: the package's folder, else as it is installed."""
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    used, began = _cpu(), time.perf_counter()
    # Not checked: a typo is meant to fail.
    subprocess.run([sys.executable, *arguments], capture_output=True, env=environment)
    return time.perf_counter() - began, _cpu() - used


def _cpu() -> float:
    """CPU seconds of all processes that have been started from here, and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(rounds: int, before: Path | None) -> list[dict[str, Any]]:
    """Best and median of each, and its CPU seconds, also as ratios to `import torch`."""
    sources = {"before": before, "now": None} if before is not None else {"now": None}
    with tempfile.TemporaryDirectory() as folder:
        wanted = commands(Path(folder))
        times: dict[tuple[str, str], list[tuple[float, float]]] = {
            (name, side): [] for name in wanted for side in sources
        }
        for _ in range(rounds + 1):
            for (name, side), known in times.items():
                known.append(seconds(wanted[name], sources[side]))
    kept = {key: known[1:] for key, known in times.items()}  # the first fills the disk's cache
    columns = _all if before is None else _cpu_only
    return [
        {"what": f"`{name}`"}
        | {
            f"{column}{f', {side}' if before is not None else ''}": f"{value:.2f}"
            for side in sources
            for column, value in columns(kept[name, side], kept[TORCH, side]).items()
        }
        for name in wanted
    ]


def _all(times: list[tuple[float, float]], torch: list[tuple[float, float]]) -> dict[str, float]:
    """Every figure of one command; torch: the same of `import torch`."""
    wall = [seconds for seconds, _ in times]
    median = statistics.median(wall)
    ratio = median / statistics.median(seconds for seconds, _ in torch)
    best = {"best (s)": min(wall), "median (s)": median, "median / torch": ratio}
    return best | _cpu_only(times, torch)


def _cpu_only(
    times: list[tuple[float, float]], torch: list[tuple[float, float]]
) -> dict[str, float]:
    """What a busy machine hardly changes: enough to compare two versions by."""
    cpu, of_torch = (statistics.median(used for _, used in side) for side in (times, torch))
    return {"CPU (s)": cpu, "CPU / torch": cpu / of_torch}


def main(*, rounds: int = 5, before: Path | None = None) -> None:
    """Measure, and print a table in Markdown; `render.py` puts it into docs/speed.md."""
    rows = measure(rounds, before)
    publish("start", rows)
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    for line in lines:
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    cyclopts.run(main)
