"""Label files: every format gives the same pixels as GDAL, or a clear error."""

from __future__ import annotations

import json
import sqlite3
import struct
import subprocess
import zipfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyogrio
import pytest
import rasterio
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from rasterio.features import rasterize
from shapely import (
    GeometryCollection,
    LineString,
    MultiLineString,
    MultiPoint,
    MultiPolygon,
    Point,
    Polygon,
)

from commands import program
from thonecls.errors import ConfigError, FileError, LabelError
from thonecls.io.grid import Grid
from thonecls.io.vector import (
    ENDINGS,
    UNKNOWN,
    burn_positives,
    burn_truth,
    is_vector,
    read_label_raster,
    read_layer,
)
from thonecls.scene import BoolArray

UTM = CRS.from_epsg(32633).to_wkt()
ROWS, COLUMNS = 12, 15
GRIDS = {
    "north-up": (30.0, 0.0, 364095.0, 0.0, -30.0, 5809965.0),
    "south-up": (30.0, 0.0, 364095.0, 0.0, 30.0, 5809605.0),
    "rotated": (24.0, 18.0, 364095.0, 18.0, -24.0, 5809965.0),
    "oblong": (2.5, 0.0, 364095.0, 0.0, -0.1, 5809965.0),
}
FORMATS = (".gpkg", ".shp", ".zip", ".geojson", ".json", ".kml", ".kmz", ".fgb", ".csv", ".tsv")
LON_LAT_ONLY = (".geojson", ".json", ".kml", ".kmz")


def grid_of(name: str = "north-up", crs: str | None = UTM) -> Grid:
    return Grid((ROWS, COLUMNS), GRIDS[name], crs)


GRID = grid_of()


def at(grid: Grid, column: float, row: float) -> tuple[float, float]:
    a, b, c, d, e, f = grid.transform[:6]
    return a * column + b * row + c, d * column + e * row + f


def in_grid(grid: Grid, shape: shapely.Geometry) -> shapely.Geometry:
    """A shape in columns and rows, in the grid's coordinates."""
    return shapely.transform(shape, lambda xy: np.array([at(grid, *pair) for pair in xy]))


def mask_of(*pixels: tuple[int, int]) -> BoolArray:
    mask = np.zeros((ROWS, COLUMNS), dtype=bool)
    for row, column in pixels:
        mask[row, column] = True
    return mask


def save(
    path: Path, shapes: Sequence[Any], crs: str | None = UTM, layer: str | None = None, **data: Any
) -> Path:
    """A layer in the format of its ending, in longitude and latitude where the format wants it."""
    frame = geopandas.GeoDataFrame(data, geometry=list(shapes), crs=crs)
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        frame.insert(0, "y", frame.geometry.y)
        frame.insert(0, "x", frame.geometry.x)
        frame.drop(columns="geometry").to_csv(
            path, index=False, sep="\t" if ending == ".tsv" else ","
        )
        return path
    if ending in LON_LAT_ONLY:
        frame = frame.to_crs(4326)
    if ending == ".zip":
        folder = path.with_suffix("")
        folder.mkdir()
        save(folder / "labels.shp", shapes, crs, **data)
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"deep/folder/{file.name}")
        return path
    drivers = {".kml": "LIBKML", ".kmz": "LIBKML", ".json": "GeoJSON"}
    if crs is None:
        with pytest.warns(UserWarning, match="crs"):
            pyogrio.write_dataframe(frame, path, driver=drivers.get(ending), layer=layer)
    else:
        pyogrio.write_dataframe(frame, path, driver=drivers.get(ending), layer=layer)
    return path


CORNERS = [(2.5, 3.5), (7.5, 1.5), (2.5, 8.5)]  # column, row
SPECIES = ["Lantana", "oak", "Lantana"]


def save_points(path: Path, **more: Any) -> Path:
    points = [Point(at(GRID, *pair)) for pair in CORNERS]
    return save(path, points, species=SPECIES, number=[1, 2, 3], **more)


# Formats and filters


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_marks_the_same_pixels(tmp_path: Path, ending: str) -> None:
    burnt = burn_positives(save_points(tmp_path / f"labels{ending}"), GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2), (1, 7), (8, 2)))
    assert (burnt.features, burnt.inside, burnt.outside) == (3, 3, 0)
    assert (burnt.missed, burnt.empty, burnt.doubled, burnt.repaired) == (0, 0, 0, 0)


@pytest.mark.parametrize("ending", FORMATS)
def test_where_picks_features_in_every_format(tmp_path: Path, ending: str) -> None:
    path = save_points(tmp_path / f"labels{ending}")
    burnt = burn_positives(path, GRID, where="species = 'Lantana'")
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2), (8, 2)))
    both = "species = 'Lantana' AND CAST(number AS integer) > 1"  # numbers in KML are text
    assert read_layer(path, where=both)["species"].tolist() == ["Lantana"]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("where", ["genus = 'x'", "species ==== 3", "species = "])
def test_a_filter_that_does_not_fit_lists_the_columns(
    tmp_path: Path, ending: str, where: str
) -> None:
    path = save_points(tmp_path / f"labels{ending}")
    with pytest.raises(LabelError, match=r"does not fit labels.*species \((?:'Lantana'|'oak'), '"):
        read_layer(path, where=where)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_filter_that_nothing_fulfils_lists_values(tmp_path: Path, ending: str) -> None:
    path = save_points(tmp_path / f"labels{ending}")
    with pytest.raises(LabelError, match=r"no feature.*fulfils.*species \((?:'Lantana'|'oak'), '"):
        read_layer(path, where="species = 'willow'")


