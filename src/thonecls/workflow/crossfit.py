"""Labels by models that have not seen them, and the evidence by which a map is judged."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from thonecls.errors import LabelError
from thonecls.method.collage import cover
from thonecls.method.fit import OnStep
from thonecls.method.members import checkpoints
from thonecls.method.model import Crossfit, Model, Scorer, resolve_device
from thonecls.method.progress import Control
from thonecls.methods import METHODS
from thonecls.methods.costs import training_cost
from thonecls.methods.spectral_model import AnyModel, fit_spectral, thinned
from thonecls.mosaic import windows_of
from thonecls.parallel import is_death, run_all, workers
from thonecls.scene import BoolArray, FloatArray, Scene, Source, read_all
from thonecls.splits import Folds, Labels, coverage_of, draw_labels, judging_folds, with_negatives
from thonecls.trust import lattice, spectral_components, unlike_labels
from thonecls.workflow.options import Running, Task
from thonecls.workflow.run_folder import Evidence, fold_path
from thonecls.workflow.spectra import read_lattice, spectra_at

SPECTRA = 500  # labels and pixels whose spectra are kept
SIDE = 64  # pixels of the windows in which labels are scored
MOST = 500  # labels that a second opinion learns from: it is to take seconds
OPINIONS = ("matched-filter", "biased-svm")  # seconds each, and no package beside the usual ones


def crossfit(
    fit: Callable[[BoolArray, int], AnyModel],
    source: Source,
    positives: BoolArray,
    *,
    folds: int,
    seed: int,
    device: str = "auto",
) -> Crossfit:
    """Every label scored by a model of others; fit: of (H, W) positives and the fold's number."""
    pixels, (fold, apart) = _divide(source, positives, folds, seed)
    probability = np.full(pixels.size, np.nan, np.float32)
    for number, some in _parts(positives, pixels, apart):
        held = fold == number
        scorer = Scorer([fit(some, number)], device=device)
        probability[held] = score_pixels(scorer, source, pixels[held])
    return Crossfit(pixels, fold, probability)


def parts_without(
    source: Source, positives: BoolArray, folds: int, seed: int
) -> dict[int, BoolArray]:
    """By fold, the (H, W) positives that a model may see which is to judge that fold's labels."""
    pixels, (_, apart) = _divide(source, positives, folds, seed)
    return dict(_parts(positives, pixels, apart))


def _divide(
    source: Source, positives: BoolArray, folds: int, seed: int
) -> tuple[NDArray[np.int64], Folds]:
    """The labels, by flat index, and their folds."""
    pixels, scenes = np.flatnonzero(positives), windows_of(source)
    coverage = coverage_of(pixels, source.shape, scenes)
    rng = np.random.default_rng(seed)
    return pixels, judging_folds(pixels, source.shape, folds, coverage, rng, scenes)


def _parts(
    positives: BoolArray, pixels: NDArray[np.int64], apart: BoolArray
) -> Iterator[tuple[int, BoolArray]]:
    """The positives of each fold that has any."""
    for number, kept in enumerate(apart):
        if kept.any():
            some = np.zeros_like(positives)
            some.flat[pixels[kept]] = True
            yield number, some


def score_pixels(scorer: Scorer, source: Source, pixels: NDArray[np.int64]) -> FloatArray:
    """The probability of single pixels, by flat index, read in windows: (n,), NaN on nodata."""
    rng = np.random.default_rng(0)
    windows, _, _ = cover(pixels, source.shape, SIDE, rng, pixels.size)
    rows, columns = np.divmod(pixels, source.shape[1])
    found = np.full(pixels.size, np.nan, np.float32)
    for down, across in windows:
        inside = (rows >= down.start) & (rows < down.stop)
        inside &= (columns >= across.start) & (columns < across.stop) & ~np.isfinite(found)
        if inside.any():
            part = scorer.score(source, down, across).probability
            found[inside] = part[rows[inside] - down.start, columns[inside] - across.start]
    return found


