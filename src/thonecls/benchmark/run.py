"""Running cells: here, in several processes or on a cluster; and what they will take."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import fields
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from thonecls.benchmark.measure import MEASURES, kept_files
from thonecls.benchmark.plan import Cell, config_of, methods_for
from thonecls.benchmark.records import (
    Ledger,
    Record,
    Results,
    append_record,
    claimed,
    forget_peak,
    machine_facts,
    peak_memory,
    versions,
)
from thonecls.benchmark.targets import data_of
from thonecls.errors import ClusterError
from thonecls.images import image_spec
from thonecls.method.config import TrainConfig
from thonecls.methods.costs import STARTED, TRAINING, Cost, training_cost, work_of_epoch
from thonecls.parallel import LOST, is_death, is_lost, run_all, workers
from thonecls.version import commit

OnRecord = Callable[[Cell, dict[str, Any]], None]


def run_cells(
    cells: Iterable[Cell],
    folder: Path,
    *,
    root: Path,
    records: Path | None = None,
    jobs: int = 1,
    dask: str | None = None,
    threads: int | None = None,
    retry: bool = False,
    left_out: bool = False,
    on_start: Callable[[Cell], None] | None = None,
    on_record: OnRecord | None = None,
    on_skip: Callable[[Cell], None] | None = None,
) -> None:
    """Run every cell that has no record yet, and record it.

    folder: for maps and unfinished trainings; records: for the records, else the same folder;
    jobs: processes on this machine; dask: the address of a scheduler to run on instead; threads:
    CPU threads of each cell, by default `threads_for`. Cells that another runner works on or
    has done are skipped; those that failed before are run again only with `retry`. A cell whose
    process dies has failed, and the rest goes on. left_out: fit each cell once more without a part
    of its labels, and record how those are found (see `measure.find_left_out`).
    """
    threads = threads or threads_for(jobs, dask)
    root, folder = root.resolve(), folder.resolve()  # workers may stand in another folder
    records = folder if records is None else records.resolve()
    results = Ledger(records)

    def claims() -> Iterator[tuple[tuple[Cell, ExitStack], Any, tuple[Any, ...]]]:
        for cell in cells:
            claim = ExitStack()
            if not claim.enter_context(claimed(folder, cell)) or results.has(
                cell, failed=not retry, left_out=left_out
            ):
                claim.close()
                if on_skip is not None:
                    on_skip(cell)
                continue
            if on_start is not None:
                on_start(cell)
            yield (cell, claim), run_cell, (cell, root, folder, threads, left_out)

    with workers(jobs, dask) as (pool, room):
        for (cell, claim), future in run_all(pool, room, claims()):
            with claim:
                facts = _result(cell, future)
                append_record(records, facts)
                if "scores" in facts:
                    for path in kept_files(folder, cell):
                        # One for each phase of a training, or for each fold.
                        for file in path.parent.glob(f"{path.stem}*{path.suffix}*"):
                            file.unlink(missing_ok=True)
            if on_record is not None:
                on_record(cell, facts)


def _result(cell: Cell, future: Future[dict[str, Any]]) -> dict[str, Any]:
    """The facts of a cell that has ended, however it has."""
    try:
        return future.result()
    except Exception as error:
        if is_death(error):
            reason = (
                "its process died, probably out of memory: run it again, best with fewer jobs "
                "at a time"
            )
            return {"cell": cell.as_dict(), "error": reason, "seconds": 0.0, **stamp()}
        if is_lost(error):
            raise ClusterError(LOST) from error
        raise


def stamp() -> dict[str, Any]:
    """Where and when a record was made."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"machine": machine_facts(), "versions": versions(), "commit": commit(), "date": now}


