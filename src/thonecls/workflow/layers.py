"""Where the layers of a map go: georeferenced rasters for a raster, arrays for an array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thonecls.files import writing_array
from thonecls.io.inputs import SceneInput, is_raster
from thonecls.maps import LayerWriter, MapWriter
from thonecls.method.model import Scored
from thonecls.scene import NO_DATA
from thonecls.workflow.run_folder import clear_outputs

STRIP = 1024  # rows at a time
SPREAD = {"name": "uncertainty", "scale": 0.002, "description": "standard deviation over seeds"}
NOVELTY = {
    "name": "novelty",
    "scale": 0.05,
    "limit": 1.0,
    "description": "above 1: unlike the training scene",
}


@dataclass(frozen=True)
class Style:
    """How maps are written.

    threshold: probability above which a pixel is mapped; floats: probability as float32, not as
    whole percents; label: what the class is called; tags: facts that go into the files; origin:
    what tells this map from others besides, by name (see `MapWriter`).
    """

    threshold: float = 0.5
    floats: bool = False
    label: str = "class"
    tags: Mapping[str, Any] | None = None
    origin: Mapping[str, Any] | None = None


class Layers(Protocol):
    """Takes windows in any order; the files appear when all have been written."""

    def write(self, part: Scored) -> None: ...
    def done(self, rows: slice, columns: slice) -> bool: ...


@contextmanager
def writing_layers(
    out: Path, scene: SceneInput, style: Style, *, spread: bool, novelty: bool, resume: bool = False
) -> Iterator[Layers]:
    """Probability and map in the folder `out`, and which further layers there are.

    When all are made, and before any is seen, what was made of an older map is taken away. resume:
    what a killed run has written is kept (of rasters), and `done` tells of it.
    """
    with ExitStack() as stack:
        if is_raster(scene):
            yield _open_rasters(stack, out, scene, style, spread, novelty, resume)
        else:
            yield _open_arrays(stack, out, scene, style, spread, novelty)


@dataclass(eq=False)
class _Rasters:
    """COGs, with QGIS styles beside them."""

    map: MapWriter
    spread: LayerWriter | None
    novelty: LayerWriter | None

    def write(self, part: Scored) -> None:
        for writer, values in ((self.spread, part.spread), (self.novelty, part.novelty)):
            if writer is not None and values is not None:
                writer.write(part.rows, part.columns, values)
        self.map.write(part.rows, part.columns, part.probability)

    def done(self, rows: slice, columns: slice) -> bool:
        # Of all: a run that was killed while it gave files their names may have cleared some away.
        return all(writer.done(rows, columns) for writer in self._writers())

    def finish(self) -> None:
        """All layers, before any is seen: they belong together."""
        for writer in self._writers():
            writer.finish()

    def _writers(self) -> list[MapWriter | LayerWriter]:
        found = (self.map, self.spread, self.novelty)
        return [writer for writer in found if writer is not None]


def _open_rasters(
    stack: ExitStack,
    out: Path,
    scene: SceneInput,
    style: Style,
    spread: bool,
    novelty: bool,
    resume: bool,
) -> _Rasters:
    def layer(facts: dict[str, Any]) -> LayerWriter:
        writer = LayerWriter(
            out, scene.grid, **facts, tags=style.tags, origin=style.origin, resume=resume
        )
        return stack.enter_context(writer)

    map_writer = MapWriter(
        out,
        scene.grid,
        threshold=style.threshold,
        tags=style.tags,
        floats=style.floats,
        label=style.label,
        origin=style.origin,
        resume=resume,
    )
    layers = _Rasters(
        stack.enter_context(map_writer),
        layer(SPREAD) if spread else None,
        layer(NOVELTY) if novelty else None,
    )
    _before_leaving(stack, out, layers.finish)
    return layers


def _before_leaving(stack: ExitStack, out: Path, finish: Callable[[], None]) -> None:
    """What is to be done before the files get their names, unless there was an error."""

    def leave(kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            finish()
            clear_outputs(out)

    stack.push(leave)


@dataclass(eq=False)
class _Arrays:
    """.npy files, on disk while they are filled; map.npy: 1 class, 0 other, 255 nodata."""

    threshold: float
    arrays: dict[str, NDArray[Any]]

    def write(self, part: Scored) -> None:
        window = part.rows, part.columns
        layers = {
            "probability": part.probability,
            "uncertainty": part.spread,
            "novelty": part.novelty,
        }
        for name, values in layers.items():
            if name in self.arrays and values is not None:
                self.arrays[name][window] = values

    def done(self, rows: slice, columns: slice) -> bool:
        return False  # arrays are begun anew

    def finish(self) -> None:
        """The map, from the probability as it is now."""
        for start in range(0, len(self.arrays["map"]), STRIP):
            rows = slice(start, start + STRIP)
            part = self.arrays["probability"][rows]
            self.arrays["map"][rows] = np.where(np.isfinite(part), part > self.threshold, NO_DATA)


def _open_arrays(
    stack: ExitStack, out: Path, scene: SceneInput, style: Style, spread: bool, novelty: bool
) -> _Arrays:
    names = ["probability", *["uncertainty"] * spread, *["novelty"] * novelty]
    shape = scene.grid.shape
    arrays = {
        name: stack.enter_context(writing_array(out / f"{name}.npy", np.float32, shape))
        for name in names
    }
    arrays["map"] = stack.enter_context(writing_array(out / "map.npy", np.uint8, shape))
    layers = _Arrays(style.threshold, arrays)
    _before_leaving(stack, out, layers.finish)
    return layers
