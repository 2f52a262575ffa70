"""Points that a person answers: written for QGIS or the field, and read back."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray

from thonecls.errors import FileError, LabelError
from thonecls.files import write_atomically
from thonecls.io.grid import Grid
from thonecls.io.vector.crs import LON_LAT, place
from thonecls.io.vector.layers import DELIMITERS, is_vector, read_layer
from thonecls.splits import scene_of

IntArray = NDArray[np.int64]

PRESENT = "present"  # the column of answers
SCENE = "scene"  # the column that tells a scene of several
YES, NO = {"1", "1.0", "true", "t", "yes", "y"}, {"0", "0.0", "false", "f", "no", "n"}
OPEN = {"", "?", "none", "nan", "null", "<na>", "don't know", "dont know", "unknown"}


class Points(NamedTuple):
    """Points on a scene: pixels (n,), flat indices; present: (n,) 1, 0, or NaN for no answer.

    columns: what else the file tells of each, as text.
    """

    pixels: IntArray
    present: NDArray[np.float64]
    columns: dict[str, list[str]]


def write_points(
    path: Path,
    grid: Grid,
    pixels: IntArray,
    columns: Mapping[str, Sequence[Any]],
    present: NDArray[np.float64] | None = None,
) -> None:
    """The centres of pixels with a column `present`, whole or not at all.

    A GeoPackage in the scene's CRS; of a scene without one a .csv of row,column. present: answers,
    1, 0 or NaN; none unless told. Pixels of a sensor that no map shows are left out.
    """
    numbers = scene_of(pixels, grid.shape, grid.windows) if grid.parts else None
    rows, across = _on_map(grid, pixels) if numbers is None else _on_maps(grid, pixels, numbers)
    shown = np.flatnonzero(rows >= 0)
    rows, across = rows[shown], across[shown]
    answers = np.full(len(shown), np.nan) if present is None else present[shown]
    table = {"id": list(range(1, len(shown) + 1))}
    table |= {name: [values[i] for i in shown.tolist()] for name, values in columns.items()}
    if numbers is not None:
        numbers = numbers[shown]
        table[SCENE] = [grid.parts[number].name for number in numbers]
    if not grid.on_map.georeferenced:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "column", *table, PRESENT])
        told = ["" if np.isnan(answer) else int(answer) for answer in answers]
        writer.writerows(zip(rows.tolist(), across.tolist(), *table.values(), told, strict=True))
        write_atomically(path, text.getvalue().encode())
        return
    if numbers is not None:
        geometry, crs = _centres_of_scenes(grid, numbers, rows, across)
    else:
        geometry, crs = _centres(grid.on_map, rows, across), grid.on_map.crs or ""
    frame = geopandas.GeoDataFrame({**table, PRESENT: answers}, geometry=geometry, crs=crs).astype(
        {PRESENT: "Int32"}
    )
    unfinished = path.with_name(f".{path.stem}.part.gpkg")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        unfinished.unlink(missing_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame.to_file(unfinished, driver="GPKG", layer=path.stem, engine="pyogrio")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _on_map(grid: Grid, pixels: IntArray) -> tuple[IntArray, IntArray]:
    """Rows and columns of a scene's pixels on its map; rows are -1 where it does not show them."""
    places = pixels if grid.lookup is None else grid.lookup.to_map(pixels)
    return np.divmod(places, grid.on_map.shape[1])


