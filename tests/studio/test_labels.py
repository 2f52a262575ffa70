"""Labels are a GeoPackage that others read, whatever is done, undone and done again."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import geopandas
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import CRS

from thonecls.errors import FileError, LabelError
from thonecls.io.grid import Grid
from thonecls.io.inputs import read_labels
from thonecls.io.options import LabelOptions
from thonecls.io.vector import read_points
from thonecls.studio.labels import MOST_STROKE, Labels, write_copy

UTM = CRS.from_epsg(32633).to_wkt("WKT1_GDAL")
OWN = CRS.from_proj4("+proj=laea +lat_0=51.5 +lon_0=12.3 +ellps=GRS80 +units=m").to_wkt("WKT1_GDAL")
PLAIN = Grid((20, 30))
GRIDS = {
    "utm": Grid((20, 30), (30.0, 0.0, 364095.0, 0.0, -30.0, 5809965.0), UTM),
    "degrees": Grid((20, 30), (0.001, 0.0, 13.0, 0.0, -0.001, 52.4), CRS.from_epsg(4326).to_wkt()),
    "own": Grid((20, 30), (10.0, 0.0, 5000.0, 0.0, -10.0, 9000.0), OWN),
    "rotated": Grid((20, 30), (20.0, 10.0, 364095.0, 10.0, -20.0, 5809965.0), UTM),
    "pixels": PLAIN,
}
# Kind, first pixel and how many; or a step back or forth.
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["positive", "negative", "unknown", "erase"]),
            st.integers(0, 590),
            st.integers(1, 10),
            st.booleans(),
        ),
        st.sampled_from(["undo", "redo", "reopen"]),
    ),
    max_size=25,
)


@pytest.mark.parametrize("name", GRIDS)
def test_train_reads_the_labels_as_they_were_clicked(name: str, tmp_path: Path) -> None:
    grid = GRIDS[name]
    labels = Labels(tmp_path / "labels.gpkg", grid)
    labels.apply("positive", np.array([0, 31, 599]), "click")
    labels.apply("negative", np.array([40, 41]), "click")
    labels.apply("unknown", np.array([100]), "click")
    found = read_labels(tmp_path / "labels.gpkg", grid)  # while it is open, too
    assert np.flatnonzero(found.mask).tolist() == [0, 31, 599]
    assert found.negatives is not None
    assert np.flatnonzero(found.negatives).tolist() == [40, 41]
    labels.close()
    assert not (tmp_path / "labels.gpkg-wal").exists()
    again = read_labels(tmp_path / "labels.gpkg", grid)
    assert (again.mask == found.mask).all()


def test_geopandas_reads_points_in_the_scenes_crs_without_a_warning(tmp_path: Path) -> None:
    labels = Labels(tmp_path / "labels.gpkg", GRIDS["utm"])
    labels.apply("positive", np.array([31]), "click")
    labels.apply("unknown", np.array([0]), "click", "suggestion")
    labels.close()
    frame = geopandas.read_file(tmp_path / "labels.gpkg", layer="labels")
    assert frame.crs == "EPSG:32633"
    assert frame.geometry.x.tolist() == [364110.0, 364095.0 + 45]
    assert frame.geometry.y.tolist() == [5809950.0, 5809965.0 - 45]
    assert frame["origin"].tolist() == ["suggestion", "stroke"]
    assert frame["present"].isna().tolist() == [True, False]


def test_it_says_that_it_is_a_geopackage(tmp_path: Path) -> None:
    Labels(tmp_path / "labels.gpkg", GRIDS["utm"]).close()
    database = sqlite3.connect(tmp_path / "labels.gpkg")
    assert database.execute("PRAGMA application_id").fetchone() == (0x47504B47,)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()


@given(steps=STEPS)
@settings(max_examples=25)
def test_any_history_is_as_a_plain_one(
    steps: list[tuple[str, int, int, bool] | str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("history") / "labels.gpkg"
    labels = Labels(path, PLAIN)
    done: list[dict[int, str]] = [{}]  # what was labelled after each operation
    at, revision = 0, 0
    for step in steps:
        if step == "reopen":
            labels.close()
            labels = Labels(path, PLAIN)
        elif step == "undo":
            assert (labels.undo() is None) == (at == 0)
            revision, at = revision + (at > 0), max(0, at - 1)
        elif step == "redo":
            last = at == len(done) - 1
            assert (labels.redo() is None) == last
            revision, at = revision + (not last), at + (not last)
        else:
            assert isinstance(step, tuple)
            kind, first, count, asked = step
            pixels = np.arange(first, min(first + count, 600))
            now = {p: k for p, k in done[at].items() if p not in pixels}
            now |= {} if kind == "erase" else dict.fromkeys(pixels.tolist(), kind)
            labels.apply(kind, pixels, "words", "suggestion" if asked else "stroke")  # type: ignore[arg-type]
            if now != done[at]:
                done = [*done[: at + 1], now]
                at, revision = at + 1, revision + 1
        assert labels.revision == revision
        assert {p: k for k in labels.counts() for p in labels.pixels(k).tolist()} == done[at]
    labels.close()


def test_a_copy_holds_labels_and_no_history(tmp_path: Path) -> None:
    grid = GRIDS["utm"]
    labels = Labels(tmp_path / "labels.gpkg", grid)
    labels.apply("positive", np.array([5, 6]), "click")
    labels.apply("positive", np.array([300]), "answer", "suggestion")
    labels.apply("negative", np.array([301]), "answer", "suggestion")
    pixels, states = labels.all()
    asked = states >= 4
    write_copy(tmp_path / "own.gpkg", grid, pixels[~asked], states[~asked])
    write_copy(tmp_path / "answers.gpkg", grid, pixels[asked], states[asked])
    labels.close()
    points = read_points(tmp_path / "answers.gpkg", grid)
    assert points.pixels.tolist() == [300, 301]
    assert points.present.tolist() == [1, 0]
    found = read_labels(
        tmp_path / "own.gpkg", grid, LabelOptions(answers=str(tmp_path / "answers.gpkg"))
    )
    assert np.flatnonzero(found.mask).tolist() == [5, 6, 300]
    assert found.answers is not None
    assert np.flatnonzero(found.answers).tolist() == [300]


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.gpkg"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 20)
    with pytest.raises(FileError, match=r"cannot use .*choose another 'project'"):
        Labels(path, PLAIN)
    labels = Labels(tmp_path / "other.gpkg", PLAIN)
    labels.apply("positive", np.array([599]), "click")
    labels.close()
    with pytest.raises(FileError, match="outside the scene"):
        Labels(tmp_path / "other.gpkg", replace(PLAIN, shape=(10, 30)))


def test_a_stroke_has_an_end(tmp_path: Path) -> None:
    labels = Labels(tmp_path / "labels.gpkg", Grid((1000, 1000)))
    with pytest.raises(LabelError, match="at most 200,000 pixels"):
        labels.apply("positive", np.arange(MOST_STROKE + 1), "lasso")
    labels.close()
