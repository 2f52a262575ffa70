"""Spectra of some pixels of a scene of any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thonecls.inputs import SceneInput
from thonecls.raster import RasterSource
from thonecls.scene import ArraySource, FloatArray, Scene, Source, read_all

ROWS = 24  # rows of a large scene that are looked at
FILL, HUGE = -999, 1e20  # a value so low, or so high, in most bands marks missing data
SAME = 0.5  # of the bands


def look_over(source: Source, count: int, rng: np.random.Generator) -> FloatArray:
    """Spectra of some valid pixels, (n, C): of rows spread over a large scene."""
    height, width = source.shape
    if height * width <= 20 * count:
        scene = read_all(source)
        spectra = scene.cube[:, scene.valid].T
    else:
        rows = np.unique(np.linspace(0, height - 1, ROWS).astype(int))
        parts = [source.read(slice(row, row + 1), slice(0, width)) for row in rows.tolist()]
        spectra = np.concatenate([part.cube[:, part.valid].T for part in parts])
    if len(spectra) > count:
        spectra = spectra[np.sort(rng.choice(len(spectra), count, replace=False))]
    return np.ascontiguousarray(spectra)


def find_trouble(scene: SceneInput, sample: FloatArray) -> str | None:
    """What makes a scene useless, by spectra (n, C) of it: it is the same all over, or has a fill.

    A value that looks like no data is asked about wherever nobody said what no data is.
    """
    if len(sample) > 1 and (sample == sample[0]).all():
        return (
            f"all pixels of {scene.path.name} that were looked at are the same: give a scene whose "
            "values differ, or say which value is no data (--nodata)"
        )
    told = isinstance(scene.source, ArraySource | RasterSource) and scene.source.nodata is not None
    if told or not len(sample):
        return None
    for extreme in (sample.min(axis=1), sample.max(axis=1)):
        same = (sample == extreme[:, None]).mean(axis=1) >= SAME
        odd = same & ((extreme <= FILL) | (extreme >= HUGE))
        if odd.any():
            value = float(extreme[odd][0])
            bands = "all bands" if (sample[odd][0] == value).all() else "most bands"
            return (
                f"{odd.mean():.1%} of the pixels of {scene.path.name} are {value:.8g} in {bands}: "
                f"if that is no data, say --nodata {value:.8g}; if it is data, say --nodata nan"
            )
    return None


def read_lattice(source: Source, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Scene:
    """The pixels at these rows and columns as a small scene, read row by row."""
    if len(rows) == source.shape[0] and len(columns) == source.shape[1]:
        return read_all(source)
    first, last = int(columns[0]), int(columns[-1])
    parts = [source.read(slice(row, row + 1), slice(first, last + 1)) for row in rows.tolist()]
    return Scene(
        np.concatenate([part.cube[:, :, columns - first] for part in parts], axis=1),
        np.concatenate([part.valid[:, columns - first] for part in parts]),
    )


def spectra_at(source: Source, pixels: NDArray[np.int64]) -> FloatArray:
    """Spectra of single pixels, (n, C); those on nodata are left out."""
    found = []
    for row, column in zip(*np.divmod(pixels, source.shape[1]), strict=True):
        part = source.read(slice(int(row), int(row) + 1), slice(int(column), int(column) + 1))
        if part.valid.all():
            found.append(part.cube[:, 0, 0])
    return np.stack(found) if found else np.empty((0, source.bands), np.float32)
