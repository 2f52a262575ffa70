"""Bad input of every kind: one line that says what to do, exit code 2, and nothing is touched."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas
import h5py
import numpy as np
import pytest
import rasterio
import safetensors.torch
import scipy.io
import torch
from affine import Affine
from shapely import Point, Polygon

from thonecls import store
from thonecls.cli import main
from thonecls.datasets import Example, write_example

QUICK = ["--width", "0.125", "--epochs", "1", "--batches", "2", "--unlabeled", "200"]
PATIENCE = 20.0  # seconds; most take a tenth of one, but the machine may be busy
ROWS, COLUMNS, BANDS = 40, 32, 8
LEFT, TOP, SIDE = 364095.0, 5809965.0, 30.0  # of the example


@dataclass(frozen=True)
class World:
    """What a case is built from: a good example, a training of it, and a folder to spoil."""

    example: Example
    run: Path
    here: Path

    @property
    def out(self) -> Path:
        return self.here / "out"

    def train(self, scene: object = None, labels: object = None, *more: object) -> list[object]:
        files = [scene or self.example.scene, labels or self.example.labels]
        return ["train", *files, "--out", self.out, *QUICK, *more]

    def check(self, scene: object = None, labels: object = None, *more: object) -> list[object]:
        return ["check", scene or self.example.scene, labels or self.example.labels, *more]

    def map(self, model: object = None, scene: object = None, *more: object) -> list[object]:
        files = [model or self.run, scene or self.example.scene]
        return ["map", *files, "--out", self.out, *more]


# The good files, spoilt.


def cut(path: Path, to: Path, share: float = 0.5) -> Path:
    """The first part of a file, under another name."""
    content = path.read_bytes()
    to.write_bytes(content[: int(share * len(content))])
    return to


def copied(path: Path, to: Path) -> Path:
    to.write_bytes(path.read_bytes())
    return to


def written(path: Path, content: str | bytes = "") -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cube_of(w: World) -> Any:
    with rasterio.open(w.example.scene) as file:
        return file.read()


def raster(path: Path, cube: Any, driver: str = "GTiff", **change: Any) -> Path:
    """A raster of the example's place, without wavelengths, unless `change` says otherwise."""
    count, height, width = cube.shape
    place = {"crs": "EPSG:32633", "transform": Affine(SIDE, 0, LEFT, 0, -SIDE, TOP)}
    size = {"count": count, "height": height, "width": width, "dtype": cube.dtype}
    with rasterio.open(path, "w", driver=driver, **(size | place | change)) as file:
        file.write(cube)
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
    scipy.io.savemat(path, arrays)
    return path


def npy(path: Path, array: Any) -> Path:
    np.save(path, array)
    return path


