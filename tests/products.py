"""Small products in the very form in which agencies deliver them, with the quirks users report.

Written from the public descriptions of the formats; no file of a real product was at hand.
`python tests/products.py FOLDER` writes all of them, to look at.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas
import h5py
import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from pyproj import CRS

from thonecls.datasets import synthetic

UTM = 32633
CORNER = (364080.0, 5809980.0)
SHAPE = (48, 42)
LABELS = 40

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Made:
    """A product, labels of one class on it, and what a reader must make of it.

    values: (C, H, W) reflectance of the bands to be used, NaN where there are no data; waves: their
    wavelengths in nm; grid: shape, transform and EPSG code of its map.
    """

    scene: Path
    labels: Path
    values: Array
    waves: list[float]
    grid: tuple[tuple[int, int], Affine, int]


def ground(bands: int, shape: tuple[int, int] = SHAPE) -> tuple[Array, Array]:
    """Reflectance of a small place, (bands, H, W), and the class of each pixel."""
    data = synthetic(height=shape[0], width=shape[1], bands=bands, seed=5)
    return np.clip(0.3 + 0.06 * data.scene.cube.astype(np.float64), 0.05, 0.6), data.truth


def write_labels(path: Path, truth: Array, transform: Affine, crs: int) -> Path:
    """Points of class 1 in longitude and latitude; truth: on the map, 0 where there is nothing."""
    rng = np.random.default_rng(0)
    pixels = rng.choice(np.flatnonzero(truth == 1), LABELS, replace=False)
    rows, columns = np.divmod(pixels, truth.shape[1])
    x, y = _apply(transform, columns, rows)
    points = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(x, y), crs=crs)
    points.to_crs(4326).to_file(path, driver="GPKG")
    return path


def _apply(transform: Affine, columns: Array, rows: Array) -> tuple[Array, Array]:
    a, b, c, d, e, f = transform[:6]
    x, y = columns + 0.5, rows + 0.5
    return a * x + b * y + c, d * x + e * y + f


def write_tif(
    path: Path, cube: Array, transform: Affine, nodata: float | None = None, **profile: Any
) -> Path:
    """A raster of (C, H, W) in UTM."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count, height, width = cube.shape
    shape = {"count": count, "height": height, "width": width, "dtype": cube.dtype.name}
    place = {"crs": f"EPSG:{UTM}", "transform": transform}
    with rasterio.open(
        path, "w", nodata=nodata, **{"driver": "GTiff"} | shape | place | profile
    ) as f:
        f.write(cube)
    return path


def north_up(size: float) -> Affine:
    return Affine(size, 0.0, CORNER[0], 0.0, -size, CORNER[1])


# EMIT


def emit(folder: Path, name: str = "EMIT_L2A_RFL_001_20230316T045133_2307503_005.nc") -> Made:
    """Reflectance in the geometry of the sensor, its GLT, and the file of masks beside it.

    The GLT counts from 1 and is 0 where there is nothing; some pixels that fill gaps are negative,
    some entries are fills out of any range. Bands without light are -0.01 and not good.
    """
    cube, truth = ground(12)
    waves = [381.0, 450.0, 520.0, 590.0, 660.0, 730.0, 800.0, 870.0, 1100.0, 1380.0, 1400.0, 1650.0]
    good = [w not in (1380.0, 1400.0) for w in waves]
    cube[[i for i, g in enumerate(good) if not g]] = -0.01
    image = np.moveaxis(cube, 0, 2).astype(np.float32)
    image[:2, :3] = -9999.0
    glt = rotated_glt(SHAPE, 0.3)
    glt[:, 20, 30] *= -1
    glt[:, 21, 31] = -9999
    path = write_emit(folder / name, image, waves, good, glt)
    cloud = np.zeros((*SHAPE, 8), np.float32)
    cloud[40:44, 5:9, 0] = 1  # cloud
    cloud[30:34, 5:9, 2] = 1  # water: no reason to leave a pixel out
    with h5py.File(folder / name.replace("RFL", "MASK"), "w") as file:
        file["mask"] = cloud
        names = ["Cloud flag", "Cirrus flag", "Water flag", "Spacecraft Flag"]
        names += ["Dilated Cloud Flag", "AOD550", "H2O (g cm-2)", "Aggregate Flag"]
        file["sensor_band_parameters/mask_bands"] = np.array(names, dtype=object)
    transform, epsg = emit_place()
    rows, columns = np.abs(glt[1]) - 1, np.abs(glt[0]) - 1
    shown = (np.abs(glt[0]) > 0) & (np.abs(glt[0]) < 9999)
    on_map = np.where(shown, truth[np.where(shown, rows, 0), np.where(shown, columns, 0)], 0)
    values = cube[good]
    values[:, :2, :3] = np.nan
    values[:, 40:44, 5:9] = np.nan
    labels = write_labels(folder / "labels.gpkg", on_map, transform, epsg)
    kept = [w for w, g in zip(waves, good, strict=True) if g]
    return Made(path, labels, values, kept, ((glt.shape[1], glt.shape[2]), transform, epsg))


