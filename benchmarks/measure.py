"""What the benchmarks share: fair timing, peak memory, the machine's own peak, tables."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from published import SPEED
from thonecls.benchmark.records import forget_peak, peak_memory
from thonecls.files import write_atomically
from thonecls.version import __version__, commit


def interleaved(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each side; they take turns, so that noise hits all. One round warms up."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds + 1):
        for name, work in sides.items():
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(t[1:]) for name, t in times.items()}


def memory_of(script: str, *arguments: object) -> int:
    """Bytes that a script, run in its own process, says it needed at most."""
    command = [sys.executable, script, *map(str, arguments)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def resident() -> int:
    """Bytes of memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def extra_memory(work: Callable[[], object]) -> int:
    """Bytes that this process holds at most during some work, beyond what it held before."""
    before = resident()
    forget_peak()
    work()
    return (peak_memory() or 0) - before


def flops(work: Callable[[], object]) -> int:
    """Floating-point operations of the convolutions and matrix products in `work`."""
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def matmul_peak(size: int = 1536) -> float:
    """Operations a second that this machine reaches in a matrix product."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    fastest = min(interleaved({"mm": lambda: a @ b}, 5).values())
    return 2 * size**3 / fastest


def publish(name: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table and write them, with the machine, as JSON."""
    table = Table(title=f"{name}, {torch.get_num_threads()} threads")
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console().print(table)
    machine = {
        "version": __version__,
        "commit": commit(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }
    content = json.dumps({"benchmark": name, **machine, "rows": rows}, indent=2) + "\n"
    write_atomically(SPEED / f"{name}.json", content.encode())
