"""A made scene of fields with smooth spectra, for tests, examples and experiments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, gaussian_filter1d
from scipy.spatial import cKDTree

from thonecls.datasets.loading import Dataset
from thonecls.errors import ConfigError
from thonecls.scene import as_scene


def synthetic(
    *,
    height: int = 48,
    width: int = 48,
    bands: int = 16,
    classes: int = 4,
    separation: float = 1.0,
    variability: float = 0.05,
    texture: float = 0.05,
    fields: int = 24,
    seed: int = 0,
) -> Dataset:
    """A seeded scene of polygonal fields, each of one class, every pixel labelled.

    separation: how far the class spectra lie apart (0: all alike); variability: spectral noise
    of each pixel; texture: smooth brightness that varies over space; fields: number of polygons.

    >>> data = synthetic(height=20, width=30, bands=8, classes=3)
    >>> data.scene.cube.shape, sorted(data.classes)
    ((8, 20, 30), [1, 2, 3])
    """
    if min(height, width, bands) < 2 or classes < 2 or fields < classes:
        raise ConfigError(
            "a synthetic scene needs 2 or more rows, columns, bands and classes, and as many "
            f"fields as classes. Got {height}×{width}×{bands}, {classes} classes, {fields} fields"
        )
    rng = np.random.default_rng(seed)
    truth = _fields(rng, height, width, fields, classes)
    base = gaussian_filter1d(rng.normal(size=bands), bands / 4, mode="nearest")
    spectra = gaussian_filter1d(rng.normal(size=(classes, bands)), bands / 8, axis=1)
    spectra = base + separation * spectra / spectra.std()
    noise = rng.normal(size=(bands, height, width), scale=variability)
    brightness = gaussian_filter(rng.normal(size=(height, width)), 4)
    brightness *= texture / max(float(brightness.std()), 1e-12)
    cube = spectra[truth - 1].transpose(2, 0, 1) * (1 + brightness) + noise
    return Dataset(
        name="synthetic",
        scene=as_scene(cube),
        truth=truth,
        classes={c: f"class {c}" for c in range(1, classes + 1)},
        rgb=(bands - 1, bands // 2, 0),
    )


def _fields(
    rng: np.random.Generator, height: int, width: int, fields: int, classes: int
) -> NDArray[np.uint8]:
    """Each pixel takes the class of its nearest seed point; classes take turns over the seeds."""
    points = rng.uniform(size=(fields, 2)) * (height, width)
    rows, columns = np.mgrid[:height, :width]
    _, nearest = cKDTree(points).query(np.stack([rows, columns], axis=-1))
    return np.asarray(1 + np.asarray(nearest) % classes, dtype=np.uint8)
