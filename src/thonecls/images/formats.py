"""The file formats that image datasets are distributed in, each read into plain arrays."""

from __future__ import annotations

import gzip
import math
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError, LabelError
from thonecls.images.catalogue import ImageSpec

Bytes = NDArray[np.uint8]
Batch = tuple[Bytes, Bytes]  # images and labels
Arrays = tuple[Bytes, Bytes, Bytes, Bytes, Bytes | None]  # train and test batch, unlabeled images

BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
GZIP = b"\x1f\x8b"
IDX = {1: bytes([0, 0, 8, 1]), 3: bytes([0, 0, 8, 3])}  # how a file of so many axes begins


@dataclass(frozen=True)
class Format:
    """One way to distribute a dataset: its files, each with the names it goes by, and a reader."""

    files: tuple[tuple[str, ...], ...]
    read: Callable[[ImageSpec, list[Path]], Arrays]


# CIFAR-10: six batches of plain bytes, loose or in an archive.


def _loose(spec: ImageSpec, paths: list[Path]) -> Arrays:
    return _joined(_binary_batch(spec, str(path), path.read_bytes()) for path in paths)


def _archived(spec: ImageSpec, paths: list[Path]) -> Arrays:
    """The batches in a .tar.gz, which is not unpacked to disk."""
    wanted = [f"{batch}.bin" for batch in BATCHES]
    batches: dict[str, Batch] = {}
    try:
        with tarfile.open(paths[0]) as archive:
            for member in archive:
                name = Path(member.name).name
                file = archive.extractfile(member) if name in wanted else None
                if file is not None:
                    batches[name] = _binary_batch(spec, f"{name} in {paths[0]}", file.read())
            if archive.fileobj is not None:
                archive.fileobj.read(-1)  # to the very end, where gzip keeps its checksum
    except (tarfile.TarError, EOFError, zlib.error) as e:
        raise FileError(f"{paths[0]} is damaged ({e})") from e
    if missing := [name for name in wanted if name not in batches]:
        raise FileError(f"{paths[0]} does not hold {', '.join(missing)}")
    return _joined(batches[name] for name in wanted)


def _joined(batches: Iterable[Batch]) -> Arrays:
    *train, test = batches
    images, labels = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return images, labels, *test, None


def _binary_batch(spec: ImageSpec, label: str, content: bytes) -> Batch:
    """Rows of a label and the bytes of an image, channel by channel."""
    size = math.prod(spec.shape)
    if not content or len(content) % (1 + size):
        raise FileError(
            f"{label} has {len(content)} bytes, which is no multiple of {1 + size}, a label and "
            "an image: it is damaged or of another form"
        )
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, 1 + size)
    return _shaped(spec, label, rows[:, 1:]), _numbered(spec, label, rows[:, 0])


# STL-10: bare bytes, in which the columns of an image follow each other.


def _stl(spec: ImageSpec, paths: list[Path]) -> Arrays:
    train, train_labels, test, test_labels, unlabeled = paths
    names = train.with_name("class_names.txt")
    if names.is_file() and tuple(names.read_text(errors="replace").split()) != spec.classes:
        raise LabelError(f"{names} must name the classes {' '.join(spec.classes)}")
    return (
        _mapped(spec, train, sum(spec.train)),
        _stl_labels(spec, train_labels, sum(spec.train)),
        _mapped(spec, test, sum(spec.test)),
        _stl_labels(spec, test_labels, sum(spec.test)),
        _mapped(spec, unlabeled, spec.unlabeled),
    )


def _mapped(spec: ImageSpec, path: Path, count: int) -> Bytes:
    """Images that stay on disk until they are asked for."""
    channels, rows, columns = spec.shape
    _check_size(path, count * channels * rows * columns)
    stored = np.memmap(path, dtype=np.uint8, mode="r", shape=(count, channels, columns, rows))
    return stored.transpose(0, 1, 3, 2)


def _stl_labels(spec: ImageSpec, path: Path, count: int) -> Bytes:
    _check_size(path, count)
    return _numbered(spec, str(path), np.frombuffer(path.read_bytes(), dtype=np.uint8), first=1)


def _check_size(path: Path, size: int) -> None:
    if (found := path.stat().st_size) != size:
        raise FileError(
            f"{path} has {found} bytes instead of {size}: it is not whole, or no such file"
        )


# MNIST and its kin: idx files, four bytes that tell the axes, their sizes, then bare bytes.


def _idx(spec: ImageSpec, paths: list[Path]) -> Arrays:
    train, train_labels, test, test_labels = paths
    return (
        *_paired(spec, str(train), _read_idx(train, axes=3), _read_idx(train_labels, axes=1)),
        *_paired(spec, str(test), _read_idx(test, axes=3), _read_idx(test_labels, axes=1)),
        None,
    )


