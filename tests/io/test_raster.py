"""Raster files: every form reads the same, bands and nodata are understood, damage is named."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rasterio
import rasterio.shutil
import scipy.io
from affine import Affine
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyproj import CRS
from rasterio.enums import ColorInterp
from rasterio.errors import NotGeoreferencedWarning

from thonecls.errors import ConfigError, FileError, ModelError, SceneError
from thonecls.io.grid import Grid
from thonecls.io.raster import (
    BandChoice,
    RasterSource,
    find_bad_bands,
    match_bands,
    open_raster,
    parse_bands,
    parse_wavelengths,
)
from thonecls.scene import read_all

CUBE = np.random.default_rng(0).integers(1, 3000, (5, 40, 33)).astype(np.int16)
UTM, NORTH_UP = "EPSG:32633", Affine(30.0, 0.0, 364095.1, 0.0, -30.0, 5809965.3)
WAVES = [450.0, 550.0, 650.0, 750.0, 850.0]
ENVI = [("dat", "BSQ"), ("img", "BIL"), ("bip", "BIP")]


def write(path: Path, cube: NDArray[Any] = CUBE, driver: str = "GTiff", **profile: Any) -> Path:
    tags = profile.pop("band_tags", [])
    shape = {"count": len(cube), "height": cube.shape[1], "width": cube.shape[2]}
    place = {"crs": UTM, "transform": NORTH_UP} | profile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver=driver, dtype=cube.dtype.name, **shape, **place) as f:
            f.write(cube)
            for number, values in enumerate(tags, 1):
                f.update_tags(number, **values)
    return path


def write_envi(path: Path, cube: NDArray[Any] = CUBE, header: str = "", **profile: Any) -> Path:
    write(path, cube, "ENVI", **({"interleave": "BIL"} | profile))
    with path.with_suffix(".hdr").open("a") as file:
        file.write(header)
    return path


def envi_list(values: list[Any]) -> str:
    return "{" + ", ".join(str(value) for value in values) + "}"


def write_hdf5(path: Path, axis: int = 2, cube: NDArray[Any] = CUBE, **others: Any) -> Path:
    with h5py.File(path, "w") as file:
        file["cube"] = np.moveaxis(cube, 0, axis)
        for name, values in others.items():
            file[f"about/{name}"] = values
    return path


def write_netcdf3(path: Path, **cubes: NDArray[Any]) -> Path:
    along = {"y": 1000 - 10.0 * np.arange(40), "x": 10.0 * np.arange(33)}
    axes: dict[str, NDArray[Any]] = {"wavelength": np.array(WAVES), **along}
    with scipy.io.netcdf_file(path, "w") as file:
        for name, values in axes.items():
            file.createDimension(name, len(values))
            coordinate: Any = file.createVariable(name, "f8", (name,))
            coordinate[:] = values
            if name in along:
                coordinate.standard_name = f"projection_{name}_coordinate"
        for name, cube in cubes.items():
            file.createVariable(name, "i2", tuple(axes))[:] = cube
    return path


def write_folder(folder: Path, **profile: Any) -> Path:
    folder.mkdir()
    for i, band in enumerate(CUBE):  # band10 must come after band9
        write(folder / f"band{i + 8}.tif", band[None], **profile)
    (folder / "notes.txt").write_text("not a band")
    return folder


def write_form(folder: Path, form: str) -> Path:
    """CUBE in one of the forms."""
    if form in ("dat", "img", "bip"):
        return write_envi(folder / f"a.{form}", interleave=dict(ENVI)[form])
    if form == "vrt":
        path = folder / "a.vrt"
        rasterio.shutil.copy(write(folder / "a.tif"), path, driver="VRT")
        return path
    if form == "folder":
        return write_folder(folder / "bands")
    if form == "netcdf3":
        return write_netcdf3(folder / "a.nc", cube=CUBE)
    if form == "h5":
        return write_hdf5(folder / "a.h5", axis=0)
    if form == "h5-last":
        return write_hdf5(folder / "a.h5", axis=2, wavelengths=WAVES)
    if form == "nc-last":
        return write_hdf5(folder / "a.nc", axis=2, wavelengths=WAVES)
    if form == "h5-middle":
        return write_hdf5(folder / "a.h5", axis=1, wavelengths=WAVES)
    if form == "nc-first":
        return write_hdf5(folder / "a.nc", axis=0, wavelengths=WAVES)
    if form == "jp2":
        return write(folder / "a.jp2", driver="JP2OpenJPEG", QUALITY="100", REVERSIBLE="YES")
    return write(folder / f"a.{form}", driver={"tif": "GTiff", "cog": "COG"}[form])


FORMS = [*(e[0] for e in ENVI), "tif", "cog", "jp2", "vrt", "folder", "netcdf3"]
FORMS += ["h5", "h5-last", "h5-middle", "nc-last", "nc-first"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_the_same(tmp_path: Path, form: str) -> None:
    source = open_raster(write_form(tmp_path, form))
    assert (source.bands, source.shape) == (5, (40, 33))
    scene = read_all(source)
    np.testing.assert_array_equal(scene.cube, CUBE)
    assert scene.cube.dtype == np.float32
    assert scene.valid.all()
    part = source.read(slice(3, 20), slice(30, 33))
    np.testing.assert_array_equal(part.cube, CUBE[:, 3:20, 30:33])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RasterSource]:
    forms = ["dat", "img", "bip", "tif", "folder", "h5-last"]
    written = {form: write_form(tmp_path_factory.mktemp(form), form) for form in forms}
    swapped = written["swapped"] = write_form(tmp_path_factory.mktemp("swapped"), "dat")
    swapped.write_bytes(np.fromfile(swapped, "<i2").byteswap().tobytes())
    header = swapped.with_suffix(".hdr")
    header.write_text(header.read_text().replace("byte order = 0", "byte order = 1"))
    return {form: open_raster(path) for form, path in written.items()}


@given(data=st.data())
def test_a_window_equals_that_part_of_the_whole(
    sources: dict[str, RasterSource], data: st.DataObject
) -> None:
    source = sources[data.draw(st.sampled_from(sorted(sources)))]
    ends = [
        sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=2, unique=True)))
        for n in source.shape
    ]
    rows, columns = (slice(*pair) for pair in ends)
    whole, part = read_all(source), source.read(rows, columns)
    np.testing.assert_array_equal(whole.cube, CUBE)
    np.testing.assert_array_equal(part.cube, whole.cube[:, rows, columns])
    np.testing.assert_array_equal(part.valid, whole.valid[rows, columns])


@pytest.mark.parametrize("form", ["tif", "folder", "h5-last"])
def test_a_pickled_source_opens_anew(tmp_path: Path, form: str) -> None:
    source = open_raster(write_form(tmp_path, form))
    read_all(source)  # the open file must not be what is pickled
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(read_all(again).cube, CUBE)
    assert (again.grid, again.layers) == (source.grid, source.layers)


def test_a_source_is_read_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_form(tmp_path, "tif")
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(open_raster("a.tif"))
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(read_all(pickle.loads(pickled)).cube, CUBE)


def test_threads_share_a_source(sources: dict[str, RasterSource]) -> None:
    def read(row: int) -> NDArray[np.float32]:
        return sources["tif"].read(slice(row, row + 1), slice(0, 33)).cube

    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(read, list(range(40)) * 5))
    np.testing.assert_array_equal(np.concatenate(rows[:40], axis=1), CUBE)
    np.testing.assert_array_equal(np.concatenate(rows[-40:], axis=1), CUBE)


TRANSFORMS = [
    NORTH_UP,
    Affine(0.1 + 0.2, 0.0, 1 / 3, 0.0, -1 / 7, 2 / 3),  # pixels that are not square
    Affine(30.0, 0.0, 500000.0, 0.0, 30.0, 100.0),  # south up
    Affine(25.98, 15.000001, 1e6 / 3, 15.0, -25.98, 2e6 / 3),  # rotated
]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_grid_is_read_to_the_last_digit(tmp_path: Path, transform: Affine) -> None:
    grid = open_raster(write(tmp_path / "a.tif", transform=transform)).grid
    assert grid.transform[:6] == tuple(transform)[:6]
    assert grid.shape == (40, 33)
    assert rasterio.crs.CRS.from_wkt(grid.crs) == rasterio.crs.CRS.from_string(UTM)


@pytest.mark.parametrize("driver", ["GTiff", "ENVI"])
def test_a_scene_need_not_lie_on_earth(tmp_path: Path, driver: str) -> None:
    path = write(tmp_path / "a.dat", driver=driver, crs=None, transform=None)
    assert open_raster(path).grid == Grid((40, 33))


def test_netcdf_with_the_bands_last_has_its_coordinates(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "a.nc", wavelengths=WAVES)
    wkt = rasterio.crs.CRS.from_string(UTM).to_wkt()
    with h5py.File(path, "a") as file:
        file["y"], file["x"] = 1000 - 10.0 * np.arange(40), 500 + 10.0 * np.arange(33)
        for i, name in enumerate(("y", "x")):
            file[name].make_scale(name)
            file["cube"].dims[i].attach_scale(file[name])
        file["crs"] = 0
        file["crs"].attrs["crs_wkt"] = wkt
        file["cube"].attrs["grid_mapping"] = "crs"
    grid = open_raster(path).grid
    assert grid == Grid((40, 33), (10.0, 0.0, 495.0, 0.0, -10.0, 1005.0), wkt)


# wavelengths


def tagged(**same: str) -> list[dict[str, str]]:
    return [{"wavelength": str(w), **same} for w in WAVES]


@pytest.mark.parametrize(
    "tags",
    [
        tagged(wavelength_units="Nanometers"),
        tagged(),
        [{"WAVELENGTH": str(w), "wavelength_units": "nm"} for w in WAVES],
        [{"wavelength": str(w / 1000), "wavelength_units": "Micrometers"} for w in WAVES],
        [{"wavelength": str(w / 1000), "wavelength_units": "µm"} for w in WAVES],
        [{"wavelength": str(w / 1000)} for w in WAVES],  # no unit: their size tells
    ],
)
def test_wavelengths_from_band_tags(tmp_path: Path, tags: list[dict[str, str]]) -> None:
    assert open_raster(write(tmp_path / "a.tif", band_tags=tags)).wavelengths == tuple(WAVES)


def test_wavelengths_from_a_list_in_the_tags_of_a_geotiff(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    with rasterio.open(path, "r+") as file:
        micrometres = envi_list([w / 1000 for w in WAVES])
        file.update_tags(ns="ENVI", wavelength=micrometres, wavelength_units="Micrometers")
    assert open_raster(path).wavelengths == tuple(WAVES)


@pytest.mark.parametrize("unit", ["Index", "Wavenumber", "GHz"])
def test_units_of_another_kind_are_no_wavelengths(tmp_path: Path, unit: str) -> None:
    path = write(tmp_path / "a.tif", band_tags=tagged(wavelength_units=unit))
    assert open_raster(path).wavelengths is None


@pytest.mark.parametrize(
    "names",
    [
        [f"band {i} ({w} Nanometers)" for i, w in enumerate(WAVES)],
        [f"channel_{i} ({w})" for i, w in enumerate(WAVES)],
        [f"{w / 1000} um" for w in WAVES],
        [f"R{w}nm" for w in WAVES],
    ],
)
def test_wavelengths_from_descriptions(tmp_path: Path, names: list[str]) -> None:
    path = write(tmp_path / "a.tif")
    with rasterio.open(path, "r+") as file:
        for number, name in enumerate(names, 1):
            file.set_band_description(number, name)
    source = open_raster(path)
    assert source.wavelengths == tuple(WAVES)
    assert source.names == tuple(names)


def test_numbers_that_are_no_wavelengths_are_not_taken_for_any(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    with rasterio.open(path, "r+") as file:
        for number in file.indexes:
            file.set_band_description(number, f"Band {number} ({number})")
    assert open_raster(path).wavelengths is None


@pytest.mark.parametrize(("unit", "factor"), [("Micrometers", 1e-3), ("Unknown", 1.0)])
def test_an_envi_header_in_either_unit(tmp_path: Path, unit: str, factor: float) -> None:
    header = f"wavelength units = {unit}\n"
    header += f"wavelength = {envi_list([w * factor for w in WAVES])}\n"
    header += f"fwhm = {envi_list([10 * factor] * 5)}\n"
    path = write_envi(tmp_path / "a.dat", header=header)
    for given_path in (path, path.with_suffix(".hdr")):
        source = open_raster(given_path)
        assert source.wavelengths == tuple(WAVES)
        assert source.fwhm == (10.0,) * 5


def test_a_folder_takes_wavelengths_from_file_names(tmp_path: Path) -> None:
    for wave in (1000, 450, 99):
        write(tmp_path / f"scene_{wave}nm.tif", CUBE[:1])
    assert open_raster(tmp_path).wavelengths == (99.0, 450.0, 1000.0)


def test_hdf5_as_emit_and_neon_write_it(tmp_path: Path) -> None:
    path = write_hdf5(
        tmp_path / "a.h5", Wavelength=WAVES, fwhm=[9.0] * 5, good_wavelengths=[1.0, 1, 0, 1, 1]
    )
    with h5py.File(path, "a") as file:
        file["cube"].attrs["Scale_Factor"] = 10000.0
        file["cube"].attrs["Data_Ignore_Value"] = float(CUBE[0, 0, 0])
        file["about/Wavelength"].attrs["Units"] = "Nanometers"
    source = open_raster(path)
    assert source.wavelengths == (450, 550, 750, 850)
    assert source.fwhm == (9.0,) * 4
    assert source.dropped == ("band 3 (650.0 nm): marked bad in the file (bbl)",)
    scene = read_all(source)
    assert not scene.valid[0, 0]
    np.testing.assert_allclose(scene.cube[:, 1], CUBE[[0, 1, 3, 4], 1] / 1e4, rtol=1e-6)


MAP_INFO = (
    "UTM,  1.000,  1.000,  325000.00,  4103000.00,  2.000,  2.000,  11,  North,  WGS-84,"
    "  units=Meters"
)


def write_neon(path: Path, **about: Any) -> Path:
    """CUBE in the tree of NEON's reflectance files."""
    with h5py.File(path, "w") as file:
        site = file.create_group("SJER/Reflectance")
        site["Reflectance_Data"] = np.moveaxis(CUBE, 0, 2)
        site["Metadata/Spectral_Data/Wavelength"] = WAVES
        for name, value in about.items():
            site[f"Metadata/Coordinate_System/{name}"] = value
    return path


