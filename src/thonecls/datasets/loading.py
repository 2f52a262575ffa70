"""Datasets of the catalogue: found by name, downloaded, read, checked against its facts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from rasterio.errors import RasterioError

from thonecls.datasets.catalogue import DATASETS, Spec, get_spec
from thonecls.errors import FileError, LabelError
from thonecls.extras import missing as missing_extra
from thonecls.extras import need
from thonecls.files import files_below
from thonecls.io.arrays import read_array
from thonecls.io.raster.gdal import check_whole, open_gdal
from thonecls.scene import Scene, as_scene


@dataclass(frozen=True, eq=False)
class Dataset:
    """A scene with its ground truth.

    truth: (H, W) uint8 class numbers, 0 where unlabelled; classes: number to name;
    rgb: the three bands to show as red, green and blue; train, test: maps like `truth` of the
    pixels to train and to test on, where the dataset's files fix them.
    """

    name: str
    scene: Scene
    truth: NDArray[np.uint8]
    classes: dict[int, str]
    rgb: tuple[int, int, int]
    train: NDArray[np.uint8] | None = None
    test: NDArray[np.uint8] | None = None


ARRAYS = (".mat", ".npy", ".npz")
RASTERS = (".tif", ".dat", ".bsq", ".img", "")  # all but .tif are ENVI's, with a .hdr beside them


def data_root(given: Path | None = None) -> Path:
    """The folder with the files: the one given, or the variable THONECLS_DATA, or ./data."""
    return given or Path(os.environ.get("THONECLS_DATA") or "data")


def load_dataset(name: str, root: Path | None = None) -> Dataset:
    """The dataset of this name, from files in the folder `root` or below it; see `data_root`.

    A folder that has a dataset's name is for its files alone. Nothing is downloaded.

    >>> data = load_dataset("indian-pines")  # comes with a package, so that it needs no folder
    >>> data.scene.bands, data.scene.shape, data.classes[2]
    (200, (145, 145), 'Corn-notill')
    """
    return load(get_spec(name), data_root(root))


def is_present(name: str, root: Path | None = None) -> bool:
    """Whether the files of a dataset are there, by their names; they are not read."""
    spec = get_spec(name)
    folders = _folders(spec, data_root(root))
    return all(_find(spec, folders, stems) for stems in (spec.cube, spec.truth))


def indian_pines() -> Dataset:
    """The corrected cube (water bands removed) and its 16 classes, from the tensorly package."""
    return load_dataset("indian-pines")


def houston_crop(root: Path) -> Dataset:
    """The cube `hyprImg` and its labels `clasLabs` of houston_dataset.mat, a file under `root`.

    The labels are four times finer; a pixel has a class where all its sixteen labels agree.
    """
    return load_dataset("houston-crop", root)


def load(spec: Spec, root: Path) -> Dataset:
    """The dataset with these facts, from files in `root` or below it."""
    if spec.part_of is not None:
        whole = load(spec.part_of, root)
        (row, column), (height, width) = spec.corner, spec.shape
        window = slice(row, row + height), slice(column, column + width)
        return replace(
            whole, name=spec.name, scene=whole.scene.read(*window), truth=whole.truth[window]
        )
    folders = _folders(spec, root)
    if spec.package is not None and not folders:
        raise missing_extra(spec.package, spec.name)
    cube, truth = (_find(spec, folders, stems) for stems in (spec.cube, spec.truth))
    if cube is None or truth is None:
        missing = " or ".join(spec.cube if cube is None else spec.truth)
        raise FileError(
            f"{spec.name} needs a file {missing} ({', '.join(filter(None, ARRAYS + RASTERS))} or "
            f"ENVI without ending), which is not in {root} or its folders: {how_to_get(spec)}"
        )
    scene = _read_cube(spec, cube)
    # Beside the cube first: other datasets' splits go by the same names.
    train, test = _read_split(spec, [cube.parent, *folders], scene)
    return Dataset(
        name=spec.name,
        scene=scene,
        truth=_read_labels(spec, truth, spec.truth_shape, scene),
        classes=spec.classes,
        rgb=spec.rgb,
        train=train,
        test=test,
    )


def pure_blocks(labels: NDArray[Any], size: int) -> NDArray[Any]:
    """The label of every block of size × size in which all agree, 0 elsewhere.

    >>> pure_blocks(np.array([[1, 1, 2, 2], [1, 1, 2, 3]]), 2).tolist()
    [[1, 0]]
    """
    rows, columns = labels.shape[0] // size, labels.shape[1] // size
    blocks = labels.reshape(rows, size, columns, size).swapaxes(1, 2).reshape(rows, columns, -1)
    pure = (blocks == blocks[..., :1]).all(axis=-1)
    return np.where(pure, blocks[..., 0], 0)


def how_to_get(spec: Spec) -> str:
    """What to do for its files, to be read after a colon."""
    command = f"fetch the files by `thonecls datasets {spec.name}`, or " if spec.urls else ""
    return command + spec.where


def _folders(spec: Spec, root: Path) -> list[Path]:
    """Where to look for the files, the first choice first."""
    if spec.package is not None:
        package = find_spec(spec.package)  # finds it without the second that its import takes
        return [Path(p) for p in (package and package.submodule_search_locations) or ()]
    return [root / (spec.part_of or spec).name, root]


def _find(spec: Spec, folders: Iterable[Path], stems: Iterable[str]) -> Path | None:
    """The first file of one of these names with any ending, in capitals or not."""
    names = [(stem + ending).lower() for stem in stems for ending in ARRAYS + RASTERS]
    others = DATASETS.keys() - {spec.name, spec.part_of and spec.part_of.name}
    for folder in folders:
        found = {
            name: path
            for path in reversed(files_below(folder))
            for name in (path.name.lower(), f"{path.parent.name}/{path.name}".lower())
            if name in names and others.isdisjoint(path.relative_to(folder).parts[:-1])
        }
        for name in names:
            if name in found:
                return found[name]
    return None


def _read_cube(spec: Spec, path: Path) -> Scene:
    array, nodata = _read(spec, path, axes=3, variable=spec.cube.get(path.stem))
    cube = _ordered(spec, path, array, spec.cube_shape)
    return as_scene(cube, valid=None if nodata is None else (cube != nodata).all(axis=0))


def _read_labels(spec: Spec, path: Path, shape: tuple[int, int], scene: Scene) -> NDArray[np.uint8]:
    """A map of class numbers, (H, W), 0 on the scene's nodata; `shape`: its size in the file."""
    array, _ = _read(spec, path, axes=2, variable=spec.truth.get(path.stem))
    labels = _ordered(spec, path, array[0] if array.ndim == 3 else array, shape)
    unknown = np.setdiff1d(labels, [0, *spec.classes])
    if unknown.size:
        raise LabelError(
            f"the class numbers of {spec.name} are 1 to {len(spec.classes)}, and 0 where there is "
            f"no label; {path} also holds {', '.join(f'{n:g}' for n in unknown[:5])}: "
            f"{how_to_get(spec)}"
        )
    if shape != scene.shape:
        labels = pure_blocks(labels, spec.finer)
    return np.where(scene.valid, labels, 0).astype(np.uint8)


