"""Features of vector files and tables: which layer, which of its features, and what is wrong."""

from __future__ import annotations

import csv
import io
import math
import re
import reprlib
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pyogrio
import shapely

from thonecls.errors import ConfigError, FileError, LabelError
from thonecls.io.drivers import MAGIC, check_vector
from thonecls.io.vector.crs import LON_LAT

# The vector files that are read, by ending; in a .zip, a shapefile.
TEXT_ENDINGS = (".csv", ".tsv")
MOST_WHERE = 10_000  # characters of a filter
ENDINGS = (".gpkg", ".shp", ".zip", ".geojson", ".json", ".kml", ".kmz", ".fgb", *TEXT_ENDINGS)


def is_vector(path: Path) -> bool:
    """Whether a label file is read by `read_layer`, by its ending.

    A .csv that lists pixels as row,column is not: it has no coordinates.

    >>> is_vector(Path("lantana.gpkg")), is_vector(Path("truth.tif"))
    (True, False)
    """
    ending = path.suffix.lower()
    return ending in ENDINGS and not (ending == ".csv" and path.is_file() and lists_pixels(path))


def read_layer(
    path: Path,
    *,
    layer: str | None = None,
    where: str | None = None,
    columns: Sequence[str] | None = None,
) -> geopandas.GeoDataFrame:
    """The features of a vector file, or of a CSV file with coordinates, with their attributes.

    layer: which one, where a file holds several. where: an attribute filter in OGR SQL, such as
    "species = 'Lantana'"; in a GeoPackage in SQLite's, whose = tells upper from lower case.
    columns: the attributes to keep, all unless given. A CSV of x,y has no CRS, one of lon,lat
    has EPSG:4326. What cannot be read, or leaves no feature, is an error.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"{path} has no ending of a vector file: use one of {', '.join(ENDINGS)}")
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    if where is not None:
        _check_where(where)
    if ending in TEXT_ENDINGS:
        if layer is not None:
            raise FileError(
                f"{path.name} is a table without layers: leave out 'layer' {layer}",
                options=("layer",),
            )
        frame = read_csv(path)
        if where is not None and len(frame):
            frame = _filter(frame, where, path.name)
    else:
        source, layer = _choose_layer(path, layer)
        frame = _read_ogr(source, layer, where, path.name)
    if frame.empty:
        raise LabelError(f"{path.name} holds no feature: digitise some, and save the layer")
    return frame if columns is None else _keep(frame, columns, path.name)


def _check_where(where: str) -> None:
    """Refuse what is no single comparison: a filter must not become a second statement."""
    if not where.strip():
        raise ConfigError("where must be a comparison such as species = 'Lantana'. Got nothing")
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", where)
    if len(where) > MOST_WHERE or any(sign in bare for sign in (";", "--", "/*", "\0")):
        raise ConfigError(
            "where must be one comparison such as species = 'Lantana', without ; or comments. Got "
            f"{reprlib.repr(where)} instead"
        )


def columns_of(path: Path, layer: str | None = None) -> dict[str, list[str]]:
    """The attributes of a vector file's layer, by name, as text."""
    frame = read_layer(path, layer=layer)
    names = [name for name in frame.columns if name != frame.geometry.name]
    return {str(name): [str(value) for value in frame[name]] for name in names}


def count_features(path: Path, layer: str | None, where: str) -> int:
    """How many features of a layer a filter picks."""
    try:
        return len(read_layer(path, layer=layer, where=where))
    except LabelError:  # none
        return 0


def _choose_layer(path: Path, layer: str | None) -> tuple[str, str]:
    """What to open and which layer in it: the one that is named, or the only one."""
    layers = _zipped(path) if path.suffix.lower() == ".zip" else _listed(path)
    if layer is None and len(layers) == 1:
        layer = next(iter(layers))
    if layer is None or layer not in layers:
        few = f"has no layer {layer!r} of features" if layer else "holds more than one layer"
        few = few if layers else "holds no layer of features"
        listed = ", ".join(layers) or "none"
        raise FileError(
            f"{path.name} {few}; it has: {listed}. Choose one with 'layer'", options=("layer",)
        )
    return layers[layer], layer


