"""Networks that have not seen a part of the labels: trained in turn, or side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from thonecls.method.fit import OnStep, checkpoints
from thonecls.method.model import Crossfit, Model, resolve_device
from thonecls.methods import deep
from thonecls.methods.costs import training_cost
from thonecls.methods.models import AnyModel
from thonecls.parallel import is_death, run_all, workers
from thonecls.scene import BoolArray, read_all
from thonecls.splits import Labels, draw_labels, with_negatives
from thonecls.workflow.crossfit import crossfit, nothing_left_out, parts_without
from thonecls.workflow.finish import Task
from thonecls.workflow.run_folder import fold_path

OnFold = Callable[[int, int, int], None]  # how many are done, of how many, how many at a time
MEMORY = 0.5  # of the machine's that trainings side by side may take


def leave_out(
    task: Task,
    models: Sequence[AnyModel],
    *,
    jobs: int,
    resume: bool,
    checkpoint_every: float,
    on_step: OnStep | None = None,
    on_fold: OnFold | None = None,
) -> Crossfit:
    """Labels by networks that were trained without them; those that are there already are kept.

    jobs: processes at most; the result is the same in bits for any number of them. If somebody
    stops one of the trainings, no label counts as left out.
    """
    pixels, options = np.flatnonzero(task.positives), task.options
    if not options.folds or not all(model.training["finished"] for model in models):
        return nothing_left_out(pixels)
    source, device = task.scene.source, task.config.device
    parts = parts_without(task.positives, options.folds, options.seed)
    jobs, threads = shared_out(task, min(jobs, len(parts)))
    how = (threads, checkpoint_every, resume)
    going_on = True

    def calls() -> Iterator[tuple[int, Callable[..., bool], tuple[Any, ...]]]:
        for number, some in parts.items():
            if going_on:
                callback = on_step if jobs == 1 else None
                yield number, train_fold, (task, some, number, *how, callback)

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
                finished = train_fold(task, parts[number], number, threads, checkpoint_every, True)
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
    task: Task,
    positives: BoolArray,
    number: int,
    threads: int,
    checkpoint_every: float,
    resume: bool,
    on_step: OnStep | None = None,
) -> bool:
    """Train the network of a fold and save it; False if somebody stopped it."""
    path, kept = fold_path(task.out, number), fold_path(task.out, number, "checkpoint-fold")
    if resume and path.exists() and not checkpoints(kept):
        return True
    with _threads(threads), _stoppable() as stopped:
        model = deep.train(
            task.options.method,
            task.scene.source,
            labels_of(task, positives, task.options.seed),
            config=task.config,
            generator=torch.Generator().manual_seed(task.options.seed),
            on_step=on_step or stopped,
            checkpoint=kept,
            checkpoint_every=checkpoint_every,
            resume=resume,
        )
    if not model.training["finished"]:
        return False
    model.save(path)
    for file in checkpoints(kept):
        file.unlink()
    return True


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
    """In a process of its own, Ctrl-C asks for an orderly end, as it does in the first one."""
    if multiprocessing.parent_process() is None:
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

    If some negatives are known, they count among the unlabeled pixels for more than their number.
    """
    if task.labels.negatives is None:
        return positives
    valid = read_all(task.scene.source).valid
    labels = draw_labels(positives, valid, task.config.unlabeled, np.random.default_rng(seed))
    return with_negatives(labels, np.flatnonzero(task.labels.negatives & valid))
