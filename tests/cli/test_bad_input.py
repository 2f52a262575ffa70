"""Bad input of every kind: one line that says what to do, exit code 2, and nothing is touched."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import geopandas
import numpy as np
import pytest
from affine import Affine
from shapely import Point, Polygon

from commands import run
from spoilt import (
    BANDS,
    COLUMNS,
    CUBE,
    PLACE,
    ROWS,
    SAME,
    World,
    attribute,
    bands,
    checkpoint,
    copied,
    cut,
    elsewhere,
    end,
    endless,
    envi,
    evidence,
    fact,
    filled,
    flaw,
    hdf5,
    hdf5_bomb,
    inside,
    latin,
    layer,
    many_bands,
    mat,
    mat_bomb,
    named,
    npy,
    npz,
    npz_bomb,
    pipe,
    pipeline,
    pixels,
    placed,
    raster,
    service,
    spoilt,
    virtual,
    virtual_layer,
    weights,
    written,
    zipped,
)
from thonecls.datasets import Example, write_example

PATIENCE = 5.0  # seconds of work; nearly all take a tenth of one

# What is wrong, the file that has it, and what the message says, its parts separated by " | ".
Maker = Callable[[World], Path]
WIDE = "x" * 240
GONE = "there is no file | check the path"
ARRAY = "cannot read | it must be a whole .npy, .npz or .mat file of plain numbers"
ENDING = "cannot read l. | it must be a whole file of the format that its ending says"
PLAIN = "of plain numbers"
RASTER = "cannot open | it must be a whole raster file that GDAL reads"
SHORT = "cannot read rows | the file is damaged or cut short; copy it again"
NODATA = "lies on nodata: check labels and nodata value"
FOLDER = "is a file, not a folder: choose another output folder"
AGAIN = "choose another folder, or train again"
SCENES: dict[str, tuple[Maker, str]] = {
    "no raster": (lambda w: w / "s.tif", GONE),
    "no array": (lambda w: w / "s.npy", GONE),
    "a wide name": (lambda w: w / f"{WIDE}.tif", f"{WIDE}.tif: check the path"),
    "too wide a name": (lambda w: w / f"{WIDE}{WIDE}.tif", "too long | check the path"),
    "a name of two lines": (lambda w: w / "a\nb.tif", GONE),
    "a name with markup": (lambda w: w / "[red]s.tif", "[red]s.tif: check the"),
    "a cut GeoTIFF": (lambda w: cut(raster(w / "s.tif")), SHORT),
    "a GeoTIFF cut in its header": (lambda w: cut(raster(w / "s.tif"), 0.001), RASTER),
    "a cut ENVI file": (lambda w: cut(raster(w / "s.bsq", driver="ENVI")), "copy it again"),
    "a cut .npy": (lambda w: cut(npy(w / "s.npy")), ARRAY),
    "a cut .npz": (lambda w: cut(npz(w / "s.npz")), ARRAY),
    "a cut .mat": (lambda w: cut(mat(w / "s.mat")), ARRAY),
    "a cut .mat of version 7.3": (lambda w: cut(hdf5(w / "s.mat")), ARRAY),
    "a cut HDF5": (lambda w: cut(hdf5(w / "s.h5")), "cannot open | it must be a whole HDF5 file"),
    "text as .tif": (lambda w: written(w / "s.tif", "hello"), RASTER),
    "text as .npy": (lambda w: written(w / "s.npy", "hello"), ARRAY),
    "text as .mat": (lambda w: written(w / "s.mat", "hello"), ARRAY),
    "a .gpkg as .tif": (lambda w: copied(w.example.labels, w / "s.tif"), RASTER),
    "a .npz as .npy": (lambda w: npz(w / "s.npy"), ARRAY),
    "a .npy as .mat": (lambda w: npy(w / "s.npy").rename(w / "s.mat"), ARRAY),
    "a .tif as .npz": (lambda w: copied(w.example.scene, w / "s.npz"), ARRAY),
    "an empty .tif": (lambda w: written(w / "s.tif"), RASTER),
    "an empty .npy": (lambda w: written(w / "s.npy"), ARRAY),
    "an empty .mat": (lambda w: written(w / "s.mat"), ARRAY),
    "a header alone": (lambda w: written(w / "s.hdr"), "has no data file beside it: expected"),
    "a header in Latin-1": (lambda w: latin(w / "s.bsq"), "must be UTF-8; save it so"),
    "a CRS that is none": (lambda w: placed(w / "s.nc", "{x}"), "PROJ | Assign projection"),
    "pixels without size": (
        lambda w: raster(w / "s.tif", transform=PLACE @ Affine.scale(1, 0)),
        "have no size, by its georeference | georeference it again",
    ),
    "no CRS": (
        lambda w: raster(w / "s.tif", crs=None),
        "has no CRS: say the scene's CRS (--scene-crs)",
    ),
    "one band": (lambda w: raster(w / "s.tif", CUBE[:1]), "2 bands | choose other bands or"),
    "complex": (lambda w: raster(w / "s.tif", CUBE.astype("c8")), "real | take its amplitude"),
    "a complex array": (lambda w: npy(w / "s.npy", CUBE * 1j), "no array | of real numbers"),
    "code in an array": (lambda w: npy(w / "s.npy", np.array([[[{}]]])), "of plain numbers"),
    "an empty folder": (lambda w: bands(w / "b"), "holds no raster file: give a scene, or"),
    "two grids": (lambda w: bands(w / "b", (1, 9, 9), (1, 9, 8)), "one grid | resample them"),
    "a folder of cubes": (lambda w: bands(w / "b", (3, 9, 9)), "has 3: give that file itself"),
    "two cubes": (lambda w: hdf5(w / "s.h5", "a", "b"), "several cubes: name the right one"),
    "two arrays": (lambda w: mat(w / "s.mat", a=CUBE, b=CUBE), "Name one (--variable"),
    "a .npz of a few bytes and 320 GB": (lambda w: npz_bomb(w / "s.npz"), f"unpacks to | {PLAIN}"),
    "a .npz that tells too much": (lambda w: npz_bomb(w / "s.npz", (8, 99, 99)), "are told"),
    "a .mat of a few bytes": (lambda w: mat_bomb(w / "s.mat"), f"unpacks to | {PLAIN}"),
    "a .mat never written": (lambda w: hdf5_bomb(w / "s.mat"), f"unpacks to | {PLAIN}"),
    "a .mat of other files": (lambda w: elsewhere(w / "s.mat"), "in other files: give those"),
    "an HDF5 of other files": (lambda w: elsewhere(w / "s.h5"), "in other files: give those"),
    "20,000 bands": (lambda w: many_bands(w / "s.nc"), "at most 10,000 bands | Cut the bands"),
    "a pipe": (lambda w: pipe(w / "s.tif"), GONE),
    "a pipe of an array": (lambda w: pipe(w / "s.npy"), GONE),
    "a scene without end": (lambda w: endless(w / "s.tif"), GONE),
    "a .vrt as .tif": (lambda w: virtual(w / "s.tif", w.example.scene), RASTER),
    "a .vrt without ending": (lambda w: virtual(w / "s", w.example.scene), RASTER),
    "a server as .tif": (lambda w: service(w / "s.tif"), RASTER),
    "a server as .img": (lambda w: service(w / "s.img"), RASTER),
    "a header with a word": (
        lambda w: envi(w / "s.bsq", "header offset = 0", "header offset = abc"),
        "says 'header offset = abc', where a number of bytes is needed: correct it",
    ),
    "a header of huge sizes": (lambda w: envi(w / "s.bsq", "lines   = 40", "lines = 99999999"), ""),
    "a word as scale": (lambda w: attribute(w / "s.h5", "scale_factor", "x"), "a whole HDF5 file"),
    "words as waves": (lambda w: attribute(w / "s.h5", "wavelength", ["x"] * BANDS), "HDF5 file"),
}
LABELS: dict[str, tuple[Maker, str]] = {
    "no layer": (lambda w: w / "l.gpkg", GONE),
    "no label raster": (lambda w: w / "l.tif", GONE),
    "no table": (lambda w: w / "l.csv", GONE),
    "a cut GeoPackage": (lambda w: cut(copied(w.example.labels, w / "l.gpkg")), ENDING),
    "a cut shapefile": (lambda w: cut(layer(w / "l.shp", [inside()] * 9)), "copy it again, whole"),
    "a cut GeoJSON": (lambda w: cut(layer(w / "l.geojson", [inside()])), ENDING),
    "a cut FlatGeobuf": (lambda w: cut(layer(w / "l.fgb", [inside()] * 99)), ENDING),
    "a cut archive": (lambda w: cut(zipped(w / "l.zip", layer(w / "l.shp", [inside()]))), ENDING),
    "another archive": (lambda w: zipped(w / "l.zip", w.example.labels), "no shapefile: unpack"),
    "a cut label raster": (lambda w: cut(raster(w / "l.tif", CUBE[:1])), "a whole raster file"),
    "text as .gpkg": (lambda w: written(w / "l.gpkg", "hello"), ENDING),
    "a .tif as .gpkg": (lambda w: copied(w.example.truth, w / "l.gpkg"), ENDING),
    "an empty .gpkg": (lambda w: written(w / "l.gpkg"), ENDING),
    "an empty .csv": (lambda w: written(w / "l.csv"), "starts with nothing | row,column"),
    "an empty layer": (lambda w: layer(w / "l.gpkg", []), "no feature: digitise some"),
    "no geometries": (lambda w: layer(w / "l.gpkg", [None] * 2), "none of the 2 | draw them again"),
    "two layers": (
        lambda w: layer(layer(w / "l.gpkg", [inside()]), [inside()], layer="b", mode="a"),
        "holds more than one layer; it has: l, b. Choose one with --layer",
    ),
    "labels outside": (lambda w: layer(w / "l.gpkg", [inside(-900)]), "none of the 1 | check"),
    "another place": (lambda w: layer(w / "l.shp", [Point(9, 9)], None), "their CRS with --crs"),
    "labels on nodata": (lambda w: layer(w / "l.gpkg", [inside(5, COLUMNS - 1)]), NODATA),
    "a table in Latin-1": (
        lambda w: written(w / "l.csv", b"lon,lat,name\n13,52,\xe4\n"),
        "is not UTF-8 (line 2): save it as UTF-8",
    ),
    "pixels in Latin-1": (lambda w: written(w / "l.csv", b"row,col\n1,\xe4"), "a UTF-8 text file"),
    "a table without coordinates": (
        lambda w: written(w / "l.csv", "name,height\noak,3\n"),
        "starts with name, height: its first line must name columns lon,lat",
    ),
    "words for numbers": (lambda w: written(w / "l.csv", "lon,lat\nx,y"), "a decimal number"),
    "pixels beyond": (lambda w: written(w / "l.csv", "row,col\n99,9"), "rows come first, from 0"),
    "a label raster of classes": (lambda w: w.example.truth, "holds 1, 2, 3, 4: pick one class"),
    "a label raster in another grid": (
        lambda w: raster(w / "l.tif", np.ones((1, 9, 9), np.uint8), crs=None),
        "9 rows × 9 columns | save the labels in the scene's grid, or give both a CRS",
    ),
    "labels of another shape": (lambda w: npy(w / "l.npy", np.eye(9)), "(9, 9) | give a mask of"),
    "a list of pixels with 30 digits": (
        lambda w: written(w / "l.csv", f"row,column\n3,{'7' * 30}\n"),
        "two whole numbers a line, row,column",
    ),
    "a number of 5000 digits": (
        lambda w: written(w / "l.csv", f"row,column\n3,{'7' * 5000}\n"),
        "two whole numbers a line, row,column",
    ),
    "100,000 columns": (
        lambda w: written(w / "l.csv", ",".join(["lon,lat", *map(str, range(100_000))])),
        "has 100,002 columns, more than 1,000: export those",
    ),
    "a cell of megabytes": (
        lambda w: written(w / "l.csv", f"lon,lat,name\n13,52,{'x' * 3_000_000}\n"),
        "l.csv is no table (line 2",
    ),
    "an endless first line": (lambda w: written(w / "l.csv", "x" * 3_000_000), "l.csv"),
    "a text of megabytes": (
        lambda w: named(w / "l.gpkg", "x" * 2_000_000, "y"),
        "kinds in its column 'label' | pick one, such as --where",
    ),
    "a pipe of labels": (lambda w: pipe(w / "l.csv"), GONE),
    "labels without end": (lambda w: endless(w / "l.gpkg"), GONE),
    "another layer as .geojson": (
        lambda w: virtual_layer(w / "l.geojson", w.example.labels),
        ENDING,
    ),
    "another layer as .kml": (lambda w: virtual_layer(w / "l.kml", w.example.labels), ENDING),
    "another layer as .gpkg": (lambda w: virtual_layer(w / "l.gpkg", w.example.labels), ENDING),
    "commands as .json": (lambda w: pipeline(w / "l.json", w.example.labels), ENDING),
    "a .vrt of labels as .tif": (
        lambda w: virtual(w / "l.tif", w.example.truth),
        "a whole raster file",
    ),
    "the scene as its labels": (lambda w: w.example.scene, "scene.tif has 8: save one alone"),
}
MODELS: dict[str, tuple[Maker, str]] = {
    "no model": (lambda w: w / "m.safetensors", "cannot read the model | check the path"),
    "a cut model": (lambda w: spoilt(w, "model.safetensors", end), "train again"),
    "text as model": (lambda w: written(w / "m.safetensors", "hello"), "is not a | train again"),
    "an empty model": (lambda w: written(w / "m.safetensors"), "is not a thonecls model | again"),
    "weights of others": (lambda w: weights(w / "m.safetensors"), "holds weights | name the"),
    "a checkpoint": (lambda w: checkpoint(w / "m.safetensors"), "is a checkpoint | name a model"),
    "a model of other numbers": (
        lambda w: spoilt(w, "model.safetensors", lambda b: b.replace(b'"F32"', b'"I32"', 1)),
        "is damaged (its checksum differs): copy it again or train again",
    ),
}
RUNS: dict[str, tuple[Maker, str]] = {
    "no run": (lambda w: w / "run", "holds no run.json: name the folder of a training"),
    "a model as run": (lambda w: w.run / "model.safetensors", "no run.json: name the folder"),
    "a cut run.json": (lambda w: spoilt(w, "run.json", lambda b: b[:99]), AGAIN),
    "a list as run.json": (lambda w: spoilt(w, "run.json", lambda b: b"[1]"), AGAIN),
    "a fact lost": (lambda w: spoilt(w, "run.json", fact("out", 1)), f"'out' must be | {AGAIN}"),
    "a number as method": (lambda w: spoilt(w, "run.json", fact("method", "x")), "is known"),
    "a threshold of 3": (lambda w: spoilt(w, "run.json", fact("threshold", 3)), "from 0 to 1. Got"),
    "a share that is none": (
        lambda w: spoilt(w, "run.json", fact("mapped_share", float("nan"))),
        f"'mapped_share' must be | {AGAIN}",
    ),
    "one opinion too many": (lambda w: spoilt(w, "run.json", fact("opinions", [])), "opinions"),
    "a nest of lists": (lambda w: spoilt(w, "run.json", lambda b: b"[" * 99_999), AGAIN),
    "evidence of another map": (lambda w: evidence(w, labels=np.array([10**9])), "train again"),
    "evidence of 3 pixels": (lambda w: evidence(w, unlike=np.ones(3, bool)), "'unlike' must be"),
    "evidence of words": (lambda w: evidence(w, crossfit=np.array(["x"])), "'crossfit' must be"),
    "evidence above 1": (
        lambda w: evidence(w, rows=np.array([5, 10**6])),
        "'rows' must lie in a map | train again",
    ),
    "cut evidence": (lambda w: spoilt(w, "evidence.npz", lambda b: b[:900]), "or train again"),
    "flawed evidence": (lambda w: spoilt(w, "evidence.npz", flaw), "npz | or train again"),
    "a flawed model": (lambda w: spoilt(w, "model.safetensors", flaw), "damaged | train again"),
}
OPTIONS = {  # a command on good files, and what its message says
    "train --layer trees": "has no layer 'trees' | it has: sightings. Choose one with --layer",
    "train --where \"kind = 'x'\"": "does not fit | values: species ('lantana')",
    "train --where 'species == == 3'": "does not fit | write a comparison such as species =",
    "train --where \"species = 'oak'\"": "no feature | fulfils | some values: species ('lantana'",
    "train --where \"species = 'lantana'; drop table sightings\"": "without ; or comments. Got",
    "train --where 'species = 1 -- so'": "where must be one comparison",
    f"train --label {'x' * 3000}": "'label' must be a name of at most 200 characters. Got 3,000",
    "map --minimum-area -1": "'minimum_area' must be 0 or more. Got -1.0 instead",
    "train --where ' '": "where must be a comparison such as species = 'Lantana'",
    "check --crs EPSG:nowhere": "a CRS that PROJ knows, such as EPSG:4326. Got 'EPSG:nowhere'",
    "train --target 1": "--target has no meaning for labels in labels.gpkg: leave it out",
    "train --labels-variable x": "--labels-variable has no meaning | leave it out",
    "train --bands 1-99": "there is no band 9: the file has bands 1-8",
    "check --bands red": "numbers from 1, such as 1-50,60; got 'red'",
    "check --drop-bands 1-8": "gives 0 (left out: | choose other bands or another file",
    "check --wavelengths 0.45-0.9": "in nm | write 450-900, not 0.45-0.9",
    "check --wavelengths 3000-4000": "gives 0 (left out: | choose other bands or another file",
    "check --variable cube": "has no one cube 'cube': name one of these",
    "train --folds 1": "'folds' must be 0, or from 2 to 20. Got 1 instead",
    "train --threshold 1.5": "'threshold' must be from 0 to 1. Got 1.5 instead",
    "train --threshold auto": "--threshold | auto | float",
    "map --threshold 1.5": "'threshold' must be from 0 to 1",
    "train --seeds 0": "'seeds' must be 1 or more. Got 0 instead",
    "train --order many": "--order | many | int",
    "train --method magic": "there is no method 'magic': see `thonecls methods`",
    "train --estimate-prior km2": "t-honecls needs no class prior: leave out --estimate-prior",
    "train --truth-target 1": "what is the truth's file? Give it by --truth",
    "report --truth-where 'n = 1'": "what is the truth's file? Give it by --truth",
    "report --truth gone.tif": GONE,
    "train --truth gone.tif": GONE,
    "report --truth TRUTH --truth-target 9": "pick one of these (--truth-target)",
    "train --truth TRUTH --truth-target 9": "is 9; it holds 1, 2, 3, 4: pick one of these",
    "train --truth LABELS": "knows no pixel besides the labels: give a truth of other pixels",
    "map --device abacus": "the device 'abacus' cannot be used here: take auto, cpu",
    "map --treshold 1": "Unknown option: --treshold. Did you mean --threshold?",
    "map --dask nowhere": "no Dask scheduler answers at nowhere | start one with `dask scheduler`",
    "map --dask tcp://127.0.0.1:9": "no Dask scheduler answers at tcp://127.0.0.1:9 | start one",
}
Build = Callable[[World], list[object]]
OTHERS: dict[str, tuple[Build, str]] = {
    "a band that an array has not": (
        lambda w: w("check --bands 9", scene=npy(w / "s.npy"), labels=pixels(w)),
        "there is no band 9: the scene has bands 1-8",
    ),
    "wavelengths that a file has not": (
        lambda w: w("check --wavelengths 450-900", scene=raster(w / "s.tif")),
        "the file names none: choose them by number, 1-8",
    ),
    "wavelengths of an array": (
        lambda w: w("check --wavelengths 450-900", scene=npy(w / "s.npy")),
        "names no wavelengths: choose bands by number (--bands)",
    ),
    "nothing valid": (lambda w: w("train", scene=raster(w / "s.tif", SAME, nodata=7)), NODATA),
    "nodata all over": (lambda w: w("train --nodata 7", scene=raster(w / "s.tif", SAME)), NODATA),
    "the same all over": (
        lambda w: w("train", scene=raster(w / "s.tif", SAME)),
        "are the same: give a scene whose values differ",
    ),
    "the same array all over": (
        lambda w: w("train", scene=npy(w / "s.npy", SAME), labels=pixels(w)),
        "are the same: give a scene whose values differ",
    ),
    "-9999, undeclared": (
        lambda w: w("train", scene=raster(w / "s.tif", filled(-9999))),
        "10.0% of the pixels of s.tif are -9999 in all bands | say --nodata -9999",
    ),
    "-32768, undeclared": (
        lambda w: w("train", scene=raster(w / "s.tif", filled(-32768, "i2"))),
        "say --nodata -32768; if it is data, say --nodata nan",
    ),
    "-3.4e38, undeclared": (
        lambda w: w("train", scene=raster(w / "s.tif", filled(-3.4028235e38))),
        "say --nodata -3.4028235e+38",
    ),
    "another value than the declared one": (
        lambda w: w("prior", scene=raster(w / "s.tif", filled(-9999), nodata=-1)),
        "say --nodata -9999",
    ),
    "all NaN": (lambda w: w("prior", scene=raster(w / "s.tif", SAME * np.float32("nan"))), NODATA),
    "all NaN in an array": (
        lambda w: w("train", scene=npy(w / "s.npy", SAME * np.nan), labels=pixels(w)),
        "NaN or infinite values in 1280 of 1280 pixels: repair or cut them out",
    ),
    "an unknown cube": (lambda w: w("check --variable c", scene=hdf5(w / "s.h5")), "these: cube"),
    "an unknown array": (lambda w: w("info --variable c", model=mat(w / "s.mat")), "it holds: c"),
    "a complex array by name": (
        lambda w: w("info --variable c", model=mat(w / "s.mat", c=CUBE * 1j)),
        "holds complex128, where real numbers are needed",
    ),
    "nothing to describe": (lambda w: w("info", model=w / "s.tif"), GONE),
    "a class that is nowhere": (
        lambda w: w("train --target 9", labels=w.example.truth),
        "is 9; it holds 1, 2, 3, 4: pick one of these (--target)",
    ),
    "a filter for a raster": (
        lambda w: w("train --where 'n = 1'", labels=w.example.truth),
        "--where has no meaning for labels in truth.tif: leave it out",
    ),
    "a class for pixels": (lambda w: w("train --target 1", labels=pixels(w)), "leave it out"),
    "other wavelengths": (lambda w: w("map", scene=hdf5(w / "s.h5")), "with these bands"),
    "fewer bands": (lambda w: w("map", scene=raster(w / "s.tif", CUBE[:4])), "give the same bands"),
    "an array of fewer bands": (
        lambda w: w("map --bands-axis first", scene=npy(w / "s.npy", CUBE[:4])),
        "trained on 7 bands, the scene has 4: give it the same bands",
    ),
    "a folder without model": (lambda w: w("map", model=bands(w / "b")), "no model: name a model"),
    "a scene that ends": (lambda w: w("map", scene=cut(raster(w / "s.tif", CUBE[:7]), 0.9)), SHORT),
    "a map that ends": (
        lambda w: w("report --truth LABELS", model=spoilt(w, "probability.tif", end)),
        "cannot read | probability.tif | map the scene again",
    ),
    "a file for a folder": (lambda w: w("train", out=written(w / "out", "x")), FOLDER),
    "a file above the folder": (lambda w: w("map", out=written(w / "out", "x") / "a/b"), FOLDER),
    "a model that is there": (lambda w: w("train", out=w.run), "--out, or say --overwrite"),
    "a training under way": (
        lambda w: w("train", out=written(w / "out/checkpoint.safetensors").parent),
        "holds an unfinished training: say --resume to go on with it, or --overwrite",
    ),
    "a map that is there": (
        lambda w: w("map", out=written(w / "out/map.json").parent),
        "holds a map already: choose another --out, or say --overwrite",
    ),
    "a map into a training": (lambda w: w("map", out=w.run), "own map: choose another --out"),
    "a pattern for nothing": (lambda w: w("map", scene=w / "*.tif"), "no file fits | check the"),
}
FILES = [  # which commands meet a bad file, as what
    (("train", "check"), "scene", SCENES),
    (("train", "prior"), "labels", LABELS),
    (("map", "info"), "model", MODELS),
    (("report",), "model", RUNS),
]


def commands_of(name: str, w: World) -> tuple[list[list[object]], str]:
    """The commands of a case, and what their message says."""
    for commands, kind, table in FILES:
        if name in table:
            maker, words = table[name]
            file = maker(w)
            return [w(command, **{kind: file}) for command in commands], words
    if name in OPTIONS:
        return [w(name)], OPTIONS[name]
    build, words = OTHERS[name]
    return [build(w)], words


@pytest.fixture(autouse=True, scope="module")
def one_opinion() -> Iterator[None]:
    """A matched filter alone beside every training: what others say is not the subject here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        yield


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Path]:
    """An example and a training of it, which no case may change."""
    here = tmp_path_factory.mktemp("good")
    example = write_example(here / "example", height=ROWS, width=COLUMNS, bands=BANDS, labels=20)
    labels = geopandas.read_file(example.labels)
    labels[labels["species"] == "lantana"].to_file(example.labels, layer="sightings")
    assert run(*World(example, here, here)("train --json")) == 0
    return example, here / "out"