def _read_idx(path: Path, *, axes: int) -> Bytes:
    content = path.read_bytes()
    if content.startswith(GZIP):  # whatever its name: browsers unpack some files and not others
        try:
            content = gzip.decompress(content)
        except (EOFError, zlib.error, gzip.BadGzipFile) as e:
            raise FileError(f"{path} is damaged ({e})") from e
    start = 4 + 4 * axes
    if not content.startswith(IDX[axes]) or len(content) < start:
        raise FileError(
            f"{path} must be an idx file of bytes with {axes} axes, which begins with "
            f"{IDX[axes].hex()}. Got {content[:4].hex()} instead"
        )
    shape = np.frombuffer(content[4:start], dtype=">u4").tolist()
    if len(content) - start != math.prod(shape):
        raise FileError(
            f"{path} has {len(content) - start} of the {math.prod(shape)} bytes its header tells of"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


# Any of them as arrays.

NPZ_NAMES = (
    ("x_train", "y_train", "x_test", "y_test"),
    ("train", "train_labels", "test", "test_labels"),
)


def _npz(spec: ImageSpec, paths: list[Path]) -> Arrays:
    label = str(paths[0])
    try:
        # Opened here, since numpy leaves files open that turn out to be damaged.
        with paths[0].open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            held = {name: file[name] for name in file.files}
    except (  # what numpy and zipfile raise on files that are damaged, or no arrays
        *(ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error),
        *(MemoryError, NotImplementedError, RuntimeError),
    ) as e:
        raise FileError(f"{label} is no file of arrays without objects ({e})") from e
    held = {name: array for name, array in held.items() if isinstance(array, np.ndarray)}
    names = next((names for names in NPZ_NAMES if held.keys() >= set(names)), None)
    if names is None or (spec.unlabeled and "unlabeled" not in held):
        also = ", and unlabeled" if spec.unlabeled else ""
        raise FileError(
            f"{label} must hold {' or '.join(', '.join(names) for names in NPZ_NAMES)}{also}. "
            f"Got {', '.join(held) or 'nothing'} instead"
        )
    train, train_labels, test, test_labels = (held[name] for name in names)
    unlabeled = _shaped(spec, label, held["unlabeled"]) if spec.unlabeled else None
    if unlabeled is not None and len(unlabeled) != spec.unlabeled:
        raise FileError(
            f"{label} has {len(unlabeled)} unlabeled images; {spec.name} has {spec.unlabeled}"
        )
    return (
        *_paired(spec, label, train, train_labels),
        *_paired(spec, label, test, test_labels),
        unlabeled,
    )


def _paired(spec: ImageSpec, label: str, images: NDArray[Any], labels: NDArray[Any]) -> Batch:
    """Images and as many labels, both checked."""
    shaped, numbers = _shaped(spec, label, images), _numbered(spec, label, labels)
    if len(shaped) != len(numbers):
        raise LabelError(f"{label} has {len(shaped)} images, but {len(numbers)} labels")
    return shaped, numbers


def _shaped(spec: ImageSpec, label: str, images: NDArray[Any]) -> Bytes:
    """Images as (n, C, H, W), from that, (n, H, W, C), (n, H, W) of grey ones or flat rows."""
    channels, rows, columns = spec.shape
    size = images.shape[1:]
    if images.dtype != np.uint8 or images.ndim < 2:
        raise FileError(f"{label} must hold images of uint8. Got {images.dtype} of {images.shape}")
    if size == (rows, columns, channels) and size != spec.shape:
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    flat = (math.prod(spec.shape),)
    if size in (spec.shape, flat) or (channels == 1 and size == (rows, columns)):
        return images.reshape(-1, *spec.shape)
    raise FileError(
        f"{spec.name} has images of {channels}×{rows}×{columns}; "
        f"{label} holds {'×'.join(map(str, size))}"
    )


def _numbered(spec: ImageSpec, label: str, labels: NDArray[Any], *, first: int = 0) -> Bytes:
    """Labels (n,) from 0, from such that count from `first`."""
    last = first + len(spec.classes) - 1
    flat = labels.reshape(-1)
    if flat.dtype.kind not in "iu":
        raise LabelError(f"the labels of {label} must be whole numbers. Got {flat.dtype} instead")
    unknown = flat[(flat < first) | (flat > last)]
    if unknown.size:
        some = ", ".join(str(number) for number in np.unique(unknown)[:5])
        raise LabelError(f"the labels of {label} must be {first} to {last}. Got {some} instead")
    return (flat - first).astype(np.uint8)


def _batch_files(ending: str) -> tuple[tuple[str, ...], ...]:
    return tuple((batch + ending,) for batch in BATCHES)


def _npz_of(name: str) -> Format:
    return Format(((f"{name}.npz",),), _npz)


_IDX_FORMAT = Format(
    tuple(
        tuple(
            f"{part}-{kind}{dot}idx{axes}-ubyte{packed}"
            for part in parts
            for dot in "-."
            for packed in ("", ".gz")
        )
        for parts in (("train",), ("t10k", "test"))
        for kind, axes in (("images", 3), ("labels", 1))
    ),
    _idx,
)

# By dataset, the preferred form first.
FORMATS: dict[str, tuple[Format, ...]] = {
    "cifar10": (
        Format(_batch_files(".bin"), _loose),
        Format(
            (("cifar-10-binary.tar.gz", "cifar-10-binary.tar"),),
            _archived,
        ),
        _npz_of("cifar10"),
    ),
    "stl10": (
        Format(
            (
                *(("train_X.bin",), ("train_y.bin",), ("test_X.bin",), ("test_y.bin",)),
                ("unlabeled_X.bin",),
            ),
            _stl,
        ),
        _npz_of("stl10"),
    ),
    "mnist": (_IDX_FORMAT, _npz_of("mnist")),
    "fashion-mnist": (_IDX_FORMAT, _npz_of("fashion-mnist")),
}
