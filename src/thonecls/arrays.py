"""Scenes and labels in plain array files: .npy, .npz, .mat and, for pixel lists, .csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy
from numpy.typing import NDArray

from thonecls.errors import FileError, LabelError, SceneError
from thonecls.scene import ArraySource, Bands, find_band_axis

ENDINGS = (".npy", ".npz", ".mat")
FORMS = ".npy, .npz or .mat"
NUMBERS = "biuf"  # the kinds of types that hold real numbers, as NumPy calls them


def read_array(path: Path, *, axes: int, variable: str | None = None) -> NDArray[Any]:
    """The one array of `axes` dimensions in a file, or the one that is named.

    MATLAB's own order of axes is kept for version 7.3 files too.
    """
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    try:
        arrays = _read_all(path)
    except Exception as e:  # a damaged file can fail anywhere inside three foreign parsers
        raise FileError(
            f"cannot read {path} ({e}): it must be a whole {FORMS} file of plain numbers"
        ) from e
    if variable is not None:
        if variable not in arrays:
            raise FileError(f"{path} has no array {variable!r}; it holds: {_listed(arrays)}")
        if arrays[variable].ndim != axes:
            raise FileError(
                f"{variable} in {path} has shape {arrays[variable].shape}, where {axes} axes are "
                f"needed; the file holds: {_listed(arrays)}"
            )
        if arrays[variable].dtype.kind not in NUMBERS:
            raise FileError(
                f"{variable} in {path} holds {arrays[variable].dtype}, where real numbers are "
                f"needed; the file holds: {_listed(arrays)}"
            )
        return arrays[variable]
    fitting = {n: a for n, a in arrays.items() if a.ndim == axes and a.dtype.kind in NUMBERS}
    if len(fitting) != 1:
        few, step = "no", "Give a file with one of real numbers"
        if fitting:
            few, step = "more than one", "Name one (--variable, of labels --labels-variable)"
        raise FileError(
            f"{path} holds {few} array of {axes} axes; it has: {_listed(arrays)}. {step}"
        )
    return next(iter(fitting.values()))


def read_positives(
    path: Path, *, target: int | None = None, variable: str | None = None
) -> NDArray[Any]:
    """Positives as an (H, W) mask, or as (n, 2) row/column pairs from a .csv file.

    target: the class to pick where the mask is a ground-truth map of several classes.
    """
    if path.suffix.lower() == ".csv":
        return _read_pairs(path)
    array = read_array(path, axes=2, variable=variable)
    return array if target is None else np.asarray(array == target)


def open_scene(
    path: Path,
    *,
    axis: Bands | None = None,
    variable: str | None = None,
    labels: NDArray[Any] | None = None,
    bands: int | None = None,
    nodata: float | None = None,
) -> ArraySource:
    """The scene in an array file, read part by part where it is a .npy file.

    Which axis holds the bands follows from `axis`, or from the labels' shape, or from the number
    of bands that a model expects; where that leaves a doubt it is an error, never a guess.
    """
    array = read_array(path, axes=3, variable=variable)
    if axis is None:
        axis = band_axis(array.shape, labels=labels, bands=bands)
    if axis is None:
        known = f"the model's {bands} bands" if labels is None else f"labels of {labels.shape}"
        raise SceneError(
            f"cannot tell which axis of {path.name} {array.shape} holds the bands from {known}: "
            "say --bands-axis first or --bands-axis last, and check that the two belong together"
        )
    return ArraySource(array if axis == "first" else np.moveaxis(array, 2, 0), nodata=nodata)


def band_axis(
    shape: tuple[int, ...], *, labels: NDArray[Any] | None = None, bands: int | None = None
) -> Bands | None:
    """`find_band_axis` for labels given as a mask or as row/column pairs."""
    mask = pairs = None
    if labels is not None:
        is_mask = labels.shape in (shape[1:], shape[:2])
        if not is_mask and labels.shape[1:] == (2,) and len(labels):
            pairs = (int(labels[:, 0].max()), int(labels[:, 1].max()))
        elif labels.ndim == 2:
            mask = (labels.shape[0], labels.shape[1])
    return find_band_axis(shape, mask=mask, pairs=pairs, bands=bands)


def _read_all(path: Path) -> dict[str, NDArray[Any]]:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        # Memory-mapped: a large cube is not read to learn its shape. Pickles are refused.
        return {path.stem: np.lib.format.open_memmap(path, mode="r")}
    if suffix == ".npz":
        with path.open("rb") as file, np.lib.npyio.NpzFile(file) as archive:
            return {name: archive[name] for name in archive.files}
    if suffix == ".mat":
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as tree:
                found = {k: v for k, v in tree.items() if isinstance(v, h5py.Dataset)}
                return {name: np.asarray(data).T for name, data in found.items()}
        contents = scipy.io.loadmat(path)
        return {k: v for k, v in contents.items() if isinstance(v, np.ndarray)}
    raise ValueError(f"unknown ending {suffix!r}")


def _read_pairs(path: Path) -> NDArray[np.int64]:
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(f"cannot read {path} ({e}): it must be a UTF-8 text file") from e
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    if rows and not all(cell.lstrip("-").isdigit() for cell in rows[0]):
        header = [cell.lower() for cell in rows.pop(0)]
        if header[:2] not in (["row", "column"], ["row", "col"]):
            raise LabelError(f"{path} starts with {header}: its columns must be row,column")
    try:
        pairs = np.array([[int(row), int(column)] for row, column in rows], dtype=np.int64)
    except ValueError as e:
        raise LabelError(f"{path} must hold two whole numbers a line, row,column ({e})") from e
    if len(pairs) == 0:
        raise LabelError(f"{path} lists no pixel: write one row,column a line")
    return pairs.reshape(-1, 2)


def _listed(arrays: dict[str, NDArray[Any]]) -> str:
    return ", ".join(f"{name} {a.shape} {a.dtype}" for name, a in arrays.items()) or "nothing"
