"""Points from tables of coordinates: CSV files and their kin."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely

from thonecls.errors import FileError, LabelError
from thonecls.io.vector.crs import LON_LAT

TextCells = tuple[int, list[str]]  # the line of a file, and what stands in it

# Columns that hold coordinates, first choice first; True where they are degrees.
COORDINATES = {
    ("lon", "lat"): True,
    ("longitude", "latitude"): True,
    ("decimallongitude", "decimallatitude"): True,  # GBIF
    ("x", "y"): False,
    ("easting", "northing"): False,
}
DELIMITERS = ",;\t"
START = 2**16  # bytes by which a table is known
MOST, MOST_COLUMNS = 2**28, 1000  # bytes and columns of a table
MISSING = {"", "na", "nan", "null"}


def lists_pixels(path: Path) -> bool:
    """Whether a .csv file gives pixels, by row and column."""
    with path.open("rb") as file:  # some of it: a file may be one endless line
        start = file.read(START).decode("utf-8-sig", "replace")
    first = next((line for line in start.splitlines() if line.strip()), "")
    sign = next((sign for sign in DELIMITERS if sign in first), ",")
    # As R and spreadsheets write it, in quotation marks, and with a column of line numbers.
    cells = [cell.strip().strip('"').strip().lower() for cell in first.split(sign)]
    numbers = all(cell.removeprefix("-").isdecimal() for cell in cells)
    named = "row" in cells[:2] and not {"column", "col"}.isdisjoint(cells)
    return numbers or ((named or cells[0] == "row") and _coordinate_columns(cells) is None)


def _coordinate_columns(header: list[str]) -> tuple[int, int, bool] | None:
    """Where x and y stand in a header, and whether they are degrees."""
    names = [name.lower() for name in header]
    for (x, y), degrees in COORDINATES.items():
        if x in names and y in names:
            return names.index(x), names.index(y), degrees
    return None


def read_csv(path: Path) -> geopandas.GeoDataFrame:
    """Points from a table; lines without coordinates become features without geometry."""
    header, rows, decimal_comma = _read_table(path)
    found = _coordinate_columns(header)
    if found is None:
        raise FileError(
            f"{path.name} starts with {', '.join(header) or 'nothing'}: its first line must name "
            "columns lon,lat (degrees), x,y or easting,northing, or row,column for pixels"
        )
    x, y, degrees = found
    data = {name: _typed([cells[i] for _, cells in rows]) for i, name in enumerate(header) if name}
    for i in (x, y):
        data[header[i]] = pd.Series(
            [_number(cells[i], decimal_comma, line, path.name) for line, cells in rows],
            dtype=np.float64,
        )
    points = shapely.points(data[header[x]], data[header[y]])
    points[data[header[x]].isna() | data[header[y]].isna()] = None
    return geopandas.GeoDataFrame(data, geometry=points, crs=LON_LAT if degrees else None)


def _read_table(path: Path) -> tuple[list[str], list[TextCells], bool]:
    """Header, lines with their numbers, and whether a comma may stand for the decimal point."""
    if (size := path.stat().st_size) > MOST:
        raise FileError(
            f"{path.name} has {size:,} bytes, more than any table of labels: keep those of the "
            "scene"
        )
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise FileError(
            f"{path.name} is not UTF-8 (line {line}): save it as UTF-8, in Excel by "
            "'CSV UTF-8', in QGIS by the encoding of the export"
        ) from e
    header: list[str] = []
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
        except csv.Error as e:
            raise FileError(f"{path.name} is no table (line {reader.line_num}: {e})") from e
        names = lines[0][1] if lines else []
        if len(names) > MOST_COLUMNS:
            raise FileError(
                f"{path.name} has {len(names):,} columns, more than {MOST_COLUMNS:,}: export those "
                "of the coordinates and of the class alone"
            )
        header = max(header, names, key=len)
        if _coordinate_columns(names):
            _check_table(names, lines, path.name)
            return names, lines[1:], delimiter != ","
    return header, [], False


def _check_table(header: list[str], lines: list[TextCells], name: str) -> None:
    named = [column.lower() for column in header if column]
    if twice := {column for column, count in Counter(named).items() if count > 1}:
        raise FileError(f"{name} has more than one column {', '.join(sorted(twice))}: rename one")
    for number, cells in lines:
        if len(cells) != len(header):
            raise FileError(
                f"line {number} of {name} has {len(cells)} columns, its first line {len(header)}: "
                "correct it, or export the table again"
            )


def _number(cell: str, decimal_comma: bool, line: int, name: str) -> float:
    """A coordinate; NaN where there is none."""
    if cell.lower() in MISSING:
        return math.nan
    try:
        value = float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise LabelError(
            f"line {line} of {name} has the coordinate {cell!r}: write a decimal number, as 13.05"
        )
    return value


def _typed(cells: list[str]) -> pd.Series:
    """A column of numbers where all its cells are numbers, of text otherwise."""
    column = pd.Series([None if cell.lower() in MISSING else cell for cell in cells], dtype=object)
    try:
        numbers = pd.to_numeric(column)
    except (ValueError, TypeError):
        return column
    return numbers if numbers.dtype in (np.int64, np.float64) else column  # or they overflow