def test_a_neon_file_is_where_its_map_info_says(tmp_path: Path) -> None:
    path = write_neon(tmp_path / "a.h5", Map_Info=MAP_INFO.encode(), **{"EPSG Code": b"32611"})
    grid = open_raster(path).grid
    assert grid.shape == (40, 33)
    assert grid.transform == Affine(2.0, 0.0, 325000.0, 0.0, -2.0, 4103000.0)
    assert CRS.from_wkt(str(grid.crs)).to_epsg() == 32611
    wkt = CRS.from_epsg(32611).to_wkt()
    path = write_neon(tmp_path / "b.h5", Map_Info=MAP_INFO, Coordinate_System_String=wkt)
    assert CRS.from_wkt(str(open_raster(path).grid.crs)).to_epsg() == 32611
    # The pixel of the coordinates may be another than the first; a turned scene is not guessed at.
    moved = MAP_INFO.replace("UTM,  1.000,  1.000", "UTM, 3, 2")
    assert open_raster(write_neon(tmp_path / "c.h5", Map_Info=moved)).grid.transform == Affine(
        *(2.0, 0.0, 324996.0),
        *(0.0, -2.0, 4103002.0),
    )
    turned = write_neon(tmp_path / "d.h5", Map_Info=f"{MAP_INFO}, rotation=30")
    assert open_raster(turned).grid == Grid((40, 33))
    assert open_raster(write_neon(tmp_path / "e.h5")).grid == Grid((40, 33))


