"""What GDAL may open: no other file and no address because a stranger's file says so."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from shapely import Point

from spoilt import CUBE, layer, raster, virtual, virtual_layer, written
from thonecls.errors import FileError, SceneError
from thonecls.io.drivers import check_vector, raster_drivers
from thonecls.io.raster import open_raster
from thonecls.scene import read_all


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A place on this machine that would hear if anybody called."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.2)
        yield listening


def called(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("s.tif", "<GDAL_WMS>"),
        ("s.xyz", "<GDAL_WMS>"),
        ("s.vrt", "/vsicurl/"),
        ("s.vrt", "a WMS in a VRT"),
    ],
)
def test_no_address_is_called_whatever_a_scene_says(
    name: str, what: str, server: socket.socket, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{server.getsockname()[1]}"
    service = (
        f'<GDAL_WMS><Service name="TMS"><ServerUrl>{address}/${{z}}/${{x}}/${{y}}.png</ServerUrl>'
        "</Service><DataWindow><UpperLeftX>0</UpperLeftX><UpperLeftY>9</UpperLeftY><LowerRightX>9"
        "</LowerRightX><LowerRightY>0</LowerRightY><TileLevel>3</TileLevel></DataWindow>"
        "<BandsCount>3</BandsCount><Timeout>1</Timeout></GDAL_WMS>"
    )
    path = tmp_path / name
    if what == "<GDAL_WMS>":
        written(path, service)
    elif what == "/vsicurl/":
        virtual(path, Path(f"/vsicurl/{address}/other.tif"))
    else:
        virtual(path, written(tmp_path / "wms.xml", service))
    # In a process of its own, as users run it: which drivers there are is settled once.
    command = [sys.executable, "-m", "thonecls.cli", "check", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not called(server)
    assert done.returncode == 2
    assert done.stderr == ""


def test_a_vrt_is_read_where_it_is_named_so(tmp_path: Path) -> None:
    scene = raster(tmp_path / "scene.tif")
    cube = read_all(open_raster(virtual(tmp_path / "stack.vrt", scene))).cube
    np.testing.assert_array_equal(cube, CUBE[:2])
    for name in ("stack.tif", "stack.img", "stack", "stack.jp2"):
        with pytest.raises((FileError, SceneError), match="cannot open"):
            open_raster(virtual(tmp_path / name, scene))


def test_a_folder_of_bands_takes_no_description_for_a_band(tmp_path: Path) -> None:
    scene = raster(tmp_path / "scene.tif")
    folder = tmp_path / "bands"
    folder.mkdir()
    raster(folder / "b1.tif", CUBE[:1])
    virtual(folder / "b2.tif", scene)
    with pytest.raises(FileError, match="cannot open"):
        open_raster(folder)


def test_endings_promise_drivers() -> None:
    assert raster_drivers(Path("a.TIFF")) == ["GTiff"]
    others = raster_drivers(Path("a.dat"))
    assert {"ENVI", "GTiff", "HFA"} <= set(others)
    assert set(others).isdisjoint({"VRT", "WMS", "WMTS", "WCS", "GTI", "STACIT", "HTTP"})


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("l.kml", '\ufeff<?xml version="1.0"?>\n<!-- a\nb -->\n<kml xmlns="x">'),
        ("l.kml", "<kml:kml>"),
        ("l.geojson", '\n {"type": "FeatureCollection"'),
        ("l.json", "["),
        ("l.gpkg", "SQLite format 3\0"),
    ],
)
def test_what_begins_as_its_ending_says_is_taken(name: str, start: str, tmp_path: Path) -> None:
    check_vector(written(tmp_path / name, start))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("l.kml", "<OGRVRTDataSource>"),
        ("l.kml", "<!-- <kml> --><OGRVRTDataSource>"),
        ("l.kml", '{"type": "x"}'),
        ("l.geojson", "<OGRVRTDataSource>"),
        ("l.geojson", "http://127.0.0.1/x"),
        ("l.json", f'{{"a": 1,{" " * 9999}"type": "gdal_streamed_alg"}}'),
        ("l.gpkg", "<OGRVRTDataSource>"),
        ("l.fgb", "<OGRVRTDataSource>"),
        ("l.kmz", "<OGRVRTDataSource>"),
    ],
)
def test_what_begins_otherwise_is_refused(name: str, start: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="of the format that its ending says"):
        check_vector(written(tmp_path / name, start))


@pytest.mark.parametrize("ending", ["gpkg", "shp", "geojson", "fgb", "kml"])
def test_real_layers_begin_as_their_endings_say(ending: str, tmp_path: Path) -> None:
    more = {"driver": "KML"} if ending == "kml" else {}
    check_vector(layer(tmp_path / f"l.{ending}", [Point(13, 52)], "EPSG:4326", **more))
    with pytest.raises(FileError):
        check_vector(virtual_layer(tmp_path / f"v.{ending}", tmp_path / f"l.{ending}"))
