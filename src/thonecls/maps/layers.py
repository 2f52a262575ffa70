"""Map, probability and further layers from windows in any order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.io.grid import Grid
from thonecls.maps.cogs import Cog, tag_texts, write_cogs
from thonecls.maps.partial import Unfinished, WindowWriter
from thonecls.maps.styles import write_categories, write_layer_qml, write_qml
from thonecls.report.plots import CLASS, NODATA, QUIET
from thonecls.scene import NO_DATA, FloatArray

PROBABILITY, MAP = "probability.tif", "map.tif"
PERCENT = 0.01  # declared as GDAL scale, so that QGIS shows 0..1, and others a percentage


class MapWriter(WindowWriter):
    """Takes windows of probability in any order; leaves whole maps in `folder`, or nothing.

    probability.tif: percents as uint8 with the scale 0.01, or float32 with `floats`; rounding
    never crosses the threshold, so `probability > threshold` is the map. map.tif: 1 the class,
    0 other. Nodata is 255 (NaN in float32). Both are COGs in the scene's own geometry, with
    `tags` and a QGIS style beside each. The memory does not depend on the size of the scene.

    threshold: may be set until the writer is left. resume: keep what was written when an error
    ends the work, and go on from what an earlier writer left; `done` tells which windows can be
    skipped. One of another grid, other tags or another origin is refused. origin: what tells these
    windows from others, by name, besides what the files are to say (the tags).

    >>> with MapWriter(folder, grid, threshold=0.5) as writer:  # doctest: +SKIP
    ...     for window in model.score_windows(source):
    ...         writer.write(*window)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        grid: Grid,
        *,
        threshold: float = 0.5,
        tags: Mapping[str, Any] | None = None,
        floats: bool = False,
        label: str = "class",
        origin: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        self.folder, self.grid, self.threshold = Path(folder), grid, threshold
        self.tags, self.floats, self.label = tag_texts(tags), floats, label
        room = 16 if floats else 9
        super().__init__(
            Unfinished(
                self.folder,
                grid,
                "map",
                origin={**self.tags, **(origin or {})},
                room=room,
                resume=resume,
            )
        )

    def _make(self, folder: Path) -> None:
        """Both rasters and what lies beside them, in a folder of their own."""
        probability = Cog(
            folder / PROBABILITY,
            self._encode,
            f"probability of {self.label}",
            scale=1.0 if self.floats else PERCENT,
            floats=self.floats,
        )
        classes = Cog(
            folder / MAP,
            self._classify,
            f"1 {self.label}, 0 other",
            colours={0: QUIET, 1: CLASS, NO_DATA: NODATA},
        )
        own = tag_texts({"threshold": str(self.threshold), "label": self.label})
        write_cogs([probability, classes], self.grid.on_map, self._work.blocks(), self.tags | own)
        write_qml(probability.path, "probability", label=self.label)
        write_qml(classes.path, "classes", label=self.label)
        write_categories(folder / f"{MAP}.aux.xml", ("other", self.label))

    def _classify(self, values: FloatArray) -> NDArray[Any]:
        return np.where(np.isnan(values), NO_DATA, values > self.threshold).astype(np.uint8)

    def _encode(self, values: FloatArray) -> NDArray[Any]:
        """Whole percents, on the same side of the threshold as the value itself."""
        if self.floats:
            return values
        steps = np.arange(101) * PERCENT
        below = np.searchsorted(steps, self.threshold, side="right") - 1  # last step not over it
        percent = np.rint(np.clip(np.nan_to_num(values), 0, 1) * 100)
        over = values > self.threshold
        percent = np.where(over, np.maximum(percent, below + 1), np.minimum(percent, below))
        return np.where(np.isnan(values), NO_DATA, percent).astype(np.uint8)


ROOM = 7  # bytes a pixel: 4 of the value, the rest for two rasters and overviews


class LayerWriter(WindowWriter):
    """Takes windows of one layer in any order; leaves NAME.tif and NAME.qml, or nothing.

    NAME.tif: a COG in the scene's own geometry, uint8 in steps of `scale`, which it declares, so
    that QGIS shows the values: 0 to 254 steps, beyond them the nearest; nodata is 255. limit: the
    style makes values over it stand out. tags, origin, resume, `done`: as of `MapWriter`, beside
    which any number of layers can be written into the same folder.

    >>> with LayerWriter(folder, grid, "novelty", scale=0.05, limit=1) as writer:  # doctest: +SKIP
    ...     writer.write(rows, columns, novelty.score(cube))
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        grid: Grid,
        name: str,
        *,
        scale: float,
        description: str = "",
        limit: float | None = None,
        tags: Mapping[str, Any] | None = None,
        origin: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        _check_name(name)
        top = scale * (NO_DATA - 1)
        if not (np.isfinite(top) and top > 0):
            raise ConfigError(f"a layer's scale is a number over 0; {name} got {scale:g}")
        if limit is not None and not 0 < limit < top - scale:
            raise ConfigError(
                f"a layer's limit lies within its range, 0 to {top:g}; {name} got {limit:g}: "
                "choose a larger scale"
            )
        self.folder, self.grid, self.name = Path(folder), grid, name
        self.scale, self.limit, self.description = scale, limit, description or name
        self.tags = tag_texts(tags)
        super().__init__(
            Unfinished(
                self.folder,
                grid,
                name,
                origin={**self.tags, **(origin or {})},
                room=ROOM,
                resume=resume,
            )
        )

    def _make(self, folder: Path) -> None:
        path = folder / f"{self.name}.tif"
        cog = Cog(path, self._encode, self.description, scale=self.scale)
        write_cogs([cog], self.grid.on_map, self._work.blocks(), self.tags)
        write_layer_qml(path, scale=self.scale, limit=self.limit, description=self.description)

    def _encode(self, values: FloatArray) -> NDArray[np.uint8]:
        """Whole steps of the scale, nearest to the values."""
        steps = np.clip(np.rint(values.astype(np.float64) / self.scale), 0, NO_DATA - 1)
        return np.where(np.isnan(values), NO_DATA, steps).astype(np.uint8)


def _check_name(name: str) -> None:
    """A layer needs a plain name of its own: of its files, and of what is kept meanwhile."""
    taken = [Path(raster).stem for raster in (PROBABILITY, MAP)]
    if not name.isidentifier() or name.lower() in taken:
        raise ConfigError(
            f"a layer's name is a word of letters, digits and _, but not {' or '.join(taken)}; "
            f"got {name!r}"
        )
