"""Questions to the person at the page: places worth a look, points that tell how right it is."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ThoneclsError
from thonecls.files import write_atomically
from thonecls.io.vector import points_path, read_points, write_points
from thonecls.studio.jobs import Job, job_of
from thonecls.studio.laid import to_scene
from thonecls.studio.project import EXPORT, VERIFICATION
from thonecls.studio.refusals import ConflictError, NothingThereError

if TYPE_CHECKING:
    from thonecls.studio.session import Studio

IntArray = NDArray[np.int64]
Answer = Literal["positive", "negative", "unknown"]
PRESENT = {"positive": 1.0, "negative": 0.0}
ABOUT = "about.json"


@dataclass(eq=False)
class Drawn:
    """Random points of an exported map, and what was answered; strata: of each, from 0."""

    folder: Path
    points: Path
    map: str
    cut: float
    made: str  # which export they are of
    pixels: IntArray
    strata: IntArray
    sizes: IntArray  # pixels of every stratum
    answers: dict[int, Answer] = field(default_factory=dict)

    def present(self) -> NDArray[np.float64]:
        """Answers as numbers, NaN where nobody could tell."""
        told = [self.answers.get(i + 1) for i in range(len(self.pixels))]
        return np.array([PRESENT.get(answer or "", np.nan) for answer in told])


class Asking:
    """Suggestions of the newest training, and the verification of the export."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self._suggested: tuple[str, IntArray, list[float]] | None = None
        self._lock = threading.RLock()
        self._wanted: int | None = None  # points to draw when an export has ended
        self._drawn = self._load()

    # Where to look next

    def suggest(self, size: int) -> dict[str, Any]:
        """Places whose answers would teach the newest training most."""
        from thonecls.workflow import suggest_places

        studio = self.studio
        shown = studio.maps.newest("run")
        if shown is None:
            raise ConflictError("nothing is trained yet: train first, then ask for suggestions")
        name = shown.facts.id
        folder = studio.jobs.folder / job_of(name)
        with self._lock:
            number = len(list(folder.glob("suggestions-*"))) + 1
            answered = to_scene(studio.project.scene.grid.lookup, studio.labels.all()[0])
            path = points_path(folder / f"suggestions-{number}", studio.grid)
            suggest_places(folder / "run", path, size=size, seed=number, answered=answered)
            self._take(name, path)
        told = self.suggestions()
        studio.events.send("suggestions", told)
        return told

    def recall(self) -> None:
        """Ask again what an earlier server asked of the newest training."""
        shown = self.studio.maps.newest("run")
        if shown is None:
            return
        folder = self.studio.jobs.folder / job_of(shown.facts.id)
        asked = sorted(folder.glob("suggestions-*"), key=lambda path: path.stat().st_mtime_ns)
        with suppress(ThoneclsError, KeyError, ValueError):
            for path in asked[-1:]:
                self._take(shown.facts.id, path)

    def _take(self, name: str, path: Path) -> None:
        """Places from a file, the likeliest first."""
        found = read_points(path, self.studio.grid)
        likely = [round(float(cell), 3) for cell in found.columns["probability"]]
        order = np.argsort(likely, kind="stable")[::-1]
        self._suggested = name, found.pixels[order], [likely[i] for i in order]

    def suggestions(self) -> dict[str, Any]:
        """The places, with what their pixels are labelled as by now."""
        if self._suggested is None:
            return {"map": None, "points": []}
        name, pixels, probability = self._suggested
        return {
            "map": name,
            "points": [
                {**point, "probability": likely, "answer": self.studio.labels.kind_of(pixel)}
                for point, likely, pixel in zip(
                    self._as_points(pixels), probability, pixels.tolist(), strict=True
                )
            ],
        }

    def _as_points(self, pixels: IntArray) -> list[dict[str, Any]]:
        columns = self.studio.grid.shape[1]
        return [
            {"id": i + 1, "row": pixel // columns, "column": pixel % columns}
            for i, pixel in enumerate(pixels.tolist())
        ]

    # How right it is

    def draw(self, size: int) -> dict[str, Any]:
        """Draw random points of the map; it is exported first where that is not done yet."""
        studio = self.studio
        with self._lock:
            facts = studio.exporting.facts()
            if studio.jobs.running("export") is not None:
                self._wanted = size
            elif facts is None or studio.exporting.is_stale(facts):
                self._wanted = size
                try:
                    studio.exporting.begin()
                except BaseException:
                    self._wanted = None
                    raise
            else:
                self._draw(size)
        return self._tell()

    def after_export(self, job: Job) -> None:
        """Draw the points that waited for an export."""
        with self._lock:
            size, self._wanted = self._wanted, None
            if size is None:
                return
            if job.state == "done":
                try:
                    self._draw(size)
                except (ThoneclsError, ConflictError, OSError) as error:
                    self.studio.events.send("trouble", {"error": str(error)})
        self._tell()

    def answer(self, number: int, answer: Answer) -> dict[str, Any]:
        """Keep an answer; on disk when this returns."""
        with self._lock:
            drawn = self._drawn
            if drawn is None:
                raise ConflictError("no points are drawn: begin a verification first")
            if not 1 <= number <= len(drawn.pixels):
                raise NothingThereError(f"there is no point {number}: ask for the verification")
            drawn.answers[number] = answer
            self._save(drawn)
            write_points(
                drawn.points,
                self.studio.grid,
                drawn.pixels,
                {
                    "stratum": (drawn.strata + 1).tolist(),
                    "pixels": drawn.sizes[drawn.strata].tolist(),
                },
                drawn.present(),
            )
            if len(drawn.answers) == len(drawn.pixels) and np.isfinite(drawn.present()).any():
                threading.Thread(target=self._report, args=(drawn,), daemon=True).start()
        return self._tell()

    def end(self) -> dict[str, Any]:
        """End the verification; its file stays."""
        with self._lock:
            if self._drawn is not None:
                (self._drawn.folder / ABOUT).rename(self._drawn.folder / f"ended-{ABOUT}")
            self._drawn, self._wanted = None, None
        return self._tell()

    def verification(self) -> dict[str, Any]:
        """What a page may know of it: nothing of what the map says."""
        with self._lock:
            drawn = self._drawn
            if self._wanted is not None or drawn is None:
                state = "none" if self._wanted is None else "preparing"
                return {
                    "state": state,
                    "map": None,
                    "cut": None,
                    "points": [],
                    "answered": 0,
                    "stale": False,
                    "result": None,
                }
            facts = self.studio.exporting.facts()
            points = [
                {**point, "answer": drawn.answers.get(point["id"])}
                for point in self._as_points(drawn.pixels)
            ]
            return {
                "state": "asking",
                "map": drawn.map,
                "cut": drawn.cut,
                "points": points,
                "answered": len(drawn.answers),
                "stale": facts is None or facts["made"] != drawn.made,
                "result": self._result(drawn),
            }

    def _tell(self) -> dict[str, Any]:
        told = self.verification()
        self.studio.events.send("verification", told)
        return told

    def _draw(self, size: int) -> None:
        from thonecls.workflow import draw_sample

        studio = self.studio
        export: Path = studio.project.folder / EXPORT
        facts = studio.exporting.facts()
        if facts is None or not (export / "run.json").exists():
            raise ConflictError(
                "a network's map is verified at its own cut only: move the cut back, or train by "
                "the density ratio"
            )
        if self._drawn is not None:
            (self._drawn.folder / ABOUT).rename(self._drawn.folder / f"ended-{ABOUT}")
            self._drawn = None
        root: Path = studio.project.folder / VERIFICATION
        number = 1 + len(list(root.glob("*")))
        folder = root / f"{number:03d}"
        folder.mkdir(parents=True)
        path = points_path(folder / "sample", studio.grid)
        draw_sample(export, path, size=size, seed=number)
        self._drawn = self._read(folder, path, facts, {})
        self._save(self._drawn)

    def _read(
        self, folder: Path, path: Path, facts: dict[str, Any], answers: dict[int, Answer]
    ) -> Drawn:
        from thonecls.trust.verification import STRATA

        found = read_points(path, self.studio.grid)
        strata = np.array([int(float(cell)) - 1 for cell in found.columns["stratum"]], np.int64)
        sizes = np.zeros(len(STRATA), np.int64)
        sizes[strata] = [int(float(cell)) for cell in found.columns["pixels"]]
        map_, cut, made = facts["map"], facts["cut"], facts["made"]
        return Drawn(folder, path, map_, cut, made, found.pixels, strata, sizes, answers)

    def _save(self, drawn: Drawn) -> None:
        facts = {
            "map": drawn.map,
            "cut": drawn.cut,
            "made": drawn.made,
            "points": drawn.points.name,
            "answers": drawn.answers,
        }
        write_atomically(drawn.folder / ABOUT, json.dumps(facts).encode())

    def _load(self) -> Drawn | None:
        """The verification that an earlier server began."""
        root: Path = self.studio.project.folder / VERIFICATION
        for about in sorted(root.glob(f"*/{ABOUT}"), reverse=True):
            try:
                facts = json.loads(about.read_text("utf-8"))
                answers: dict[int, Answer] = {int(k): v for k, v in facts["answers"].items()}
                return self._read(about.parent, about.parent / facts["points"], facts, answers)
            except (OSError, ValueError, KeyError, ThoneclsError):
                continue
        return None

    def _result(self, drawn: Drawn) -> dict[str, Any] | None:
        from thonecls.trust.verification import verify

        present = drawn.present()
        if not np.isfinite(present).any():
            return None
        found = verify(drawn.strata, present, drawn.sizes, rng=np.random.default_rng(0))
        told: dict[str, Any] = {
            name: _interval(getattr(found, name)) for name in ("precision", "recall", "area")
        }
        told |= {"answered": found.answered, "asked": found.asked, "present": found.present}
        hectares = self.studio.hectares_of_pixel
        told["hectares"] = None
        if hectares is not None:
            whole = hectares * int(drawn.sizes.sum())
            told["hectares"] = {
                key: round(told["area"][key] * whole, 2) for key in ("value", "low", "high")
            }
        return told

    def _report(self, drawn: Drawn) -> None:
        """Write what the points tell into the exported report."""
        from thonecls.workflow import write_report

        facts = self.studio.exporting.facts()
        if facts is None or facts["made"] != drawn.made:
            return
        try:
            write_report(self.studio.project.folder / EXPORT, verified=drawn.points)
        except (ThoneclsError, OSError) as error:
            self.studio.events.send("trouble", {"error": str(error)})
        self.studio.events.send("export", self.studio.exporting.state())


def _interval(estimate: Any) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "level": estimate.level,
    }