@pytest.fixture
def world(good: tuple[Example, Path], tmp_path: Path) -> World:
    return World(*good, tmp_path)


def contents(*folders: Path) -> dict[str, str]:
    """All that lies in some folders, hidden files too."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for folder in folders
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("name", [*SCENES, *LABELS, *MODELS, *RUNS, *OPTIONS, *OTHERS])
def test_bad_input_is_refused_in_one_line_and_nothing_is_touched(
    name: str,
    world: World,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "dask" in name:
        distributed = pytest.importorskip("distributed")
        patient = distributed.Client
        monkeypatch.setattr(distributed, "Client", lambda at, timeout: patient(at, timeout="0.5s"))
    commands, words = commands_of(name, world)
    folders = world.here, world.run, world.example.scene.parent
    before = contents(*folders)
    capfd.readouterr()
    began = time.process_time()
    assert run(*commands[0]) == 2
    assert time.process_time() - began < PATIENCE
    said = capfd.readouterr()
    assert said.out == ""
    (line,) = filter(None, said.err.splitlines())
    assert line.startswith("error: ")
    assert [part for part in words.split(" | ") if part not in line] == [], line
    assert contents(*folders) == before

    assert run(*commands[-1], "--json") == 2
    said = capfd.readouterr()
    assert said.err == ""
    (error,) = json.loads(said.out).values()
    assert [part for part in words.split(" | ") if part not in error] == [], error
    assert contents(*folders) == before
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("cube", "words"),
    [
        (filled(-9999), "10.0% of the pixels of s.tif are -9999 in all bands | --nodata -9999"),
        (filled(-3.4028235e38), "say --nodata -3.4028235e+38"),
        (filled(1e34), "in all bands: if that is no data, say --nodata 9.9999998e+33"),
        (SAME, "are the same: give a scene whose values differ"),
    ],
)
def test_check_tells_of_fills_and_of_scenes_that_are_the_same_all_over(
    cube: np.ndarray, words: str, world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    scene = raster(world / "s.tif", cube)
    assert run("check", scene, "--json") == 2
    found = json.loads(capfd.readouterr().out)["findings"]
    problems = " ".join(f["words"] for f in found if f["status"] == "problem")
    assert [part for part in words.split(" | ") if part not in problems] == []
    if cube is not SAME:
        assert run("check", scene, "--json", "--nodata", "nan") == 0
        value = f"--nodata={float(cube[0, 0, 0]):.8g}"
        assert run("check", scene, "--json", value) == 0


def test_polygons_are_left_out_on_request(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(*world("map --json")) == 0
    assert (world / "out/polygons.gpkg").exists()
    assert run(*world("map --json --overwrite --no-polygons")) == 0
    assert not (world / "out/polygons.gpkg").exists()


def test_a_model_with_any_byte_changed_is_refused(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = (world.run / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = random.Random(0)
    places = [rng.randrange(8, header) for _ in range(40)]
    places += [rng.randrange(len(whole)) for _ in range(40)] + [0, 7, len(whole) - 1]
    for place in places:
        changed = bytes([whole[place] ^ 1 << rng.randrange(8)])
        written(world / "m.safetensors", whole[:place] + changed + whole[place + 1 :])
        assert run("info", world / "m.safetensors", "--json") == 2, place
        assert "error" in json.loads(capfd.readouterr().out)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 kB, which `mount -o remount,size=8m` makes larger."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("command", ["train", "map"])
def test_a_full_disk_is_left_as_it_was_and_a_larger_one_will_do(
    command: str, world: World, small_disk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = world(f"{command} --json", out=small_disk / "runs/out")
    capfd.readouterr()
    assert run(*words) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert f"cannot write to {small_disk}" in error
    assert "free disk space, or choose another folder" in error
    assert contents(small_disk) == {}
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    assert run(*words) == 0


def test_layers_of_a_map_appear_together_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when map.tif is made, after the other layers."""
    assert run(*world("map --json")) == 0
    before = contents(world.here)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("thonecls.maps.layers.write_cogs", full)
    assert run(*world("map --json --overwrite --floats")) == 2
    assert contents(world.here) == before
    assert run(*world("map --json", out=world / "new/folder")) == 2
    assert contents(world.here) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(world: World) -> None:
    world.here.chmod(0o500)
    assert run(*world("train")) == 2
    assert contents(world.here) == {}


@pytest.mark.parametrize("name", ["labels.gpkg", "l\u00e4nder [red].gpkg", "x" * 200 + ".gpkg"])
def test_crossing_polygons_and_odd_names_are_no_trouble(
    name: str, world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    corners = [inside(5, 5), inside(15, 15), inside(5, 15), inside(15, 5)]
    labels = layer(world / name, [Polygon(corners)])
    assert run(*world("check --json", labels=labels)) == 0
    found = json.loads(capfd.readouterr().out)
    words = [finding["words"] for finding in found["findings"]]
    assert "1 polygons were invalid and have been repaired" in words
