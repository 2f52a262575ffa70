"""The map as people take it away: rasters, polygons, labels, report, and the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thonecls.methods import METHODS
from thonecls.studio.job import EXPORTED
from thonecls.studio.jobs import Job, job_of
from thonecls.studio.project import EXPORT
from thonecls.studio.refusals import ConflictError, NothingThereError
from thonecls.workflow.run_folder import BEGUN, CURVES, EVIDENCE

if TYPE_CHECKING:
    from thonecls.studio.session import Studio

FILES = {  # what may be downloaded, in the order of a list
    "map.tif": "the map: 1 the class, 0 other, in the scene's own geometry",
    "probability.tif": "the probability of the class",
    "map.npy": "the map: 1 the class, 0 other, 255 no data",
    "probability.npy": "the probability of the class",
    "polygons.gpkg": "the mapped areas as polygons",
    "report.html": "how far to trust the map",
    "labels.gpkg": "your labels",
    "answers.gpkg": "your answers to suggestions",
    "overview.png": "a picture of the map over the scene",
    "geometry.tif": "which pixel of the sensor each pixel of the map shows",
    "novelty.tif": "above 1: unlike what the model has seen",
    "uncertainty.tif": "how far models differ",
    "novelty.npy": "above 1: unlike what the model has seen",
    "uncertainty.npy": "how far models differ",
    "model.safetensors": "the model, to map other scenes with thonecls map",
    "run.json": "all facts of the training, for programs",
    "map.json": "all facts of the map, for programs",
    "report.json": "the report, for programs",
    "map.qml": "colours of the map for QGIS",
    "probability.qml": "colours of the probability for QGIS",
    "novelty.qml": "colours of the novelty for QGIS",
    "map.tif.aux.xml": "names of the map's classes",
}


class Exporting:
    """The folder `export` of a project."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.folder: Path = studio.project.folder / EXPORT

    def begin(self, name: str | None = None) -> Job:
        """Make the map of a training anew, at its cut, with all that goes with it."""
        studio = self.studio
        newest = studio.maps.newest("run")
        if name is None and newest is None:
            raise ConflictError("nothing is trained yet: train first, then export")
        shown = newest if name is None else studio.find_map(name)
        if shown is None or shown.facts.kind != "run":
            raise ConflictError("only the map of a training can be exported: train first")
        facts = shown.facts
        asked = {"map": facts.id, "cut": facts.cut, "label": studio.project.settings.label}
        if (job := studio.running("an export", "export", asked)) is not None:
            return job
        made = studio.jobs.folder / job_of(facts.id)
        spec = studio.jobs.spec(made.name)
        moved = facts.cut != facts.own_cut
        slow = METHODS[facts.method].learning.pace == "in steps"  # and so is not trained again
        folder = studio.jobs.next_folder("export")
        self._clear()
        for file in ("labels.gpkg", "answers.gpkg"):
            if (made / file).exists():
                shutil.copy2(made / file, self.folder / file)
        answers = self.folder / "answers.gpkg"
        return studio.jobs.start(
            folder,
            {
                **spec,
                "kind": "export",
                **asked,
                "labels": str(self.folder / "labels.gpkg"),
                "answers": str(answers) if answers.exists() else None,
                "out": str(self.folder),
                "threshold": facts.cut if moved else None,
                "run": str(made / "run") if slow else None,
            },
        )

    def ended(self, job: Job) -> None:
        """Hear that an export has ended, well or not."""
        self.studio.events.send("export", self.state())

    def facts(self) -> dict[str, Any] | None:
        """What is known of the export that is there."""
        try:
            found = json.loads((self.folder / EXPORTED).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "map" in found else None

    def state(self) -> dict[str, Any]:
        """What a page shows of it."""
        facts = self.facts()
        if facts is None:
            return {
                "ready": False,
                "map": None,
                "cut": None,
                "stale": False,
                "folder": str(self.folder.resolve()),
                "command": None,
                "files": [],
            }
        files = [
            {"name": name, "bytes": (self.folder / name).stat().st_size, "what": what}
            for name, what in FILES.items()
            if (self.folder / name).is_file()
        ]
        return {
            "ready": True,
            "map": facts["map"],
            "cut": facts["cut"],
            "stale": self.is_stale(facts),
            "folder": str(self.folder.resolve()),
            "command": facts["command"],
            "files": files,
        }

    def is_stale(self, facts: dict[str, Any]) -> bool:
        """Whether the newest training, its cut or the class's name is another by now."""
        newest = self.studio.maps.newest("run")
        if newest is None:
            return False
        now = newest.facts.id, newest.facts.cut, self.studio.project.settings.label
        return now != (facts["map"], facts["cut"], facts["label"])

    def path_of(self, name: str) -> Path:
        """The file of that name, if it is one that may be downloaded."""
        path = self.folder / name
        if name not in FILES or self.facts() is None or not path.is_file():
            raise NothingThereError(f"nothing called {name[:60]!r} is exported: export first")
        return path

    def _clear(self) -> None:
        """Take away the last export, beginning with what says that it is whole."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / EXPORTED).unlink(missing_ok=True)
        for name in (*FILES, BEGUN, EVIDENCE, CURVES):
            (self.folder / name).unlink(missing_ok=True)
        for path in self.folder.glob("*.safetensors"):
            path.unlink()