def test_sqlite_takes_an_unknown_quoted_column_for_text_and_we_say_so(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.gpkg")
    with pytest.raises(LabelError, match="no feature"):
        read_layer(path, where="\"genus\" = 'x'")


@pytest.mark.parametrize("ending", [".gpkg", ".csv"])
def test_a_blank_filter_does_not_mean_everything(tmp_path: Path, ending: str) -> None:
    with pytest.raises(ConfigError, match="where must be a comparison"):
        read_layer(save_points(tmp_path / f"labels{ending}"), where=" ")


def test_columns_are_kept_by_name(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.gpkg")
    assert list(read_layer(path).columns) == ["species", "number", "geometry"]
    assert list(read_layer(path, columns=["number"]).columns) == ["number", "geometry"]
    with pytest.raises(FileError, match="no column genus; it has: species, number"):
        read_layer(path, columns=["genus"])


def test_a_layer_is_chosen_by_name_and_never_guessed(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.gpkg", layer="plants")
    styles = pd.DataFrame({"styleQML": ["<qgis/>"]})
    pyogrio.write_dataframe(styles, path, layer="layer_styles", append=True)
    assert len(read_layer(path)) == 3
    other = geopandas.GeoDataFrame(geometry=[Point(at(GRID, 0.5, 0.5))], crs=UTM)
    pyogrio.write_dataframe(other, path, layer="trees", append=True)
    with pytest.raises(FileError, match="more than one layer; it has: plants, trees"):
        read_layer(path)
    assert len(read_layer(path, layer="trees")) == 1
    for layer in ("ferns", "layer_styles"):
        with pytest.raises(FileError, match=f"no layer '{layer}'.*it has: plants, trees"):
            read_layer(path, layer=layer)


def test_shapefiles_in_a_zip_are_layers(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.zip")
    save(tmp_path / "second.shp", [Point(at(GRID, 0.5, 0.5))], number=[1])
    with zipfile.ZipFile(path, "a") as archive:
        for part in tmp_path.glob("second.*"):
            archive.write(part, part.name)
        archive.writestr("__MACOSX/deep/._labels.shp", b"junk")
    with pytest.raises(FileError, match="more than one layer; it has: labels, second"):
        read_layer(path)
    assert len(read_layer(path, layer="second")) == 1
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(FileError, match="holds no shapefile"):
        read_layer(tmp_path / "empty.zip")


# Files that are not as they should be


@pytest.mark.parametrize("ending", FORMATS)
def test_missing_files_say_so(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FileError, match="there is no file"):
        read_layer(tmp_path / f"labels{ending}")


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9])
def test_truncated_files_are_refused(tmp_path: Path, ending: str, share: float) -> None:
    path = save_points(tmp_path / f"labels{ending}")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises((FileError, LabelError), match="labels"):
        read_layer(path)


def test_a_shapefile_cut_off_before_it_was_zipped_is_refused(tmp_path: Path) -> None:
    save_points(tmp_path / "labels.shp")
    with zipfile.ZipFile(tmp_path / "labels.zip", "w") as archive:
        for part in tmp_path.glob("labels.*"):
            if part.suffix != ".zip":
                archive.writestr(
                    part.name, part.read_bytes()[: 150 if part.suffix == ".shp" else None]
                )
    with pytest.raises(FileError, match=r"labels.shp is cut off, 150 of \d+ bytes"):
        read_layer(tmp_path / "labels.zip")


@pytest.mark.parametrize("ending", [e for e in FORMATS if e not in (".csv", ".tsv")])
def test_other_content_than_the_ending_says_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"labels{ending}"
    path.write_bytes(b"This is a letter, not a map. " * 20)
    with pytest.raises(FileError, match="labels"):
        read_layer(path)


def test_an_unknown_ending_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"labels.doc has no ending.*\.gpkg, \.shp"):
        read_layer(tmp_path / "labels.doc")


def test_the_endings_that_are_tested_are_those_that_are_read() -> None:
    assert set(FORMATS) == set(ENDINGS)
    assert all(is_vector(Path(f"Labels{ending.upper()}")) for ending in ENDINGS)
    assert not any(is_vector(Path(f"labels{e}")) for e in (".tif", ".npy", ".mat", ".txt", ""))


@pytest.mark.parametrize(
    ("text", "vector"),
    [
        ("row,column\n3,4\n", False),
        ("3,4\n5,6\n", False),
        ("\ufeffRow,Col\n3,4\n", False),
        ("x,y\n3,4\n", True),
        ("row,column,lon,lat\n3,4,13.1,52.4\n", True),
        ("364095.5,5809965.5\n", True),
        ("", True),
    ],
)
def test_a_csv_of_pixels_is_no_vector_file(tmp_path: Path, text: str, vector: bool) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    assert is_vector(path) is vector


@pytest.mark.parametrize("ending", [e for e in FORMATS if e not in (".kml", ".kmz")])
def test_an_empty_layer_is_refused(tmp_path: Path, ending: str) -> None:
    path = save(tmp_path / f"labels{ending}", [], species=np.array([], dtype=object))
    with pytest.raises(LabelError, match="holds no feature"):
        read_layer(path)
    with pytest.raises(LabelError, match="labels"):
        read_layer(path, where="species = 'oak'")


def test_measured_points_are_read_as_points(tmp_path: Path) -> None:
    x, y = at(GRID, 2.5, 3.5)
    box = struct.pack("<8d", x, y, x, y, 0, 0, 0, 0)
    record = struct.pack(">2i", 1, 14) + struct.pack("<i3d", 21, x, y, 7.0)  # 21: PointM
    for suffix, body in ((".shp", record), (".shx", struct.pack(">2i", 50, 14))):
        size = struct.pack(">7i", 9994, 0, 0, 0, 0, 0, (100 + len(body)) // 2)
        header = size + struct.pack("<2i", 1000, 21) + box
        (tmp_path / f"labels{suffix}").write_bytes(header + body)
    burnt = burn_positives(tmp_path / "labels.shp", GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2)))


