"""Tiles of a scene as people see it: any three bands, one in grey, or principal components."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from thonecls.errors import ConfigError
from thonecls.io.raster import FALSE_COLOUR, TRUE_COLOUR, nearest_bands
from thonecls.scene import FloatArray, Scene, principal_axes
from thonecls.studio.view import TILE, Cache, SceneView

MOST_CLIP = 20.0  # percent
COMPONENTS = 3


class Pictures:
    """Draws a scene; rgb: bands to show, by number, where no wavelength tells.

    The stretch is from the sample that the view has now, and stays: tiles are kept.
    """

    def __init__(self, view: SceneView, rgb: Sequence[int] | None = None) -> None:
        self.view, self.sample = view, view.background
        self.presets = _presets(view, rgb)
        self._tiles = Cache()
        self._limits: dict[tuple[bool, int, float], tuple[float, float]] = {}
        mean, std = self.sample.mean(axis=0), self.sample.std(axis=0)
        std = np.where(std > 0, std, 1).astype(np.float32)
        self._weights = principal_axes((self.sample - mean) / std, COMPONENTS) / std
        self._shift = self._weights @ mean

    def tile(
        self, z: int, x: int, y: int, bands: Sequence[int] | None, preset: str | None, clip: float
    ) -> bytes:
        """A tile as PNG: of one band, three, or a preset; transparent on nodata."""
        if not 0 <= clip <= MOST_CLIP:
            raise ConfigError(f"'clip' must be from 0 to {MOST_CLIP:g} percent. Got {clip} instead")
        if preset is not None:
            if preset not in self.presets:
                raise ConfigError(
                    f"'preset' must be one of {', '.join(self.presets)}. Got {preset!r} instead"
                )
            bands = self.presets[preset]
        if bands is not None and len(bands) not in (1, 3):
            raise ConfigError(f"'bands' must be 1 or 3 numbers. Got {len(bands)} instead")
        window = self.view.window(z, x, y)
        positions = None if bands is None else [self.view.position(number) for number in bands]
        key = z, x, y, None if bands is None else tuple(bands), clip
        return self._tiles.get(key, lambda: self._draw(window, positions, clip))

    def _draw(
        self, window: tuple[slice, slice, int], positions: Sequence[int] | None, clip: float
    ) -> bytes:
        if positions is None:
            part = self.view.read(*window, range(len(self.view.used)))
            layers = self._components(part)
            limits = [self._limit(True, i, clip) for i in range(COMPONENTS)]
        else:
            part = self.view.read_any(*window, positions)
            layers, limits = part.cube, [self._limit(False, at, clip) for at in positions]
        low, high = (
            np.array(ends, np.float32)[:, None, None] for ends in zip(*limits, strict=True)
        )
        shown = np.clip((layers - low) / np.maximum(high - low, 1e-20), 0, 1) * 255
        image = np.zeros((TILE, TILE, 4), np.uint8)
        height, width = part.shape
        image[:height, :width, :3] = np.moveaxis(shown, 0, 2)  # a single band is all three
        image[:height, :width, 3] = part.valid * 255
        file = io.BytesIO()
        Image.fromarray(image).save(file, "PNG", compress_level=1)
        return file.getvalue()

    def _limit(self, component: bool, at: int, clip: float) -> tuple[float, float]:
        """Between which values a band, or a principal component, is stretched."""
        key = component, at, clip
        if key not in self._limits:
            if component:
                row = Scene(self.sample.T[:, None], np.ones((1, len(self.sample)), dtype=bool))
                values = self._components(row)[at].ravel()
            elif self.view.bands[at].used:
                values = self.sample[:, self.view.used.index(at)]
            else:
                values = self.view.sample_any(at)
            low, high = np.percentile(values, [clip, 100 - clip])
            self._limits[key] = float(low), float(high)
        return self._limits[key]

    def _components(self, part: Scene) -> FloatArray:
        """The first principal components of a part of the scene: (3, h, w)."""
        found = np.tensordot(self._weights, part.cube, 1) - self._shift[:, None, None]
        missing = COMPONENTS - len(found)  # of a scene of two bands
        return np.concatenate([found, np.zeros((missing, *part.shape), np.float32)])


def _presets(view: SceneView, rgb: Sequence[int] | None) -> dict[str, list[int] | None]:
    """Named choices of bands, by their numbers; None where it is none of bands."""
    numbers = [view.bands[i].number for i in view.used]
    found: dict[str, list[int] | None] = {}
    for name, wanted in (("true-colour", TRUE_COLOUR), ("false-colour", FALSE_COLOUR)):
        if (at := nearest_bands(view.opened.wavelengths, wanted)) is not None:
            found[name] = [numbers[i] for i in at]
    if not found:
        usual = [numbers[0], numbers[len(numbers) // 2], numbers[-1]]
        found["three-bands"] = usual if rgb is None else list(rgb)
    return found | {"pca": None}