def _read_split(
    spec: Spec, folders: list[Path], scene: Scene
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | tuple[None, None]:
    """The maps of pixels to train and to test on, where both files are there."""
    one, two = (_find(spec, folders, stems) for stems in (spec.train, spec.test))
    if one is None or two is None:
        return None, None
    train, test = (_read_labels(spec, path, spec.shape, scene) for path in (one, two))
    if shared := int(((train != 0) & (test != 0)).sum()):
        raise LabelError(
            f"pixels to train on must not be tested on; {one} and {two} share {shared}: "
            f"{how_to_get(spec)}"
        )
    return train, test


def _read(
    spec: Spec, path: Path, *, axes: int, variable: str | None
) -> tuple[NDArray[Any], float | None]:
    """The array in a file, of three axes if it is a raster, and its nodata value."""
    try:
        if path.suffix.lower() not in ARRAYS:
            return _read_raster(path)
        named = variable if path.suffix.lower() == ".mat" else None
        return read_array(path, axes=axes, variable=named), None
    except FileError as e:
        raise FileError(f"{e}. To get it again: {how_to_get(spec)}") from e


def _read_raster(path: Path) -> tuple[NDArray[Any], float | None]:
    """The bands that are not marked as bad (bbl), (C, H, W), and the nodata value."""
    try:
        with open_gdal(str(path), path) as file:
            good = [band for band in file.indexes if file.tags(band).get("bbl", "1") == "1"]
            check_whole(file, path)
            return file.read(good), file.nodata
    except RasterioError as e:
        raise FileError(
            f"cannot read {path} ({e.__cause__ or e}): it must be a whole raster, and one of ENVI "
            "must have its .hdr beside it"
        ) from e


def _ordered(spec: Spec, path: Path, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The array with its axes in the order of `shape`, which the sizes tell."""
    for order in permutations(range(array.ndim)):
        if tuple(array.shape[axis] for axis in order) == shape:
            return array.transpose(order)
    fitting = [
        other.name
        for other in DATASETS.values()
        if sorted(array.shape) == sorted(other.cube_shape if array.ndim == 3 else other.truth_shape)
    ]
    advice = how_to_get(spec)
    if fitting:
        advice = f"it is of {fitting[0]}; ask for that, or keep it in a folder {fitting[0]}"
    got, needed = ("×".join(map(str, sizes)) for sizes in (array.shape, shape))
    raise FileError(f"{spec.name} needs an array of {needed}; {path} holds {got}: {advice}")


def download(name: str, root: Path | None = None) -> None:
    """Fetch the files of a dataset into its own folder under `root`; whole ones stay as they are.

    A file gets its name when it is whole and its checksum, if one is known, is right.
    """
    spec = get_spec(name)
    folder = data_root(root) / name
    if not spec.urls:
        raise FileError(f"{name} has no address to download from into {folder}: {spec.where}")
    pooch = need("pooch", "a download")
    pooch.get_logger().setLevel("WARNING")  # it would tell of every file
    for url, checksum in spec.urls.items():
        file = PurePosixPath(urlsplit(url).path).name
        try:
            pooch.retrieve(url, checksum, fname=file, path=folder)
        except (OSError, ValueError) as e:  # the connection or the disk; the checksum
            raise FileError(
                f"cannot download {url} ({e}): try again later, or get {file} with a browser and "
                f"put it in {folder}"
            ) from e
