"""What every dataset returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thonecls.scene import Scene


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
