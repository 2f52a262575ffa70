"""Labels from maps: vector layers, CSV coordinates and label rasters, onto a scene's pixels."""

from __future__ import annotations

from thonecls.io.vector.burning import (
    UNKNOWN,
    Burnt,
    LabelRaster,
    burn_positives,
    burn_truth,
    is_laid_on,
    read_label_raster,
    read_labelled,
)
from thonecls.io.vector.crs import assign_crs
from thonecls.io.vector.layers import (
    ENDINGS,
    columns_of,
    count_features,
    is_vector,
    read_layer,
)
from thonecls.io.vector.points import PRESENT, Points, points_path, read_points, write_points

__all__ = [
    "ENDINGS",
    "PRESENT",
    "UNKNOWN",
    "Burnt",
    "LabelRaster",
    "Points",
    "assign_crs",
    "burn_positives",
    "burn_truth",
    "columns_of",
    "count_features",
    "is_laid_on",
    "is_vector",
    "points_path",
    "read_label_raster",
    "read_labelled",
    "read_layer",
    "read_points",
    "write_points",
]
