"""Spectra of some pixels of a scene of any size, wherever in it there are data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thonecls.io.inputs import SceneInput
from thonecls.io.raster import RasterSource
from thonecls.places import lattice
from thonecls.scene import ArraySource, BoolArray, FloatArray, Scene, Source, read_all

ROWS = 24  # rows of a large scene that are looked at
SIDE = 64  # pixels of the windows in which labels are looked up
ENOUGH = 500  # valid pixels: if fewer are met by chance, the scene is searched for them
STRIP = 2**18  # pixels that are searched at a time
FILL, HUGE = -999, 1e20  # a value so low, or so high, in most bands marks missing data
SAME = 0.5  # of the bands


def sample_spectra(source: Source, count: int, rng: np.random.Generator) -> FloatArray:
    """Spectra of some valid pixels, (n, C): of rows spread over a large scene."""
    height, width = source.shape
    if height * width <= 20 * count:
        scene = read_all(source)
        spectra = scene.cube[:, scene.valid].T
    else:
        spectra = _spectra_of_rows(source, np.linspace(0, height - 1, ROWS))
        if len(spectra) < min(ENOUGH, count):
            rows = rows_with_data(source)
            some = np.linspace(0, len(rows) - 1, ROWS).astype(int)
            spectra = _spectra_of_rows(source, rows[some] if len(rows) else rows)
    if len(spectra) > count:
        spectra = spectra[np.sort(rng.choice(len(spectra), count, replace=False))]
    return np.ascontiguousarray(spectra)


def _spectra_of_rows(source: Source, rows: NDArray[np.generic]) -> FloatArray:
    width = slice(0, source.shape[1])
    parts = [source.read(slice(r, r + 1), width) for r in np.unique(rows.astype(int)).tolist()]
    found = [part.cube[:, part.valid].T for part in parts]
    return np.concatenate([np.empty((0, source.bands), np.float32), *found])


def rows_with_data(source: Source) -> NDArray[np.int64]:
    """The rows that hold a valid pixel, in order; the whole scene is read for it."""
    height, width = source.shape
    step = max(1, STRIP // width)
    found = [
        source.read(slice(row, min(row + step, height)), slice(0, width)).valid.any(axis=1)
        for row in range(0, height, step)
    ]
    return np.flatnonzero(np.concatenate(found))


def judged_at(source: Source) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the lattice of pixels that a map is judged by.

    Evenly spread over the scene; where that meets hardly any data, over the rows and columns that
    have some.
    """
    rows, columns = lattice(source.shape)
    if len(rows) * len(columns) == source.shape[0] * source.shape[1]:
        return rows, columns
    if int(read_lattice(source, rows, columns).valid.sum()) >= ENOUGH:
        return rows, columns
    with_data = rows_with_data(source)
    if not with_data.size:
        return rows, columns
    rows = with_data[lattice((len(with_data), 1))[0]]
    every = np.arange(source.shape[1])
    columns = np.flatnonzero(read_lattice(source, rows, every).valid.any(axis=0))
    return rows, columns[lattice((len(columns), 1))[0]]


def valid_at(source: Source, mask: BoolArray) -> BoolArray:
    """Which pixels of a mask (H, W) have data, read in windows about them."""
    found = np.zeros_like(mask)
    for top in range(0, mask.shape[0], SIDE):
        for left in np.unique(np.flatnonzero(mask[top : top + SIDE].any(axis=0)) // SIDE) * SIDE:
            part = mask[top : top + SIDE, left : left + SIDE]
            down, across = np.flatnonzero(part.any(axis=1)), np.flatnonzero(part.any(axis=0))
            rows = slice(top + int(down[0]), top + int(down[-1]) + 1)
            columns = slice(int(left + across[0]), int(left + across[-1]) + 1)
            found[rows, columns] = source.read(rows, columns).valid
    return found & mask


def find_trouble(scene: SceneInput, sample: FloatArray) -> str | None:
    """What makes a scene useless, by spectra (n, C) of it: it is the same all over, or has a fill.

    A value that looks like no data is asked about wherever nobody said what no data is.
    """
    if len(sample) > 1 and (sample == sample[0]).all():
        return (
            f"all pixels of {scene.path.name} that were looked at are the same: give a scene whose "
            "values differ, or say which value is no data ('nodata')"
        )
    one = scene.parts[0] if scene.parts else scene  # all are read with the same options
    told = isinstance(one.source, ArraySource | RasterSource) and one.source.nodata is not None
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
                f"if that is no data, say 'nodata' {value:.8g}; if it is data, say 'nodata' nan"
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