# bad bands, scale and nodata


def test_bad_bands_of_an_envi_list_are_left_out(tmp_path: Path) -> None:
    header = f"bbl = {envi_list([1, 0, 0, 1, 0])}\nwavelength = {envi_list(WAVES)}\n"
    source = open_raster(write_envi(tmp_path / "a.dat", header=header))
    assert source.wavelengths == (450.0, 750.0)
    assert source.dropped == (
        "bands 2-3 (550.0-650.0 nm): marked bad in the file (bbl)",
        "band 5 (850.0 nm): marked bad in the file (bbl)",
    )
    np.testing.assert_array_equal(read_all(source).cube, CUBE[[0, 3]])
    every = open_raster(tmp_path / "a.dat", bands=BandChoice(bad=True))
    assert (every.bands, every.dropped) == (5, ())


def test_bad_bands_by_tag(tmp_path: Path) -> None:
    tags = [{"bbl": flag} for flag in ("1", "0", "1", "1", "0")]
    assert open_raster(write(tmp_path / "a.tif", band_tags=tags)).bands == 3


def test_all_bands_bad_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", band_tags=[{"bbl": "0"}] * 5)
    with pytest.raises(SceneError, match=r"gives 0 \(left out: bands 1-5: marked bad"):
        open_raster(path)


