"""Files that are good, and files that are spoilt: what bad input is made of."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas
import h5py
import numpy as np
import rasterio
import safetensors.torch
import scipy.io
import torch
from affine import Affine
from shapely import Point

from thonecls.datasets import Example
from thonecls.method import store

QUICK = ["--width", "0.125", "--epochs", "1", "--batches", "2", "--unlabeled", "200"]
BANDS, ROWS, COLUMNS = 8, 40, 32
CUBE = np.arange(BANDS * ROWS * COLUMNS, dtype=np.int16).reshape(BANDS, ROWS, COLUMNS)
SAME = np.full_like(CUBE, 7)
LEFT, TOP, SIDE = 364095.0, 5809965.0, 30.0  # of the example
PLACE = Affine(SIDE, 0, LEFT, 0, -SIDE, TOP)


@dataclass(frozen=True)
class World:
    """What a case is built from: a good example, a training of it, and a folder to spoil."""

    example: Example
    run: Path
    here: Path

    def __truediv__(self, name: str) -> Path:
        return self.here / name

    def __call__(self, text: str, **files: Path) -> list[object]:
        """A command, with options, on the good files, but for those that are named."""
        name, *options = shlex.split(text)
        scene = files.get("scene", self.example.scene)
        labels = files.get("labels", self.example.labels)
        model = files.get("model", self.run)
        out = ["--out", files.get("out", self / "out")]
        given: dict[str, list[object]] = {
            "check": [scene, labels],
            "prior": [scene, labels],
            "train": [
                scene,
                labels,
                *out,
                *QUICK,
                *([] if "--folds" in text else ["--folds", "0"]),
            ],
            "map": [model, scene, *out],
            "report": [model],
            "info": [model],
        }
        known = {"TRUTH": self.example.truth, "LABELS": self.example.labels}
        return [name, *given[name], *(known.get(word, word) for word in options)]


def cut(path: Path, share: float = 0.5) -> Path:
    content = path.read_bytes()
    return written(path, content[: int(share * len(content))])


def copied(path: Path, to: Path) -> Path:
    return written(to, path.read_bytes())


def written(path: Path, content: str | bytes = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def raster(path: Path, cube: Any = CUBE, driver: str = "GTiff", **change: Any) -> Path:
    """A raster of the example's place, without wavelengths, unless `change` says otherwise."""
    size = dict(zip(("count", "height", "width"), cube.shape, strict=True))
    about = {"dtype": cube.dtype, "crs": "EPSG:32633", "transform": PLACE}
    with rasterio.open(path, "w", driver=driver, **(size | about | change)) as file:
        file.write(cube)
    return path


def latin(path: Path) -> Path:
    """An ENVI scene whose bands are named in Latin-1."""
    about = raster(path, driver="ENVI").with_suffix(".hdr")
    written(about, about.read_bytes().replace(b"Band 1", b"gr\xfcn"))
    return path


