"""A training or an export in a process of its own: `python -m thonecls.studio.job FOLDER`.

The folder's job.json says what to do, its status.json how far it is. The process holds the folder's
lock, so that a server which starts again knows whether it is still at work.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thonecls.errors import FileError, ThoneclsError
from thonecls.files import LOCK, locked, write_atomically
from thonecls.io.drivers import keep_from_networks

JOB, STATUS, STOP, LOG = "job.json", "status.json", "stop", "log.txt"
EXPORTED = ".export.json"  # in the folder of an export: what it is of, once it is whole
AGAIN = "export-again"  # the folder that the command writes which repeats an export
OFTEN = 0.2  # seconds between two words on progress
UNEXPECTED = "something unexpected happened"


@dataclass
class Status:
    """How far a job is, written where the server looks."""

    folder: Path
    began: float = field(default_factory=time.time)
    told: float = 0.0
    judging: str = ""

    def tell(self, state: str, words: str, done: float | None = None, error: str = "") -> None:
        """Write how far it is, at once."""
        seconds = round(time.time() - self.began, 1)
        content = {"state": state, "words": words, "done": done, "seconds": seconds, "error": error}
        content["process"] = os.getpid()
        write_atomically(self.folder / STATUS, json.dumps(content).encode(), sync=False)
        self.told = time.monotonic()

    def on_plan(self, words: str) -> None:
        self.tell("running", words)

    def on_step(self, progress: Any) -> bool:
        """Tell of a training step; True where somebody asked for an early end."""
        if time.monotonic() - self.told > OFTEN:
            steps = (progress.epoch - 1) * progress.steps + progress.step
            kind = self.judging or "training"
            words = f"{kind}, epoch {progress.epoch} of {progress.epochs}"
            self.tell("running", words, steps / (progress.epochs * progress.steps))
        return (self.folder / STOP).exists()

    def on_fold(self, done: int, total: int, at_a_time: int) -> None:
        self.judging = f"judging the map, {min(done + 1, total)} of {total}"
        self.tell("running", self.judging, done / total)

    def on_window(self, done: int, total: int) -> None:
        if time.monotonic() - self.told > OFTEN or done == total:
            words = "mapping" if done < total else "judging the map and writing the report"
            self.tell("running", words, done / total if done < total else None)


def run_job(folder: Path) -> None:
    """Do what job.json says."""
    job: dict[str, Any] = json.loads((folder / JOB).read_text("utf-8"))
    status = Status(folder)
    status.tell("running", "starting")
    try:
        if job["kind"] == "train":
            _train(job, status)
        else:
            _export(job, status)
    except ThoneclsError as error:
        status.tell("failed", "failed", error=" ".join(str(error).split()))
    except Exception as error:
        (folder / LOG).write_text(traceback.format_exc())
        words = f"{UNEXPECTED} ({type(error).__name__}: {str(error)[:300]}): see {folder / LOG}"
        status.tell("failed", "failed", error=words)
    else:
        status.tell("done", "done", 1.0)


def _train(job: dict[str, Any], status: Status) -> None:
    from thonecls.io.inputs import read_scene
    from thonecls.io.options import LabelOptions, SceneOptions
    from thonecls.method.config import PRESETS, preset_for
    from thonecls.methods import METHODS
    from thonecls.workflow import Running, TrainOptions, train_scene

    status.tell("running", "learning")
    scene, scene_options = Path(job["scene"]), SceneOptions(**job["scene_options"])
    rows, columns = read_scene(scene, scene_options).grid.shape
    config = PRESETS[job["preset"] or preset_for(rows * columns)]
    exporting, method = job["kind"] == "export", METHODS[job["method"]]
    slow = method.learning.pace == "in steps"
    train_scene(
        scene,
        Path(job["labels"]),
        Path(job["out"]),
        config=method.configure(config),
        options=TrainOptions(
            method=job["method"],
            coverage=job["coverage"],
            threshold=job["threshold"],
            label=job["label"],
            floats=not exporting,  # the page moves the cut: percents would be too coarse
            polygons=exporting or slow,  # which is not trained again for an export
        ),
        scene_options=scene_options,
        label_options=LabelOptions(answers=job["answers"]),
        running=Running(
            overwrite=exporting,
            resume=not exporting,
            jobs=os.cpu_count() or 1,
            on_plan=status.on_plan,
            on_step=status.on_step,
            on_fold=status.on_fold,
            on_window=status.on_window,
        ),
    )


def _export(job: dict[str, Any], status: Status) -> None:
    """Make the map as people take it away, and write down how it can be made again."""
    from thonecls.workflow.options import map_command, repeat_command
    from thonecls.workflow.run_folder import BEGUN, CHECKPOINTS, FOLDS, read_run

    out = Path(job["out"])
    again = out.with_name(AGAIN)
    if job["run"] is None:
        _train(job, status)
    elif job["threshold"] is None:  # a network trains for long, and its map is there
        status.tell("running", "copying")
        unwanted = shutil.ignore_patterns(BEGUN, CHECKPOINTS, FOLDS, LOCK)  # of a training in parts
        shutil.copytree(job["run"], out, dirs_exist_ok=True, ignore=unwanted)
    else:
        _map_again(job, status)
        command = map_command(
            Path(job["run"]), Path(job["scene"]), job["scene_options"], job["threshold"], again
        )
    if job["run"] is None or job["threshold"] is None:
        # By the labels beside it: folders of older trainings are taken away.
        command = repeat_command({**read_run(out, {}), "out": str(again), "labels": job["labels"]})
    facts = {name: job[name] for name in ("map", "cut", "label")}
    facts |= {"command": command, "made": f"{time.time():.3f}"}
    write_atomically(out / EXPORTED, json.dumps(facts).encode())


def _map_again(job: dict[str, Any], status: Status) -> None:
    """Map with a network's models at another cut."""
    from thonecls.io.options import SceneOptions
    from thonecls.workflow import MapOptions, map_scene

    out = Path(job["out"])
    map_scene(
        Path(job["run"]),
        Path(job["scene"]),
        out,
        options=MapOptions(threshold=job["threshold"], overwrite=True),
        scene_options=SceneOptions(**job["scene_options"]),
        on_window=status.on_window,
    )
    for name in ("report.html", "report.json"):
        if (Path(job["run"]) / name).exists():
            shutil.copy2(Path(job["run"]) / name, out / name)


def main() -> int:
    """Run the job of a folder; 0 whether it succeeded or not, as status.json tells which."""
    keep_from_networks()
    folder = Path(sys.argv[1])
    try:
        with locked(folder):
            run_job(folder)
    except FileError:  # another process is at it
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
