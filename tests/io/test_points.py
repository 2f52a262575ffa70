"""Points for people to answer: written, read back, and refused where they cannot be right."""

from __future__ import annotations

from pathlib import Path

import geopandas
import numpy as np
import pytest
from pyproj import CRS

from thonecls.errors import FileError, LabelError
from thonecls.io.grid import Grid
from thonecls.io.vector import points_path, read_points, write_points

UTM = Grid((30, 20), (10.0, 0, 500_000, 0, -10.0, 5_000_000), CRS.from_epsg(32633).to_wkt())
PLAIN = Grid((30, 20))
PIXELS = np.array([0, 25, 599, 310])


@pytest.mark.parametrize("grid", [UTM, PLAIN], ids=["georeferenced", "pixels"])
def test_points_come_back_with_their_answers(grid: Grid, tmp_path: Path) -> None:
    path = points_path(tmp_path / "p", grid)
    write_points(path, grid, PIXELS, {"stratum": [1, 2, 3, 4]})
    found = read_points(path, grid)
    assert found.pixels.tolist() == PIXELS.tolist()
    assert np.isnan(found.present).all()
    assert [int(float(cell)) for cell in found.columns["stratum"]] == [1, 2, 3, 4]
    if grid.georeferenced:
        frame = geopandas.read_file(path)
        assert frame.crs == CRS.from_wkt(grid.crs or "")
        assert frame.geometry[0].coords[0] == (500_005, 4_999_995)  # the pixel's centre
        frame["present"] = [1, 0, None, 1]
        frame.to_crs(4326).to_file(path)  # as it may come back from a phone
    else:
        lines = path.read_text("utf-8").splitlines()
        answers = ["present", "yes", "No", "", "1"]
        path.write_text(
            "".join(f"{line}{'' if i == 0 else answers[i]}\n" for i, line in enumerate(lines))
        )
    found = read_points(path, grid)
    assert found.pixels.tolist() == PIXELS.tolist()
    np.testing.assert_array_equal(found.present, [1, 0, np.nan, 1])


def test_what_cannot_be_right_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("row,column,present\n1,2,perhaps\n")
    with pytest.raises(LabelError, match="says 'perhaps' in its column 'present': write 1"):
        read_points(path, PLAIN)
    path.write_text("row,column,present\n1,99,1\n")
    with pytest.raises(LabelError, match=r"1 of the 1 points of p\.csv lie outside"):
        read_points(path, PLAIN)
    path.write_text("row,column,answer\n1,2,1\n")
    with pytest.raises(LabelError, match=r"has no column 'present'.*It has: row, column, answer"):
        read_points(path, PLAIN)
    path.write_text("row,column,present\n1,two,1\n")
    with pytest.raises(LabelError, match="must have whole numbers in its columns row and column"):
        read_points(path, PLAIN)
    with pytest.raises(FileError, match="there is no file"):
        read_points(tmp_path / "none.gpkg", PLAIN)
    frame = geopandas.GeoDataFrame(
        {"present": [1]},
        geometry=geopandas.points_from_xy([500_050], [4_999_900]).buffer(9),
        crs=32633,
    )
    frame.to_file(tmp_path / "areas.gpkg")
    with pytest.raises(LabelError, match="must hold points alone"):
        read_points(tmp_path / "areas.gpkg", UTM)
