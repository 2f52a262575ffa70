"""Scenes and labels in plain array files: .npy, .npz, .mat and, for pixel lists, .csv."""

from __future__ import annotations

import math
import reprlib
import zipfile
from collections.abc import Callable
from functools import partial
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
MATLAB = {  # its types of real numbers
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "i8"),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "u8"),
    **{"double": "f8", "single": "f4", "logical": "?"},
}
UNPACKED = 2**30  # bytes: less is no harm
RATIO = 100  # times the file: pictures are packed to a third or so, nothing at all to a thousandth
MOST_LIST = 2**28  # bytes of a list of pixels
NUMBERS = "biuf"  # the kinds of types that hold real numbers, as NumPy calls them


def read_array(path: Path, *, axes: int, variable: str | None = None) -> NDArray[Any]:
    """The one array of `axes` dimensions in a file, or the one that is named.

    MATLAB's own order of axes is kept for version 7.3 files too.
    """
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    try:
        arrays = _read_all(path, axes, variable)
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
            few, step = "more than one", "Name one ('variable', of labels 'labels_variable')"
        raise FileError(
            f"{path} holds {few} array of {axes} axes; it has: {_listed(arrays)}. {step}",
            options=("variable", "labels_variable"),
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
        known, check = "", ""
        if labels is not None or bands is not None:
            known = f" from labels of {labels.shape}" if labels is not None else ""
            known = known or f" from the model's {bands} bands"
            check = ", and check that the two belong together"
        raise SceneError(
            f"cannot tell which axis of {path.name} {array.shape} holds the bands{known}: say "
            f"'bands_axis' first or 'bands_axis' last{check}",
            options=("bands_axis",),
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


def _read_all(path: Path, axes: int, variable: str | None) -> dict[str, NDArray[Any]]:
    """Every array of a file; those that nobody asks for are not read, and hold nothing."""
    suffix = path.suffix.lower()

    def wanted(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        """Whether an array may be the one; one that unpacks beyond all measure is refused."""
        if len(shape) != axes or dtype.kind not in NUMBERS or variable not in (None, name):
            return False
        size = math.prod(shape) * dtype.itemsize
        if size > UNPACKED and size > RATIO * path.stat().st_size:
            raise ValueError(
                f"{name} unpacks to {size:,} bytes, {size // path.stat().st_size:,} times the file"
            )
        return True

    if suffix == ".npy":
        # Memory-mapped: a large cube is not read to learn its shape. Pickles are refused.
        return {path.stem: np.lib.format.open_memmap(path, mode="r")}
    if suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            return {
                name: _read_member(archive, info, partial(wanted, name))
                for info in archive.infolist()
                if (name := info.filename.removesuffix(".npy")) != info.filename
            }
    if suffix == ".mat":
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as tree:
                found = {k: v for k, v in tree.items() if isinstance(v, h5py.Dataset)}
                return {
                    name: np.asarray(own_data(data)).T
                    if wanted(name, data.shape, data.dtype)
                    else unread(data.shape[::-1], data.dtype)
                    for name, data in found.items()
                }
        # Shapes and MATLAB's names of types, without the data.
        known = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
        dtypes = {name: np.dtype(MATLAB.get(kind, "O")) for name, (_, kind) in known.items()}
        picked = [name for name, (shape, _) in known.items() if wanted(name, shape, dtypes[name])]
        contents = scipy.io.loadmat(path, variable_names=picked) if picked else {}
        return {
            name: np.asarray(contents[name]) if name in contents else unread(shape, dtypes[name])
            for name, (shape, _) in known.items()
        }
    raise ValueError(f"unknown ending {suffix!r}")


def own_data(data: Any) -> Any:
    """A dataset of HDF5 whose values are in the file itself, not in others that it names."""
    if data.is_virtual or data.external:
        raise ValueError(f"{data.name} is a description of data in other files: give those")
    return data


def unread(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of this shape and type that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _read_member(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    wanted: Callable[[tuple[int, ...], np.dtype[Any]], bool],
) -> NDArray[Any]:
    """One array of a .npz file, or its header alone."""
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            header = np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
    if not wanted(shape, dtype):
        return unread(shape, dtype)
    if (size := math.prod(shape) * dtype.itemsize) > info.file_size:
        raise ValueError(f"{info.filename} has {info.file_size:,} bytes where {size:,} are told")
    with archive.open(info) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _read_pairs(path: Path) -> NDArray[np.int64]:
    if not path.is_file():
        raise FileError(f"there is no file {path}: check the path")
    if (size := path.stat().st_size) > MOST_LIST:
        raise FileError(f"{path} has {size:,} bytes, more than any list of pixels: give a mask")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(f"cannot read {path} ({e}): it must be a UTF-8 text file") from e
    rows = [pixel_cells(line) for line in lines if line.strip()]
    if rows and not all(is_whole(cell) for cell in rows[0]):
        header = [cell.lower() for cell in rows.pop(0)]
        # Spreadsheets and R may number their lines first.
        first = 1 if header[:1] in ([""], ["id"]) and len(header) > 2 else 0
        if header[first : first + 2] not in (["row", "column"], ["row", "col"]):
            raise LabelError(
                f"{path} starts with {reprlib.repr(header)}: its columns must be row,column"
            )
        rows = [cells[first:] for cells in rows]
    try:
        pairs = np.array([[int(row), int(column)] for row, column in rows], dtype=np.int64)
    except (ValueError, OverflowError) as e:
        raise LabelError(
            f"{path} must hold two whole numbers a line, row,column ({str(e)[:100]})"
        ) from e
    if len(pairs) == 0:
        raise LabelError(f"{path} lists no pixel: write one row,column a line")
    return pairs.reshape(-1, 2)


def pixel_cells(line: str) -> list[str]:
    """The cells of a line such as row,column, "row","column" or row;column.

    >>> pixel_cells('"row";"column"'), pixel_cells("3, 4")
    (['row', 'column'], ['3', '4'])
    """
    sign = next((sign for sign in (",", ";", "\t") if sign in line), ",")
    return [cell.strip().strip('"').strip() for cell in line.split(sign)]


def is_whole(cell: str) -> bool:
    """Whether a cell holds a whole number."""
    return cell.removeprefix("-").isdecimal()


def _listed(arrays: dict[str, NDArray[Any]]) -> str:
    return ", ".join(f"{name} {a.shape} {a.dtype}" for name, a in arrays.items()) or "nothing"
