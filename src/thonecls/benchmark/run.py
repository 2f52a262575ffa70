"""Running cells: here, in several processes or on a cluster; and what they will take."""

from __future__ import annotations

import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from thonecls.benchmark.images import measure_images
from thonecls.benchmark.paper import PAPER_PRIORS
from thonecls.benchmark.plan import Cell, config_of, methods_for
from thonecls.benchmark.records import (
    NAME,
    Ledger,
    Record,
    Results,
    append_record,
    claimed,
    forget_peak,
    machine_facts,
    peak_memory,
    short_curves,
    versions,
)
from thonecls.benchmark.targets import is_images, pixels_of
from thonecls.datasets import Dataset, load_dataset
from thonecls.errors import ClusterError, FileError, LabelError
from thonecls.files import write_atomically, writing_array
from thonecls.images import image_spec, load_images
from thonecls.method.config import TrainConfig
from thonecls.method.model import Model
from thonecls.method.procedure import Control, Progress
from thonecls.methods import METHODS, networks, resolve_prior
from thonecls.methods.costs import STARTED, TRAINING, Cost, training_cost, work_of_epoch
from thonecls.metrics import evaluate, evaluate_pu, find_degenerate
from thonecls.parallel import LOST, is_death, is_lost, run_all, workers
from thonecls.priors import bbe
from thonecls.scene import NO_DATA
from thonecls.splits import PROTOCOLS, Split, coverage_of, fixed_split, judging_folds
from thonecls.trust.thresholds import CUTS
from thonecls.version import commit

OnRecord = Callable[[Cell, dict[str, Any]], None]
CURVES = 200_000  # pixels: of a larger scene F1 is not measured after every epoch
LEFT_OUT, LEAST_LEFT = 4, 10  # parts of the labels, and labels that must remain to learn from
STEPS = 254  # of a probability in stored maps, which are uint8


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
    of its labels, and record how those are found (see `find_left_out`).
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
                    for path in _kept(folder, cell):
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
            if is_images(cell.dataset):
                kept = _kept(folder, cell)
                facts |= measure_images(cell, load_images(cell.dataset, root), *kept)
            else:
                data = load_dataset(cell.dataset, root)
                facts |= _measure(cell, data, folder)
                if left_out:
                    facts |= {"left_out": find_left_out(cell, data)}
    except Exception as error:  # whatever it is belongs in the record, and the rest goes on
        facts |= {"error": f"{type(error).__name__}: {error}"}
    facts |= stamp()
    torch.set_num_threads(before)
    # Of a training that was gone on with, the seconds before are only in its own.
    seconds = max(time.perf_counter() - began, facts.get("training_seconds", 0.0))
    return facts | {"seconds": round(seconds, 1), "peak_memory": peak_memory()}


def split_of(cell: Cell, data: Dataset, unlabeled: int) -> Split:
    """The labels and tests of a cell."""
    valid = data.scene.valid
    published = _published(cell, data)
    if published is not None:
        return fixed_split(*published, cell.target, unlabeled=unlabeled, valid=valid)
    seed = {} if cell.protocol == "paper" else {"seed": cell.seed}
    return PROTOCOLS[cell.protocol](
        data.truth,
        cell.target,
        positives=cell.positives,
        unlabeled=unlabeled,
        valid=valid,
        **seed,
    )


def _published(cell: Cell, data: Dataset) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
    """The labels and tests that came with the scene, where a cell takes those."""
    if cell.protocol != "paper" or cell.positives != Cell.positives:
        return None
    return None if data.train is None or data.test is None else (data.train, data.test)


def _measure(cell: Cell, data: Dataset, folder: Path) -> dict[str, Any]:
    split = split_of(cell, data, config_of(cell).unlabeled)
    prior = _prior(cell, data, split)
    config = config_of(cell, prior)
    of_class = data.truth == cell.target
    began, threshold = time.perf_counter(), 0.5
    if METHODS[cell.method].network:
        probability, threshold, training = _train(cell, config, data, split, folder)
    else:
        options = {"prior": prior} if METHODS[cell.method].needs_prior else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a map that says nothing is named in the record
            probability = METHODS[cell.method](data.scene, split.labels, cell.seed, **options)
        training = {"training_seconds": round(time.perf_counter() - began, 3)}
    unlabeled = probability.flat[split.labels.unlabeled]
    pu = evaluate_pu(probability[split.test & of_class], unlabeled, threshold=threshold)
    warning = find_degenerate(probability, split.labels.positive, threshold)
    _store_map(map_path(folder, cell), probability)
    return {
        "scores": asdict(evaluate(probability, of_class, split.test, threshold=threshold)),
        "threshold": threshold,
        "pu": asdict(pu),
        "cuts": _at_cuts(probability, of_class, split),
        **({"prior": prior} if prior is not None else {}),
        **({"warning": warning} if warning else {}),
        "config": asdict(config),
        "pixels": int(of_class.size),
        "split": "published" if _published(cell, data) else "drawn",
        **training,
    }


