"""What a run remembers of its scene, so that its report can be made again without it."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError
from thonecls.files import write_atomically
from thonecls.method.model import Crossfit
from thonecls.scene import BoolArray, FloatArray, Source
from thonecls.schema import EVIDENCE as EVIDENCE_RULES
from thonecls.schema import MismatchError, check_arrays
from thonecls.trust import lattice, spectral_components, unlike_labels
from thonecls.workflow.crossfit import second_opinions
from thonecls.workflow.run_folder import EVIDENCE
from thonecls.workflow.spectra import read_lattice, spectra_at

SPECTRA = 500  # labels and pixels whose spectra are kept
MOST = 2**30  # bytes of evidence, unpacked


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


Lattice = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows and columns


def spread_out(shape: tuple[int, int], at: Lattice | None = None) -> NDArray[np.int64]:
    """The flat indices of the pixels that a map is judged by: of a lattice, else the even one."""
    rows, columns = at or lattice(shape)
    return (rows[:, None] * shape[1] + columns).ravel()


def gather_evidence(
    source: Source,
    positives: BoolArray,
    left_out: Crossfit,
    unlabeled: FloatArray,
    *,
    method: str,
    at: Lattice | None = None,
    seed: int = 0,
    wavelengths: tuple[float, ...] | None = None,
) -> tuple[Evidence, list[str]]:
    """What a map is judged by, and the methods that have an opinion on it.

    unlabeled: (models, pixels) of the map at `spread_out`, of the lattice `at`; method: which made
    the map.
    """
    rng = np.random.default_rng(seed)
    labelled = left_out.pixels
    if labelled.size > SPECTRA:
        labelled = rng.choice(labelled, SPECTRA, replace=False)
    spectra = spectra_at(source, labelled)
    rows, columns = at or lattice(source.shape)
    looked_at = read_lattice(source, rows, columns)
    opinions = second_opinions(source, positives, looked_at, seed=seed, but=method)
    seen = looked_at.cube[:, looked_at.valid].T
    together = spectral_components(np.concatenate([spectra, seen]))
    unlike = np.zeros(looked_at.shape, dtype=bool)
    unlike[looked_at.valid] = unlike_labels(together[: len(spectra)], together[len(spectra) :])
    components = np.full((*looked_at.shape, together.shape[1]), np.nan, np.float32)
    components[looked_at.valid] = together[len(spectra) :]
    some = np.sort(rng.choice(len(seen), min(SPECTRA, len(seen)), replace=False))
    scores = [scores.ravel() for scores in opinions.values()]
    evidence = Evidence(
        labels=left_out.pixels,
        fold=left_out.fold,
        crossfit=left_out.probability,
        unlabeled=unlabeled,
        rows=rows,
        columns=columns,
        opinions=np.stack(scores) if scores else np.empty((0, unlike.size), np.float32),
        unlike=unlike.ravel(),
        components=components.reshape(unlike.size, -1),
        label_spectra=spectra,
        scene_spectra=seen[some],
        wavelengths=np.array(wavelengths or (), dtype=np.float64),
    )
    return evidence, list(opinions)


def _check(arrays: dict[str, NDArray[Any]], shape: tuple[int, int], opinions: int | None) -> None:
    """Refuse arrays that do not fit each other, or not the map."""
    sizes = check_arrays(arrays, EVIDENCE_RULES)
    limits = {"labels": shape[0] * shape[1], "rows": shape[0], "columns": shape[1]}
    for name, limit in limits.items():
        if arrays[name].size and arrays[name].max() >= limit:
            raise MismatchError(f"its array '{name}' must lie in a map of {shape[0]} × {shape[1]}")
    if sizes["pixels"] != sizes["rows"] * sizes["columns"] or not sizes["pixels"]:
        raise MismatchError("its pixels must lie on a lattice of its rows and columns")
    if sizes["wavelengths"] not in (0, sizes["bands"]) or not sizes["models"]:
        raise MismatchError("its spectra and wavelengths must be of the same bands")
    if opinions not in (None, sizes["opinions"]):
        raise MismatchError(f"it must hold {opinions} opinions. Got {sizes['opinions']} instead")


def save_evidence(out: Path, evidence: Evidence) -> None:
    """Write evidence.npz, whole or not at all."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{f.name: getattr(evidence, f.name) for f in fields(evidence)})
    write_atomically(out / EVIDENCE, buffer.getvalue())


def load_evidence(out: Path, shape: tuple[int, int], *, opinions: int | None = None) -> Evidence:
    """Read what `save_evidence` wrote, of a map of this shape; opinions: how many there must be."""
    path = out / EVIDENCE
    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            if (size := sum(info.file_size for info in found.zip.infolist())) > MOST:
                raise ValueError(f"it unpacks to {size:,} bytes, more than {MOST:,}")
            if flawed := found.zip.testzip():
                raise ValueError(f"the checksum of {flawed} differs")
            arrays = {f.name: found[f.name] for f in fields(Evidence)}
        _check(arrays, shape, opinions)
        return Evidence(**arrays)
    except Exception as error:  # a damaged file can fail anywhere inside two foreign parsers
        raise FileError(
            f"cannot read {path} ({error}): name the folder of a training, or train again"
        ) from error
