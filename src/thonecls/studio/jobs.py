"""Trainings and exports as the server sees them: started, followed, cancelled, taken up again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from thonecls.errors import FileError
from thonecls.files import locked, write_atomically
from thonecls.studio.job import JOB, LOG, STATUS, STOP

State = Literal["running", "done", "failed", "cancelled"]
POLL = 0.15  # seconds
GRACE = 5.0  # seconds for a process that was asked to end
KEPT = 2  # trainings whose folders stay


@dataclass(frozen=True)
class Job:
    """A training or an export; map: the one that it made, or is to make anew."""

    id: str
    kind: Literal["train", "export"]
    state: State
    done: float | None
    words: str
    method: str
    revision: int
    seconds: float
    error: str | None
    map: str | None


class Jobs:
    """The jobs of a project, each in a folder below `folder`.

    on_change hears of each step; on_done of a good end, before anybody else can see it.
    """

    def __init__(
        self, folder: Path, on_change: Callable[[Job], None], on_done: Callable[[Job], None]
    ) -> None:
        self.folder, self.on_change, self.on_done = folder, on_change, on_done
        self._jobs: dict[str, Job] = {}
        self._pruned: dict[str, Job] = {}  # that have ended, and whose folders are gone
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.RLock()
        self._closing = threading.Event()

    def shown(self) -> list[Job]:
        """Running ones, and the last of each kind that has ended."""
        with self._lock:
            jobs = list(self._jobs.values())
        last = {job.kind: job for job in jobs if job.state != "running"}
        return [job for job in jobs if job.state == "running" or last.get(job.kind) == job]

    def get(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def running(self, kind: str) -> Job | None:
        """The job of a kind that is at work, if one is."""
        with self._lock:
            found = [j for j in self._jobs.values() if j.kind == kind and j.state == "running"]
        return found[0] if found else None

    def next_folder(self, kind: str) -> Path:
        """A new folder for a job, to be filled before `start`."""
        numbers = [int(path.name.rpartition("-")[2]) for path in self.folder.glob(f"{kind}-[0-9]*")]
        folder = self.folder / f"{kind}-{max(numbers, default=0) + 1}"
        folder.mkdir(parents=True)
        return folder

    def start(self, folder: Path, spec: Mapping[str, Any]) -> Job:
        """Begin a job in its folder."""
        write_atomically(folder / JOB, json.dumps(spec, indent=2).encode())
        return self._spawn(folder, spec)

    def _spawn(self, folder: Path, spec: Mapping[str, Any]) -> Job:
        job = _job(folder, spec, "running", "starting")
        with self._lock:
            (folder / STATUS).unlink(missing_ok=True)
            (folder / STOP).unlink(missing_ok=True)
            with (folder / LOG).open("ab") as log:
                self._processes[job.id] = subprocess.Popen(
                    [sys.executable, "-m", "thonecls.studio.job", str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C in the terminal is for the server
                )
            self._jobs[job.id] = job
        self.on_change(job)
        self._follow(folder, spec)
        return job

    def take_up(self) -> list[tuple[Job, Mapping[str, Any]]]:
        """Go on with the jobs of an earlier server; those that have ended, in order."""
        ended = []
        folders = [path for path in self.folder.glob("*-[0-9]*") if path.is_dir()]
        for folder in sorted(folders, key=lambda path: int(path.name.rpartition("-")[2])):
            spec, status = _read(folder / JOB), _read(folder / STATUS)
            if spec is None:
                shutil.rmtree(folder, ignore_errors=True)  # killed before it was begun
                continue
            state = (status or {}).get("state", "running")
            if state == "running":
                if _at_work(folder):
                    job = _job(folder, spec, "running", "going on")
                    self._jobs[job.id] = job
                    self._follow(folder, spec)
                else:
                    self._spawn(folder, spec)
                continue
            job = self._told(_job(folder, spec, state, ""), folder)
            self._jobs[job.id] = job
            ended.append((job, spec))
        return ended

    def spec(self, name: str) -> dict[str, Any]:
        """What a job was asked for."""
        found: dict[str, Any] | None = _read(self.folder / name / JOB)
        if found is None:
            raise FileError(f"{self.folder / name} holds no job: train again")
        return found

    def cancel(self, name: str, *, keep: bool = False) -> Job | None:
        """End a job; as it was where it has ended before, None where there was none of that name.

        keep: let a network's training end early, with a map of what was learnt.
        """
        with self._lock:
            job = self._jobs.get(name, self._pruned.get(name))
            if job is None or job.state != "running":
                return job
            folder = self.folder / name
            if keep:
                (folder / STOP).touch()
                return job
            job = replace(job, state="cancelled", words="cancelled", done=None)
            self._jobs[name] = job
            content = {"state": "cancelled", "words": "cancelled", "seconds": job.seconds}
            self._end(name)
            write_atomically(folder / STATUS, json.dumps(content).encode())
        self.on_change(job)
        return job

    def close(self) -> None:
        """End what this server started; it goes on when a server starts again."""
        self._closing.set()
        with self._lock:
            for name in list(self._processes):
                self._end(name)

    def prune(self) -> list[str]:
        """Take away the folders of older trainings; their names."""
        with self._lock:
            ended = [
                job.id for job in self._jobs.values() if job.kind == "train" and job.state == "done"
            ]
            bad = [job.id for job in self._jobs.values() if job.state in ("failed", "cancelled")]
            gone = [*ended[:-KEPT], *bad[:-1]]
            for name in gone:
                self._pruned[name] = self._jobs.pop(name)
                shutil.rmtree(self.folder / name, ignore_errors=True)
        return gone

    def _end(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            self._end_orphan(self.folder / name)
            return
        if process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _end_orphan(self, folder: Path) -> None:
        """End a process that an earlier server started."""
        number = _read(folder / STATUS, {}).get("process")
        if number is not None and _at_work(folder):
            with suppress(OSError):
                os.kill(int(number), signal.SIGTERM)

    def _follow(self, folder: Path, spec: Mapping[str, Any]) -> None:
        threading.Thread(target=self._watch, args=(folder, spec), daemon=True).start()

    def _watch(self, folder: Path, spec: Mapping[str, Any]) -> None:
        """Tell of each step of a job until it has ended."""
        name, began = folder.name, time.monotonic()
        while not self._closing.wait(POLL):
            with self._lock:
                job = self._jobs.get(name)
                if job is None or job.state != "running":
                    return
                gone = self._is_gone(name, folder, time.monotonic() - began)
                told = self._told(job, folder)
                if gone and told.state == "running":
                    told = replace(
                        told,
                        state="failed",
                        words="failed",
                        error="it ended without a word, probably out of memory: train on fewer "
                        f"bands or a part of the scene, and see {folder / LOG}",
                    )
                    content = {**_read(folder / STATUS, {}), "state": "failed", "error": told.error}
                    write_atomically(folder / STATUS, json.dumps(content).encode())
            if told.state == "done":
                self.on_done(told)
            with self._lock:
                if self._jobs[name].state != "running":  # cancelled in this moment
                    return
                self._jobs[name] = told
            if told != job:
                self.on_change(told)
            if told.state != "running":
                with suppress(KeyError):
                    self._processes.pop(name).wait()
                return

    def _is_gone(self, name: str, folder: Path, seconds: float) -> bool:
        """Whether the process of a job has ended; looked at before its status, which is last."""
        if name in self._processes:
            return self._processes[name].poll() is not None
        return seconds > 1 and not _at_work(folder)

    def _told(self, job: Job, folder: Path) -> Job:
        """A job as its status tells of it."""
        status = _read(folder / STATUS, {})
        state = status.get("state", job.state)
        made = map_of(job.id) if job.kind == "train" and state == "done" else None
        return replace(
            job,
            state=state,
            words=status.get("words") or job.words,
            done=status.get("done"),
            seconds=status.get("seconds", job.seconds),
            error=status.get("error") or None,
            map=made or job.map,
        )


def _job(folder: Path, spec: Mapping[str, Any], state: State, words: str) -> Job:
    return Job(
        folder.name,
        spec["kind"],
        state,
        None,
        words,
        spec["method"],
        spec["revision"],
        0.0,
        None,
        spec.get("map"),
    )


def _read(path: Path, default: Any = None) -> Any:
    """What a file of facts holds; the default where there is none that can be read."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return default
    return found if isinstance(found, dict) else default


def _at_work(folder: Path) -> bool:
    """Whether a process holds the folder of a job."""
    try:
        with locked(folder):
            return False
    except FileError:
        return True


def map_of(job: str) -> str:
    """The id of the map that a training makes.

    >>> map_of("train-3")
    'run-3'
    """
    return job.replace("train", "run")


def job_of(name: str) -> str:
    """The training that made a map."""
    return name.replace("run", "train")
