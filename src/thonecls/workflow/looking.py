"""Spectra of some pixels of a scene of any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thonecls.scene import FloatArray, Scene, Source, read_all

ROWS = 24  # rows of a large scene that are looked at


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