def _on_maps(grid: Grid, pixels: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """The same of a mosaic, each on the map of its own scene."""
    rows, columns = np.divmod(pixels, grid.shape[1])
    for number in np.unique(numbers):
        part, own = grid.parts[number], numbers == number
        inside = (rows[own] - part.row) * part.grid.shape[1] + columns[own] - part.column
        rows[own], columns[own] = _on_map(part.grid, inside)
    return rows, columns


def _centres(grid: Grid, rows: IntArray, columns: IntArray) -> NDArray[Any]:
    """The middles of pixels, as points in the grid's CRS."""
    a, b, c, d, e, f = grid.transform[:6]
    x, y = columns + 0.5, rows + 0.5
    return np.asarray(shapely.points(a * x + b * y + c, d * x + e * y + f), dtype=object)


def _centres_of_scenes(
    grid: Grid, numbers: IntArray, rows: IntArray, columns: IntArray
) -> tuple[NDArray[Any], str]:
    """The same in the scenes of a mosaic: in their CRS if they share one, else in degrees."""
    shared = {part.grid.on_map.crs for part in grid.parts}
    crs = shared.pop() if len(shared) == 1 else LON_LAT.to_wkt()
    assert crs is not None
    found = np.empty(len(rows), dtype=object)
    for number in np.unique(numbers):
        own, part = numbers == number, grid.parts[number].grid.on_map
        points = geopandas.GeoSeries(_centres(part, rows[own], columns[own]), crs=part.crs)
        found[own] = np.asarray(points.to_crs(crs).array, dtype=object)
    return found, crs


def points_path(path: Path, grid: Grid) -> Path:
    """The path with the ending that points on this grid are written with."""
    return path.with_suffix(".gpkg" if grid.on_map.georeferenced else ".csv")


def read_points(path: Path, grid: Grid) -> Points:
    """Points with answers, on a scene's grid; those outside of it are an error.

    Of a mosaic, the column `scene` tells in which of its scenes a point lies; without one it is
    the first that holds it.
    """
    columns, at = _read_csv(path, grid) if _lists_pixels(path) else _read_layer(path, grid)
    if PRESENT not in columns:
        raise LabelError(
            f"{path.name} has no column '{PRESENT}': add one, with 1 where the class is and 0 "
            f"where it is not. It has: {', '.join(columns) or 'none'}"
        )
    inside = ((at >= 0) & (at < np.array(grid.shape))).all(axis=1)
    if not inside.all():
        raise LabelError(
            f"{int((~inside).sum())} of the {len(at)} points of {path.name} lie outside the scene: "
            "is it the right scene?"
        )
    present = np.array([_answer(cell, path) for cell in columns.pop(PRESENT)])
    return Points(at[:, 0] * grid.shape[1] + at[:, 1], present, columns)


def _lists_pixels(path: Path) -> bool:
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    return path.suffix.lower() == ".csv" and not is_vector(path)


def _read_csv(path: Path, grid: Grid) -> tuple[dict[str, list[str]], IntArray]:
    try:
        text = path.read_text("utf-8-sig")
        sign = next((sign for sign in DELIMITERS if sign in text.partition("\n")[0]), ",")
        lines = list(csv.DictReader(io.StringIO(text), delimiter=sign))
        names = [name for name in (lines[0] if lines else ()) if name is not None]
        columns = {name: [line[name] or "" for line in lines] for name in names}
        pairs = [[int(line["row"]), int(line["column"])] for line in lines]
        if any(not -(2**62) < number < 2**62 for pair in pairs for number in pair):
            raise ValueError("a number is beyond any scene")
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise LabelError(
            f"{path.name} must have whole numbers in its columns row and column ({error})"
        ) from error
    at = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if not grid.parts:
        return columns, at
    if SCENE not in columns:
        raise LabelError(f"{path.name} must tell the scene of each point, in a column '{SCENE}'")
    return columns, _in_mosaic(grid, {part.name: at for part in grid.parts}, columns[SCENE])


def _in_mosaic(grid: Grid, at: Mapping[str, IntArray], scenes: Sequence[str] | None, /) -> IntArray:
    """Rows and columns in a mosaic of points whose place in each scene is known; else -1."""
    found = np.full((len(next(iter(at.values()))), 2), -1, dtype=np.int64)
    for part in grid.parts:
        inside = ((at[part.name] >= 0) & (at[part.name] < np.array(part.grid.shape))).all(axis=1)
        if scenes is not None:
            inside &= np.array([name == part.name for name in scenes], dtype=bool)
        inside &= (found < 0).all(axis=1)
        found[inside] = at[part.name][inside] + [part.row, part.column]
    return found


def _read_layer(path: Path, grid: Grid) -> tuple[dict[str, list[str]], IntArray]:
    frame = read_layer(path)
    shapes = np.asarray(frame.geometry.array, dtype=object)
    if not (shapely.get_type_id(shapes) == 0).all():
        raise LabelError(f"{path.name} must hold points alone: give the file that was written")
    names = [name for name in frame.columns if name != frame.geometry.name]
    columns = {name: [str(cell) for cell in frame[name]] for name in names}
    if not grid.parts:
        return columns, _pixels(shapes, frame.crs, grid, path)
    at = {part.name: _pixels(shapes, frame.crs, part.grid, path) for part in grid.parts}
    return columns, _in_mosaic(grid, at, columns.get(SCENE))


def _pixels(shapes: NDArray[Any], crs: Any, grid: Grid, path: Path) -> IntArray:
    """Row and column of points, (n, 2)."""
    on_map = grid.on_map
    placed, _ = place(shapes, crs, on_map, path.name)
    found = np.floor(on_map.to_pixels(shapely.get_coordinates(placed)))
    # What PROJ cannot place, or a place beyond all numbers, is outside.
    found = np.where(np.isfinite(found) & (np.abs(found) < 2**62), found, -1)
    at = found.astype(np.int64)[:, ::-1]
    if grid.lookup is None:
        return at
    inside = ((at >= 0) & (at < np.array(on_map.shape))).all(axis=1)
    pixels = np.full(len(at), -1, np.int64)
    pixels[inside] = grid.lookup.table[tuple(at[inside].T)]
    return np.stack(np.divmod(pixels, grid.shape[1]), axis=1)  # -1 for none: outside


def _answer(cell: str, path: Path) -> float:
    text = cell.strip().lower()
    if text in OPEN:
        return float("nan")
    if text in YES or text in NO:
        return float(text in YES)
    raise LabelError(
        f"{path.name} says {cell!r} in its column '{PRESENT}': write 1 where the class is, 0 "
        "where it is not, and nothing where you do not know"
    )