def layer(path: Path, shapes: list[Any], crs: str | None = "EPSG:32633", **more: Any) -> Path:
    frame = geopandas.GeoDataFrame({"n": range(len(shapes))}, geometry=shapes, crs=crs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'crs' was not provided")
        frame.to_file(path, **more)
    return path


def inside(row: float = 5, column: float = 5) -> Point:
    return Point(LEFT + SIDE * (column + 0.5), TOP - SIDE * (row + 0.5))


def mat(path: Path, **arrays: Any) -> Path:
    scipy.io.savemat(path, arrays or {"cube": CUBE})
    return path


def npy(path: Path, array: Any = CUBE) -> Path:
    np.save(path, array)
    return path


def npz(path: Path) -> Path:
    with path.open("wb") as file:
        np.savez(file, CUBE)
    return path


def hdf5(path: Path, *names: str) -> Path:
    with h5py.File(path, "w") as file:
        file.update(dict.fromkeys(names or ["cube"], CUBE))
        file["wavelength"] = np.linspace(400, 900, BANDS)
    return path


def placed(path: Path, crs: str) -> Path:
    """A NetCDF 4 cube with coordinates in a CRS."""
    with h5py.File(hdf5(path), "a") as file:
        for axis, name in enumerate(("y", "x"), 1):
            file[name] = np.arange(CUBE.shape[axis], dtype=float)
            file[name].make_scale()
            file["cube"].dims[axis].attach_scale(file[name])
        file["crs"] = 0
        file["crs"].attrs["crs_wkt"] = crs
    return path


def bands(folder: Path, *shapes: tuple[int, int, int]) -> Path:
    folder.mkdir()
    for number, shape in enumerate(shapes):
        raster(folder / f"b{number}.tif", np.ones(shape, np.uint8))
    return folder


def zipped(path: Path, *files: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(file, file.name)
    return path


def weights(path: Path) -> Path:
    safetensors.torch.save_file({"weight": torch.zeros(3)}, path)
    return path


def checkpoint(path: Path) -> Path:
    store.save(path, "checkpoint", {"epoch": 1}, {"weight": torch.zeros(3)})
    return path


def spoilt(w: World, name: str, change: Callable[[bytes], bytes]) -> Path:
    """A copy of the training in which one file is changed."""
    shutil.copytree(w.run, w / "run")
    written(w / "run" / name, change((w / "run" / name).read_bytes()))
    return w / "run"


def flaw(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + b"flawed" + content[middle + 6 :]


def end(content: bytes) -> bytes:
    return content[:-99]


def fact(name: str, value: object) -> Callable[[bytes], bytes]:
    """A change of run.json."""
    return lambda content: json.dumps({**json.loads(content), name: value}).encode()


def pixels(w: World) -> Path:
    """Labels that lie on one pixel, by row and column."""
    return written(w / "l.csv", "row,column\n30,4\n")


# What strangers' files have been made of: each once took memory, time, or a traceback.


def npz_bomb(path: Path, shape: tuple[int, ...] = (8, 100_000, 100_000)) -> Path:
    """A .npz file of a few bytes that tells of a hundred gigabytes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cube.npy", header.getvalue() + bytes(1000))
    return path


def mat_bomb(path: Path) -> Path:
    """A .mat file whose header tells of more than it holds."""
    scipy.io.savemat(path, {"cube": np.zeros((7, 3, 5))})
    sizes, told = np.array([7, 3, 5], "<i4"), np.array([70_000, 30_000, 5], "<i4")
    return written(path, path.read_bytes().replace(sizes.tobytes(), told.tobytes(), 1))


def hdf5_bomb(path: Path) -> Path:
    """An array of HDF5 that was never written."""
    with h5py.File(path, "w") as file:
        file.create_dataset("cube", (8, 100_000, 100_000), "f4", chunks=(8, 100, 100))
    return path


def elsewhere(path: Path) -> Path:
    """An HDF5 cube that is nothing but a view of another file."""
    layout = h5py.VirtualLayout(CUBE.shape, CUBE.dtype)
    layout[:] = h5py.VirtualSource(hdf5(path.with_name("other.h5")), "cube", CUBE.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("cube", layout)
    return path


def many_bands(path: Path, count: int = 20_000) -> Path:
    """A NetCDF 3 file of so many bands."""
    with scipy.io.netcdf_file(path, "w") as file:
        for name, size in (("band", count), ("y", 2), ("x", 2)):
            file.createDimension(name, size)
        cube = file.createVariable("cube", np.float32, ("band", "y", "x"))
        cube[:] = np.ones((count, 2, 2), np.float32)
    return path


def attribute(path: Path, name: str, value: Any) -> Path:
    """An HDF5 cube with an attribute of its own."""
    with h5py.File(hdf5(path), "a") as file:
        file["cube"].attrs[name] = value
    return path


def envi(path: Path, old: str, new: str) -> Path:
    """An ENVI scene with another header."""
    about = raster(path, driver="ENVI").with_suffix(".hdr")
    written(about, about.read_text("utf-8").replace(old, new))
    return path


def virtual(path: Path, source: Path) -> Path:
    """A description that makes GDAL read another raster."""
    bands = "".join(
        f'<VRTRasterBand dataType="Int16" band="{i}"><SimpleSource><SourceFilename>{source}'
        f"</SourceFilename><SourceBand>{i}</SourceBand></SimpleSource></VRTRasterBand>"
        for i in (1, 2)
    )
    size = f'rasterXSize="{COLUMNS}" rasterYSize="{ROWS}"'
    return written(path, f"<VRTDataset {size}>{bands}</VRTDataset>")


def service(path: Path) -> Path:
    """A description that makes GDAL ask a server."""
    return written(
        path,
        '<GDAL_WMS><Service name="TMS"><ServerUrl>http://127.0.0.1:9/${z}/${x}/${y}</ServerUrl>'
        "</Service><DataWindow><UpperLeftX>0</UpperLeftX><UpperLeftY>0</UpperLeftY><LowerRightX>9"
        "</LowerRightX><LowerRightY>9</LowerRightY><TileLevel>3</TileLevel></DataWindow>"
        "<BandsCount>3</BandsCount></GDAL_WMS>",
    )


def virtual_layer(path: Path, source: Path) -> Path:
    """A description that makes OGR read another layer."""
    return written(
        path,
        f'<OGRVRTDataSource><OGRVRTLayer name="sightings"><SrcDataSource>{source}</SrcDataSource>'
        "</OGRVRTLayer></OGRVRTDataSource>",
    )


def pipeline(path: Path, source: Path) -> Path:
    """Commands for GDAL, as JSON."""
    command = f"gdal vector pipeline ! read {source} ! write streamed"
    return written(path, json.dumps({"type": "gdal_streamed_alg", "command_line": command}))


def named(path: Path, *labels: str) -> Path:
    """Points inside the example, each with a text."""
    shapes = [inside(5, column) for column in range(len(labels))]
    geopandas.GeoDataFrame({"label": labels}, geometry=shapes, crs="EPSG:32633").to_file(path)
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def endless(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def filled(value: float, kind: str = "f4") -> Any:
    """A cube of which a tenth is a value that means no data, which nobody says."""
    cube = CUBE.astype(kind)
    cube[:, :4] = value
    return cube


def evidence(w: World, **change: Any) -> Path:
    """A copy of the training in which arrays of the evidence are others."""
    shutil.copytree(w.run, w / "run")
    with np.load(w.run / "evidence.npz") as found:
        np.savez(w / "run/evidence.npz", **{**found, **change})
    return w / "run"
