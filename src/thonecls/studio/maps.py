"""Maps that the page shows: their tiles, from a model on the fly or from a training's folder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio.enums import Resampling
from rasterio.windows import Window

from thonecls.errors import ConfigError
from thonecls.io.raster import open_gdal
from thonecls.scene import NO_DATA, FloatArray, Scene
from thonecls.studio.view import TILE, Cache, SceneView

ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.int64]

LEVELS = 200  # steps of probability in a tile
STAYS = 60.0  # seconds that tiles of a map can be asked for after its successor came
STEPS = (np.arange(LEVELS + 1) / LEVELS).astype(np.float32)


def encode(probability: FloatArray) -> ByteArray:
    """Probabilities as octets: octet > k where the probability is above k / 200, 255 on nodata.

    >>> encode(np.array([0, 0.3, 0.3001, 1, np.nan], np.float32)).tolist()
    [0, 60, 61, 200, 255]
    """
    octets = np.searchsorted(STEPS, np.nan_to_num(probability), side="left")
    return np.where(np.isnan(probability), NO_DATA, np.minimum(octets, LEVELS)).astype(np.uint8)


def snap(cut: float) -> float:
    """The cut in steps of a tile's octets."""
    if not 0 <= cut <= 1:
        raise ConfigError(f"'cut' must be from 0 to 1. Got {cut!r} instead")
    return round(cut * LEVELS) / LEVELS


@dataclass(frozen=True)
class MapFacts:
    """What is known of a map; revision: of the labels it learnt from; cut: the one in use."""

    id: str
    kind: Literal["quick", "similar", "run"]
    name: str
    method: str
    revision: int
    cut: float
    own_cut: float
    seconds: float
    verdict: dict[str, str] | None = None


@dataclass(frozen=True, eq=False)
class Spread:
    """Octets of a sample of the scene, and of labels by models that have not seen them.

    caution: why the labels' recall is not that of the class, where it is not.
    """

    scene: ByteArray
    labels: ByteArray | None
    reason: str
    caution: str | None = None


class Shown(Protocol):
    """A map whose tiles can be asked for."""

    facts: MapFacts
    spread: Spread

    def tile(self, view: SceneView, z: int, x: int, y: int) -> ByteArray:
        """The octets of a tile, as far as it lies in the scene."""


@dataclass(eq=False)
class LiveMap:
    """A map of single spectra: a tile is scored when somebody looks at it."""

    facts: MapFacts
    spread: Spread
    score: Callable[[Scene], FloatArray]

    def tile(self, view: SceneView, z: int, x: int, y: int) -> ByteArray:
        return encode(self.score(view.read_tile(z, x, y)))