def test_scale_and_offset_are_applied(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (1e-4, 1e-4, 1e-4, 1e-4, 2.0), (0, 0, 0, 0, -3.0)
    cube = read_all(open_raster(path)).cube
    np.testing.assert_allclose(cube[:4], CUBE[:4] * 1e-4, rtol=1e-6)
    np.testing.assert_allclose(cube[4], CUBE[4] * 2.0 - 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("header", "scale", "offset"),
    [
        ("reflectance scale factor = 10000\n", 1e-4, 0.0),
        (f"data gain values = {envi_list([0.5] * 5)}\n", 0.5, 0.0),
        (
            f"data gain values = {envi_list([2] * 5)}\ndata offset values = {envi_list([1] * 5)}\n"
            "reflectance scale factor = 10000\n",
            2.0,
            1.0,
        ),
    ],
)
def test_the_scales_of_envi(tmp_path: Path, header: str, scale: float, offset: float) -> None:
    cube = read_all(open_raster(write_envi(tmp_path / "a.dat", header=header))).cube
    np.testing.assert_allclose(cube, CUBE * scale + offset, rtol=1e-6)


def test_nodata_in_any_band_makes_a_pixel_invalid(tmp_path: Path) -> None:
    cube = CUBE.copy()
    cube[2, 5, 6] = -9999
    cube[:, 7, 8] = -9999
    scene = read_all(open_raster(write(tmp_path / "a.tif", cube, nodata=-9999)))
    assert np.argwhere(~scene.valid).tolist() == [[5, 6], [7, 8]]


def test_each_band_may_have_its_own_nodata(tmp_path: Path) -> None:
    path = write_form(tmp_path, "vrt")
    text, (first, second) = path.read_text("utf-8"), CUBE[:2, 0, 0]
    for number, value in ((1, first), (2, second)):
        band = f'band="{number}"'
        head, tail = text.split(band, 1)
        start, rest = tail.split(">", 1)
        text = f"{head}{band}{start}><NoDataValue>{value}</NoDataValue>{rest}"
    path.write_text(text)
    source = open_raster(path)
    assert [band.nodata for band in source.layers] == [first, second, None, None, None]
    expected = (CUBE[0] == first) | (CUBE[1] == second)
    np.testing.assert_array_equal(~read_all(source).valid, expected)


def test_nodata_in_a_band_that_is_left_out_does_not_count(tmp_path: Path) -> None:
    cube = CUBE.copy()
    cube[2] = -9999
    path = write(tmp_path / "a.tif", cube, nodata=-9999)
    assert not read_all(open_raster(path)).valid.any()
    assert read_all(open_raster(path, bands=BandChoice(drop=(3,)))).valid.all()


def test_nodata_is_compared_before_scaling(tmp_path: Path) -> None:
    header = f"data ignore value = 100\ndata gain values = {envi_list([0.01] * 5)}\n"
    cube = CUBE.copy()
    cube[CUBE == 100] = 101
    cube[0, 0, 0], cube[0, 0, 1] = 100, 10000  # 10000 becomes 100 and is a value
    scene = read_all(open_raster(write_envi(tmp_path / "a.dat", cube, header=header)))
    assert np.argwhere(~scene.valid).tolist() == [[0, 0]]


def test_zeros_are_values_unless_declared_or_asked_for(tmp_path: Path) -> None:
    cube = CUBE.copy()
    cube[:, 0, 0] = 0
    path = write(tmp_path / "a.tif", cube)
    assert read_all(open_raster(path)).valid.all()
    assert np.argwhere(~read_all(open_raster(path, nodata=0)).valid).tolist() == [[0, 0]]
    declared = open_raster(write(tmp_path / "b.tif", cube, nodata=0))
    assert np.argwhere(~read_all(declared).valid).tolist() == [[0, 0]]


def test_the_nodata_asked_for_comes_on_top_of_the_declared(tmp_path: Path) -> None:
    cube = CUBE.copy()
    cube[0, 0, :2] = 0, -1
    source = open_raster(write(tmp_path / "a.tif", cube, nodata=-1), nodata=0)
    assert np.argwhere(~read_all(source).valid).tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("nodata", [None, np.nan, -3.4028234663852886e38, 1e39, -9999.9])
def test_nan_infinity_and_float_fills(tmp_path: Path, nodata: float | None) -> None:
    cube = CUBE.astype(np.float64 if nodata == 1e39 else np.float32)
    cube[1, 2, 3], cube[1, 2, 4] = np.nan, np.inf
    if nodata is not None:
        cube[1, 2, 5] = nodata
    scene = read_all(open_raster(write(tmp_path / "a.tif", cube, nodata=nodata)))
    bad = [[2, 3], [2, 4]] + ([] if nodata is None else [[2, 5]])
    assert np.argwhere(~scene.valid).tolist() == bad
    assert np.isfinite(scene.cube).all()


def test_an_alpha_channel_is_a_mask_and_no_band(tmp_path: Path) -> None:
    cube = np.clip(CUBE, 1, 255).astype(np.uint8)
    cube[4] = 255
    cube[4, 9, 9] = 0
    path = write(tmp_path / "a.tif", cube)
    with rasterio.open(path, "r+") as file:
        file.colorinterp = (ColorInterp.gray, *[ColorInterp.undefined] * 3, ColorInterp.alpha)
    source = open_raster(path)
    assert source.dropped == ("band 5: an alpha channel, read as nodata mask",)
    assert np.argwhere(~read_all(source).valid).tolist() == [[9, 9]]


def test_a_window_without_data_is_a_scene_without_valid_pixels(tmp_path: Path) -> None:
    cube = CUBE.copy()
    cube[:, :10] = 0
    source = open_raster(write(tmp_path / "a.tif", cube, nodata=0))
    assert not source.read(slice(0, 10), slice(0, 33)).valid.any()


# the choice of bands


def test_band_numbers_are_parsed_as_gdal_counts() -> None:
    assert parse_bands("1-3,7, 5 - 6 ,2") == (1, 2, 3, 7, 5, 6)


@pytest.mark.parametrize("text", ["", "0-4", "3-1", "a", "1,,2", "-3", "1-999999999"])
def test_bands_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="bands are numbers from 1"):
        parse_bands(text)


