"""An EMIT scene of full size by the commands, its GLT applied: seconds and peak memory.

    python benchmarks/emit.py [--folder /tmp/thonecls-emit] [--rows 1280] [--train]

Makes a NetCDF file of 1280 × 1242 pixels in 285 bands in the form of EMIT L2A, chunk by chunk, with
a lookup table and labels in longitude and latitude, and runs `thonecls map` on it with a matched
filter of some of its lines, in a process of its own. With --train it runs `thonecls check` and
`thonecls train`, and maps by the density ratio. The files are removed in the end; those that are
there already are used.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import cyclopts
import geopandas
import h5py
import numpy as np
import rasterio
from numpy.typing import NDArray
from pyproj import CRS
from scipy.ndimage import gaussian_filter, gaussian_filter1d

from measure import publish
from thonecls.io.raster import open_raster
from thonecls.method.novelty import fit_novelty
from thonecls.methods.spectral_model import fit_spectral
from thonecls.scene import standardize

COLUMNS, BANDS, LINES = 1242, 285, 64
ANGLE = 0.25  # of the flight to the north, in radians
PLACE = (13.0, 0.000542, 0.0, 52.4, 0.0, -0.000542)  # GDAL's six numbers
LABELS = 120


def fields_of(rows: int) -> NDArray[np.int64]:
    """Four kinds of ground, in the geometry of the sensor; 0 is the class."""
    rng = np.random.default_rng(0)
    rng.normal(size=(4, BANDS))
    fields = np.stack([gaussian_filter(rng.normal(size=(rows, COLUMNS)), 30) for _ in range(4)])
    return np.asarray(fields.argmax(axis=0))


def make_scene(path: Path, rows: int) -> None:
    """Write the file, and labels beside it."""
    rng = np.random.default_rng(0)
    spectra = 0.3 + 0.1 * gaussian_filter1d(rng.normal(size=(4, BANDS)), 20, axis=1) * 8
    kinds = fields_of(rows)
    waves = np.linspace(381, 2493, BANDS)
    good = ~(((waves > 1320) & (waves < 1440)) | ((waves > 1770) & (waves < 1960)))
    glt = lookup_table(rows)
    with h5py.File(path, "w") as file:
        cube = file.create_dataset(
            "reflectance",
            (rows, COLUMNS, BANDS),
            np.float32,
            chunks=(min(256, rows), 249, 57),
            compression="gzip",
            compression_opts=1,
            shuffle=True,
        )
        cube.attrs["_FillValue"] = np.float32(-9999)
        for top in range(0, rows, 256):
            part = kinds[top : top + 256]
            values = spectra[part] + rng.normal(size=(*part.shape, BANDS), scale=0.01)
            values = np.round(values, 3).astype(np.float32)
            values[..., ~good] = -0.01
            cube[top : top + 256] = values
        about = file.create_group("sensor_band_parameters")
        about["wavelengths"], about["good_wavelengths"] = waves, good.astype(np.float32)
        about["fwhm"] = np.full(BANDS, 8.5)
        about["wavelengths"].attrs["units"] = "nm"
        place = file.create_group("location")
        place["glt_x"], place["glt_y"] = glt
        file.attrs["geotransform"] = np.array(PLACE)
        file.attrs["spatial_ref"] = CRS.from_epsg(4326).to_wkt("WKT1_GDAL")
    write_labels(path.with_name("labels.gpkg"), kinds == 0, glt)


def lookup_table(rows: int) -> NDArray[np.int32]:
    """Columns and rows of the image, from 1, on a map with north up; 0 where there is nothing."""
    cos, sin = np.cos(ANGLE), np.sin(ANGLE)
    tall, wide = int(rows * cos + COLUMNS * sin) + 3, int(COLUMNS * cos + rows * sin) + 3
    y, x = np.mgrid[:tall, :wide].astype(np.float32)
    y, x = y - (tall - 1) / 2, x - (wide - 1) / 2
    down = np.rint(cos * y - sin * x + (rows - 1) / 2).astype(np.int32)
    across = np.rint(sin * y + cos * x + (COLUMNS - 1) / 2).astype(np.int32)
    inside = (down >= 0) & (down < rows) & (across >= 0) & (across < COLUMNS)
    return np.where(inside, np.stack([across, down]) + 1, 0).astype(np.int32)


def write_labels(path: Path, of_class: NDArray[np.bool_], glt: NDArray[np.int32]) -> None:
    """Points of the class all over the map."""
    shown = (glt[0] > 0) & of_class[np.maximum(glt[1], 1) - 1, np.maximum(glt[0], 1) - 1]
    pixels = np.random.default_rng(1).choice(np.flatnonzero(shown), LABELS, replace=False)
    down, across = np.divmod(pixels, glt.shape[2])
    left, width, _, top, _, height = PLACE
    x, y = left + width * (across + 0.5), top + height * (down + 0.5)
    points = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(x, y), crs=4326)
    points.to_file(path, driver="GPKG")


def run(*arguments: object) -> tuple[float, float]:
    """Seconds and peak GiB of a command."""
    command = [sys.executable, "-m", "thonecls.cli", *map(str, arguments), "--json"]
    began, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        lines = [x for x in status.read_text("utf-8").splitlines() if x.startswith("VmHWM")]
        peak = max(peak, *(int(x.split()[1]) * 1024 for x in lines), 0)
        time.sleep(0.05)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return time.perf_counter() - began, peak / 2**30


def agreement(out: Path, of_class: NDArray[np.bool_]) -> float:
    """The share of the map's pixels that are as they are in the sensor's geometry."""
    with rasterio.open(out / "map.tif") as file, rasterio.open(out / "geometry.tif") as table:
        mapped, pixels = file.read(1), table.read(1)
    shown = pixels >= 0
    assert ((mapped == 255) == ~shown).all()
    return float(((mapped[shown] == 1) == of_class.flat[pixels[shown]]).mean())


def fit(path: Path, scene: Path, of_class: NDArray[np.bool_]) -> None:
    """A cheap model of the first lines."""
    source = open_raster(scene)
    part = source.read(slice(0, LINES), slice(0, COLUMNS))
    model = fit_spectral("matched-filter", part, of_class[:LINES])
    seen = standardize(part, model.statistics).reshape(part.bands, -1).T[::50]
    known = replace(model, novelty=fit_novelty(seen), wavelengths=source.wavelengths)
    known.save(path)


def main(
    *, rows: int = 1280, folder: Path = Path("/tmp/thonecls-emit"), train: bool = False
) -> None:
    """Make, fit or train, map, measure."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        scene, labels = folder / "EMIT_L2A_RFL_001_20230316T045133_2307503_005.nc", "labels.gpkg"
        if not (folder / labels).exists():
            make_scene(scene, rows)
        of_class = fields_of(rows) == 0
        model, out = folder / "model.safetensors", folder / "map"
        steps: list[tuple[str, tuple[object, ...]]] = []
        if train:
            model = folder / "run"
            steps.append(("check", ("check", scene, folder / labels)))
            steps.append(("train", ("train", scene, folder / labels, "--out", model)))
        else:
            fit(model, scene, of_class)
        steps.append(("map", ("map", model, scene, "--out", out)))
        size = {"rows": rows, "columns": COLUMNS, "bands": BANDS}
        method = "density-ratio" if train else "matched-filter"
        found = []
        for name, command in steps:
            seconds, peak = run(*command)
            row = {"command": name, "method": method, "seconds": seconds, "peak GiB": peak}
            found.append({**size, **row})
        told = json.loads((out / "map.json").read_text("utf-8"))
        print(*told["notes"], f"right: {agreement(out, of_class):.4f}", sep="\n")
        publish("emit", found)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    cyclopts.run(main)