def emit_place() -> tuple[Affine, int]:
    return Affine(0.000542, 0.0, 13.0, 0.0, -0.000542, 52.4), 4326


def rotated_glt(shape: tuple[int, int], angle: float) -> NDArray[np.int32]:
    """Columns and rows, from 1, of an image that was taken on a flight at an angle to north."""
    height, width = shape
    cos, sin = np.cos(angle), np.sin(angle)
    tall, wide = int(height * cos + width * sin) + 3, int(width * cos + height * sin) + 3
    y, x = np.mgrid[:tall, :wide].astype(float)
    y, x = y - (tall - 1) / 2, x - (wide - 1) / 2
    rows = np.rint(cos * y - sin * x + (height - 1) / 2).astype(np.int32)
    columns = np.rint(sin * y + cos * x + (width - 1) / 2).astype(np.int32)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.where(inside, np.stack([columns, rows]) + 1, 0).astype(np.int32)


def write_emit(
    path: Path, image: Array, waves: Sequence[float], good: Sequence[bool], glt: Array
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    transform, epsg = emit_place()
    a, b, c, d, e, f = transform[:6]
    with h5py.File(path, "w") as file:
        cube = file.create_dataset("reflectance", data=image, chunks=True, compression="gzip")
        cube.attrs["_FillValue"] = np.float32(-9999)
        group = file.create_group("sensor_band_parameters")
        group["wavelengths"] = np.array(waves, np.float32)
        group["wavelengths"].attrs["units"] = "nm"
        group["fwhm"] = np.full(len(waves), 8.5, np.float32)
        group["good_wavelengths"] = np.array(good, np.float32)
        place = file.create_group("location")
        place["lat"], place["lon"] = (np.zeros(image.shape[:2]) for _ in range(2))
        place["elev"] = np.zeros(image.shape[:2])
        place["glt_x"], place["glt_y"] = glt
        file.attrs["geotransform"] = np.array([c, a, b, f, d, e])
        file.attrs["spatial_ref"] = CRS.from_epsg(epsg).to_wkt("WKT1_GDAL")
    return path


# PRISMA


def prisma(folder: Path) -> Made:
    """Both cubes backwards, with zeros for bands that are not used; a place without data."""
    vnir = [402.4, 500.1, 600.2, 700.3, 800.4, 900.5, 950.6, 977.4]
    swir = [943.4, 1008.2, 1250.8, 1394.5, 1650.0, 2200.0]
    cube, truth = ground(len(vnir) + len(swir))
    dark = len(vnir) + swir.index(1394.5)
    cube[dark, 10:20] = 0.0  # no light, but data
    cube[:, :3, :5] = 0.0  # background: 0 in all bands
    path = folder / "PRS_L2D_STD_20201214060713_20201214060717_0001.he5"
    with h5py.File(path, "w") as file:
        fields = file.create_group("HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields")
        scales = {"Vnir": (0.0, 0.9), "Swir": (0.0, 0.7)}
        for name, waves, part, unused in (
            ("Vnir", vnir, cube[: len(vnir)], 3),
            ("Swir", swir, cube[len(vnir) :], 2),
        ):
            low, high = scales[name]
            raw = np.rint((part - low) / (high - low) * 65535).astype(np.uint16)
            raw = np.concatenate([raw[::-1], np.zeros((unused, *SHAPE), np.uint16)])
            fields[f"{name.upper()}_Cube"] = np.moveaxis(raw, 0, 1)
            fields[f"{name.upper()}_PIXEL_L2_ERR_MATRIX"] = np.zeros((2, 2, 2), np.uint8)
            file.attrs[f"List_Cw_{name}"] = np.array(waves[::-1] + [0.0] * unused, np.float32)
            file.attrs[f"List_Fwhm_{name}"] = np.array([10.0] * len(waves) + [0.0] * unused, "f4")
            flags = [1] * len(waves) + [0] * unused
            file.attrs[f"List_Cw_{name}_Flags"] = np.array(flags, np.uint8)
            file.attrs[f"L2Scale{name}Min"], file.attrs[f"L2Scale{name}Max"] = low, high
        file.attrs["Epsg_Code"] = UTM
        file.attrs["Product_ULcorner_easting"] = CORNER[0] + 15  # the centre of a pixel
        file.attrs["Product_ULcorner_northing"] = CORNER[1] - 15
        file.attrs["Product_LRcorner_easting"] = CORNER[0] + 30 * SHAPE[1] - 15
        file.attrs["Product_LRcorner_northing"] = CORNER[1] - 30 * SHAPE[0] + 15
    kept = [i for i, w in enumerate(vnir) if w < swir[0]] + [
        len(vnir) + i for i in range(len(swir))
    ]
    values = cube[kept]
    values[:, :3, :5] = np.nan
    truth = np.where(np.isnan(values[0]), 0, truth)
    labels = write_labels(folder / "labels.gpkg", truth, north_up(30), UTM)
    waves = [(vnir + swir)[i] for i in kept]
    return Made(path, labels, values, waves, (SHAPE, north_up(30), UTM))


# EnMAP and DESIS


def enmap(folder: Path) -> Made:
    """Detectors that overlap, a channel that is not expected, one without data, three masks."""
    waves = [420.0, 550.0, 650.0, 850.0, 920.0, 990.0, 902.0, 960.0, 1050.0, 1390.0, 1650.0, 2200.0]
    missing, empty = 10, 8  # channels: not expected, and empty though expected
    cube, truth = ground(len(waves))
    scene = folder / "ENMAP01-____L2A-DT0000004950_20221103T162438Z_001_V010110_20221118T145147Z"
    raw = np.rint(cube * 1e4).astype(np.int16)
    raw[[missing - 1, empty - 1]] = -32768
    raw[:, :4, :4] = -32768
    stem = f"{scene}/{scene.name}"
    write_tif(Path(f"{stem}-SPECTRAL_IMAGE.TIF"), raw, north_up(30), -32768)
    masks = {name: np.zeros((1, *SHAPE), np.uint8) for name in ("CLOUD", "CLOUDSHADOW", "CIRRUS")}
    masks["CLOUD"][0, 20:23, 20:23] = 1
    masks["CLOUDSHADOW"][0, 25:27, 20:23] = 1
    masks["CIRRUS"][0, 30:32, 20:23] = 3
    masks["CIRRUS"][0, 32:34, 20:23] = 1  # thin: of use
    for name, mask in masks.items():
        write_tif(Path(f"{stem}-QL_QUALITY_{name}.TIF"), mask, north_up(30))
    write_tif(Path(f"{stem}-QL_VNIR.TIF"), np.zeros((3, *SHAPE), np.uint8), north_up(30))
    entries = "".join(
        f'<bandID number="{i}"><wavelengthCenterOfBand>{w}</wavelengthCenterOfBand>'
        "<FWHMOfBand>8.1</FWHMOfBand><GainOfBand>0.0001</GainOfBand>"
        "<OffsetOfBand>0</OffsetOfBand></bandID>"
        for i, w in enumerate(waves, 1)
    )
    expected = [str(i) for i in range(1, len(waves) + 1) if i != missing]
    Path(f"{stem}-METADATA.XML").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><level_X xmlns:xsi="http://x.org"><specific>'
        f"<backgroundValue>-32768</backgroundValue><bandCharacterisation>{entries}"
        "</bandCharacterisation><vnirProductQuality><expectedChannelsList>"
        f"{','.join(expected[:6])}</expectedChannelsList></vnirProductQuality>"
        f"<swirProductQuality><expectedChannelsList>{','.join(expected[6:])}"
        "</expectedChannelsList></swirProductQuality></specific></level_X>"
    )
    kept = [0, 1, 2, 3, 6, 8, 10, 11]  # 920 and 990 nm are seen by the second detector too
    values = np.rint(cube[kept] * 1e4) / 1e4
    bad = masks["CLOUD"][0] + masks["CLOUDSHADOW"][0] + (masks["CIRRUS"][0] > 1) > 0
    bad[:4, :4] = True
    values[:, bad] = np.nan
    labels = write_labels(folder / "labels.gpkg", np.where(bad, 0, truth), north_up(30), UTM)
    return Made(scene, labels, values, [waves[i] for i in kept], (SHAPE, north_up(30), UTM))