@pytest.mark.parametrize("text", ["", "450", "900-450", "0.45-0.9", "x-y"])
def test_wavelengths_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="wavelengths are"):
        parse_wavelengths(text)


def test_bands_are_chosen_by_number_and_wavelength(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", band_tags=tagged())
    choice = BandChoice(
        keep=parse_bands("2-5"), wavelengths=parse_wavelengths("400-700,850-900"), drop=(2,)
    )
    source = open_raster(path, bands=choice)
    assert source.wavelengths == (650.0, 850.0)
    np.testing.assert_array_equal(read_all(source).cube, CUBE[[2, 4]])
    assert source.dropped == (
        "bands 1-2 (450.0-550.0 nm): not chosen",
        "band 4 (750.0 nm): outside the wavelengths chosen",
    )


def test_choices_that_cannot_be_met(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    with pytest.raises(ConfigError, match="no band 6: the file has bands 1-5"):
        open_raster(path, bands=BandChoice(keep=(1, 6)))
    with pytest.raises(ConfigError, match="the file names none"):
        open_raster(path, bands=BandChoice(wavelengths=((400.0, 900.0),)))
    with pytest.raises(SceneError, match=r"at least 2 bands.*gives 1"):
        open_raster(path, bands=BandChoice(keep=(1,)))


def test_bad_bands_are_found_and_named(tmp_path: Path) -> None:
    cube = CUBE.astype(np.float32)
    cube[1], cube[3] = 7, np.nan
    waves = [450.0, 550.0, 1400.0, 1700.0, 2480.0]
    path = write(tmp_path / "a.tif", cube, band_tags=[{"wavelength": str(w)} for w in waves])
    source = open_raster(path)
    bad = find_bad_bands(source)
    assert bad == {
        2: "constant: 7 wherever it was looked at",
        3: "absorbed by water vapour (1350-1430 nm)",
        4: "nodata wherever it was looked at",
        5: "mostly noise (over 2450 nm)",
    }
    del bad[5]
    better = source.without(bad)
    assert better.wavelengths == (450.0, 2480.0)
    assert better.dropped[0] == "band 2 (550.0 nm): constant: 7 wherever it was looked at"
    assert read_all(better).valid.all()


def test_an_empty_sample_condemns_no_band(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", np.zeros_like(CUBE), nodata=0)
    assert find_bad_bands(open_raster(path)) == {}


def test_a_preview_is_thinned(sources: dict[str, RasterSource]) -> None:
    for source in sources.values():
        thin = source.preview((4, 0, 0), 10)
        assert thin.shape == (10, 9)
        assert set(thin.cube[0].ravel()) <= set(CUBE[4].ravel().astype(np.float32))
        np.testing.assert_array_equal(source.preview((1,), 40).cube[0], CUBE[1])


# matching a model's bands


@pytest.fixture
def sensor(tmp_path: Path) -> RasterSource:
    """24 bands 10 nm apart."""
    cube = np.arange(24, dtype=np.int16)[:, None, None] * np.ones((1, 2, 2), dtype=np.int16)
    tags = [{"wavelength": str(400.0 + 10 * i)} for i in range(24)]
    return open_raster(write(tmp_path / "sensor.tif", cube, band_tags=tags))


def own(*bands: int) -> tuple[tuple[int, int, float], ...]:
    """Bands that are taken as they are."""
    return tuple((band, band, 0.0) for band in bands)


def test_bands_are_matched_by_wavelength(sensor: RasterSource) -> None:
    chosen, message = match_bands([603.0, 401.5, 500.0], sensor)
    assert chosen == own(20, 0, 10)
    assert message == "the model has 3 bands, the scene 24; matched within 3.0 nm"
    taken = sensor.blend(chosen, (603.0, 401.5, 500.0))
    assert taken.wavelengths == (600.0, 400.0, 500.0)
    assert read_all(taken).cube[:, 0, 0].tolist() == [20, 0, 10]


def test_each_band_is_matched_once(sensor: RasterSource) -> None:
    # Both are nearest to 500; the second goes to 510 rather than share it.
    assert match_bands([500.0, 504.5], sensor, tolerance=6)[0] == own(10, 11)


def test_a_missing_band_is_interpolated_from_its_neighbours(sensor: RasterSource) -> None:
    wanted = (400.0, 503.0, 500.0)  # 503 has no band of its own: 500 goes to the other
    picks, message = match_bands(wanted, sensor)
    assert picks[0] == (0, 0, 0.0)
    assert picks[2] == (10, 10, 0.0)
    assert picks[1][:2] == (10, 11)
    assert picks[1][2] == pytest.approx(0.3)
    assert message.endswith("matched within 0.0 nm; 503.0 nm interpolated from their neighbours")
    blended = sensor.blend(picks, wanted)
    assert blended.bands == 3
    assert blended.wavelengths == wanted
    assert blended.read(slice(0, 1), slice(0, 1)).cube[:, 0, 0].tolist() == pytest.approx(
        [0, 10.3, 10]
    )
    assert blended.preview((1, 0, 2), 10).cube[:, 0, 0].tolist() == [10, 0, 10]
    gone = sensor.without(dict.fromkeys((8, 9, 10, 11, 12), "bad"))  # 470 to 510 nm
    assert match_bands([400.0, 490.0], gone)[0][1][:2] == (6, 7)
    with pytest.raises(ModelError, match=r"nor bands within 30 nm on both sides .*: 490.0 nm"):
        match_bands([400.0, 490.0], gone.without({13: "bad"}))


def test_overlapping_detectors_do_not_tighten_the_tolerance(tmp_path: Path) -> None:
    waves = np.sort(np.r_[400.0:500:10, 460.2:560:10])
    cube = np.ones((len(waves), 2, 2), dtype=np.int16)
    tags = [{"wavelength": str(w)} for w in waves]
    source = open_raster(write(tmp_path / "a.tif", cube, band_tags=tags))
    chosen, _ = match_bands((waves + 0.15).tolist(), source)
    assert chosen == own(*range(len(waves)))


def test_bands_without_a_match_are_named(sensor: RasterSource) -> None:
    with pytest.raises(ModelError, match=r"4 bands, the scene 24; 2 of .*: 700.0, 710.0 nm"):
        match_bands([400.0, 700.0, 410.0, 710.0], sensor)
    with pytest.raises(ModelError, match=r"640.0, 645.0, 650.0, 655.0, \.\.\. nm"):
        match_bands([640.0 + 5 * i for i in range(6)], sensor)


def test_without_wavelengths_only_the_count_can_match(tmp_path: Path) -> None:
    source = open_raster(write(tmp_path / "a.tif"))
    chosen, message = match_bands(WAVES, source)
    assert chosen == own(0, 1, 2, 3, 4)
    assert "matched by position" in message
    assert match_bands(None, source, bands=5)[0] == chosen
    with pytest.raises(ModelError, match="4 bands, the scene 5, and the scene's wavelengths"):
        match_bands(WAVES[:4], source)
    with pytest.raises(ModelError, match="7 bands, the scene 5, and the model's wavelengths"):
        match_bands(None, source, bands=7)


# files that cannot be used


@pytest.mark.parametrize("form", ["tif", "cog", "dat", "h5", "h5-last", "nc-first", "netcdf3"])
@pytest.mark.parametrize("keep", [0, 3, 200, -40])
def test_truncated_files_are_refused(tmp_path: Path, form: str, keep: int) -> None:
    path = write_form(tmp_path, form)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileError, match=r"a.(tif|cog|dat|h5|nc)"):
        read_all(open_raster(path))


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no file"):
        open_raster(tmp_path / "none.tif")


def test_a_file_that_is_no_raster(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_text("a cube, I promise")
    with pytest.raises(FileError, match=r"cannot open .*a.tif"):
        open_raster(tmp_path / "a.tif")


def test_a_header_without_its_data(tmp_path: Path) -> None:
    path = write_envi(tmp_path / "a.dat")
    path.unlink()
    with pytest.raises(FileError, match=r"a.hdr has no data file beside it"):
        open_raster(tmp_path / "a.hdr")


def test_data_without_its_header(tmp_path: Path) -> None:
    path = write_envi(tmp_path / "a.dat")
    path.with_suffix(".hdr").unlink()
    with pytest.raises(FileError, match=r"needs its .hdr beside it"):
        open_raster(path)


def test_one_band_is_no_scene(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match=r"at least 2 bands; .*one.tif gives 1"):
        open_raster(write(tmp_path / "one.tif", CUBE[:1]))


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match=r"real numbers; .* holds complex64"):
        open_raster(write(tmp_path / "a.tif", CUBE.astype(np.complex64)))


def test_several_cubes_are_listed(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "a.h5", axis=0, other=CUBE + 1, flat=CUBE[0])
    with pytest.raises(FileError, match=r"several cubes.*about/other \(5, 40, 33\), cube \(5, "):
        open_raster(path)
    for name in ("about/other", "/about/other", "other"):
        np.testing.assert_array_equal(read_all(open_raster(path, variable=name)).cube, CUBE + 1)
    with pytest.raises(FileError, match="has no one cube 'flat'"):
        open_raster(path, variable="flat")


def test_several_cubes_of_an_old_netcdf_are_listed(tmp_path: Path) -> None:
    write_netcdf3(tmp_path / "a.nc", one=CUBE, two=CUBE + 1)
    with pytest.raises(FileError, match=r"one \(5, 40, 33\), two \(5, 40, 33\)"):
        open_raster(tmp_path / "a.nc")
    source = open_raster(tmp_path / "a.nc", variable="two")
    assert source.wavelengths == tuple(WAVES)
    assert source.grid.transform[:6] == (10.0, 0.0, -5.0, 0.0, -10.0, 1005.0)
    np.testing.assert_array_equal(read_all(source).cube, CUBE + 1)


def test_an_old_netcdf_without_coordinates_is_not_turned_upside_down(tmp_path: Path) -> None:
    with scipy.io.netcdf_file(tmp_path / "a.nc", "w") as file:
        for name, length in zip(("band", "row", "column"), CUBE.shape, strict=True):
            file.createDimension(name, length)
        file.createVariable("cube", "i2", ("band", "row", "column"))[:] = CUBE
    np.testing.assert_array_equal(read_all(open_raster(tmp_path / "a.nc")).cube, CUBE)


def test_an_axis_that_cannot_be_told_is_not_guessed(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "a.h5", axis=2)
    with pytest.raises(SceneError, match=r"which axis of cube \(40, 33, 5\)"):
        open_raster(path)
    np.testing.assert_array_equal(read_all(open_raster(path, axis="last")).cube, CUBE)


def test_folders_that_are_no_scene(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no raster file"):
        open_raster(tmp_path)
    write(tmp_path / "a.tif", CUBE[:1])
    write(tmp_path / "b.tif", CUBE[:1, 1:])
    with pytest.raises(SceneError, match=r"b.tif \(39, 33\) and a.tif \(40, 33\)"):
        open_raster(tmp_path)
    write(tmp_path / "b.tif", CUBE[:2])
    with pytest.raises(FileError, match=r"b.tif has 2: give that file itself"):
        open_raster(tmp_path)


def test_a_scene_that_is_held_is_read_once_and_gives_the_same(tmp_path: Path) -> None:
    plain = open_raster(write(tmp_path / "a.tif"))
    held = plain.hold()
    (tmp_path / "a.tif").unlink()
    window = slice(3, 9), slice(5, 20)
    np.testing.assert_array_equal(held.read(*window).cube, CUBE[:, 3:9, 5:20])
    assert held.hold() is held
    assert pickle.loads(pickle.dumps(held)).held is None  # workers open the file themselves
    assert held.take([1, 0]).held is None