# Tables of coordinates


def write_table(path: Path, lines: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(lines.encode(encoding))
    return path


LON, LAT = Transformer.from_crs(UTM, 4326, always_xy=True).transform(*at(GRID, 2.5, 3.5))


@pytest.mark.parametrize(
    "names", ["lon,lat", "Longitude,LATITUDE", "decimalLongitude,decimalLatitude"]
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_degrees_in_a_table_carry_their_crs(tmp_path: Path, names: str, delimiter: str) -> None:
    text = f'\ufeffname,{names}\r\n"Müller, Ökotop",{LON},{LAT}\r\n'
    if delimiter != ",":
        text = text.replace("Müller, ", "Müller ").replace(",", delimiter)
    path = write_table(tmp_path / "labels.csv", text)
    assert read_layer(path).crs == CRS.from_epsg(4326)
    np.testing.assert_array_equal(burn_positives(path, GRID).mask, mask_of((3, 2)))
    assert len(read_layer(path, where="name LIKE 'Müller%Ökotop'")) == 1


@pytest.mark.parametrize("names", ["x,y", "X , Y", "Easting,Northing"])
def test_metres_in_a_table_are_in_the_scenes_crs_or_the_one_given(
    tmp_path: Path, names: str
) -> None:
    x, y = at(GRID, 2.5, 3.5)
    path = write_table(tmp_path / "labels.csv", f"{names}\n{x},{y}\n")
    assert read_layer(path).crs is None
    burnt = burn_positives(path, GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2)))
    assert (
        burnt.crs_note == "the file names no CRS; taken as the scene's, EPSG:32633, which it fits"
    )
    x, y = Transformer.from_crs(UTM, 3857, always_xy=True).transform(x, y)
    write_table(path, f"{names}\n{x},{y}\n")
    np.testing.assert_array_equal(burn_positives(path, GRID, crs="EPSG:3857").mask, burnt.mask)
    with pytest.raises(LabelError, match=r"names no CRS.*say their CRS with 'crs'$"):
        burn_positives(path, GRID)


def test_a_decimal_comma_is_understood_between_semicolons(tmp_path: Path) -> None:
    text = f"lon;lat;cover\n{LON};{LAT};1\n".replace(".", ",")
    burnt = burn_positives(write_table(tmp_path / "labels.csv", text), GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2)))


def test_a_filter_compares_numbers_as_numbers_and_long_ones_as_text(tmp_path: Path) -> None:
    long = "99999999999999999999"
    text = f"x,y,cover,key,note\n1,2,9,{long},\n3,4,10,12,NA\n5,6,,13,dry\n"
    path = write_table(tmp_path / "labels.csv", text)
    assert read_layer(path, where="cover > 9.5")["x"].tolist() == [3.0]
    assert read_layer(path, where="cover IS NULL AND note = 'dry'")["x"].tolist() == [5.0]
    assert read_layer(path, where=f"key = '{long}'")["x"].tolist() == [1.0]


def test_lines_without_coordinates_are_counted(tmp_path: Path) -> None:
    x, y = at(GRID, 2.5, 3.5)
    path = write_table(tmp_path / "labels.csv", f"id,x,y\na,{x},{y}\nb,,\nc,NA,NA\nd,{x},\n\n")
    burnt = burn_positives(path, GRID)
    assert (burnt.features, burnt.inside, burnt.empty) == (4, 1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,height\na,3\n", "starts with name, height: its first line must name"),
        ("", "starts with nothing"),
        ("364095.5,5809965.5\n", "its first line must name"),
        ("x,y\n1,2\n3,north\n", "line 3 of labels.csv has the coordinate 'north'"),
        ("lon,lat\n13°5'E,52°N\n", "line 2 of labels.csv has the coordinate"),
        ("x,y\n1,inf\n", "coordinate 'inf'"),
        ("x,y,name\n1,2,a\n3,4\n", "line 3 of labels.csv has 2 columns, its first line 3"),
        ("x,y\n1,2,3\n", "line 2 of labels.csv has 3 columns"),
        ("x,y,Name,name\n1,2,3,4\n", "more than one column name"),
        ("x,y\n", "holds no feature"),
        ("x,y\n,\n", "none of the 1 features of labels.csv has a geometry"),
    ],
)
def test_tables_that_cannot_be_read_say_where(tmp_path: Path, text: str, message: str) -> None:
    path = write_table(tmp_path / "labels.csv", text)
    with pytest.raises((FileError, LabelError), match=message):
        burn_positives(path, GRID)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_table_that_is_not_utf8_says_what_to_do(tmp_path: Path, encoding: str) -> None:
    path = write_table(tmp_path / "labels.csv", "x,y,name\n1,2,a\n3,4,Öl\n", encoding)
    line = 3 if encoding == "latin-1" else 1
    with pytest.raises(FileError, match=rf"is not UTF-8 \(line {line}\): save it as UTF-8"):
        read_layer(path)


def test_a_table_has_no_layers(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="leave out 'layer' plants"):
        read_layer(write_table(tmp_path / "labels.csv", "x,y\n1,2\n"), layer="plants")


# Pixels, against GDAL