def second_opinions(
    source: Source, positives: BoolArray, looked_at: Scene, *, seed: int, but: str
) -> dict[str, FloatArray]:
    """Scores (h, w) of a small scene by methods on single spectra that learn from the same labels.

    but: the method whose map they are to be compared with. A method for which labels are too few
    has no opinion.
    """
    found = {}
    positives = thinned(positives, MOST, seed)
    for method in OPINIONS:
        if method == but:
            continue
        try:
            found[method] = fit_spectral(method, source, positives, seed=seed).score(looked_at)
        except LabelError:
            continue
    return found


def nothing_left_out(pixels: NDArray[np.int64]) -> Crossfit:
    """Of a training that leaves no label out."""
    return Crossfit(pixels, np.full(pixels.size, -1), np.full(pixels.size, np.nan, np.float32))


MEMORY = 0.5  # of the machine's that trainings side by side may take


def leave_out(task: Task, models: Sequence[AnyModel], running: Running) -> Crossfit:
    """Labels by networks that were trained without them; those that are there already are kept.

    The result is the same in bits for any number of jobs. If somebody stops one of the trainings,
    no label counts as left out.
    """
    pixels, options = np.flatnonzero(task.positives), task.options
    if not options.folds or not all(model.training["finished"] for model in models):
        return nothing_left_out(pixels)
    source, device = task.scene.source, task.config.device
    parts = parts_without(source, task.positives, options.folds, options.seed)
    jobs, threads = shared_out(task, min(running.jobs, len(parts)))
    how = running.alone(running.resume)
    if jobs == 1:
        how = replace(how, on_step=running.on_step)
    on_fold, going_on = running.on_fold, True

    def calls() -> Iterator[tuple[int, Callable[..., bool], tuple[Any, ...]]]:
        for number, some in parts.items():
            if going_on:
                yield number, train_fold, (task, some, number, threads, how)

    if on_fold is not None and parts:
        on_fold(0, len(parts), jobs)
    with workers(jobs) as (pool, room):
        for done, (number, future) in enumerate(run_all(pool, room, calls()), 1):
            try:
                finished = future.result()
            except Exception as error:
                if not is_death(error):
                    raise
                # Probably out of memory: alone it has more.
                alone = running.alone(resume=True)
                finished = train_fold(task, parts[number], number, threads, alone)
            going_on &= finished
            if on_fold is not None:
                on_fold(done, len(parts), jobs)
    if not going_on:
        return nothing_left_out(pixels)

    def trained(_: BoolArray, number: int) -> Model:
        return Model.load(fold_path(task.out, number))

    return crossfit(
        trained, source, task.positives, folds=options.folds, seed=options.seed, device=device
    )


def shared_out(task: Task, jobs: int) -> tuple[int, int]:
    """How many folds are trained at a time, and by how many threads each.

    Side by side only if each has a core of its own and memory is enough, and not on a GPU. The
    threads depend on cores and folds alone, as bits of a training do on them.
    """
    cores, folds = torch.get_num_threads(), task.options.folds
    if cores < folds or resolve_device(task.config.device).type != "cpu":
        return 1, cores
    threads = cores // folds
    pixels = task.positives.size
    room = MEMORY * _memory() // training_cost(task.config, pixels, threads).memory
    return max(1, int(min(jobs, room))), threads


