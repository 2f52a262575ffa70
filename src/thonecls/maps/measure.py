"""Sizes on the ground, as far as a coordinate system tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyproj
import rasterio.crs

from thonecls.io.grid import Grid


@dataclass(frozen=True)
class Measure:
    """How a CRS tells sizes on the ground: metres in a unit, or an ellipsoid for degrees."""

    metre: float | None = None
    ellipsoid: pyproj.Geod | None = None

    @staticmethod
    def of(crs: Any) -> Measure:
        if crs and crs.is_projected:
            return Measure(metre=float(crs.linear_units_factor[1]))
        if crs and crs.is_geographic:
            return Measure(ellipsoid=pyproj.CRS.from_wkt(crs.to_wkt()).get_geod())
        return Measure()

    @staticmethod
    def of_grid(grid: Grid) -> Measure:
        """Of the CRS of a scene, if it has one."""
        return Measure.of(None if grid.crs is None else rasterio.crs.CRS.from_wkt(grid.crs))

    def area(self, polygon: Any) -> float | None:
        """Square metres; None where the CRS does not tell."""
        if self.metre is not None:
            return float(polygon.area) * self.metre**2
        if self.ellipsoid is not None:
            return abs(float(self.ellipsoid.geometry_area_perimeter(polygon)[0]))
        return None

    def pixel(self, grid: Grid) -> tuple[float, float] | None:
        """Width and height in metres of the pixel in the middle of a scene."""
        a, b, c, d, e, f = grid.transform[:6]
        row, column = grid.shape[0] / 2, grid.shape[1] / 2
        x, y = a * column + b * row + c, d * column + e * row + f
        if self.metre is not None:
            return self.metre * float(np.hypot(a, d)), self.metre * float(np.hypot(b, e))
        if self.ellipsoid is not None:
            ends = (x + a, y + d), (x + b, y + e)
            width, height = (float(self.ellipsoid.inv(x, y, *end)[2]) for end in ends)
            return width, height
        return None