SHAPES: dict[str, shapely.Geometry] = {
    "point": Point(3.2, 4.7),
    "points": MultiPoint([(1.5, 1.5), (13.9, 11.9), (20, 3)]),
    "line": LineString([(-2, 1.3), (6.4, 3.1), (6.4, 10.2), (18, 5.5)]),
    "lines": MultiLineString([[(1, 1), (4.5, 9.5)], [(9.1, 0.3), (9.2, 11.7)]]),
    "polygon": Polygon([(1.2, 1.4), (9.7, 2.3), (6.6, 10.6)]),
    "hole": Polygon(
        [(1.1, 1.1), (13.3, 1.2), (12.7, 10.4), (1.9, 9.8)],
        [[(4.1, 3.6), (8.8, 3.9), (7.3, 7.7)]],
    ),
    "polygons": MultiPolygon(
        [Polygon([(0.2, 0.1), (3.3, 0.4), (2.1, 4.6)]), Polygon([(8.2, 7), (19, 8), (9, 14.5)])]
    ),
    "collection": GeometryCollection(
        [
            Point(0.5, 11.5),
            LineString([(2.3, 2.2), (7.7, 4.4)]),
            GeometryCollection([Polygon([(9, 6), (13, 6.5), (11, 10.5)])]),
        ]
    ),
}


def gdal_mask(shapes: Sequence[Any], grid: Grid, *, all_touched: bool = False) -> BoolArray:
    burnt = rasterize(
        list(shapes),
        out_shape=grid.shape,
        transform=grid.transform,
        all_touched=all_touched,
        dtype="uint8",
    )
    return np.asarray(burnt == 1)


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("all_touched", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, "all"])
def test_shapes_mark_the_pixels_that_gdal_marks(
    tmp_path: Path, name: str, all_touched: bool, shape: str
) -> None:
    grid = grid_of(name)
    chosen = list(SHAPES.values()) if shape == "all" else [SHAPES[shape]]
    shapes = [in_grid(grid, s) for s in chosen]
    path = save(tmp_path / "labels.gpkg", shapes)
    burnt = burn_positives(path, grid, all_touched=all_touched)
    np.testing.assert_array_equal(burnt.mask, gdal_mask(shapes, grid, all_touched=all_touched))
    assert burnt.inside == len(shapes)


@pytest.mark.parametrize("name", ["north-up", "rotated"])
def test_the_gdal_rasterize_program_agrees(tmp_path: Path, name: str) -> None:
    grid = grid_of(name)
    path = save(tmp_path / "labels.gpkg", [in_grid(grid, s) for s in SHAPES.values()])
    out = tmp_path / "burnt.tif"
    write_raster(out, np.zeros(grid.shape, dtype=np.uint8), grid)
    subprocess.run([program("gdal_rasterize"), "-burn", "1", path, out], check=True)
    with rasterio.open(out) as raster:
        np.testing.assert_array_equal(burn_positives(path, grid).mask, raster.read(1) == 1)


def test_many_polygons_equal_one_burn_of_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in GRIDS:
        grid = grid_of(name)
        centres = rng.uniform(-1, 16, size=(40, 2))
        shapes = [in_grid(grid, Point(c).buffer(rng.uniform(0.2, 2))) for c in centres]
        path = save(tmp_path / f"{name}.fgb", shapes)
        burnt = burn_positives(path, grid)
        np.testing.assert_array_equal(burnt.mask, gdal_mask(shapes, grid))
        each = [gdal_mask([s], grid).any() for s in shapes]
        assert burnt.inside == sum(each)
        assert burnt.features == burnt.inside + burnt.outside + burnt.missed


coordinates = st.integers(-40, 140).map(lambda n: n / 8)  # eighths are exact, edges included


@given(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12))
@pytest.mark.parametrize("name", ["north-up", "south-up", "rotated"])
def test_points_mark_the_half_open_cell_that_holds_them(
    tmp_path_factory: pytest.TempPathFactory, name: str, pairs: list[tuple[float, float]]
) -> None:
    grid = grid_of(name)
    cells = [reference_cell(grid, *at(grid, *pair)) for pair in pairs]
    marked = [c for c in cells if 0 <= c[0] < ROWS and 0 <= c[1] < COLUMNS]
    points = [Point(at(grid, *pair)) for pair in pairs]
    path = tmp_path_factory.mktemp("points") / "labels.csv"
    save(path, points)
    if not marked:
        with pytest.raises(LabelError, match=r"none of the|names no CRS"):
            burn_positives(path, grid)
        return
    burnt = burn_positives(path, grid)
    np.testing.assert_array_equal(burnt.mask, mask_of(*marked))
    assert burnt.inside == len(marked)
    assert burnt.outside == len(pairs) - len(marked)
    assert burnt.doubled == len(marked) - len(set(marked))
    if name != "rotated":  # there GDAL's own rounding decides on which side of an edge
        np.testing.assert_array_equal(burnt.mask, gdal_mask(points, grid))


def reference_cell(grid: Grid, x: float, y: float) -> tuple[int, int]:
    """Row and column by exact fractions."""
    a, b, c, d, e, f = map(Fraction, grid.transform[:6])
    right, down = Fraction(x) - c, Fraction(y) - f
    area = a * e - b * d
    return int((a * down - d * right) // area), int((e * right - b * down) // area)


@pytest.mark.parametrize("size", [0.1, 1 / 3, 0.00027777777777778, 0.05])
def test_points_on_edges_are_not_lost_to_rounding(tmp_path: Path, size: float) -> None:
    grid = Grid((ROWS, COLUMNS), (size, 0.0, 13.3, 0.0, -size, 52.9), CRS.from_epsg(4326).to_wkt())
    points = [Point(at(grid, n, n)) for n in range(ROWS)]
    burnt = burn_positives(save(tmp_path / "labels.csv", points, None), grid)
    np.testing.assert_array_equal(burnt.mask, mask_of(*((n, n) for n in range(ROWS))))


# Counts


def test_points_on_one_pixel_are_counted_as_doubled(tmp_path: Path) -> None:
    shapes = [Point(2.1, 3.1), Point(2.9, 3.9), MultiPoint([(5.5, 5.5), (5.6, 5.6)]), Point(0, 0)]
    shapes.append(Polygon([(0, 0), (1, 0), (1, 1), (0, 1)]))
    path = save(tmp_path / "labels.gpkg", [in_grid(GRID, s) for s in shapes])
    burnt = burn_positives(path, GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2), (5, 5), (0, 0)))
    assert burnt.doubled == 3