def _listed(path: Path) -> dict[str, str]:
    """The layers of a file that have geometries, but for QGIS's own, each with what to open."""
    if path.suffix.lower() == ".shp":
        with path.open("rb") as file:
            _check_whole(file.read(28), path.stat().st_size, path.name)
    check_vector(path)
    try:
        with _quiet():
            layers = pyogrio.list_layers(path)
    except Exception as e:  # a damaged file can fail anywhere inside GDAL and its binding
        raise _unreadable(path.name, e) from e
    spatial = {name for name, kind in layers if kind is not None} - {"layer_styles"}
    return {name: str(path) for name, _ in layers if name in spatial}


def _zipped(path: Path) -> dict[str, str]:
    """The shapefiles in an archive, in whatever folder of it, each with what to open."""
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                inner = Path(info.filename)
                if inner.suffix.lower() == ".shp" and "__MACOSX" not in inner.parts:
                    with archive.open(info) as file:
                        _check_whole(file.read(28), info.file_size, inner.name)
                    found[inner.stem] = f"/vsizip/{path.absolute().as_posix()}/{info.filename}"
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as e:
        raise _unreadable(path.name, e) from e
    if not found:
        raise FileError(f"{path.name} holds no shapefile: unpack it, and give the file inside")
    return found


def _check_whole(header: bytes, size: int, name: str) -> None:
    """Refuse a cut-off .shp, which GDAL reads as features without geometry."""
    expected = 2 * int.from_bytes(header[24:28], "big")
    if header and not header.startswith(MAGIC[".shp"][0][: len(header)]):
        raise FileError(f"{name} is no shapefile, whatever its ending says: export it again")
    if len(header) < 28 or size < expected:
        raise FileError(f"{name} is cut off, {size} of {expected} bytes: copy it again, whole")


def _read_ogr(
    source: str | io.BytesIO, layer: str | None, where: str | None, name: str
) -> geopandas.GeoDataFrame:
    """A layer's features; an error of the filter shows what could be filtered by."""
    try:
        with _quiet():
            frame = pyogrio.read_dataframe(
                source, layer=layer, where=where, force_2d=True, on_invalid="fix"
            )
    except Exception as e:  # a damaged file can fail anywhere inside GDAL and its binding
        if where is None:
            raise _unreadable(name, e) from e
        held = _held(_read_ogr(source, layer, None, name))
        raise LabelError(
            f"the filter {where!r} does not fit {name} ({e}): write a comparison such as "
            f"species = 'Lantana'. Its columns and some values: {held}"
        ) from e
    if where is not None and frame.empty:
        held = _held(_read_ogr(source, layer, None, name))
        raise LabelError(
            f"no feature of {name} fulfils {where!r}. Its columns and some values: {held}"
        )
    if frame.crs is not None and frame.crs.name.startswith("Undefined"):  # a GeoPackage's "none"
        return frame.set_crs(None, allow_override=True)
    return frame


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning that measures are left out: they are of no use here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Measured")
        yield


def _unreadable(name: str, error: Exception) -> FileError:
    return FileError(
        f"cannot read {name} ({error}): it must be a whole file of the format that its ending says"
    )


def _held(frame: geopandas.GeoDataFrame) -> str:
    """The columns of a layer, each with some of the values that occur."""
    listed = []
    for column in frame.columns.drop(frame.geometry.name):
        # Cut short: a cell may hold a book.
        shown = (
            reprlib.repr(v) if isinstance(v, str) else str(v)[:40] for v in frame[column].dropna()
        )
        values = list(dict.fromkeys(shown))
        if values:  # a column without values, as KML brings many, helps nobody
            listed.append(f"{column} ({', '.join(values[:5] + ['…'] * (len(values) > 5))})")
    return ", ".join(listed[:20]) or "none"


def _keep(
    frame: geopandas.GeoDataFrame, columns: Sequence[str], name: str
) -> geopandas.GeoDataFrame:
    there = list(frame.columns.drop(frame.geometry.name))
    if unknown := [c for c in columns if c not in there]:
        raise FileError(
            f"{name} has no column {', '.join(unknown)}; it has: {', '.join(there) or 'none'}"
        )
    return frame[[*columns, frame.geometry.name]]


def _filter(frame: geopandas.GeoDataFrame, where: str, name: str) -> geopandas.GeoDataFrame:
    """The rows of a table that fulfil a filter, as GDAL judges it: through a file in memory."""
    memory = io.BytesIO()
    stored = frame.set_crs(LON_LAT, allow_override=True)  # a file without CRS brings a warning
    pyogrio.write_dataframe(stored, memory, driver="FlatGeobuf", SPATIAL_INDEX="NO")
    kept = _read_ogr(memory, None, where, name)
    return kept.set_crs(frame.crs, allow_override=True)


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