def hdf5(path: Path, **cubes: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, cube in cubes.items():
            file[name] = cube
        file["wavelength"] = np.linspace(400, 900, BANDS)
    return path


def bands(folder: Path, *shapes: tuple[int, int, int]) -> Path:
    """A folder of rasters, one of each shape."""
    folder.mkdir()
    for number, shape in enumerate(shapes):
        raster(folder / f"b{number}.tif", np.ones(shape, np.uint8))
    return folder


def run_folder(w: World, name: str, change: Callable[[bytes], bytes]) -> list[object]:
    """`report` of a copy of the training in which one file is changed."""
    made = w.here / "run"
    shutil.copytree(w.run, made)
    (made / name).write_bytes(change((made / name).read_bytes()))
    return ["report", made]


def without(name: str) -> Callable[[bytes], bytes]:
    """A change of run.json: one of its facts is gone."""
    return lambda b: json.dumps({k: v for k, v in json.loads(b).items() if k != name}).encode()


def quiet_dask(w: World) -> list[object]:
    return w.map(None, None, "--dask", "tcp://127.0.0.1:9")


def pickled(w: World) -> Path:
    np.save(w.here / "s.npy", np.array([[[{}]]], dtype=object), allow_pickle=True)
    return w.here / "s.npy"


def elsewhere(path: Path) -> Path:
    safetensors.torch.save_file({"weight": torch.zeros(3)}, path)
    return path


def checkpoint(path: Path) -> Path:
    store.save(path, "checkpoint", {"epoch": 1}, {"weight": torch.zeros(3)})
    return path


def occupied(w: World, name: str) -> Path:
    w.out.mkdir()
    return written(w.out / name, "{}")


def two_of_a_name(w: World) -> list[object]:
    (w.here / "a").mkdir()
    copied(w.example.scene, w.here / "a/scene.tif")
    return ["map", w.run, w.example.scene, w.here / "a/scene.tif", "--out", w.out]


def in_place_of_out(w: World, below: str = "") -> list[object]:
    written(w.out, "a file")
    return ["train", w.example.scene, w.example.labels, "--out", w.out / below, *QUICK]


WIDE = "x" * 240
Build = Callable[[World], list[object]]

# What is wrong, a command that meets it, and what the message says, parts separated by " | ".
CASES: dict[str, tuple[Build, str]] = {
    # Files that are not there.
    "no scene": (lambda w: w.check(w.here / "s.tif"), "there is no file | check the path"),
    "no array": (lambda w: w.check(w.here / "s.npy"), "there is no file | check the path"),
    "no labels": (lambda w: w.train(None, w.here / "l.gpkg"), "there is no file | check the path"),
    "no label raster": (lambda w: w.train(None, w.here / "l.tif"), "there is no file | check"),
    "no label table": (lambda w: w.train(None, w.here / "l.csv"), "there is no file | check"),
    "no model": (lambda w: w.map(w.here / "m.safetensors"), "cannot read the model | check the"),
    "no run": (lambda w: ["report", w.here / "run"], "holds no run.json | name the folder"),
    "no truth": (
        lambda w: w.train(None, None, "--truth", w.here / "t.tif"),
        "there is no file | check the path",
    ),
    "nothing to describe": (lambda w: ["info", w.here / "s.tif"], "there is no file | check"),
    "no labels for a prior": (
        lambda w: ["prior", w.example.scene, w.here / "l.gpkg"],
        "there is no file | check the path",
    ),
    "a wide name": (lambda w: w.check(w.here / f"{WIDE}.tif"), f"{WIDE}.tif | check the path"),
    "too wide a name": (lambda w: w.check(w.here / f"{WIDE * 2}.tif"), "too long | check the path"),
    "a name of two lines": (lambda w: w.check(w.here / "a\nb.tif"), "there is no file"),
    # Files cut short.
    "a cut GeoTIFF": (
        lambda w: w.train(cut(raster(w.here / "a.tif", cube_of(w)), w.here / "s.tif")),
        "cut short; copy it again",
    ),
    "a cut GeoTIFF, mapped": (
        lambda w: w.map(
            None, cut(raster(w.here / "a.tif", cube_of(w)[:7]), w.here / "s.tif", 0.9)
        ),
        "cut short; copy it again",
    ),
    "a GeoTIFF cut in its header": (
        lambda w: w.check(cut(w.example.scene, w.here / "s.tif")),
        "cannot open | whole raster file",
    ),
    "a cut ENVI file": (
        lambda w: w.check(
            cut(raster(w.here / "s.bsq", cube_of(w), "ENVI"), w.here / "s.bsq")
        ),
        "cut short | copy it again",
    ),
    "a cut .npy": (
        lambda w: w.check(cut(npy(w.here / "a.npy", cube_of(w)), w.here / "s.npy")),
        "cannot read | whole .npy",
    ),
    "a cut .mat": (
        lambda w: w.check(cut(mat(w.here / "a.mat", cube=cube_of(w)), w.here / "s.mat")),
        "cannot read | whole .npy, .npz or .mat",
    ),
    "a cut HDF5": (
        lambda w: w.check(cut(hdf5(w.here / "a.h5", cube=cube_of(w)), w.here / "s.h5")),
        "cannot open | whole HDF5 file",
    ),
    "a cut .mat of version 7.3": (
        lambda w: ["info", cut(hdf5(w.here / "a.h5", cube=cube_of(w)), w.here / "s.mat")],
        "cannot read | whole .npy, .npz or .mat",
    ),
    "a cut GeoPackage": (
        lambda w: w.train(None, cut(w.example.labels, w.here / "l.gpkg")),
        "cannot read l.gpkg | whole file",
    ),
    "a cut shapefile": (
        lambda w: w.train(
            None, cut(layer(w.here / "l.shp", [inside()] * 9), w.here / "l.shp", 0.7)
        ),
        "is cut off | copy it again",
    ),
    "a cut GeoJSON": (
        lambda w: w.train(None, cut(layer(w.here / "l.geojson", [inside()]), w.here / "c.json")),
        "cannot read c.json | whole file",
    ),
    "a cut label raster": (
        lambda w: w.train(None, cut(w.example.truth, w.here / "l.tif"), "--target", "1"),
        "l.tif | whole raster file",
    ),
    "a cut model": (
        lambda w: w.map(cut(w.run / "model.safetensors", w.here / "m.safetensors")),
        "damaged | train again",
    ),
    # Files of another kind than their ending says, and empty ones.
    "text as .tif": (lambda w: w.check(written(w.here / "s.tif", "hello")), "cannot open | whole"),
    "text as .npy": (lambda w: w.check(written(w.here / "s.npy", "hello")), "cannot read | whole"),
    "text as .mat": (lambda w: w.check(written(w.here / "s.mat", "hello")), "cannot read | whole"),
    "text as .gpkg": (
        lambda w: w.train(None, written(w.here / "l.gpkg", "hello")),
        "cannot read l.gpkg | of the format that its ending says",
    ),
    "text as a model": (
        lambda w: w.map(written(w.here / "m.safetensors", "hello, hello")),
        "is not a thonecls model | train again",
    ),
    "a .tif as .gpkg": (
        lambda w: w.train(None, copied(w.example.truth, w.here / "l.gpkg")),
        "l.gpkg | format that its ending says",
    ),
    "a .gpkg as .tif": (
        lambda w: w.check(copied(w.example.labels, w.here / "s.tif")),
        "s.tif | raster file",
    ),
    "a .npy as .mat": (
        lambda w: ["info", npy(w.here / "a.npy", cube_of(w)).rename(w.here / "s.mat")],
        "cannot read | whole .npy, .npz or .mat",
    ),
    "a .tif as .npz": (
        lambda w: ["info", copied(w.example.scene, w.here / "s.npz")],
        "cannot read | whole .npy, .npz or .mat",
    ),
    "an empty .tif": (lambda w: w.check(written(w.here / "s.tif")), "cannot open | whole raster"),
    "an empty .npy": (lambda w: w.check(written(w.here / "s.npy")), "cannot read | whole .npy"),
    "an empty .mat": (lambda w: w.check(written(w.here / "s.mat")), "cannot read | whole .npy"),
    "an empty .gpkg": (lambda w: w.train(None, written(w.here / "l.gpkg")), "l.gpkg | whole file"),
    "an empty .csv": (lambda w: w.train(None, written(w.here / "l.csv")), "l.csv | row,column"),
    "an empty model": (lambda w: w.map(written(w.here / "m.safetensors")), "m.safetensors | train"),
    "an empty header": (lambda w: w.check(written(w.here / "s.hdr")), "no data file | expected"),
    # Labels.
    "an empty layer": (
        lambda w: w.train(None, layer(w.here / "l.gpkg", [])),
        "holds no feature | digitise some",
    ),
    "null geometries only": (
        lambda w: w.train(None, layer(w.here / "l.gpkg", [None, None])),
        "none of the 2 features | has a geometry | draw them again",
    ),
    "labels outside": (
        lambda w: w.check(None, layer(w.here / "l.gpkg", [inside(-900, 5)])),
        "none of the 1 features | check that the two belong together",
    ),
    "labels without CRS, elsewhere": (
        lambda w: w.train(None, layer(w.here / "l.shp", [Point(9e5, 9e5)], None)),
        "names no CRS | say their CRS with --crs",
    ),
    "labels with CRS, a scene without": (
        lambda w: w.train(raster(w.here / "s.tif", cube_of(w), crs=None)),
        "the scene has no CRS | georeference the scene",
    ),
    "a CRS that is none": (
        lambda w: w.check(None, None, "--crs", "EPSG:nowhere"),
        "a CRS that PROJ knows, such as EPSG:4326 | 'EPSG:nowhere'",
    ),
    "labels on nodata": (
        lambda w: w.train(None, layer(w.here / "l.gpkg", [inside(5, COLUMNS - 1)])),
        "lies on nodata | check labels and nodata value",
    ),
    "an unknown layer": (
        lambda w: w.train(None, None, "--layer", "trees"),
        "has no layer 'trees' | sightings | Choose one with --layer",
    ),
    "several layers": (
        lambda w: w.train(
            None,
            layer(layer(w.here / "l.gpkg", [inside()], layer="a"), [inside()], layer="b", mode="a"),
        ),
        "more than one layer | it has: a, b | --layer",
    ),
    "an unknown column": (
        lambda w: w.train(None, None, "--where", "kind = 'lantana'"),
        "does not fit | Its columns and some values: species ('lantana', 'grass')",
    ),
    "a filter that is none": (
        lambda w: w.train(None, None, "--where", "species == == 'lantana'"),
        "does not fit | write a comparison such as",
    ),
    "a filter that nothing fulfils": (
        lambda w: w.train(None, None, "--where", "species = 'oak'"),
        "no feature of labels.gpkg fulfils | Its columns and some values: species",
    ),
    "a table that is not UTF-8": (
        lambda w: w.train(None, written(w.here / "l.csv", b"lon,lat,name\n13,52,\xe4\n")),
        "is not UTF-8 (line 2) | save it as UTF-8",
    ),
    "pixels that are not UTF-8": (
        lambda w: w.train(None, written(w.here / "l.csv", b"row,column\n1,\xe4\n")),
        "it must be a UTF-8 text file",
    ),
    "a table without coordinates": (
        lambda w: w.train(None, written(w.here / "l.csv", "name,height\noak,3\n")),
        "starts with name, height | lon,lat",
    ),
    "a table with words for coordinates": (
        lambda w: w.train(None, written(w.here / "l.csv", "lon,lat\neast,north\n")),
        "line 2 | 'east' | write a decimal number",
    ),
    "pixels beyond the scene": (
        lambda w: w.train(None, written(w.here / "l.csv", "row,column\n900,900\n")),
        "900 | scene",
    ),
    "a target for a layer": (
        lambda w: w.train(None, None, "--target", "1"),
        "--target has no meaning for labels in labels.gpkg: leave it out",
    ),
    "a filter for a raster": (
        lambda w: w.train(None, w.example.truth, "--where", "n = 1"),
        "--where has no meaning for labels in truth.tif: leave it out",
    ),
    "a target that is nowhere": (
        lambda w: w.train(None, w.example.truth, "--target", "9"),
        "is 9 | it holds 1, 2, 3, 4: pick one of these (--target)",
    ),
    "a label raster of several classes": (
        lambda w: w.check(None, w.example.truth),
        "truth.tif holds 1, 2, 3, 4: pick one class (--target)",
    ),
    "a label raster in another grid": (
        lambda w: w.train(None, raster(w.here / "l.tif", np.ones((1, 9, 9), np.uint8), crs=None)),
        "9 rows × 9 columns | save the labels in the scene's grid, or give both a CRS",
    ),
    "labels of another shape": (
        lambda w: w.train(
            npy(w.here / "s.npy", cube_of(w)), npy(w.here / "l.npy", np.ones((9, 9)))
        ),
        "cannot tell which axis | check that the two belong together",
    ),
    "the scene as its labels": (
        lambda w: w.train(None, w.example.scene),
        f"has one band. scene.tif has {BANDS}: save one alone",
    ),
    # Scenes.
    "no valid pixel": (
        lambda w: w.train(raster(w.here / "s.tif", np.zeros((3, ROWS, COLUMNS), np.uint8), nodata=0)),
        "nodata | check",
    ),
    "one band": (
        lambda w: w.check(raster(w.here / "s.tif", cube_of(w)[:1])),
        "at least 2 bands | choose other bands or another file",
    ),
    "complex numbers": (
        lambda w: w.check(raster(w.here / "s.tif", cube_of(w).astype(np.complex64))),
        "real numbers | complex64: take its amplitude",
    ),
    "complex numbers in an array": (
        lambda w: w.check(npy(w.here / "s.npy", cube_of(w) * 1j)),
        "no array of 3 axes",
    ),
    "complex numbers, named": (
        lambda w: ["info", mat(w.here / "s.mat", c=cube_of(w) * 1j), "--variable", "c"],
        "real numbers",
    ),
    "nothing but NaN": (
        lambda w: w.train(raster(w.here / "s.tif", np.full((3, ROWS, COLUMNS), np.nan, np.float32))),
        "nodata | check",
    ),
    "nothing but NaN in an array": (
        lambda w: w.train(
            npy(w.here / "s.npy", np.full((3, 9, 8), np.nan)), npy(w.here / "l.npy", np.eye(9, 8))
        ),
        "NaN or infinite values in 72 of 72 pixels: repair or cut them out",
    ),
    "code in an array": (lambda w: w.check(pickled(w)), "cannot read | of plain numbers"),
    "a folder without rasters": (lambda w: w.check(bands(w.here / "b")), "holds no raster | give"),
    "bands in different grids": (
        lambda w: w.check(bands(w.here / "b", (1, 9, 9), (1, 9, 8))),
        "one grid | resample them",
    ),
    "a folder of cubes": (
        lambda w: w.check(bands(w.here / "b", (3, 9, 9))),
        "files of one band; b0.tif has 3: give that file itself",
    ),
    "several cubes": (
        lambda w: w.check(hdf5(w.here / "s.h5", a=cube_of(w), b=cube_of(w))),
        "several cubes: name the right one (--variable); it has: a | b",
    ),
    "an unknown cube": (
        lambda w: w.check(hdf5(w.here / "s.h5", a=cube_of(w)), None, "--variable", "c"),
        "no one cube 'c': name one of these: a",
    ),
    "an unknown array": (
        lambda w: ["info", mat(w.here / "s.mat", a=cube_of(w)), "--variable", "c"],
        "has no array 'c'; it holds: a",
    ),
    # Options.
    "a band that is not there": (
        lambda w: w.train(None, None, "--bands", "1-99"),
        "there is no band 9: the file has bands 1-8",
    ),
    "bands that are none": (
        lambda w: w.check(None, None, "--bands", "red"),
        "numbers from 1, such as 1-50,60; got 'red'",
    ),
    "all bands dropped": (
        lambda w: w.check(None, None, "--drop-bands", "1-8"),
        "gives 0 (left out: | choose other bands",
    ),
    "wavelengths in µm": (
        lambda w: w.check(None, None, "--wavelengths", "0.45-0.9"),
        "in nm | write 450-900, not 0.45-0.9",
    ),
    "wavelengths that the file has not": (
        lambda w: w.check(raster(w.here / "s.tif", cube_of(w)), None, "--wavelengths", "450-900"),
        "the file names none: choose them by number, 1-8",
    ),
    "wavelengths of an array": (
        lambda w: w.check(npy(w.here / "s.npy", cube_of(w)), None, "--wavelengths", "450-900"),
        "names no wavelengths: choose bands by number (--bands)",
    ),
    "a nodata value that empties the scene": (
        lambda w: w.train(
            raster(w.here / "s.tif", np.full((3, ROWS, COLUMNS), 7, np.uint8)), None, "--nodata", "7"
        ),
        "nodata | check",
    ),
    "more than all held out": (
        lambda w: w.train(None, None, "--holdout", "1.5"),
        "'holdout' must be from 0 to below 1. Got 1.5",
    ),
    "the only label held out": (
        lambda w: w.train(None, layer(w.here / "l.gpkg", [inside()]), "--holdout", "0.5"),
        "of 1 labels cannot be held out: label more pixels",
    ),
    "a threshold over 1": (
        lambda w: w.map(None, None, "--threshold", "1.5"),
        "'threshold' must be from 0 to 1",
    ),
    "a threshold by nothing": (
        lambda w: w.train(None, None, "--threshold", "auto"),
        "needs labels to judge by: say --holdout 0.2",
    ),
    "no seeds": (lambda w: w.train(None, None, "--seeds", "0"), "'seeds' must be 1 or more. Got 0"),
    "a truth's class without truth": (
        lambda w: w.train(None, None, "--truth-target", "1"),
        "Give it by --truth",
    ),
    "a class that the truth has not": (
        lambda w: ["report", w.run, "--truth", w.example.truth, "--truth-target", "9"],
        "is 9 | pick one of these",
    ),
    "a class that the truth has not, before training": (
        lambda w: w.train(None, None, "--truth", w.example.truth, "--truth-target", "9"),
        "is 9 | pick one of these",
    ),
    "a device that is none": (
        lambda w: w.map(None, None, "--device", "abacus"),
        "the device 'abacus' cannot be used here: take auto, cpu",
    ),
    "a flag that is none": (lambda w: w.map(None, None, "--treshold", "1"), "--treshold"),
    "a number that is none": (lambda w: w.train(None, None, "--order", "many"), "many | int"),
    # Models and runs.
    "a checkpoint as model": (
        lambda w: w.map(checkpoint(w.here / "m.safetensors")),
        "is a checkpoint, where a model is needed | name",
    ),
    "weights from elsewhere": (
        lambda w: w.map(elsewhere(w.here / "m.safetensors")),
        "holds weights, but not those of a thonecls model | name",
    ),
    "a folder without model": (lambda w: w.map(bands(w.here / "b")), "holds no model: name"),
    "a scene of fewer bands": (
        lambda w: w.map(None, raster(w.here / "s.tif", cube_of(w)[:4])),
        "the model has 7 bands, the scene 4 | give the same bands",
    ),
    "an array of fewer bands": (
        lambda w: w.map(None, npy(w.here / "s.npy", cube_of(w)[:4]), "--bands-axis", "first"),
        "trained on 7 bands, the scene has 4: give it the same bands",
    ),
    "a scene of other wavelengths": (
        lambda w: w.map(None, hdf5(w.here / "s.h5", cube=cube_of(w))),
        "within | Use a scene with these bands, or raise the tolerance",
    ),
    "a run.json cut short": (
        lambda w: run_folder(w, "run.json", lambda b: b[: len(b) // 2]),
        "cannot read | run.json | train again",
    ),
    "a run.json of another kind": (
        lambda w: run_folder(w, "run.json", lambda _: b"[1, 2]"),
        "run.json | train again",
    ),
    "a run.json without a fact": (
        lambda w: run_folder(w, "run.json", without("threshold")),
        "run.json | threshold | train again",
    ),
    "evidence cut short": (
        lambda w: run_folder(w, "evidence.npz", lambda b: b[: len(b) // 2]),
        "cannot read | evidence.npz | train again",
    ),
    "evidence with a flaw": (
        lambda w: run_folder(w, "evidence.npz", lambda b: b[:6000] + b"flawed" + b[6006:]),
        "cannot read | evidence.npz | train again",
    ),
    "a model with a flaw in a run": (
        lambda w: run_folder(w, "model.safetensors", lambda b: b[:-9] + b"flawed" + b[-3:]),
        "is damaged | train again",
    ),
    # Places to write to.
    "a file in place of the folder": (in_place_of_out, "is a file, not a folder: choose another"),
    "a file above the folder": (lambda w: in_place_of_out(w, "a/b"), "is a file, not a folder"),
    "a model that is there": (
        lambda w: ["train", w.example.scene, w.example.labels, "--out", w.run, *QUICK],
        "holds a model or a map already: choose another --out, or say --overwrite",
    ),
    "a training that is under way": (
        lambda w: [*w.train(), *[0 for _ in [occupied(w, "checkpoint.safetensors")] if False]],
        "holds an unfinished training: say --resume",
    ),
    "a map that is there": (
        lambda w: [*w.map(), *[0 for _ in [occupied(w, "map.json")] if False]],
        "holds a map already: choose another --out, or say --overwrite",
    ),
    "a map into a training": (
        lambda w: ["map", w.run, w.example.scene, "--out", w.run],
        "holds a training with its own map: choose another --out",
    ),
    "a pattern that nothing fits": (
        lambda w: w.map(None, w.here / "*.tif"),
        "no file fits | check the folder and the pattern",
    ),
    "two scenes of one name": (two_of_a_name, "several scenes are called scene: map them one by"),
    "a cluster that is none": (
        lambda w: w.map(None, None, "--dask", "nowhere"),
        "no Dask scheduler answers at nowhere | start one",
    ),
    "a cluster that does not answer": (quiet_dask, "no Dask scheduler answers | start one with"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Path]:
    """An example and a training of it, which no case may change."""
    folder = tmp_path_factory.mktemp("good")
    example = write_example(
        folder / "example", height=ROWS, width=COLUMNS, bands=BANDS, labels=20
    )
    world = World(example, folder / "run", folder)
    command = world.train(None, None, "--holdout", "0.2", "--json")
    command[command.index(world.out)] = folder / "run"
    assert run(command) == 0
    return example, folder / "run"


@pytest.fixture
def world(good: tuple[Example, Path], tmp_path: Path) -> World:
    return World(*good, tmp_path)


def run(command: list[Any]) -> int:
    with pytest.raises(SystemExit) as exit_info:
        main([str(word) for word in command])
    assert isinstance(exit_info.value.code, int)
    return exit_info.value.code


def contents(*folders: Path) -> dict[str, str]:
    """All that lies in some folders, hidden files too."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for folder in folders
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_one_line_and_nothing_is_touched(
    name: str,
    world: World,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build, words = CASES[name]
    if "cluster" in name:
        distributed = pytest.importorskip("distributed")
        hasty = lambda address, timeout: Client(address, timeout="0.5s")  # noqa: E731
        Client = distributed.Client
        monkeypatch.setattr(distributed, "Client", hasty)
    command = build(world)
    folders = world.here, world.run, world.example.scene.parent
    before = contents(*folders)
    capfd.readouterr()
    began = time.monotonic()
    assert run(command) == 2
    assert time.monotonic() - began < PATIENCE
    said = capfd.readouterr()
    assert said.out == ""
    (line,) = filter(None, said.err.splitlines())
    assert line.startswith("error: ")
    assert [part for part in words.split(" | ") if part not in line] == [], line
    assert contents(*folders) == before
    assert run([*command, "--json"]) == 2
    as_json = capfd.readouterr()
    assert json.loads(as_json.out) == {"error": line.removeprefix("error: ")}
    assert as_json.err == ""
    assert contents(*folders) == before
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