def test_features_outside_are_counted(tmp_path: Path) -> None:
    shapes = [Point(1, 1), Point(COLUMNS, 1), Point(-1, 1), LineString([(-9, -9), (-2, -2)])]
    path = save(tmp_path / "labels.gpkg", [in_grid(GRID, s) for s in shapes])
    burnt = burn_positives(path, GRID)
    assert (burnt.features, burnt.inside, burnt.outside, burnt.missed) == (4, 1, 3, 0)


def test_missing_geometries_are_counted(tmp_path: Path) -> None:
    shapes = [in_grid(GRID, Point(1, 1)), None, Polygon(), None]
    path = save(tmp_path / "labels.gpkg", shapes)
    burnt = burn_positives(path, GRID)
    assert (burnt.features, burnt.inside, burnt.empty, burnt.outside) == (4, 1, 3, 0)
    path = save(tmp_path / "none.gpkg", [None, None])
    with pytest.raises(LabelError, match=r"none of the 2 features of none.gpkg has a geometry"):
        burn_positives(path, GRID)


def test_geojson_of_null_geometries_is_refused(tmp_path: Path) -> None:
    feature = {"type": "Feature", "properties": {"a": [1, 2]}, "geometry": None}
    path = tmp_path / "labels.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises((FileError, LabelError), match=r"labels\.geojson"):
        burn_positives(path, GRID)


def test_a_self_crossing_polygon_is_mended(tmp_path: Path) -> None:
    bow = Polygon([(1, 1), (9, 9), (9, 1), (1, 9)])
    path = save(tmp_path / "labels.gpkg", [in_grid(GRID, bow), in_grid(GRID, Point(12, 2))])
    burnt = burn_positives(path, GRID)
    assert (burnt.repaired, burnt.inside) == (1, 2)
    halves = [Polygon([(1, 1), (5, 5), (1, 9)]), Polygon([(9, 1), (9, 9), (5, 5)])]
    expected = gdal_mask([in_grid(GRID, half) for half in halves], GRID)
    expected[2, 12] = True
    np.testing.assert_array_equal(burnt.mask, expected)


def test_a_polygon_without_area_is_empty(tmp_path: Path) -> None:
    flat = Polygon([(1, 1), (9, 9), (5, 5)])
    mixed = GeometryCollection([Polygon([(1, 1), (9, 9), (9, 1), (1, 9)]), Point(12.5, 2.5)])
    path = save(tmp_path / "labels.gpkg", [in_grid(GRID, s) for s in (flat, mixed)])
    burnt = burn_positives(path, GRID)
    assert (burnt.empty, burnt.inside, burnt.repaired) == (1, 1, 2)
    assert burnt.mask[2, 12]
    assert burnt.mask[4, 2]


def test_polygons_between_pixel_centres_are_missed_not_forgotten(tmp_path: Path) -> None:
    sliver = Polygon([(3.6, 3.6), (3.9, 3.6), (3.9, 3.9)])
    path = save(tmp_path / "labels.gpkg", [in_grid(GRID, s) for s in (sliver, Point(1, 1))])
    burnt = burn_positives(path, GRID)
    assert (burnt.inside, burnt.missed, burnt.outside) == (1, 1, 0)
    path = save(tmp_path / "alone.gpkg", [in_grid(GRID, sliver)])
    with pytest.raises(LabelError, match=r"cover a pixel's centre.*'all_touched'"):
        burn_positives(path, GRID)
    np.testing.assert_array_equal(
        burn_positives(path, GRID, all_touched=True).mask, mask_of((3, 3))
    )


def test_a_buffer_widens_points_and_narrows_polygons(tmp_path: Path) -> None:
    square = Polygon([(2, 2), (7, 2), (7, 7), (2, 7)])
    path = save(tmp_path / "labels.gpkg", [in_grid(GRID, s) for s in (square, Point(11.5, 5.5))])
    wide = burn_positives(path, GRID, buffer=31.0)
    assert wide.mask[5, 10:13].all()
    assert wide.mask.sum() == 7 * 7 + 5
    narrow = burn_positives(path, GRID, buffer=-30.0)
    assert narrow.mask.sum() == 3 * 3
    assert (narrow.inside, narrow.empty, narrow.outside) == (1, 1, 0)
    with pytest.raises(LabelError, match=r"narrow them by less than 90 \('buffer'\)"):
        burn_positives(path, GRID, buffer=-90.0)
    for buffer in (0.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="buffer must be a distance"):
            burn_positives(path, GRID, buffer=buffer)
    degrees = Grid((9, 9), (0.1, 0, 12.6, 0, -0.1, 52.8), CRS.from_epsg(4326).to_wkt())
    with pytest.raises(ConfigError, match="would be in degrees"):
        burn_positives(path, degrees, buffer=30.0)


# CRS


