"""From what a hand draws to pixels of the scene."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.transform import Affine

from thonecls.errors import LabelError
from thonecls.studio.labels import MOST_STROKE

IntArray = NDArray[np.int64]
FAR = 1e7  # pixels: no scene reaches so far
ROUND = 32  # corners of a quarter of the brush


def listed_pixels(pairs: Sequence[tuple[int, int]], shape: tuple[int, int]) -> IntArray:
    """Flat indices of [row, column] pairs that lie in the scene."""
    at = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    inside = ((at >= 0) & (at < np.array(shape))).all(axis=1)
    return _some(np.unique(at[inside] @ [shape[1], 1]))


def lasso_pixels(polygon: Sequence[tuple[float, float]], shape: tuple[int, int]) -> IntArray:
    """Flat indices of the pixels whose centre a polygon of [x, y] covers."""
    if len(polygon) < 3:
        raise LabelError(f"a lasso has 3 corners or more. Got {len(polygon)}: draw around a place")
    return _some(_covered(shapely.Polygon(_checked(polygon)), shape))


def brush_pixels(
    path: Sequence[tuple[float, float]], radius: float, shape: tuple[int, int]
) -> IntArray:
    """Flat indices of the pixels whose centre is within a radius of a path of [x, y].

    And of those in which its points lie, however thin the brush is.
    """
    points = _checked(path)
    cells = np.floor(points).astype(np.int64)[:, ::-1]
    inside = ((cells >= 0) & (cells < np.array(shape))).all(axis=1)
    found = cells[inside] @ [shape[1], 1]
    if radius > 0:
        line = shapely.LineString(points) if len(points) > 1 else shapely.Point(points[0])
        found = np.union1d(found, _covered(shapely.buffer(line, radius, quad_segs=ROUND), shape))
    return _some(np.unique(found))


def _checked(points: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    found = np.array(points, dtype=np.float64).reshape(-1, 2)
    if not (np.abs(found) < FAR).all():  # NaN is not less either
        raise LabelError(f"points of a stroke are [x, y] in pixels, less than {FAR:g} from 0")
    return found


def _covered(area: shapely.Geometry, shape: tuple[int, int]) -> IntArray:
    """Flat indices of the pixels whose centre an area covers, as GDAL burns polygons."""
    left, top, right, bottom = (float(edge) for edge in area.bounds)
    first = max(0, int(np.floor(top))), max(0, int(np.floor(left)))
    last = min(shape[0], int(np.ceil(bottom))), min(shape[1], int(np.ceil(right)))
    if first[0] >= last[0] or first[1] >= last[1]:
        return np.empty(0, np.int64)
    if area.area > 4 * MOST_STROKE and area.is_valid:
        clipped = shapely.intersection(area, shapely.box(0, 0, shape[1], shape[0]))
        if clipped.area > 2 * MOST_STROKE:  # before a mask of all of it is made
            raise _too_large(int(clipped.area))
    mask = rasterize(
        [area],
        out_shape=(last[0] - first[0], last[1] - first[1]),
        transform=Affine.translation(first[1], first[0]),
        dtype="uint8",
    )
    rows, columns = np.nonzero(mask)
    return np.asarray((rows + first[0]) * shape[1] + columns + first[1], dtype=np.int64)


def _some(pixels: IntArray) -> IntArray:
    """The pixels, unless there are none or too many."""
    if not pixels.size:
        raise LabelError("the stroke meets no pixel of the scene: draw inside of it")
    if pixels.size > MOST_STROKE:
        raise _too_large(pixels.size)
    return pixels


def _too_large(pixels: int) -> LabelError:
    return LabelError(
        f"a stroke labels at most {MOST_STROKE:,} pixels. Got about {pixels:,}: draw smaller ones"
    )
