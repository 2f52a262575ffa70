"""A GeoPackage of points written by SQLite itself, so that each write is on disk when it returns.

GDAL would rewrite the file, and a spatial index calls functions that plain SQLite does not have.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS
from pyproj.exceptions import CRSError

from thonecls.errors import FileError
from thonecls.io.grid import Grid
from thonecls.studio.refusals import ANOTHER, PROJECT

LAYER = "labels"
PACKAGE, VERSION = 0x47504B47, 10300  # "GPKG", 1.3
CUSTOM = 100_000  # the number of a CRS that has none
POINT = np.dtype(  # of a GeoPackage: its header, then well-known binary
    [
        *(("magic", "S2"), ("flags", "<u2"), ("srs", "<i4"), ("order", "u1"), ("type", "<u4")),
        *(("x", "<f8"), ("y", "<f8")),
    ]
)
TABLES = """
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY,
    organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL,
    definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL,
    identifier TEXT UNIQUE, description TEXT DEFAULT '',
    last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,
    CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL,
    geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL,
    m TINYINT NOT NULL, CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
    CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents (table_name),
    CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE labels (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom POINT,
    present INTEGER, origin TEXT);
"""


def create(database: sqlite3.Connection, grid: Grid) -> None:
    """The tables of a GeoPackage with an empty layer of labels."""
    database.execute(f"PRAGMA application_id = {PACKAGE}")
    database.execute(f"PRAGMA user_version = {VERSION}")
    run_all(database, TABLES)
    number, own = _spatial_reference(grid)
    known = [
        ("Undefined Cartesian SRS", -1, "NONE", -1, "undefined", None),
        ("Undefined geographic SRS", 0, "NONE", 0, "undefined", None),
        ("WGS 84 geodetic", 4326, "EPSG", 4326, CRS.from_epsg(4326).to_wkt("WKT1_GDAL"), None),
    ]
    rows = {row[1]: row for row in ([*known, own] if own else known)}
    database.executemany(
        "INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, ?, ?, ?, ?)", rows.values()
    )
    a, b, c, d, e, f = grid.transform[:6]
    corners = [(x, y) for x in (0, grid.shape[1]) for y in (0, grid.shape[0])]
    xs = [a * x + b * y + c for x, y in corners]
    ys = [d * x + e * y + f for x, y in corners]
    database.execute(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, min_x, min_y, max_x, max_y, "
        "srs_id) VALUES (?, 'features', ?, ?, ?, ?, ?, ?)",
        (LAYER, LAYER, min(xs), min(ys), max(xs), max(ys), number),
    )
    database.execute(
        "INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', 'POINT', ?, 0, 0)", (LAYER, number)
    )


def run_all(database: sqlite3.Connection, statements: str) -> None:
    """Run statements within the transaction that is open."""
    # One by one: executescript would end the transaction.
    for statement in statements.split(";"):
        if statement.strip():
            database.execute(statement)


def _spatial_reference(grid: Grid) -> tuple[int, tuple[Any, ...] | None]:
    """The number of the scene's CRS in a GeoPackage, -1 for none, and what is told of it."""
    if grid.crs is None:
        return -1, None
    crs = CRS.from_wkt(grid.crs)
    authority, code = crs.to_authority() or ("NONE", str(CUSTOM))
    if not code.isdecimal():
        authority, code = "NONE", str(CUSTOM)
    text = grid.crs
    with suppress(CRSError):  # not every CRS can be told in the older form
        text = crs.to_wkt("WKT1_GDAL")
    return int(code), (crs.name, int(code), authority, int(code), text, None)


def insert(
    database: sqlite3.Connection,
    grid: Grid,
    pixels: NDArray[np.int64],
    columns: Iterable[tuple[int | None, str]],
) -> None:
    """Put pixels, by flat index, into the layer, in place of what it holds of them.

    columns: `present` and `origin` of each.
    """
    number, _ = _spatial_reference(grid)
    rows, across = np.divmod(pixels, grid.shape[1])
    a, b, c, d, e, f = grid.transform[:6]
    x, y = across + 0.5, rows + 0.5
    points = np.zeros(len(pixels), POINT)
    points["magic"], points["flags"], points["srs"] = b"GP", 0x0100, number  # version 0, flags 1
    points["order"], points["type"] = 1, 1  # little endian, a point
    points["x"], points["y"] = a * x + b * y + c, d * x + e * y + f
    database.executemany(
        "INSERT OR REPLACE INTO labels (fid, geom, present, origin) VALUES (?, ?, ?, ?)",
        (
            (pixel + 1, point.tobytes(), *column)
            for pixel, point, column in zip(pixels.tolist(), points, columns, strict=True)
        ),
    )


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """What SQLite refuses, as an error that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise FileError(
            f"cannot use {path} ({error}): see whether the disk is full or another program holds "
            f"the file, or {ANOTHER}",
            options=PROJECT,
        ) from error
