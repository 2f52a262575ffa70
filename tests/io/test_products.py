"""Readers of products as they are delivered, on small files of the very form."""

from __future__ import annotations

import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from affine import Affine
from pyproj import CRS

from products import PRODUCTS, SHAPE, Made, emit, enmap, landsat, north_up, prisma, sentinel2
from thonecls.errors import ConfigError, FileError, SceneError
from thonecls.io.raster import open_raster
from thonecls.scene import read_all


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    return {name: make(tmp_path_factory.mktemp("product")) for name, make in PRODUCTS.items()}


@pytest.mark.parametrize("name", PRODUCTS)
def test_values_bands_and_place_are_those_of_the_product(made: dict[str, Made], name: str) -> None:
    product = made[name]
    source = open_raster(product.scene)
    scene = read_all(source)
    np.testing.assert_allclose(source.wavelengths or (), product.waves, atol=0.01)
    assert source.fwhm is not None
    np.testing.assert_array_equal(scene.valid, np.isfinite(product.values).all(axis=0))
    np.testing.assert_allclose(
        scene.cube[:, scene.valid], product.values[:, scene.valid], atol=2e-5
    )
    shape, transform, code = product.grid
    assert source.grid.on_map.shape == shape
    assert source.grid.on_map.transform.almost_equals(transform, 1e-6)
    assert CRS.from_wkt(str(source.grid.on_map.crs)).to_epsg() == code


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_window_of_a_pickled_source_is_that_part_of_the_whole(
    made: dict[str, Made], name: str
) -> None:
    source = open_raster(made[name].scene)
    whole, window = read_all(source), (slice(3, 30), slice(2, 21))
    part = pickle.loads(pickle.dumps(source)).read(*window)
    np.testing.assert_array_equal(part.cube, whole.cube[:, *window])
    np.testing.assert_array_equal(part.valid, whole.valid[window])
    assert source.thinned([1, 0], *window, 3).shape == (9, 7)


@pytest.mark.parametrize("name", ["emit", "enmap", "desis", "sentinel-2 l2a", "landsat 2"])
def test_flagged_pixels_are_used_when_asked_for(made: dict[str, Made], name: str) -> None:
    flags = read_all(open_raster(made[name].scene)).valid
    every = read_all(open_raster(made[name].scene, flagged=True)).valid
    assert (every & ~flags).any()
    assert not (flags & ~every).any()
    assert not every.all()  # no data is no data


# EMIT


def test_a_lookup_table_goes_both_ways(tmp_path: Path) -> None:
    lookup = open_raster(emit(tmp_path).scene).grid.lookup
    assert lookup is not None
    table = lookup.table
    with h5py.File(lookup.path) as file:
        x, y = file["location/glt_x"][:], file["location/glt_y"][:]
    assert (table[x == 0] == -1).all()
    assert table[20, 30] == (-y[20, 30] - 1) * SHAPE[1] - x[20, 30] - 1  # it fills a gap
    assert table[21, 31] == -1  # out of any range
    shown = table[table >= 0]
    mask = np.zeros(lookup.grid.shape, dtype=bool)
    mask[10:40, 20:25] = True
    carried = lookup.to_sensor(mask)
    assert set(np.flatnonzero(carried)) == set(table[mask & (table >= 0)])
    pixels = np.array([shown[0], shown[-1], shown[50]], dtype=np.int64)
    np.testing.assert_array_equal(table.flat[lookup.to_map(pixels)], pixels)
    unseen = np.setdiff1d(np.arange(SHAPE[0] * SHAPE[1]), shown)
    assert (lookup.to_map(unseen) == -1).all()
    layer = lookup.on_sensor(np.where(table >= 0, table, -7).astype(np.float32))
    np.testing.assert_array_equal(layer.flat[shown], shown)
    assert np.isnan(layer.flat[unseen]).all()


def test_masks_are_found_by_the_names_of_their_bands(tmp_path: Path) -> None:
    made = emit(tmp_path)
    (old,) = tmp_path.glob("EMIT_L2A_MASK_*")
    new = tmp_path / old.name.replace("_001_", "_003_", 1)
    with h5py.File(old) as file, h5py.File(new, "w") as other:  # versions order them otherwise
        other["mask"] = file["mask"][:][..., [1, 0, 2]]
        names = [b"Cirrus Flag", b"Cloud Flag", b"Water Flag"]
        other["sensor_band_parameters/mask_bands"] = np.array(names)
    source = open_raster(made.scene)
    assert "_003_" in source.product[1]
    np.testing.assert_array_equal(read_all(source).valid, np.isfinite(made.values).all(axis=0))
    new.unlink()
    with h5py.File(new, "w") as file:
        file["mask"] = np.zeros((3, 3, 3))
        file["sensor_band_parameters/mask_bands"] = np.array(names)
    with pytest.raises(FileError, match="move it elsewhere"):
        open_raster(made.scene)