class RunMap:
    """The map of a training, from its folder."""

    def __init__(self, facts: MapFacts, spread: Spread, folder: Path) -> None:
        self.facts, self.spread, self.folder = facts, spread, folder
        self._lock = threading.Lock()
        self._array: NDArray[Any] | None = None
        self._dataset: Any = None
        if (folder / "probability.npy").exists():
            self._array = np.load(folder / "probability.npy", mmap_mode="r")
        else:
            path = folder / "probability.tif"
            self._dataset = open_gdal(str(path), path)

    def tile(self, view: SceneView, z: int, x: int, y: int) -> ByteArray:
        rows, columns, factor = view.window(z, x, y)
        if self._array is not None:
            part = self._array[
                rows.start : rows.stop : factor, columns.start : columns.stop : factor
            ]
            return encode(np.asarray(part))
        shape = tuple(-(-(part.stop - part.start) // factor) for part in (rows, columns))
        with self._lock:
            read = self._dataset.read(
                1,
                window=Window.from_slices(rows, columns),
                out_shape=shape,
                resampling=Resampling.nearest,  # of overviews, which are means
            )
        return encode(read)


class Maps:
    """The maps there are, by id, and the tiles of them that were asked for last."""

    def __init__(self, view: SceneView) -> None:
        self.view = view
        self._maps: dict[str, Shown] = {}
        self._gone: dict[str, tuple[float, Shown]] = {}  # still drawn by pages for a while
        self._tiles = Cache()
        self._lock = threading.RLock()

    def put(self, shown: Shown) -> None:
        """Add a map; of those that are no training only the newest of a kind is kept."""
        with self._lock:
            if shown.facts.kind != "run":
                self.drop(shown.facts.kind)
            self._maps[shown.facts.id] = shown

    def drop(self, kind: str) -> bool:
        """Forget the maps of a kind; whether there were any."""
        with self._lock:
            gone = [name for name, shown in self._maps.items() if shown.facts.kind == kind]
            for name in gone:
                self.forget(name)
            return bool(gone)

    def forget(self, name: str) -> None:
        """Show a map no longer; its tiles can be asked for a while."""
        with self._lock:
            now = time.monotonic()
            self._gone = {key: kept for key, kept in self._gone.items() if now - kept[0] < STAYS}
            if (shown := self._maps.pop(name, None)) is not None:
                self._gone[name] = now, shown

    def get(self, name: str) -> Shown | None:
        """A map by its id; one that is gone, for a while."""
        with self._lock:
            if (shown := self._maps.get(name)) is not None:
                return shown
            when, shown = self._gone.get(name, (-STAYS, None))
            return shown if time.monotonic() - when < STAYS else None

    def set_cut(self, name: str, cut: float | None) -> MapFacts | None:
        """Another cut, None for the map's own; None where there is no such map."""
        with self._lock:
            if (shown := self._maps.get(name)) is None:
                return None
            own = shown.facts.own_cut
            shown.facts = replace(shown.facts, cut=own if cut is None else snap(cut))
            return shown.facts

    def facts(self) -> list[MapFacts]:
        with self._lock:
            return [shown.facts for shown in self._maps.values()]

    def newest(self, kind: str) -> Shown | None:
        with self._lock:
            found = [shown for shown in self._maps.values() if shown.facts.kind == kind]
        return found[-1] if found else None

    def shown(self) -> str | None:
        """The map to look at: the newest training, else the quick one."""
        found = self.newest("run") or self.newest("quick")
        return None if found is None else found.facts.id

    def tile(self, name: str, z: int, x: int, y: int) -> bytes | None:
        """A tile's octets, row by row; None where there is no such map."""
        if (shown := self.get(name)) is None:
            return None

        def make() -> bytes:
            whole = np.full((TILE, TILE), NO_DATA, np.uint8)
            part = shown.tile(self.view, z, x, y)
            whole[: part.shape[0], : part.shape[1]] = part
            return whole.tobytes()

        self.view.window(z, x, y)  # an error where it lies outside
        return self._tiles.get((name, z, x, y), make)


def cut_curve(shown: Shown, hectares: float | None, pixels: int) -> dict[str, Any]:
    """What every cut would map, by octet; hectares: of a pixel; pixels: valid ones of the scene."""
    scene = np.bincount(shown.spread.scene, minlength=256)[: LEVELS + 1]
    share = _above(scene)
    labels = shown.spread.labels
    counted = None if labels is None else np.bincount(labels, minlength=256)[: LEVELS + 1]
    return {
        "map": shown.facts.id,
        "cut": shown.facts.cut,
        "own_cut": shown.facts.own_cut,
        "reason": shown.spread.reason,
        "scene": scene.tolist(),
        "labels": None if counted is None else counted.tolist(),
        "share": share.round(6).tolist(),
        "hectares": None if hectares is None else (share * pixels * hectares).round(4).tolist(),
        "recall": None if counted is None else _above(counted).round(4).tolist(),
        "left_out": 0 if counted is None else int(counted.sum()),
        "caution": shown.spread.caution,
        "pixels": pixels,
    }


def _above(counts: IntArray) -> NDArray[np.float64]:
    """The share of what is counted above each octet."""
    return np.asarray(1 - np.cumsum(counts) / max(1, int(counts.sum())))