def _memory() -> float:
    """Of the machine, in bytes; without end where that is not told."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def train_fold(
    task: Task, positives: BoolArray, number: int, threads: int, running: Running
) -> bool:
    """Train the network of a fold and save it; False if somebody stopped it."""
    path, kept = fold_path(task.out, number), fold_path(task.out, number, "checkpoint-fold")
    if running.resume and path.exists() and not checkpoints(kept):
        return True
    with _threads(threads), _stoppable() as stopped:
        model = METHODS[task.options.method].train(
            task.scene.source,
            labels_of(task, positives, task.options.seed),
            config=task.config,
            generator=torch.Generator().manual_seed(task.options.seed),
            control=control_of(running, kept, running.on_step or stopped),
        )
    if not model.training["finished"]:
        return False
    model.save(path)
    for file in checkpoints(kept):
        file.unlink()
    return True


def control_of(running: Running, checkpoint: Path, on_step: OnStep | None) -> Control[Model]:
    """How one network is trained, with its checkpoint."""
    return Control(None, on_step, checkpoint, running.checkpoint_every, running.resume)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """So many threads, in PyTorch and NumPy alike."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _stoppable() -> Iterator[OnStep | None]:
    """In a process of its own, Ctrl-C asks for an orderly end, as it does in the first one.

    Not in a thread, as a cluster's workers have them: there nobody is at the keys.
    """
    alone = threading.current_thread() is threading.main_thread()
    if multiprocessing.parent_process() is None or not alone:
        yield None
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield lambda _: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


def labels_of(task: Task, positives: BoolArray, seed: int) -> Labels | BoolArray:
    """What a network learns from.

    If some negatives are known, they count among the unlabeled pixels for more than their number,
    or by themselves where the method takes them so.
    """
    if task.labels.negatives is None:
        return positives
    valid = read_all(task.scene.source).valid
    labels = draw_labels(positives, valid, task.config.unlabeled, np.random.default_rng(seed))
    negatives = np.flatnonzero(task.labels.negatives & valid)
    if METHODS[task.options.method].takes_apart:
        return replace(labels, negative=negatives)
    return with_negatives(labels, negatives)


Lattice = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows and columns


def spread_out(shape: tuple[int, int], at: Lattice | None = None) -> NDArray[np.int64]:
    """The flat indices of the pixels that a map is judged by: of a lattice, else the even one."""
    rows, columns = at or lattice(shape)
    return (rows[:, None] * shape[1] + columns).ravel()


def gather_evidence(
    source: Source,
    positives: BoolArray,
    left_out: Crossfit,
    unlabeled: FloatArray,
    *,
    method: str,
    at: Lattice | None = None,
    seed: int = 0,
    wavelengths: tuple[float, ...] | None = None,
) -> tuple[Evidence, list[str]]:
    """What a map is judged by, and the methods that have an opinion on it.

    unlabeled: (models, pixels) of the map at `spread_out`, of the lattice `at`; method: which made
    the map.
    """
    rng = np.random.default_rng(seed)
    labelled = left_out.pixels
    if labelled.size > SPECTRA:
        labelled = rng.choice(labelled, SPECTRA, replace=False)
    spectra = spectra_at(source, labelled)
    rows, columns = at or lattice(source.shape)
    looked_at = read_lattice(source, rows, columns)
    opinions = second_opinions(source, positives, looked_at, seed=seed, but=method)
    seen = looked_at.cube[:, looked_at.valid].T
    together = spectral_components(np.concatenate([spectra, seen]))
    unlike = np.zeros(looked_at.shape, dtype=bool)
    unlike[looked_at.valid] = unlike_labels(together[: len(spectra)], together[len(spectra) :])
    components = np.full((*looked_at.shape, together.shape[1]), np.nan, np.float32)
    components[looked_at.valid] = together[len(spectra) :]
    some = np.sort(rng.choice(len(seen), min(SPECTRA, len(seen)), replace=False))
    scores = [scores.ravel() for scores in opinions.values()]
    evidence = Evidence(
        labels=left_out.pixels,
        fold=left_out.fold,
        crossfit=left_out.probability,
        unlabeled=unlabeled,
        rows=rows,
        columns=columns,
        opinions=np.stack(scores) if scores else np.empty((0, unlike.size), np.float32),
        unlike=unlike.ravel(),
        components=components.reshape(unlike.size, -1),
        label_spectra=spectra,
        scene_spectra=seen[some],
        wavelengths=np.array(wavelengths or (), dtype=np.float64),
    )
    return evidence, list(opinions)