def desis(folder: Path) -> Made:
    """The same family: other names in the metadata, one file of ten quality bands."""
    waves = [402.8, 480.0, 560.0, 640.0, 720.0, 800.0, 880.0, 998.0]
    cube, truth = ground(len(waves))
    scene = folder / "DESIS-HSI-L2A-DT0865788448_017-20230607T153935-V0220"
    raw = np.rint(cube * 1e4).astype(np.int16)
    raw[:, -3:] = -32768
    stem = f"{scene}/{scene.name}"
    write_tif(Path(f"{stem}-SPECTRAL_IMAGE.tif"), raw, north_up(30), -32768, interleave="pixel")
    quality = np.zeros((10, *SHAPE), np.uint8)
    quality[5, 10:14, 10:14] = 1
    quality[6, 14:16, 10:14] = 1
    quality[0, 30:34, 10:14] = 1  # shadow: of use
    write_tif(Path(f"{stem}-QL_QUALITY-2.tif"), quality, north_up(30))
    write_tif(Path(f"{stem}-QL_QUALITY.tif"), np.zeros_like(raw, np.uint8), north_up(30))
    entries = "".join(
        f"<band><bandNumber>{i}</bandNumber><wavelengthCenterOfBand>{w}</wavelengthCenterOfBand>"
        "<wavelengthWidthOfBand>2.5</wavelengthWidthOfBand><response>0.1,1</response>"
        "<gainOfBand>0.0001</gainOfBand><offsetOfBand>0</offsetOfBand></band>"
        for i, w in enumerate(waves, 1)
    )
    Path(f"{stem}-METADATA.xml").write_text(
        f"<hsi_doc><specific><bandCharacterisation>{entries}</bandCharacterisation>"
        "<interiorOrientation><band><bandNumber>1</bandNumber></band></interiorOrientation>"
        "</specific></hsi_doc>"
    )
    values = np.rint(cube * 1e4) / 1e4
    values[:, -3:] = values[:, 10:16, 10:14] = np.nan
    truth = np.where(np.isnan(values[0]), 0, truth)
    labels = write_labels(folder / "labels.gpkg", truth, north_up(30), UTM)
    image = Path(f"{stem}-SPECTRAL_IMAGE.tif")  # the image may be named as well as the folder
    return Made(image, labels, values, waves, (SHAPE, north_up(30), UTM))


