"""Further layers beside a map, such as how sure it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.maps.cogs import MISSING, Cog, tag_texts, write_cogs
from thonecls.maps.partial import Unfinished, WindowWriter
from thonecls.maps.styles import write_layer_qml
from thonecls.maps.writer import MAP, PROBABILITY
from thonecls.scene import FloatArray, Grid

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
        top = scale * (MISSING - 1)
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
        write_cogs([cog], self.grid, self._work.blocks(), self.tags)
        write_layer_qml(path, scale=self.scale, limit=self.limit, description=self.description)

    def _encode(self, values: FloatArray) -> NDArray[np.uint8]:
        """Whole steps of the scale, nearest to the values."""
        steps = np.clip(np.rint(values.astype(np.float64) / self.scale), 0, MISSING - 1)
        return np.where(np.isnan(values), MISSING, steps).astype(np.uint8)


def _check_name(name: str) -> None:
    """A layer needs a plain name of its own: of its files, and of what is kept meanwhile."""
    taken = [Path(raster).stem for raster in (PROBABILITY, MAP)]
    if not name.isidentifier() or name.lower() in taken:
        raise ConfigError(
            f"a layer's name is a word of letters, digits and _, but not {' or '.join(taken)}; "
            f"got {name!r}"
        )
