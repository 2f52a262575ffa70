"""Maps read back from the folder that they were written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.windows import Window

from thonecls.errors import FileError
from thonecls.io.arrays import read_array
from thonecls.io.raster import open_gdal
from thonecls.maps import MAP, MISSING
from thonecls.scene import FloatArray, Grid

STRIP = 512  # rows at a time


def read_map_strips(out: Path) -> Iterator[NDArray[np.uint8]]:
    """The map in a folder, some rows at a time: 1 the class, 0 other, 255 nodata."""
    if not (out / MAP).exists():
        array = np.load(out / "map.npy", mmap_mode="r")
        for start in range(0, len(array), STRIP):
            yield np.asarray(array[start : start + STRIP])
        return
    with open_gdal(str(out / MAP), out / MAP) as file:
        for start in range(0, file.height, STRIP):
            window = Window(0, start, file.width, min(STRIP, file.height - start))
            yield _read_part(file, out / MAP, window)


def read_probability(out: Path) -> tuple[Grid, FloatArray]:
    """Where the map of a folder lies, and its probabilities, NaN on nodata."""
    found = _read_layer(out, "probability")
    if found is None:
        raise FileError(f"{out} holds no map: name the folder of a training")
    return found


def read_novelty(out: Path) -> FloatArray | None:
    """How unlike the training scene pixels are, NaN on nodata, where a folder tells it."""
    found = _read_layer(out, "novelty")
    return None if found is None else found[1]


def read_novelty_strips(out: Path) -> Iterator[FloatArray]:
    """The same, some rows at a time."""
    path = out / "novelty.tif"
    if not path.exists():
        whole = read_novelty(out)
        yield from () if whole is None else (whole,)
        return
    with open_gdal(str(path), path) as file:
        for start in range(0, file.height, STRIP):
            window = Window(0, start, file.width, min(STRIP, file.height - start))
            yield _values(_read_part(file, path, window), file.scales[0])


def _read_layer(out: Path, name: str) -> tuple[Grid, FloatArray] | None:
    """A layer of a map, NaN on nodata, and where it lies; None where there is no such layer."""
    if (out / f"{name}.npy").exists():
        array = read_array(out / f"{name}.npy", axes=2)
        return Grid(array.shape), array
    path = out / f"{name}.tif"
    if not path.exists():
        return None
    with open_gdal(str(path), path) as file:
        values = _values(_read_part(file, path), file.scales[0])
        crs = file.crs.to_wkt() if file.crs else None
        grid = Grid((file.height, file.width), tuple(file.transform)[:6], crs)
    return grid, values


def _values(raw: NDArray[Any], scale: float) -> FloatArray:
    missing = raw == MISSING if raw.dtype == np.uint8 else ~np.isfinite(raw)
    return np.where(missing, np.float32("nan"), raw * np.float32(scale)).astype(np.float32)


def _read_part(file: Any, path: Path, window: Window | None = None) -> NDArray[Any]:
    try:
        return np.asarray(file.read(1, window=window))
    except OSError as error:  # GDAL's own words are in the cause
        raise FileError(
            f"cannot read {path} ({error.__cause__ or error}): map the scene again"
        ) from error
