"""A STAC Item beside a map: where it lies, when its scene was taken, which files belong to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from thonecls.errors import FileError, SceneError
from thonecls.io.grid import Grid
from thonecls.io.raster import open_gdal

STAC_VERSION = "1.1.0"
PROJECTION = "https://stac-extensions.github.io/projection/v2.0.0/schema.json"
COG = "image/tiff; application=geotiff; profile=cloud-optimized"
EDGE = 16  # points along each side of a footprint: a straight edge is curved in degrees
ASSETS: dict[str, tuple[str, str, str]] = {  # by file: media type, role, title
    "map.tif": (COG, "data", "1 the class, 0 other, 255 nodata"),
    "probability.tif": (COG, "data", "Probability of the class"),
    "uncertainty.tif": (COG, "metadata", "Standard deviation over seeds"),
    "novelty.tif": (COG, "metadata", "Above 1: unlike the training scene"),
    "polygons.gpkg": ("application/geopackage+sqlite3", "data", "Patches of the class"),
    "overview.png": ("image/png", "overview", "The map over its scene"),
}
TIMES = ("TIFFTAG_DATETIME", "acquisition_time", "ACQUISITION_TIME", "ACQUISITION_DATE")


def describe_item(
    folder: Path, grid: Grid, *, name: str, title: str, properties: Mapping[str, Any], scene: Path
) -> dict[str, Any]:
    """The Item of the map in a folder, as JSON has it.

    name: its id; properties: facts of ours, which get the prefix thonecls; scene: the file that was
    mapped, which may tell when it was taken. If it does not, the time of the map stands for it.
    """
    geometry = _footprint(grid)
    now, taken = datetime.now(UTC), acquisition_time(scene)
    crs = CRS.from_wkt(grid.crs or "")
    code = crs.to_authority()
    place: dict[str, Any] = {"proj:code": ":".join(code) if code else None}
    if not code:
        place["proj:wkt2"] = crs.to_wkt()
    files = {file: facts for file, facts in ASSETS.items() if (folder / file).exists()}
    return {
        "type": "Feature",
        "stac_version": STAC_VERSION,
        "stac_extensions": [PROJECTION],
        "id": name,
        "geometry": shapely.geometry.mapping(geometry),
        "bbox": _bounds(geometry),
        "properties": {
            "title": title,
            "datetime": _stamp(taken or now),
            "created": _stamp(now),
            **place,
            "proj:shape": list(grid.shape),
            "proj:transform": list(grid.transform[:6]),
            "thonecls:datetime_of": "scene" if taken else "map",
            **{f"thonecls:{key}": value for key, value in properties.items()},
        },
        "links": [],
        "assets": {
            Path(file).stem: {"href": f"./{file}", "type": kind, "roles": [role], "title": words}
            for file, (kind, role, words) in files.items()
        },
    }


def acquisition_time(path: Path) -> datetime | None:
    """When a scene was taken, in UTC, if its file tells it."""
    try:
        with open_gdal(str(path), path) as raster:
            tags = {**raster.tags(ns="ENVI"), **raster.tags()}
    except (FileError, SceneError):
        return None
    for name in TIMES:
        # 2024:05:01 10:20:30 in TIFF, 2024-05-01T10:20:30Z in ENVI
        digits = re.match(
            r"(\d{4})[-:](\d\d)[-:](\d\d)(?:[T ](\d\d):(\d\d):(\d\d))?", tags.get(name, "")
        )
        if digits:
            try:
                year, month, day, hour, minute, second = (int(p or 0) for p in digits.groups())
                return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            except ValueError:  # as 0000:00:00 in some files
                continue
    return None


def _stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _footprint(grid: Grid) -> shapely.Polygon | shapely.MultiPolygon:
    """The outline of a scene in longitude and latitude, in two parts across the 180th meridian."""
    rows, columns = grid.shape
    longest = max(grid.footprint.length / (4 * EDGE), 1e-12)
    outline = shapely.segmentize(grid.footprint, longest)
    try:
        change = Transformer.from_crs(CRS.from_wkt(grid.crs or ""), "EPSG:4326", always_xy=True)
        degrees = shapely.transform(outline, change.transform, interleaved=False)
    except ProjError as error:
        raise SceneError(f"the scene's CRS does not lead to degrees ({error})") from error
    points = shapely.get_coordinates(degrees)
    if not np.isfinite(points).all():
        raise SceneError(f"the outline of {rows} × {columns} pixels has no place in degrees")
    if np.ptp(points[:, 0]) <= 180:
        return shapely.geometry.polygon.orient(degrees)
    eastern = shapely.transform(degrees, _eastwards)
    west = shapely.intersection(eastern, shapely.box(0, -90, 180, 90))
    east = shapely.intersection(eastern, shapely.box(180, -90, 360, 90))
    back = shapely.transform(east, lambda xy: xy - np.array([360, 0]))
    return shapely.MultiPolygon([shapely.geometry.polygon.orient(part) for part in (west, back)])


def _eastwards(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Longitudes from 0 to 360."""
    return np.column_stack([xy[:, 0] % 360, xy[:, 1]])


def _bounds(geometry: shapely.Polygon | shapely.MultiPolygon) -> list[float]:
    """West, south, east, north; west is greater than east across the 180th meridian."""
    parts = shapely.get_parts(geometry)
    _, low, _, high = shapely.total_bounds(parts)
    return [float(parts[0].bounds[0]), float(low), float(parts[-1].bounds[2]), float(high)]
