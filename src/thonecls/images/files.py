"""Images with labels from the files that they are distributed in: found by name, read, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thonecls.datasets import data_root
from thonecls.errors import FileError, LabelError
from thonecls.files import files_below
from thonecls.images.catalogue import IMAGES, ImageSpec, image_spec
from thonecls.images.formats import FORMATS, Bytes, Format


@dataclass(frozen=True, eq=False)
class Images:
    """Images to train and to test on.

    train, test: (n, C, H, W) uint8; train_labels, test_labels: (n,) uint8 class numbers from 0;
    unlabeled: (n, C, H, W) uint8 of unknown class, where the dataset has any; classes: number to
    name. Arrays may lie on disk (memory-mapped) and be read-only.
    """

    name: str
    train: Bytes
    train_labels: Bytes
    test: Bytes
    test_labels: Bytes
    unlabeled: Bytes | None
    classes: dict[int, str]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of an image."""
        _, channels, rows, columns = self.train.shape
        return channels, rows, columns

    @property
    def pool(self) -> Bytes:
        """Where unlabeled images are drawn from: those without a label, or else all of train."""
        return self.train if self.unlabeled is None else self.unlabeled


def load_images(name: str, root: Path | None = None) -> Images:
    """The images of this name, from files in the folder `root` or below it; see `data_root`.

    CIFAR-10: `cifar-10-batches-bin`, as a folder or as .tar.gz; STL-10: `stl10_binary`,
    which stays on disk; MNIST and Fashion-MNIST: idx files, gzipped or not, in a folder of the
    dataset's name. Any of them as {name}.npz with x_train, y_train, x_test, y_test (and unlabeled).
    Nothing is downloaded, and no code in a file is run.
    """
    spec, root = image_spec(name), data_root(root)
    files = _files(spec, root)
    for form in FORMATS[name]:
        paths = _match(form, files)
        if None not in paths:
            return _load(spec, form, [path for path in paths if path])
    nearest = max(FORMATS[name], key=lambda form: sum(map(bool, _match(form, files))))
    missing = [
        names[0]
        for names, path in zip(nearest.files, _match(nearest, files), strict=True)
        if path is None
    ]
    raise FileError(
        f"{name} needs {', '.join(missing)}, which cannot be found in {root} or its folders: "
        f"{spec.where}"
    )


def is_present(name: str, root: Path | None = None) -> bool:
    """Whether the files of an image dataset are there, by their names; they are not read."""
    files = _files(image_spec(name), data_root(root))
    return any(None not in _match(form, files) for form in FORMATS[name])


def _load(spec: ImageSpec, form: Format, paths: list[Path]) -> Images:
    """Read, and check the number of images of every class."""
    try:
        arrays = form.read(spec, paths)
    except OSError as e:
        raise FileError(f"cannot read {paths[0]} ({e}): {spec.where}") from e
    except (FileError, LabelError) as e:
        raise type(e)(f"{e}. To get it again: {spec.where}") from e
    images = Images(spec.name, *arrays, classes=dict(enumerate(spec.classes)))
    parts = {"train": (images.train_labels, spec.train), "test": (images.test_labels, spec.test)}
    for part, (labels, expected) in parts.items():
        found = tuple(np.bincount(labels, minlength=len(expected)).tolist())
        if found != expected:
            same = [
                other.name
                for other in IMAGES.values()
                if (other.shape, getattr(other, part)) == (spec.shape, found)
            ]
            advice = (
                f"they are of {same[0]}; keep them in a folder {same[0]}" if same else spec.where
            )
            raise LabelError(
                f"{spec.name} has {', '.join(map(str, expected))} images of its classes to {part}; "
                f"the files beside {paths[0]} hold {', '.join(map(str, found))}: {advice}"
            )
    return images


def _files(spec: ImageSpec, root: Path) -> dict[str, Path]:
    """The files that may be the dataset's, by name in lower case; those of its own folder first."""
    known = {name.lower() for form in FORMATS[spec.name] for names in form.files for name in names}
    own = _plain(spec.name)
    others = {_plain(name) for name in IMAGES} - {own}
    found: dict[bool, dict[str, Path]] = {True: {}, False: {}}
    for path in files_below(root):
        name = path.name.lower()
        folders = {_plain(folder) for folder in path.relative_to(root).parts[:-1]}
        if name in known and others.isdisjoint(folders):
            found[own in folders].setdefault(name, path)
    return {**found[False], **found[True]}


def _plain(name: str) -> str:
    """A name however it is spelled: FashionMNIST, fashion_mnist and fashion-mnist are one."""
    return "".join(filter(str.isalnum, name.lower()))


def _match(form: Format, files: dict[str, Path]) -> list[Path | None]:
    """For each file of a form the one that is there."""
    return [
        next((files[name.lower()] for name in names if name.lower() in files), None)
        for names in form.files
    ]
