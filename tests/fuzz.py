"""Files that nobody would write, for every reader: bytes in, an error of ours or a result out.

    python tests/fuzz.py [--cases 2000] [--reader NAME] [--atheris]

A few of each run in the test suite; `make fuzz` runs thousands. Each target takes a seed: it begins
with a good file, spoils it as the seed says, and reads it. Where `atheris` is installed, --atheris
lets it look for inputs by what they reach in our code; it goes on until it is stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pyproj import CRS

import spoilt
import strange_models as models
from thonecls.errors import ThoneclsError
from thonecls.io.grid import Grid
from thonecls.io.inputs import read_labels, read_scene
from thonecls.io.raster import open_raster
from thonecls.methods.spectral_model import load_model
from thonecls.workflow.spectra import sample_spectra

GRID = Grid((spoilt.ROWS, spoilt.COLUMNS), tuple(spoilt.PLACE)[:6])
PART, LONGEST = 500, 600  # cases of a process, and its seconds
ODD = [
    b"",
    b"\0",
    b"\xff" * 8,
    b"-1",
    b"9" * 30,
    b"nan",
    b'"',
    b"{",
    b"[" * 50,
    b",",
    b"\n",
    b"1e999",
]
WORDS = ["abc", "-1", "0", "99999999999", "1e400", "nan", "", "{", "{1, 2", "\0", "9" * 40, "é"]


def spoil(content: bytes, rng: random.Random, most: int = 4) -> bytes:
    """Bytes flipped, cut, doubled, and replaced by odd ones."""
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(content) + 1)
        end = min(len(content), at + rng.choice([1, 1, 2, 4, 8, 40]))
        kind = rng.randrange(5)
        if kind == 0 and content:
            at = min(at, len(content) - 1)
            flipped = bytes([content[at] ^ (1 << rng.randrange(8))])
            content = content[:at] + flipped + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + content[end:]
        elif kind == 2:
            content = content[:end] + content[at:]
        elif kind == 3:
            content = content[:at] + rng.choice(ODD) + content[end:]
        elif rng.random() < 0.3:
            content = content[:at]
    return content


def _file(folder: Path, name: str, make: Callable[[Path], Path], rng: random.Random) -> Path:
    """A good file, spoilt."""
    good = make(folder / name)
    good.write_bytes(spoil(good.read_bytes(), rng))
    return good


def read_raster(folder: Path, rng: random.Random) -> None:
    """A GeoTIFF scene."""
    _look(_file(folder, "s.tif", spoilt.raster, rng))


def read_hdf5(folder: Path, rng: random.Random) -> None:
    """A scene in HDF5."""
    _look(_file(folder, "s.h5", spoilt.hdf5, rng))


def read_netcdf(folder: Path, rng: random.Random) -> None:
    """A scene in NetCDF 3."""
    _look(_file(folder, "s.nc", lambda path: spoilt.many_bands(path, 3), rng))


def _look(path: Path) -> None:
    sample_spectra(open_raster(path), 50, np.random.default_rng(0))


def read_envi_header(folder: Path, rng: random.Random) -> None:
    """An ENVI scene with another header."""
    path = spoilt.raster(folder / "s.bsq", driver="ENVI")
    header = path.with_suffix(".hdr")
    text = header.read_text("utf-8") + "wavelength = {400, 500}\nbbl = {1, 0}\nheader offset = 0\n"
    lines = text.splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        key, _, value = lines[at].partition("=")
        kind = rng.randrange(4)
        if kind == 0:
            lines[at] = f"{key}= {rng.choice(WORDS)}"
        elif kind == 1:
            lines[at] = f"{key}={re.sub('[0-9]+', rng.choice(WORDS), value, count=1)}"
        elif kind == 2:
            lines.insert(at, lines[rng.randrange(len(lines))])
        else:
            del lines[at]
            lines.append("")
    content = "\n".join(lines).encode()
    header.write_bytes(content if rng.random() < 0.6 else spoil(content, rng))
    _look(path)


def read_array_file(folder: Path, rng: random.Random) -> None:
    """A .npy, .npz or .mat scene, or labels in one."""
    make: dict[str, Callable[[Path], Path]] = {
        "s.npy": spoilt.npy,
        "s.npz": spoilt.npz,
        "s.mat": spoilt.mat,
        "h.mat": spoilt.hdf5,
    }
    name = rng.choice(list(make))
    path = _file(folder, name, make[name], rng)
    if rng.random() < 0.3:
        read_labels(path, GRID)
    else:
        scene = read_scene(path, bands=spoilt.BANDS)
        sample_spectra(scene.source, 50, np.random.default_rng(0))


def read_table(folder: Path, rng: random.Random) -> None:
    """A CSV of pixels or of coordinates."""
    sign = rng.choice(",;\t")
    names = rng.choice([["row", "column"], ["lon", "lat"], ["x", "y", "name"], ["", "row", "col"]])
    cells = [[str(rng.randint(0, 30)) for _ in names] for _ in range(4)]
    if rng.random() < 0.7:
        rng.choice(cells)[rng.randrange(len(names))] = rng.choice(WORDS)
    quote = rng.choice(["", '"'])
    lines = [sign.join(f"{quote}{cell}{quote}" for cell in row) for row in [names, *cells]]
    content = "\n".join(lines).encode()
    path = folder / "l.csv"
    path.write_bytes(content if rng.random() < 0.5 else spoil(content, rng))
    read_labels(path, GRID)


def read_vector(folder: Path, rng: random.Random) -> None:
    """A layer of points."""
    name = rng.choice(["l.gpkg", "l.geojson", "l.shp", "l.fgb"])
    shapes = [spoilt.inside(), spoilt.inside(7, 7)]
    grid = replace(GRID, crs=CRS.from_epsg(32633).to_wkt())
    read_labels(_file(folder, name, lambda path: spoilt.layer(path, shapes), rng), grid)


KNOWN: dict[str, tuple[models.About, models.Tensors]] = {}


def read_model(folder: Path, rng: random.Random) -> None:
    """A model with facts and arrays of any kind, and a checksum that is right; then scored."""
    kind = rng.choice(models.KINDS)
    path = folder / "m.safetensors"
    if kind not in KNOWN:
        KNOWN[kind] = models.contents(path, kind)

    def change(about: models.About, tensors: models.Tensors) -> None:
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.6:
                place: Any = about
                name: Any = rng.choice(sorted(place))
                while isinstance(place[name], dict | list) and place[name] and rng.random() < 0.7:
                    place = place[name]
                    keys = sorted(place) if isinstance(place, dict) else range(len(place))
                    name = rng.choice(list(keys))
                place[name] = rng.choice(models.JUNK)
            else:
                name = rng.choice(sorted(tensors))
                tensor = tensors[name].clone()
                odd = rng.choice([np.nan, np.inf, -1e30, 0.0, 1e30])
                kinds = [tensor[:0], tensor.flatten(), tensor.double(), tensor.long()]
                if tensor.numel():
                    tensor.view(-1)[rng.randrange(tensor.numel())] = odd
                tensors[name] = rng.choice([tensor, *kinds])

    models.changed(path, kind, change, KNOWN[kind])
    if rng.random() < 0.2:
        path.write_bytes(spoil(path.read_bytes(), rng))
    model = load_model(path)
    scores = model.score(np.random.default_rng(0).normal(size=(models.BANDS, 9, 9)))
    if np.isnan(scores).any():
        raise AssertionError("a model that was taken maps NaN, without a word")


def read_run_json(folder: Path, rng: random.Random) -> None:
    """A run.json."""
    from thonecls.workflow.run_folder import RUN, read_run

    facts: dict[str, object] = {
        **dict.fromkeys(("cube", "labels", "out", "method"), "x"),
        **dict.fromkeys(("positives", "held_out", "seeds", "seconds"), 1),
        **{"threshold": 0.5, "mapped_share": 0.1, "notes": [], "opinions": [], "config": {}},
    }
    facts[rng.choice(list(facts))] = rng.choice(models.JUNK)
    content = json.dumps(facts).encode()
    (folder / RUN).write_bytes(content if rng.random() < 0.5 else spoil(content, rng))
    read_run(folder, {})


READERS: dict[str, Callable[[Path, random.Random], None]] = {
    "raster": read_raster,
    "hdf5": read_hdf5,
    "netcdf": read_netcdf,
    "envi": read_envi_header,
    "arrays": read_array_file,
    "table": read_table,
    "vector": read_vector,
    "model": read_model,
    "run": read_run_json,
}


def try_one(reader: str, seed: int) -> bool:
    """Read one spoilt file; whether it was taken. Any error but ours is raised."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            READERS[reader](Path(folder), random.Random(f"{reader} {seed}"))
        except ThoneclsError as error:
            if not str(error).strip():
                raise AssertionError("an error without words") from error
            return False
    return True


