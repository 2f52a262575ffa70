"""What a person sees while a command works: a bar for training, one for mapping, and Ctrl-C.

Programs get the same as lines of JSON, `--progress json`: one object a line, with `stage` (train,
judge or map), `done` and `total`, and where there is more to tell `words`.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from thonecls.method.progress import Progress

Form = Literal["bar", "json"]
OFTEN = 0.1  # seconds between two lines of one stage


class Display:
    """Progress as callbacks; while training, the first Ctrl-C asks for an orderly end.

    quiet: without bars, as results are JSON. form: bars, or lines of JSON on stderr, quiet or not.
    Nothing is shown before the first step, so that an early error stands alone.
    """

    def __init__(self, console: Console, *, quiet: bool, form: Form | None = None) -> None:
        self.console, self.lines = console, form == "json"
        self.quiet = self.lines or (quiet and form is None)
        self.stage, self.told, self.fold = "", 0.0, (0, 0)
        self.stopping = False
        self.previous: Any = None
        self.plan, self.training, self.mapping = "", "training", "mapping"
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            disable=self.quiet,
        )
        self.task = self.bar.add_task("", total=None, note="")

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.bar.live.is_started:  # else it would print an empty line before an early error
            self.bar.stop()
        self._release()

    def on_plan(self, words: str) -> None:
        """Hear what training will take; shown with its first step."""
        self.plan = words

    def on_fold(self, done: int, total: int, at_a_time: int) -> None:
        """Show which of the trainings is under way by which the map is judged."""
        self.training = f"judging, {min(done + 1, total)} of {total}"
        self.fold = (done, total)
        self._line("judge", done, total)
        if at_a_time == 1:
            return
        if done == 0:
            words = f"judging the map by {total} trainings, each without a part of the labels"
            self._show(f"{words}, {at_a_time} at a time")
            self.bar.reset(self.task, description="judging", note="", total=total)
        self.bar.update(self.task, completed=done, note=f"{done} of {total} trainings")

    def on_training(self, done: int, total: int) -> None:
        """Show how many networks a cluster has trained."""
        if self.bar.tasks[0].description != "training":
            self._show(self.plan)
            self.bar.reset(self.task, description="training", note="", total=total)
        self.bar.update(self.task, completed=done, note=f"{done} of {total} networks")

    def on_scene(self, name: str, number: int, total: int) -> Callable[[int, int], None]:
        """Show which of many scenes is mapped; hears of its windows."""
        self.mapping = "mapping" if total == 1 else f"mapping {name}, {number} of {total}"
        return self.on_window

    def on_step(self, progress: Progress[Any]) -> bool:
        """Show a step of training; True asks training to end here."""
        if self.previous is None:
            self.previous = signal.signal(signal.SIGINT, self._interrupt)
            self._show(
                f"training on {progress.pixels:,} pixels for up to {progress.epochs} epochs; "
                "Ctrl-C stops early and keeps the model"
            )
            self._tell(self.plan)
        self._line_of_step(progress)
        speed = progress.pixels * (self.bar.tasks[0].speed or 0) / 1e3
        self.bar.update(
            self.task,
            description=self.training,
            total=progress.epochs * progress.steps,
            completed=(progress.epoch - 1) * progress.steps + progress.step,
            note=f"epoch {progress.epoch}/{progress.epochs}  loss {progress.metrics.loss:.4f}  "
            f"{speed:,.0f} kpx/s",
        )
        return self.stopping

    def on_window(self, done: int, total: int) -> None:
        """Show how many pixels are mapped; from here on Ctrl-C stops at once."""
        self._release()
        self._line("map", done, total)
        if self.bar.tasks[0].description != self.mapping:
            self._show("")
            self.bar.reset(self.task, description=self.mapping, note="", total=total)
        self.bar.update(
            self.task, completed=done, note=f"{done / 1e6:.2f} of {total / 1e6:.2f} Mpx"
        )

    def _line_of_step(self, progress: Progress[Any]) -> None:
        done = (progress.epoch - 1) * progress.steps + progress.step
        total = progress.epochs * progress.steps
        words = f"epoch {progress.epoch} of {progress.epochs}, loss {progress.metrics.loss:.4f}"
        folds, of = self.fold
        if of:  # one of the trainings by which the map is judged
            self._line("judge", round(folds + done / total, 3), of, words)
        else:
            self._line("train", done, total, words)

    def _line(self, stage: str, done: float, total: int, words: str = "") -> None:
        """A line of JSON, if asked for: of a stage's beginning and end, and now and then."""
        now = time.monotonic()
        if not self.lines or (stage == self.stage and done < total and now - self.told < OFTEN):
            return
        self.stage, self.told = stage, now
        about = {"stage": stage, "done": done, "total": total} | ({"words": words} if words else {})
        sys.stderr.write(json.dumps(about) + "\n")
        sys.stderr.flush()

    def _show(self, message: str) -> None:
        self._tell(message)
        if not self.quiet:
            self.bar.start()

    def _tell(self, message: str) -> None:
        if message and not self.quiet:
            self.console.print(message, soft_wrap=True)

    def _interrupt(self, _: int, __: FrameType | None) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True
        self.console.print("stopping after this step; Ctrl-C again to give up at once")

    def _release(self) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)
            self.previous = None
