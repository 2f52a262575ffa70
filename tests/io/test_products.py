"""Readers of products as they are delivered, on small files of the very form."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
import rasterio.shutil
from affine import Affine
from pyproj import CRS

from products import (
    PRODUCTS,
    SHAPE,
    Made,
    emit,
    enmap,
    landsat,
    north_up,
    prisma,
    s2_gml,
    sentinel2,
    sentinel2_l1c,
    write_tif,
)
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


def test_places_of_pixels_stand_in_for_a_lookup_table(tmp_path: Path) -> None:
    made = emit(tmp_path)
    with_table = open_raster(made.scene).grid.lookup
    assert with_table is not None
    table, (left, size, top) = with_table.table, (13.0, 0.000542, 52.4)
    rows, columns = SHAPE
    # Where the table shows each pixel: the mean of the map's pixels that show it.
    shown = np.flatnonzero(table >= 0)
    count = np.bincount(table.flat[shown], minlength=rows * columns)
    down, across = np.divmod(shown, table.shape[1])
    with np.errstate(invalid="ignore"):
        y, x = (
            np.bincount(table.flat[shown], at + 0.5, rows * columns) / count
            for at in (down, across)
        )
    with h5py.File(made.scene, "a") as file:
        for name in ("glt_x", "glt_y", "lon", "lat"):
            del file[f"location/{name}"]
        file["location/lon"] = (left + size * x).reshape(SHAPE)
        file["location/lat"] = (top - size * y).reshape(SHAPE)
        del file.attrs["geotransform"]
    source = open_raster(made.scene)
    lookup = source.grid.lookup
    assert lookup is not None
    assert "no GLT" in source.product[0]
    assert lookup.grid.transform[0] == pytest.approx(size, rel=0.1)
    found = lookup.table
    assert set(found[found >= 0]) >= set(np.flatnonzero(count > 1))
    # Each pixel of the sensor lies within a pixel of the map of where its place is.
    at = lookup.to_map(np.flatnonzero(count))
    where = np.stack(np.divmod(at[at >= 0], found.shape[1]), axis=1)[:, ::-1] + 0.5
    own = np.flatnonzero(count)[at >= 0]
    places = np.stack([left + size * x[own], top - size * y[own]], axis=1)
    assert np.abs(lookup.grid.to_pixels(places) - where).max() <= 1.5
    assert np.mean(at >= 0) > 0.9
    np.testing.assert_array_equal(read_all(source).valid, np.isfinite(made.values).all(axis=0))


def test_places_of_no_pixel_are_refused(tmp_path: Path) -> None:
    made = emit(tmp_path)
    with h5py.File(made.scene, "a") as file:
        del file["location/glt_x"]
        file["location/lat"][:] = np.nan
    with pytest.raises(FileError, match="the place of no pixel"):
        open_raster(made.scene)
    with h5py.File(made.scene, "a") as file:
        file["location/lat"][:] = np.linspace(-80, 80, SHAPE[1])
        file["location/lat"][:, ::2] = 0.0
    with pytest.raises(FileError, match="too far apart"):
        open_raster(made.scene)


def test_an_image_that_was_laid_on_a_map_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "EMIT_L2A_RFL_001_20230316T045133_2307503_005_ortho.nc"
    with h5py.File(path, "w") as file:  # as tutorials write it: coordinates without units
        file["reflectance"] = np.random.default_rng(0).random((20, 30, 6)).astype(np.float32)
        file["wavelengths"] = np.linspace(400, 900, 6)
        for i, (name, values) in enumerate(
            (
                ("latitude", 52.4 - 0.0005 * (np.arange(20) + 0.5)),
                ("longitude", 13.0 + 0.0005 * (np.arange(30) + 0.5)),
            )
        ):
            file[name] = values
            file[name].make_scale(name)
            file["reflectance"].dims[i].attach_scale(file[name])
    grid = open_raster(path).grid
    assert grid.crs_name == "EPSG:4326"
    assert grid.transform.almost_equals(Affine(0.0005, 0, 13.0, 0, -0.0005, 52.4), 1e-9)


# PRISMA


@pytest.mark.parametrize("level", ["L1", "L2B", "L2C"])
def test_prisma_in_the_geometry_of_the_sensor_is_refused(tmp_path: Path, level: str) -> None:
    made = prisma(tmp_path)
    with h5py.File(made.scene, "a") as file:
        file.move("HDFEOS/SWATHS/PRS_L2D_HCO", f"HDFEOS/SWATHS/PRS_{level}_HCO")
    with pytest.raises(FileError, match=f"PRISMA {level}, .* get the L2D product"):
        open_raster(made.scene)


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


def test_bands_that_are_sorted_by_wavelength_are_told_apart_by_channel(tmp_path: Path) -> None:
    folder = enmap(tmp_path).scene
    usual = open_raster(folder)
    expected = read_all(usual)
    (metadata,), (image,) = folder.glob("*-METADATA.XML"), folder.glob("*-SPECTRAL_IMAGE.TIF")
    text = metadata.read_text()
    entries = re.findall(r'<bandID number="\d+">(.*?)</bandID>', text)
    order = np.argsort([float(re.findall(r"CenterOfBand>([\d.]+)", e)[0]) for e in entries])
    entry = "".join(f'<bandID number="{i}">{entries[k]}</bandID>' for i, k in enumerate(order, 1))
    text = re.sub(r"<bandID.*</bandID>", entry, text)
    lists = [
        ",".join(str(i) for i, k in enumerate(order, 1) if (k < 6) == first and k != 9)
        for first in (True, False)
    ]
    for listed in lists:
        text = re.sub(r"(<expectedChannelsList>)[\d,]+<", rf"\1 {listed}<", text, count=1)
    metadata.write_text(text)
    with rasterio.open(image) as file:
        cube, profile = file.read(), file.profile
    with rasterio.open(image, "w", **profile) as file:
        file.write(cube[order])
    source = open_raster(folder)
    assert source.wavelengths == usual.wavelengths
    np.testing.assert_array_equal(read_all(source).cube, expected.cube)


@pytest.mark.parametrize("driver", ["ENVI", "COG"])
def test_an_image_may_be_of_another_format(tmp_path: Path, driver: str) -> None:
    folder = enmap(tmp_path).scene
    usual = read_all(open_raster(folder))
    (image,) = folder.glob("*-SPECTRAL_IMAGE.TIF")
    ending = {"ENVI": ".BSQ", "COG": "_COG.tiff"}[driver]
    other = image.with_name(image.stem + ending)
    rasterio.shutil.copy(image, other, driver=driver)
    image.unlink()
    for path in (folder, other):
        np.testing.assert_array_equal(read_all(open_raster(path)).cube, usual.cube)


# Sentinel-2


@pytest.mark.parametrize("name", ["MSK_CLOUDS_B00.gml", "S2A_OPER_MSK_CLOUDS_A_B00_MSIL1C.gml"])
def test_clouds_of_older_products_are_polygons(tmp_path: Path, name: str) -> None:
    made = sentinel2_l1c(tmp_path)
    (mask,) = made.scene.rglob("MSK_CLASSI_B00.jp2")
    clear = read_all(open_raster(made.scene, flagged=True)).valid
    x, y = (364080.0, 5809980.0)

    def box(left: float, top: float, right: float, bottom: float) -> list[float]:
        sides = (x + left, y - top, x + right, y - bottom)
        a, b, c, d = sides
        return [a, b, c, b, c, d, a, d, a, b]

    path = s2_gml(
        mask.with_name(name),
        [
            ("OPAQUE", [box(60, 120, 180, 240), box(100, 160, 140, 200)]),  # with a hole
            ("CIRRUS", [box(240, 0, 300, 60)]),
            ("SNOW", [box(0, 0, 480, 600)]),  # of use
        ],
    )
    mask.unlink()
    expected = clear.copy()
    expected[12:24, 6:18] = False
    expected[16:20, 10:14] = clear[16:20, 10:14]
    expected[0:6, 24:30] = False
    source = open_raster(made.scene)
    assert name in source.product[1]
    np.testing.assert_array_equal(read_all(source).valid, expected)
    window = slice(9, 31), slice(3, 20)
    np.testing.assert_array_equal(source.read(*window).valid, expected[window])
    s2_gml(path, [])
    np.testing.assert_array_equal(read_all(open_raster(made.scene)).valid, clear)
    path.write_text(path.read_text().replace("</eop:Mask>", "<eop:MaskFeature>"))
    with pytest.raises(FileError, match="gml"):
        read_all(open_raster(made.scene))


def test_copies_in_clouds_have_geotiffs(tmp_path: Path) -> None:
    made = sentinel2(tmp_path)
    usual = read_all(open_raster(made.scene))
    for path in list(made.scene.rglob("*.jp2")):
        with rasterio.open(path) as file:
            cube, place = file.read(), file.transform
        write_tif(path.with_suffix(".tif"), cube, place)
        path.unlink()
    other = read_all(open_raster(made.scene))
    np.testing.assert_array_equal(other.valid, usual.valid)
    np.testing.assert_array_equal(other.cube, usual.cube)


def test_the_form_of_before_2017_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "S2A_OPER_PRD_MSIL1C_PDMC_20160725T202017_R079_V20160725.SAFE"
    (folder / "GRANULE").mkdir(parents=True)
    (folder / "S2A_OPER_MTD_SAFL1C_PDMC_20160725T202017_R079.xml").write_text("<a/>")
    with pytest.raises(FileError, match="before December 2016"):
        open_raster(folder)


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
    for path in made.scene.glob("*_MTL.*"):
        path.unlink()
    np.testing.assert_array_equal(read_all(open_raster(made.scene)).cube, whole.cube)
    with pytest.raises(ConfigError, match="'variable'"):
        open_raster(made.scene, variable="SR_B2")


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("form", ["json", "xml"])
def test_metadata_may_be_of_any_form(tmp_path: Path, level: int, form: str) -> None:
    made = landsat(tmp_path, level)
    whole = read_all(open_raster(made.scene))
    for path in made.scene.glob("*_MTL.*"):
        if path.suffix != f".{form}":
            path.unlink()
    for named in (made.scene, next(made.scene.glob("*_MTL.*"))):
        np.testing.assert_array_equal(read_all(open_raster(named)).cube, whole.cube)
    if level == 1:
        next(made.scene.glob("*_MTL.*")).write_text("{}" if form == "json" else "<a")
        with pytest.raises(FileError, match="MTL"):
            open_raster(made.scene)
