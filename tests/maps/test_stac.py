"""The STAC Item beside a map."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import shapely
from pyproj import CRS

from thonecls.io.grid import Grid
from thonecls.maps.stac import describe_item

pystac = pytest.importorskip("pystac")


def validate_core(item: dict[str, object]) -> None:
    """By the schemas that pystac carries; those of extensions lie on a server."""
    if find_spec("jsonschema") is None:
        return
    from pystac.validation.stac_validator import JsonSchemaSTACValidator

    checked = JsonSchemaSTACValidator()
    version = pystac.get_stac_version()
    assert item["stac_version"] == version
    checked.validate_core(item, pystac.STACObjectType.ITEM, version)


UTM = CRS.from_epsg(32633).to_wkt()


def made(folder: Path, grid: Grid) -> dict[str, Any]:
    (folder / "map.tif").write_bytes(b"")
    return describe_item(
        folder,
        grid,
        name="a",
        title="oak in a.tif",
        properties={"label": "oak"},
        scene=folder / "a",
    )


def test_pystac_reads_the_item_with_its_place_and_files(tmp_path: Path) -> None:
    grid = Grid((50, 40), (30.0, 0.0, 364095.0, 0.0, -30.0, 5809965.0), UTM)
    path = tmp_path / "item.json"
    path.write_text(json.dumps(made(tmp_path, grid)), "utf-8")
    item = pystac.Item.from_file(str(path))
    validate_core(item.to_dict(include_self_link=False))
    assert item.properties["proj:code"] == "EPSG:32633"
    assert item.properties["proj:shape"] == [50, 40]
    assert item.properties["proj:transform"] == list(grid.transform[:6])
    assert list(item.assets) == ["map"]
    assert Path(item.assets["map"].get_absolute_href()).samefile(tmp_path / "map.tif")
    outline = shapely.geometry.shape(item.geometry)
    assert outline.is_valid
    assert outline.bounds == pytest.approx(item.bbox)
    west, south, east, north = item.bbox
    assert 12.9 < west < east < 13.1
    assert 52.4 < south < north < 52.5


def test_a_map_across_the_180th_meridian_has_two_outlines(tmp_path: Path) -> None:
    crs = CRS.from_epsg(32601).to_wkt()  # 180° to 174° west
    grid = Grid((100, 100), (1000.0, 0.0, 330000.0, 0.0, -1000.0, 7500000.0), crs)
    item = made(tmp_path, grid)
    outline = shapely.geometry.shape(item["geometry"])
    assert outline.geom_type == "MultiPolygon"
    assert outline.is_valid
    west, _, east, _ = item["bbox"]
    assert west > 170
    assert east < -170


def test_a_crs_without_a_code_is_told_as_wkt(tmp_path: Path) -> None:
    crs = CRS.from_proj4("+proj=laea +lat_0=48 +lon_0=9 +units=m").to_wkt()
    facts = made(tmp_path, Grid((5, 5), (10.0, 0.0, 0.0, 0.0, -10.0, 0.0), crs))["properties"]
    assert facts["proj:code"] is None
    assert CRS.from_wkt(facts["proj:wkt2"]) == CRS.from_wkt(crs)
