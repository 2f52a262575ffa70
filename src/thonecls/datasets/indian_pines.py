"""Indian Pines: AVIRIS over farmland in Indiana, June 1992, 145×145 pixels of 20 m, 200 bands."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.datasets.dataset import Dataset
from thonecls.scene import as_scene

CLASSES = {
    1: "Alfalfa",
    2: "Corn-notill",
    3: "Corn-mintill",
    4: "Corn",
    5: "Grass-pasture",
    6: "Grass-trees",
    7: "Grass-pasture-mowed",
    8: "Hay-windrowed",
    9: "Oats",
    10: "Soybean-notill",
    11: "Soybean-mintill",
    12: "Soybean-clean",
    13: "Wheat",
    14: "Woods",
    15: "Buildings-Grass-Trees-Drives",
    16: "Stone-Steel-Towers",
}


def indian_pines() -> Dataset:
    """The corrected cube (water bands removed) and its 16 classes, from the tensorly package."""
    return Dataset(
        name="indian-pines",
        scene=as_scene(_load("Indian_pines_corrected.npy"), bands="last"),
        truth=_load("Indian_pines_gt.npy").astype(np.uint8),
        classes=CLASSES,
        rgb=(50, 27, 17),  # near infrared, red, green: vegetation shows red
    )


def _load(name: str) -> NDArray[Any]:
    with (files("tensorly") / "datasets" / "data" / name).open("rb") as file:
        array: NDArray[Any] = np.load(file, allow_pickle=False)
    return array
