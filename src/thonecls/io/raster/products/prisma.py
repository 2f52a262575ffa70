"""PRISMA L2D: HDF-EOS 5 with one cube of each detector, on a grid of UTM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyproj
from numpy.typing import NDArray

from thonecls.errors import FileError
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import Band
from thonecls.io.raster.files import LazyFile
from thonecls.io.raster.products.overlap import without_overlap
from thonecls.io.raster.products.quality import Product
from thonecls.scene import BoolArray

SWATHS = "HDFEOS/SWATHS"
CUBES = f"{SWATHS}/PRS_L2D_HCO/Data Fields"
PIXEL = 30.0  # metres
HIGHEST = 65535  # the whole number that stands for L2Scale...Max


@dataclass(frozen=True)
class Joined:
    """Bands of several arrays, rows × bands × columns, as one cube; 0 in all of them is no data."""

    path: Path
    parts: tuple[tuple[str, int], ...]  # array and position of each band

    def open(self) -> Any:
        return h5py.File(self.path, "r")

    def read(
        self, file: Any, numbers: Sequence[int], rows: slice, columns: slice, step: int
    ) -> tuple[NDArray[Any], BoolArray | None]:
        parts = [self.parts[number - 1] for number in numbers]
        down, across = (slice(part.start, part.stop, step) for part in (rows, columns))
        shape = tuple(len(range(part.start, part.stop, step)) for part in (rows, columns))
        raw = np.empty((len(numbers), *shape), np.uint16)
        for name in dict.fromkeys(name for name, _ in parts):
            wanted = [(i, at) for i, (array, at) in enumerate(parts) if array == name]
            first = min(at for _, at in wanted)
            block = file[name][down, first : max(at for _, at in wanted) + 1, across]
            for i, at in wanted:
                raw[i] = block[:, at - first]
        # A single band may well be 0: where water vapour takes all light, and in the dark.
        return raw, (raw != 0).any(axis=0)


def prisma_product(path: Path) -> Product | None:
    """The two cubes of a PRISMA L2D file, joined in the order of wavelengths."""
    with h5py.File(path, "r") as tree:
        if f"{CUBES}/VNIR_Cube" not in tree or f"{CUBES}/SWIR_Cube" not in tree:
            _refuse_other_levels(path, tree)
            return None
        shapes = {tree[f"{CUBES}/{part}_Cube"].shape for part in ("VNIR", "SWIR")}
        sizes = {(shape[0], shape[2]) for shape in shapes}
        if len(sizes) != 1:
            raise FileError(f"the cubes of {path} have the shapes {sorted(shapes)}: copy it again")
        found = [*_bands(tree, "Vnir"), *_bands(tree, "Swir")]
        grid = _grid(tree.attrs, *sizes)
    parts = tuple(part for part, _ in found)
    numbered = [replace(band, number=i) for i, (_, band) in enumerate(found, 1)]
    first = range(sum(name.endswith("VNIR_Cube") for name, _ in parts))
    bands = without_overlap(numbered, first)
    words = "PRISMA L2D, both cubes joined in the order of wavelengths"
    return Product((LazyFile(Joined(path, parts)), grid, bands), (words,))


def _refuse_other_levels(path: Path, tree: Any) -> None:
    """Levels in the geometry of the sensor, without a table that would lay them on a map."""
    swaths = tree.get(SWATHS, ())
    levels = [name[4:-4] for name in swaths if re.fullmatch(r"PRS_L(1|2B|2C)_HCO", name)]
    if levels:
        raise FileError(
            f"{path} is PRISMA {levels[0]}, in the geometry of the sensor: get the L2D product of "
            "the same date, which lies on a map"
        )


def _bands(tree: Any, part: str) -> list[tuple[tuple[str, int], Band]]:
    """The bands of a detector that are used, by wavelength: the file may have them backwards."""
    name = f"{CUBES}/{part.upper()}_Cube"
    about = tree.attrs
    count = tree[name].shape[1]
    waves, widths = (
        np.ravel(about[f"List_{kind}_{part}"]).astype(float) for kind in ("Cw", "Fwhm")
    )
    flags = np.ravel(about.get(f"List_Cw_{part}_Flags", np.ones(count)))
    if not len(waves) == len(widths) == len(flags) == count:
        raise ValueError(f"{name} has {count} bands, and {len(waves)} wavelengths")
    low, high = (float(np.ravel(about[f"L2Scale{part}{end}"])[0]) for end in ("Min", "Max"))
    used = [i for i in np.argsort(waves).tolist() if waves[i] > 0 and flags[i]]
    scale = (high - low) / HIGHEST
    return [
        (
            (name, i),
            Band(1, f"{part.upper()} {i + 1}", waves[i], widths[i] or None, scale, low),
        )
        for i in used
    ]


def _grid(about: Any, shape: tuple[int, int]) -> Grid:
    """By the corners in UTM: the outer ones of the image, or the centres of its corner pixels.

    Readers do not agree which of the two they are; the distance between them tells.
    """
    edges = {
        name: float(np.ravel(about[f"Product_{name}"])[0])
        for name in (
            *("ULcorner_easting", "ULcorner_northing"),
            *("LRcorner_easting", "LRcorner_northing"),
        )
    }
    left, top = edges["ULcorner_easting"], edges["ULcorner_northing"]
    spans = edges["LRcorner_easting"] - left, top - edges["LRcorner_northing"]
    steps, half = [], False
    for span, count in zip(spans, shape[::-1], strict=True):
        choices = [(span / count, False), (span / max(count - 1, 1), True)]
        step, half = min(choices, key=lambda choice: abs(choice[0] - PIXEL))
        steps.append(step)
    if half:
        left, top = left - steps[0] / 2, top + steps[1] / 2
    code = int(np.ravel(about["Epsg_Code"])[0])
    crs = pyproj.CRS.from_epsg(code).to_wkt()
    return Grid(shape, (steps[0], 0.0, left, 0.0, -steps[1], top), crs)
