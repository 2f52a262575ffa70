"""What every dataset returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError
from thonecls.scene import Scene


@dataclass(frozen=True, eq=False)
class Dataset:
    """A scene with its ground truth.

    truth: (H, W) uint8 class numbers, 0 where unlabelled; classes: number to name;
    rgb: the three bands to show as red, green and blue.
    """

    name: str
    scene: Scene
    truth: NDArray[np.uint8]
    classes: dict[int, str]
    rgb: tuple[int, int, int]


def find_file(root: Path, *names: str) -> Path:
    """The first file of one of these names in the folder `root` or below it."""
    for name in names:
        for path in sorted(root.rglob(name)):
            return path
    raise FileError(
        f"no {' or '.join(names)} in {root} or its folders: put the file there, or name another "
        "folder"
    )
