"""A crop of the University of Houston campus, 2018: 128×128 pixels of 1 m, 48 bands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.arrays import read_array
from thonecls.datasets.dataset import Dataset, find_file
from thonecls.scene import as_scene

FINER = 4  # the labels' pixels to one of the cube's, along either side


def houston_crop(root: Path) -> Dataset:
    """The cube `hyprImg` and its labels `clasLabs` of houston_dataset.mat, a file under `root`.

    The labels are four times finer; a pixel has a class where all its sixteen labels agree.
    """
    file = find_file(root, "houston_dataset.mat")
    truth = pure_blocks(read_array(file, axes=2, variable="clasLabs"), FINER).astype(np.uint8)
    return Dataset(
        name="houston-crop",
        scene=as_scene(read_array(file, axes=3, variable="hyprImg"), bands="last"),
        truth=truth,
        classes={int(c): f"class {c}" for c in np.unique(truth[truth != 0])},
        rgb=(21, 12, 5),
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
