"""EnMAP over Potsdam, July 2022: 18 tiles of 32×32 pixels of 30 m in a mosaic, 218 good bands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import rasterio

from thonecls.datasets.dataset import Dataset, find_file
from thonecls.scene import as_scene

CLASSES = {1: "roof", 2: "pavement", 3: "low vegetation", 4: "tree", 5: "soil", 6: "water"}


def enmap_potsdam(root: Path) -> Dataset:
    """The cube scene.tif without its bad bands and its land cover truth.tif, files under `root`."""
    with rasterio.open(find_file(root, "scene.tif")) as file:
        good = [band for band in file.indexes if file.tags(band).get("bbl", "1") == "1"]
        cube = file.read(good)
        valid = (cube != file.nodata).all(axis=0)
    with rasterio.open(find_file(root, "truth.tif")) as file:
        truth = np.where(valid, file.read(1), 0).astype(np.uint8)
    return Dataset(
        name="enmap-potsdam",
        scene=as_scene(cube, valid=valid),
        truth=truth,
        classes=CLASSES,
        rgb=(71, 43, 25),  # near infrared, red, green: vegetation shows red
    )
