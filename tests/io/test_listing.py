"""Which scenes are meant: by pattern, folder, list and STAC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

from thonecls.errors import FileError
from thonecls.io.listing import find_labels, find_scenes, is_many


def raster(path: Path, bands: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"driver": "GTiff", "dtype": "uint8", "height": 2, "width": 2}
    facts["transform"] = rasterio.Affine(1, 0, 0, 0, -1, 2)
    with rasterio.open(path, "w", count=bands, **facts) as file:
        file.write(np.ones((bands, 2, 2), np.uint8))
    return path


@pytest.fixture
def flight(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        raster(tmp_path / "flight" / f"{name}.tif")
    return tmp_path / "flight"


def names(*given: Path) -> list[str]:
    return [name for name, _ in find_scenes(list(given))]


def test_a_pattern_a_folder_and_a_list_mean_the_same(flight: Path) -> None:
    listed = flight.parent / "scenes.txt"
    listed.write_text("# of May\nflight/a.tif\n\nflight/b.tif\nflight/c.tif\n", "utf-8")
    wanted = ["a", "b", "c"]
    assert names(flight / "*.tif") == names(flight) == names(listed) == wanted
    assert names(flight, flight / "a.tif") == wanted  # each once


def test_a_folder_of_single_bands_or_of_a_product_is_one_scene(
    tmp_path: Path, flight: Path
) -> None:
    raster(tmp_path / "bands" / "B1.tif", 1)
    raster(tmp_path / "bands" / "B2.tif", 1)
    assert names(tmp_path / "bands") == ["bands"]
    (flight / "METADATA.XML").write_text("<product/>", "utf-8")
    assert names(flight) == ["flight"]


@pytest.mark.parametrize("ending", ["txt", "json", "xml"])
def test_the_metadata_of_a_product_are_a_scene_not_a_list(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"LC08_L2SP_193023_20220516_02_T1_MTL.{ending}"
    path.write_text("GROUP = LANDSAT_METADATA_FILE\nEND\n", "utf-8")
    assert not is_many(path)
    assert [scene for _, scene in find_scenes(path)] == [path]


def test_what_is_delivered_with_a_swath_is_no_other_scene(tmp_path: Path) -> None:
    image = tmp_path / "EMIT_L2A_RFL_001_20230316T045133_2307503_005.nc"
    image.write_bytes(b"")
    assert find_scenes(tmp_path)[0].path == image
    for kind in ("MASK", "RFLUNCERT"):
        (tmp_path / image.name.replace("RFL", kind)).write_bytes(b"")
    assert names(tmp_path) == names(tmp_path / "*.nc") == names(*tmp_path.iterdir()) == [image.stem]


def test_scenes_of_one_name_are_told_apart_by_their_folders(flight: Path, tmp_path: Path) -> None:
    other = raster(tmp_path / "june" / "a.tif")
    assert names(flight / "a.tif", other) == ["flight-a", "june-a"]


def item(name: str, href: str, **more: Any) -> dict[str, Any]:
    assets = {"cube": {"href": href, "roles": ["data"]}, "thumb": {"href": "./thumb.png"}, **more}
    return {"type": "Feature", "stac_version": "1.1.0", "id": name, "assets": assets}


def write(path: Path, facts: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts), "utf-8")
    return path


def test_stac_collections_items_and_item_collections_lead_to_scenes(flight: Path) -> None:
    root = flight.parent
    one = write(root / "items" / "may.json", item("may/1", "../flight/a.tif"))
    write(root / "items" / "june.json", item("june", (flight / "b.tif").as_uri()))
    links = [
        {"rel": "self", "href": "./collection.json"},
        {"rel": "item", "href": "items/may.json"},
    ]
    child = write(root / "c.json", {"type": "Collection", "links": links})
    links = [{"rel": "child", "href": "c.json"}, {"rel": "item", "href": "items/june.json"}]
    links.append({"rel": "child", "href": "catalog.json"})  # a ring
    catalog = write(root / "catalog.json", {"type": "Catalog", "links": links})
    both = {"type": "FeatureCollection", "features": [item("x", "flight/a.tif")]}
    assert names(one) == names(child) == ["may_1"]
    assert find_scenes(one)[0].path.samefile(flight / "a.tif")
    assert names(catalog) == ["may_1", "june"]
    assert names(write(root / "both.json", both)) == ["x"]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (item("x", "https://example.org/x.tif"), "no file on this disk"),
        (item("x", "s3://bucket/x.tif"), "no file on this disk"),
        (item("x", "gone.tif"), "there is no file .*gone.tif"),
        (item("x", "a.tif", more={"href": "b.tif", "roles": ["data"]}), "one asset with the role"),
        ({"type": "Feature", "id": "x", "assets": 5}, "It has: none"),
        ({"type": "Point"}, "no STAC Item"),
    ],
)
def test_stac_without_a_scene_on_disk_is_refused(
    tmp_path: Path, facts: dict[str, Any], words: str
) -> None:
    with pytest.raises(FileError, match=words):
        find_scenes(write(tmp_path / "item.json", facts))


def test_what_leads_nowhere_says_so(tmp_path: Path, flight: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n", "utf-8")
    (tmp_path / "bad.json").write_text("[", "utf-8")
    for path, words in (
        (tmp_path / "*.img", "no file fits"),
        (tmp_path / "empty.txt", "lists no file"),
        (tmp_path / "bad.json", "is no JSON"),
        (tmp_path / "gone.tif", "there is no file"),
    ):
        with pytest.raises(FileError, match=words):
            find_scenes(path)
    with pytest.raises(FileError, match=r"called like a scene, as a\.gpkg"):
        find_labels(flight.parent / "*.json", ["a"])


def test_labels_belong_to_the_scene_of_their_name(tmp_path: Path) -> None:
    for name in ("a.shp", "a.dbf", "a.gpkg", "b.geojson", "other.gpkg"):
        (tmp_path / name).write_bytes(b"")
    found = find_labels(tmp_path, ["a", "b", "c"])
    assert {name: path.name for name, path in found.items()} == {"a": "a.gpkg", "b": "b.geojson"}


def test_a_scene_beside_the_labels_is_not_its_own_labels(flight: Path) -> None:
    (flight / "a.gpkg").write_bytes(b"")
    np.save(flight / "d.npy", np.ones((3, 2, 2)))
    np.save(flight / "e.npy", np.ones((2, 2)))
    found = find_labels(flight, ["a", "b", "c", "d", "e"])
    assert {name: path.name for name, path in found.items()} == {"a": "a.gpkg", "e": "e.npy"}