@pytest.mark.parametrize("epsg", [4326, 3857, 32632, 25833, 3035])
def test_layers_in_another_crs_are_reprojected(tmp_path: Path, epsg: int) -> None:
    points = [
        Point(at(GRID, column + 0.5, row + 0.5)) for row, column in [(0, 0), (11, 14), (5, 3)]
    ]
    moved = geopandas.GeoSeries(points, crs=UTM).to_crs(epsg)
    path = save(tmp_path / "labels.gpkg", moved, CRS.from_epsg(epsg).to_wkt())
    burnt = burn_positives(path, GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((0, 0), (11, 14), (5, 3)))
    assert burnt.crs_note == f"reprojected from EPSG:{epsg} to EPSG:32633"


def test_the_scenes_own_crs_is_known_in_any_spelling(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.gpkg")
    old = CRS.from_epsg(32633).to_wkt("WKT1_GDAL")
    assert burn_positives(path, grid_of(crs=old)).crs_note == "in the scene's CRS, EPSG:32633"
    assert burn_positives(path, GRID).crs_note == "in the scene's CRS, EPSG:32633"


def test_a_layer_without_crs_is_taken_as_longitude_and_latitude_if_that_fits(
    tmp_path: Path,
) -> None:
    path = save(tmp_path / "labels.shp", [Point(LON, LAT)], None, number=[1])
    burnt = burn_positives(path, GRID)
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2)))
    assert burnt.crs_note == "the file names no CRS; taken as longitude and latitude, EPSG:4326"


@pytest.mark.parametrize("number", [-1, 0])
def test_the_undefined_crs_of_a_geopackage_is_none(tmp_path: Path, number: int) -> None:
    path = save_points(tmp_path / "labels.gpkg")
    connection = sqlite3.connect(path)
    for table in ("gpkg_contents", "gpkg_geometry_columns"):
        connection.execute(f"UPDATE {table} SET srs_id = {number}")
    connection.commit()
    connection.close()
    assert read_layer(path).crs is None
    assert "names no CRS; taken as the scene's" in burn_positives(path, GRID).crs_note


@pytest.mark.parametrize("place", [(10.0, 50.0), (700000.0, 1000.0)])
def test_a_layer_without_crs_that_fits_nowhere_is_refused(
    tmp_path: Path, place: tuple[float, float]
) -> None:
    path = save(tmp_path / "labels.shp", [Point(place)], None, number=[1])
    with pytest.raises(
        LabelError,
        match=rf"names no CRS.*x {place[0]:.10g} to .*x 364095 to 364545, y 5809605 to 5809965, "
        r"EPSG:32633.*say their CRS with 'crs'$",
    ):
        burn_positives(path, GRID)


@pytest.mark.parametrize("swapped", [(LAT, LON), at(GRID, 2.5, 3.5)[::-1]])
def test_exchanged_coordinates_are_recognised(tmp_path: Path, swapped: tuple[float, float]) -> None:
    path = save(tmp_path / "labels.shp", [Point(swapped)], None, number=[1])
    with pytest.raises(LabelError, match="With x and y exchanged they lie inside"):
        burn_positives(path, GRID)
    own = UTM if swapped[0] > 360 else CRS.from_epsg(4326).to_wkt()
    path = save(tmp_path / "known.gpkg", [Point(swapped)], own)
    with pytest.raises(LabelError, match=r"none of the 1.*With x and y exchanged they lie inside"):
        burn_positives(path, GRID)


def test_labels_all_outside_are_refused_with_both_extents(tmp_path: Path) -> None:
    path = save(tmp_path / "labels.gpkg", [Point(at(GRID, 100, 0)), Point(at(GRID, 101, 1))])
    with pytest.raises(
        LabelError,
        match="none of the 2 features of labels.gpkg lies inside the scene: they span "
        r"x 367095 to 367125, y 5809935 to 5809965, the scene x 364095 to 364545, .*EPSG:32633",
    ):
        burn_positives(path, GRID)


def test_metres_in_a_geojson_are_recognised(tmp_path: Path) -> None:
    x, y = at(GRID, 2.5, 3.5)
    feature = {"type": "Feature", "properties": {}, "geometry": Point(x, y).__geo_interface__}
    path = tmp_path / "labels.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(LabelError, match="not degrees, as EPSG:4326 has them: say their CRS"):
        burn_positives(path, GRID)
    burnt = burn_positives(path, GRID, crs="EPSG:32633")
    np.testing.assert_array_equal(burnt.mask, mask_of((3, 2)))
    assert burnt.crs_note.startswith(
        "taken as EPSG:32633, as asked, although the file says EPSG:4326"
    )


def test_points_that_cannot_be_projected_lie_outside(tmp_path: Path) -> None:
    path = write_table(tmp_path / "labels.csv", f"lon,lat\n{LON},{LAT}\n13,999\n")
    burnt = burn_positives(path, GRID)
    assert (burnt.inside, burnt.outside, burnt.empty) == (1, 1, 0)