# AVIRIS


def aviris_envi(folder: Path) -> Made:
    """AVIRIS-NG: ENVI on a grid along the flight, turned from north."""
    waves = [376.0 + 100 * i for i in range(10)]
    cube, truth = ground(len(waves))
    image = cube.astype("<f4")
    image[:, :, :3] = -9999
    path = folder / "ang20220224t210144_rfl_v2aa1_img"
    np.moveaxis(image, 0, 1).tofile(path)  # band interleaved by line
    numbers = ", ".join(f"{w:.2f}" for w in waves)
    path.with_name(f"{path.name}.hdr").write_text(
        f"ENVI\nsamples = {SHAPE[1]}\nlines = {SHAPE[0]}\nbands = {len(waves)}\n"
        "header offset = 0\nfile type = ENVI Standard\ndata type = 4\ninterleave = bil\n"
        f"byte order = 0\nmap info = {{UTM, 1, 1, {CORNER[0]}, {CORNER[1]}, 5.0, 5.0, 33, North, "
        "WGS-84, units=Meters, rotation=-50.0}\nwavelength units = Nanometers\n"
        f"wavelength = {{{numbers}}}\nfwhm = {{{', '.join(['5.0'] * len(waves))}}}\n"
        "data ignore value = -9999\n"
    )
    with rasterio.open(path) as file:
        transform = file.transform
    values = cube.copy()
    values[:, :, :3] = np.nan
    truth = np.where(np.isnan(values[0]), 0, truth)
    labels = write_labels(folder / "labels.gpkg", truth, transform, UTM)
    return Made(path, labels, values, waves, (SHAPE, transform, UTM))