def _at_cuts(
    probability: NDArray[np.float32], of_class: NDArray[np.bool_], split: Split
) -> dict[str, dict[str, float]]:
    """The same map at thresholds that any method can take: from its unlabeled pixels alone."""
    unlabeled = probability.flat[split.labels.unlabeled]
    found = {}
    for name, cut in CUTS.items():
        threshold = cut(unlabeled[np.isfinite(unlabeled)])
        scores = asdict(evaluate(probability, of_class, split.test, threshold=threshold))
        found[name] = {"threshold": threshold} | {
            m: scores[m] for m in ("precision", "recall", "f1")
        }
    return found


def find_left_out(cell: Cell, data: Dataset) -> dict[str, float] | None:
    """Criteria without negatives, from labels that a second fit does not see; None if it cannot be.

    A part of the labels is left out, as far from the others as the class is that is to be found:
    whole places, unless labels lie all over the scene. They, and the unlabeled pixels, are scored
    by what is learnt from the rest. `prior` is what these scores say of the class's share (BBE).
    """
    split = split_of(cell, data, config_of(cell).unlabeled)
    prior = _prior(cell, data, split)
    labels, shape = split.labels, data.scene.shape
    coverage = coverage_of(labels.positive, shape)
    rng = np.random.default_rng(cell.seed)
    fold, apart = judging_folds(labels.positive, shape, LEFT_OUT, coverage, rng)
    order = np.argsort([-(fold == k).sum() for k in range(len(apart))], kind="stable")
    usable = [int(k) for k in order if apart[k].sum() >= LEAST_LEFT]
    if not usable:
        return None
    held_out = labels.positive[fold == usable[0]]
    known = replace(labels, positive=labels.positive[apart[usable[0]]])
    method = METHODS[cell.method]
    options: dict[str, Any] = {"prior": prior} if method.needs_prior else {}
    if method.network:
        options["config"] = config_of(cell, prior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            probability = method(data.scene, known, cell.seed, **options)
        except LabelError:  # it needs more labels than are left
            return None
    scores = [probability.flat[pixels] for pixels in (held_out, labels.unlabeled)]
    positive, unlabeled = (x[np.isfinite(x)] for x in scores)
    return {**asdict(evaluate_pu(positive, unlabeled)), "prior": min(1.0, bbe(positive, unlabeled))}


def _prior(cell: Cell, data: Dataset, split: Split) -> float | None:
    """The class prior as a number, for the methods that need it.

    "paper" is KM2's estimate: the paper's own where it has one, else ours.
    """
    if not METHODS[cell.method].needs_prior:
        return None
    if cell.prior == "true":
        return float((data.truth == cell.target).sum() / data.scene.valid.sum())
    if cell.prior == "paper":
        known = PAPER_PRIORS.get(cell.dataset, {}).get(cell.target)
        return known or resolve_prior("km2", data.scene, split.labels, cell.seed)
    return resolve_prior(cell.prior, data.scene, split.labels, cell.seed)


def _train(
    cell: Cell, config: TrainConfig, data: Dataset, split: Split, folder: Path
) -> tuple[NDArray[np.float32], float, dict[str, Any]]:
    """The score map of a network, its cut, and how its training went, F1 by epoch included."""
    checkpoint, kept = _kept(folder, cell)
    f1: list[float] = json.loads(kept.read_text("utf-8")) if kept.exists() else []
    of_class = data.truth == cell.target

    def on_epoch(progress: Progress[Model]) -> None:
        if of_class.size > CURVES:
            return
        probability = progress.snapshot().score(data.scene, device=config.device)
        # A checkpoint may lie before the last figure kept: that epoch comes a second time.
        f1[progress.epoch - 1 :] = [round(evaluate(probability, of_class, split.test).f1, 3)]
        write_atomically(kept, json.dumps(f1).encode(), sync=False)

    model = networks.train(
        cell.method,
        data.scene,
        split.labels,
        config=config,
        generator=torch.Generator().manual_seed(cell.seed),
        control=Control(on_epoch, checkpoint=checkpoint, resume=True),
    )
    probability = model.score(data.scene, device=config.device)
    return (
        probability,
        model.threshold,
        {
            "training_seconds": model.training["seconds"],
            "curves": {**short_curves(model.training["history"]), "f1": f1},
        },
    )


def _kept(folder: Path, cell: Cell) -> tuple[Path, Path]:
    """Where an unfinished cell keeps its training and its F1 by epoch."""
    return folder / "work" / f"{cell.id}.checkpoint", folder / "work" / f"{cell.id}.curve"


def _store_map(path: Path, probability: NDArray[np.float32]) -> None:
    with writing_array(path, np.uint8, probability.shape) as stored:
        stored[:] = np.where(np.isfinite(probability), np.rint(probability * STEPS), NO_DATA)


def map_path(folder: Path, cell: Cell) -> Path:
    """Where a cell's record leaves its map."""
    return folder / "maps" / f"{cell.id}.npy"


def load_map(folder: Path, cell: Cell) -> NDArray[np.float32]:
    """The probabilities that a cell's record left, to 1/254; NaN on nodata."""
    path = map_path(folder, cell)
    if not path.exists():
        raise FileError(
            f"there is no map of {cell} in {path.parent}: take the cell's line out of "
            f"{folder / NAME}, and it is run again"
        )
    stored = np.load(path)
    return np.where(stored == NO_DATA, np.nan, stored / np.float32(STEPS)).astype(np.float32)


SPECTRAL = 60.0  # seconds that a method without a network takes at most, where none is known
TREES = 0.2e-6  # seconds of one core for a value of an image in the trees
# By network (benchmarks/images.py): seconds of one core for an image in a step, and bytes.
PER_IMAGE = {"cifar": (4.1e-3, 1.2e6), "stl": (2.7e-3, 0.9e6), "table": (0.1e-3, 0.1e6)}
SEEN = 1000  # images in a step
# Passes over a step's images and phases, where a method has more than one of either.
PASSES = {
    **{"vpu": 1.5, "t-honecls": 1.3, "ncpu": 1.3},
    **{"dist-pu": 0.75, "p3mix-e": 1.7, "p3mix-c": 1.4},
}


def estimate(cell: Cell, threads: int, results: Results) -> Cost:
    """What a cell will need; on a scene by what earlier ones have needed."""
    if is_images(cell.dataset):
        return _of_images(cell, threads)
    pixels = pixels_of(cell.dataset)
    if not methods_for(cell.dataset)[cell.method].network:
        known = _without_network(results).get((cell.dataset, cell.method))
        seconds = SPECTRAL if known is None else known
        return Cost(seconds, STARTED + 12.0 * pixels * 200)
    rates = [rate for r in results.records.values() if (rate := _rate(r)) is not None]
    rate = statistics.median(rates) if rates else TRAINING
    config = config_of(cell, prior=0.5)
    return training_cost(config, pixels, threads, rate, method=cell.method)


@lru_cache(maxsize=1)
def _without_network(results: Results) -> dict[tuple[str, str], float]:
    """Median seconds of earlier cells that trained no network, by dataset and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in results.records.values():
        cell = record.cell
        if record.done and not methods_for(cell.dataset)[cell.method].network:
            seconds = record.facts.get("seconds", SPECTRAL)
            found.setdefault((cell.dataset, cell.method), []).append(seconds)
    return {key: statistics.median(values) for key, values in found.items()}


def _of_images(cell: Cell, threads: int) -> Cost:
    spec, config = image_spec(cell.dataset), config_of(cell, prior=0.5)
    if not methods_for(cell.dataset)[cell.method].network:
        values = config.unlabeled * spec.shape[0] * spec.shape[1] * spec.shape[2]
        return Cost(TREES * values / threads, STARTED + 4.0 * values)
    seconds, held = PER_IMAGE[spec.network]
    images = config.epochs * config.batches * SEEN * PASSES.get(cell.method, 1.0)
    return Cost(seconds * images / threads, STARTED + held * SEEN)


def _rate(record: Record) -> float | None:
    """Seconds of one core for a pixel in a step, from a cell on a scene that is done."""
    facts = record.facts
    epochs = len(facts.get("curves", {}).get("loss", ()))
    if not (record.done and epochs and facts.get("pixels")):
        return None
    config = TrainConfig(**facts["config"])
    work = epochs * work_of_epoch(config, facts["pixels"], record.cell.method)
    return float(facts["training_seconds"] * facts["machine"]["threads"] / work)