def test_an_unknown_crs_is_refused(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.gpkg")
    with pytest.raises(ConfigError, match=r"such as EPSG:4326. Got 'EPSG:0' instead"):
        burn_positives(path, GRID, crs="EPSG:0")


def test_a_scene_without_crs_takes_no_labels_with_one(tmp_path: Path) -> None:
    path = save_points(tmp_path / "labels.gpkg")
    steps = {"say the scene's CRS": grid_of(crs=None), "georeference": Grid((ROWS, COLUMNS))}
    for step, grid in steps.items():
        with pytest.raises(LabelError, match=f"is in EPSG:32633, but the scene has no CRS: {step}"):
            burn_positives(path, grid)
    plain = write_table(tmp_path / "pixels.csv", "x,y\n3.5,2.5\n")
    with pytest.raises(LabelError, match="is in EPSG:4326, but the scene has no CRS"):
        burn_positives(plain, Grid((ROWS, COLUMNS)), crs="EPSG:4326")


def test_pixel_coordinates_fit_a_scene_without_georeference_only(tmp_path: Path) -> None:
    path = write_table(tmp_path / "pixels.csv", "x,y\n3.5,2.5\n14,11\n")
    burnt = burn_positives(path, Grid((ROWS, COLUMNS)))
    np.testing.assert_array_equal(burnt.mask, mask_of((2, 3), (11, 14)))
    assert burnt.crs_note == "taken as pixels: x = column, y = row"
    with pytest.raises(LabelError, match="names no CRS"):
        burn_positives(path, GRID)
    with pytest.raises(LabelError, match=r"none of the 2.*scene x 364095 .*\(no CRS\)"):
        burn_positives(path, grid_of(crs=None))


def test_qgis_draws_a_scene_without_georeference_downwards(tmp_path: Path) -> None:
    path = write_table(tmp_path / "pixels.csv", "x,y\n3.5,-2.5\n14.5,-11.5\n")
    burnt = burn_positives(path, Grid((ROWS, COLUMNS)))
    np.testing.assert_array_equal(burnt.mask, mask_of((2, 3), (11, 14)))
    assert "y = -row" in burnt.crs_note


def test_without_any_crs_the_scenes_transform_counts(tmp_path: Path) -> None:
    grid = grid_of("rotated", crs=None)
    path = save(tmp_path / "labels.shp", [Point(at(grid, 4.5, 6.5))], None, number=[1])
    burnt = burn_positives(path, grid)
    np.testing.assert_array_equal(burnt.mask, mask_of((6, 4)))
    assert burnt.crs_note == "neither the file nor the scene names a CRS; taken as the same"


def test_a_local_crs_cannot_be_reached_and_we_say_so(tmp_path: Path) -> None:
    local = 'LOCAL_CS["Arbitrary",UNIT["metre",1],AXIS["Easting",EAST],AXIS["Northing",NORTH]]'
    path = save_points(tmp_path / "labels.gpkg")
    with pytest.raises(LabelError, match="no way from the labels' CRS EPSG:32633 to the scene's"):
        burn_positives(path, grid_of(crs=local))
    points = [Point(at(GRID, 2.5, 3.5))]
    path = save(tmp_path / "labels.shp", points, None, number=[1])
    np.testing.assert_array_equal(burn_positives(path, grid_of(crs=local)).mask, mask_of((3, 2)))


# Truth


def test_truth_holds_positives_negatives_and_unknown(tmp_path: Path) -> None:
    pixels = [(2.5, 3.5), (7.5, 1.5), (2.5, 8.5), (7.6, 1.6), (4.5, 4.5)]
    species = ["Lantana", "oak", "Lantana", "Lantana", None]
    points = [Point(at(GRID, *pair)) for pair in pixels]
    path = save(tmp_path / "truth.gpkg", points, species=species)
    lantana, others = "species = 'Lantana'", "species <> 'Lantana'"
    truth = burn_truth(path, GRID, positive_where=lantana)
    assert truth.dtype == np.uint8
    np.testing.assert_array_equal(truth == 1, mask_of((3, 2), (8, 2), (1, 7)))
    assert set(np.unique(truth)) == {1, UNKNOWN}
    truth = burn_truth(path, GRID, positive_where=others, negative_where=lantana + " AND fid < 4")
    np.testing.assert_array_equal(truth == 1, mask_of((1, 7)))
    np.testing.assert_array_equal(truth == 0, mask_of((3, 2), (8, 2)))
    truth = burn_truth(path, GRID, positive_where=lantana, negative_where=others)
    np.testing.assert_array_equal(truth == 1, mask_of((3, 2), (8, 2)))
    assert truth[1, 7] == UNKNOWN  # both an oak and a Lantana
    np.testing.assert_array_equal(burn_truth(path, GRID) == 1, burn_positives(path, GRID).mask)


def test_truth_without_positives_is_refused(tmp_path: Path) -> None:
    path = save_points(tmp_path / "truth.gpkg")
    with pytest.raises(ConfigError, match="positives by nothing"):
        burn_truth(path, GRID, negative_where="species = 'oak'")
    with pytest.raises(LabelError, match="also marked negative"):
        burn_truth(path, GRID, positive_where="species = 'oak'", negative_where="number > 0")


# Label rasters


def write_raster(path: Path, values: NDArray[Any], grid: Grid, nodata: float | None = None) -> Path:
    bands = values if values.ndim == 3 else values[None]
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        count=len(bands),
        height=grid.shape[0],
        width=grid.shape[1],
        dtype=values.dtype,
        transform=grid.transform,
        crs=grid.crs,
        nodata=nodata,
    ) as raster:
        raster.write(bands)
    return path


CLASSES = np.arange(ROWS * COLUMNS, dtype=np.uint8).reshape(ROWS, COLUMNS) % 4


@pytest.mark.parametrize("name", GRIDS)
def test_a_class_is_picked_from_a_raster_in_the_same_grid(tmp_path: Path, name: str) -> None:
    path = write_raster(tmp_path / "truth.tif", CLASSES, grid_of(name))
    labels = read_label_raster(path, grid_of(name), target=2)
    np.testing.assert_array_equal(labels.mask, CLASSES == 2)
    assert labels.note == "in the scene's grid"
    with pytest.raises(LabelError, match=r"holds 0, 1, 2, 3: pick one class \('target'\)"):
        read_label_raster(path, grid_of(name))
    with pytest.raises(LabelError, match="inside the scene is 9; it holds 0, 1, 2, 3"):
        read_label_raster(path, grid_of(name), target=9)


