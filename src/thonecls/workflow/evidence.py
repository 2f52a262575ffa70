"""What a run remembers of its scene, so that its report can be made again without it."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError
from thonecls.files import write_atomically
from thonecls.scene import FloatArray, Scene, Source, read_all
from thonecls.workflow.runs import EVIDENCE

ROWS = 24  # rows of a large scene that are looked at


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a map is judged by.

    labels: (n,) flat indices; fold: (n,) of each, -1 where it was never left out; crossfit: (n,)
    its probability by a model that has not seen it, NaN where there is none. unlabeled: (models,
    pixels), the probability by each model on the lattice of pixels rows × columns; opinions:
    (methods, pixels), scores by other methods there. label_spectra, scene_spectra: (pixels, C), as
    the file has them; wavelengths: (C,), empty where they are not known; unlike: (pixels,) of the
    lattice, 1 where a spectrum is unlike any label's; components: (pixels, k) of its spectra,
    white, NaN on nodata.
    """

    labels: NDArray[np.int64]
    fold: NDArray[np.int64]
    crossfit: FloatArray
    unlabeled: FloatArray
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    opinions: FloatArray
    unlike: NDArray[np.bool_]
    components: FloatArray
    label_spectra: FloatArray
    scene_spectra: FloatArray
    wavelengths: NDArray[np.float64]


def save_evidence(out: Path, evidence: Evidence) -> None:
    """Write evidence.npz, whole or not at all."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{f.name: getattr(evidence, f.name) for f in fields(evidence)})
    write_atomically(out / EVIDENCE, buffer.getvalue())


def load_evidence(out: Path) -> Evidence:
    """Read what `save_evidence` wrote."""
    path = out / EVIDENCE
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            if flawed := found.zip.testzip():
                raise ValueError(f"the checksum of {flawed} differs")
            return Evidence(**{f.name: found[f.name] for f in fields(Evidence)})
    except Exception as error:  # a damaged file can fail anywhere inside two foreign parsers
        raise FileError(
            f"cannot read {path} ({error}): name the folder of a training, or train again"
        ) from error


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
