"""Calls run here, in several processes, or on a Dask cluster, as there is room for them."""

from __future__ import annotations

import concurrent.futures
import itertools
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, TypeVar

from thonecls.errors import ClusterError, ConfigError
from thonecls.extras import need

Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")
THREADS = 2  # that read or add up at a time: what they do leaves Python alone
AHEAD = 8  # results that wait to be used, at most
LOST = (
    "the cluster no longer answers: start it again and repeat the command, resuming where it was a "
    "map; what is finished is kept"
)
Room = Callable[[], int]  # how many calls are to be under way at a time


def threaded(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The function of every item, in their order, by two threads that work a little ahead.

    >>> list(threaded(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    following = iter(items)
    with ThreadPoolExecutor(THREADS) as pool:
        coming = deque(pool.submit(function, x) for x in itertools.islice(following, AHEAD))
        while coming:
            result = coming.popleft().result()
            coming.extend(pool.submit(function, x) for x in itertools.islice(following, 1))
            yield result


@contextmanager
def workers(jobs: int = 1, dask: str | None = None) -> Iterator[tuple[Executor, Room]]:
    """Something that runs calls, and how many at a time it has room for.

    jobs: processes on this machine, 1 for this one; dask: a scheduler's address to use instead.
    """
    if dask is not None:
        client = _connect(dask)

        def room() -> int:
            try:
                return max(1, sum(map(int, client.ncores().values())))
            except (concurrent.futures.CancelledError, OSError) as error:
                raise ClusterError(LOST) from error

        with client, client.get_executor(pure=False) as pool:
            yield pool, room
    elif jobs == 1:
        yield _Here(), lambda: 1
    else:
        yield _Processes(), lambda: jobs


def run_all(
    pool: Executor, room: Room, calls: Iterable[tuple[Key, Callable[..., Any], tuple[Any, ...]]]
) -> Iterator[tuple[Key, Future[Any]]]:
    """Run calls, each with a key; yields keys with their results as they end.

    The next call is asked for only when there is room for it.
    """
    running: dict[Future[Any], Key] = {}

    def ended() -> Iterator[tuple[Key, Future[Any]]]:
        done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), future

    for key, call, arguments in calls:
        running[pool.submit(call, *arguments)] = key
        while len(running) >= room():
            yield from ended()
    while running:
        yield from ended()


class _Here(Executor):
    """Runs a call at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class _Processes(Executor):
    """Runs each call in a process of its own: one that dies takes no other call with it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent)
        future = pool.submit(fn, *args, **kwargs)
        pool.shutdown(wait=False)  # when the call has ended
        return future


def result_of(future: Future[Any]) -> Any:
    """What a call on a cluster gave; an error of the cluster's says what to do."""
    try:
        return future.result()
    except Exception as error:
        if is_death(error):
            raise ClusterError(
                "workers of the cluster died again and again at one call, probably out of "
                "memory: start them with more, or fewer on a machine"
            ) from error
        # Other errors of the system are those of the call, such as a file that a worker misses.
        if isinstance(error, concurrent.futures.CancelledError) or _is_closed(error):
            raise ClusterError(LOST) from error
        raise


def _is_closed(error: BaseException) -> bool:
    return type(error).__name__ == "CommClosedError"


def is_death(error: BaseException) -> bool:
    """Whether an error tells that the process of a call died, again and again on a cluster."""
    return isinstance(error, BrokenProcessPool) or type(error).__name__ == "KilledWorker"


def is_lost(error: BaseException) -> bool:
    """Whether an error tells that the cluster is gone."""
    return isinstance(error, concurrent.futures.CancelledError | OSError)


def _connect(address: str) -> Any:
    distributed = need("distributed", "a cluster")
    try:
        try:
            return distributed.Client(address, timeout="10s")
        except AssertionError:  # its event loop did not start in time, as on a busy machine
            return distributed.Client(address, timeout="10s")
    except (TypeError, RuntimeError) as error:  # as Dask says that certificates are missing
        raise ConfigError(
            f"cannot speak to {address} as Dask is configured here ({error}): see TLS in "
            "docs/cluster.md"
        ) from error
    except (OSError, ValueError, AssertionError) as error:  # the last: its loop started too late
        raise ConfigError(
            f"no Dask scheduler answers at {address} ({error}): start one with `dask scheduler`, "
            "workers with `dask worker ADDRESS --nthreads 1`, and give the address that it prints"
        ) from error


def _end_with_parent() -> None:
    """A killed parent must not leave workers behind that go on with its work."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