@pytest.mark.parametrize(
    ("values", "nodata"),
    [
        ((CLASSES == 1).astype(np.uint8), None),
        (np.where(CLASSES == 1, 1, np.where(CLASSES == 2, 255, 0)).astype(np.uint8), 255),
        (np.where(CLASSES == 1, 1, 0).astype(np.uint8), 0),
        (np.where(CLASSES == 1, 1, -1).astype(np.int16), None),
        (np.where(CLASSES == 1, 1, np.nan).astype(np.float32), None),
        (np.where(CLASSES == 1, 1, -9999).astype(np.float32), -9999),
    ],
)
def test_ones_are_positive_and_nodata_is_not(
    tmp_path: Path, values: NDArray[Any], nodata: float | None
) -> None:
    path = write_raster(tmp_path / "labels.tif", values, GRID, nodata)
    np.testing.assert_array_equal(read_label_raster(path, GRID).mask, CLASSES == 1)


def test_a_raster_without_positives_is_refused(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "labels.tif", np.zeros((ROWS, COLUMNS), np.uint8), GRID)
    with pytest.raises(LabelError, match=r"no pixel of labels.tif inside the scene is 1"):
        read_label_raster(path, GRID)
    path = write_raster(tmp_path / "nodata.tif", np.zeros((ROWS, COLUMNS), np.uint8), GRID, 0)
    with pytest.raises(LabelError, match="has no value inside the scene"):
        read_label_raster(path, GRID)


def test_a_hair_of_a_pixel_is_the_same_grid(tmp_path: Path) -> None:
    a, b, c, d, e, f = GRID.transform[:6]
    near = Grid(GRID.shape, (a, b, c + 1e-5, d, e, f), UTM)
    far = Grid(GRID.shape, (a, b, c + 1e-3, d, e, f), UTM)
    path = write_raster(tmp_path / "near.tif", CLASSES, near)
    assert read_label_raster(path, GRID, target=1).note == "in the scene's grid"
    path = write_raster(tmp_path / "far.tif", CLASSES, far)
    labels = read_label_raster(path, GRID, target=1)
    assert labels.note.startswith("resampled to the nearest neighbour from 12 rows × 15 columns")
    np.testing.assert_array_equal(labels.mask, CLASSES == 1)


@pytest.mark.parametrize("epsg", [32633, 4326, 3035])
@pytest.mark.parametrize("nodata", [None, 255])
@pytest.mark.parametrize("name", GRIDS)
def test_a_raster_in_another_grid_is_read_at_the_nearest_pixel(
    tmp_path: Path, epsg: int, nodata: float | None, name: str
) -> None:
    grid = grid_of(name)
    crs = CRS.from_epsg(epsg).to_wkt()
    transformer = Transformer.from_crs(UTM, crs, always_xy=True)
    rows, columns = np.indices(grid.shape) + 0.5
    x, y = transformer.transform(*at(grid, columns, rows))
    size = (x.max() - x.min()) / 19.3  # the raster covers but a part of the scene
    left, top = x.min() + 0.3 * size, y.max() - 0.3 * size
    own = Grid((30, 17), (size, 0.0, left, 0.0, -size, top), crs)
    values = np.random.default_rng(1).integers(0, 3, own.shape).astype(np.uint8)
    path = write_raster(tmp_path / "labels.tif", values, own, nodata)
    column, row = (x - left) / size, (top - y) / size
    clear = np.minimum(*(np.abs(v - np.rint(v)) for v in (column, row))) > 0.02
    inside = (column >= 0) & (column < 17) & (row >= 0) & (row < 30)
    picked = values[row.astype(int).clip(0, 29), column.astype(int).clip(0, 16)]
    for target in (0, 2):
        labels = read_label_raster(path, grid, target=target)
        expected = inside & (picked == target)
        np.testing.assert_array_equal(labels.mask[clear], expected[clear])
    assert clear.mean() > 0.8
    assert f"(EPSG:{epsg})" in labels.note


def test_a_raster_elsewhere_is_refused(tmp_path: Path) -> None:
    away = Grid(GRID.shape, (30.0, 0.0, 0.0, 0.0, -30.0, 5000000.0), UTM)
    path = write_raster(tmp_path / "labels.tif", CLASSES, away)
    with pytest.raises(LabelError, match=r"no value inside the scene: it covers.*x 0 to 450"):
        read_label_raster(path, GRID, target=1)


def test_a_raster_without_crs_must_have_the_scenes_grid_or_its_size(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "grid.tif", CLASSES, grid_of(crs=None))
    assert "one CRS is missing" in read_label_raster(path, GRID, target=1).note
    plain = tmp_path / "plain.tif"
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        write_raster(plain, CLASSES, Grid((ROWS, COLUMNS)))
    labels = read_label_raster(plain, GRID, target=3)
    np.testing.assert_array_equal(labels.mask, CLASSES == 3)
    assert labels.note.startswith("laid pixel on pixel")
    other = Grid((ROWS, COLUMNS + 1), GRID.transform, UTM)
    with pytest.raises(
        LabelError,
        match=r"covers 12 rows × 15 columns of 1 × 1, .*no CRS.*the scene 12 rows × 16 columns",
    ):
        read_label_raster(plain, other, target=3)


def test_rasters_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no file"):
        read_label_raster(tmp_path / "none.tif", GRID)
    path = write_raster(tmp_path / "labels.tif", CLASSES, GRID)
    content = path.read_bytes()
    for keep in (0, 10, len(content) - 60):
        path.write_bytes(content[:keep])
        with pytest.raises(FileError, match=r"cannot (read|open)"):
            read_label_raster(path, GRID, target=1)
    write_raster(path, np.stack([CLASSES, CLASSES]), GRID)
    with pytest.raises(FileError, match=r"one band. labels.tif has 2"):
        read_label_raster(path, GRID, target=1)
