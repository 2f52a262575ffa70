"""What the server does for all pages at once: labels, maps, trainings, and who is told of them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS

from thonecls.errors import ThoneclsError
from thonecls.io.grid import crs_name
from thonecls.methods import METHODS
from thonecls.scene import FloatArray
from thonecls.studio import asking, exporting, training
from thonecls.studio.events import Events
from thonecls.studio.jobs import Job, Jobs
from thonecls.studio.labels import MOST_STROKE, Change, Kind, Labels, Origin
from thonecls.studio.laid import whole_pixels
from thonecls.studio.maps import Maps, Shown, cut_curve, snap
from thonecls.studio.pictures import Pictures
from thonecls.studio.project import CACHE, JOBS, Project
from thonecls.studio.refusals import ConflictError, NothingThereError
from thonecls.studio.view import SceneView
from thonecls.version import __version__

IntArray = NDArray[np.int64]

REST = 0.15  # seconds after a stroke before a quick map is made
MANY_CHANGES = 5000  # pixels: more are not sent with an event
MOST_SPECTRA = 20_000  # of labels that are kept in memory
PERCENTILES = (5, 25, 50, 75, 95)


class Studio:
    """A project, open in any number of pages."""

    def __init__(self, project: Project) -> None:
        self.project, self.server = project, secrets.token_hex(8)
        self.grid = project.scene.grid.on_map
        self.view = SceneView(project.scene, project.scene_options, project.folder / CACHE)
        self.pictures = Pictures(self.view, project.settings.rgb)
        self.labels = Labels(project.labels, self.grid)
        self.events = Events()
        self.maps = Maps(self.view)
        self.jobs = Jobs(project.folder / JOBS, self._on_job, self._on_done)
        self.asking = asking.Asking(self)
        self.exporting = exporting.Exporting(self)
        self.training = training.Training(self)
        self._spectra: dict[int, FloatArray] = {}  # of labelled pixels, in every band
        self._spectra_lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self.changed = time.monotonic()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Save the project, take up what an earlier server left, and start to work."""
        self.project.save()
        if self.project.imported is not None and self.labels.revision == 0:
            for kind, pixels in zip(("positive", "negative"), self.project.imported, strict=True):
                for start in range(0, pixels.size, MOST_STROKE):
                    some = pixels[start : start + MOST_STROKE]
                    self.labels.apply(_kind(kind), some, f"labels from a file, {len(some):,}")
        for job, spec in self.jobs.take_up():
            if job.kind == "train" and job.state == "done":
                self.training.show(job, spec)
        self.asking.recall()
        for work in (self._make_maps, self._make_overview, self._train):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()
        self._wake.set()

    def close(self) -> None:
        """End what runs, and leave whole files behind."""
        self._closing.set()
        self._wake.set()
        self.events.close()
        self.jobs.close()
        for thread in self._threads:
            thread.join(10)
        self.labels.close()

    # Labels

    def stroke(
        self, kind: Kind, pixels: IntArray, words: str, origin: Origin, by: str | None
    ) -> dict[str, Any]:
        """Label pixels; on disk when this returns."""
        whole = whole_pixels(self.project.scene.grid.lookup, pixels)
        change = self.labels.apply(kind, whole, words, origin)
        return self._tell_labels(change, by)

    def step_back(self, by: str | None) -> dict[str, Any]:
        """Undo the last operation."""
        return self._tell_labels(self.labels.undo(), by, "there is nothing to undo")

    def step_forth(self, by: str | None) -> dict[str, Any]:
        """Do again what was undone."""
        return self._tell_labels(self.labels.redo(), by, "there is nothing to do again")

    def _tell_labels(
        self, change: Change | None, by: str | None, otherwise: str = ""
    ) -> dict[str, Any]:
        if change is None:
            raise ConflictError(otherwise)
        told = {**self.labels_state(), "changed": len(change.pixels), "changes": change.by_kind()}
        told["revision"] = change.revision
        if change.pixels.size:
            self.changed = time.monotonic()
            few = told["changes"] if change.pixels.size <= MANY_CHANGES else None
            self.events.send("labels", {**told, "changes": few, "by": by})
            self._wake.set()
        return told

    def labels_state(self) -> dict[str, Any]:
        undo, redo = self.labels.words()
        return {
            "revision": self.labels.revision,
            "counts": self.labels.counts(),
            "undo": undo is not None,
            "redo": redo is not None,
            "undo_words": undo,
            "redo_words": redo,
        }

    # Looking

    def spectra_of(self, pixels: IntArray) -> FloatArray:
        """Spectra of labelled pixels in every band, (n, C), NaN where missing; read once each."""
        with self._spectra_lock:
            if len(self._spectra) > MOST_SPECTRA:
                self._spectra.clear()
            new = np.array([p for p in pixels.tolist() if p not in self._spectra], np.int64)
            for pixel, spectrum in zip(new.tolist(), self.view.spectra(new), strict=True):
                self._spectra[pixel] = spectrum
            found = [self._spectra[pixel] for pixel in pixels.tolist()]
        return np.stack(found) if found else np.empty((0, len(self.view.bands)), np.float32)

    def envelope(self) -> dict[str, Any]:
        """Percentiles of the scene's spectra and of the labels', band by band."""
        whole = np.full((len(self.view.background), len(self.view.bands)), np.nan, np.float32)
        whole[:, self.view.used] = self.view.background
        found: dict[str, Any] = {"revision": self.labels.revision, "scene": _envelope(whole)}
        for kind in ("positive", "negative"):
            pixels = _some(self.labels.pixels(kind), 2000)
            found[kind] = _envelope(self.spectra_of(pixels)) if pixels.size else None
        return found

    def similar(self, row: int, column: int, by: str | None = None) -> dict[str, Any]:
        """A map of the pixels whose spectra are like one."""
        from thonecls.studio.making import similar_map

        shown = similar_map(self.view, row, column, self.labels.revision)
        self.maps.put(shown)
        self.tell_maps(by)
        return asdict(shown.facts)

    # Maps

    def tell_maps(self, by: str | None = None) -> None:
        """Tell all pages which maps there are."""
        self.events.send("maps", {**self.maps_state(), "by": by})

    def maps_state(self) -> dict[str, Any]:
        return {"maps": [asdict(facts) for facts in self.maps.facts()], "shown": self.maps.shown()}

    def find_map(self, name: str) -> Shown:
        """A map by its id."""
        if (shown := self.maps.get(name)) is None:
            raise NothingThereError(f"there is no map {name[:60]!r}: ask for the state again")
        return shown

    def cut_curve(self, name: str) -> dict[str, Any]:
        """What each cut of a map would mean."""
        rows, columns = self.grid.shape
        pixels = round(rows * columns * (1 - self.view.nodata_share))
        return cut_curve(self.find_map(name), self.hectares_of_pixel, pixels)

    def set_cut(self, name: str, cut: float | None, by: str | None) -> dict[str, Any]:
        """Move the cut of a map, for all pages and for the export."""
        self.find_map(name)
        facts = self.maps.set_cut(name, cut)
        if facts is None:
            raise NothingThereError(f"there is no map {name[:60]!r}: ask for the state again")
        if facts.kind == "run":
            self.project.set_cut(name, None if cut is None else snap(cut))
        self.tell_maps(by)
        return asdict(facts)

    def _make_maps(self) -> None:
        """Make a quick map whenever labels have changed and rested for a moment."""
        from thonecls.studio import making  # now, so that the first map need not wait for it

        assert making
        made = -1
        while not self._closing.is_set():
            self._wake.wait()
            while (left := REST - (time.monotonic() - self.changed)) > 0:
                self._closing.wait(left)
            self._wake.clear()
            if self._closing.is_set() or made == (revision := self.labels.revision):
                continue
            try:
                self._make_quick(revision)
            except Exception as error:  # a page must hear of whatever happens here
                self.trouble("the quick map", error)
            made = revision

    def _make_quick(self, revision: int) -> None:
        from thonecls.studio.making import quick_map

        pixels = self.labels.pixels("positive")
        if not pixels.size:
            if self.maps.drop("quick"):
                self.tell_maps()
            return
        pixels = _some(pixels, 5000)
        spectra = self.spectra_of(pixels)[:, self.view.used]
        others = self.spectra_of(_some(self.labels.pixels("negative"), 500))[:, self.view.used]
        shown = quick_map(self.view, pixels, spectra, revision, others=others)
        self.maps.put(shown)
        self.tell_maps()

    def _make_overview(self) -> None:
        if self.view.ready:
            return
        watch = threading.Thread(target=self._tell_overview, daemon=True)
        watch.start()
        try:
            self.view.make_overview(self._closing.is_set)
        except Exception as error:
            self.trouble("the overview", error)
        self.events.send("overview", self.overview_state())

    def _tell_overview(self) -> None:
        while not (self.view.ready or self._closing.wait(0.5)):
            self.events.send("overview", self.overview_state())

    def overview_state(self) -> dict[str, Any]:
        return {"ready": self.view.ready, "done": round(self.view.done, 3)}

    def _train(self) -> None:
        self.training.by_itself(self._closing)

    def trouble(self, what: str, error: Exception) -> None:
        """Tell all pages that something in the background failed."""
        words = (
            str(error) if isinstance(error, ThoneclsError) else f"{type(error).__name__}: {error}"
        )
        self.events.send("trouble", {"error": f"{what} could not be made: {words}"})

    # Jobs

    def _on_job(self, job: Job) -> None:
        """Hear of a job's progress, and tell of it."""
        if job.kind == "train" and job.state == "done":
            self.training.ended()
        self.events.send("job", asdict(job))
        if job.kind == "export" and job.state != "running":
            self.exporting.ended(job)
            self.asking.after_export(job)

    def _on_done(self, job: Job) -> None:
        if job.kind == "train":
            self.training.show(job, self.jobs.spec(job.id))

    def running(self, what: str, kind: str, asked: Mapping[str, Any]) -> Job | None:
        """The job that does what is asked, if it is under way; an error where another one is."""
        job = self.jobs.running(kind)
        if job is None:
            return None
        spec = self.jobs.spec(job.id)
        if any(spec.get(name) != value for name, value in asked.items()):
            raise ConflictError(f"{what} is running: wait for its end, or cancel it")
        return job

    # Everything

    @cached_property
    def pixel(self) -> tuple[float, float] | None:
        """Width and height of a pixel in metres, where the CRS tells it."""
        from thonecls.maps.measure import Measure

        return Measure.of_grid(self.grid).pixel(self.grid)

    @property
    def hectares_of_pixel(self) -> float | None:
        return None if self.pixel is None else self.pixel[0] * self.pixel[1] / 1e4

    def state(self) -> dict[str, Any]:
        """All that a page needs to begin."""
        return {
            "version": __version__,
            "project": str(self.project.folder.resolve()),
            "server": self.server,
            "scene": self._scene_state(),
            "overview": self.overview_state(),
            "labels": self.labels_state(),
            "settings": self.settings_state(),
            "methods": [
                {
                    "name": name,
                    "words": METHODS[name].minimises,
                    "network": METHODS[name].learning.pace == "in steps",
                }
                for name in training.METHODS_OFFERED
            ],
            **self.maps_state(),
            "jobs": [asdict(job) for job in self.jobs.shown()],
            "suggestions": self.asking.suggestions(),
            "verification": self.asking.verification(),
            "export": self.exporting.state(),
        }

    def settings_state(self) -> dict[str, Any]:
        settings = self.project.settings
        return {"label": settings.label, "auto": settings.auto, "method": settings.method}

    def change_settings(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Other settings, for all pages."""
        if "method" in changes:
            training.check_method(changes["method"])
        self.project.change(**changes)
        self.events.send("settings", self.settings_state())
        return self.settings_state()

    def _scene_state(self) -> dict[str, Any]:
        grid, scene, view = self.grid, self.project.scene, self.view
        crs = None if grid.crs is None else CRS.from_wkt(grid.crs)
        return {
            "name": scene.path.name,
            "rows": grid.shape[0],
            "columns": grid.shape[1],
            "zooms": view.zooms,
            "crs": None if crs is None else crs_name(crs),
            "crs_name": None if crs is None else crs.name,
            "georeferenced": grid.georeferenced,
            "transform": list(grid.transform[:6]),
            "pixel": self.pixel,
            "hectares_of_pixel": self.hectares_of_pixel,
            "nodata_share": round(view.nodata_share, 4),
            "notes": list(scene.notes),
            "bands": [asdict(band) for band in view.bands],
            "presets": self.pictures.presets,
        }


def _kind(name: str) -> Kind:
    return "positive" if name == "positive" else "negative"


def _some(pixels: IntArray, most: int) -> IntArray:
    """Pixels, or a random part of them where they are more than so many."""
    if pixels.size <= most:
        return pixels
    return np.sort(np.random.default_rng(0).choice(pixels, most, replace=False))


def _envelope(spectra: FloatArray) -> dict[str, Any] | None:
    """Percentiles of spectra (n, C), None for bands without values."""
    if not len(spectra):
        return None
    known = np.isfinite(spectra).any(axis=0)
    found: dict[str, Any] = {"count": len(spectra)}
    lines = np.full((len(PERCENTILES), spectra.shape[1]), np.nan)
    if known.any():
        lines[:, known] = np.nanpercentile(spectra[:, known], PERCENTILES, axis=0)
    for percent, line in zip(PERCENTILES, lines, strict=True):
        found[f"p{percent}"] = [None if np.isnan(v) else float(f"{v:.6g}") for v in line]
    return found