def aviris3(folder: Path) -> Made:
    """AVIRIS-3: NetCDF with the cube in a group and the coordinates at the root."""
    waves = [390.0 + 200 * i for i in range(10)]
    cube, truth = ground(len(waves))
    image = cube.astype(np.float32)
    image[:, :4, :4] = -9999
    path = folder / "AV320231005t181518_000_L2A_OE_f576f24d_RFL_ORT.nc"
    with h5py.File(path, "w") as file:
        group = file.create_group("reflectance")
        group["reflectance"] = image
        group["wavelength"] = np.array(waves, np.float32)
        group["wavelength"].attrs["units"] = "nanometers"
        group["fwhm"] = np.full(len(waves), 7.4, np.float32)
        file["easting"] = CORNER[0] + 4.0 * (np.arange(SHAPE[1]) + 0.5)
        file["northing"] = CORNER[1] - 4.0 * (np.arange(SHAPE[0]) + 0.5)
        file["transverse_mercator"] = np.array(b"", "S1")
        file["transverse_mercator"].attrs["crs_wkt"] = CRS.from_epsg(UTM).to_wkt()
        names = (group["wavelength"], file["northing"], file["easting"])
        for i, scale in enumerate(names):
            scale.make_scale()
            group["reflectance"].dims[i].attach_scale(scale)
        group["reflectance"].attrs["_FillValue"] = np.float32(-9999)
        group["reflectance"].attrs["grid_mapping"] = "transverse_mercator"
    values = cube.copy()
    values[:, :4, :4] = np.nan
    truth = np.where(np.isnan(values[0]), 0, truth)
    labels = write_labels(folder / "labels.gpkg", truth, north_up(4), UTM)
    return Made(path, labels, values, waves, (SHAPE, north_up(4), UTM))


# NEON


def neon(folder: Path) -> Made:
    """A tile with windows of absorption, and a picture in colour that is a cube of three axes."""
    waves = [450.0, 550.0, 650.0, 850.0, 1050.0, 1380.0, 1650.0, 1850.0, 2200.0]
    cube, truth = ground(len(waves))
    raw = np.rint(cube * 1e4).astype(np.int16)
    raw[:, :, -3:] = -9999
    path = folder / "NEON_D17_SJER_DP3_254000_4108000_reflectance.h5"
    with h5py.File(path, "w") as file:
        site = file.create_group("SJER/Reflectance")
        site.attrs["Band_Window_1_Nanometers"] = np.array([1340, 1445])
        site.attrs["Band_Window_2_Nanometers"] = np.array([1790, 1955])
        site["Reflectance_Data"] = np.moveaxis(raw, 0, 2)
        site["Reflectance_Data"].attrs["Scale_Factor"] = 10000.0
        site["Reflectance_Data"].attrs["Data_Ignore_Value"] = -9999.0
        about = site.create_group("Metadata")
        about["Spectral_Data/Wavelength"] = np.array(waves)
        about["Spectral_Data/Wavelength"].attrs["Units"] = "Nanometers"
        about["Spectral_Data/FWHM"] = np.full(len(waves), 5.8)
        place = f"UTM, 1.000, 1.000, {CORNER[0]}, {CORNER[1]}, 1.0, 1.0, 33, North, WGS-84"
        about["Coordinate_System/Map_Info"] = f"{place}, units=Meters".encode()
        about["Coordinate_System/EPSG Code"] = str(UTM).encode()
        about["Ancillary_Imagery/Weather_Quality_Indicator"] = np.zeros((*SHAPE, 3), np.uint8)
    kept = [i for i, w in enumerate(waves) if w not in (1380.0, 1850.0)]
    values = np.rint(cube[kept] * 1e4) / 1e4
    values[:, :, -3:] = np.nan
    truth = np.where(np.isnan(values[0]), 0, truth)
    labels = write_labels(folder / "labels.gpkg", truth, north_up(1), UTM)
    return Made(path, labels, values, [waves[i] for i in kept], (SHAPE, north_up(1), UTM))


# Sentinel-2

