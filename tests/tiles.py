"""A scene cut into georeferenced tiles, as flights are delivered, for tests of many scenes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import rasterio
from affine import Affine
from rasterio.windows import Window


def cut_tiles(scene: Path, folder: Path, down: int, across: int) -> list[Path]:
    """Write a raster's tiles as tile_00.tif and so on, with its bands' names and tags."""
    folder.mkdir(parents=True)
    files = []
    with rasterio.open(scene) as whole:
        rows, columns = (
            np.linspace(0, length, count + 1).astype(int).tolist()
            for length, count in ((whole.height, down), (whole.width, across))
        )
        keep = ("driver", "dtype", "nodata", "count", "crs")
        facts = {name: whole.profile[name] for name in keep}
        for i, j in itertools.product(range(down), range(across)):
            window = Window(columns[j], rows[i], columns[j + 1] - columns[j], rows[i + 1] - rows[i])
            files.append(folder / f"tile_{i}{j}.tif")
            with rasterio.open(
                files[-1],
                "w",
                **facts,
                height=window.height,
                width=window.width,
                transform=Affine(*whole.transform[:6]) @ Affine.translation(columns[j], rows[i]),
            ) as tile:
                tile.write(whole.read(window=window))
                for band in range(1, whole.count + 1):
                    tile.set_band_description(band, whole.descriptions[band - 1])
                    tile.update_tags(band, **whole.tags(band))
    return files
