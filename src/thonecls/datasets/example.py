"""A small georeferenced scene with labels, as files: to try the commands on, and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import geopandas
import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray

from thonecls.datasets.synthetic import synthetic

CRS = "EPSG:32633"
TRANSFORM = (30.0, 0.0, 364095.0, 0.0, -30.0, 5809965.0)  # pixels of 30 m
NODATA = -32768


@dataclass(frozen=True)
class Example:
    """The files of an example: a cube, points of one class, and the truth as class numbers."""

    scene: Path
    labels: Path
    truth: Path


def write_example(
    folder: Path, *, height: int = 96, width: int = 80, bands: int = 24, labels: int = 60
) -> Example:
    """Write scene.tif, labels.gpkg and truth.tif into a folder; class 1 is "lantana".

    The scene is int16 with wavelengths, bad bands and a strip of nodata; the labels are points in
    longitude and latitude, some of other species, to be picked by `species = 'lantana'`.
    """
    data = synthetic(height=height, width=width, bands=bands, seed=5)
    valid = np.ones(data.truth.shape, dtype=bool)
    valid[:, -4:] = False
    profile = {
        "driver": "GTiff",
        "height": height,
        "width": width,
        "crs": CRS,
        "transform": Affine(*TRANSFORM),
        "tiled": True,
        "blockxsize": 64,
        "blockysize": 64,
    }
    folder.mkdir(parents=True, exist_ok=True)
    found = Example(folder / "scene.tif", folder / "labels.gpkg", folder / "truth.tif")
    cube = np.where(valid, np.clip(3000 + 600 * data.scene.cube, 0, 10000), NODATA)
    with rasterio.open(
        found.scene, "w", count=bands, dtype="int16", nodata=NODATA, **profile
    ) as file:
        file.write(cube.astype(np.int16))
        for band, wavelength in enumerate(np.linspace(450, 1250, bands), 1):
            file.set_band_description(band, f"band {band} ({wavelength:.1f} Nanometers)")
            tags = {"wavelength": f"{wavelength:.2f}", "wavelength_units": "nm"}
            file.update_tags(band, **tags, bbl="0" if band == bands // 2 else "1")
    truth = np.where(valid, data.truth, 0).astype(np.uint8)
    with rasterio.open(found.truth, "w", count=1, dtype="uint8", nodata=0, **profile) as file:
        file.write(truth, 1)
    _points(truth, labels).to_file(found.labels, layer="sightings", driver="GPKG")
    return found


def _points(truth: NDArray[np.uint8], count: int) -> geopandas.GeoDataFrame:
    """Points of class 1, and a few of another, somewhere inside their pixels."""
    rng = np.random.default_rng(0)
    rows, columns, species = [], [], []
    for number, name, wanted in ((1, "lantana", count), (2, "grass", count // 6)):
        pixels = rng.choice(np.flatnonzero(truth == number), wanted, replace=False)
        rows += (pixels // truth.shape[1] + rng.uniform(0.1, 0.9, wanted)).tolist()
        columns += (pixels % truth.shape[1] + rng.uniform(0.1, 0.9, wanted)).tolist()
        species += [name] * wanted
    a, _, c, _, e, f = TRANSFORM
    x, y = a * np.array(columns) + c, e * np.array(rows) + f
    points = geopandas.GeoDataFrame(
        {"species": species}, geometry=geopandas.points_from_xy(x, y), crs=CRS
    )
    return points.to_crs("EPSG:4326")
