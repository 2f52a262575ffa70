"""Trainings: asked for or by themselves, each on the labels as they were when it began."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from thonecls.errors import ConfigError, ThoneclsError
from thonecls.method.config import PRESETS, preset_for
from thonecls.methods import METHODS
from thonecls.studio.jobs import Job, map_of
from thonecls.studio.labels import answers_among, kinds_of, write_copy
from thonecls.studio.refusals import ConflictError

if TYPE_CHECKING:
    from thonecls.studio.session import Studio

METHODS_OFFERED = (
    "density-ratio",
    "t-honecls",
    *("matched-filter", "biased-svm", "sam", "ace", "cem"),
)
REST = 4.0  # seconds without a stroke before a training begins by itself
FEWEST = 10  # positive pixels that it takes


def check_method(method: str) -> None:
    """Refuse a method that the studio does not offer."""
    if method not in METHODS_OFFERED:
        raise ConfigError(
            f"'method' must be one of {', '.join(METHODS_OFFERED)}. Got {method!r} instead"
        )


class Training:
    """Begins trainings, and shows what they made."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self._starting = threading.Lock()  # one at a time

    def begin(
        self,
        method: str | None = None,
        preset: Literal["fast", "collage", "paper"] | None = None,
        coverage: Literal["all", "part", "patch"] | None = None,
    ) -> Job:
        """Begin a training on the labels as they are now, in a process of its own.

        Where the very same is under way, as it may have begun by itself meanwhile, that one.
        """
        method = method or self.studio.project.settings.method
        check_method(method)
        if preset is not None and not METHODS[method].learning.presets:
            raise ConfigError(f"{method} has no presets: leave the preset out")
        if coverage is not None and not METHODS[method].coverage:
            raise ConfigError(f"{method} has no use for a coverage: leave it out")
        with self._starting:
            asked: dict[str, Any] = {"method": method, "preset": preset, "coverage": coverage}
            asked["revision"] = self.studio.labels.revision
            if (job := self.studio.running("a training", "train", asked)) is not None:
                return job
            return self._begin(method, preset, coverage)

    def _begin(self, method: str, preset: str | None, coverage: str | None) -> Job:
        studio = self.studio
        revision = studio.labels.revision
        pixels, states = studio.labels.all()
        of_class = kinds_of(states) == "positive"
        if not of_class.any():
            raise ConflictError("no pixel is labelled as the class: label some first")
        if not self._takes_negatives(method, preset):
            pixels, states, of_class = pixels[of_class], states[of_class], of_class[of_class]
        answers = answers_among(states)
        if method != "density-ratio" or not of_class[~answers].any():
            answers[:] = (
                False  # to others they are labels like any; and labels must hold a positive
            )
        folder = studio.jobs.next_folder("train")
        write_copy(folder / "labels.gpkg", studio.grid, pixels[~answers], states[~answers])
        if answers.any():
            write_copy(folder / "answers.gpkg", studio.grid, pixels[answers], states[answers])
        spec = {
            "kind": "train",
            "method": method,
            "preset": preset,
            "coverage": coverage,
            "revision": revision,
            "label": studio.project.settings.label,
            "scene": str(studio.project.scene.path.resolve()),
            "scene_options": asdict(studio.project.scene_options),
            "labels": str(folder / "labels.gpkg"),
            "answers": str(folder / "answers.gpkg") if answers.any() else None,
            "out": str(folder / "run"),
            "threshold": None,
        }
        return studio.jobs.start(folder, spec)

    def _takes_negatives(self, method: str, preset: str | None) -> bool:
        """Whether a method has a use for places where the class is not."""
        rows, columns = self.studio.project.scene.grid.shape
        config = PRESETS[preset or preset_for(rows * columns)]
        return METHODS[method].takes_negatives(METHODS[method].configure(config))

    def by_itself(self, closing: threading.Event) -> None:
        """Train whenever labels have rested, unless that is not wanted."""
        studio, tried = self.studio, -1
        while not closing.wait(0.5):
            revision = studio.labels.revision
            newest = studio.maps.newest("run")
            if (
                not studio.project.settings.auto
                or METHODS[studio.project.settings.method].learning.pace != "at once"
                or time.monotonic() - studio.changed < REST
                or tried == revision
                or (newest is not None and newest.facts.revision == revision)
                or studio.labels.counts()["positive"] < FEWEST
                or any(studio.jobs.running(kind) for kind in ("train", "export"))
            ):
                continue
            tried = revision
            try:
                self.begin()
            except (ConflictError, ThoneclsError, OSError) as error:
                studio.trouble("a training", error)

    def show(self, job: Job, spec: Mapping[str, Any]) -> None:
        """Show the map of a training that has ended."""
        from thonecls.studio.making import run_map

        studio = self.studio
        try:
            folder = studio.jobs.folder / job.id / "run"
            shown = run_map(
                folder, map_of(job.id), spec["revision"], studio.project.scene.grid.shape
            )
        except Exception as error:  # a file may be spoilt in any way
            studio.trouble("the map of a training", error)
            return
        studio.maps.put(shown)
        if (cut := studio.project.settings.cuts.get(shown.facts.id)) is not None:
            studio.maps.set_cut(shown.facts.id, cut)

    def ended(self) -> None:
        """Forget older trainings, and tell which maps there are now."""
        for name in self.studio.jobs.prune():
            self.studio.maps.forget(map_of(name))
        self.studio.tell_maps()
