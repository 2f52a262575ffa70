"""Probability and map from windows in any order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.maps.cogs import MISSING, Cog, tag_texts, write_cogs
from thonecls.maps.partial import Unfinished, WindowWriter
from thonecls.maps.styles import write_categories, write_qml
from thonecls.report.plots import CLASS, NODATA, QUIET
from thonecls.scene import FloatArray, Grid

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
            colours={0: QUIET, 1: CLASS, MISSING: NODATA},
        )
        own = tag_texts({"threshold": str(self.threshold), "label": self.label})
        write_cogs([probability, classes], self.grid, self._work.blocks(), self.tags | own)
        write_qml(probability.path, "probability", label=self.label)
        write_qml(classes.path, "classes", label=self.label)
        write_categories(folder / f"{MAP}.aux.xml", ("other", self.label))

    def _classify(self, values: FloatArray) -> NDArray[Any]:
        return np.where(np.isnan(values), MISSING, values > self.threshold).astype(np.uint8)

    def _encode(self, values: FloatArray) -> NDArray[Any]:
        """Whole percents, on the same side of the threshold as the value itself."""
        if self.floats:
            return values
        steps = np.arange(101) * PERCENT
        below = np.searchsorted(steps, self.threshold, side="right") - 1  # last step not over it
        percent = np.rint(np.clip(np.nan_to_num(values), 0, 1) * 100)
        over = values > self.threshold
        percent = np.where(over, np.maximum(percent, below + 1), np.minimum(percent, below))
        return np.where(np.isnan(values), MISSING, percent).astype(np.uint8)
