"""Masks of Sentinel-2 before processing baseline 04.00: polygons in GML, burnt window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.features import rasterize

from thonecls.errors import FileError
from thonecls.io.grid import Grid
from thonecls.io.raster.products.metadata import find_all, read_xml, text_of
from thonecls.scene import BoolArray


@dataclass(frozen=True)
class GmlMask:
    """A band that is 1 inside the polygons of some kinds, on the pixels of a grid.

    The polygons are in the CRS of the tile that they belong to.
    """

    path: Path
    grid: Grid
    kinds: tuple[str, ...]

    def open(self) -> Any:
        return read_polygons(self.path, self.kinds)

    def read(
        self, polygons: Any, numbers: Sequence[int], rows: slice, columns: slice, step: int
    ) -> tuple[NDArray[Any], BoolArray | None]:
        shape = tuple(len(range(part.start, part.stop, step)) for part in (rows, columns))
        # Every step-th pixel is looked at in its own middle, not in that of several.
        shift = (1 - step) / 2
        place = Affine(*self.grid.transform[:6]) @ Affine.translation(columns.start, rows.start)
        place = place @ Affine.translation(shift, shift) @ Affine.scale(step)
        band = np.zeros(shape, np.uint8)
        if polygons:
            band = rasterize(polygons, shape, transform=place, default_value=1, dtype="uint8")
        return np.stack([band] * len(numbers)), None


def read_polygons(path: Path, kinds: Sequence[str]) -> list[shapely.Polygon]:
    """The polygons of a mask whose type is one of some kinds, such as OPAQUE."""
    try:
        return [
            _polygon(element)
            for feature in find_all(read_xml(path), "MaskFeature")
            if text_of(feature, "maskType") in kinds
            for element in find_all(feature, "Polygon")
        ]
    except (ValueError, StopIteration, shapely.errors.ShapelyError) as error:
        raise FileError(
            f"cannot read {path} ({error}): get it again, or move it elsewhere"
        ) from error


def _polygon(element: ElementTree.Element) -> shapely.Polygon:
    """A polygon with its holes; coordinates may have heights, which are left out."""
    outer = _ring(next(find_all(element, "exterior")))
    return shapely.Polygon(outer, [_ring(inner) for inner in find_all(element, "interior")])


def _ring(element: ElementTree.Element) -> NDArray[np.float64]:
    listed = next(find_all(element, "posList"))
    size = int(listed.get("srsDimension", 2))
    return np.array((listed.text or "").split(), dtype=np.float64).reshape(-1, size)[:, :2]