def threads_for(jobs: int, dask: str | None = None) -> int:
    """CPU threads for each cell: the cores shared among the jobs; one on a cluster's worker."""
    return 1 if dask is not None else max(1, (os.cpu_count() or 1) // jobs)


def run_cell(
    cell: Cell, root: Path, folder: Path, threads: int, left_out: bool = False
) -> dict[str, Any]:
    """Train, map and score one cell; the facts that are recorded of it, its error included."""
    began = time.perf_counter()
    forget_peak()
    commit()  # asked now: by the end of a long training the source tree may have moved on
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    facts: dict[str, Any] = {"cell": cell.as_dict()}
    try:
        with threadpool_limits(threads):  # NumPy's, too: jobs side by side must not fight
            measure = MEASURES[data_of(cell.dataset).on]
            for found in measure(cell, root, folder, left_out):  # an error leaves what is known
                facts |= found
    except Exception as error:  # whatever it is belongs in the record, and the rest goes on
        facts |= {"error": f"{type(error).__name__}: {error}"}
    facts |= stamp()
    torch.set_num_threads(before)
    # Of a training that was gone on with, the seconds before are only in its own.
    seconds = max(time.perf_counter() - began, facts.get("training_seconds", 0.0))
    return facts | {"seconds": round(seconds, 1), "peak_memory": peak_memory()}


SPECTRAL = 60.0  # seconds that a method without a network takes at most, where none is known
TREES = 0.2e-6  # seconds of one core for a value of an image in the trees
# By network (benchmarks/images.py): seconds of one core for an image in a step, and bytes.
PER_IMAGE = {"cifar": (4.1e-3, 1.2e6), "stl": (2.7e-3, 0.9e6), "table": (0.1e-3, 0.1e6)}
SEEN = 1000  # images in a step
# Passes over a step's images and phases, where a method has more than one of either.
PASSES = {
    **{"vpu": 1.5, "t-honecls": 1.3, "t-honecls-views": 1.3, "ncpu": 1.3},
    **{"dist-pu": 0.75, "p3mix-e": 1.7, "p3mix-c": 1.4},
}


def estimate(cell: Cell, threads: int, results: Results) -> Cost:
    """What a cell will need; on a scene by what earlier ones have needed."""
    bed = data_of(cell.dataset)
    return ESTIMATES[bed.on, bed.methods[cell.method].learning.pace](cell, threads, results)


def _of_network(cell: Cell, threads: int, results: Results) -> Cost:
    rates = [rate for r in results.records.values() if (rate := _rate(r)) is not None]
    rate = statistics.median(rates) if rates else TRAINING
    size = data_of(cell.dataset).size
    return training_cost(config_of(cell, prior=0.5), size, threads, rate, method=cell.method)


def _by_earlier(cell: Cell, threads: int, results: Results) -> Cost:
    seconds = _at_once(results).get((cell.dataset, cell.method), SPECTRAL)
    return Cost(seconds, STARTED + 12.0 * data_of(cell.dataset).size * 200)


@lru_cache(maxsize=1)
def _at_once(results: Results) -> dict[tuple[str, str], float]:
    """Median seconds of earlier cells that trained no network, by dataset and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in results.records.values():
        cell = record.cell
        pace = methods_for(cell.dataset)[cell.method].learning.pace
        if record.done and pace == "at once":
            seconds = record.facts.get("seconds", SPECTRAL)
            found.setdefault((cell.dataset, cell.method), []).append(seconds)
    return {key: statistics.median(values) for key, values in found.items()}


def _of_items(cell: Cell, threads: int, results: Results) -> Cost:
    config = config_of(cell, prior=0.5)
    seconds, held = PER_IMAGE[image_spec(cell.dataset).network]
    images = config.epochs * config.batches * SEEN * PASSES.get(cell.method, 1.0)
    return Cost(seconds * images / threads, STARTED + held * SEEN)


def _of_trees(cell: Cell, threads: int, results: Results) -> Cost:
    values = config_of(cell, prior=0.5).unlabeled * data_of(cell.dataset).size
    return Cost(TREES * values / threads, STARTED + 4.0 * values)


# By what a dataset holds, and how a method learns.
ESTIMATES: dict[tuple[str, str], Callable[[Cell, int, Results], Cost]] = {
    ("scene", "in steps"): _of_network,
    ("scene", "at once"): _by_earlier,
    ("images", "in steps"): _of_items,
    ("images", "at once"): _of_trees,
}


def _rate(record: Record) -> float | None:
    """Seconds of one core for a pixel in a step, from a cell on a scene that is done."""
    facts = record.facts
    epochs = len(facts.get("curves", {}).get("loss", ()))
    if not (record.done and epochs and facts.get("pixels")):
        return None
    known = {one.name for one in fields(TrainConfig)}  # an earlier version may have had others
    config = TrainConfig(
        **{name: value for name, value in facts["config"].items() if name in known}
    )
    work = epochs * work_of_epoch(config, facts["pixels"], record.cell.method)
    return float(facts["training_seconds"] * facts["machine"]["threads"] / work)