S2_SHAPE = (60, 48)  # pixels of 10 m
S2_SIZES = {
    **dict.fromkeys(("B02", "B03", "B04", "B08"), 10),
    **dict.fromkeys(("B05", "B06", "B07", "B8A", "B11", "B12"), 20),
    **dict.fromkeys(("B01", "B09", "B10"), 60),
}
S2_WAVES = {
    **{"B01": 442.7, "B02": 492.7, "B03": 559.8, "B04": 664.6, "B05": 704.1, "B06": 740.5},
    **{"B07": 782.8, "B08": 832.8, "B8A": 864.7, "B09": 945.1, "B10": 1373.5, "B11": 1613.7},
    "B12": 2202.4,
}


def sentinel2(folder: Path, level: str = "L2A") -> Made:
    """A SAFE folder of processing baseline 04.00: an offset, and 0 for no data all the same."""
    names = [name for name in S2_WAVES if level == "L1C" or name != "B10"]
    fine, truth = ground(len(names), S2_SHAPE)
    safe = folder / f"S2A_MSI{level}_20220516T015649_N0400_R117_T33UVU_20220516T050131.SAFE"
    granule = safe / "GRANULE" / f"{level}_T33UVU_A036029_20220516T015649"
    values = np.empty_like(fine)
    for i, name in enumerate(names):
        size = S2_SIZES[name]
        n = size // 10
        small = fine[i].reshape(S2_SHAPE[0] // n, n, S2_SHAPE[1] // n, n).mean(axis=(1, 3))
        raw = np.rint(small * 1e4 + 1000).astype(np.uint16)
        raw[: 6 // n if n < 6 else 1, : 6 // n if n < 6 else 1] = 0
        values[i] = np.kron(raw.astype(float), np.ones((n, n)))
        folder_of = f"R{size}m" if level == "L2A" else ""
        ending = f"_{size}m" if level == "L2A" else ""
        path = granule / "IMG_DATA" / folder_of / f"T33UVU_20220516T015649_{name}{ending}.jp2"
        write_jp2(path, raw[None], size)
    missing = (values == 0).any(axis=0)
    values = (values - 1000) / 1e4
    if level == "L2A":  # bands that are delivered once more, coarser
        coarse = np.full((1, 10, 8), 2000, np.uint16)
        write_jp2(granule / "IMG_DATA/R60m/T33UVU_20220516T015649_B02_60m.jp2", coarse, 60)
        classes = np.full((30, 24), 4, np.uint8)
        classes[10:12, 10:12], classes[14:16, 10:12] = 9, 6  # cloud, and water, which is of use
        classes[18:20, 10:12] = 3  # cloud shadow
        write_jp2(granule / "IMG_DATA/R20m/T33UVU_20220516T015649_SCL_20m.jp2", classes[None], 20)
        missing |= np.kron(np.isin(classes, (3, 9)), np.ones((2, 2))) > 0
    else:
        clouds = np.zeros((3, 10, 8), np.uint8)
        clouds[0, 3, 3], clouds[1, 5, 3], clouds[2, 7, 3] = 1, 1, 1  # opaque, cirrus, snow
        write_jp2(granule / "QI_DATA/MSK_CLASSI_B00.jp2", clouds, 60)
        missing |= np.kron(clouds[0] | clouds[1], np.ones((6, 6))) > 0
    (safe / f"MTD_MSI{level}.xml").write_text(s2_metadata(level))
    kept = [i for i, name in enumerate(names) if name != "B10"]
    values = values[kept]
    values[:, missing] = np.nan
    labels = write_labels(folder / "labels.gpkg", np.where(missing, 0, truth), north_up(10), UTM)
    waves = [S2_WAVES[names[i]] for i in kept]
    return Made(safe, labels, values, waves, (S2_SHAPE, north_up(10), UTM))


def write_jp2(path: Path, cube: Array, size: float) -> Path:
    lossless: dict[str, Any] = {
        "QUALITY": "100",
        "REVERSIBLE": "YES",
        "YCBCR420": "NO",
        "YCC": "NO",
    }
    return write_tif(path, cube, north_up(size), driver="JP2OpenJPEG", **lossless)


def s2_metadata(level: str) -> str:
    kind, add = ("BOA", "BOA") if level == "L2A" else ("", "RADIO")
    quantity = f"{kind}_QUANTIFICATION_VALUE".strip("_")
    offsets = "".join(
        f'<{add}_ADD_OFFSET band_id="{i}">-1000</{add}_ADD_OFFSET>' for i in range(13)
    )
    bands = "".join(
        f'<Spectral_Information bandId="{i}" physicalBand="{name.replace("B0", "B")}"><Wavelength>'
        f'<MIN unit="nm">{wave - 10}</MIN><MAX unit="nm">{wave + 10}</MAX>'
        f'<CENTRAL unit="nm">{wave}</CENTRAL></Wavelength></Spectral_Information>'
        for i, (name, wave) in enumerate(S2_WAVES.items())
    )
    return (
        f'<n1:Level-{level[1:]}_User_Product xmlns:n1="https://psd-14.sentinel2.eo.esa.int">'
        "<n1:General_Info><Product_Image_Characteristics>"
        "<Special_Values><SPECIAL_VALUE_TEXT>NODATA</SPECIAL_VALUE_TEXT>"
        "<SPECIAL_VALUE_INDEX>0</SPECIAL_VALUE_INDEX></Special_Values>"
        f"<{quantity}>10000</{quantity}><{add}_ADD_OFFSET_VALUES_LIST>{offsets}"
        f"</{add}_ADD_OFFSET_VALUES_LIST><Spectral_Information_List>{bands}"
        "</Spectral_Information_List></Product_Image_Characteristics></n1:General_Info>"
        f"</n1:Level-{level[1:]}_User_Product>"
    )


def sentinel2_l1c(folder: Path) -> Made:
    return sentinel2(folder, "L1C")


def s2_gml(path: Path, polygons: Sequence[tuple[str, Sequence[Sequence[float]]]]) -> Path:
    """A mask of before baseline 04.00: the kind of each polygon, its ring, and those of its holes.

    Some coordinates have heights.
    """

    def ring(corners: Sequence[float], size: int) -> str:
        points = np.array(corners, dtype=float).reshape(-1, 2)
        if size == 3:
            points = np.column_stack([points, np.full(len(points), 142.25)])
        numbers = " ".join(
            f"{number:g}" if number == int(number) else str(number) for number in points.ravel()
        )
        return (
            f'<gml:LinearRing><gml:posList srsDimension="{size}">{numbers}</gml:posList>'
            "</gml:LinearRing>"
        )

    features = ""
    for i, (kind, (outer, *holes)) in enumerate(polygons):
        inner = "".join(f"<gml:interior>{ring(h, 2 + i % 2)}</gml:interior>" for h in holes)
        features += (
            f'<eop:MaskFeature gml:id="{kind}.{i}"><eop:maskType '
            f'codeSpace="urn:gs2:S2PDGS:maskType">{kind}</eop:maskType><eop:extentOf>'
            f'<gml:Polygon gml:id="{kind}.{i}_Polygon"><gml:exterior>{ring(outer, 2 + i % 2)}'
            f"</gml:exterior>{inner}</gml:Polygon></eop:extentOf></eop:MaskFeature>"
        )
    members = f"<eop:maskMembers>{features}</eop:maskMembers>" if features else ""
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?><eop:Mask xmlns:eop="http://www.opengis.net/eop/2.0"'
        ' xmlns:gml="http://www.opengis.net/gml/3.2" gml:id="S2A_OPER_MSK_CLOUDS">'
        f'<gml:boundedBy><gml:Envelope srsName="urn:ogc:def:crs:EPSG:8.7:{UTM}"/></gml:boundedBy>'
        f"{members}</eop:Mask>"
    )
    return path


# Landsat

OLI = {1: 443.0, 2: 482.0, 3: 561.5, 4: 654.5, 5: 865.0, 6: 1608.5, 7: 2200.5}


def landsat(folder: Path, level: int = 2) -> Made:
    """A folder of Collection 2; the metadata of level 2 have the scales of both levels."""
    cube, truth = ground(len(OLI))
    name = f"LC08_L{'2SP' if level == 2 else '1TP'}_193023_20220516_20220519_02_T1"
    scene = folder / name
    sun = np.sin(np.radians(50.0))
    scale, offset = (2.75e-5, -0.2) if level == 2 else (2e-5 / sun, -0.1 / sun)
    raw = np.rint((cube - offset) / scale).astype(np.uint16)
    raw[:, :5, :3] = 0
    for band, number in zip(raw, OLI, strict=True):
        prefix = "SR_B" if level == 2 else "B"
        write_tif(scene / f"{name}_{prefix}{number}.TIF", band[None], north_up(30), 0)
    quality = np.full((1, *SHAPE), 21824, np.uint16)  # clear
    quality[0, :5, :3] = 1
    quality[0, 20:24, 20:24] = 22280  # cloud
    quality[0, 26:28, 20:24] = 23888  # cloud shadow
    quality[0, 30:32, 20:24] = 21952  # water: of use
    write_tif(scene / f"{name}_QA_PIXEL.TIF", quality, north_up(30), 1)
    if level == 2:
        write_tif(scene / f"{name}_ST_B10.TIF", raw[:1], north_up(30), 0)
    else:
        pan = np.full((1, 2 * SHAPE[0], 2 * SHAPE[1]), 9000, np.uint16)
        write_tif(scene / f"{name}_B8.TIF", pan, north_up(15), 0)
        for number in (9, 10):
            write_tif(scene / f"{name}_B{number}.TIF", raw[:1], north_up(30), 0)
    (scene / f"{name}_MTL.txt").write_text(mtl(level))
    for form, text in other_mtl(level).items():
        (scene / f"{name}_MTL.{form}").write_text(text)
    values = np.rint((cube - offset) / scale) * scale + offset
    bad = (quality[0] & 0b11111) > 0
    values[:, bad] = np.nan
    labels = write_labels(folder / "labels.gpkg", np.where(bad, 0, truth), north_up(30), UTM)
    return Made(scene, labels, values, list(OLI.values()), (SHAPE, north_up(30), UTM))


def mtl(level: int) -> str:
    def group(name: str, scale: float, offset: float) -> str:
        lines = [f"    REFLECTANCE_MULT_BAND_{n} = {scale:E}\n" for n in range(1, 10)]
        lines += [f"    REFLECTANCE_ADD_BAND_{n} = {offset:f}\n" for n in range(1, 10)]
        return f"  GROUP = {name}\n{''.join(lines)}  END_GROUP = {name}\n"

    surface = group("LEVEL2_SURFACE_REFLECTANCE_PARAMETERS", 2.75e-5, -0.2) if level == 2 else ""
    return (
        "GROUP = LANDSAT_METADATA_FILE\n  GROUP = IMAGE_ATTRIBUTES\n    SUN_ELEVATION = 50.0\n"
        f'    SPACECRAFT_ID = "LANDSAT_8"\n  END_GROUP = IMAGE_ATTRIBUTES\n{surface}'
        f"{group('LEVEL1_RADIOMETRIC_RESCALING', 2e-5, -0.1)}"
        "END_GROUP = LANDSAT_METADATA_FILE\nEND\n"
    )


def other_mtl(level: int) -> dict[str, str]:
    """The same as JSON and as XML, with numbers as text."""
    groups: dict[str, dict[str, str]] = {}
    group = ""
    for line in mtl(level).splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        if name == "GROUP":
            group = value
        elif value and name != "END_GROUP":
            groups.setdefault(group, {})[name] = value.strip('"')
    tree = "".join(
        f"<{group}>{''.join(f'<{n}>{v}</{n}>' for n, v in entries.items())}</{group}>"
        for group, entries in groups.items()
    )
    return {
        "json": json.dumps({"LANDSAT_METADATA_FILE": groups}),
        "xml": f"<?xml version='1.0'?><LANDSAT_METADATA_FILE>{tree}</LANDSAT_METADATA_FILE>",
    }


def landsat1(folder: Path) -> Made:
    return landsat(folder, 1)


PRODUCTS: dict[str, Callable[[Path], Made]] = {
    "emit": emit,
    "prisma": prisma,
    "enmap": enmap,
    "desis": desis,
    "aviris-ng": aviris_envi,
    "aviris-3": aviris3,
    "neon": neon,
    "sentinel-2 l2a": sentinel2,
    "sentinel-2 l1c": sentinel2_l1c,
    "landsat 2": landsat,
    "landsat 1": landsat1,
}

if __name__ == "__main__":
    for product, make in PRODUCTS.items():
        target = Path(sys.argv[1]) / product
        target.mkdir(parents=True, exist_ok=True)
        make(target)