def _by_atheris(names: list[str]) -> None:
    """Let atheris choose the seeds, by the code that they reach."""
    import atheris

    def one(data: bytes) -> None:
        reader = names[data[0] % len(names)] if data else names[0]
        try_one(reader, int.from_bytes(data[1:9], "little"))

    atheris.instrument_all()
    atheris.Setup(sys.argv[:1], one)
    atheris.Fuzz()


def _run(name: str, seeds: range) -> tuple[int, int]:
    """Cases of a reader, in this process: how many were taken, and how many failed."""
    taken = failed = 0
    for seed in seeds:
        try:
            taken += try_one(name, seed)
        except Exception as error:  # whatever it is, it is a find
            failed += 1
            print(f"{name} {seed}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return taken, failed


def _run_apart(name: str, seeds: range) -> bool:
    """The same in a process of its own, which GDAL may end; whether all went well."""
    words = ["--reader", name, "--start", str(seeds.start), "--cases", str(len(seeds)), "--here"]
    try:
        done = subprocess.run([sys.executable, __file__, *words], timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        print(f"{name} {seeds.start}-{seeds.stop - 1}: not done in {LONGEST} s", flush=True)
        return False
    if done.returncode < 0:
        print(f"{name} {seeds.start}-{seeds.stop - 1}: signal {-done.returncode}", flush=True)
    return done.returncode == 0


def main() -> int:
    """Run so many cases of each reader; those that fail are told by their seeds."""
    parser = argparse.ArgumentParser(description="Spoilt files for every reader.")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--reader", choices=READERS, action="append")
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    names = given.reader or list(READERS)
    if given.atheris:
        _by_atheris(names)
    seeds = range(given.start, given.start + given.cases)
    fine = True
    for name in names:
        if given.here:
            taken, failed = _run(name, seeds)
            fine &= not failed
            print(f"{name}: {len(seeds)} cases from {seeds.start}, {taken} taken", flush=True)
        else:
            for i in range(0, len(seeds), PART):
                fine &= _run_apart(name, seeds[i : i + PART])
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