def test_a_lookup_table_without_its_place_is_refused(tmp_path: Path) -> None:
    made = emit(tmp_path)
    with h5py.File(made.scene, "a") as file:
        del file.attrs["geotransform"]
    with pytest.raises(FileError, match="geotransform"):
        open_raster(made.scene)


# PRISMA


def test_corners_of_prisma_may_be_outer_ones(tmp_path: Path) -> None:
    made = prisma(tmp_path)
    with h5py.File(made.scene, "a") as file:
        for name, shift in (("ULcorner_easting", -15), ("LRcorner_easting", 15)):
            file.attrs[f"Product_{name}"] += shift
        for name, shift in (("ULcorner_northing", 15), ("LRcorner_northing", -15)):
            file.attrs[f"Product_{name}"] += shift
    assert open_raster(made.scene).grid.transform.almost_equals(north_up(30))
    with h5py.File(made.scene, "a") as file:
        del file.attrs["Epsg_Code"]
    with pytest.raises(FileError, match="Epsg_Code"):
        open_raster(made.scene)


def test_what_two_detectors_see_is_taken_once(tmp_path: Path) -> None:
    source = open_raster(prisma(tmp_path).scene)
    assert "950.6-977.4 nm): seen by the second detector too, from 943 nm on" in source.dropped[0]
    assert list(source.wavelengths or ()) == sorted(source.wavelengths or ())


# EnMAP


def test_a_scene_is_named_by_its_folder_its_metadata_or_its_image(tmp_path: Path) -> None:
    folder = enmap(tmp_path).scene
    for ending in ("*-METADATA.XML", "*-SPECTRAL_IMAGE.TIF"):
        (path,) = folder.glob(ending)
        assert open_raster(path).wavelengths == open_raster(folder).wavelengths
    words = " ".join(open_raster(folder).dropped)
    assert "band 8 (960.0 nm): no data wherever it was looked at" in words
    assert "band 10 (1390.0 nm)" in words
    (metadata,) = folder.glob("*-METADATA.XML")
    (folder / metadata.name.replace("004950", "004951")).write_bytes(metadata.read_bytes())
    with pytest.raises(FileError, match="2 scenes"):
        open_raster(folder)
    assert open_raster(metadata).bands == 8
    metadata.write_text(metadata.read_text().replace("bandID", "other"))
    with pytest.raises(SceneError, match="describes 0 bands, the image has 12"):
        open_raster(metadata)
    metadata.write_text("<cut short")
    with pytest.raises(FileError, match="XML"):
        open_raster(metadata)


# Sentinel-2


def test_sentinel_2_on_a_coarser_grid(tmp_path: Path) -> None:
    made = sentinel2(tmp_path)
    fine, coarse = open_raster(made.scene), open_raster(made.scene, variable="20m")
    assert coarse.grid.shape == (30, 24)
    assert coarse.grid.transform == Affine(20.0, 0.0, 364080.0, 0.0, -20.0, 5809980.0)
    small, large = read_all(coarse), read_all(fine)
    red = coarse.names.index("B04")
    means = large.cube[red].reshape(30, 2, 24, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(small.cube[red][small.valid], means[small.valid], atol=1e-4)
    with pytest.raises(ConfigError, match="10m, 20m or 60m"):
        open_raster(made.scene, variable="15m")


def test_a_safe_folder_without_its_granule_is_refused(tmp_path: Path) -> None:
    made = sentinel2(tmp_path)
    next((made.scene / "GRANULE").iterdir()).rename(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="0 granules"):
        open_raster(made.scene)


# Landsat


def test_surface_reflectance_needs_no_metadata(tmp_path: Path) -> None:
    made = landsat(tmp_path)
    (metadata,) = made.scene.glob("*_MTL.txt")
    whole = read_all(open_raster(metadata))
    metadata.unlink()
    np.testing.assert_array_equal(read_all(open_raster(made.scene)).cube, whole.cube)
    with pytest.raises(ConfigError, match="'variable'"):
        open_raster(made.scene, variable="SR_B2")
